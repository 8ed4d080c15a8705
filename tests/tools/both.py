"""Both verifiers look at every release that a test saves or verifies, damaged or not, and agree."""

import functools
import hashlib
from pathlib import Path
from typing import Any

from tools import verify_release as stranger
from understudy.errors import BundleError
from understudy.releases import bundle
from understudy.releases import verify as ours

_verify, _save = ours.verify, bundle.save
_LARGE = 10**7
_agreed: set[bytes] = set()


def require_agreement(folder: Path) -> None:
    """They accept both, or refuse both. About the same bytes they are asked once."""
    seen = _digest(folder)
    if seen in _agreed:
        return
    problems = stranger.verify(folder)
    try:
        found = _verify(folder)
        refusals = [f"{check.name}: {check.detail}" for check in found.checks if not check.passed]
    except BundleError as error:
        refusals = [str(error)]
    assert bool(problems) == bool(refusals), (
        f"the verifiers disagree on {folder}: ours says {refusals}, the other {problems}"
    )
    if seen is not None:
        _agreed.add(seen)


def _digest(folder: Path) -> bytes | None:
    """Of names and contents; None where something is no ordinary file, or too large to be read."""
    found = hashlib.sha256()
    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGE:
            return None
        data = path.read_bytes()
        found.update(f"{path.name}\0{len(data)}\0".encode(errors="surrogateescape") + data)
    return found.digest()


def _remembered(function: Any) -> Any:
    """Its answers are kept: what a plan costs is the same however often it is asked."""
    known: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        key = repr(args)
        if key not in known:
            known[key] = function(*args)
        return known[key]

    return call


def install() -> None:
    """Before any test module is imported, so that all of them get the watched functions."""

    @functools.wraps(_verify)
    def verify(path: Any, **options: Any) -> Any:
        if Path(path).is_dir():
            require_agreement(Path(path))
        return _verify(path, **options)

    @functools.wraps(_save)
    def save(release: Any, path: Path, **options: Any) -> Path:
        saved = _save(release, path, **options)
        require_agreement(saved)
        return saved

    ours.verify, bundle.save = verify, save
    # Five sixths of the second verifier's time.
    stranger.epsilon = _remembered(stranger.epsilon)
    stranger.profile_epsilon = _remembered(stranger.profile_epsilon)

"""The report on disk: `report.html` in the folder of the release, which its digest does not cover."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from understudy import files
from understudy.errors import InputError, WorkError
from understudy.releases import Release
from understudy.releases.bundle import read_manifest
from understudy.report.page import render

__all__ = ["NAME", "read_audit", "write"]

NAME = "report.html"


def write(
    folder: str | Path,
    *,
    out: str | Path | None = None,
    audit: Mapping[str, Any] | None = None,
    release: Release | None = None,
) -> Path:
    """Write the report of the release in `folder`, whole or not at all; an older one is replaced.

    out      where to, instead of report.html in the folder itself
    audit    what an audit found, see `read_audit`
    release  the release in that folder, if it is at hand; otherwise it is read
    """
    folder = Path(folder)
    path = folder / NAME if out is None else Path(out)
    _require_place(path)
    manifest = read_manifest(folder)
    made = Release.load(folder) if release is None else release
    page = render(
        made,
        name=folder.resolve().name,
        digest=str(manifest["digest"]),
        created=str(manifest["created"]),
        audit=audit,
    )
    # Beside the folder, not in it: a release with an unknown file is refused.
    beside = folder.resolve().parent if out is None else path.resolve().parent
    try:
        files.write(path, page, beside=beside)
    except OSError as error:
        raise WorkError(
            f"{path} could not be written ({error.strerror or error}); give another place with --out"
        ) from None
    return path


def _require_place(path: Path) -> None:
    """A page, and in a release no other than its report: nothing else is ever replaced."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"out = {path} must end in .html")
    if (path.resolve().parent / "release.json").is_file() and path.name != NAME:
        raise InputError(
            f"out = {path} lies in a release, which may hold no other page than {NAME}: choose "
            f"another folder"
        )


def read_audit(path: str | Path) -> dict[str, Any]:
    """An audit.json, or the folder that holds one."""
    file = Path(path)
    file = file / "audit.json" if file.is_dir() else file
    if not file.is_file():
        raise InputError(
            f"audit = {path} has no audit.json; make one with `understudy audit release DIR --out A`"
        )
    try:
        found = json.loads(file.read_bytes())
        known = found["what"].startswith("understudy audit")
        _ = (found["claim"]["epsilon"], found["lower_bound"]["epsilon"], found["attacks"])
    except (ValueError, KeyError, TypeError, AttributeError):
        known, found = False, {}
    if not known:
        raise InputError(f"audit = {file} was not written by `understudy audit`, or is damaged")
    return found

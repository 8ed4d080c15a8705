"""Inner loops compiled by Numba, on machines where little can be written as well.

Numba keeps what it compiled beside the source or in the user's home. Where both are read-only it raises
instead of compiling; then a folder of this user alone, under the system's temporary one, keeps it, and
where there is none either, every process compiles for itself. The folder must be ours and closed to
others, for what is read from it is run.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import config as _config

__all__ = ["compiled"]


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function as machine code, made at its first call and kept on disk if that can be."""
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return _elsewhere(function, options)


def _elsewhere(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    folder = _temporary()
    if folder is None:
        return numba.njit(**options)(function)
    config: Any = _config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before


def _temporary() -> Path | None:
    """A folder that this user owns and nobody else may enter; None where there is none."""
    try:
        folder = Path(tempfile.gettempdir()) / f"understudy-numba-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(kept.st_mode) and kept.st_uid == os.getuid()
    return folder if ours and not kept.st_mode & 0o077 else None

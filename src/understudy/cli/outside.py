"""Files that commands write beside releases, never into one."""

from __future__ import annotations

from pathlib import Path

from understudy.errors import InputError

__all__ = ["require_outside"]


def require_outside(out: Path, why: str) -> None:
    """`out` is in no release's folder, its own folder exists, and nothing is there yet."""
    where = out.resolve()
    for parent in where.parents:
        if (parent / "release.json").is_file():
            raise InputError(
                f"out = {out} lies in the release {parent}; {why}: choose another folder"
            )
    if not where.parent.is_dir():
        raise InputError(f"out = {out}: the folder {where.parent} does not exist; make it first")
    if where.exists():
        raise InputError(f"out = {out} exists already and is not overwritten; remove it first")

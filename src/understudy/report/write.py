"""The report on disk: saved in the release and covered by its digest, or made again elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from understudy import files
from understudy.errors import InputError, WorkError
from understudy.releases import Release
from understudy.releases.bundle import read_manifest
from understudy.releases.form import LARGEST
from understudy.releases.static_html import NAME
from understudy.report.page import render

__all__ = ["NAME", "read_audit", "save", "write"]


def save(release: Release, folder: str | Path) -> Path:
    """Save a release with its report.

    The rows are paid for and the page can be made again: where it cannot be made, the release is
    saved without one.
    """
    folder = Path(folder)
    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        page = render(release, name=folder.resolve().name, created=now)
        if len(page.encode()) > LARGEST[NAME]:
            page = None
    except Exception:  # noqa: BLE001 - whatever it is, `understudy report` will say it
        page = None
    return release.save(folder, report=page)


def write(
    folder: str | Path, *, out: str | Path | None = None, audit: Mapping[str, Any] | None = None
) -> Path:
    """Make the report of the release in `folder` again, whole or not at all; an older one is replaced.

    out    where to; by default beside the folder, under its name with .html at the end. Never into
           a release, whose digest covers the report that is in it
    audit  what an audit found, see `read_audit`
    """
    folder = Path(folder)
    home = folder.resolve()
    path = home.parent / f"{home.name}.html" if out is None else Path(out)
    _require_place(path)
    manifest = read_manifest(folder)
    page = render(
        Release.load(folder),
        name=home.name,
        digest=str(manifest["digest"]),
        created=str(manifest["created"]),
        audit=audit,
    )
    try:
        files.write(path, page)
    except OSError as error:
        raise WorkError(
            f"{path} could not be written ({error.strerror or error}); give another place with --out"
        ) from None
    return path


def _require_place(path: Path) -> None:
    """A page, and not in a release: nothing else is ever replaced."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"out = {path} must end in .html")
    if (path.resolve().parent / "release.json").is_file():
        raise InputError(
            f"out = {path} lies in a release, whose digest covers its files: choose another folder"
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

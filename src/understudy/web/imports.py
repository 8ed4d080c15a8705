"""A release from elsewhere: unpacked and checked in a process of its own, because a stranger packed it.

A zip is a list of names and sizes that its maker chose. So the list is looked at before anything is
unpacked, what is written is counted, and only the parts of a release are written, each under its own
name: no path in a zip is ever used as one.
"""

from __future__ import annotations

import errno
import stat
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

from understudy.errors import BundleError, UnderstudyError, WorkError, cut
from understudy.releases.bundle import FILES, MANIFEST, MEASURED, SIGNATURE
from understudy.releases.form import FAMILY_FILES
from understudy.releases.verify import Verification, verify
from understudy.report import NAME as REPORT
from understudy.web.errors import TooLarge
from understudy.wording import byte_size

PARTS = (MANIFEST, *FILES)
"""What a release of one table is made of; one of two has `FAMILY_FILES` for the last."""
EVERY = (*PARTS, *FAMILY_FILES, MEASURED, SIGNATURE, REPORT)
"""What it may hold."""
TARGET = "bundle"
"""The folder beside the zip that it is unpacked into."""
_MOST_MEMBERS = 20
_LONGEST_DETAIL = 500
_DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_file(path: str, most: int, shown: str) -> Verification:
    """Unpack a zip beside itself, to at most `most` bytes, and check all that the release states.

    Raises:
        BundleError: Not the zip of a release, or one that cannot be read.
        TooLarge: It unpacks to more.
    """
    target = Path(path).with_name(TARGET)
    try:
        _unpack(Path(path), target, most, shown)
        verdict = verify(target)
    except UnderstudyError as error:
        raise type(error)(str(error).replace(str(target), shown)) from None
    except MemoryError:
        raise BundleError(
            f"{shown} is refused: it needs more memory than checking a release may take"
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever it does to its reader, it is refused
        raise BundleError(
            f"{shown} is refused: it cannot be read ({type(error).__name__}); get the release anew "
            "from whoever made it"
        ) from None
    checks = (
        replace(each, detail=cut(each.detail.replace(str(target), shown), _LONGEST_DETAIL))
        for each in verdict.checks
    )
    return replace(verdict, checks=tuple(checks))


def _unpack(path: Path, target: Path, most: int, shown: str) -> None:
    target.mkdir()
    try:
        with zipfile.ZipFile(path) as archive:
            for name, item in _members(archive, most, shown).items():
                with archive.open(item) as source, (target / name).open("xb") as into:
                    while chunk := source.read(1 << 20):
                        into.write(chunk)
                        most -= len(chunk)
                        if most < 0:
                            raise TooLarge(f"{shown} unpacks to more than it says")
    except UnderstudyError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise WorkError(
                f"{shown} cannot be unpacked ({error.strerror}); free some space on the disk of the "
                "page and send it again"
            ) from None
        raise BundleError(f"{shown} is not a whole zip file; download or zip it again") from None
    except _DAMAGED:
        raise BundleError(f"{shown} is not a whole zip file; download or zip it again") from None


def _members(archive: zipfile.ZipFile, most: int, shown: str) -> dict[str, zipfile.ZipInfo]:
    """The parts of a release in a zip, by name; looks at the list alone."""
    items = archive.infolist()
    if len(items) > _MOST_MEMBERS:
        raise BundleError(f"{shown} holds {len(items):,} files; a release has {len(PARTS)}")
    if sum(item.file_size for item in items) > most:
        raise TooLarge(
            f"{shown} unpacks to more than {byte_size(most)}, which is what is taken here; the "
            "limit is set with --max-upload"
        )
    members: dict[str, zipfile.ZipInfo] = {}
    for item in items:
        place = PurePosixPath(item.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or stat.S_ISLNK(item.external_attr >> 16):
            raise BundleError(
                f"{shown} holds {cut(item.filename, 80)!r}, which is no part of a release: it leaves "
                "the folder; zip the folder of one release"
            )
        if item.is_dir():
            continue
        if place.name not in EVERY or place.name in members:
            raise BundleError(
                f"{shown} holds {cut(item.filename, 80)!r}, which is no part of a release; zip the "
                f"folder of one release, with {', '.join(PARTS)} in it"
            )
        members[place.name] = item
    return members

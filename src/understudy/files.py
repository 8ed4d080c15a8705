"""Files that appear whole or not at all, and stay once they are there.

What is written goes to a hidden place beside its own first. It is made durable (fsync), takes its name
in one step of the file system, and the folder is made durable too: whoever opens the name finds the old
file or the new one, also after a crash. Errors of the system (OSError) are the caller's to word.

The ledger does not come this way: SQLite and PostgreSQL have transactions of their own, and a
checkpoint appends lines, each durable before the next is drawn.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# A folder on a file system that cannot make one durable is as durable as it gets.
_CANNOT = (errno.EINVAL, errno.ENOTSUP)


@contextmanager
def staged(path: Path, *, new: bool = False, beside: Path | None = None) -> Iterator[Path]:
    """A place for the block to write a file to, which takes the name `path` when the block ends well.

    A file that was there is replaced and its mode kept; with `new`, it is left alone instead and
    FileExistsError raised. `beside` is the folder of the hidden place, on the same file system.
    """
    part = (path.parent if beside is None else beside) / f".{path.name}.{secrets.token_hex(8)}"
    try:
        yield part
        sync(part)
        if new:
            _place(part, path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(part, stat.S_IMODE(path.stat().st_mode))
            os.replace(part, path)
        sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def write(path: Path, data: str | bytes, *, new: bool = False, mode: int = 0o666) -> None:
    """Write a file whole or not at all, as `staged` does; `mode` is for one that was not there."""
    with staged(path, new=new) as part:
        _fill(part, data, mode)


@contextmanager
def filled(path: Path, contents: Mapping[str, str | bytes]) -> Iterator[None]:
    """A folder of files, durable before the block begins, that takes its name when it ends well."""
    folder = path.parent / f".{path.name}.partial-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
        for name, data in contents.items():
            _fill(folder / name, data, 0o666)
            sync(folder / name)
        sync(folder)
        yield
        os.rename(folder, path)
        sync(path.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def _fill(path: Path, data: str | bytes, mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


def _place(part: Path, path: Path) -> None:
    """Rename without ever overwriting, where the file system can."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(part, path)

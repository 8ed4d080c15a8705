"""Files that stream to disk as they arrive, and stop at a limit.

Nothing is kept in memory or in a system's folder for temporary files: private rows go to the workspace
alone. A form's fields come before its file, the token first, so that a foreign form is refused before
a byte of its file is read; a declared length beyond the limit is refused before anything is.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request

from understudy.errors import InputError, WorkError
from understudy.web.errors import Refused, TooLarge
from understudy.web.guard import FOREIGN, form_is_ours
from understudy.web.site import site_of
from understudy.wording import byte_size

_MOST_FIELD = 10_000
_MOST_FIELDS = 50
_DAMAGED = "the form arrived damaged; send it again"


@dataclass(frozen=True, slots=True)
class Sent:
    """A file, which lies in a folder under a name of ours."""

    filename: str
    """The name that it had, without a path."""
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Received:
    """A form with at least one file."""

    fields: dict[str, str]
    files: tuple[Sent, ...]


NameFor = Callable[[str, int], str]
"""Maps the name that a file had, and how many came before it, to the name that it gets."""


@asynccontextmanager
async def received(request: Request, name_for: NameFor, most: int = 1) -> AsyncIterator[Received]:
    """What somebody sends, for as long as this lasts: afterwards its folder is gone.

    At most so many files, which together may be as large as one; `name_for` refuses by raising.

    Raises:
        TooLarge: More than the page takes.
        Refused: The form is not one of ours.
        InputError: Not such a form, or no file in it.
        WorkError: The disk is full, now or while the file is used.
    """
    try:
        with site_of(request).workspace.incoming() as folder:
            yield await _read(request, _Parts(request, folder, name_for, most))
    except OSError as error:
        raise WorkError(
            f"the file could not be kept ({error.strerror}), and nothing of it was; free some space "
            f"on the disk of the web app and send it again"
        ) from None


async def _read(request: Request, parts: _Parts) -> Received:
    """Read a form with a file, part by part."""
    from python_multipart.exceptions import MultipartParseError
    from python_multipart.multipart import MultipartParser, parse_options_header

    length = request.headers.get("content-length", "")
    parts.require_room(int(length) if length.isdigit() else 0)
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise InputError("this is not a form with a file; use the form of the page")
    parser = MultipartParser(options[b"boundary"], parts.callbacks())
    try:
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
        if parts.in_file:
            raise InputError(_DAMAGED)
    except MultipartParseError:
        raise InputError(_DAMAGED) from None
    except ClientDisconnect:
        raise InputError("the upload was broken off; nothing was kept") from None
    finally:
        with contextlib.suppress(OSError):  # of a file that is not kept
            parts.close()
    if not parts.token_seen:
        raise Refused(FOREIGN)
    if not parts.files:
        raise InputError("no file was chosen; choose one and send it again")
    return Received(parts.fields, tuple(parts.files))


class _Parts:
    """The parser's events, turned into fields and files."""

    def __init__(self, request: Request, folder: Path, name_for: NameFor, files: int) -> None:
        self.fields: dict[str, str] = {}
        self.files: list[Sent] = []
        self._size, self._most_files = 0, files
        self.token_seen = form_is_ours(request, request.headers.get("x-csrf-token", ""))
        self._request, self._folder, self._name_for = request, folder, name_for
        self._most = site_of(request).settings.max_upload
        limit = f"files are taken up to {byte_size(self._most)}"
        self._limit = f"{limit}; the limit is set with --max-upload"
        self._header, self._value = b"", b""
        self._headers: dict[str, bytes] = {}
        self._field: str | None = None
        self._text = b""
        self._file: Any = None

    def require_room(self, length: int) -> None:
        """Refuse a request that says it is longer than is taken, or than the disk has room for."""
        about = f"the file has about {byte_size(length)}"
        if length > self._most + _MOST_FIELD * _MOST_FIELDS:
            raise TooLarge(f"{about}; {self._limit}")
        free = shutil.disk_usage(self._folder).free
        if length > free:
            raise TooLarge(
                f"{about}, but only {byte_size(free)} are free on the disk of the web app; free some "
                "space and send it again"
            )

    def callbacks(self) -> Any:
        """What the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._on_header,
            "on_header_value": self._on_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._opened,
            "on_part_data": self._data,
            "on_part_end": self._end,
        }

    def close(self) -> None:
        """Close the file; OSError where the last of it does not fit the disk."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    @property
    def in_file(self) -> bool:
        """Whether more of a file should come."""
        return self._file is not None

    def _begin(self) -> None:
        self._headers, self._field, self._text = {}, None, b""

    def _on_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        if len(self._value) > _MOST_FIELD:
            raise InputError(_DAMAGED)

    def _on_header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._value
        self._header, self._value = b"", b""

    def _opened(self) -> None:
        from python_multipart.multipart import parse_options_header

        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            if len(self.fields) >= _MOST_FIELDS:
                raise InputError("the form has too many fields")
            self._field = name
            return
        if not self.token_seen:
            raise Refused(FOREIGN)
        filename = options[b"filename"].decode("utf-8", "replace")
        filename = filename.replace("\\", "/").rpartition("/")[2][:200]
        if not filename:
            return  # a form sent without choosing a file
        if len(self.files) == self._most_files:
            most = "one file" if self._most_files == 1 else f"at most {self._most_files} files"
            raise InputError(f"{most} at a time; choose fewer")
        target = self._folder / self._name_for(filename, len(self.files))
        self.files.append(Sent(filename, target, 0))
        target.touch(0o600, exist_ok=False)
        self._file = target.open("wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._size += end - start
            if self._size > self._most:
                raise TooLarge(f"the file is larger than {byte_size(self._most)}; {self._limit}")
            self._file.write(data[start:end])
        elif self._field is not None:
            self._text += data[start:end]
            if len(self._text) > _MOST_FIELD:
                raise InputError(f"the field {self._field[:40]!r} of the form is too long")

    def _end(self) -> None:
        if self._file is not None:
            self.close()
            last = self.files[-1]
            self.files[-1] = Sent(last.filename, last.path, last.path.stat().st_size)
        elif self._field is not None:
            text = self._text.decode("utf-8", "replace")
            self.fields[self._field] = text
            if self._field == "csrf":
                self.token_seen = form_is_ours(self._request, text)

"""What of a private table may stand in a message: library, command line and page ask here.

**Rule.** A message says which file, which column and which kind of problem, and never a cell. So the
words of a reader or an engine are never passed on, because they quote rows; and a name is quoted only
if it can be one, because an open quote in the first line of a text file makes rows part of a "name".
The place of a column or a row tells no value and may be said.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from understudy.errors import SourceError, UnderstudyError

_LONGEST_NAME = 200
_BREAKS = {"Cc", "Cs", "Zl", "Zp"}
_UNEVEN = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


def is_name(text: str) -> bool:
    """Whether a text can be a name: at most 200 characters, on one line."""
    return len(text) <= _LONGEST_NAME and not any(unicodedata.category(c) in _BREAKS for c in text)


def named(text: str) -> str:
    """A name in quotes; where it cannot be one, how long it is."""
    return repr(text) if is_name(text) else f"(a name of {len(text):,} characters)"


def require_names(columns: Sequence[str], where: str) -> None:
    """Refuse a header with a cell that cannot be a name, by its place and its length alone."""
    for at, name in enumerate(columns, 1):
        if not is_name(name):
            raise SourceError(
                f"{where}: column {at} of the header is not a name ({len(name):,} characters, "
                f"{len(name.splitlines()):,} lines): a name has at most {_LONGEST_NAME} characters "
                "on one line. Is a quote in the first line not closed? Otherwise rename the column"
            )


def in_our_words(error: Exception) -> str:
    """Why a file cannot be read: the numbers of a reader's message, and nothing that it quotes."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    uneven = _UNEVEN.search(str(error))
    if uneven is None:
        return "it is damaged, or of another format than its name says"
    row, header, found = uneven.groups()
    return (
        f"{'a row' if row is None else f'row {row}'} has {found} cells, the header has {header}; "
        "is a cell with a comma without its quotes?"
    )


def debugging() -> bool:
    """Whether UNDERSTUDY_DEBUG asks for tracebacks, with whatever they quote."""
    return os.environ.get("UNDERSTUDY_DEBUG", "") not in ("", "0")


def unforeseen(error: BaseException) -> str:
    """What may be said of an exception that understudy did not raise on purpose."""
    return (
        f"something went wrong that understudy did not foresee ({type(error).__name__}). Its "
        "message may hold private values, so it is not shown; set UNDERSTUDY_DEBUG=1 to see it"
    )


@contextmanager
def unquoted(what: str) -> Iterator[None]:
    """Work on private rows whose unforeseen errors become a SourceError that quotes none of them."""
    try:
        yield
    except (UnderstudyError, MemoryError):
        raise
    except Exception as error:
        if debugging():
            raise
        raise SourceError(f"{what}: {unforeseen(error)}") from None

"""The words, values and signs of conditions and rules, and errors that point at one of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from understudy.errors import WorkloadError, cut

NAMES = ("word", "quoted")
"""The kinds of tokens that can name a column."""
_SHOWN = 60

_WORD = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
  | (?P<word>{_WORD})
  | (?P<op><=|>=|<>|!=|==|=|<|>)
  | (?P<mark>[(),+-])
    """,
    re.VERBOSE,
)
KEYWORDS = {"and", "or", "not", "in", "between", "is", "null", "true", "false"}
JOINTS = ("implies", "determines")
"""Between the two sides of a rule."""


@dataclass(frozen=True)
class Token:
    """A word, value or sign, where it starts, and where it ends."""

    kind: str  # number, string, quoted, word, keyword, op, mark, end
    text: str  # keywords in lower case, quotes taken off
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """The words, values and signs of a predicate; WorkloadError at what is none."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if text[at] in "'\"`":
                fail(text, at, f"the quote {text[at]} is never closed")
            fail(text, at, f"the character {text[at]!r} is not expected")
        kind, found = str(match.lastgroup), match.group()
        if kind == "word" and found.lower() in KEYWORDS:
            kind, found = "keyword", found.lower()
        elif kind in ("string", "quoted"):
            found = found[1:-1].replace(found[0] * 2, found[0])
        elif kind == "op":
            found = {"==": "=", "<>": "!="}.get(found, found)
        if kind != "space":
            yield Token(kind, found, at, match.end())
        at = match.end()
    yield Token("end", "", len(text), len(text))


def named(column: str) -> str:
    """A column as conditions and rules name it: as it is where that is a plain word, or in quotes."""
    plain = re.fullmatch(_WORD, column) and column.lower() not in {*KEYWORDS, *JOINTS}
    return column if plain else '"' + column.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A value as they write it."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def fail(text: str, at: int, problem: str) -> NoReturn:
    """Point at the place with a caret."""
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    first, last = max(begin, at - _SHOWN), min(end, at + _SHOWN)  # of a long line, what is near
    left, right = "… " if first > begin else "", " …" if last < end else ""
    shown = text[first:last].replace("\t", " ")
    problem = cut(problem, 5 * _SHOWN)
    raise WorkloadError(f"{problem}\n  {left}{shown}{right}\n  {' ' * (len(left) + at - first)}^")

"""The public values that rules compare a column with: where its cells have to end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from understudy.constraints.tokens import NAMES, tokens

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_VALUES = ("number", "string")


def compared(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Every comparison of the column with a value in a condition: operator and value.

    `in` and `between` are taken apart. Values are numbers or texts; nothing is looked up, so a value
    that the column cannot have is the business of whoever reads the condition.
    """
    words = [(token.kind, token.text) for token in tokens(text)]
    for at, (kind, word) in enumerate(words):
        if kind not in NAMES or word != name:
            continue
        rest = words[at + 1 :]
        if rest[:1] == [("keyword", "not")]:
            rest = rest[1:]
        if rest and rest[0][0] == "op":
            yield from ((rest[0][1], value) for value in _values(rest[1:], 1))
        elif rest[:1] == [("keyword", "in")]:
            yield from (("=", value) for value in _values(rest[2:], len(rest)))
        elif rest[:1] == [("keyword", "between")]:
            yield from zip((">=", "<="), _values(rest[1:], 2), strict=False)
        if at > 1 and words[at - 1][0] == "op" and words[at - 2][0] in _VALUES:
            minus = words[at - 3 : at - 2] == [("mark", "-")]
            op = words[at - 1][1]
            yield _FLIPPED.get(op, op), _value(*words[at - 2], minus)


def _values(words: list[tuple[str, str]], most: int) -> Iterator[Any]:
    """The values that the words begin with, commas and the `and` of `between` left out."""
    minus = False
    for kind, word in words:
        if kind in _VALUES and most:
            yield _value(kind, word, minus)
            most -= 1
        elif (kind, word) not in (("mark", "-"), ("mark", "+"), ("mark", ","), ("keyword", "and")):
            return
        minus = (kind, word) == ("mark", "-")


def _value(kind: str, word: str, minus: bool) -> Any:
    if kind == "string":
        return word
    number = int(word) if word.isdigit() else float(word)
    return -number if minus else number

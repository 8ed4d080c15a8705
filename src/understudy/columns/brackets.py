"""Numbers against texts that are brackets in an order, such as [60-70), 18-24, <25 or 85+.

`at_edge` turns a comparison with a number into one with a bracket. It is exact: a number inside a
bracket, on both sides of which the bracket holds values, is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RANGE = re.compile(rf"([\[(]?)\s*{_NUMBER}\s*(?:-|–|,|;|to|\.\.)\s*{_NUMBER}\s*([\])]?)")
_BELOW = re.compile(rf"(<=?|≤|under|below|up to)\s*{_NUMBER}", re.IGNORECASE)
_ABOVE = re.compile(rf"(>=?|≥|over|above)\s*{_NUMBER}", re.IGNORECASE)
_OPEN_END = re.compile(rf"{_NUMBER}\s*(?:\+|(?:and|or) (?:over|older|more|above))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bracket:
    """The numbers from `low` to `high`; an end that is open does not belong to it."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def within(self, op: str, number: float) -> bool | None:
        """Whether all of its numbers fulfil the comparison; None where some do and some do not."""
        if op in ("<", "<="):
            beyond = self.within(">=" if op == "<" else ">", number)
            return None if beyond is None else not beyond
        strict = op == ">"
        if self.low > number or (self.low == number and (self.low_open or not strict)):
            return True
        if self.high < number or (self.high == number and (self.high_open or strict)):
            return False
        return None


def bracket(text: str) -> Bracket | None:
    """The numbers that a text names; None where it names none."""
    text = text.strip()
    if found := _RANGE.fullmatch(text):
        left, low, high, right = found.groups()
        made = Bracket(float(low), float(high), left == "(", right == ")")
        return made if made.low < made.high else None
    if found := _BELOW.fullmatch(text):
        sign, high = found.groups()
        return Bracket(-math.inf, float(high), high_open=sign.lower() in ("<", "under", "below"))
    if found := _ABOVE.fullmatch(text):
        sign, low = found.groups()
        return Bracket(float(low), math.inf, low_open=sign.lower() in (">", "over", "above"))
    if found := _OPEN_END.fullmatch(text):
        return Bracket(float(found.group(1)), math.inf)
    return None


def at_edge(values: Sequence[str], op: str, number: float) -> tuple[str, str] | None:
    """The same comparison with one of the values, which are in an order; None if they are no brackets.

    Raises:
        ValueError: It holds for a part of a bracket alone, or for none; the message names the bracket
            and numbers that would do.
    """
    brackets = [bracket(value) for value in values]
    known = [each for each in brackets if each is not None]
    if len(known) < len(values) or any(a.high > b.low for a, b in pairwise(known)):
        return None
    within = [each.within(op, number) for each in known]
    if None in within:
        at = within.index(None)
        signs = (">=", ">") if op in (">", ">=") else ("<", "<=")
        edges = (known[at].low, known[at].high)
        clean = [
            (sign, edge) for edge in edges for sign in signs if _splits_none(known, sign, edge)
        ]
        told = " or ".join(f"{sign} {edge:g}" for sign, edge in clean)
        raise ValueError(
            f"its values are brackets, and {number:g} lies inside {values[at]!r}, whose rows cannot be "
            f"told apart; ask at an edge{': ' + told if told else ''}"
        )
    if True not in within:
        raise ValueError(
            f"no value is {op} {number:g}: its brackets go from {values[0]!r} to {values[-1]!r}"
        )
    if op in (">", ">="):
        return ">=", values[within.index(True)]
    return "<=", values[len(within) - 1 - within[::-1].index(True)]


def _splits_none(brackets: Sequence[Bracket], op: str, number: float) -> bool:
    """Whether a comparison holds for all or nothing of each bracket."""
    return math.isfinite(number) and None not in [each.within(op, number) for each in brackets]

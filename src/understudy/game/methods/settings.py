"""Settings of a method: their types, and the limits that their annotations have.

    rounds: Annotated[int | None, least(1)] = None

`Method.check` holds every setting to its annotation; None is left to the public rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from understudy.errors import InputError


@dataclass(frozen=True, slots=True)
class Limit:
    """Which values a setting may have, and what is said of others."""

    allows: Callable[[Any], bool]
    words: str


def least(low: float, remedy: str = "") -> Limit:
    """At least so much, and finite."""
    return Limit(lambda value: low <= value < math.inf, f"must be at least {low}{remedy}")


def whole(low: int, high: int, remedy: str = "") -> Limit:
    """A whole number within bounds."""
    return Limit(
        lambda value: isinstance(value, int) and low <= value <= high,
        f"must be a whole number from {low:,} to {high:,}{remedy}",
    )


def between(low: float, high: float, remedy: str = "") -> Limit:
    """Above `low` and below `high`."""
    return Limit(lambda value: low < value < high, f"must lie between {low} and {high}{remedy}")


def one_of(*known: str) -> Limit:
    """A choice."""
    return Limit(lambda value: value in known, f"is not one of {', '.join(known)}")


POSITIVE = Limit(lambda value: 0 < value < math.inf, "must be above 0")
SHARE = Limit(lambda value: 0 < value <= 1, "must be in (0, 1]")

_NO_SETTINGS = ("name", "public")
_KINDS: dict[Any, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def settings(maker: Any) -> dict[str, tuple[Any, ...]]:
    """The settings of a method and the types that each may have. Public rows are none."""
    hints = get_type_hints(maker)
    return {f.name: _members(hints[f.name]) for f in fields(maker) if f.name not in _NO_SETTINGS}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def typed(what: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """The value as one of the types; NumPy's numbers become Python's, and whole ones may be floats."""
    if Any in allowed or type(value) in allowed:
        return value
    if isinstance(value, Integral) and not isinstance(value, bool) and int in allowed:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool) and float in allowed:
        return float(value)
    kinds = " or ".join(_KINDS.get(kind, str(kind)) for kind in allowed)
    raise InputError(f"{what} must be {kinds}")

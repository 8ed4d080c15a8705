"""Numbers and domains as people read them, wherever they are shown."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.schema import Column

NOTHING = "says nothing here"
"""Of a bound that holds whatever happens."""
ADDS_UP = {
    "basic": "releases add up by ε and δ",
    "zcdp": "releases add up by ρ, so four equal ones cost about as much as one of twice their ε",
}
"""How releases use up a budget, by its composition."""
COUNTED = {"basic": "", "zcdp": ", counted in ρ, which grows about as ε²"}
"""What a share of a budget is of, by its composition; after the share."""
_VACUOUS = 0.99995  # What four digits show as 1
_SPECIAL_IN_DOUBLE_QUOTES = frozenset('"$`\\!')
_SHOWN = 6
_WIDEST = 24


def number(value: float | Fraction) -> str:
    """A number with three digits that mean something."""
    value = float(value)
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.3g}"
    return f"{value:,.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def up(value: float) -> str:
    """A number of things, with three digits and rounded up: what is promised of so many holds."""
    unit = 10.0 ** max(0, math.floor(math.log10(max(value, 1.0))) - 2)
    return f"{math.ceil(value / unit - 1e-9) * unit:,.0f}"


def small(value: float | Fraction) -> str:
    """A small number as people write it: 1e-9."""
    return f"{float(value):g}".replace("e-0", "e-")


def percent(share: float) -> str:
    """A share, with two digits that mean something."""
    if share < 0.0001:
        return f"{100 * share:.1g} %" if share else "0 %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def left(share: float) -> str:
    """What is left of a budget: all of it only where nothing is spent."""
    return "more than 99 %" if 0.995 <= share < 1 else percent(share)


def unbroken(text: object) -> str:
    """A text in which numbers keep their %, and ε its value, at the end of a line."""
    return str(text).replace(" %", "\u00a0%").replace("ε = ", "ε\u00a0=\u00a0")


def points(error: float) -> str:
    """An error of a share, which is in percentage points everywhere: two digits that mean something."""
    number = percent(error).removesuffix(" %")
    return f"{number} percentage point{'' if number == '1' else 's'}"


def bound(error: float, sign: str = "≤") -> str:
    """An upper bound on an error of shares (a theorem's, a certificate's, a regret's), rounded up."""
    return f"{sign} {at_most(min(error, 1.0))} percentage points{nothing(error)}"


def at_most(share: float) -> str:
    """A share in percent, to two decimals and rounded up: what is below it stays below it."""
    return f"{math.ceil(1e4 * share - 1e-9) / 100:.2f}"


def between(low: float, high: float) -> str:
    """An interval of shares, to two decimals and rounded outwards."""
    return f"between {math.floor(1e4 * low + 1e-9) / 100:.2f} % and {at_most(high)} %"


def estimated(error: float, ends: tuple[float, float] | None = None, of: str | None = None) -> str:
    """An estimate of an error of shares, and its interval; `of` is what it is an error of."""
    text = f"about {points(error)}{nothing(error) if of is None else of}"
    if ends is None:
        return text
    return (
        f"{text} (between {percent(ends[0]).removesuffix(' %')} and {points(ends[1])}; an estimate)"
    )


def nothing(share: float) -> str:
    """What follows a bound on an error of shares: no share is off by more than 1, so 1 is no bound."""
    return f", which {NOTHING}" if share >= _VACUOUS else ""


def byte_size(size: float) -> str:
    """Bytes, in decimal units."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def duration(seconds: float) -> str:
    """Seconds, or minutes, or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def quoted(text: str) -> str:
    """As a shell reads it; in double quotes, which leave an apostrophe alone, where that is safe."""
    plain = shlex.quote(text)
    safe = plain == text or _SPECIAL_IN_DOUBLE_QUOTES & set(text)
    return plain if safe else f'"{text}"'


def domain(column: Column) -> str:
    """What a column may hold, in a few words."""
    from understudy.schema import Modelled

    nullable = isinstance(column, Modelled) and column.nullable
    return _values(column) + (" or null" if nullable else "")


def _values(column: Column) -> str:
    from understudy.columns.binned import Binned
    from understudy.schema import (
        Boolean,
        Category,
        Identifier,
        Incomplete,
        Text,
        UndeclaredBins,
        UndeclaredCategory,
        UndeclaredShape,
    )

    if isinstance(column, Category):
        count = len(column.values)
        words = _listed([str(value) for value in column.values])
        other = "" if column.other is None else " + OTHER"
        if column.prefixes:
            other += f", unlisted ones by {_lengths(column.prefixes)}"
        return f"{count} {'value' if count == 1 else 'values'}{other}: {words}"
    if isinstance(column, Boolean):
        return "true, false"
    if isinstance(column, Binned):
        bins = column.cells - len(column.special)
        cells = "" if column.edges is None and column.bins is None else f" in {bins} bins"
        cells += "" if column.shape is None else ", with their shape"
        special = f", special: {_listed(list(map(str, column.special)))}" if column.special else ""
        return f"{point(column.lower)} to {point(column.upper)}{cells}{special}"
    if isinstance(column, UndeclaredCategory):
        parents = f", rare ones by {_lengths(column.prefixes)}" if column.prefixes else ""
        return f"found privately: at most {column.max_values} values that many hold{parents}"
    if isinstance(column, UndeclaredBins):
        lower, upper = column.facts["lower"], column.facts["upper"]
        return f"{lower}..{upper}, cut privately at {column.quantiles} quantiles"
    if isinstance(column, UndeclaredShape):
        ends = (column.facts.get("lower"), column.facts.get("upper"))
        named = zip(("from", "to"), ends, strict=True)
        bounds = " ".join(f"{word} {point(end)}" for word, end in named if end is not None)
        return f"{bounds or _one(column.wanted)}, its shape found privately"
    if isinstance(column, Identifier):
        return "left out" if column.dropped else f"written anew as {column.action}"
    if isinstance(column, Incomplete):
        return f"{_one(column.wanted)}; to fill in: {', '.join(column.missing)}"
    if isinstance(column, Text):
        return "not modelled, left out"
    return ""


def _one(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"


def _lengths(prefixes: Sequence[int]) -> str:
    return f"their first {', then '.join(map(str, prefixes))} characters"


def comma(*values: float) -> str:
    """How a format parts the thousands of values: not at all below 10,000, where years are."""
    return "," if max(map(abs, values)) >= 10_000 else ""


def point(value: object) -> str:
    """A bound of a column; a large one with commas."""
    if isinstance(value, (int, float)) and comma(value):
        return f"{value:,.12g}"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _listed(values: Sequence[str]) -> str:
    shown: list[str] = []
    for value in values[:_SHOWN]:
        if shown and sum(map(len, shown)) + len(value) > _WIDEST:
            break
        shown.append(value if len(value) <= _WIDEST else value[: _WIDEST - 1] + "…")
    return ", ".join(shown) + (", …" if len(shown) < len(values) else "")

"""Columns that follow from others: never modelled or paid for, computed once rows have been decoded.

`Mapped` is a function of one column, by a public list of values (`zip determines city`) or by public
thresholds (`income determines decile`). `Total` adds and subtracts columns (`total = a + b`). A
`Domain` knows them by name, beside the columns that are modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Whole
from understudy.columns import (
    Boolean,
    Category,
    Column,
    Date,
    Integer,
    Modelled,
    Number,
    Undeclared,
)
from understudy.columns.amounts import DAY, NUMBER, Amounts, Linear, amounts, points_of
from understudy.columns.base import Masks, near, some
from understudy.columns.binned import Binned
from understudy.columns.unmodelled import UndeclaredOrdered
from understudy.constraints.rule import Dependency, Formula, Rule
from understudy.errors import SchemaError, WorkloadError

Codes = NDArray[np.integer[Any]]
Arrays: TypeAlias = Mapping[str, Any] | pa.Table
"""Decoded columns by name."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """A column whose value follows from that of `source`.

    `steps` are codes of `column`. A value of `source` whose code is c lies on one of the steps
    `first[c]` to `last[c]`; which of them, where they are several, the points `cuts` tell.
    """

    column: Modelled
    source: Modelled
    steps: Codes
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    cuts: NDArray[Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column that it follows from."""
        return (self.source.name,)

    def lifted(self, masks: Masks) -> Masks:
        """Masks over its codes as masks over those of its source."""
        return self._between(masks, self.first, self.last)

    def over(self, masks: Masks, low: NDArray, high: NDArray, there: Bools) -> Masks:
        """The same for intervals of the source's points, `low` to `high`, where `there` are some."""
        assert self.cuts is not None
        first, last = (np.searchsorted(self.cuts, end, side="right") for end in (low, high))
        null = self.first[-1]
        return self._between(masks, np.where(there, first, null), np.where(there, last, null))

    def _between(self, masks: Masks, first: NDArray, last: NDArray) -> Masks:
        """Whether all, or some, of the steps from one to another are inside."""
        inner, outer = (np.append(0, np.cumsum(mask[self.steps])) for mask in masks)
        return inner[last + 1] - inner[first] == last + 1 - first, outer[last + 1] > outer[first]

    def computed(self, arrays: Arrays) -> pa.Array:
        """Its values for those of its source."""
        array = arrays[self.source.name]
        at = self.first[self.source.encode(array)]
        if self.cuts is not None:
            points, there = points_of(self.source, array)
            at = np.where(there, np.searchsorted(self.cuts, points, side="right"), at)
        codes = self.steps[at]
        null = codes == self.column.cells
        return self.column._emit(np.where(null, 0, codes), null)


@dataclass(frozen=True, eq=False)
class Total:
    """A column that is the sum of others, exactly; null where one of them is no number."""

    column: Binned
    linear: Linear
    parts: tuple[Modelled, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is computed from."""
        return self.linear.names

    def computed(self, arrays: Arrays) -> pa.Array:
        """The sum for every row."""
        points, there = self.linear.read(self.parts, arrays)
        return self.column._emit(np.where(there, points, self.column.grid.lows[0]), ~there)


Derived: TypeAlias = Mapped | Total


@dataclass(frozen=True)
class Domain:
    """The columns of a table, in its order: all that a predicate knows of a schema."""

    columns: tuple[Column, ...]

    @cached_property
    def derived(self) -> Mapping[str, Derived]:
        """The columns that follow from others, by name."""
        return {}

    @cached_property
    def modelled(self) -> tuple[Modelled, ...]:
        """The columns with codes, in order."""
        return tuple(column for column in self.columns if isinstance(column, Modelled))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of each modelled column."""
        return tuple(column.size for column in self.modelled)

    @cached_property
    def apart(self) -> tuple[int, ...]:
        """How many codes of each, the last ones, have no place in its order."""
        return tuple(column.apart for column in self.modelled)

    @cached_property
    def ordered(self) -> tuple[bool, ...]:
        """Whether neighbouring codes of each are neighbouring values."""
        return tuple(column.ordered for column in self.modelled)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: at for at, column in enumerate(self.modelled)}

    def position(self, name: str) -> int:
        """The place of a column among the modelled ones; WorkloadError if it is none of them."""
        if name in self._positions:
            return self._positions[name]
        if name in self.derived:
            sources = " and ".join(map(repr, self.derived[name].names))
            raise WorkloadError(f"column {name!r} is computed from {sources} and not modelled")
        for column in self.columns:
            if column.name == name:
                raise WorkloadError(
                    f"column {name!r} is of type {column.kind!r} and not modelled; "
                    "leave it out, or declare its domain in the schema"
                )
        hint = near(name, [*self._positions, *self.derived])
        known = some([*self._positions])
        raise WorkloadError(f"unknown column {name!r}{hint or '; known are ' + known}")

    def positions(self, name: str) -> tuple[int, ...]:
        """The places of the modelled columns that a column is, or is computed from."""
        if name not in self.derived:
            return (self.position(name),)
        found = {i for source in self.derived[name].names for i in self.positions(source)}
        return tuple(sorted(found))

    def column(self, name: str) -> Modelled:
        """The modelled or derived column of that name; WorkloadError as `position`."""
        if name in self.derived:
            return self.derived[name].column
        return self.modelled[self.position(name)]


# Rules that compute columns


def listed(column: Column, texts: list[str]) -> Modelled:
    """A column for a list of its values that a mapping names; SchemaError where it cannot hold one."""
    if isinstance(column, Category | Boolean):
        return column
    common = {"dtype": column.dtype, "nullable": column.nullable}
    kind = column.wanted if isinstance(column, UndeclaredOrdered) else column.kind
    if kind == "category":
        return Category(column.name, tuple(dict.fromkeys(texts)), **common)
    try:
        read = {"integer": int, "number": float, "date": date.fromisoformat}[kind]
        return Category(column.name, tuple(sorted({read(text) for text in texts})), **common)
    except (KeyError, ValueError):
        raise SchemaError(
            f"column {column.name!r} of type {kind!r} cannot follow from another; declare it as a "
            "category, a boolean, an integer, a number or a date"
        ) from None


def total(column: Column, linear: Linear, parts: tuple[Modelled, ...]) -> Total:
    """A column that is computed from others; SchemaError where its type cannot hold every sum."""
    known: list[Amounts] = []
    for part in parts:
        amount = amounts(part)
        if amount is None or amount.unit not in (NUMBER, DAY):
            raise SchemaError(f"column {part.name!r} is no number, and nothing can be added to it")
        if part.size > len(amount) and not column.nullable:
            raise SchemaError(
                f"column {column.name!r} must be nullable, because {part.name!r} is no number in "
                "every row, and then there is no sum"
            )
        known.append(amount)
    dated = sum(f for (_, f), a in zip(linear.terms, known, strict=True) if a.unit == DAY)
    if dated not in (0, 1):
        raise SchemaError("dates can only be subtracted from each other, or moved by days")
    places = linear.decimals(known)
    if not linear.fits(known):
        raise SchemaError(
            f"sums of {', '.join(linear.names)} may lie beyond 64 bits; declare narrower bounds"
        )
    low, high = linear.range(known, [(a.lows.min(), a.highs.max()) for a in known])
    common: dict[str, Any] = {"dtype": column.dtype, "nullable": column.nullable}
    if dated:
        if places != 0:
            raise SchemaError("a date can only be moved by whole days")
        try:
            first, last = (date(1970, 1, 1) + timedelta(days=int(end)) for end in (low, high))
        except OverflowError:
            raise SchemaError(
                f"days of {column.name!r} may lie beyond the calendar; declare narrower bounds"
            ) from None
        form = column.format if isinstance(column, Date) else None
        face: Binned = Date(column.name, first, last, 1, format=form, **common)
    elif places == 0:
        face = Integer(column.name, int(low), int(high), 1, format=_notation(column), **common)
    else:
        least, most = (float(end) / 10.0 ** (places or 0) for end in (low, high))
        face = Number(column.name, least, most, 1, None, places, _notation(column), **common)
    return Total(face, linear, parts)


def _notation(column: Column) -> str | None:
    """How numbers of a column are written, if it says so."""
    known = column.facts if isinstance(column, UndeclaredOrdered) else {}
    return column.format if isinstance(column, Integer | Number) else known.get("format")


def targets(rules: Iterable[Rule]) -> dict[str, Rule]:
    """The rule that computes each derived column; SchemaError if two compute one."""
    found: dict[str, Rule] = {}
    for rule in rules:
        if rule.target is None:
            continue
        if rule.target in found:
            raise rule.refuse(
                f"{rule.target} is computed by the rule {found[rule.target].says!r} already; keep "
                "one of them"
            )
        found[rule.target] = rule
    return found


def derived_columns(rules: Iterable[Rule], columns: Iterable[Column]) -> dict[str, Derived]:
    """The derived columns of a schema, each after those that it follows from.

    One that follows from a column whose domain is not known yet is left out.

    Raises:
        SchemaError: Names the rule and what is wrong with it.
    """
    declared = {column.name: column for column in columns}
    waiting = targets(rules)
    found: dict[str, Derived] = {}
    unknown = {name for name, column in declared.items() if isinstance(column, Undeclared)}
    unknown -= set(waiting)
    while waiting:
        ready = [n for n, rule in waiting.items() if not set(_sources(rule)) & set(waiting)]
        if not ready:
            rule = next(iter(waiting.values()))
            raise rule.refuse(f"{rule.target} follows from itself, by way of the other rules")
        for name in ready:
            rule = waiting.pop(name)
            for each in (*_sources(rule), name):
                _require(rule, each, declared)
            if set(_sources(rule)) & unknown:
                unknown.add(name)
                continue
            try:
                found[name] = _bind(rule, declared, found)
            except (SchemaError, WorkloadError) as error:
                said = str(error)
                raise (error if said.startswith("rule ") else rule.refuse(said)) from None
    return found


def _sources(rule: Rule) -> tuple[str, ...]:
    form = rule.form
    if isinstance(form, Formula):
        return form.linear.names
    assert isinstance(form, Dependency)
    return (form.source,)


def _require(rule: Rule, name: str, declared: Mapping[str, Column]) -> None:
    if name not in declared:
        raise rule.refuse(f"unknown column {name!r}{near(name, declared)}")
    if not isinstance(declared[name], Modelled | Undeclared):
        raise rule.refuse(
            f"column {name!r} is of type {declared[name].kind!r}; declare its type and domain"
        )


def _bind(rule: Rule, declared: Mapping[str, Column], found: Mapping[str, Derived]) -> Derived:
    form = rule.form
    if isinstance(form, Formula):
        sums = {name: each.linear for name, each in found.items() if isinstance(each, Total)}
        linear = form.linear.expanded(sums)
        return total(declared[form.target], linear, _parts(rule, linear, declared, found))
    assert isinstance(form, Dependency)
    source = found[form.source].column if form.source in found else declared[form.source]
    assert isinstance(source, Modelled)
    texts = [*rule.values, *(value for _, value in rule.mapping)]
    column = listed(declared[form.target], texts + ([] if rule.default is None else [rule.default]))
    return _mapped(rule, source, column)


def _parts(
    rule: Rule, linear: Linear, declared: Mapping[str, Column], found: Mapping[str, Derived]
) -> tuple[Modelled, ...]:
    for name in linear.names:
        if name in found:
            raise rule.refuse(f"{name} follows from another column; add that one up in its place")
    return tuple(c for n in linear.names if isinstance(c := declared[n], Modelled))


def _mapped(rule: Rule, source: Modelled, column: Modelled) -> Mapped:
    """A column that a mapping or cuts determine."""
    codes = np.full(source.size, -1, np.int64)
    if not rule.cuts:
        _look_up(rule, source, column, codes)
        _fill(rule, source, column, codes)
        each = np.arange(source.size)
        return Mapped(column, source, codes, each, each)
    known, cuts = _cuts(rule, source)
    codes[: len(known)] = 0  # their points tell which step they are on
    _fill(rule, source, column, codes)
    steps = [*(_code(rule, column, value) for value in rule.values), *codes[len(known) :]]
    more = np.arange(len(cuts) + 1, len(steps))
    ends = (np.searchsorted(cuts, end, side="right") for end in (known.lows, known.highs))
    first, last = (np.append(end, more).astype(np.intp) for end in ends)
    return Mapped(column, source, np.array(steps, np.int64), first, last, cuts)


def _look_up(rule: Rule, source: Modelled, column: Modelled, codes: Whole) -> None:
    """Give the codes of the source that the mapping names what they determine."""
    for key, value in rule.mapping:
        try:
            rows = single(rule, source, key)
        except WorkloadError:
            # A public list may name more values than the column lists: those are OTHER, also where
            # a release has found nothing and that is the only value.
            if isinstance(source, Category) and (
                source.other is not None or len(source.values) < 2
            ):
                continue
            raise
        if (codes[rows] >= 0).any():
            raise rule.refuse(f"mapping names {key!r} twice")
        codes[rows] = _code(rule, column, value)


def _cuts(rule: Rule, source: Modelled) -> tuple[Amounts, NDArray[Any]]:
    """The numbers of the source, and the points that cut them."""
    known = amounts(source)
    if not isinstance(source, Binned) or known is None:
        raise rule.refuse(f"cuts are for numbers and dates, and {source.name!r} is none")
    found = [source._literal(cut) for cut in rule.cuts]
    exact = [cut for cut in found if isinstance(cut, Fraction)]
    if len(exact) < len(found):
        raise rule.refuse("cuts must be values of the order, and no special ones")
    if any(left >= right for left, right in pairwise(exact)):
        raise rule.refuse("cuts must increase; sort them and keep each once")
    discrete = known.decimals is not None
    return known, np.array(
        [ceil(cut) if discrete else float(cut) for cut in exact], known.lows.dtype
    )


def _fill(rule: Rule, source: Modelled, column: Modelled, codes: Whole) -> None:
    """Give the codes of the source that the rule does not name, -1, what they determine.

    Null gives null where it can; whatever else is not named gives the default.
    """
    default = None if rule.default is None else _code(rule, column, rule.default)
    null = column.cells if column.nullable else default
    other = column.cells if default is None and column.nullable else default
    missing = np.flatnonzero(codes < 0)
    nulls = missing >= (source.cells if source.nullable else source.size)
    for at, code in ((missing[nulls], null), (missing[~nulls], other)):
        if not at.size:
            continue
        if code is None:
            labels = source.labels()
            raise rule.refuse(
                f"it has nothing for {some([labels[i] for i in at], 5)} of {source.name}; add each, or "
                f"give a default, or declare {column.name!r} nullable"
            )
        codes[at] = code


def _code(rule: Rule, column: Modelled, text: str) -> int:
    found = np.flatnonzero(single(rule, column, text))
    if len(found) != 1:
        raise rule.refuse(f"{text!r} is no value of {column.name!r}")
    return int(found[0])


def single(rule: Rule, column: Any, text: str) -> Bools:
    """The code of a single value; SchemaError where it shares one with others."""
    inner, outer = column.compare("=", text)
    if not np.array_equal(inner, outer):
        raise rule.refuse(f"{text!r} is only a part of a cell of {column.name!r}")
    return inner

"""The columns that rules compute from others, worked out against the columns of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.columns import Category, Column, Modelled, Undeclared
from understudy.columns.amounts import Linear, amounts
from understudy.columns.base import near
from understudy.columns.binned import Binned
from understudy.columns.derived import Derived, Mapped, Total, listed, total
from understudy.constraints.rule import Dependency, Formula, Rule
from understudy.errors import SchemaError, WorkloadError

__all__ = ["derived_columns", "single", "targets"]


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
    default = None if rule.default is None else _code(rule, column, rule.default)
    # Null gives null where it can; whatever else is not named gives the default.
    null = column.cells if column.nullable else default
    other = column.cells if default is None and column.nullable else default
    if rule.cuts:
        return _stepped(rule, source, column, (other, null))
    return _looked_up(rule, source, column, (other, null))


def _parts(
    rule: Rule, linear: Linear, declared: Mapping[str, Column], found: Mapping[str, Derived]
) -> tuple[Modelled, ...]:
    for name in linear.names:
        if name in found:
            raise rule.refuse(f"{name} follows from another column; add that one up in its place")
    return tuple(c for n in linear.names if isinstance(c := declared[n], Modelled))


def _looked_up(
    rule: Rule, source: Modelled, column: Modelled, rest: tuple[int | None, int | None]
) -> Mapped:
    codes = np.full(source.size, -1, np.int64)
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
    _fill(rule, source, column, codes, rest)
    each = np.arange(source.size)
    return Mapped(column, source, codes, each, each)


def _stepped(
    rule: Rule, source: Modelled, column: Modelled, rest: tuple[int | None, int | None]
) -> Mapped:
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
    cuts = np.array([ceil(cut) if discrete else float(cut) for cut in exact], known.lows.dtype)
    steps = np.full(len(cuts) + 1 + source.size - len(known), -1, np.int64)
    steps[: len(cuts) + 1] = [_code(rule, column, value) for value in rule.values]
    more = np.arange(len(cuts) + 1, len(steps))
    ends = (np.searchsorted(cuts, end, side="right") for end in (known.lows, known.highs))
    first, last = (np.append(end, more).astype(np.intp) for end in ends)
    left = np.full(source.size, 0, np.int64)
    left[len(known) :] = -1
    _fill(rule, source, column, left, rest)
    steps[len(cuts) + 1 :] = left[len(known) :]
    return Mapped(column, source, steps, first, last, cuts)


def _fill(
    rule: Rule,
    source: Modelled,
    column: Modelled,
    codes: NDArray[np.int64],
    rest: tuple[int | None, int | None],
) -> None:
    """Give the codes of the source that the rule does not name, -1, what they determine."""
    other, null = rest
    missing = np.flatnonzero(codes < 0)
    nulls = missing >= (source.cells if source.nullable else source.size)
    for at, code in ((missing[nulls], null), (missing[~nulls], other)):
        if not at.size:
            continue
        if code is None:
            labels = source.labels()
            names = ", ".join(labels[i] for i in at[:5])
            more = f" and {at.size - 5} more" if at.size > 5 else ""
            raise rule.refuse(
                f"it has nothing for {names}{more} of {source.name}; add each, or give a default, or "
                f"declare {column.name!r} nullable"
            )
        codes[at] = code


def _code(rule: Rule, column: Modelled, text: str) -> int:
    found = np.flatnonzero(single(rule, column, text))
    if len(found) != 1:
        raise rule.refuse(f"{text!r} is no value of {column.name!r}")
    return int(found[0])


def single(rule: Rule, column: Any, text: str) -> NDArray[np.bool_]:
    """The code of a single value; SchemaError where it shares one with others."""
    inner, outer = column.compare("=", text)
    if not np.array_equal(inner, outer):
        raise rule.refuse(f"{text!r} is only a part of a cell of {column.name!r}")
    return inner

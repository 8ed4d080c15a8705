"""Public rules that every synthetic row keeps: `age < 16 implies marital_status = 'never'`.

A rule says which combinations of codes are impossible (docs/rules.md). Private rows are counted as
they are, whether they keep the rules or not; the default model gives impossible combinations no
weight; and whatever a model draws, rows that break a rule are moved to the nearest combination that
breaks none, before the certificate looks at them. So a rule holds in every row, and the certificate
says what that costs.

A condition holds where it is true; of a null, as in SQL, nothing but `is null` is true. A rule may not
cut a cell of a column: then rows of one code would keep it and others not, and an edge is missing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Clique, Floats, Rng, Whole
from understudy.columns import Category, Modelled
from understudy.columns.amounts import points_of
from understudy.columns.base import identical, some
from understudy.constraints.deriving import Derived, Domain, Total, single
from understudy.constraints.order import Bound, Edge, Order, ordered
from understudy.constraints.order import bound as order_bound
from understudy.constraints.predicate import Predicate
from understudy.constraints.rule import Comparison, Condition, Dependency, Formula, Rule
from understudy.errors import SchemaError, WorkloadError

Codes = NDArray[Any]
Check = Callable[[pa.Table], Bools]
T = TypeVar("T")

_LISTED = 1 << 20
"""Combinations of the columns of entangled rules up to which contradictions are looked for exactly."""
_CELLS = 1 << 22
# Moving a column that a rule says something of is better than moving one that it speaks about.
_CONSEQUENCE, _CONDITION = 1.0, 1.5


@dataclass(frozen=True, eq=False)
class _Bound:
    """A rule in codes: the combinations of its columns that it forbids."""

    rule: Rule
    clique: Clique
    forbidden: Bools
    condition: Bools | None
    consequence: frozenset[int]


def _broken(rules: Iterable[_Bound], codes: Mapping[int, Codes], shape: tuple[int, ...]) -> Bools:
    """Which of the given combinations break a rule; columns of codes spread over the shape."""
    broken = np.zeros(shape, np.bool_)
    for rule in rules:
        broken |= rule.forbidden[tuple(codes[i] for i in rule.clique)]
    return broken


def _condition(rule: Rule, parts: Sequence[Predicate], schema: Domain) -> _Bound:
    clique = tuple(sorted({i for part in parts for i in part.clique}))
    _require_small(rule, clique, schema)
    masks: list[Bools] = []
    for part in parts:
        inner, outer = part.cells(clique)
        if not np.array_equal(inner, outer):
            raise _cuts_cell(rule, part, schema)
        masks.append(inner)
    condition = masks[0] if len(masks) > 1 else None
    forbidden = ~masks[-1] if condition is None else condition & ~masks[-1]
    return _Bound(rule, clique, forbidden, condition, frozenset(parts[-1].clique))


def _ordered(
    rule: Rule, given: Predicate | None, order: Order, each: Edge, schema: Domain
) -> _Bound:
    """The pairs of cells in which no values keep an order, where the condition holds."""
    pair = (schema.position(each.x), schema.position(each.y))
    clique = tuple(sorted({*pair, *(given.clique if given else ())}))
    _require_small(rule, clique, schema)
    impossible = order.impossible(each)
    if pair[0] > pair[1]:
        impossible = impossible.T
    extent = [schema.shape[i] if i in pair else 1 for i in clique]
    forbidden = np.broadcast_to(impossible.reshape(extent), [schema.shape[i] for i in clique])
    condition = None
    if given is not None:
        condition, outer = given.cells(clique)
        if not np.array_equal(condition, outer):
            raise _cuts_cell(rule, given, schema)
        forbidden = forbidden & condition
    return _Bound(rule, clique, forbidden, condition, frozenset(pair))


def _cuts_cell(rule: Rule, part: Predicate, schema: Domain) -> SchemaError:
    inner, outer = part.cells()
    at = np.argwhere(outer & ~inner)[0]
    names = [
        f"{schema.modelled[i].name} = {schema.modelled[i].labels()[code]}"
        for i, code in zip(part.clique, at, strict=True)
    ]
    remedy = "give the column an edge there, so that all rows of a cell keep the rule or none"
    if len(part.clique) > 1:
        remedy += "; columns are compared by a rule of their own, 'a <= b'"
    return rule.refuse(f"{part.text.strip()!r} cuts through {' and '.join(names)}; {remedy}")


def _dependency(rule: Rule, source: str, target: str, schema: Domain) -> _Bound:
    i, j = (schema.position(name) for name in (source, target))
    one, two = schema.modelled[i], schema.modelled[j]
    allowed = np.ones((one.size, two.size), np.bool_)
    seen = np.zeros(one.size, np.bool_)
    for key, value in rule.mapping:
        rows, cells = (single(rule, column, text) for column, text in ((one, key), (two, value)))
        if (seen & rows).any():
            raise rule.refuse(f"mapping names {key!r} twice")
        seen |= rows
        allowed[rows] = cells
    if isinstance(one, Category):
        missing = [str(v) for code, v in enumerate(one.values) if not seen[code]]
        if missing:
            raise rule.refuse(f"mapping has nothing for {some(missing, 5)} of {source}; add each")
    clique = (i, j) if i < j else (j, i)
    forbidden = ~allowed if i < j else ~allowed.T
    return _Bound(rule, clique, forbidden, None, frozenset({j}))


def _codes(columns: Sequence[Modelled], table: pa.Table) -> tuple[Codes, ...]:
    return tuple(column.encode(table.column(column.name)) for column in columns)


def _unmet(parts: Sequence[Predicate], table: pa.Table) -> Bools:
    *given, then = (part.rows(table) for part in parts)
    return given[0] & ~then if given else ~then


def _miscomputed(derived: Derived, table: pa.Table) -> Bools:
    array = table.column(derived.column.name).combine_chunks()
    return ~identical(array, derived.computed(table))


def _misread(derived: Derived, table: pa.Table) -> Bools:
    """Which rows are read as another value than the one that is computed."""
    column, made = derived.column, derived.computed(table)
    array = table.column(column.name)
    if not isinstance(derived, Total):
        return column.encode(array) != column.encode(made)
    (one, there), (two, too) = points_of(column, array), points_of(column, made)
    return (there != too) | (there & too & ~np.isclose(one, two, rtol=1e-12, atol=1e-12))


def _disorder(order: Order, when: Predicate | None) -> Check:
    if when is None:
        return order.broken
    return lambda table: order.broken(table) & when.rows(table)


def _given(rule: Rule) -> str | None:
    return rule.form.given if isinstance(rule.form, Comparison) else None


def _bound_of(rule: Rule, schema: Domain) -> Bound:
    form = rule.form
    assert isinstance(form, Comparison)
    names = {*form.left.names, *form.right.names}
    try:
        for name in names:
            schema.position(name)
        return order_bound(form.left, form.op, form.right, {n: schema.column(n) for n in names})
    except (WorkloadError, SchemaError) as error:
        raise rule.refuse(str(error)) from None


def _tied(items: Iterable[T], names: Callable[[T], Iterable[Any]]) -> list[list[T]]:
    """The items in groups that share no column."""
    groups: list[tuple[set[Any], list[T]]] = []
    for item in items:
        shared = [group for group in groups if not group[0].isdisjoint(names(item))]
        groups = [group for group in groups if group not in shared]
        held = set(names(item)).union(*(own for own, _ in shared))
        groups.append((held, [*(each for _, group in shared for each in group), item]))
    return [group for _, group in groups]


def _require_small(rule: Rule, clique: Clique, schema: Domain) -> None:
    cells = math.prod(schema.shape[i] for i in clique)
    if cells > _CELLS:
        raise rule.refuse(
            f"its {len(clique)} columns have {cells:,} combinations, more than {_CELLS:,}; "
            "write it as several rules of fewer columns"
        )


class Rules:
    """All rules of a schema, in codes. Rules that share columns are kept together.

    `optional` names columns that are null where the one they describe is not there; a rule asks nothing
    of a row in which one that it names is null.
    """

    def __init__(self, rules: Sequence[Rule], schema: Domain, optional: Iterable[str] = ()) -> None:
        self._shape = schema.shape
        names = set(optional)
        self._optional = {
            i for i, c in enumerate(schema.modelled) if c.name in names and c.nullable
        }
        self._names = [column.name for column in schema.modelled]
        # How many codes of a column, the first ones, have an order.
        self._line = [c.size - c.apart if c.ordered else 0 for c in schema.modelled]
        self._bound: list[_Bound] = []
        self._checks: list[tuple[Rule, Check]] = []
        self._derived: dict[str, Derived] = {}
        self._orders: list[tuple[Order, _Bound | None]] = []
        compared: list[Rule] = []
        for rule in rules:
            try:
                self._bind(rule, schema, compared)
            except WorkloadError as error:
                raise rule.refuse(str(error)) from None
        self._compare(compared, schema)
        if self._optional:
            self._bound = [self._freed(bound) for bound in self._bound]
            self._checks = [(rule, self._asked(rule, broken)) for rule, broken in self._checks]
        self._known: list[dict[tuple[int, ...], tuple[int, ...]]] = [{} for _ in self._parts]
        for part in self._parts:
            self._require_possible(part)

    def _bind(self, rule: Rule, schema: Domain, compared: list[Rule]) -> None:
        form = rule.form
        match form:
            case Formula() | Dependency() if rule.target is not None:
                derived = self._derived[rule.says] = schema.derived[rule.target]
                self._checks.append((rule, lambda table: _miscomputed(derived, table)))
            case Dependency():
                bound = _dependency(rule, form.source, form.target, schema)
                columns = [schema.modelled[i] for i in bound.clique]
                self._bound.append(bound)
                self._checks.append((rule, lambda table: bound.forbidden[_codes(columns, table)]))
            case Condition():
                parts = [Predicate.parse(text, schema, brackets=False) for text in form.parts]
                self._bound.append(_condition(rule, parts, schema))
                self._checks.append((rule, lambda table: _unmet(parts, table)))
            case _:
                compared.append(rule)

    def _compare(self, rules: Sequence[Rule], schema: Domain) -> None:
        """Work out the comparisons between columns, those that are tied together at once."""
        found = [(rule, _bound_of(rule, schema)) for rule in rules]
        for part in _tied(found, lambda each: (each[1].x, each[1].y)):
            given = next((r for r, _ in part if _given(r) is not None), None)
            if given is not None and len(part) > 1:
                raise given.refuse(
                    "its columns are in other rules of this kind, too; compare them without a "
                    "condition, or in this rule alone"
                )
            names = dict.fromkeys(n for _, each in part for n in (each.x, each.y))
            columns = {name: schema.column(name) for name in names}
            try:
                order = ordered([each for _, each in part], columns)
            except SchemaError as error:
                said = "; ".join(repr(rule.says) for rule, _ in part)
                raise SchemaError(f"the rules {said} {error}") from None
            text = None if given is None else _given(given)
            when = None if text is None else Predicate.parse(text, schema, brackets=False)
            own = {(each.x, each.y): rule for rule, each in part}
            made = [
                _ordered(own.get((e.x, e.y), part[0][0]), when, order, e, schema)
                for e in order.edges
            ]
            self._bound += made
            self._orders.append((order, made[0] if when is not None else None))
            for rule, each in part:
                self._checks.append((rule, _disorder(ordered([each], columns), when)))

    def _freed(self, bound: _Bound) -> _Bound:
        """The rule without cells in which an optional column is null."""
        there = self._there(bound.clique)
        forbidden = bound.forbidden & there
        if bound.forbidden.any() and not forbidden.any():
            raise bound.rule.refuse(
                "it forbids nothing: where what it names is not there, or null, it does not apply"
            )
        condition = None if bound.condition is None else bound.condition & there
        return replace(bound, forbidden=forbidden, condition=condition)

    def _there(self, clique: Clique) -> Bools:
        """The cells in which no optional column is null."""
        shape = [self._shape[i] for i in clique]
        there = np.ones(shape, np.bool_)
        for axis, i in enumerate(clique):
            if i in self._optional:  # null is the last code
                there[(slice(None),) * axis + (-1,)] = False
        return there

    def _asked(self, rule: Rule, broken: Check) -> Check:
        names = [self._names[i] for i in self._optional if self._names[i] in rule.words]

        def asked(table: pa.Table) -> Bools:
            found = broken(table)
            for name in names:
                found = found & table.column(name).is_valid().to_numpy()
            return found

        return asked

    def __bool__(self) -> bool:
        return bool(self._bound)

    def forbidden(self) -> dict[Clique, Bools]:
        """Tables of codes, True where no row may be."""
        found: dict[Clique, Bools] = {}
        for bound in self._bound:
            known = found.get(bound.clique)
            found[bound.clique] = bound.forbidden if known is None else known | bound.forbidden
        return found

    @property
    def orders(self) -> list[tuple[Order, tuple[Clique, Bools] | None]]:
        """Columns that are compared, and the table of codes in which they are, if not in all."""
        return [
            (order, None if b is None or b.condition is None else (b.clique, b.condition))
            for order, b in self._orders
        ]

    @property
    def columns(self) -> set[str]:
        """The names of the columns that rules speak of."""
        return {self._names[i] for bound in self._bound for i in bound.clique}

    @cached_property
    def _parts(self) -> list[tuple[Clique, list[_Bound]]]:
        """Columns that rules tie together, and those rules."""
        groups = _tied(self._bound, lambda bound: bound.clique)
        return [(tuple(sorted({i for b in group for i in b.clique})), group) for group in groups]

    def broken(self, codes: Sequence[Codes]) -> Bools:
        """Which rows, given as codes, break a rule."""
        return _broken(self._bound, dict(enumerate(codes)), np.shape(codes[0]))

    def illegal(self, table: pa.Table) -> list[str]:
        """What rows of a decoded table break, by their values."""
        return [
            f"{count} rows break the rule {rule.says!r}"
            for rule, broken in self._checks
            if (count := int(broken(table).sum()))
        ]

    def breaking(self, table: pa.Table) -> dict[str, Bools]:
        """Which rows break each rule, by what their cells are read as: for a table of any types."""
        found = {rule.says: broken(table) for rule, broken in self._checks if rule.target is None}
        return found | {says: _misread(each, table) for says, each in self._derived.items()}

    def mended(
        self, arrays: Mapping[str, pa.Array], codes: Mapping[str, Codes], rng: Rng
    ) -> dict[str, pa.Array]:
        """Columns that are compared, with values that keep their order; `codes` have been projected.

        Draws with a generator of its own, so that all other values are what they are without rules.
        """
        found: dict[str, pa.Array] = {}
        own = rng.spawn(1)[0] if self._orders else rng
        for order, bound in self._orders:
            rows = None
            if bound is not None:
                assert bound.condition is not None
                rows = bound.condition[tuple(codes[self._names[i]] for i in bound.clique)]
            found |= order.mended({**arrays, **found}, own, rows)
        return found

    def project(self, codes: Sequence[Codes]) -> list[Codes]:
        """The rows with those that break a rule moved to the nearest combination that breaks none.

        Nearest: as few columns as possible, rather those that a rule says something of than those of
        its condition, and ordered columns by few steps. A row that keeps all rules stays as it is.
        """
        moved = [np.asarray(array) for array in codes]
        for number, (columns, rules) in enumerate(self._parts):
            bad = _broken(rules, dict(enumerate(moved)), np.shape(moved[0]))
            if not bad.any():
                continue
            combos, back = self._distinct(columns, [moved[i][bad] for i in columns])
            legal = self._nearest(number, combos)[back]
            for at, i in enumerate(columns):
                moved[i] = moved[i].copy()
                moved[i][bad] = legal[:, at].astype(moved[i].dtype)
        return moved

    def _distinct(self, columns: Clique, codes: Sequence[Codes]) -> tuple[Whole, NDArray[np.intp]]:
        """The different combinations, and which of them each row has."""
        shape = tuple(self._shape[i] for i in columns)
        if math.prod(shape) >= 2**62:
            rows = np.stack([c.astype(np.int64) for c in codes], axis=1)
            combos, back = np.unique(rows, axis=0, return_inverse=True)
            return combos, back.reshape(-1)
        packed = np.ravel_multi_index([c.astype(np.intp) for c in codes], shape)
        found, back = np.unique(packed, return_inverse=True)
        return np.stack(np.unravel_index(found, shape), axis=1).astype(np.int64), back

    def _nearest(self, number: int, combos: Whole) -> Whole:
        columns, rules = self._parts[number]
        known = self._known[number]
        fresh = [c for c in map(tuple, combos.tolist()) if c not in known]
        if fresh:
            moved, stuck = self._moved(columns, rules, np.array(fresh, np.int64))
            for at in np.flatnonzero(stuck):
                moved[at] = self._restored(columns, rules, moved[at], known)
            known |= zip(fresh, map(tuple, moved.tolist()), strict=True)
        return np.array([known[c] for c in map(tuple, combos.tolist())], np.int64)

    def _moved(
        self, columns: Clique, rules: Sequence[_Bound], combos: Whole
    ) -> tuple[Whole, Bools]:
        """The cheapest moves that break no rule: of one column, of more where none is enough.

        And where none was found: moves of columns with very many combinations are not looked at.
        """
        best, moved = np.full(len(combos), np.inf), combos.copy()
        base = [self._base(i, rules) for i in columns]
        for count in range(1, len(columns) + 1):
            stuck = np.isinf(best)
            if not stuck.any():
                break
            several = itertools.combinations(range(len(columns)), count)
            for chosen in sorted(several, key=lambda chosen: sum(base[at] for at in chosen)):
                shape = tuple(self._shape[columns[at]] for at in chosen)
                if (cells := math.prod(shape)) > _CELLS:
                    continue
                # Others were cheaper than any move of these columns.
                left = np.flatnonzero(stuck & (best > sum(base[at] for at in chosen)))
                for rows in np.array_split(left, max(1, -(-left.size * cells // _CELLS))):
                    some = combos[rows]
                    cost = self._costs_of(columns, rules, some, chosen).reshape(-1, cells)
                    pick = cost.argmin(axis=1)
                    least = cost[np.arange(len(some)), pick]
                    better = least < best[rows]
                    best[rows[better]] = least[better]
                    moved[rows[better]] = some[better]
                    places = np.unravel_index(pick[better], shape)
                    moved[rows[better][:, None], chosen] = np.stack(places, axis=1)
        return moved, np.isinf(best)

    def _restored(
        self,
        columns: Clique,
        rules: Sequence[_Bound],
        combo: Whole,
        known: Mapping[tuple[int, ...], tuple[int, ...]],
    ) -> Whole:
        """The first legal combination that was found, with all values of this one that it can have."""
        if not known:
            raise self._contradiction(rules)
        found = np.array(next(iter(known.values())), np.int64)
        for at in sorted(range(len(columns)), key=lambda at: -self._base(columns[at], rules)):
            tried = found.copy()
            tried[at] = combo[at]
            if not _broken(rules, dict(zip(columns, tried, strict=True)), ()):
                found = tried
        return found

    def _costs_of(
        self, columns: Clique, rules: Sequence[_Bound], combos: Whole, chosen: Sequence[int]
    ) -> Floats:
        """What every move of the chosen columns costs, for each combination; ∞ if it breaks a rule."""
        axes = 1 + np.arange(len(chosen))
        grid = {i: np.expand_dims(combos[:, at], (*axes,)) for at, i in enumerate(columns)}
        total = np.zeros((len(combos), *(1 for _ in chosen)))
        for axis, at in zip(axes, chosen, strict=True):
            others = (*axes[axes != axis],)
            costs = self._costs(columns[at], combos[:, at], rules)
            total = total + np.expand_dims(costs, others)
            grid[columns[at]] = np.expand_dims(np.arange(costs.shape[1]), (0, *others))
        return np.where(_broken(rules, grid, total.shape), np.inf, total)

    @staticmethod
    def _base(column: int, rules: Sequence[_Bound]) -> float:
        return _CONSEQUENCE if any(column in r.consequence for r in rules) else _CONDITION

    def _costs(self, column: int, values: Whole, rules: Sequence[_Bound]) -> Floats:
        """What moving a column from each of the values to every code costs."""
        size = self._shape[column]
        apart = np.abs(values[:, None] - np.arange(size)[None, :])
        base = self._base(column, rules)
        line = self._line[column]
        beside = (values >= line)[:, None] | (np.arange(size) >= line)[None, :]
        further = np.where(beside, 1.0, apart / size) if line else 0.0
        return np.where(apart == 0, np.inf, base + further)

    def _contradiction(
        self, rules: Sequence[_Bound], why: str = "leave no row at all"
    ) -> SchemaError:
        said = "; ".join(repr(bound.rule.says) for bound in rules)
        return SchemaError(f"the rules {said} contradict each other: together they {why}")

    def _require_possible(self, part: tuple[Clique, list[_Bound]]) -> None:
        """Some row keeps all rules, and every condition of a rule can still be met."""
        columns, rules = part
        shape = tuple(self._shape[i] for i in columns)
        if math.prod(shape) > _LISTED:
            self._nearest(self._parts.index(part), np.zeros((1, len(columns)), np.int64))
            return
        grid = dict(zip(columns, np.ix_(*map(np.arange, shape)), strict=True))
        legal = ~_broken(rules, grid, shape) & self._there(columns)
        if not legal.any():
            raise self._contradiction(rules)
        for rule in rules:
            if rule.condition is None or not rule.condition.any():
                continue
            if not (legal & rule.condition[tuple(grid[i] for i in rule.clique)]).any():
                raise self._contradiction(
                    rules, f"leave no row to which {rule.rule.says!r} applies"
                )

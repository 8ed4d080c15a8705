"""Public rules that every synthetic row keeps: `age < 16 implies marital_status = 'never'`.

A rule says which combinations of codes are impossible. It is a public fact, so nothing about privacy
changes: private rows are counted as they are, whether they keep the rules or not; the default model
gives impossible combinations no weight; and whatever a model draws, rows that break a rule are moved to
the nearest combination that breaks none, before the certificate looks at them. A rule holds in every
row that a release ever gives, and the certificate says what that costs.

    "age < 16 implies marital_status = 'never'"     if the left holds, so does the right
    "not (sex = 'male' and pregnant)"               any condition of the language of `predicate`
    "zip determines city"                           with a public `mapping` of values

A condition holds where it is true; of a null, as in SQL, nothing but `is null` is true. A rule may not
cut a cell of a column: then rows of one code would keep it and others not, and an edge is missing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns import Category
from understudy.columns.base import Domain, require_known
from understudy.constraints.predicate import Predicate, tokens
from understudy.errors import SchemaError, WorkloadError

__all__ = ["Rule", "Rules"]

Clique = tuple[int, ...]
Mask = NDArray[np.bool_]
Codes = NDArray[Any]

_LISTED = 1 << 20
"""Combinations of the columns of entangled rules up to which contradictions are looked for exactly."""
_CELLS = 1 << 22
# Moving a column that a rule says something of is better than moving one that it speaks about.
_CONSEQUENCE, _CONDITION = 1.0, 1.5


@dataclass(frozen=True)
class Rule:
    """One rule, as the schema declares it: what it `says` and, of a dependency, its `mapping`."""

    says: str
    mapping: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_toml(cls, table: Mapping[str, Any]) -> Rule:
        """Read a [[rule]] table."""
        require_known(table, ("says", "mapping"), "[[rule]]")
        says, mapping = table.get("says"), table.get("mapping", {})
        if not isinstance(says, str) or not says.strip():
            raise SchemaError(
                "[[rule]] has nothing to say; write says = \"age < 16 implies status = 'single'\""
            )
        if not isinstance(mapping, Mapping):
            raise SchemaError(f'rule {says!r}: mapping must be a table, {{"89073" = "Ulm"}}')
        pairs = tuple((str(key), _plain(value)) for key, value in mapping.items())
        return cls(says.strip(), pairs)

    def facts(self) -> dict[str, Any]:
        """What `from_toml` reads."""
        body: dict[str, Any] = {"says": self.says}
        return {**body, "mapping": dict(self.mapping)} if self.mapping else body

    @property
    def words(self) -> set[str]:
        """The names that it may speak of."""
        try:
            return {t.text for t in tokens(self.says) if t.kind in ("word", "quoted")}
        except WorkloadError as error:
            raise self.refuse(str(error)) from None

    def refuse(self, why: str) -> SchemaError:
        """An error that names the rule."""
        return SchemaError(f"rule {self.says!r}: {why}")


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, eq=False)
class _Bound:
    """A rule in codes: the combinations of its columns that it forbids."""

    rule: Rule
    clique: Clique
    forbidden: Mask
    condition: Mask | None
    consequence: frozenset[int]
    parts: tuple[Predicate, ...]

    def broken_rows(self, table: pa.Table, schema: Domain) -> Mask:
        """Which rows of a decoded table break it, by their values."""
        if not self.parts:
            columns = (schema.modelled[i] for i in self.clique)
            return self.forbidden[tuple(c.encode(table.column(c.name)) for c in columns)]
        *given, then = (part.rows(table) for part in self.parts)
        return given[0] & ~then if given else ~then


def _broken(rules: Iterable[_Bound], codes: Mapping[int, Codes], shape: tuple[int, ...]) -> Mask:
    """Which of the given combinations break a rule; columns of codes spread over the shape."""
    broken = np.zeros(shape, np.bool_)
    for rule in rules:
        broken |= rule.forbidden[tuple(codes[i] for i in rule.clique)]
    return broken


def _bind(rule: Rule, schema: Domain) -> _Bound:
    try:
        words = list(tokens(rule.says))
        second = words[1] if len(words) == 4 else None
        if second and second.kind == "word" and second.text.lower() == "determines":
            return _dependency(rule, words[0].text, words[2].text, schema)
        if rule.mapping:
            raise rule.refuse("mapping belongs to a rule such as 'zip determines city'")
        cuts = [t.start for t in words if (t.kind, t.text.lower()) == ("word", "implies")]
        if len(cuts) > 1:
            raise rule.refuse("it says implies more than once; write two rules")
        parts = [rule.says]
        if cuts:
            parts = [rule.says[: cuts[0]], rule.says[cuts[0] + len("implies") :]]
        return _condition(rule, parts, schema)
    except WorkloadError as error:
        raise rule.refuse(str(error)) from None


def _condition(rule: Rule, texts: Sequence[str], schema: Domain) -> _Bound:
    parts = tuple(Predicate.parse(text, schema) for text in texts)
    clique = tuple(sorted({i for part in parts for i in part.clique}))
    _require_small(rule, clique, schema)
    masks: list[Mask] = []
    for part in parts:
        inner, outer = part.cells(clique)
        if not np.array_equal(inner, outer):
            raise rule.refuse(
                f"{part.text.strip()!r} cuts through {_cut(part, schema)}; give the column an edge "
                "there, so that all rows of a cell keep the rule or none"
            )
        masks.append(inner)
    condition = masks[0] if len(masks) > 1 else None
    forbidden = ~masks[-1] if condition is None else condition & ~masks[-1]
    return _Bound(rule, clique, forbidden, condition, frozenset(parts[-1].clique), parts)


def _cut(part: Predicate, schema: Domain) -> str:
    inner, outer = part.cells()
    at = np.argwhere(outer & ~inner)[0]
    names = [
        f"{schema.modelled[i].name} = {schema.modelled[i].labels()[code]}"
        for i, code in zip(part.clique, at, strict=True)
    ]
    return " and ".join(names)


def _dependency(rule: Rule, source: str, target: str, schema: Domain) -> _Bound:
    if not rule.mapping:
        raise rule.refuse(
            f"it needs a public mapping of {source} to {target}, such as "
            'mapping = {"89073" = "Ulm", "53111" = "Bonn"}'
        )
    if source == target:
        raise rule.refuse("a column determines itself without a rule")
    i, j = (schema.position(name) for name in (source, target))
    one, two = schema.modelled[i], schema.modelled[j]
    allowed = np.ones((one.size, two.size), np.bool_)
    seen = np.zeros(one.size, np.bool_)
    for key, value in rule.mapping:
        rows, cells = (_single(rule, column, text) for column, text in ((one, key), (two, value)))
        if (seen & rows).any():
            raise rule.refuse(f"mapping names {key!r} twice")
        seen |= rows
        allowed[rows] = cells
    if isinstance(one, Category):
        missing = [str(v) for code, v in enumerate(one.values) if not seen[code]]
        if missing:
            raise rule.refuse(
                f"mapping has nothing for {', '.join(missing[:5])}"
                + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
                + f" of {source}; add each"
            )
    clique = (i, j) if i < j else (j, i)
    forbidden = ~allowed if i < j else ~allowed.T
    return _Bound(rule, clique, forbidden, None, frozenset({j}), ())


def _single(rule: Rule, column: Any, text: str) -> Mask:
    inner, outer = column.compare("=", text)
    if not np.array_equal(inner, outer):
        raise rule.refuse(f"{text!r} is only a part of a cell of {column.name!r}")
    return inner


def _require_small(rule: Rule, clique: Clique, schema: Domain) -> None:
    cells = math.prod(schema.shape[i] for i in clique)
    if cells > _CELLS:
        raise rule.refuse(
            f"its {len(clique)} columns have {cells:,} combinations, more than {_CELLS:,}; "
            "write it as several rules of fewer columns"
        )


class Rules:
    """All rules of a schema, in codes. Rules that share columns are kept together."""

    def __init__(self, rules: Sequence[Rule], schema: Domain) -> None:
        self._shape = schema.shape
        self._names = [column.name for column in schema.modelled]
        # How many codes of a column, the first ones, have an order.
        self._line = [c.size - c.apart if c.ordered else 0 for c in schema.modelled]
        self._bound = [_bind(rule, schema) for rule in rules]
        self._known: list[dict[tuple[int, ...], tuple[int, ...]]] = [{} for _ in self._parts]
        for part in self._parts:
            self._require_possible(part)

    def __bool__(self) -> bool:
        return bool(self._bound)

    @property
    def columns(self) -> set[str]:
        """The names of the columns that rules speak of."""
        return {self._names[i] for bound in self._bound for i in bound.clique}

    @cached_property
    def _parts(self) -> list[tuple[Clique, list[_Bound]]]:
        """Columns that rules tie together, and those rules."""
        parts: list[tuple[set[int], list[_Bound]]] = []
        for bound in self._bound:
            touched = [part for part in parts if part[0] & set(bound.clique)]
            columns = set(bound.clique).union(*(part[0] for part in touched))
            rules = [rule for part in touched for rule in part[1]]
            parts = [part for part in parts if part not in touched]
            parts.append((columns, [*rules, bound]))
        return [(tuple(sorted(columns)), rules) for columns, rules in parts]

    def broken(self, codes: Sequence[Codes]) -> Mask:
        """Which rows, given as codes, break a rule."""
        return _broken(self._bound, dict(enumerate(codes)), np.shape(codes[0]))

    def illegal(self, table: pa.Table, schema: Domain) -> list[str]:
        """What rows of a decoded table break, by their values."""
        return [
            f"{count} rows break the rule {bound.rule.says!r}"
            for bound in self._bound
            if (count := int(bound.broken_rows(table, schema).sum()))
        ]

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

    def _distinct(
        self, columns: Clique, codes: Sequence[Codes]
    ) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The different combinations, and which of them each row has."""
        shape = tuple(self._shape[i] for i in columns)
        if math.prod(shape) >= 2**62:
            rows = np.stack([c.astype(np.int64) for c in codes], axis=1)
            combos, back = np.unique(rows, axis=0, return_inverse=True)
            return combos, back.reshape(-1)
        packed = np.ravel_multi_index([c.astype(np.intp) for c in codes], shape)
        found, back = np.unique(packed, return_inverse=True)
        return np.stack(np.unravel_index(found, shape), axis=1).astype(np.int64), back

    def _nearest(self, number: int, combos: NDArray[np.int64]) -> NDArray[np.int64]:
        columns, rules = self._parts[number]
        known = self._known[number]
        fresh = [c for c in map(tuple, combos.tolist()) if c not in known]
        if fresh:
            found = self._one_column(columns, rules, np.array(fresh, np.int64))
            for combo, legal in zip(fresh, found, strict=True):
                known[combo] = legal or self._more_columns(columns, rules, combo)
        return np.array([known[c] for c in map(tuple, combos.tolist())], np.int64)

    def _one_column(
        self, columns: Clique, rules: Sequence[_Bound], combos: NDArray[np.int64]
    ) -> list[tuple[int, ...] | None]:
        """The cheapest move of one column that breaks no rule; None where there is none."""
        best = np.full(len(combos), np.inf)
        moved = combos.copy()
        for at in sorted(range(len(columns)), key=lambda at: self._base(columns[at], rules)):
            i = columns[at]
            size = self._shape[i]
            # Others were cheaper than any move of this column.
            left = np.flatnonzero(best > self._base(i, rules))
            for rows in np.array_split(left, max(1, -(-left.size * size // _CELLS))):
                some = combos[rows]
                grid = {c: some[:, k][:, None] for k, c in enumerate(columns)}
                grid[i] = np.arange(size)[None, :]
                broken = _broken(rules, grid, (len(some), size))
                cost = np.where(broken, np.inf, self._costs(i, some[:, at], rules))
                pick = cost.argmin(axis=1)
                least = cost[np.arange(len(some)), pick]
                better = least < best[rows]
                best[rows[better]] = least[better]
                moved[rows[better]] = some[better]
                moved[rows[better], at] = pick[better]
        return [tuple(m) if b < np.inf else None for m, b in zip(moved.tolist(), best, strict=True)]

    @staticmethod
    def _base(column: int, rules: Sequence[_Bound]) -> float:
        return _CONSEQUENCE if any(column in r.consequence for r in rules) else _CONDITION

    def _costs(
        self, column: int, values: NDArray[np.int64], rules: Sequence[_Bound]
    ) -> NDArray[np.float64]:
        """What moving a column from each of the values to every code costs."""
        size = self._shape[column]
        apart = np.abs(values[:, None] - np.arange(size)[None, :])
        base = self._base(column, rules)
        line = self._line[column]
        beside = (values >= line)[:, None] | (np.arange(size) >= line)[None, :]
        further = np.where(beside, 1.0, apart / size) if line else 0.0
        return np.where(apart == 0, np.inf, base + further)

    def _more_columns(
        self, columns: Clique, rules: Sequence[_Bound], combo: tuple[int, ...]
    ) -> tuple[int, ...]:
        """The cheapest move of two columns, or of more if none is enough."""
        here = dict(zip(columns, combo, strict=True))
        for count in range(2, len(columns) + 1):
            best, found = math.inf, None
            for chosen in itertools.combinations(columns, count):
                shape = tuple(self._shape[i] for i in chosen)
                if math.prod(shape) > _CELLS:
                    continue
                grid: dict[int, Any] = {i: np.int64(here[i]) for i in columns}
                grid |= dict(zip(chosen, np.ix_(*map(np.arange, shape)), strict=True))
                cost = np.where(_broken(rules, grid, shape), np.inf, 0.0)
                for axis, i in enumerate(chosen):
                    extent = [-1 if k == axis else 1 for k in range(count)]
                    cost = cost + self._costs(i, np.array([here[i]]), rules)[0].reshape(extent)
                if float(cost.min()) < best:
                    best = float(cost.min())
                    at = np.unravel_index(int(cost.argmin()), shape)
                    found = {**here, **{i: int(v) for i, v in zip(chosen, at, strict=True)}}
            if found is not None and best < math.inf:
                return tuple(found[i] for i in columns)
        raise self._contradiction(rules)

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
        legal = ~_broken(rules, grid, shape)
        if not legal.any():
            raise self._contradiction(rules)
        for rule in rules:
            if rule.condition is None or not rule.condition.any():
                continue
            if not (legal & rule.condition[tuple(grid[i] for i in rule.clique)]).any():
                raise self._contradiction(
                    rules, f"leave no row to which {rule.rule.says!r} applies"
                )

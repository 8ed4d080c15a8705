"""Rules that hold in every row of a table, proposed to a custodian.

NOT PRIVATE: whatever is proposed was read from private rows and says so (`Rule.read_from_rows`). No
release accepts it before somebody has confirmed that it is public knowledge; otherwise it is dropped.

Proposed is what holds in all rows, and by more than accident:

    total = a + b          also of three parts: the total takes `_VALUES` values or more, and `_SUPPORT`
                           rows have no part that is zero. One row fits by accident with probability 1
                           in `_VALUES` or so, all of them with 10^-100
    a determines b         Shuffled, the rows of each value v of a would agree in b with probability
                           Σ_w p_w^n(v), p the shares of b; the product over v is below `_ACCIDENT`.
                           Values that fewer than `_RARE` rows hold are not listed. Of an ordered a it
                           is proposed by thresholds, which list no value at all.
    a < 15 implies b = v   `_SUPPORT` rows or more fulfil the left side, p_v^rows is below `_ACCIDENT`,
                           and p_v is at most `_COMMON`, since a rule about what nearly always is says
                           little. p_v is the share of v in all rows and, of a range, in as many rows
                           beside it: what fades out slowly is no rule
    a <= b                 of one kind. Shuffled, at least one row in ten breaks it; and some rows come
                           near, so that it is not only for want of large values

`_ACCIDENT` is 10^-12: with a hundred thousand candidates in a table of fifty columns one of them is
accidental with probability 10^-7. Columns that depend on each other can still look as if a rule held;
that is for the custodian to say. Few are proposed (`_MOST`): nothing that follows from others, and
nothing about columns that another rule computes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from understudy._types import Bools, Floats, Whole
from understudy.columns.binned import Binned
from understudy.columns.category import Category
from understudy.columns.numeric import Number
from understudy.columns.unmodelled import UndeclaredCategory
from understudy.constraints.rule import Rule
from understudy.draft.seen import Seen, looked_at, sampled
from understudy.errors import SchemaError
from understudy.schema.schema import Schema

_MOST = 15
_MOST_CONDITIONS = 6
_RARE = 20
_SUPPORT = 100
_VALUES = 10
_COMMON = 0.9
_ACCIDENT = -12 * math.log(10)
_FEW_ROWS = 100
_MOST_CODES = 1_000
_MOST_STEPS = 24
_MOST_CONSEQUENCES = 5
_MOST_SUMS = 1_000_000
_ROWS_ADDED = 64
_NEAR = 0.01


def proposed(table: pa.Table, schema: Schema) -> tuple[Rule, ...]:
    """Rules that hold in every row, the strongest kinds first; at most `_MOST`. NOT PRIVATE.

    Each can be added to the schema as it is: what the declared cells cannot keep is not proposed.
    """
    if table.num_rows < _FEW_ROWS:
        return ()
    seen = looked_at(table, schema)
    taken: set[str] = set()
    rules: list[Rule] = []
    for found in (_totals(seen), _dependencies(seen)):
        for rule in found:
            if rule.target not in taken and _fits(schema, [*rules, rule]):
                rules.append(rule)
                taken.add(str(rule.target))
    free = [each for each in seen if each.name not in taken]
    for rule in (*_orders(free), *list(_conditions(free))[:_MOST_CONDITIONS]):
        if _fits(schema, [*rules, rule]):
            rules.append(rule)
    return tuple(rules[:_MOST])


def confirm_rules(schema: Schema) -> Schema:
    """The schema with its rules stated to be public knowledge."""
    return schema.with_rules([replace(r, read_from_rows=False) for r in schema.rules])


def _fits(schema: Schema, rules: Sequence[Rule]) -> bool:
    try:
        replace(schema, rules=(*schema.rules, *rules))
    except SchemaError:
        return False
    return True


def _rule(says: str, **more: Any) -> Rule:
    return Rule(says, **more, read_from_rows=True)


# Totals


def _totals(seen: Sequence[Seen]) -> list[Rule]:
    """Columns that are the sum of one to three others, where null is null.

    Sums are looked for among random combinations of some rows, which add up as the columns do.
    """
    numbers = [each for each in seen if each.unit == "number" and each.size > 2]
    if len(numbers) < 2:
        return []
    rows = sampled(len(numbers[0].codes))
    few = np.stack([each.numbers[rows] for each in numbers])
    # Rows in which many columns have a number; a column without one there adds nothing up.
    rows = np.argsort(np.isnan(few).sum(axis=0), kind="stable")[:_ROWS_ADDED]
    few = few[:, rows]
    kept = np.flatnonzero(~np.isnan(few).any(axis=1))
    numbers, few = [numbers[at] for at in kept], few[kept]
    weights = np.random.default_rng(0).uniform(1, 2, few.shape[1])
    mixed, slack = few @ weights, 1e-9 * (np.abs(few) @ weights + 1)
    found: list[Rule] = []
    done: set[int] = set()
    for count in (1, 2, 3):
        parts = np.array(list(combinations(range(len(numbers)), count)), np.int64)
        if not len(parts) or len(parts) > _MOST_SUMS:
            break
        sums = mixed[parts].sum(axis=1)
        for at, total in enumerate(numbers):
            if total.size < _VALUES or at in done:
                continue
            for line in parts[np.abs(sums - mixed[at]) <= slack[at]]:
                if at in line or done.intersection(line.tolist()):
                    continue
                added = [numbers[i] for i in line]
                if _adds_up(total, added):
                    words = " + ".join(part.word for part in added)
                    found.append(_rule(f"{total.word} = {words}"))
                    done.add(at)
                    break
    return found


def _adds_up(total: Seen, parts: Sequence[Seen]) -> bool:
    added = np.sum([part.numbers for part in parts], axis=0)
    known, missing = total.numbers, np.isnan(total.numbers)
    if not np.array_equal(missing, np.isnan(added)) or np.any(missing & ~total.null):
        return False
    slack = 1e-9 * np.maximum(1.0, np.abs(added))
    if np.any((np.abs(known - added) > slack)[~missing]):
        return False
    busy = np.all([part.numbers[~missing] != 0 for part in parts], axis=0)
    varied = all(len(np.unique(part.numbers[~missing][busy])) > 2 for part in parts)
    return int(busy.sum()) >= _SUPPORT and varied


# Dependencies


def _dependencies(seen: Sequence[Seen]) -> list[Rule]:
    """One rule for every column that follows from another, from the one with the fewest values.

    Of two that follow from each other, words are kept, and numbers computed.
    """
    found: dict[str, tuple[tuple[int, int], Rule]] = {}
    for at, target in enumerate(seen):
        if not 2 <= target.size <= _MOST_CODES:
            continue
        for place, source in enumerate(seen):
            if source is target or source.size < target.size:
                continue
            if source.unit is None and source.size > _MOST_CODES:
                continue
            if source.size == target.size and (source.unit is not None, place) > (
                target.unit is not None,
                at,
            ):
                continue
            rank = (source.size, place)
            if target.name in found and rank > found[target.name][0]:
                continue
            if not _determines(source, target):
                continue
            rule = _stepped(source, target) or _mapped(source, target)
            if rule is not None:
                found[target.name] = (rank, rule)
    chosen = sorted(found.values(), key=lambda each: each[0], reverse=True)
    return [rule for _, rule in chosen]


def _determines(source: Seen, target: Seen) -> bool:
    """Whether every value of the one goes with one value of the other, in all rows."""
    for one, two in ((source.few, target.few), (source.codes, target.codes)):
        first = np.zeros(source.size + 1, np.int64)
        first[one] = two
        if not np.array_equal(first[one], two):
            return False
    return True


def _by_accident(source: Seen, target: Seen) -> bool:
    """Whether a shuffled target might follow from the source as well; see above."""
    shares = target.counts[target.counts > 0] / len(target.codes)
    held = source.counts[source.counts > 1]
    times, rows = np.unique(held, return_counts=True)
    chance = sum(
        float(n) * math.log(max(float(np.sum(shares ** float(k))), 1e-300))
        for k, n in zip(times, rows, strict=True)
    )
    return chance > _ACCIDENT


def _image(source: Seen, target: Seen) -> Whole:
    """The code of the target for every code of the source, null included."""
    image = np.full(source.size + 1, target.size, np.int64)
    image[source.codes] = target.codes
    return image


def _mapped(source: Seen, target: Seen) -> Rule | None:
    """By a list of values; those that few rows hold are not in it."""
    if source.size > _MOST_CODES or _by_accident(source, target):
        return None
    image = _image(source, target)
    if source.counts[-1] and (image[-1] < target.size or not target.column.nullable):
        return None
    often = np.flatnonzero(source.counts[:-1] >= _RARE)
    mapping = tuple(
        (source.texts[i], target.texts[image[i]]) for i in often if image[i] < target.size
    )
    if len(mapping) < 2 or len({value for _, value in mapping}) < 2:
        return None
    column, default = target.column, None
    if isinstance(column, Category | UndeclaredCategory) and column.other is not None:
        default = str(column.other)
    return _rule(
        f"{source.word} determines {target.word}", mapping=mapping, default=default, derived=True
    )


def _stepped(source: Seen, target: Seen) -> Rule | None:
    """By thresholds, where values of an ordered column that go together lie together."""
    if source.unit is None or not 2 <= target.size <= _MOST_STEPS or target.counts[-1]:
        return None
    if np.isnan(source.values).any() or source.counts[-1]:
        return None
    if target.counts[:-1].min() < _RARE:
        return None
    order, values = source.order, source.values
    steps = _image(source, target)[:-1][order]
    ends = np.flatnonzero(np.diff(steps)) + 1
    if len(ends) != target.size - 1:
        return None
    bounds = [_cut(source, values[order[end - 1]], values[order[end]]) for end in ends]
    if None in bounds:
        return None
    firsts = steps[np.append(0, ends)]
    return _rule(
        f"{source.word} determines {target.word}",
        cuts=tuple(bounds),
        values=tuple(target.texts[i] for i in firsts),
    )


def _cut(seen: Seen, low: Any, high: Any) -> Any:
    """The roundest value above `low` and up to `high`, at an edge of the column where it has some."""
    low, high = float(low), float(high)
    if seen.unit != "number":
        return None
    column = seen.column
    edges: list[float] = []
    if isinstance(column, Binned) and (column.edges is not None or column.bins is not None):
        scale = 10.0 ** -((column.decimals or 0) if isinstance(column, Number) else 0)
        edges = [float(x) * scale for x in column.grid.lows if low < float(x) * scale <= high]
        if not edges:
            return None
    for power in range(12, -13, -1):
        for step in (Fraction(5), Fraction(2), Fraction(1)):
            unit = step * Fraction(10) ** power
            candidate = math.floor(Fraction(high) / unit) * unit
            if Fraction(low) < candidate and (not edges or float(candidate) in edges):
                return int(candidate) if candidate.denominator == 1 else float(candidate)
    return edges[-1] if edges else None


# Orders


def _orders(seen: Sequence[Seen]) -> list[Rule]:
    """Columns of one kind of which one is never above the other, without those that follow."""
    found: set[tuple[int, int]] = set()
    for unit in ("number", "date", "datetime"):
        of = [at for at, each in enumerate(seen) if each.unit == unit]
        if len(of) < 2:
            continue
        rows = sampled(len(seen[0].codes))
        few = {at: seen[at].numbers[rows] for at in of}
        mixed = np.random.default_rng(0).permutation(len(rows))
        for one in of:
            for two in of:
                if one == two or np.any(few[one] > few[two]):
                    continue
                if np.mean(few[one] > few[two][mixed]) < 0.1:
                    continue  # true of any two rows, or nearly
                if _below(seen[one], seen[two]):
                    found.add((one, two))
    found = {(a, b) for a, b in found if (b, a) not in found or a < b}
    direct = [
        (a, b)
        for a, b in sorted(found)
        if not any((a, c) in found and (c, b) in found for c in range(len(seen)))
    ]
    return [_rule(f"{seen[a].word} <= {seen[b].word}") for a, b in direct]


def _below(one: Seen, two: Seen) -> bool:
    low, high = one.numbers, two.numbers
    both = ~np.isnan(low) & ~np.isnan(high)
    low, high = low[both], high[both]
    if len(low) < _SUPPORT or np.any(low > high):
        return False
    wide = float(np.quantile(high, 0.95) - np.quantile(low, 0.05))
    near = (high - low <= _NEAR * wide) & (low > low.min())
    return int(near.sum()) >= max(_RARE, len(low) // 1000)


# Conditions


@dataclass(frozen=True)
class _Told:
    """`given` implies that a column has one value; `ranged`, if it is a range of another."""

    given: str
    about: tuple[str, str]
    consequence: str
    surprise: float
    ranged: bool = False


def _conditions(seen: Sequence[Seen]) -> Iterator[Rule]:
    """What follows from a value or a range of a column; that of one condition in one rule."""
    told: list[_Told] = []
    sides = [each for each in seen if each.size + bool(each.counts[-1]) >= 2 and each.size <= 64]
    for target in sides:
        shares = target.counts / len(target.codes)
        for source in seen:
            if source is target:
                continue
            told += _ranges(source, target, shares)
            if source.size <= 64 and source.unit is None:
                told += _listed(source, target, shares)
    grouped: dict[str, list[_Told]] = {}
    often = Counter(each.given for each in told)
    ranged: set[str] = set()
    for each in sorted(told, key=lambda each: (-often[each.given], each.surprise)):
        if any(set(each.about) == set(other.about) for part in grouped.values() for other in part):
            continue  # the same said the other way round
        if each.ranged and each.consequence in ranged:
            continue  # of columns that rise together one is enough
        ranged.update([each.consequence] if each.ranged else ())
        grouped.setdefault(each.given, []).append(each)
    for given, parts in sorted(grouped.items(), key=lambda item: sum(p.surprise for p in item[1])):
        some = parts[:_MOST_CONSEQUENCES]
        yield _rule(f"{given} implies {' and '.join(part.consequence for part in some)}")


def _surprise(rows: int, share: float) -> float:
    """The logarithm of the chance that all these rows have a value of that share; 0 if too likely."""
    if rows < _SUPPORT or not 0 < share <= _COMMON:
        return 0.0
    chance = rows * math.log(share)
    return chance if chance < _ACCIDENT else 0.0


def _says(target: Seen, code: int) -> str:
    if code == target.size:
        return f"{target.word} is null"
    return f"{target.word} = {target.literal(target.texts[code])}"


def _listed(source: Seen, target: Seen, shares: Floats) -> Iterator[_Told]:
    """Values of a column with which another always has the same value."""
    if not _alone(_crossed(source, target, source.few, target.few)).any():
        return
    table = _crossed(source, target, source.codes, target.codes)
    sole = _alone(table)
    for code in np.unique(table.argmax(axis=1)[sole]):
        values = [i for i in np.flatnonzero(sole) if table[i, code] >= _RARE]
        named = [i for i in values if i < source.size]
        rows = int(table[values, code].sum())
        chance = _surprise(rows, float(shares[code]))
        if not chance or len(values) == int((table.sum(axis=1) > 0).sum()):
            continue
        parts = []
        if len(named) == 1:
            parts.append(f"{source.word} = {source.literal(source.texts[named[0]])}")
        elif named:
            listed = ", ".join(source.literal(source.texts[i]) for i in named)
            parts.append(f"{source.word} in ({listed})")
        if len(values) > len(named):
            parts.append(f"{source.word} is null")
        yield _Told(
            " or ".join(parts), (source.name, target.name), _says(target, int(code)), chance
        )


def _crossed(source: Seen, target: Seen, one: Whole, two: Whole) -> Whole:
    shape = (source.size + 1, target.size + 1)
    return np.bincount(one * shape[1] + two, minlength=shape[0] * shape[1]).reshape(shape)


def _alone(table: Whole) -> Bools:
    """The lines in which one cell has all rows."""
    return (table > 0).sum(axis=1) == 1


def _ranges(source: Seen, target: Seen, shares: Floats) -> Iterator[_Told]:
    """The lowest and the highest values of a column, as far as another has one value with them.

    What is surprising about it is judged by as many rows beside: there the value must be rarer.
    """
    if source.unit != "number" or source.size < 3:
        return
    numbers, rows = source.ranked
    for up in (True, False):
        by_size = rows if up else rows[::-1]
        if _first_other(target.codes[by_size[:_SUPPORT]]):
            continue
        line = target.codes[by_size]
        values = numbers if up else -numbers[::-1]
        end = _first_other(line)
        end = int(np.searchsorted(values, values[end], "left")) if end else 0
        if end < _SUPPORT:
            continue
        beside = line[end : 2 * end]
        chance = _surprise(end, max(float(shares[line[0]]), float(np.mean(beside == line[0]))))
        inside, outside = values[end - 1] * (1 if up else -1), values[end] * (1 if up else -1)
        cut = _cut(source, min(inside, outside), max(inside, outside)) if chance else None
        if cut is not None:
            given = f"{source.word} {'<' if up else '>='} {cut}"
            says = _says(target, int(line[0]))
            yield _Told(given, (source.name, target.name), says, chance, ranged=True)


def _first_other(line: Whole) -> int:
    """How many entries are like the first before another comes; 0 if all are."""
    other = line != line[0]
    return int(other.argmax()) if other.any() else 0

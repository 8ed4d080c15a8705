"""What each family of a small universe adds to every table, by a count of its views one by one.

A column of the parents names the family, so tables with that column show what every family adds by
itself, whoever else is there. The counts expected follow the definition of a view and its weight, not
the code: exact fractions of M, rounded down.
"""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tests.source.test_views import ENGINES
from understudy.privacy.sensitive import reveal
from understudy.schema import Category, Identifier, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.source import base, duckdb, read
from understudy.source.duckdb import DuckDBSource
from understudy.source.families import FamilySource

SLOW = pytest.mark.slow
CELLS = ("x", "y")
PLACES = ("9", " 10", "9.0", "1e1", "b", "B", "é", "e\u0301", "nan", "-inf", "", None)
"""In the order in which they count, but for the numbers, of which two and two are equal."""
ORDER = ("9", "9.0", "10", "1e1", "-inf", "B", "b", "e\u0301", "nan", "é", None)
KEYS = (
    "a",
    "A",
    "á",
    "a\u0301",
    "ß",
    "ss",
    "1",
    "01",
    "1.0",
    "+1",
    "\U0001d518",
    "nan",
    "null",
    "'",
)


def families(most, *, ordered):
    """Who, with which parents, which children (place, cell): all sizes up to one too many."""
    found = []
    for size in range(most + 2):
        for cells in (
            itertools.product(CELLS, repeat=size)
            if ordered
            else (itertools.combinations_with_replacement(CELLS, size))
        ):
            for parent in ("p", "q"):
                places = [PLACES[(len(found) + 5 * i) % len(PLACES)] for i in range(size)]
                found.append(([parent], list(zip(places, cells, strict=True))))
    odd = [(place, cell) for place in PLACES for cell in CELLS]
    found += [
        (["q", "p"], odd),  # two parents with one key
        (["p", None], odd[::-1][:most]),
        (["p"], [("9", "x")] * (most + 3)),  # children that nothing tells apart
        (["q"], [(None, "y"), (None, "x")]),
        ([], odd),  # orphans
    ]
    return found


def key_of(who):
    """A name that blanks, a letter's case or its accent make no other."""
    return KEYS[who] if who < len(KEYS) else f"k{who}"


def tables(universe, there, rng):
    """Parents and children of some of the families, and rows that name nobody, in any order."""
    parents, children = [(None, 0, "p"), ("  ", 1, "q")], [(None, "1", "x"), ("", "1", "y")]
    for who in there:
        own, visits = universe[who]
        blanks = ("", " ", "\t", "\u3000")
        parents += [(key_of(who) + blanks[who % 3], who, p) for p in own]
        children += [(blanks[i % 4] + key_of(who), *each) for i, each in enumerate(visits)]
    first = [parents[i] for i in rng.permutation(len(parents))]
    second = [children[i] for i in rng.permutation(len(children))]
    names = pa.schema([(name, pa.string()) for name in ("k", "who", "p")])
    others = pa.schema([(name, pa.string()) for name in ("k", "at", "c")])
    return (
        pa.table([[k for k, _, _ in first], [f"w{w}" for _, w, _ in first], [p for *_, p in first]],
                 schema=names),
        pa.table([list(column) for column in zip(*second, strict=True)], schema=others),
    )  # fmt: skip


def schema_of(universe, most, *, ordered, least=0):
    who = Category("who", tuple(f"w{i}" for i in range(len(universe))))
    parents = Schema((Identifier("k"), who, Category("p", ("p", "q"), nullable=True)))
    children = Schema((Identifier("k"), Identifier("at"), Category("c", CELLS)))
    family = Family("P", "k", "C", "k", most, least, "at" if ordered else None, "all")
    return FamilySchema.of(parents, children, family)


def views(parent, cells, weight, *, ordered):
    """The weight of every view (p, count, c, position, sibling) of a family; sums to at most M."""
    s = len(cells)
    if s == 0:
        return Counter({(parent, 0, None, None, None): weight})
    found = Counter()
    if ordered:
        for i, cell in enumerate(cells):
            ends = {0: "first", s - 1: "last"}
            position = "only" if s == 1 else ends.get(i, "middle")
            before = cells[i - 1] if i else None
            found[parent, s, cell, position, before] += weight // s
        return found
    if s == 1:
        return Counter({(parent, 1, cells[0], None, None): weight})
    for one, other in itertools.permutations(range(s), 2):
        found[parent, s, cells[one], None, cells[other]] += weight // (s * (s - 1))
    return found


def possible(family, most, weight, *, ordered, least):
    """What the family may add: with an order one thing, without one that of any choice of children."""
    own, children = family
    if not own or (least and not children):
        return [Counter()]
    parent = min(own, key=lambda p: (p is None, p))
    if ordered:
        in_order = sorted(
            children,
            key=lambda each: (ORDER.index((each[0] or "").strip() or None), CELLS.index(each[1])),
        )
        kept = [[cell for _, cell in in_order[:most]]]
    else:
        cells = sorted(cell for _, cell in children)
        kept = [list(some) for some in set(itertools.combinations(cells, min(most, len(cells))))]
    return [views(parent, cells, weight, ordered=ordered) for cells in kept]


def added(source, schema):
    """What every family adds: weights of whole views, by the column that names it."""
    bound = source.bind(schema)
    names = [column.name for column in schema.modelled]
    word = "previous.c" if schema.layout.ordered else "sibling.c"
    wanted = ["P.who", "P.p", "C.count", "C.c", "C.position", word]
    at = tuple(names.index(name) for name in wanted if name in names)
    shape = [schema.shape[i] for i in at]
    ((cells, numbers),) = reveal(bound.sparse([at]))
    found = {}
    for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True):
        values = dict(zip([names[i] for i in at], np.unravel_index(cell, shape), strict=True))
        view = (
            ("p", "q", None)[values["P.p"]],
            int(values["C.count"]) + (not schema.layout.childless),
            (*CELLS, None)[values["C.c"]],
            ("only", "first", "middle", "last", None)[values.get("C.position", 4)],
            (*CELLS, None)[values.get(word, 2)],  # no siblings where one child counts
        )
        found.setdefault(int(values["P.who"]), Counter())[view] += number
    # Tables of fewer columns are sums of that one: no family moves one of them by more than M.
    total = reveal(bound.marginals([()]))[0]
    assert total == sum(map(Counter.total, found.values()))
    who = names.index("P.who")
    every = [(who, i) for i in range(len(names)) if i != who]
    for table in reveal(bound.marginals(every)):
        assert table.sum() == total
        assert table.sum(axis=1).max(initial=0) <= schema.weight
        assert table.min() >= 0
    return found


def require_own(universe, there, found, schema, *, ordered, least=0):
    """Every family adds what it adds alone, those that are not there nothing."""
    _, _, family = schema.tables
    for who, each in enumerate(universe):
        mine = found.get(who, Counter())
        assert mine.total() <= schema.weight
        if who not in there:
            assert not mine
            continue
        most = family.max_children
        assert mine in possible(each, most, schema.weight, ordered=ordered, least=least), each


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("most", "least"), [(2, 0), *(pytest.param(*k, marks=SLOW) for k in ((1, 0), (2, 1), (3, 0)))]
)
def test_in_memory_each_family_adds_its_own_in_any_company(monkeypatch, ordered, most, least):
    universe = families(most, ordered=ordered)
    schema, rng = schema_of(universe, most, ordered=ordered, least=least), np.random.default_rng(1)
    everybody = set(range(len(universe)))
    chosen = {}
    for left in (set(), *({int(i)} for i in rng.permutation(len(universe))[:3]), everybody - {4}):
        there = everybody - left
        monkeypatch.setattr(base, "BATCH_ROWS", int(rng.integers(9, 60)))
        given = tables(universe, sorted(there), rng)
        if len(left) == 1:
            given = [table.to_pandas() for table in given]
        found = added(FamilySource(*map(read, given)), schema)
        require_own(universe, there, found, schema, ordered=ordered, least=least)
        for who in found:  # the same children are chosen, whoever else is there
            assert chosen.setdefault(who, found[who]) == found[who]


@pytest.mark.parametrize(
    ("form", "ends"),
    [
        ("csv", [(3, 19)]),
        pytest.param("csv", [(1, 1 << 16), (2, 3)], marks=SLOW),
        pytest.param("parquet", [(1, 1 << 16), (2, 2), (5, 3)], marks=SLOW),
    ],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_in_files_wherever_batches_and_turns_end(tmp_path, monkeypatch, form, ends, ordered):
    universe, rng = families(2, ordered=ordered), np.random.default_rng(2)
    schema, there = schema_of(universe, 2, ordered=ordered), set(range(len(universe))) - {7}
    given = tables(universe, sorted(there), rng)
    for name, table in zip("pc", given, strict=True):
        if form == "csv":
            pcsv.write_csv(table, tmp_path / f"{name}.csv")
        else:
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=5)
    first = None
    for turns, rows in ends:
        monkeypatch.setattr(DuckDBSource, "turns", turns)
        monkeypatch.setattr(duckdb, "BATCH_ROWS", rows)
        paths = [tmp_path / f"{name}.{form}" for name in "pc"]
        found = added(FamilySource(*(read(path, engine="duckdb") for path in paths)), schema)
        require_own(universe, there, found, schema, ordered=ordered)
        first = first or found
        assert found == first


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ordered", [True, False])
def test_in_databases(engine, ordered):
    universe, rng = families(2, ordered=ordered), np.random.default_rng(3)
    schema, everybody = schema_of(universe, 2, ordered=ordered), set(range(len(universe)))
    seen = []
    for left in (3, len(universe) - 4):
        there = everybody - {left}
        found = added(engine(*tables(universe, sorted(there), rng)), schema)
        require_own(universe, there, found, schema, ordered=ordered)
        seen.append({who: each for who, each in found.items() if who not in (3, left)})
    one, other = seen
    assert all(one[who] == other[who] for who in other)


@pytest.mark.parametrize("ordered", [True, False])
def test_in_one_flat_table(ordered):
    """Parents that are repeated; where a family's rows disagree, its first row says who it is."""
    universe = [f for f in families(2, ordered=ordered) if len(f[0]) == 1 and f[1]]
    schema = schema_of(universe, 2, ordered=ordered, least=1)
    rng = np.random.default_rng(4)
    for left in (None, 5):
        there = {i for i in range(len(universe)) if i != left}
        parents, children = tables(universe, sorted(there), rng)
        joined = children.set_column(0, "k", _bare(children)).join(
            parents.set_column(0, "k", _bare(parents)).filter(pa.compute.field("k").is_valid()), "k"
        )
        found = added(FamilySource(read(joined)), schema)
        require_own(universe, there, found, schema, ordered=ordered, least=1)


def _bare(table):
    return pa.array([(key or "").strip() or None for key in table.column("k").to_pylist()])

"""Two tables as one source: whose rows count, and that no family moves another's counts."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from tests.thorough import examples, some
from understudy.errors import SourceError
from understudy.privacy.sensitive import reveal
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.source import read
from understudy.source.families import FamilySource, _read, families_of

PARENTS = Schema((Identifier("k"), Category("p", ("a", "b"))))
CHILDREN = Schema((Identifier("k"), Identifier("when"), Integer("c", lower=0, upper=9)))


def schema_of(order="when", least=0, most=3):
    return FamilySchema.of(PARENTS, CHILDREN, Family("P", "k", "C", "k", most, least, order, "all"))


def tables(parents, children):
    return (
        pa.table({"k": [k for k, _ in parents], "p": [p for _, p in parents]}, _types("k", "p")),
        pa.table(
            {name: [row[i] for row in children] for i, name in enumerate(("k", "when", "c"))},
            pa.schema([("k", pa.string()), ("when", pa.string()), ("c", pa.int64())]),
        ),
    )


def _types(*names):
    return pa.schema([(name, pa.string()) for name in names])


def encoded(parents, children, schema):
    first, second = tables(parents, children)
    return families_of(read(first), read(second), schema)


def counted(parents, children, schema):
    first, second = tables(parents, children)
    bound = FamilySource(read(first), read(second)).bind(schema)
    cliques = list(itertools.combinations(range(len(schema.shape)), 2))
    return [*reveal(bound.marginals([(), *cliques]))]


def test_children_come_in_their_order_numbers_by_size():
    made = encoded([("1", "a")], [("1", "10", 1), ("1", "9", 2), ("1", "", 3)], schema_of())
    assert made.sizes.tolist() == [3]
    assert made.children[0].tolist() == [2, 1, 3]


def test_the_first_ones_count():
    rows = [("1", str(i), i) for i in range(6)]
    assert encoded([("1", "a")], rows[::-1], schema_of()).children[0].tolist() == [0, 1, 2]
    some = encoded([("1", "a")], rows, schema_of(order=None))
    assert some.sizes.tolist() == [3]
    again = encoded([("0", "b"), ("1", "a")], [("0", "1", 5), *rows[::-1]], schema_of(order=None))
    assert again.children[0][1:].tolist() == some.children[0].tolist()  # whatever else is there


def test_orphans_nameless_and_double_parents():
    parents = [("1", "b"), ("1", "a"), (None, "a"), ("2", "a")]
    children = [("1", "1", 1), ("9", "1", 2), (None, "1", 3), (" 2 ", "1", 4)]
    made = encoded(parents, children, schema_of())
    assert made.sizes.tolist() == [1, 1]
    assert made.parents[0].tolist() == [0, 0]  # of two with one key the first by its codes
    assert sorted(made.children[0].tolist()) == [1, 4]
    assert encoded(parents, children[1:], schema_of(least=1)).sizes.tolist() == [1]


FAMILIES = [
    ([("1", "a")], []),
    ([("2", "b")], [("2", "1", 3)]),
    ([("3", "a"), ("3", "b")], [("3", "2", 3), ("3", "1", 4)]),
    ([], [("4", "1", 7), ("4", "2", 8)]),  # orphans
    (
        [("5", "a")],
        [
            ("5", None, 1),
            ("5", "x", 1),
            ("5", "nan", 6),
            ("5", "3", 9),
            ("5", "3", 2),
            ("5", "1", 0),
        ],
    ),
]


@pytest.mark.parametrize(("order", "least"), some(itertools.product((None, "when"), (0, 1)), 3))
def test_a_family_moves_its_own_counts_alone(order, least):
    """For every set of families and one more: the difference is that one's, and at most M."""
    schema = schema_of(order, least)
    alone = [counted(*family, schema) for family in FAMILIES]
    for number in range(len(FAMILIES) + 1):
        for chosen in itertools.combinations(range(len(FAMILIES)), number):
            parents = [row for i in chosen for row in FAMILIES[i][0]]
            children = [row for i in chosen for row in FAMILIES[i][1]]
            found = counted(parents[::-1], children, schema)
            wanted = [
                sum((alone[i][t] for i in chosen), np.zeros_like(found[t]))
                for t in range(len(found))
            ]
            assert all((one == other).all() for one, other in zip(found, wanted, strict=True))
    for tables_of_one in alone:
        assert all(table.sum() <= schema.weight and table.min() >= 0 for table in tables_of_one)
    assert int(alone[3][0]) == 0


def test_headers_and_schemas_must_fit():
    first, second = tables([("1", "a")], [("1", "1", 1)])
    with pytest.raises(SourceError, match="lacks 'p'"):
        FamilySource(read(first.drop_columns(["p"])), read(second)).bind(schema_of())
    with pytest.raises(SourceError, match="two"):
        FamilySource(read(first), read(second)).bind(PARENTS)


def test_a_place_that_is_no_number_moves_no_other_family():
    """NaN compares with nothing: as a number it would leave all others in any order."""
    parents = [(str(i), "a") for i in range(40)]
    children = [(str(i), str(50 - at), at) for i in range(40) for at in range(3)]
    before = encoded(parents, children, schema_of())
    after = encoded(parents, [*children[:-1], ("39", "nan", 2)], schema_of())
    assert (before.children[0][:117] == after.children[0][:117]).all()


def flat(rows):
    names = ("k", "p", "when", "c")
    return pa.table(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        pa.schema([*((name, pa.string()) for name in names[:3]), ("c", pa.int64())]),
    )


def split(rows, schema):
    bound = FamilySource(read(flat(rows))).bind(schema)
    cliques = list(itertools.combinations(range(len(schema.shape)), 2))
    return [*reveal(bound.marginals([(), *cliques]))]


@pytest.mark.parametrize("order", ["when", None])
def test_a_flat_table_counts_as_the_two_that_it_is_made_of(order):
    rng = np.random.default_rng(0)
    parents = [(str(k), "ab"[k % 2]) for k in range(30)]
    children = [(k, str(w), int(rng.integers(10))) for k, _ in parents for w in range(int(k) % 5)]
    rows = [(k, dict(parents)[k], w, c) for k, w, c in children]
    schema = schema_of(order, least=1)
    both = zip(counted(parents, children, schema), split(rows, schema), strict=True)
    assert all((one == other).all() for one, other in both)


@pytest.mark.parametrize("order", ["when", None])
def test_a_parent_is_what_the_first_of_its_own_rows_says(order):
    rows = [("1", "b", "2", 1), ("1", "a", "9", 2), ("1", "b", "1", 3), ("2", "a", "1", 4)]
    made = families_of(read(flat(rows)), None, schema_of(order, least=1))
    assert made.parents[0].tolist() == ([1, 0] if order else [0, 0])
    assert sorted(made.sizes.tolist()) == [1, 3]


@pytest.mark.parametrize("order", ["when", None])
def test_no_family_of_a_flat_table_moves_anothers_counts(order):
    schema = schema_of(order, least=1, most=2)
    cells = [("a", "1", 0), ("b", "1", 3), ("b", "2", 0), (None, None, None), ("a", "x", 9)]
    families = [list(f) for n in (1, 2, 3) for f in itertools.combinations(cells, n)]
    alone = [split([("1", *row) for row in f], schema) for f in families]
    rng = np.random.default_rng(1)
    for _ in range(examples(15, 60)):
        some = rng.integers(len(families), size=3)
        rows = [(str(k), *row) for k, i in zip((1, 2, 3), some, strict=True) for row in families[i]]
        mixed = [rows[i] for i in rng.permutation(len(rows))]
        together = split(mixed, schema)
        if order is None:  # which children count is drawn by the name of the family
            assert together[0] == sum(alone[i][0] for i in some)
            continue
        for at, table in enumerate(together):
            assert (table == sum(alone[i][at] for i in some)).all()
    for each in alone:
        assert all(np.abs(table).sum() <= schema.weight for table in each)


def test_one_table_that_is_not_flat_is_refused():
    first, second = tables([("1", "a")], [("1", "1", 1)])
    with pytest.raises(SourceError, match="--children"):
        FamilySource(read(second)).bind(schema_of())
    with pytest.raises(SourceError, match=r"no column of C; give both tables.*--children"):
        FamilySource(read(first)).bind(schema_of())
    with pytest.raises(SourceError, match=r"the first is the table of C.*exchange them"):
        FamilySource(read(second), read(first)).bind(schema_of())
    named = FamilySchema.of(
        Schema((Identifier("id"), Category("p", ("a", "b")))),
        CHILDREN,
        Family("P", "id", "C", "k", 3),
    )
    with pytest.raises(SourceError, match="keys have two names"):
        FamilySource(read(second)).bind(named)


def test_an_order_in_half_precision_and_names_of_any_length():
    first, second = tables([("1", "a")], [("1", None, 1), ("1", None, 2), ("1", None, 3)])
    order = pa.array(np.array([2.5, -1, np.nan], np.float16))
    made = families_of(read(first), read(second.set_column(1, "when", order)), schema_of())
    assert made.children[0].tolist() == [2, 1, 3]
    keys, _, _ = _read(read(first), (PARENTS,), ("k", None), (0, 1))
    assert keys.type == pa.large_string()


def test_what_goes_wrong_between_tables_quotes_no_value(monkeypatch):
    first, second = tables([("1", "a")], [("1", "1", 1)])

    def broken(*_):
        raise ValueError("the value 'secret' is odd")

    monkeypatch.setattr("understudy.source.families._places", broken)
    with pytest.raises(SourceError) as raised:
        FamilySource(read(first), read(second)).bind(schema_of())
    assert "secret" not in str(raised.value)

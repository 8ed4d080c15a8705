"""Columns in an order: what follows from the rules, impossible cells, and values in possible ones."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.columns import Integer
from understudy.columns.binned import keys
from understudy.constraints.order import Bound, Edge, closed, ordered
from understudy.errors import SchemaError
from understudy.schema import Schema

HEAD = "[understudy]\nversion = 1\n"


def column(name, kind="integer", **facts):
    lines = [f'[[column]]\nname = "{name}"\ntype = "{kind}"']
    said = {True: "true", False: "false"}
    lines += [f"{k} = {said.get(v, v) if isinstance(v, bool) else v}" for k, v in facts.items()]
    return "\n".join(lines) + "\n"


def schema(columns, *says):
    return Schema.loads(HEAD + columns + "".join(f'[[rule]]\nsays = "{each}"\n' for each in says))


def everything(known, times=20):
    grid = np.meshgrid(*(np.arange(size) for size in known.shape), indexing="ij")
    return [np.tile(axis.reshape(-1), times).astype(np.uint8) for axis in grid]


HALVES = column("a", "number", lower=0, upper=1, bins=4)
HALVES += column("b", "number", lower=0, upper=1, bins=3)
DATES = column("start", "date", lower="2020-01-01", upper="2020-12-31", bins=5, nullable=True)
DATES += column("end", "date", lower="2020-03-01", upper="2021-12-31", bins=7)


@pytest.mark.parametrize(
    ("columns", "says", "holds"),
    [
        (DATES, ["start <= end"], lambda start, end: start <= end),
        (DATES, ["end > start"], lambda start, end: start < end),
        (DATES, ["start + 30 <= end"], lambda start, end: (end - start).days >= 30),
        (
            column("a", lower=0, upper=20, bins=4) + column("b", lower=5, upper=30, bins=3),
            ["a < b"], lambda a, b: a < b,
        ),
        (
            HALVES, ["a < b"], lambda a, b: a < b,
        ),
        (
            column("a", "number", lower=-2, upper=3, bins=4, decimals=1)
            + column("b", lower=-3, upper=3, bins=3),
            ["b >= a"], lambda a, b: a <= b,
        ),
        (
            column("a", "number", lower=-2, upper=3, bins=4) + column("b", lower=-3, upper=3, bins=3),
            ["a < b"], lambda a, b: a < b,
        ),
        (
            column("a", lower=0, upper=9, bins=3) + column("b", lower=0, upper=9, bins=2)
            + column("c", lower=0, upper=9, bins=4, nullable=True),
            ["a < c", "c < b"],
            lambda a, b, c: a + 1 < b and (c is None or a < c < b),
        ),
        (
            column("a", lower=0, upper=9, bins=3) + column("b", lower=0, upper=9, bins=4),
            ["a <= b + 2", "b <= a + 1"], lambda a, b: -1 <= a - b <= 2,
        ),
        (
            column("a", "category", values=[1, 4, 7]) + column("b", lower=0, upper=9, bins=3),
            ["a <= b"], lambda a, b: a <= b,
        ),
        (
            column("a", lower=0, upper=9, bins=3) + column("b", lower=0, upper=9, bins=3)
            + column("c", "boolean"),
            ["c implies a <= b"], lambda a, b, c: not c or a <= b,
        ),
    ],
)  # fmt: skip
def test_every_row_keeps_the_order(columns, says, holds):
    """From every combination of cells; the codes of decoded rows are those that were projected."""
    known = schema(columns, *says)
    codes = everything(known)
    rows = known.decode(codes, np.random.default_rng(0))
    assert known.illegal(rows) == []
    for row in rows.to_pylist():
        assert row.get("start", 0) is None or holds(*row.values())
    for before, after in zip(known.project(codes), known.encode(rows), strict=True):
        assert (before == after).all()
    # Without the rule many rows break it, and both ways of looking see them.
    bare = Schema(known.columns)
    broken = bare.decode(codes, np.random.default_rng(0))
    assert known.illegal(broken)


def test_possible_cells_stay_and_values_stay_spread():
    """Codes that can keep the rule are not moved, and what is drawn anew fills the cell."""
    columns = column("a", lower=0, upper=99, bins=1) + column("b", lower=0, upper=99, bins=1)
    known = schema(columns, "a <= b")
    codes = [np.zeros(20_000, np.uint8)] * 2
    rows = known.decode(codes, np.random.default_rng(1))
    a, b = (np.array(rows[n]) for n in "ab")
    assert (a <= b).all()
    # Two uniform values, in order: means n/3 and 2n/3; each 30 standard errors wide.
    assert abs(a.mean() - 33) < 5
    assert abs(b.mean() - 66) < 5
    assert len(np.unique(a)) == len(np.unique(b)) == 100


def test_rows_that_keep_it_are_as_without_rules():
    known = schema(DATES, "start <= end")
    codes = everything(known)
    ruled, bare = (
        s.decode(codes, np.random.default_rng(2)) for s in (known, Schema(known.columns))
    )
    same = [x == y for x, y in zip(ruled.to_pylist(), bare.to_pylist(), strict=True)]
    kept = [r["start"] is None or r["start"] <= r["end"] for r in bare.to_pylist()]
    assert same == kept


@settings(max_examples=examples(15, 60), deadline=None)
@given(
    limits=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(-3, 3)),
        min_size=1, max_size=5,
    )
)  # fmt: skip
def test_closed_edges_are_exact(limits):
    """Against brute force: pairs of values that the edges allow are those that some row has."""
    edges = [Edge(x, y, most) for x, y, most in limits if x != y]
    names = sorted({name for each in edges for name in (each.x, each.y)})
    if not edges:
        return
    span = range(8)
    rows = [
        dict(zip(names, values, strict=True))
        for values in itertools.product(span, repeat=len(names))
    ]
    rows = [r for r in rows if all(r[e.x] - r[e.y] <= e.most for e in edges)]
    try:
        found = closed(edges, {})
    except SchemaError:
        assert not rows
        return
    # Every row keeps what follows; and what follows is no more than needed, away from the ends.
    assert all(r[e.x] - r[e.y] <= e.most for r in rows for e in found)
    for each in found:
        if rows and abs(each.most) <= 4 and len(names) == 2:
            assert max(r[each.x] - r[each.y] for r in rows) == each.most


def test_doubles_in_order():
    values = np.array([-np.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.nextafter(1, 2), np.inf])
    found = keys(values)
    assert (np.diff(found) >= 0).all()
    assert found[3] == found[4] == 0
    assert found[5] == 1
    assert found[7] - found[6] == 1


def test_nothing_is_asked_of_nulls():
    columns = {"a": Integer("a", 0, 9, 2, nullable=True), "b": Integer("b", 0, 9, 2)}
    order = ordered([Bound("a", "b", Fraction(0), False)], columns)
    table = {"a": pa.array([None, 9, 3]), "b": pa.array([0, 0, 3])}
    assert order.broken(table).tolist() == [False, True, False]
    mask = order.impossible(order.edges[0])
    assert mask.tolist() == [[False, False], [True, False], [False, False]]


@pytest.mark.parametrize(
    ("columns", "says", "said"),
    [
        (DATES, ["start < end", "end < start"], "contradict"),
        (DATES, ["start + 4 <= start"], "start"),
        (DATES + column("a", lower=0, upper=9), ["a < start"], "not of one kind"),
        (DATES + column("x", "boolean"), ["x < start"], "no number"),
        (DATES, ["start <= nobody"], "nobody"),
        (HALVES, ["a + b <= b + a"], "two columns"),
        (
            HALVES, ["a <= b + 1"], "decimals",
        ),
        (
            column("a", "number", lower=0, upper=1, bins=2, dtype='"float32"')
            + column("b", "number", lower=0, upper=1, bins=2),
            ["a <= b"], "float32",
        ),
        (
            column("a", "number", lower=0, upper=9, bins=2, decimals=1) + column("b", lower=0, upper=9)
            + column("c", "number", lower=0, upper=9, bins=2, decimals=1),
            ["a <= b", "b <= c"], "different decimals",
        ),
        (DATES + column("x", "boolean"), ["x implies start < end", "start <= end"], "other rules"),
        (column("a", lower=5, upper=9) + column("b", lower=0, upper=3), ["a <= b"], "contradict"),
    ],
)  # fmt: skip
def test_orders_that_cannot_be(columns, says, said):
    with pytest.raises(SchemaError, match=said):
        schema(columns, *says)

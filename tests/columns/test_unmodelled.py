from datetime import date, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.columns import (
    Category,
    Identifier,
    Integer,
    UndeclaredBins,
    UndeclaredCategory,
    UndeclaredShape,
)
from understudy.columns.ladder import Measured, finer, first
from understudy.errors import SchemaError
from understudy.schema import Schema


def test_ids_are_fresh_and_unique():
    column = Identifier("id", "P-{:06d}")
    assert column.generate(3).to_pylist() == ["P-000001", "P-000002", "P-000003"]
    assert Identifier("id", "{}", dtype="int32").generate(2).equals(pa.array([1, 2], pa.int32()))
    assert column.legal(pa.array(["P-000001", "P-000001", None, "Q"])).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_what_is_found_is_admitted_and_no_larger_than_planned():
    column = UndeclaredCategory("c", values="discover", max_values=2)
    found = column.found(["b", "a", "OTHER", "c"])
    assert found.values == ("a", "b")
    assert found.other == "OTHER"
    assert column.admits(found)
    assert found.size <= column.largest().size
    assert not column.admits(Category("c", ("a",)))
    assert column.found([]).values == ("OTHER",)


def test_quantiles_fall_where_the_rows_are():
    column = UndeclaredBins("x", "integer", {"lower": 0, "upper": 100}, 4)
    fine = column.fine()
    counts = np.zeros(fine.size, np.int64)
    counts[: fine.size // 2] = 10
    found = column.found(counts)
    assert column.admits(found)
    assert found.edges[0] == 0
    assert found.edges[-1] == 100
    assert max(found.edges[1:-1]) <= 51
    assert column.found(np.zeros(fine.size, np.int64)) == column.largest()


def measured(column, values, sigma=1e-3):
    """All levels and the round values of a column without noise to speak of."""
    array, history = pa.array(values), []
    for level in range(5):
        edges = first(column.scale) if level == 0 else finer(column.scale, history)
        cut = column.level(edges)
        counts = np.bincount(cut.encode(array), minlength=cut.size)[: len(edges) - 1]
        history.append(Measured(edges, counts, sigma))
    if (own := column.rounds) is None:
        return history, None
    counts = np.bincount(own.encode(array), minlength=own.size)[: own.inside]
    return history, Measured(own.over.edges, counts, sigma)


SHAPES = [
    UndeclaredShape("x", "integer", {"lower": 0, "upper": 10**6}),
    UndeclaredShape("x", "integer", {}, nullable=True, dtype="int16"),
    UndeclaredShape("x", "number", {"lower": -5.0}),
    UndeclaredShape("x", "number", {"decimals": 2, "upper": 10**7}),
    UndeclaredShape("x", "number", {}, dtype="float32"),
    UndeclaredShape("x", "number", {}, dtype="decimal128(9, 2)"),
    UndeclaredShape("x", "number", {"decimals": 1}, dtype="string"),
]


@pytest.mark.parametrize("column", SHAPES, ids=repr)
def test_a_shape_is_admitted_and_no_larger_than_planned(column):
    values = np.round(np.random.default_rng(1).lognormal(5, 1, 3000))
    found = column.found(*measured(column, values), [("<", 80), ("=", 100)])
    assert column.admits(found)
    assert found.dtype == column.dtype
    assert found.size <= column.largest([("<", 80), ("=", 100)]).size
    for op, value in (("<", 80), ("=", 100)):
        inner, outer = found.compare(op, value)
        assert np.array_equal(inner, outer)
    rng = np.random.default_rng(2)
    codes = found.encode(pa.array(values))
    drawn = found.decode(codes, rng)
    assert np.array_equal(found.encode(drawn), codes)
    assert found.legal(drawn).all()
    own = np.array(drawn.to_pylist(), float)
    assert abs(own.mean() / values.mean() - 1) < 0.03
    assert not column.admits(Integer("x", 0, 9))
    other = UndeclaredShape("x", column.wanted, {**column.facts, "upper": 200}, dtype=column.dtype)
    assert not other.admits(found)


WHATEVER = [
    ("integer", {}, {}),
    ("integer", {"special": (0, 1, 5, 6, -1)}, {}),
    ("integer", {"lower": 0, "special": (0, 1, 5, 6, 9, 99)}, {}),
    ("integer", {"upper": 9, "special": tuple(range(-9, 9))}, {}),
    ("integer", {"lower": 0, "upper": 2, "special": (0, 2)}, {}),
    ("integer", {"lower": -(10**18), "upper": 10**18}, {}),
    ("integer", {"lower": 0, "upper": 1}, {"dtype": "uint8"}),
    ("integer", {"lower": -1000, "upper": 1000}, {"dtype": "float32"}),
    ("number", {}, {}),
    ("number", {"upper": 0}, {"dtype": "float32"}),
    ("number", {"lower": 0}, {"dtype": "float32"}),
    ("number", {"lower": 1e6, "upper": 1.0000001e6}, {}),
    ("number", {"special": (0.0, 1.0)}, {"dtype": "float32"}),
    ("number", {"decimals": 1, "special": tuple(i / 10 for i in range(10))}, {}),
    ("number", {}, {"dtype": "decimal128(3, 2)"}),
    ("date", {"special": (date(2000, 1, 1),)}, {}),
    ("date", {"lower": date(1, 1, 1), "upper": date(9999, 12, 31)}, {}),
    (
        "date",
        {"format": "%m/%d/%Y", "special": (date(9999, 12, 31),), "lower": date(2020, 1, 1)},
        {"dtype": "string"},
    ),
    (
        "date",
        {"format": "%m/%d/%y", "lower": date(1969, 1, 1), "upper": date(2068, 12, 31)},
        {"dtype": "string"},
    ),
    (
        "datetime",
        {
            "format": "%m/%d/%Y %I:%M %p",
            "resolution": "minute",
            "lower": datetime(1900, 1, 1),
            "upper": datetime(2099, 12, 31, 23, 59),
        },
        {"dtype": "string"},
    ),
    ("datetime", {}, {"dtype": "timestamp[ns]"}),
    ("datetime", {"upper": datetime(1999, 5, 5, 3, 4, 5)}, {}),
]
"""Types, what is declared of a column, and how it is stored."""
ANSWERS = {
    "zero": lambda n, rng: np.zeros(n, np.int64),
    "negative": lambda n, rng: np.full(n, -1000),
    "noise": lambda n, rng: rng.normal(0, 30, n).astype(np.int64),
    "anything": lambda n, rng: rng.integers(-2000, 2000, n),
    "one cell": lambda n, rng: np.where(np.arange(n) == rng.integers(n), 10**5, -50),
    "the first cell": lambda n, rng: np.where(np.arange(n) == 0, 10**5, 0),
    "the last cell": lambda n, rng: np.where(np.arange(n) == n - 1, 10**5, 0),
    "few cells": lambda n, rng: 10**4 * (rng.random(n) < 3 / n) + rng.integers(-50, 50, n),
    "full": lambda n, rng: np.full(n, 2**40),
}
"""Counts that a level may be answered with: noise can make any of them."""


def answered(column, kinds, sigma, seed):
    """All levels and the round values, answered with one kind of counts each."""
    rng, history = np.random.default_rng(seed), []
    for kind in kinds[:5]:
        edges = finer(column.scale, history) if history else first(column.scale)
        cut = column.level(edges)
        history.append(Measured(edges, cut.by_interval(ANSWERS[kind](cut.size, rng)), sigma))
    if (own := column.rounds) is None:
        return history, None
    held = own.by_interval(ANSWERS[kinds[5]](own.size, rng))
    return history, Measured(own.over.edges, held, sigma)


@settings(deadline=None, max_examples=examples(40, 2000))
@given(
    st.sampled_from(WHATEVER),
    st.one_of(
        st.sampled_from([*ANSWERS]).map(lambda kind: [kind] * 6),
        st.lists(st.sampled_from([*ANSWERS]), min_size=6, max_size=6),
    ),
    st.sampled_from([1.0, 30.0, 1e4]),
    st.lists(st.tuples(st.sampled_from(["<", "<=", ">", "="]), st.sampled_from([0, 1, 6, 99]))),
    st.integers(0, 2**32),
)
def test_whatever_is_answered_a_legal_column_is_found(what, kinds, sigma, compared, seed):
    """The answers are paid for: nothing may be refused any more."""
    wanted, facts, stored = what
    column = UndeclaredShape("x", wanted, facts, nullable=True, **stored)
    compared = compared if wanted in ("integer", "number") else []
    found = column.found(*answered(column, kinds, sigma, seed), compared)
    assert column.admits(found)
    assert found.size <= column.largest(compared).size
    codes = np.repeat(np.arange(found.size), 9)
    drawn = found.decode(codes, np.random.default_rng(seed))
    assert np.array_equal(found.encode(drawn), codes)
    assert found.legal(drawn).all()
    for op, value in compared:  # a cell that begins at the upper bound cannot be planned either
        if np.array_equal(*column.largest(compared).compare(op, value)):
            assert np.array_equal(*found.compare(op, value))
    schema = Schema((found,))
    assert Schema.loads(schema.dumps()) == schema


@pytest.mark.parametrize(
    ("wanted", "facts", "said"),
    [
        ("number", {"lower": -1e300}, r"lower = -1e\+300 is beyond 1e\+18.*edges"),
        ("integer", {"upper": 2**62}, "upper = 4611686018427387904 is beyond"),
        ("number", {"lower": 0, "upper": 1e-200}, "closer than 1e-100"),
    ],
)
def test_bounds_between_which_no_shape_is_sought(wanted, facts, said):
    with pytest.raises(SchemaError, match=said):
        UndeclaredShape("x", wanted, facts)


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_days_and_moments_have_shapes(kind):
    column = UndeclaredShape("x", kind, {"lower": "1990-01-01"}, nullable=True)
    start = np.datetime64("2015-01-01T00:00:00", "s")
    days = start + 86_400 * np.random.default_rng(1).integers(0, 900, 2000)
    values = pa.array([*days.astype("datetime64[s]").tolist(), None])
    found = column.found(*measured(column, values))
    assert column.admits(found)
    codes = found.encode(values)
    drawn = found.decode(codes, np.random.default_rng(2))
    assert np.array_equal(found.encode(drawn), codes)
    whole = [x for x in drawn.to_pylist() if x is not None]
    assert str(min(whole)) >= "2014-12"
    assert str(max(whole)) < "2017-08"
    if kind == "datetime":  # all of them at midnight, as they were
        assert np.mean([x.hour == 0 and x.minute == 0 for x in whole]) > 0.95


def test_no_more_cells_than_planned_whatever_the_values():
    """Sixty values of equal weight would each have a cell of their own."""
    column = UndeclaredShape("x", "integer", {"lower": 0, "upper": 10**4})
    values = np.repeat(np.arange(60) * 100, 1000)
    found = column.found(*measured(column, values), [("=", 1100)])
    assert found.size <= column.largest([("=", 1100)]).size
    assert {1100, 1101} <= set(found.edges)
    codes = found.encode(pa.array(values))
    assert np.array_equal(found.encode(found.decode(codes, np.random.default_rng(0))), codes)


def test_a_column_that_is_all_at_its_bound():
    """Nothing else is found: its cell begins below the bound."""
    column = UndeclaredShape("x", wanted="number", facts={"upper": -1.0})
    history = []
    for _ in range(5):
        edges = finer(column.scale, history) if history else first(column.scale)
        held = [1000.0 * (edge == -1.0) for edge in edges[:-1]]
        history.append(Measured(edges, np.array(held), 1.0))
    found = column.found(history, None)
    assert found.edges[-1] == -1.0
    codes = np.repeat(np.arange(found.size), 20)
    assert np.array_equal(found.encode(found.decode(codes, np.random.default_rng(0))), codes)


def test_rules_may_name_special_numbers():
    column = UndeclaredShape("x", wanted="number", facts={"special": (0.1,)}, dtype="float32")
    assert column.largest([("=", 0.1)]) == column.largest()


@pytest.mark.parametrize("at", [0, -2])
def test_whole_numbers_between_the_widest_bounds(at):
    """Nothing is found between the bounds, and no leaf is wider than 64 bits can say."""
    bounds = {"lower": -(10**18), "upper": 10**18}
    column = UndeclaredShape("x", wanted="integer", facts=bounds)
    edges = first(column.scale)
    held = np.zeros(len(edges) - 1)
    held[at + 1 if at < 0 else at] = 1000.0
    found = column.found([Measured(edges, held, 1.0)] * 5, None)
    widths = [after - leaf for leaf, after in pairwise(found.shape.leaves)]
    assert max(widths) < 2**63
    codes = np.repeat(np.arange(found.size), 20)
    assert np.array_equal(found.encode(found.decode(codes, np.random.default_rng(0))), codes)


def test_a_level_reads_special_days_by_the_format_of_the_column():
    facts = {"format": "%m/%d/%Y", "special": (date(9999, 12, 31),), "lower": date(2020, 1, 1)}
    column = UndeclaredShape("x", "date", {**facts, "upper": date(2021, 12, 31)}, dtype="string")
    cut = column.level(first(column.scale))
    codes = cut.encode(pa.array(["12/31/9999", "06/30/2020"]))
    assert codes[0] == len(cut.grid)
    assert codes[1] < len(cut.grid)

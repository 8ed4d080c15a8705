"""How round values are, counted alike wherever the rows are."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.source.engines import ENGINES, same_counts
from understudy.columns.kinds import Kinds
from understudy.columns.ladder import Scale, rounds
from understudy.columns.roundness import Roundness
from understudy.errors import SchemaError, WorkloadError
from understudy.schema import Datetime, Integer, Number, Schema

EDGES = (-10_000, -99, -9, 0, 1, 10, 100, 10_001)
WHOLE = Roundness.of(Integer("w", edges=EDGES, nullable=True), Kinds((50, 10, 5)))
_CENTS = rounds(Scale(0, 1000, Fraction(1, 100)))
CENTS = Roundness.of(Number("c", edges=_CENTS.edges, decimals=2), _CENTS.kinds)
FIRST, LAST = datetime(1969, 1, 1), datetime(2030, 1, 1)
MOMENTS = Roundness.of(Datetime("m", edges=(FIRST, LAST), nullable=True), Kinds((86_400, 3600, 60)))
_OWED = rounds(Scale(-1000, 1000, Fraction(1, 100)))
OWED = Roundness.of(Number("o", edges=_OWED.edges, decimals=2, nullable=True), _OWED.kinds)


def test_the_cell_and_the_first_step_that_divides():
    given = [0, 7, -7, 5, 40, -150, 123, 12_345, None]
    codes = [divmod(int(code), 4) for code in WHOLE.encode(pa.array(given))]
    assert codes == [(3, 0), (4, 3), (2, 3), (4, 2), (5, 1), (0, 0), (6, 3), (6, 3), (7, 0)]
    assert WHOLE.size == 4 * 7 + 1 == len(WHOLE.labels())


def test_endings_on_either_side_of_zero():
    given = [5.99, -5.99, 5.95, -5.95, 2.75, -2.25, 0.49, -0.15, 1.5, 7.77, 0.0]
    kinds = [*_OWED.kinds.classed, "other"]
    found = [kinds[int(code) % len(kinds)] for code in OWED.encode(pa.array(given))]
    ends = [(100, 99), (100, 95), (25, 0)]
    assert found[:6] == [end for end in ends for _ in range(2)]
    assert found[6:] == [(10, 9), (5, 0), (50, 0), "other", kinds[0]]


def test_a_null_that_is_not_allowed_is_the_lower_bound():
    assert CENTS.encode(pa.array([None, np.nan, 0.0], pa.float64())).tolist() == [0, 0, 0]


def test_it_is_neither_written_nor_asked_for():
    with pytest.raises(SchemaError, match="never written"):
        WHOLE.decode(np.array([0]), np.random.default_rng(0))
    with pytest.raises(WorkloadError, match="never asked"):
        WHOLE.compare("=", 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_it_alike(engine):
    rng = np.random.default_rng(1)
    whole = [*rng.integers(-300, 300, 40).tolist(), 10**9, -(10**12), 10_000, 0, None]
    cents = [*np.round(rng.exponential(30, 30), 2).tolist(), 0.005, 12.345, 0.125, 0.375]
    cents += [np.inf, -np.inf, 1e300, -3.0, None, np.nan, 99.99, 100.0, 5.0, 0.0, 1000.01]
    start = datetime(1969, 12, 31, 22)
    moments = [start + timedelta(minutes=int(x)) for x in rng.integers(0, 400, 20)]
    moments += [start + timedelta(microseconds=int(x)) for x in rng.integers(0, 10**10, 10)]
    moments += [datetime(2024, 5, day + 1) for day in range(9)]
    moments += [
        datetime(1900, 1, 1, 1, 1, 1),
        datetime(2500, 1, 1, 1, 1, 1),
        LAST,
        FIRST,
        None,
        None,
    ]
    table = pa.table(
        {
            "w": pa.array(whole, pa.int64()),
            "c": pa.array(cents, pa.float64()),
            "m": pa.array(moments, pa.timestamp("us")),
        }
    )
    same_counts(engine(table), table, Schema((WHOLE, CENTS, MOMENTS)), [(0,), (1,), (2,), (0, 1)])


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_endings_alike(engine):
    """As whole numbers, doubles and decimals, on either side of zero."""
    rng = np.random.default_rng(2)
    cents = [*rng.integers(-100_001, 100_001, 60).tolist(), *range(-100, 101, 5), 99, -99, 9, -9]
    for type_, values in {
        pa.float64(): [cent / 100 for cent in cents],
        pa.decimal128(12, 2): [Decimal(cent).scaleb(-2) for cent in cents],
        pa.int64(): cents,
    }.items():
        table = pa.table({"o": pa.array([*values, None], type_)})
        same_counts(engine(table), table, Schema((OWED,)), [(0,)])
    whole = Roundness.of(Integer("o", edges=(-(10**5), 0, 10**5)), rounds(Scale()).kinds)
    same_counts(engine(table), table, Schema((whole,)), [(0,)])


@pytest.mark.parametrize("engine", ENGINES)
def test_stored_as_decimals_doubles_and_days(engine):
    days = [datetime(2024, 1, 1) + timedelta(days=i) for i in range(4)]
    table = pa.table(
        {
            "w": pa.array([2.5, 3.5, 149.6, None], pa.float64()),
            "c": pa.array([1, 250, 100, 7], pa.int64()),
            "m": pa.array(days).cast(pa.date32()),
        }
    )
    same_counts(engine(table), table, Schema((WHOLE, CENTS, MOMENTS)), [(0,), (1,), (2,)])
    units = [Decimal(unit).scaleb(-2) for unit in (1250, 1233, 0, 100_001)]
    cents = pa.table({"c": pa.array(units, pa.decimal128(12, 2))})
    same_counts(engine(cents), cents, Schema((CENTS,)), [(0,)])


def test_every_code_has_a_label():
    over = Integer("x", edges=(0, 10, 20), special=("N", 99), nullable=True)
    column = Roundness.of(over, Kinds((100, 10), (99, 0)))
    assert len(column.labels()) == column.size
    assert column.labels()[:3] == ["0..9, times 100 plus 99", "0..9, times 10", "0..9, other"]
    assert column.labels()[-3:] == ["N", "99", "NULL"]

import numpy as np
import pyarrow as pa
import pytest

from understudy.columns import Integer, Number
from understudy.columns.numeric import exact_number
from understudy.errors import WorkloadError

RNG = np.random.default_rng


def test_large_unsigned_and_wide_decimals_clamp():
    column = Integer("x", 0, 9)
    assert column.encode(pa.array([2**64 - 1, 1], pa.uint64())).tolist() == [9, 1]
    assert column.encode(pa.array([10**30], pa.decimal128(38, 0))).tolist() == [9]


def test_numbers_never_leave_their_cell_whatever_the_type():
    for dtype in ("float64", "float32", "float16"):
        column = Number("x", 0.1, 0.7, 3, dtype=dtype)
        codes = np.repeat(np.arange(3), 20_000)
        values = column.decode(codes, RNG(0)).to_numpy().astype(float)
        assert values.min() >= 0.1
        assert values.max() <= 0.7
        np.testing.assert_array_equal(column.encode(pa.array(values)), codes)


def test_integers_are_uniform_within_their_bin():
    column = Integer("x", 0, 9, 2)
    drawn = column.decode(np.zeros(50_000, int), RNG(0)).to_numpy()
    counts = np.bincount(drawn, minlength=10)
    assert (counts[5:] == 0).all()
    assert np.abs(counts[:5] - 10_000).max() < 500


def test_decimals_are_kept():
    column = Number("x", 0, 1, 3, decimals=1)
    drawn = column.decode(np.repeat(np.arange(3), 500), RNG(0)).to_pylist()
    assert set(drawn) == {i / 10 for i in range(11)}


def test_cut_cells_touch():
    inner, outer = Number("x", 0, 10, 5).compare("<", 5)
    assert inner.tolist() == [True, True, False, False, False]
    assert outer.tolist() == [True, True, True, False, False]
    inner, outer = Number("x", 0, 10, 5).compare("<", 4)
    assert inner.tolist() == outer.tolist() == [True, True, False, False, False]
    inner, outer = Number("x", 0, 10, 5, decimals=1).compare("=", 4.05)
    assert not outer.any()


@pytest.mark.parametrize("text", ["1e99999999", "1E-0099999", "1e1_000_000", "x"])
def test_numbers_that_are_none_or_take_for_ever(text):
    with pytest.raises(ValueError, match=r"exponent|literal"):
        exact_number(text)
    with pytest.raises(WorkloadError, match="not a finite number"):
        Number("x", 0, 1, 2).compare("=", text)
    assert exact_number("-1.5e3") == -1500


def test_a_special_number_of_a_narrow_type_is_found():
    """0.1 is read as the nearest float32, as rows are."""
    column = Number("x", 0, 1, 2, dtype="float32", special=(0.1,))
    inner, outer = column.compare("=", 0.1)
    assert inner.tolist() == outer.tolist() == [False, False, True]
    values = pa.array([0.1, 0.5], pa.float32())
    assert column.evaluate("=", 0.1, values).tolist() == [True, False]

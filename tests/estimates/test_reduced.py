"""Tables summed onto columns, and pooled."""

import numpy as np
import pytest

from understudy.estimates.reduced import reduced
from understudy.models import Measured

SHAPE = (3, 2, 4)


def by_clique(tables):
    return {table.clique: table for table in tables}


def test_tables_are_summed_over_other_columns():
    values = np.arange(24.0).reshape(SHAPE)
    found = by_clique(reduced([Measured((0, 1, 2), values, 2.0)], (0, 1), SHAPE))
    assert np.array_equal(found[0, 1].values, values.sum(axis=2))
    assert found[0, 1].sigma == pytest.approx(2.0 * 4**0.5)


def test_equal_tables_are_pooled_by_precision():
    one, two = np.array([10.0, 20, 30]), np.array([16.0, 20, 24])
    wide = np.tile(one[:, None] / 2, 2)
    tables = [Measured((0,), one, 1.0), Measured((0,), two, 2.0), Measured((0, 1), wide, 1.0)]
    (found,) = reduced(tables, (0,), SHAPE)
    precision = 1 + 1 / 4 + 1 / 2
    assert found.sigma == pytest.approx(precision**-0.5)
    assert found.values == pytest.approx((one + two / 4 + one / 2) / precision)


def test_labels_stay_and_differ():
    labels = (np.array([0, 0, 1]), np.array([0, 1]))
    merged = Measured((0, 1), np.array([[3.0, 4], [5, 6]]), 1.0, labels)
    whole = Measured((0, 1), np.ones((3, 2)), 1.0)
    found = reduced([merged, whole, merged], (0, 1), SHAPE)
    assert sorted(table.values.shape for table in found) == [(2, 2), (3, 2)]
    coarse = next(table for table in found if table.values.shape == (2, 2))
    assert coarse.sigma == pytest.approx(0.5**0.5)


def test_tables_without_the_columns_tell_of_the_rows():
    (found,) = reduced([Measured((2,), np.array([1.0, 2, 3, 4]), 3.0)], (0, 1), SHAPE)
    assert (found.clique, found.sigma) == ((), pytest.approx(6.0))
    assert float(found.values) == pytest.approx(10.0)

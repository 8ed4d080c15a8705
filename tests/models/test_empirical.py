"""Listed records: their marginals, rows in equal shares, and what is refused."""

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.models import Empirical, from_arrays

SHAPE = (3, 2)
RECORDS = np.array([[0, 1], [2, 0], [2, 0], [1, 1]])


def test_marginals_are_shares_of_the_records_in_the_order_asked():
    model = Empirical.of(SHAPE, RECORDS)
    np.testing.assert_array_equal(model.marginal((0, 1)), [[0, 0.25], [0, 0.25], [0.5, 0]])
    np.testing.assert_array_equal(model.marginal((1, 0)), model.marginal((0, 1)).T)
    assert model.marginal(()) == 1
    with pytest.raises(InputError, match="too many"):
        Empirical.of((10**5, 10**5), RECORDS).marginal((0, 1))


@pytest.mark.parametrize("rows", [0, 3, 4, 11])
def test_every_record_is_drawn_equally_often_up_to_one(rows):
    model = Empirical.of((4,), np.arange(4)[:, None])
    (drawn,) = model.sample(rows, np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=4)
    assert counts.sum() == rows
    assert counts.max() - counts.min() <= 1


def test_what_is_written_is_read_back():
    model = Empirical.of(SHAPE, RECORDS)
    again = from_arrays(*model.to_arrays())
    for one, other in zip(model.codes, again.codes, strict=True):
        assert one.dtype == np.uint8
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((np.array([0]),), "1 columns of codes for 2"),
        ((np.array([0]), np.array([0, 1])), "one length"),
        ((np.array([], int), np.array([], int)), "at least one"),
        ((np.array([0.5]), np.array([0])), "does not hold codes"),
        ((np.array([3]), np.array([0])), "column 0 of the model leaves its domain"),
    ],
)
def test_codes_that_cannot_be_are_refused(codes, said):
    with pytest.raises(InputError, match=said):
        Empirical(SHAPE, codes)

"""Scores of records against rows and models, against naive twins."""

import numpy as np
import pytest

from understudy.audit import rows
from understudy.errors import InputError
from understudy.models import Decomposable

SHAPE, ORDERED = (3, 5), (False, True)


ROWS = np.array([[0, 0], [1, 4], [2, 2]])


def test_distance_against_a_loop():
    rng = np.random.default_rng(4)
    records = np.column_stack([rng.integers(0, n, 50) for n in SHAPE])
    found = rows.distance(records, ROWS, SHAPE, ORDERED)
    for record, value in zip(records, found, strict=True):
        apart = [(record[0] != r[0]) / 2 + abs(record[1] - r[1]) / 8 for r in ROWS]
        assert value == pytest.approx(-min(apart))
    assert rows.distance(ROWS, ROWS, SHAPE, ORDERED).tolist() == [0, 0, 0]


def test_density_sums_to_one_and_prefers_what_was_copied():
    every = np.array([[a, b] for a in range(3) for b in range(5)])
    reference = every
    found = rows.density(every, ROWS, reference, SHAPE)
    assert (found[[0, 9, 12]] > 0).all()  # the three rows themselves
    kernel = np.exp(rows._log_kernel(every, ROWS, SHAPE, 0.3))
    assert kernel.sum() == pytest.approx(1)


def test_likelihood_is_the_log_of_the_model_where_it_is_one_table():
    table = np.arange(1.0, 16).reshape(SHAPE)
    model = Decomposable(SHAPE, ((0, 1),), (table / table.sum(),))
    found = rows.likelihood(ROWS, model, [(0, 1)])
    assert np.exp(found) == pytest.approx([1 / 120, 10 / 120, 13 / 120])


def test_what_row_attacks_refuse():
    none = np.zeros((0, 2), int)
    with pytest.raises(InputError, match="no synthetic rows"):
        rows.distance(ROWS, none, SHAPE, ORDERED)
    with pytest.raises(InputError, match="no synthetic rows"):
        rows.density(ROWS, none, ROWS, SHAPE)

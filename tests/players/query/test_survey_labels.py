"""Values that are measured together, and how many cells that leaves."""

import math

import numpy as np
import pytest

from tests.models.test_measured import require_onto, shares_of
from understudy.models.measured import merge, merge_all
from understudy.players.query.survey import (
    Coarse,
    adjacent,
    merged_values,
    ordered_labels,
    pair_labels,
)


@pytest.mark.parametrize("most", [1, 2, 3, 10, 50, 500])
@pytest.mark.parametrize("key", range(6))
def test_adjacent_runs(key, most):
    shares = shares_of(key, 60)
    labels = adjacent(shares, most)
    require_onto(labels, 60)
    assert (np.diff(labels) >= 0).all()
    assert labels.max() + 1 <= max(most, 1)
    if most >= 60:
        assert labels.tolist() == list(range(60))


def test_runs_have_about_equal_mass_and_frequent_values_stay_alone():
    shares = np.full(100, 0.006)
    shares[40] = 0.4
    labels = adjacent(shares, 10)
    mass = np.bincount(labels, shares / shares.sum())
    alone = labels[40]
    assert mass[alone] >= 0.4
    assert np.delete(mass, alone).max() <= 0.11
    even = np.bincount(adjacent(np.ones(100), 10))
    assert even.tolist() == [10] * 10


@pytest.mark.parametrize("shares", [np.zeros(7), np.full(7, -1.0), np.eye(7)[3]], ids=str)
def test_shares_that_say_nothing_still_give_labels(shares):
    require_onto(adjacent(shares, 3), 7)


@pytest.mark.parametrize("cells", [4.0, 30.0, 100.0, 1_000.0])
@pytest.mark.parametrize(
    "shape", [(10, 10), (100, 3), (2, 500), (40, 30, 20), (300, 2, 2), (1, 50)]
)
def test_labels_make_tables_of_about_the_cells_asked_for(shape, cells):
    shares = tuple(shares_of(i, size) + 1e-3 for i, size in enumerate(shape))
    labels = pair_labels(shares, cells)
    if math.prod(shape) <= cells:
        assert labels is None
        return
    assert labels is not None
    for label, size in zip(labels, shape, strict=True):
        require_onto(label, size)
    made = [int(label.max()) + 1 for label in labels]
    # Two values a column at least, otherwise never more than asked for.
    assert math.prod(made) <= max(cells, math.prod(min(2, size) for size in shape) * 2)
    even = cells ** (1 / len(shape))
    for label, size, count in zip(labels, shape, made, strict=True):
        if size <= even:
            assert count == size
            assert label.tolist() == list(range(size))


def test_even_shares_reach_the_cells():
    labels = pair_labels((np.ones(100), np.ones(100)), 400.0)
    assert [int(label.max()) + 1 for label in labels] == [20, 20]


def test_values_beside_the_order_stay_by_themselves():
    shares = (np.ones(12) / 12, np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]))
    labels = ordered_labels(shares, (10, 7), 12.0)
    inner = pair_labels((shares[0][:10], shares[1]), 12.0)
    assert labels[0].tolist() == [*inner[0].tolist(), inner[0].max() + 1, inner[0].max() + 2]
    assert labels[1].tolist() == inner[1].tolist()
    require_onto(labels[0], 12)
    assert ordered_labels(shares, (10, 7), 70.0) is None


def test_many_tables_are_merged_as_each_of_them_alone():
    shares = [np.ones(12) / 12, np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]), np.ones(2) / 2]
    cliques = [(0, 1), (0, 1), (0, 1), (1, 2), (0, 2)]
    wanted = [None, Coarse(12.0), Coarse(12.0, (10, 7)), Coarse(100.0), Coarse(0.5)]
    found = merged_values(shares, cliques, wanted)
    alone = [
        None,
        pair_labels((shares[0], shares[1]), 12.0),
        ordered_labels((shares[0], shares[1]), (10, 7), 12.0),
        None,
        pair_labels((shares[0], shares[2]), 4.0),  # never fewer than four cells
    ]
    tables = [np.multiply.outer(shares[i], shares[j]) for i, j in cliques]
    for labels, own, table, merged in zip(
        found, alone, tables, merge_all(tables, found), strict=True
    ):
        assert (labels is None) == (own is None)
        if own is None:
            assert merged is table
        else:
            assert all(map(np.array_equal, labels, own))
            np.testing.assert_array_equal(merged, merge(table, own))

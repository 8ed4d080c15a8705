"""Conditioned and matched models: exact where records are many, nearer to the truth where few are."""

from itertools import combinations

import numpy as np
import pytest

from understudy.models import Decomposable, Empirical, Weighted
from understudy.models import conditioning as module
from understudy.models.conditioning import Part, Shares, as_records, conditioned, matched

SHAPE = (4, 5, 3, 4, 6)


def anything(codes):
    return np.ones(len(codes[0]), np.bool_)


def has(column, value):
    return Part((column,), lambda codes: np.asarray(codes[column]) == value)


def drawn(rows, key, given=None):
    """Rows of a chain 0-1-2-3-4 with strong steps: values are near those of the column before."""
    rng = np.random.default_rng(key)
    columns = [rng.choice(4, rows, p=[0.6, 0.3, 0.08, 0.02])]
    if given is not None:
        columns = [np.full(rows, given)]
    for size in SHAPE[1:]:
        means = columns[-1][:, None] % size
        law = np.exp(-1.2 * np.abs(np.arange(size)[None] - means))
        law = np.cumsum(law / law.sum(axis=1, keepdims=True), axis=1)
        columns.append((rng.random((rows, 1)) > law).sum(axis=1).clip(0, size - 1))
    return columns


def variation(codes, weights, others):
    """The mean total variation over pairs of columns."""
    found = []
    for i, j in combinations(range(len(SHAPE)), 2):
        size = SHAPE[i] * SHAPE[j]
        a = np.bincount(codes[i].astype(np.int64) * SHAPE[j] + codes[j], weights, size)
        b = np.bincount(others[i].astype(np.int64) * SHAPE[j] + others[j], None, size)
        found.append(np.abs(a / a.sum() - b / b.sum()).sum() / 2)
    return float(np.mean(found))


def model(rows=40_000, key=0):
    return Weighted(SHAPE, tuple(drawn(rows, key)), np.ones(rows, np.float32))


def test_many_records_inside_are_taken_alone():
    made = model()
    given = conditioned(made, [has(0, 0)], anything)
    inside = made.codes[0] == 0
    assert given.size == np.count_nonzero(inside)
    for own, column in zip(given.codes, made.codes, strict=True):
        assert np.array_equal(own, column[inside])


def test_few_records_inside_are_helped_by_the_others():
    """Some dozen records of 4,000: against the truth, moved ones are nearer than they."""
    made = model(4_000)
    event = [has(0, 3), has(4, 0)]
    inside = (made.codes[0] == 3) & (made.codes[4] == 0)
    assert 3 <= np.count_nonzero(inside) <= 60
    truth = drawn(300_000, 1, given=3)
    truth = [column[truth[4] == 0] for column in truth]
    given = conditioned(made, event, anything)
    assert (given.codes[0] == 3).all()
    assert (given.codes[4] == 0).all()
    alone = variation([column[inside] for column in made.codes], None, truth)
    moved = variation(given.codes, given.weights, truth)
    assert moved < 0.8 * alone
    distinct = np.unique(np.stack(given.codes), axis=1).shape[1]
    assert distinct > 2 * np.unique(np.stack(made.codes)[:, inside], axis=1).shape[1]


def test_columns_that_a_condition_ties_together_move_together():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (3, 5_000))
    made = Weighted((4, 4, 4), tuple(codes), np.ones(5_000, np.float32))
    tied = Part((0, 1), lambda codes: np.asarray(codes[0], int) + codes[1] == 6)
    also = Part((1, 2), lambda codes: np.asarray(codes[1]) >= codes[2])
    given = conditioned(made, [tied, also], anything)
    assert tied.holds(given.codes).all()
    assert also.holds(given.codes).all()


def test_records_that_may_not_stand_are_left_out():
    made = model()
    given = conditioned(made, [has(0, 3)], lambda codes: np.asarray(codes[1]) != 4)
    fresh = conditioned(made, [has(0, 3)], anything)
    inside = made.codes[0] == 3
    outright = made.codes[1][inside] == 4
    assert np.count_nonzero(given.codes[1] == 4) == np.count_nonzero(outright)
    assert np.count_nonzero(fresh.codes[1] == 4) > np.count_nonzero(outright)


def test_an_event_without_records_is_refused():
    made = Weighted((2, 2), (np.array([0, 0]), np.array([0, 1])), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="no record"):
        conditioned(made, [has(0, 1)], anything)


def test_more_parts_than_are_told_apart():
    rng = np.random.default_rng(0)
    codes = tuple(rng.integers(0, 2, (9, 20_000)))
    made = Weighted((2,) * 9, codes, np.ones(20_000, np.float32))
    given = conditioned(made, [has(i, 1) for i in range(8)], anything)
    assert all((column == 1).all() for column in given.codes[:8])
    assert abs(given.marginal((8,))[1] - 0.5) < 0.1


def shares(column, *wanted):
    return Shares((column,), lambda codes: np.asarray(codes[column], np.int64), np.array(wanted))


def test_shares_are_met_and_the_rest_follows():
    made = model()
    raked, off = matched(
        made, [shares(0, 0.25, 0.25, 0.25, 0.25), shares(2, 0.2, 0.5, 0.3)], anything
    )
    assert off < 1e-6
    assert np.allclose(raked.marginal((0,)), 0.25, atol=1e-4)
    assert np.allclose(raked.marginal((2,)), [0.2, 0.5, 0.3], atol=1e-4)
    # Alone, a share leaves everything else as it is given the column.
    raked, _ = matched(made, [shares(0, 0.3, 0.5, 0.15, 0.05)], anything)
    before, after = made.marginal((0, 1)), raked.marginal((0, 1))
    assert np.allclose(after[0] / after[0].sum(), before[0] / before[0].sum(), atol=1e-4)


def test_a_rare_value_that_becomes_common_gets_moved_records():
    made = model()
    raked, off = matched(made, [shares(0, 0.25, 0.25, 0.0, 0.5)], anything)
    assert off < 1e-6
    few = np.count_nonzero(made.codes[0] == 3)
    assert few < module.ENOUGH
    assert np.count_nonzero(raked.codes[0] == 3) > 10 * few
    truth = drawn(200_000, 2, given=3)
    own = raked.codes[0] == 3
    assert variation([c[own] for c in raked.codes], raked.weights[own], truth) < 0.04


def test_shares_that_exclude_each_other_stay_off():
    codes = (np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    made = Weighted((2, 2), codes, np.ones(4, np.float32))
    assert matched(made, [shares(0, 0.9, 0.1), shares(1, 0.1, 0.9)], anything)[1] > 0.3


@pytest.mark.parametrize("kind", ["tables", "list"])
def test_every_model_has_records(kind):
    table = np.random.default_rng(0).random((3, 2))
    made = Decomposable.joint(table)
    if kind == "list":
        made = Empirical.of((3, 2), np.array([[0, 1], [2, 0], [2, 0]]))
    records = as_records(made)
    assert np.allclose(records.marginal((0, 1)), made.marginal((0, 1)), atol=1e-4)
    assert as_records(records) is records

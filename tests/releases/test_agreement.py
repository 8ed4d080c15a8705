"""Rows against their own measurements: noise alone is no contradiction, a failed fit is one."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from understudy.models import Measured, Weighted
from understudy.releases.agreement import _limit, agreement, contradiction

SHAPE, ROWS, NAMES = (3, 4, 5), 6_000, ("a", "b", "c")


def codes(key=0):
    rng = np.random.default_rng(key)
    hidden = rng.integers(3, size=ROWS)
    return [(hidden + rng.integers(2, size=ROWS)) % size for size in SHAPE]


def tables(rows, sigma, key=1):
    rng, out = np.random.default_rng(key), []
    for clique in [(0,), (1,), (2,), *combinations(range(3), 2)]:
        table = np.zeros(tuple(SHAPE[i] for i in clique))
        np.add.at(table, tuple(rows[i] for i in clique), 1)
        out.append(Measured(clique, table + rng.normal(0, sigma, table.shape), sigma))
    return [out]


def model(weights):
    return Weighted(SHAPE, tuple(codes()), np.asarray(weights, np.float32))


def test_effective_records_are_those_of_equal_weight():
    even = agreement(model(np.ones(ROWS)), codes(), [], ROWS, NAMES)
    assert even == {"records": ROWS, "effective_records": ROWS}
    half = agreement(model(np.arange(ROWS) % 2), codes(), [], ROWS, NAMES)
    assert half["effective_records"] == ROWS // 2


@pytest.mark.parametrize("sigma", [5.0, 50.0])
def test_rows_that_were_measured_agree(sigma):
    found = agreement(model(np.ones(ROWS)), codes(), tables(codes(), sigma), ROWS, NAMES)
    assert 0 < found["largest_residual"] < found["residual_limit"]
    assert contradiction(found) is None


def test_rows_that_are_off_are_named_with_their_columns():
    wrong = [*codes()[:2], np.zeros(ROWS, int)]
    found = agreement(model(np.ones(ROWS)), wrong, tables(codes(), 20.0), ROWS, NAMES)
    assert found["largest_residual"] > found["residual_limit"]
    assert "c" in found["largest_residual_in"]
    told = contradiction(found)
    assert told is not None
    assert not told.small
    assert 0.1 < found["largest_residual_share"] < 1
    assert f"up to {100 * found['largest_residual_share']:.2g} percentage points" in str(told)
    assert found["largest_residual_in"] in str(told)


def test_a_miss_of_few_rows_is_a_matter_of_detail_however_many_deviations_it_is():
    off = [column.copy() for column in codes()]
    off[0][:200] = 2 - off[0][:200]
    found = agreement(model(np.ones(ROWS)), off, tables(codes(), 1.0), ROWS, NAMES)
    told = contradiction(found)
    assert told is not None
    assert told.small
    assert told.deviations > 2 * told.limit
    assert "Do not use" not in str(told)
    assert "Differences of that size in it may be the model's" in str(told)


def test_twice_as_many_rows_say_the_same():
    twice = [np.concatenate([column, column]) for column in codes()]
    one = agreement(model(np.ones(ROWS)), codes(), tables(codes(), 20.0), ROWS, NAMES)
    two = agreement(model(np.ones(ROWS)), twice, tables(codes(), 20.0), ROWS, NAMES)
    assert one == two


def test_repeated_measurements_are_pooled():
    """Four tables of deviation 40 are one of deviation 20."""
    one = tables(codes(), 20.0)[0]
    four = [[Measured(m.clique, m.values, 40.0) for m in one] for _ in range(4)]
    model_ = model(np.ones(ROWS))
    assert agreement(model_, codes(), four, ROWS, NAMES) == agreement(
        model_, codes(), [one], ROWS, NAMES
    )


def test_the_limit_counts_the_cells():
    assert _limit(1) == pytest.approx(4.5)
    assert 10**6 * norm.sf(_limit(10**6)) == pytest.approx(norm.sf(4.5), rel=1e-6)


def test_a_release_without_tables_says_nothing():
    assert contradiction({}) is None

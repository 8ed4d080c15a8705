"""Shares, means, sums, differences, correlations and odds ratios on weighted cells."""

import numpy as np
import pytest

from tests.estimates import tiny
from tests.estimates.test_frame import frame
from understudy.estimates.frame import condition
from understudy.estimates.means import Correlation, Difference, Mean, Odds, Total
from understudy.estimates.statistic import Domain, Undefined

W = tiny.truth().reshape(-1)
NUMBER = 2.0 * tiny.ALL[2] + 0.5
B = tiny.ALL[1] == 1
COND, CUT = condition("b", tiny.SCHEMA), condition("x >= 5", tiny.SCHEMA)
MALE = Domain(COND, (tiny.A, 2))
HELD = B * (tiny.ALL[0] == 2)
CASES = {
    "share": (Mean(("",), Domain(), CUT), W @ CUT.share[tiny.ALL[2]]),
    "mean": (Mean(("",), Domain(), tiny.X), W @ NUMBER),
    "of some": (Mean(("",), MALE, tiny.X), (W * HELD) @ NUMBER / (W @ HELD)),
    "sum": (Total(("",), MALE, tiny.X), (W * HELD) @ NUMBER),
    "difference": (
        Difference(("",), Mean(("",), MALE, tiny.X), Mean(("",), Domain(), tiny.X)),
        (W * HELD) @ NUMBER / (W @ HELD) - W @ NUMBER,
    ),
    "odds": (
        Odds(("",), Domain(), (COND, condition("a = 'q'", tiny.SCHEMA))),
        np.log(
            W[B & (tiny.ALL[0] == 1)].sum() * W[~B & (tiny.ALL[0] != 1)].sum()
            / W[B & (tiny.ALL[0] != 1)].sum() / W[~B & (tiny.ALL[0] == 1)].sum()
        ),
    ),
}  # fmt: skip


def check_influence(statistic, at, weights, near=1e-3):
    """Influence functions against finite differences, and their mean against 0."""
    fitted = statistic.fit(at, weights)
    influence = fitted.influence(at)
    assert weights @ influence == pytest.approx(np.zeros(influence.shape[1]), abs=1e-9)
    step = 1e-6
    for k in range(0, len(weights), 7):
        moved = (1 - step) * weights
        moved[k] += step
        other = statistic.fit(at, moved)
        values = (np.concatenate([other.values, other.shares])
                  - np.concatenate([fitted.values, fitted.shares])) / step  # fmt: skip
        assert influence[k] == pytest.approx(values, rel=near, abs=near)


@pytest.mark.parametrize("name", CASES)
def test_values_and_influence(name):
    statistic, wanted = CASES[name]
    assert statistic.fit(frame(), W).values[0] == pytest.approx(wanted)
    check_influence(statistic, frame(), W)


def test_correlation_has_the_variance_inside_cells():
    statistic = Correlation(("",), Domain(), (tiny.X, tiny.B))
    at = frame(numbers=(1, 2))
    fitted = statistic.fit(at, W)
    x, b = NUMBER - W @ NUMBER, B - W @ B
    inside = 0.25
    rho = W @ (x * b) / np.sqrt((W @ x**2 + inside) * (W @ b**2))
    assert fitted.values[0] == pytest.approx(rho)
    alone = W @ (x * b) / np.sqrt((W @ x**2) * (W @ b**2))  # related inside as between cells
    assert fitted.values[0] + np.sign(rho) * fitted.hidden[0] == pytest.approx(alone)
    check_influence(statistic, at, W)


def test_odds_are_shown_as_such():
    assert CASES["odds"][0].shown(np.array([0.0, np.log(2)])).tolist() == pytest.approx([1, 2])


def test_what_has_no_value_says_so():
    nobody = W * ~B / (W @ ~B)
    with pytest.raises(Undefined, match="no row"):
        Mean(("",), Domain(COND), tiny.X).fit(frame(), nobody)
    with pytest.raises(Undefined, match="empty"):
        CASES["odds"][0].fit(frame(), nobody)
    with pytest.raises(Undefined, match="one value"):
        Correlation(("",), Domain(), (tiny.X, tiny.B)).fit(frame(numbers=(1, 2)), nobody)


def test_columns_and_limits():
    assert [CASES[name][0].columns for name in ("share", "mean", "of some")] == [
        (2,),
        (2,),
        (0, 1, 2),
    ]
    assert CASES["share"][0].limits(frame()) == (0, 1)
    assert CASES["mean"][0].limits(frame()) == (0, 9)
    assert CASES["sum"][0].limits(frame()) == (0, 9)
    assert CASES["difference"][0].limits(frame()) == (-9, 9)

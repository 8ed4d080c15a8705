"""Quantiles, the Gini coefficient and functions of one's own."""

import numpy as np
import pytest

from tests.estimates import tiny
from tests.estimates.test_frame import frame
from tests.estimates.test_means import NUMBER, W, check_influence
from understudy.errors import WorkloadError
from understudy.estimates import Parts, quantiles
from understudy.estimates.frame import condition
from understudy.estimates.language import bound, statistic
from understudy.estimates.quantiles import Gini, Quantile
from understudy.estimates.statistic import Domain, Measured, Undefined

SINGLE = np.bincount(tiny.ALL[2], W).repeat(2) / 2  # the integers 0 to 9


def measured(values, half):
    parts = Parts(half, 0, 0, 0, 0)
    return [Measured(float(value), half, parts, 0.0, None) for value in values]


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_quantiles_are_the_least_value_that_reaches_a_share(at):
    found = Quantile(("",), Domain(), tiny.X, at)
    fitted = found.fit(frame(), W).values
    assert fitted == pytest.approx(np.cumsum(SINGLE)[1::2] - at)
    (exact,) = found.combined(frame(), measured(fitted, 0.0))
    wanted = int(np.searchsorted(np.cumsum(SINGLE), at))
    assert exact.value == wanted
    assert wanted - 1 <= exact.low <= exact.high <= wanted + 1  # what bins hide
    (unsure,) = found.combined(frame(), measured(fitted, 0.05))
    ends = np.searchsorted(np.cumsum(SINGLE), [at - 0.05, at + 0.05])
    assert abs(unsure.low - ends[0]) <= 1
    assert abs(unsure.high - min(ends[1], 9)) <= 1
    (nothing,) = found.combined(frame(), measured(fitted, 1.0))
    assert "every value" in nothing.why


def test_shares_that_noise_put_out_of_order_still_have_one_quantile():
    found = Quantile(("",), Domain(), tiny.X, 0.5)
    (told,) = found.combined(frame(), measured([-0.4, 0.05, -0.05, 0.3, 0.5], 0.0))
    assert told.low <= told.value <= told.high
    assert 2 <= told.value <= 5


def test_the_influence_of_a_quantile_is_that_of_shares():
    statistic_ = Quantile(("",), Domain(condition("b", tiny.SCHEMA)), tiny.X, 0.5)
    check_influence(statistic_, frame(), W)
    others = statistic_.fit(frame(), W).influence(frame())[tiny.ALL[1] == 0, :5]
    assert others.std(axis=0) == pytest.approx(np.zeros(5), abs=1e-12)


def test_gini_is_the_mean_difference_over_twice_the_mean():
    values = np.arange(10.0)
    apart = SINGLE @ np.abs(values[:, None] - values) @ SINGLE
    found = Gini(("",), Domain(), tiny.X)
    assert found.fit(frame(), W).values[0] == pytest.approx(apart / (2 * SINGLE @ values))
    check_influence(found, frame(), W)


def test_functions_of_ones_own():
    def mean(frame, weights):
        return float(weights @ frame["x"]) + float(weights @ (frame["a"] == "q"))

    own = bound(statistic(mean, ["x", "a"], "odd"), tiny.SCHEMA)
    assert own.names == ("odd",)
    at = frame((0, 2))
    weights = tiny.truth().sum(axis=1).reshape(-1)
    fitted = own.fit(at, weights)
    assert fitted.values[0] == pytest.approx(W @ NUMBER + W @ (tiny.ALL[0] == 1))
    exact = 2.0 * at.codes(2) + 0.5 + (at.codes(0) == 1) - fitted.values[0]
    assert fitted.influence(at)[:, 0] == pytest.approx(exact, abs=1e-6)


def test_functions_that_cannot_be_used(monkeypatch):
    nan = bound(statistic(lambda frame, weights: float("nan"), ["x"]), tiny.SCHEMA)
    with pytest.raises(Undefined, match="gave nan"):
        nan.fit(frame((2,)), np.full(5, 0.2))
    with pytest.raises(WorkloadError, match="columns names none"):
        bound(statistic(lambda frame, weights: 0.0, []), tiny.SCHEMA)
    monkeypatch.setattr(quantiles, "MOST_POINTS", 3)
    with pytest.raises(WorkloadError, match=r"x have 5 cells together.*fewer columns"):
        nan.fit(frame((2,)), np.full(5, 0.2))

"""Quantiles, the Gini coefficient and functions of one's own."""

import numpy as np
import pytest

from tests.estimates import tiny
from tests.estimates.test_frame import frame
from tests.estimates.test_means import NUMBER, W, check_influence
from understudy.errors import WorkloadError
from understudy.estimates import quantiles
from understudy.estimates.frame import condition
from understudy.estimates.language import bound, statistic
from understudy.estimates.means import Domain
from understudy.estimates.quantiles import Gini, Quantile
from understudy.estimates.statistic import Undefined

SINGLE = np.bincount(tiny.ALL[2], W).repeat(2) / 2  # the integers 0 to 9


def test_quantiles_are_the_least_value_that_reaches_a_share():
    for at in (0.1, 0.5, 0.9):
        found = Quantile(("",), Domain(), tiny.X, at)
        wanted = int(np.searchsorted(np.cumsum(SINGLE), at))
        assert found.fit(frame(), W).values.tolist() == [at]
        low, high = at - 0.1, at + 0.05
        told = found.interval(frame(), W, at, 0.05)
        assert told[0] == wanted
        assert told[1] <= wanted <= told[2]
        assert told[2] == int(np.searchsorted(np.cumsum(SINGLE), high))
        assert low < at


def test_the_influence_of_a_quantile_is_that_of_its_share():
    fitted = Quantile(("",), Domain(condition("b", tiny.SCHEMA)), tiny.X, 0.5).fit(frame(), W)
    influence = fitted.influence(frame())
    assert W @ influence == pytest.approx([0, 0], abs=1e-9)
    assert not influence[tiny.ALL[1] == 0, 0].any()


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
    with pytest.raises(WorkloadError, match="x have 5 cells together.*fewer columns"):
        nan.fit(frame((2,)), np.full(5, 0.2))

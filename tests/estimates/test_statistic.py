"""What a statistic is unless it says otherwise."""

import numpy as np
import pytest

from tests.estimates import tiny
from tests.estimates.test_frame import frame
from understudy.estimates import Known, estimate
from understudy.estimates.solve import estimated
from understudy.estimates.statistic import Fitted, Statistic, Undefined


class Largest(Statistic):
    """The largest share of any value of a column: as plain as a statistic can be."""

    columns = (0,)

    def fit(self, frame, weights):
        shares = np.bincount(frame.codes(0), weights)
        top = int(shares.argmax())
        if shares[top] < 0.2:
            raise Undefined("nothing is frequent")
        return Fitted(shares[[top]], lambda at: ((at.codes(0) == top) - shares[top])[:, None])


def known() -> Known:
    rng = np.random.default_rng(0)
    return tiny.known(tiny.truth(), tiny.counted(2000 * tiny.truth(), 10.0, rng))


def test_a_fit_is_enough():
    plain = Largest(("largest",))
    assert plain.limits(frame()) == (-np.inf, np.inf)
    assert (plain.linear, plain.first_order, plain.per_row) == (False, False, False)
    assert plain.combined(frame(), []) == []
    (told,) = estimated([plain], known(), "table", 0.95)
    shares = tiny.truth().sum(axis=(1, 2))
    same = estimate(known(), f"share(a = '{'pqr'[shares.argmax()]}')", "table")
    assert told.value == pytest.approx(same.value, abs=1e-3)
    assert (told.low, told.high) == pytest.approx((same.low, same.high), abs=1e-3)


def test_what_is_undefined_has_a_reason():
    class Never(Largest):
        def fit(self, frame, weights):
            raise Undefined("nothing is frequent")

    first, second = estimated([Never(("never",)), Largest(("largest",))], known(), "table", 0.95)
    assert (first.determined, first.warning) == (False, "nothing is frequent")
    assert second.determined

"""What linear models share: public bounds, targets and labels."""

import numpy as np
import pytest
from learners import classes_table, lasso, logistic, numbers_table, spent

from understudy.errors import InputError


def test_values_outside_the_bounds_are_clipped_in_fit_and_predict():
    X, y = classes_table()
    model = logistic().fit(X * 50, y)
    np.testing.assert_array_equal(model.predict(X * 50), model.predict(np.clip(X * 50, -1, 1)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"target_bounds": None}, "target_bounds are missing"),
        ({"target_bounds": (5, 5)}, "low = 5 is not below high = 5"),
    ],
)
def test_targets_need_bounds(settings, said, ledger):
    X, y = numbers_table()
    with pytest.raises(InputError, match=said):
        lasso(ledger=ledger, dataset="rows", **settings).fit(X, y)
    assert spent(ledger).epsilon == 0


def test_text_is_no_target(ledger):
    X, y = numbers_table()
    with pytest.raises(InputError, match="y must hold numbers"):
        lasso(ledger=ledger, dataset="rows").fit(X, np.where(y > 10, "a", "b"))
    assert spent(ledger).epsilon == 0

"""scikit-learn's own checks of estimators."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.thorough import some

from understudy.learn import PrivateLasso, PrivateLogisticRegression

BOX = {"bounds": (-4.0, 4.0)}
PRIVATE = {**BOX, "epsilon": 1e3, "neighbours": "replace", "steps": 25, "rate": 1.0}


# What these check is that two fits agree. Fits of one private table draw noise of their own each, and
# take no seed: a noise that can be drawn again can be taken away again.
TWO_FITS = "compares two fits, which draw noise of their own each"


def expected(estimator):
    """Checks that privacy forbids to pass, with the reason."""
    forbidden = {"check_supervised_y_2d": TWO_FITS, "check_fit_idempotent": TWO_FITS}
    if isinstance(estimator, PrivateLasso):
        forbidden |= {
            "check_regressor_data_not_an_array": TWO_FITS,
            "check_regressors_int": TWO_FITS,
        }
    else:
        forbidden |= {"check_classifier_data_not_an_array": TWO_FITS}
    return forbidden


# Not strict: two noises may come close by chance.
CHOICES = {"expected_failed_checks": expected, "xfail_strict": False}


CHECKS = parametrize_with_checks([PrivateLogisticRegression(classes="in y", **PRIVATE)], **CHOICES)


@pytest.mark.parametrize(CHECKS.args[0], some(CHECKS.args[1], 2), **CHECKS.kwargs)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [PrivateLasso(target_bounds=(-4, 4), **(PRIVATE | {"steps": 60}))],
    **CHOICES,
)
def test_checks_of_a_lasso(estimator, check):
    check(estimator)

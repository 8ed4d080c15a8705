"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from understudy.learn import (
    NonPrivateLasso,
    NonPrivateLogisticRegression,
    PrivateLasso,
    PrivateLogisticRegression,
)

BOX = {"bounds": (-10.0, 10.0)}
PRIVATE = {**BOX, "epsilon": 1e6, "neighbours": "replace", "steps": 25, "rate": 1.0}


# What these check is that two fits agree. Fits of one private table draw noise of their own each, and
# take no seed: a noise that can be drawn again can be taken away again.
TWO_FITS = "compares two fits, which draw noise of their own each"


def expected(estimator):
    """Checks that privacy forbids to pass, with the reason."""
    if isinstance(estimator, NonPrivateLasso | NonPrivateLogisticRegression):
        return {}
    forbidden = {"check_supervised_y_2d": TWO_FITS, "check_fit_idempotent": TWO_FITS}
    if isinstance(estimator, PrivateLasso):
        forbidden |= {
            "check_regressor_data_not_an_array": TWO_FITS,
            "check_regressors_int": TWO_FITS,
        }
    return forbidden


@parametrize_with_checks(
    [
        PrivateLasso(target_bounds=(-300, 300), **(PRIVATE | {"steps": 60})),
        PrivateLogisticRegression(classes="in y", **PRIVATE),
        NonPrivateLasso(target_bounds=(-300, 300), **BOX),
        NonPrivateLogisticRegression(classes="in y", **BOX),
    ],
    expected_failed_checks=expected,
)
def test_checks(estimator, check):
    check(estimator)

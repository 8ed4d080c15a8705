"""The public box of features: into the unit cube and back, and bounds that cannot be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.privacy.exact import Examples
from understudy.privacy.features import GRID, Box


def test_a_box_scales_to_the_unit_cube_and_keeps_zero():
    box = Box.of(([0, -2, 10, -9], [1, 6, 20, -1]), 4)
    np.testing.assert_array_equal(box.anchor, [0, 0, 10, -1])
    np.testing.assert_array_equal(box.scale, [1, 6, 10, 8])
    rows = np.array([[0, 0, 10, -1.0], [1, 6, 20, -9], [9, -99, 15, 99]])
    expected = [[1, 0, 0, 0, 0], [1, 1, 1, 1, -1], [1, 1, -1 / 3, 0.5, 0]]
    np.testing.assert_allclose(box.scaled(rows), expected)
    np.testing.assert_array_equal(box.on_grid(rows), np.rint(GRID * np.array(expected)))


def test_weights_go_back_to_the_features_own_units():
    rng = np.random.default_rng(4)
    box = Box.of(([0, -2, 10], [1, 6, 20]), 3)
    weights, rows = rng.normal(size=(2, 4)), rng.uniform([0, -2, 10], [1, 6, 20], (20, 3))
    coefficients, intercepts = box.unscaled(weights)
    np.testing.assert_allclose(
        rows @ coefficients.T + intercepts, box.scaled(rows) @ weights.T, atol=1e-12
    )


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (None, "bounds are missing"),
        ((1, 0), "column 0: low = 1 is not below high = 0"),
        (([0, 3], [1, 3]), "column 1: low = 3 is not below high = 3"),
        ((0, float("nan")), "high of column 0 is not finite"),
        ((0, float("inf")), "high of column 0 is not finite"),
        (([0, 0, 0], 1), r"low has shape \(3,\)"),
        ((0, 1, 2), "must be a pair"),
        (("a", 1), "not a number"),
        (5, "must be a pair"),
    ],
)
def test_bounds_that_cannot_be(bounds, said):
    with pytest.raises(InputError, match=said):
        Box.of(bounds, 2)


def test_what_is_no_number_stays_inside_the_box():
    odd = np.array([[np.nan, np.inf], [-np.inf, 1e300], [0.5, -0.5]])
    box = Box.of((-1, 1), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would tell of a row
        grid = box.on_grid(odd)
        Examples.seal(odd, np.zeros(3), box)
    assert np.abs(grid.astype(int)).max() <= GRID

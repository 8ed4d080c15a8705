"""Bias-aware intervals against the non-central χ²."""

import math

import pytest
from scipy.stats import ncx2

from understudy.estimates.solve import half_width


@pytest.mark.parametrize("ratio", [0.1, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_it_is_the_quantile_of_the_non_central_chi_square(ratio, level):
    found = half_width(2.0, 2.0 * ratio, level)
    assert found == pytest.approx(2.0 * math.sqrt(ncx2.ppf(level, 1, ratio**2)), rel=1e-6)


def test_the_ends():
    assert half_width(1.0, 0.0, 0.95) == pytest.approx(1.959964, abs=1e-6)
    assert half_width(0.0, 0.3, 0.95) == 0.3
    assert half_width(1.0, 100.0, 0.95) == pytest.approx(101.644854, abs=1e-6)
    assert half_width(1.0, 29.9, 0.95) < half_width(1.0, 30.1, 0.95)

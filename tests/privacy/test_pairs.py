"""Dominating pairs dominate the mechanisms that they stand for."""

import math

import mpmath as mp
import numpy as np
import pytest

from tests.privacy.test_profile import mixture, responses
from tests.thorough import slow
from understudy.privacy import pairs


def hockey_stick(atoms, epsilon):
    return mp.fsum(mass * -mp.expm1(epsilon - loss) for loss, mass in atoms if loss > epsilon)


def of_losses(losses, epsilon):
    """δ(ε) of what we sum over, exactly."""
    atoms = zip(losses.loss.tolist(), losses.log_mass.tolist(), strict=True)
    return losses.infinite + hockey_stick([(mp.mpf(x), mp.exp(m)) for x, m in atoms], epsilon)


@pytest.mark.parametrize("c", [0.3, 0.5, 1.2])
@pytest.mark.parametrize("sigma", [1.8, 3.0, 6.0])
def test_discrete_noise_is_a_rounding_of_real_noise_up_to_eta(sigma, c):
    y, k = np.arange(-4000, 4001) * 0.02, np.arange(-100, 101)[:, None]
    discrete = np.exp(-(k[:, 0] ** 2) / (2 * sigma**2))
    discrete /= discrete.sum()
    rounding = np.exp(-((k - y) ** 2) / (2 * c))
    rounding /= rounding.sum(axis=0)

    def apart(variance):
        drawn = (
            rounding @ (np.exp(-(y**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)) * 0.02
        )
        inner = np.abs(k[:, 0]) <= 5 * sigma
        return np.abs(np.log(drawn[inner] / discrete[inner])).max()

    assert apart(sigma**2 - c) <= pairs.theta(c) + 1e-11
    assert apart(sigma**2 - 1.2 * c) > pairs.theta(c)


def test_eta_is_small_for_as_many_coordinates_as_anybody_has():
    for coordinates in (1, 10**6, 10**13):
        c = pairs._variance_lost(coordinates)
        assert 1 < c < 3
        assert 2 * coordinates * pairs.theta(c) < 1.01e-9


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 4.0])
def test_bounded_range_dominates_every_pair_of_two_losses(epsilon):
    e0, losses = mp.mpf(epsilon), pairs.bounded_range(epsilon)
    for share in np.linspace(-0.999, 0.999, 23):
        x = mp.mpf(share) * e0
        profile_ = mp.expm1((x - e0) / 2) ** 2 / -mp.expm1(-e0)
        worst = max(
            mp.expm1(t - e0) * mp.expm1(x - t) / -mp.expm1(-e0)
            for t in mp.linspace(max(x, mp.mpf(0)), e0, 50)
        )
        found = of_losses(losses, x)
        assert worst <= profile_ <= found <= profile_ + 1e-3 * epsilon
        assert found <= mp.fsum(m * -mp.expm1(x - a) for a, m in responses(1, e0) if a > x)


@pytest.mark.parametrize("way", ["remove", "add", "replace"])
@pytest.mark.parametrize(
    ("rate", "shift"),
    [(0.5, 1.0), slow((0.01, 0.25)), (1e-4, 2.0), slow((0.9, 0.05)), slow((0.25, 5.0))],
)
def test_connected_dots_dominate_the_sampled_gaussian(rate, shift, way):
    losses = pairs.sampled(rate, shift, way, 2.0**-60)
    for epsilon in (-0.4 * rate * shift, 0.0, 0.1 * rate, rate * shift, 0.5 * shift, 3 * shift):
        truth = mixture(mp.mpf(rate), mp.mpf(shift), way, mp.mpf(epsilon))
        assert truth <= of_losses(losses, mp.mpf(epsilon)) <= truth + 1e-3 * rate * shift


def test_the_pair_of_a_replaced_row_dominates_all_directions():
    """In two dimensions: shifts a, b in the disc, sets from the likelihood ratio on a fine grid."""
    rate, shift, axis = 0.3, 1.0, np.linspace(-7, 7, 281)
    x, y = np.meshgrid(axis, axis)
    density = lambda a: np.exp(-((x - a[0]) ** 2 + (y - a[1]) ** 2) / 2) / (2 * np.pi) * 0.05**2  # noqa: E731
    origin, top = density((0, 0)), density((shift, 0))
    p = (1 - rate) * origin + rate * top
    for angle in np.linspace(0, np.pi, 7):
        q = (1 - rate) * origin + rate * density((shift * np.cos(angle), shift * np.sin(angle)))
        for epsilon in (0.0, 0.1, 0.5):
            found = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            assert found <= float(mixture(rate, shift, "replace", epsilon)) + 1e-5


@pytest.mark.parametrize(("sigma", "step"), [(0.4, 1), (2.0, 3), (9.0, 1)])
def test_a_lattice_has_its_own_law(sigma, step):
    losses = pairs.lattice(sigma, step, 12.0)
    z = range(-20 * math.ceil(sigma), 20 * math.ceil(sigma) + 1)
    mass = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in z]
    atoms = [
        (step / mp.mpf(sigma) ** 2 * (k + mp.mpf(step) / 2), m / mp.fsum(mass))
        for k, m in zip(z, mass, strict=True)
    ]
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        truth = hockey_stick(atoms, mp.mpf(epsilon))
        assert truth <= of_losses(losses, mp.mpf(epsilon)) <= truth * (1 + 1e-9) + 1e-28

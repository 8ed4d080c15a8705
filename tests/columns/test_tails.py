"""The tail of a column in order."""

import numpy as np
import pytest

from understudy.columns.tails import outward


def _told(true: list[float], sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array(true) + np.random.default_rng(seed).normal(0, sigma, len(true))
    one = np.ones(len(true))
    return counts, outward(counts, sigma * one, one.astype(np.intp), one)


def test_what_is_clear_of_noise_stays() -> None:
    counts, told = _told([9000, 4000, 7000, 6000], 5.0, 1)
    assert told == pytest.approx(counts, rel=0.01)


@pytest.mark.parametrize("fall", [0.2, 0.5])
def test_a_tail_below_the_noise_is_nearer_than_its_counts(fall: float) -> None:
    true = [8000 * fall**i for i in range(15)]
    far = np.arange(15.0) ** 2
    off = np.array([[far @ (each - true) for each in _told(true, 60.0, s)] for s in range(20)])
    counts, told = np.abs(off).mean(axis=0)
    assert told < 0.5 * counts


def test_one_lone_far_cell_of_noise_is_not_believed() -> None:
    counts = np.array([9000, 3000, 400, 0, 0, 0, 0, 0, 0, 0, 150.0])
    one = np.ones(11)
    told = outward(counts, 60 * one, one.astype(np.intp), one)
    assert told[-1] < 15
    assert (told >= 0).all()


def test_one_far_cell_that_noise_does_not_explain_is() -> None:
    counts = np.array([9000, 3000, 400, 0, 0, 0, 0, 0, 0, 0, 700.0])
    one = np.ones(11)
    told = outward(counts, 30 * one, one.astype(np.intp), one)
    assert told[-1] > 350


def test_a_long_piece_holds_what_its_units_do() -> None:
    fine = 6000 * 0.6 ** np.arange(12)
    pieces = np.array([*fine[:6], fine[6:9].sum(), fine[9:].sum()])
    units = np.array([1] * 6 + [3, 3], np.intp)
    told = outward(pieces, np.full(8, 20.0), units, units.astype(float))
    assert told == pytest.approx(pieces, rel=0.1, abs=10)

from itertools import product

import numpy as np
import pytest

from understudy.columns.segments import fitted


def cost(counts, sigma, width, enter, step, inside, cuts, held):
    """What a division into segments costs, in the words of the docstring."""
    total, before = 0.0, inside
    for begin, end, holds in zip([0, *cuts], [*cuts, len(counts)], held, strict=True):
        y, s, w = counts[begin:end], sigma[begin:end], width[begin:end]
        level = max(0.0, np.sum(y * w / s**2) / np.sum(w**2 / s**2)) if holds else 0.0
        total += np.sum(((y - level * w) / s) ** 2)
        if holds:
            total += (step if before else enter) if begin or not inside else 0.0
        elif inside and (before or not begin):
            total += step
        before = holds
    return total


def cheapest(counts, *rest):
    """By brute force: where anything is held."""
    size = len(counts)
    best, found = np.inf, None
    for inner in product((False, True), repeat=size - 1):
        cuts = [at + 1 for at, cut in enumerate(inner) if cut]
        for held in product((False, True), repeat=len(cuts) + 1):
            if (price := cost(counts, *rest, cuts, held)) < best - 1e-9:
                best, found = price, (cuts, held)
    return best, found


@pytest.mark.parametrize("inside", [False, True])
def test_no_other_division_is_cheaper(inside):
    rng = np.random.default_rng(1)
    for _ in range(12):
        counts = rng.normal(0, 1, 5) + rng.choice([0, 0, 4, 9], 5)
        sigma, width = rng.uniform(0.5, 2, 5), rng.uniform(0.5, 2, 5)
        _, (cuts, held) = cheapest(counts, sigma, width, 9.0, 4.0, inside)
        fit = fitted(counts[None], sigma[None], width[None], 9.0, 4.0, inside, 1.5)[0]
        for begin, end, holds in zip([0, *cuts], [*cuts, 5], held, strict=True):
            if not holds:
                assert not fit[begin:end].any()
            elif end == begin + 1 and counts[begin] > 1.5 * sigma[begin]:
                assert fit[begin] == pytest.approx(counts[begin])


def test_noise_is_empty_and_a_heavy_cell_is_kept():
    counts = np.array([[3.0, -5.0, 120.0, 8.0, -2.0]])
    ones = np.ones_like(counts)
    assert fitted(counts, 10 * ones, ones, 16.0, 9.0, False, 1.5)[0].tolist() == [0, 0, 120, 0, 0]


def test_equal_densities_are_pooled_and_widths_count():
    rng = np.random.default_rng(2)
    width = np.array([[1.0, 2.0, 4.0, 2.0, 1.0, 5.0]])
    counts = 100 * width + rng.normal(0, 5, width.shape)
    fit = fitted(counts, np.full(width.shape, 5.0), width, 16.0, 9.0, True, 1.5)
    assert np.abs(fit / width - 100).max() < np.abs(counts / width - 100).max()


def test_short_rows_are_filled_up():
    y = np.array([[50.0, 60.0, 0.0], [50.0, 60.0, 400.0]])
    s = np.array([[5.0, 5.0, np.inf], [5.0, 5.0, 5.0]])
    w = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    short = fitted(y[:1, :2], s[:1, :2], w[:1, :2], 9.0, 4.0, True, 1.5)
    both = fitted(y, s, w, 9.0, 4.0, True, 1.5)
    assert both[0, :2].tolist() == pytest.approx(short[0].tolist())
    assert both[1, 2] == 400

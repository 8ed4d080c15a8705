"""The trend of a pair: found where its table is all noise, none where there is none."""

import numpy as np
import pytest

from understudy.models.blocks import scores
from understudy.models.fitting import Effort, fit
from understudy.models.measured import Measured, merge
from understudy.models.trends import trends

ROWS = 20_000.0
SIZE = 4
EVEN = np.full(SIZE, ROWS / SIZE)


def table(slope):
    """Counts of two even columns with the factor exp(slope·S⊗T), in place."""
    score = scores(EVEN, SIZE)
    found = np.exp(slope * np.outer(score, score))
    for _ in range(50):
        for axis in (0, 1):
            found *= ROWS / SIZE / found.sum(axis=axis, keepdims=True)
    return found, score


def model(blocks, rows=ROWS):
    """The table of a model of one pair: its blocks, and even columns."""
    now = np.full((SIZE, SIZE), rows / SIZE**2)
    for _ in range(10):
        for block in blocks:
            now = now * block.refine(now.reshape(-1), rows).reshape(now.shape)
        for axis in (0, 1):
            now *= rows / SIZE / now.sum(axis=axis, keepdims=True)
    return now


def test_an_exact_trend_is_met_exactly():
    exact, score = table(-0.4)
    (block,) = trends([Measured((0, 1), exact, 1.0)], (EVEN, EVEN), (SIZE, SIZE), ROWS)
    assert score @ model([block]) @ score == pytest.approx(score @ exact @ score, rel=1e-3)
    assert np.abs(model([block]) - exact).sum() < 0.01 * ROWS


def test_a_trend_in_runs_is_met_in_runs():
    exact, _ = table(0.5)
    labels = (np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    seen = Measured((0, 1), merge(exact, labels), 1.0, labels)
    (block,) = trends([seen], (EVEN, EVEN), (SIZE, SIZE), ROWS)
    sums = merge(model([block]), labels)
    assert sums == pytest.approx(seen.values, rel=0.01)


def test_two_views_are_weighed_by_their_noise():
    exact, score = table(0.3)
    told = [Measured((0, 1), exact, 10.0), Measured((0, 1), exact[::-1].copy(), 1000.0)]
    (block,) = trends(told, (EVEN, EVEN), (SIZE, SIZE), ROWS)
    assert score @ model([block]) @ score == pytest.approx(score @ exact @ score, rel=0.01)


def test_pairs_without_dependence_draw_a_noisy_trend_to_nothing():
    """Among many pairs of noise alone, λ is far less than its noise; beside strong ones it is not."""
    rng = np.random.default_rng(3)
    flat, strong = table(0.0)[0], table(0.5)[0]
    sigma, found = 300.0, {}
    for name, tables in (("alone", [flat] * 30), ("beside", [strong] * 15 + [flat] * 15)):
        measured = [
            Measured((0, k + 1), each + rng.normal(0, sigma, each.shape), sigma)
            for k, each in enumerate(tables)
        ]
        every = trends(measured, (EVEN,) * 31, (SIZE,) * 31, ROWS)
        tables = np.array([model([block]) for block in every])
        score = table(0.0)[1]
        found[name] = np.einsum("i,kij,j->k", score, tables, score)[-15:] / ROWS
    noise = sigma * SIZE / ROWS
    assert np.std(found["alone"]) < 0.5 * noise
    assert np.std(found["beside"]) == pytest.approx(noise, rel=0.5)


def test_a_pair_with_a_column_without_order_has_none():
    assert trends([Measured((0, 1), table(0.3)[0], 1.0)], (EVEN, EVEN), (SIZE, 0), ROWS) == []


def test_a_fit_keeps_trends_that_its_tables_lose():
    """One faint trend beside strong ones: without an order it is drawn to independence."""
    rng = np.random.default_rng(5)
    slopes, sigma, shape = (0.5, -0.5, 0.06), 60.0, (SIZE,) * 6
    pairs = ((0, 1), (2, 3), (4, 5))
    score = table(0.0)[1]
    lost = {(): 0.0, (SIZE,) * 6: 0.0}
    for _ in range(4):
        told = [Measured((i,), EVEN, 1.0) for i in range(6)]
        told += [
            Measured(pair, table(slope)[0] + rng.normal(0, sigma, (SIZE, SIZE)), sigma)
            for pair, slope in zip(pairs, slopes, strict=True)
        ]
        for ordered in lost:
            fitted = fit(
                shape, told, ROWS, Effort(20_000), np.random.default_rng(1), ordered=ordered
            )
            lost[ordered] += abs(score @ fitted.marginal(pairs[2]) @ score - 0.06) / 4
    assert lost[(SIZE,) * 6] < 0.7 * lost[()]


def test_the_trend_of_a_rare_value_is_kept():
    rare, share = np.array([0.998, 0.002]) * ROWS, np.array([0.0, 0.0, 0.1, 0.9])
    exact = np.stack([EVEN - 0.002 * ROWS * share, 0.002 * ROWS * share])
    (block,) = trends([Measured((0, 1), exact, 16.0)], (rare, EVEN), (2, SIZE), ROWS)
    now = np.outer(rare, EVEN) / ROWS
    for _ in range(30):
        now *= block.refine(now.reshape(-1), ROWS).reshape(now.shape)
        now *= (rare / now.sum(axis=1))[:, None]
        now *= EVEN / now.sum(axis=0)
    score = scores(EVEN, SIZE)
    assert score @ now[1] > 0.7 * score @ exact[1]

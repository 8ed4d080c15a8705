"""The algebra of the correction, against brute force."""

from dataclasses import replace

import numpy as np
import pytest

from tests.estimates import tiny
from understudy.estimates.correction import Evidence, omega, tilted
from understudy.estimates.points import Points, collapsed
from understudy.estimates.reduced import Reduced, reduced

ROWS, SIGMA = 2000.0, 25.0


def evidence(tables, shares=None, columns=(0, 1, 2), rows_sigma=0.0):
    model = tiny.model(tiny.truth() if shares is None else shares)
    held = reduced(tables, columns, tiny.SHAPE)
    return Evidence(
        collapsed(model, columns, tiny.SHAPE, (0.0,) * len(columns)), held, ROWS, rows_sigma
    )


def exact(most=2, sigma=SIGMA):
    rng = np.random.default_rng(0)
    return tiny.counted(ROWS * tiny.truth(), sigma, rng, most)


def indicators(found):
    """A, written out."""
    columns = []
    for table in found.tables:
        held = np.ravel_multi_index(
            tuple(found.points.codes[i] for i in table.clique), table.values.shape
        )
        columns.append(np.eye(table.values.size)[held])
    return np.concatenate([*columns, np.ones((len(found.points), 1))], axis=1)


@pytest.mark.parametrize("rows_sigma", [0.0, 40.0])
def test_weights_solve_the_normal_equations(rows_sigma):
    found = evidence(exact(), rows_sigma=rows_sigma)
    a, q = indicators(found), found.points.spread
    sigma = [np.full(t.values.size, t.sigma) for t in found.tables]
    penalty = (np.concatenate([*sigma, [rows_sigma]]) / ROWS) ** 2
    phi = np.random.default_rng(1).normal(size=(len(found.points), 3))
    weight = omega(found.tables, (0, 1, 2)) ** 2 * q
    whole = np.diag(penalty) + (a.T * weight) @ a
    wanted = np.linalg.lstsq(whole, a.T @ (weight[:, None] * phi), rcond=None)[0]
    got = found.weights(phi)

    def least(x):
        return penalty @ x**2 + weight @ (phi - a @ x) ** 2

    sampling = q @ phi**2 / ROWS
    assert np.all(np.abs(least(got) - least(wanted)) <= 0.01 * sampling)
    rough = found.weights(phi, 0)
    assert np.all(np.abs(least(rough) - least(wanted)) <= 0.25 * sampling)
    assert found.noise(got) == pytest.approx(np.sqrt(penalty[:-1] @ wanted[:-1] ** 2), rel=0.03)


def test_the_goal_is_the_mean_in_the_table_where_tables_are_exact():
    """Without noise, functions of pairs are corrected from any model to the table itself."""
    start = np.full(tiny.SHAPE, 1 / tiny.truth().size)
    found = evidence(exact(sigma=1e-6), shares=start)
    a, b, x = found.points.codes
    phi = np.stack([(a == 1) * (b == 1), x * (a == 2), x * 1.0], axis=1).astype(float)
    goal = found.goal(phi, found.weights(phi))
    assert goal == pytest.approx(tiny.truth().reshape(-1) @ phi, rel=2e-3)


def test_noise_is_what_noise_does():
    """The deviation of the goal over 400 draws of noise is as stated, within 5 standard errors."""
    rng, counts = np.random.default_rng(2), ROWS * tiny.truth()
    phi = (tiny.ALL[0] == 1).astype(float)[:, None] * (tiny.ALL[2][:, None] - 2.0)
    weights = evidence(exact()).weights(phi)  # which do not depend on the counts
    drawn = [evidence(tiny.counted(counts, SIGMA, rng)) for _ in range(400)]
    goals = [found.goal(phi, weights)[0] for found in drawn]
    stated = float(drawn[0].noise(weights)[0])
    assert abs(np.std(goals) / stated - 1) < 5 / np.sqrt(2 * 400)


def test_cells_that_were_drawn_add_their_own_noise():
    found = evidence(exact())
    phi = np.random.default_rng(3).normal(size=(len(found.points), 2))
    weights = found.weights(phi)
    residual = phi - indicators(found) @ weights
    residual -= found.points.spread @ residual
    few = replace(found, points=replace(found.points, drawn=100))
    more = found.points.spread @ residual**2 / 100
    whole, drawn = (each.correction(phi, weights).noise for each in (found, few))
    assert whole == pytest.approx(found.noise(weights))
    assert drawn**2 - whole**2 == pytest.approx(more)


def test_what_pairs_cannot_explain():
    found = evidence(exact(), shares=np.full(tiny.SHAPE, 1 / tiny.truth().size))
    a, b, x = found.points.codes
    pair = (a == 1) * (x + 1.0) + (b == 1) * x
    parity = np.where((a == 0) ^ (b == 1) ^ (x > 1), 1.0, -1.0)
    phi = np.stack([pair, parity], axis=1)
    got = found.correction(phi, found.weights(phi))
    assert got.unseen[0] < 0.1 * np.sqrt(found.points.spread @ pair**2 / ROWS)
    assert got.reliance[0] < 1e-4
    assert got.reliance[1] > 0.5
    seen = evidence([*exact(), *exact(3)[-1:]])
    whole = seen.correction(phi, seen.weights(phi))
    assert whole.reliance[1] < 0.1 * got.reliance[1]


def test_inside_runs_the_model_is_off_by_less_the_more_there_are():
    """Of eight values each, two runs leave ω as it is, four a quarter of it, whole tables nothing.

    Of a pair that was measured twice the finer runs count, and ω is larger where it never was.
    """
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.full(64, 20.0))
    x, y = (codes.reshape(-1) for codes in np.indices((8, 8)))
    points = Points((0, 1), (x, y), shares, shares)
    phi = ((x - x @ shares) * (y - y @ shares))[:, None]
    missed: dict[tuple[int, bool], float] = {}
    pairs: dict[int, Reduced] = {}
    for runs in (2, 4, 8):
        labels = np.arange(8) * runs // 8
        counts = np.zeros((runs, runs))
        np.add.at(counts, (labels[x], labels[y]), 2_000 * shares)
        one = [np.asarray(2_000 * np.bincount(codes, shares), float) for codes in (x, y)]
        tables = (
            Reduced((0,), (np.arange(8),), one[0], 1.0),
            Reduced((1,), (np.arange(8),), one[1], 1.0),
            pairs.setdefault(runs, Reduced((0, 1), (labels, labels), counts, 1.0)),
        )
        for ordered in (False, True):
            found = Evidence(points, tables, 2_000.0, ordered=(8, 8) if ordered else ())
            got = found.correction(phi, found.weights(phi))
            missed[runs, ordered] = float(got.missed[0])
    assert missed[2, True] == missed[2, False] > 0
    assert missed[4, True] == pytest.approx(missed[4, False] / 4, rel=0.1)
    assert missed[8, True] == missed[8, False] < 0.2 * missed[4, False]
    again = Evidence(points, (*tables[:2], pairs[2], pairs[4]), 2_000.0, ordered=(8, 8))
    both = float(again.correction(phi, again.weights(phi)).missed[0])
    assert both == pytest.approx(missed[4, True], rel=0.1)
    assert omega(tables[:2], (0, 1)) > omega(tables, (0, 1))


def test_tilting_reaches_the_goal_or_says_so():
    rng = np.random.default_rng(3)
    shares, phi = rng.dirichlet(np.ones(40)), rng.normal(size=(40, 2))
    goal = shares @ phi + [0.2, -0.1]
    moved = tilted(shares, phi, goal, np.full(2, 1e-6))
    assert moved is not None
    assert (moved.sum(), moved @ phi) == (pytest.approx(1), pytest.approx(goal, abs=1e-6))
    slope = np.log(moved / shares)
    fitted = np.linalg.lstsq(np.c_[np.ones(40), phi], slope, rcond=None)
    assert fitted[1] == pytest.approx(0, abs=1e-12)
    assert tilted(shares, phi, phi.max(0) + 0.1, np.full(2, 1e-6)) is None
    constant = np.c_[phi, np.full(40, 1e-17)]
    assert tilted(shares, constant, np.append(goal, 0), np.full(3, 1e-6)) is not None
    assert tilted(shares, constant, np.append(goal, 1), np.full(3, 1e-6)) is None

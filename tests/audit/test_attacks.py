"""Scores, rules and attacks: by hand, against naive twins, and against the best possible test."""

import math

import numpy as np
import pytest
from scipy import stats

from understudy.audit import discriminant, features, lira, network, rows, rules, scores
from understudy.audit.roc import mean_interval, roc
from understudy.errors import InputError
from understudy.models import Decomposable

P = np.array([[0.9, 0.1, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.5, 0.3]])
Y = np.array([0, 2, 0])


def test_scores_by_hand():
    assert scores.correctness(P, Y).tolist() == [1, 0, 0]
    assert scores.confidence(P, Y).tolist() == pytest.approx([0.9, 1 / 3, 0.5])
    assert scores.loss(P, Y).tolist() == pytest.approx(np.log([0.9, 1 / 3, 0.2]).tolist())
    expected = [-stats.entropy(p, base=2) for p in P]
    assert scores.entropy(P, Y).tolist() == pytest.approx(expected)
    assert scores.logit(P, Y).tolist() == pytest.approx([math.log(9), -math.log(2), -math.log(4)])
    assert scores.squared_loss(np.array([1.0]), np.array([3.0])).tolist() == [-2]


def test_members_have_low_entropy_and_the_score_says_so():
    """Entropy is largest, one bit, at one half: the score of a sure prediction is the larger."""
    sure, torn = np.array([[0.99, 0.01]]), np.array([[0.5, 0.5]])
    label = np.array([0])
    assert scores.entropy(sure, label) > scores.entropy(torn, label)
    assert scores.entropy(torn, label)[0] == -1
    assert scores.entropy(np.array([[1.0, 0.0]]), label)[0] == 0


def test_scores_stay_finite_for_certain_predictions():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    for score in (*scores.SCORES.values(), scores.logit):
        assert np.isfinite(score(sure, np.array([0, 0]))).all()


def test_the_curve_by_hand_with_ties():
    curve = roc(np.array([3.0, 2, 2, 1]), np.array([True, True, False, False]))
    assert curve.fpr.tolist() == [0, 0, 0.5, 1]
    assert curve.tpr.tolist() == [0, 0.5, 1, 1]
    assert curve.auc == pytest.approx(0.875)
    assert curve.advantage == pytest.approx(0.5)
    assert curve.tpr_at(0) == 0.5
    assert curve.tpr_at(0.49) == 0.5
    assert curve.tpr_at(0.5) == 1


def test_auc_is_the_mann_whitney_statistic():
    rng = np.random.default_rng(3)
    found = rng.integers(0, 6, 200).astype(float)
    members = rng.random(200) < 0.4
    expected = stats.mannwhitneyu(found[members], found[~members]).statistic
    expected /= members.sum() * (~members).sum()
    assert roc(found, members).auc == pytest.approx(expected)


def test_the_rank_rule_declares_as_many_as_there_are():
    """N rows declared of 2N: then TN = TP and the accuracy is TP/N."""
    rng = np.random.default_rng(0)
    found, members = rng.normal(size=80), np.arange(80) < 40
    done = rules.rank_rule(found, members, rng)
    assert done.hits + done.alarms == 40
    assert done.accuracy == done.hits / 40
    top = set(np.argsort(-found)[:40].tolist())
    assert done.hits == len(top & set(range(40)))


def test_ties_fall_by_lot_and_not_by_order():
    rng = np.random.default_rng(1)
    members = np.arange(200) < 100
    right = [rules.rank_rule(np.zeros(200), members, rng).accuracy for _ in range(200)]
    assert mean_interval(right, 0.9999).low < 0.5 < mean_interval(right, 0.9999).high


def test_a_threshold_comes_from_other_rows_and_is_the_best_there():
    calibration, members = np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, False, True, True])
    threshold = rules.best_threshold(calibration, members)
    assert threshold == 0.6
    done = rules.threshold_rule(np.array([0.5, 0.7]), np.array([False, True]), threshold)
    assert (done.tpr, done.fpr, done.accuracy) == (1, 0, 1)


def test_lira_is_the_best_test_on_normal_scores():
    """Known laws: its ROC is that of Neyman and Pearson, Φ(Φ⁻¹(FPR) + μ)."""
    rng, runs, points, mu = np.random.default_rng(5), 400, 400, 1.5
    hard = rng.normal(0, 3, points)  # how hard a row is, whatever its membership
    inside = rng.random((runs, points)) < 0.5
    found = hard + mu * inside + rng.normal(size=(runs, points))
    judged = lira.online(found[200:], found[:200], inside[:200])
    curve = roc(judged, inside[200:])
    for fpr in (0.001, 0.01, 0.1, 0.5):
        best = stats.norm.cdf(stats.norm.ppf(fpr) + mu)
        assert curve.tpr_at(fpr) == pytest.approx(best, abs=0.02)
    assert curve.auc == pytest.approx(stats.norm.cdf(mu / 2**0.5), abs=0.01)
    away = roc(lira.offline(found[200:], found[:200], inside[:200]), inside[200:])
    assert away.auc == pytest.approx(curve.auc, abs=0.01)
    assert roc(found[200:], inside[200:]).auc < curve.auc - 0.15  # one threshold for all rows


def test_lira_pools_where_shadows_are_few():
    rng = np.random.default_rng(6)
    inside = rng.random((40, 300)) < 0.5
    found = inside + rng.normal(size=(40, 300))
    judged = lira.online(found[20:], found[:20], inside[:20])
    assert np.isfinite(judged).all()
    assert roc(judged, inside[20:]).auc > 0.7


def test_lira_gives_nothing_for_a_row_without_a_law():
    inside = np.array([[True, False], [True, True], [True, False], [True, True]])
    found = np.array([[1.0, 0.0], [2.0, 1.0], [1.5, 0.2], [1.2, 1.1]])
    assert lira.online(np.array([9.0, 9.0]), found, inside)[0] == 0
    assert lira.offline(np.array([9.0, 9.0]), found, inside)[0] == 0.5


def test_lira_refuses_what_has_no_two_sides():
    with pytest.raises(InputError, match="all rows or none"):
        lira.online(np.zeros(2), np.zeros((3, 2)), np.ones((3, 2), dtype=bool))
    with pytest.raises(InputError, match="runs × rows"):
        lira.online(np.zeros(3), np.zeros((3, 2)), np.ones((3, 2), dtype=bool))


def test_the_network_learns_what_a_line_cannot():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1200, 2))
    ring = np.square(x).sum(axis=1) < 1.4
    made = network.train(x[:800], ring[:800], key=1)
    assert roc(made.score(x[800:]), ring[800:]).auc > 0.97
    again = network.train(x[:800], ring[:800], key=1)
    assert np.array_equal(made.score(x), again.score(x))


def test_the_network_refuses_what_it_cannot_learn():
    with pytest.raises(InputError, match="members and others"):
        network.train(np.zeros((4, 2)), np.ones(4, dtype=bool), key=0)
    with pytest.raises(InputError, match="not finite"):
        network.train(np.full((4, 2), np.nan), np.arange(4) < 2, key=0)


class Linear:
    coef_ = np.array([[1.0, 0.0], [0.0, 1.0]])
    intercept_ = np.array([0.0, 0.5])


def test_white_box_features_are_the_gradient_by_finite_differences():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(3, 2)), np.array([0, 1, 1])

    def probabilities(coef, intercept):
        z = x @ coef.T + intercept
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    p = probabilities(Linear.coef_, Linear.intercept_)
    found = features.white_box(Linear(), x, p, y)
    black = features.black_box(p, y)
    assert np.array_equal(found[:, : black.shape[1]], black)
    assert found[:, -4:-2] == pytest.approx(x @ Linear.coef_.T + Linear.intercept_)
    norms = np.zeros((3, 2))
    for c in range(2):
        squares = np.zeros(3)
        for j in range(3):
            coef, intercept = Linear.coef_.copy(), Linear.intercept_.copy()
            (coef if j < 2 else intercept)[(c, j) if j < 2 else c] += 1e-6
            moved = -np.log(probabilities(coef, intercept)[np.arange(3), y])
            squares += ((moved + np.log(p[np.arange(3), y])) / 1e-6) ** 2
        norms[:, c] = np.sqrt(squares)
    assert found[:, -2:] == pytest.approx(norms, rel=1e-4)


def test_a_model_that_shows_nothing_is_named():
    with pytest.raises(InputError, match="object shows nothing of its inside"):
        features.white_box(object(), np.zeros((1, 2)), P[:1], Y[:1])


SHAPE, ORDERED = (3, 5), (False, True)
ROWS = np.array([[0, 0], [1, 4], [2, 2]])


def test_distance_against_a_loop():
    rng = np.random.default_rng(4)
    records = np.column_stack([rng.integers(0, n, 50) for n in SHAPE])
    found = rows.distance(records, ROWS, SHAPE, ORDERED)
    for record, value in zip(records, found, strict=True):
        apart = [(record[0] != r[0]) / 2 + abs(record[1] - r[1]) / 8 for r in ROWS]
        assert value == pytest.approx(-min(apart))
    assert rows.distance(ROWS, ROWS, SHAPE, ORDERED).tolist() == [0, 0, 0]


def test_density_sums_to_one_and_prefers_what_was_copied():
    every = np.array([[a, b] for a in range(3) for b in range(5)])
    reference = every
    found = rows.density(every, ROWS, reference, SHAPE)
    assert (found[[0, 9, 12]] > 0).all()  # the three rows themselves
    kernel = np.exp(rows._log_kernel(every, ROWS, SHAPE, 0.3))
    assert kernel.sum() == pytest.approx(1)


def test_likelihood_is_the_log_of_the_model_where_it_is_one_table():
    table = np.arange(1.0, 16).reshape(SHAPE)
    model = Decomposable(SHAPE, ((0, 1),), (table / table.sum(),))
    found = rows.likelihood(ROWS, model, [(0, 1)])
    assert np.exp(found) == pytest.approx([1 / 120, 10 / 120, 13 / 120])


@pytest.mark.parametrize(
    ("records", "synthetic", "said"),
    [
        (np.zeros((2, 3), int), ROWS, "2 columns"),
        (ROWS, np.zeros((0, 2), int), "no synthetic rows"),
    ],
)
def test_what_row_attacks_refuse(records, synthetic, said):
    with pytest.raises(InputError, match=said):
        rows.distance(records, synthetic, SHAPE, ORDERED)


def test_the_discriminant_is_the_best_test_between_two_normals():
    rng = np.random.default_rng(8)
    mixing = rng.normal(size=(4, 4))
    shift = np.array([1.0, 0, 0.5, -0.5])
    inside = rng.random(4000) < 0.5
    x = rng.normal(size=(4000, 4)) @ mixing.T + np.outer(inside, shift)
    made = discriminant.fit(x[:2000], inside[:2000])
    mu = math.sqrt(shift @ np.linalg.solve(mixing @ mixing.T, shift))
    assert roc(made.score(x[2000:]), inside[2000:]).auc == pytest.approx(
        stats.norm.cdf(mu / 2**0.5), abs=0.02
    )


def test_the_discriminant_bears_features_that_never_move():
    x = np.column_stack([np.ones(20), np.arange(20) % 2, np.arange(20)])
    made = discriminant.fit(x, np.arange(20) % 2 == 0)
    assert np.isfinite(made.score(x)).all()
    with pytest.raises(InputError, match="at least 2 runs"):
        discriminant.fit(x[:3], np.array([True, False, True]))

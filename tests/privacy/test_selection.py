"""The law of Gumbel selection, and its privacy on every neighbour."""

import itertools
import math

import numpy as np
import pytest

from tests.exact_privacy import (
    PrivacyViolation,
    check,
    enumerate_transcripts,
    log_law,
    log_law_top_k,
    neighbours,
)
from understudy.privacy import accounting
from understudy.privacy.cost import Selection

UNIVERSE = (0, 1, 2)


def counts(data, universe=UNIVERSE):
    return np.array([sum(row == value for row in data) for value in universe], dtype=np.int64)


def pick(scale):
    return lambda data: dict(enumerate(log_law(counts(data), scale)))


def pick_k(scale, k):
    return lambda data: log_law_top_k(counts(data), scale, k)


def test_log_law_is_softmax():
    scores = np.array([3, -2, 7, 7], dtype=np.int64)
    weights = np.exp(scores / 1.9)
    assert np.exp(log_law(scores, 1.9)) == pytest.approx(weights / weights.sum(), abs=1e-14)


def test_log_law_survives_large_scores():
    law = np.asarray(log_law(np.array([0, 10**6, -(10**15)], dtype=np.int64), 1.0))
    assert law[1] == pytest.approx(0.0, abs=1e-12)
    assert law[0] == pytest.approx(-1e6)
    assert law[2] == pytest.approx(-1e15 - 1e6, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_top_k_is_peeling(k):
    """One-shot top-k has the law of k rounds of selection without replacement."""
    scores, scale = np.array([1, 4, 2, 2], dtype=np.int64), 1.3

    def peel(chooser):
        left, done = list(range(len(scores))), []
        for _ in range(k):
            i = chooser.choose(log_law(scores[left], scale))
            done.append(left.pop(i))
        return tuple(done)

    peeled, law = enumerate_transcripts(peel), log_law_top_k(scores, scale, k)
    assert set(law) == set(itertools.permutations(range(4), k))
    assert {key: law[key] for key in peeled} == pytest.approx(peeled, abs=1e-12)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
def test_selection_keeps_what_is_charged_for_it(relation, scale):
    pairs = list(neighbours(UNIVERSE, 3, relation))
    event = Selection(scale)
    eps0 = 2 / scale
    report = check(
        pick(scale),
        pairs,
        pure=float(accounting.pure(event)),
        bounded_range=eps0,
        rho=float(accounting.rho(event)),
    )
    if relation == "replace":
        assert report.bounded_range == pytest.approx(eps0)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_top_two_keeps_what_is_charged_for_it(relation):
    pairs = list(neighbours(UNIVERSE, 3, relation))
    event = Selection(1.5, k=2)
    check(
        pick_k(1.5, 2), pairs, pure=float(accounting.pure(event)), rho=float(accounting.rho(event))
    )


def test_broken_twins_are_caught():
    pairs = list(neighbours(UNIVERSE, 3, "replace"))
    event = Selection(2.0)
    half, pure, rho = 1.0, float(accounting.pure(event)), float(accounting.rho(event))
    with pytest.raises(PrivacyViolation):
        check(pick(half), pairs, bounded_range=pure)
    with pytest.raises(PrivacyViolation):
        check(pick(half), pairs, rho=rho)
    with pytest.raises(PrivacyViolation):  # the second pick was not charged
        check(pick_k(2.0, 2), pairs, rho=rho)


def exact_l1(scores, candidates):
    return dict(enumerate(log_law(np.array([scores(c) for c in candidates]), 2.0)))


def test_scores_that_move_by_two_need_sensitivity_two():
    """L1 distance of a marginal under replace moves by 2; charged as 1 it is caught."""
    references = [np.array([3, 0, 0]), np.array([0, 0, 3]), np.array([1, 1, 1])]

    def mechanism(data):
        return exact_l1(lambda ref: np.abs(counts(data) - ref).sum(), references)

    pairs = list(neighbours(UNIVERSE, 3, "replace"))
    check(mechanism, pairs, bounded_range=float(accounting.pure(Selection(2.0, sensitivity=2))))
    with pytest.raises(PrivacyViolation):
        check(mechanism, pairs, bounded_range=float(accounting.pure(Selection(2.0))))


@pytest.mark.parametrize("order", [1.01, 2.0, 4.0, 16.0, 64.0])
def test_renyi_bound_on_many_random_pairs(order):
    """D_a <= a ε0²/8 on 10^4 pairs of score vectors that move by at most one."""
    rng = np.random.default_rng(17)
    scale, worst = 2.0, 0.0
    scores = rng.integers(-4, 5, size=(10_000, 4))
    moved = scores + rng.integers(-1, 2, size=scores.shape)
    for s, m in zip(scores[:20], moved[:20], strict=True):  # the vectorised law is ours
        assert log_law(s, scale) == pytest.approx(rows_log_law(s[None], scale)[0], abs=1e-12)
        assert log_law(m, scale) == pytest.approx(rows_log_law(m[None], scale)[0], abs=1e-12)
    p, q = rows_log_law(scores, scale), rows_log_law(moved, scale)
    divergence = np.logaddexp.reduce(order * p + (1 - order) * q, axis=1) / (order - 1)
    worst = float(divergence.max() / order)
    assert worst <= float(accounting.rho(Selection(scale))) + 1e-12
    if order == 2.0:
        assert worst > 0.5 * float(accounting.rho(Selection(scale)))


def rows_log_law(scores, scale):
    z = scores / scale
    return z - np.logaddexp.reduce(z, axis=1, keepdims=True)


def mwem_transcripts(scale, rounds, n):
    """Signed multiplicative weights without measurement: universe {0, 1}, two indicator queries."""

    def mechanism(data):
        exact = counts(data, (0, 1))

        def run(chooser):
            eta = math.sqrt(8 * math.log(2) / rounds)
            log_p = np.log([0.5, 0.5])
            for _ in range(rounds):
                reference = np.rint(n * np.exp(log_p)).astype(np.int64)
                q = chooser.choose(log_law(exact - reference, scale))
                log_p = log_p + eta * (np.arange(2) == q)
                log_p = log_p - np.logaddexp(*log_p)
            return chooser.transcript

        return enumerate_transcripts(run)

    return mechanism


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_rounds_compose(relation):
    pairs = list(neighbours((0, 1), 2, relation))
    event = Selection(2.5)
    check(
        mwem_transcripts(2.5, 2, n=2),
        pairs,
        pure=2 * float(accounting.pure(event)),
        rho=2 * float(accounting.rho(event)),
    )


def test_a_forgotten_round_is_caught():
    pairs = list(neighbours((0, 1), 2, "replace"))
    with pytest.raises(PrivacyViolation):
        check(mwem_transcripts(2.5, 2, n=2), pairs, rho=float(accounting.rho(Selection(2.5))))

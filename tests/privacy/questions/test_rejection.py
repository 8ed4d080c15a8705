"""Bernoulli rejections: their law, their charge on all neighbours, and refusals."""

import itertools
import math

import numpy as np
import pytest

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    enumerate_transcripts,
    neighbours,
)
from understudy.errors import PrivacyError
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.questions import BernoulliRejection, Cell
from understudy.privacy.questions.rejection import covered, half_log_odds, rejection_scale
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts

SHAPE = (2, 2)
CLIQUES = ((0,), (0, 1))
CELLS = (Cell(0, (1,), 1), Cell(1, (0, 1), -1), Cell(1, (1, 1), 1))
RECORDS = (np.array([1, 0]), np.array([1, 1]))
N = 3


def coin(scale, gamma, k=3):
    return Selection(rejection_scale(scale, gamma), SCORE_SENSITIVITY, k)


def toss(rows, noise, scale, gamma, event=None, relation=Relation.ADD_REMOVE, **request):
    plan = Plan((Charge("coins", event or coin(scale, gamma)),))
    gate = Gate(TinyCounts(SHAPE, rows), StrictCharges(plan, relation), relation, noise, N)
    asked = {"cells": CELLS, "records": RECORDS, "rows": N} | request
    return gate.ask("coins", BernoulliRejection(CLIQUES, scale=scale, gamma=gamma, **asked))


def chance(cell, rows, scale, gamma, records=RECORDS, n=N):
    """exp(−γ − (n − s)₊/B), counted by hand."""

    def inside(row):
        return all(row[i] == v for i, v in zip(CLIQUES[cell.marginal], cell.index, strict=True))

    fixed = list(zip(*records, strict=True))
    score = sum(map(inside, rows)) - n * sum(map(inside, fixed)) / len(fixed)
    return math.exp(-gamma - max(n - cell.sign * score, 0) / scale)


def law(rows, scale, gamma, noise=ChoosingNoise, **kwargs):
    return enumerate_transcripts(lambda c: toss(rows, noise(c), scale, gamma, **kwargs))


def pairs_of(relation):
    universe = tuple(itertools.product(*map(range, SHAPE)))
    n = N if relation is Relation.REPLACE else N - 1
    return sorted(
        {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbours(universe, n, relation.value)}
    )


@pytest.mark.parametrize("rows", [(), ((0, 1), (1, 1), (1, 0)), ((1, 1),) * 3, ((1, 1),) * 7])
@pytest.mark.parametrize(("scale", "gamma"), [(5.0, 0.5), (40.0, 0.03), (0.7, 2.0)])
def test_coins_are_independent_with_the_stated_chances(rows, scale, gamma):
    chances = [chance(cell, rows, scale, gamma) for cell in CELLS]
    assert all(0 < p <= math.exp(-gamma) for p in chances)
    found = law(rows, scale, gamma)
    for heads in itertools.product((False, True), repeat=3):
        expected = math.prod(p if h else 1 - p for p, h in zip(chances, heads, strict=True))
        assert math.exp(found[heads]) == pytest.approx(expected, rel=1e-3, abs=1e-9)


def test_chances_stay_in_the_interval():
    """[e^{−2η−γ}, e^{−γ}] for every score between −n and n, η = n/B."""
    n, scale, gamma = 1_000, 20_000.0, 0.05
    scores = np.linspace(-n * UNIT, n * UNIT, 4_001).astype(np.int64)
    drawn = rejection_scale(scale, gamma)
    p = 1 / (1 + np.exp(-2 * half_log_odds(scores, n, scale, gamma, drawn) / drawn))
    eta = n / scale
    assert p.min() >= math.exp(-2 * eta - gamma) * (1 - 1e-6)
    assert p.max() <= math.exp(-gamma) * (1 + 1e-6)
    assert (np.diff(p) >= 0).all()


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize(("scale", "gamma"), [(4.0, 0.5), (30.0, 0.05), (2.0, 1.5)])
def test_coins_keep_their_charge(relation, scale, gamma):
    event = coin(scale, gamma)
    claims = {"pure": float(accounting.pure(event)), "rho": float(accounting.rho(event))}
    check(lambda rows: law(rows, scale, gamma, relation=relation), pairs_of(relation), **claims)


def sharpest(noise):
    """One coin at the top of its interval, where its odds move most."""
    scale, gamma = 60.0, 0.1
    records = (np.array([0]), np.array([0]))
    asked = {"cells": (Cell(0, (1,), 1),), "records": records}

    def mechanism(rows):
        return law(rows, scale, gamma, noise, event=coin(scale, gamma, 1), **asked)

    one, other = ((1, 1),) * 3, ((1, 1),) * 2
    return mechanism, [(other, one)], float(accounting.pure(coin(scale, gamma, 1)))


class TwoThirds(ChoosingNoise):
    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale * 2 / 3, k)


class ThreeHalves(ChoosingNoise):
    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale * 3 / 2, k)


def test_noise_is_neither_too_small_nor_too_large():
    mechanism, pairs, claimed = sharpest(ChoosingNoise)
    assert 0.8 * claimed < check(mechanism, pairs, bounded_range=claimed).bounded_range
    mechanism, pairs, claimed = sharpest(TwoThirds)
    with pytest.raises(PrivacyViolation):
        check(mechanism, pairs, bounded_range=claimed)
    mechanism, pairs, claimed = sharpest(ThreeHalves)
    assert check(mechanism, pairs, bounded_range=claimed).bounded_range < 0.8 * claimed


def test_the_charge_is_below_the_analytic_one():
    """ρ = 1/(8B²(1−e^{−γ})²) against (1/(γB))²/2, and above the exact divergence of one coin."""
    scale, gamma = 1_000.0, 0.05
    charged = float(accounting.rho(coin(scale, gamma, 1)))
    assert charged == pytest.approx(1 / (8 * scale**2 * (1 - math.exp(-gamma)) ** 2), rel=1e-3)
    assert charged < 0.3 / (2 * gamma**2 * scale**2)
    p, q = math.exp(-gamma), math.exp(-gamma - 1 / scale)
    orders = np.concatenate([np.linspace(1.01, 50, 200), np.geomspace(50, 2e4, 200)])
    for a, b in ((p, q), (q, p)):
        up, down = math.log(a / b), math.log((1 - a) / (1 - b))
        excess = a * np.expm1((orders - 1) * up) + (1 - a) * np.expm1((orders - 1) * down)
        assert (np.log1p(excess) / (orders - 1) / orders).max() <= charged


@pytest.mark.real_noise
def test_real_coins_have_their_frequency():
    rows, scale, gamma, number = ((1, 1), (0, 1), (1, 0)), 6.0, 0.4, 3_000
    event = coin(scale, gamma, number)
    cells = (CELLS[0],) * number
    tossed = toss(rows, OpenDPNoise(), scale, gamma, event, cells=cells)
    p = chance(CELLS[0], rows, scale, gamma)
    off = (sum(tossed) - number * p) / math.sqrt(number * p * (1 - p))
    assert abs(off) < 6.5  # by chance 8e-11


def test_huge_margins_never_keep_anything():
    assert toss(((1, 1),) * 3, OpenDPNoise(), 5.0, 500.0) == (False, False, False)


@pytest.mark.parametrize("factor", [2 / 3, 0.99])
def test_an_event_that_does_not_cover_is_refused_uncharged(factor):
    right = coin(5.0, 0.5)
    assert covered(right.sensitivity, right.scale, 5.0, 0.5)
    # Less sensitivity at the same scale: its ε0 is too small for these coins.
    lower = Selection(right.scale, round(right.sensitivity * factor), 3)
    for event in (lower, coin(5.0, 0.5, k=2), Gaussian(3.0)):
        plan = Plan((Charge("coins", event),))
        charges, noise = StrictCharges(plan), StillNoise()
        gate = Gate(TinyCounts(SHAPE, ()), charges, Relation.ADD_REMOVE, noise, N)
        with pytest.raises(PrivacyError, match="does not cover"):
            gate.ask("coins", BernoulliRejection(CLIQUES, CELLS, RECORDS, N, scale=5.0, gamma=0.5))
        assert charges.charged == []
        assert noise.asked == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"cells": (Cell(2, (1,), 1),)}, "not a cell"),
        ({"cells": (Cell(0, (1,), 0),)}, "not a cell"),
        ({"cells": (Cell(0, (1, 0), 1),)}, "not a cell"),
        ({"cells": (Cell(0, (2,), 1),)}, "leaves the domain"),
        ({"rows": 0}, "rows = 0"),
        ({"records": (np.array([0]),)}, "columns"),
        ({"scale": 0.0}, "above 0"),
        ({"scale": math.nan}, "above 0"),
        ({"gamma": -1.0}, "above 0"),
    ],
)
def test_bad_requests_are_refused_uncharged(request_, message):
    charges = StrictCharges(Plan((Charge("coins", coin(5.0, 0.5)),)))
    gate = Gate(TinyCounts(SHAPE, ()), charges, Relation.ADD_REMOVE, StillNoise(), N)
    asked = {
        "cells": CELLS, "records": RECORDS, "rows": N, "scale": 5.0, "gamma": 0.5,
    } | request_  # fmt: skip
    with pytest.raises(PrivacyError, match=message):
        gate.ask("coins", BernoulliRejection(CLIQUES, **asked))
    assert charges.charged == []

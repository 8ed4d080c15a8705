"""Simulated fits are the solver's own, and first picks of the intercept do no lasting harm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench import picks

from understudy.learn.plans import PICK, START
from understudy.learn.solvers import frank_wolfe
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.exact import Examples
from understudy.privacy.features import GRID, Box
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Logistic, Squared
from understudy.privacy.questions.descent import UNIT
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges

FITS = 3


class Given(StillNoise):
    """The Gumbel noise that a fit is told to take."""

    def __init__(self, draws):
        super().__init__()
        self._draws = iter(draws)

    def top_k(self, scores, scale, k):
        return (int((scores / scale + next(self._draws)).argmax()),)


def solved(features, targets, loss, way, draws):
    """`frank_wolfe` itself on the same noise, and without noise on where it starts."""
    box = Box.of((-1, 1), features.shape[1] - 1)
    charges = (Charge(PICK, Selection(way.scale * UNIT, UNIT), way.steps),)
    if way.level is not None:
        charges = (Charge(START, Gaussian(1.0, *loss.moves(Relation.ADD_REMOVE))), *charges)
    plan = Plan(charges)
    examples = Examples.seal(features[:, 1:], targets, box)
    gate = Gate(examples, StrictCharges(plan), Relation.ADD_REMOVE, Given(draws))
    return frank_wolfe(
        gate, loss, len(targets), way.radius, way.steps, delay=way.delay, kept=way.kept
    )[0]


@pytest.mark.parametrize("kind", [picks.KINDS[1], picks.KINDS[4]], ids=lambda kind: kind.name)
@pytest.mark.parametrize(("delay", "level"), [(0, None), (40, 0.0)])
def test_simulated_fits_are_those_of_the_solver_on_the_same_noise(kind, delay, level):
    rng = np.random.default_rng(3)
    features, targets = kind.draw(400, rng)
    features = np.rint(features * GRID) / GRID
    way = replace(picks.way_for(400, features.shape[1], kind.loss, 2, 30), delay=delay, level=level)
    draws = rng.gumbel(size=(way.steps, 2 * features.shape[1], FITS))
    given = iter(draws)
    start = picks.begun(targets, kind.loss, way, rng, FITS)
    assert np.all((start == 0) == (level is None))
    found = picks.simulate(features, targets, kind.loss, way, lambda shape: next(given), start)
    for fit in range(FITS):
        own = solved(features, targets, kind.loss, way, draws[:, :, fit])
        np.testing.assert_allclose(found[:, fit], own, atol=1e-12)
    assert isinstance(kind.loss, Squared | Logistic)
    assert not np.allclose(found[:, 0], found[:, 1])


def after_picks_of_the_intercept(way):
    """Accuracy where noise put the first pick on the intercept, and there is no other noise."""
    features, targets = picks.easy()
    steps = iter(range(way.steps))

    def gumbel(shape):
        noise = np.zeros(shape)
        noise[0] = 1e9 if next(steps) == 0 else 0.0
        return noise

    weights = picks.simulate(features, targets, Logistic(), way, gumbel, np.zeros(1))
    return ((features @ weights > 0)[:, 0] == (targets > 0.5)).mean()


def test_a_first_pick_of_the_intercept_is_made_good():
    way = picks.way_for(3_000, 7, Logistic(), 2, 40)
    assert after_picks_of_the_intercept(way) > 0.9
    textbook = replace(way, radius=30.0, delay=0, kept=range(39, 40))
    assert after_picks_of_the_intercept(textbook) < 0.8

"""Tables outside the workload: the most wrong is selected, and only what is clear counts."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from understudy.models import Empirical
from understudy.players.base import Problem
from understudy.players.query.interactions import Interactions, beyond, clear
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import WorstMarginals
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StrictCharges, TinyCounts

SHAPE = (2, 2, 2, 2)
TRIPLES = tuple(itertools.combinations(range(4), 3))
UNIFORM = Empirical.of(SHAPE, np.array(list(itertools.product(*map(range, SHAPE)))))
PARITY = [(a, b, a ^ b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 50


def found(rows, off, picks=2, noise=1):
    """What is found against independent coins; ρ = 1/20 for each of the two questions."""
    select, look = Interactions.SELECT.format(3), Interactions.LOOK.format(3)
    relation = Relation.ADD_REMOVE
    events = (
        planning.selection(
            Fraction(1, 20), sensitivity=WorstMarginals.sensitivity(relation), k=picks
        ),
        planning.gaussian(Fraction(1, 20), changes=picks),
    )
    plan = Plan((Charge(select, events[0]), Charge(look, events[1])))
    account = StrictCharges(plan, relation)
    gate = Gate(TinyCounts(SHAPE, rows), account, relation, SeededNoise(noise), len(rows))
    pairs = tuple(itertools.combinations(range(4), 2))
    problem = Problem(SHAPE, pairs, (1.0,) * len(pairs), len(rows))
    player = Interactions(3, TRIPLES, picks, events[1].sigma)
    shown = player.find(problem, gate, UNIFORM, 5.0, off)
    assert [purpose for purpose, _ in account.charged] == [select, look]
    return shown


def test_a_parity_is_found_alone():
    """It is off by 400 rows of 400; the scales of the noise are 4.5 (Gumbel) and 4.5 (σ)."""
    shown = found(PARITY, {})
    assert list(shown) == [(0, 1, 2)]
    assert shown[0, 1, 2] == pytest.approx(400 - 8 * 0.8 * 5, abs=45)  # ten deviations


def test_independent_coins_show_nothing():
    """No table is off at all, and four deviations of noise are above 5 % of 400 rows here."""
    rows = list(itertools.product(*map(range, SHAPE))) * 25
    assert found(rows, {}) == {}


def test_what_its_parts_are_off_by_is_not_counted_again():
    assert found(PARITY, {(0, 1): 390.0}) == {}
    assert beyond((0, 1, 2, 3), 100.0, {(0, 1): 30.0, (1, 2, 3): 50.0, (0, 4): 9.0}) == 20.0


def test_clear_is_beyond_noise_and_a_twentieth_of_the_rows():
    assert clear(51, 10, 1_000)
    assert not clear(49, 10, 1_000)
    assert not clear(51, 13, 1_000)

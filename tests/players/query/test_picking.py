"""The query player over classes: it passes the kit, and its game is as private as its plan."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.exact_privacy import check, game_law, neighbours
from tests.queries.brute_force import holds, queries
from tests.thorough import some
from understudy.game import play
from understudy.game.methods import Design
from understudy.game.methods.fem import FEMMethod, SepFEMMethod
from understudy.players.base import PickedQuery, Problem
from understudy.players.data.ftpl import PerturbedLeader, _query
from understudy.players.data.universe import MultiplicativeWeights
from understudy.players.query.picking import ExponentialMechanism, QueryPicker
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import GRID
from understudy.privacy.relation import Relation
from understudy.queries import Family
from understudy.queries.classes import KINDS
from understudy.testing import (
    SeededNoise,
    StillNoise,
    StrictCharges,
    TinyCounts,
    check_query_player,
)

SHAPE = (2, 3)
FAMILIES = (Family((0, 1), kind="disjunctions"), Family((1,), kind="prefixes"))
PROBLEM = Problem(SHAPE, ((0, 1), (1,)), (1.0, 1.0), 30, FAMILIES)


def plan_of(rounds, scale=SCORE_SENSITIVITY):
    event = Selection(float(scale), sensitivity=SCORE_SENSITIVITY)
    return Plan((Charge(QueryPicker.PICK, event, rounds),))


@pytest.mark.parametrize("relation", list(Relation))
def test_it_passes_the_kit(relation):
    check_query_player(
        lambda: QueryPicker.over(3, FAMILIES, SHAPE),
        plan_of(3),
        problem=PROBLEM,
        relation=relation,
        rows_public=30,
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_picked_query_enters_the_history_as_itself(kind):
    """Up to a constant, which no argmax sees: f(x) = w·q(x), or w·(1 − q(x))."""
    shape = (2, 3, 1)
    rows = np.array(list(itertools.product(*map(range, shape))))
    for query in queries(Family((0, 1), kind=kind), shape):
        for sign in (1, -1):
            picked = PickedQuery((0, 1), query, sign)
            inside = holds(query, list(rows.T))
            value = _query(shape, picked).evaluate(rows)
            np.testing.assert_allclose(value, inside if sign > 0 else ~inside, atol=1e-12)


@pytest.mark.parametrize("relation", some(Relation, 2, 1))
def test_the_whole_game_costs_what_is_planned(relation):
    """Every transcript of two rounds on all neighbours, through the real loop and gate."""
    shape = (2, 2)
    families = (Family((0, 1), kind="parities"), Family((0,), kind="conjunctions"))
    problem = Problem(shape, ((0, 1), (0,)), (1.0, 1.0), 2, families)
    plan = plan_of(2, 0.8 * SCORE_SENSITIVITY)
    universe = tuple(itertools.product(range(2), range(2)))

    def law(rows):
        leader = PerturbedLeader(2, samples=4)
        query = QueryPicker.over(2, families, shape)
        return game_law(query, leader, problem, plan, rows, relation=relation, rows_public=2)

    pairs = {
        (tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbours(universe, 1, relation.value)
    }
    check(law, sorted(pairs), rho=float(accounting.total_rho(plan)))


@pytest.mark.parametrize(
    "method", [FEMMethod(rounds=60, samples=40), SepFEMMethod(rounds=60, samples=40)]
)
def test_without_noise_the_game_finds_the_data(method):
    """A pick that is next to exact drives the error down on a small domain (every class at once)."""
    from understudy.privacy.gate import Gate
    from understudy.testing.stand_ins import StrictCharges, TinyCounts

    rng = np.random.default_rng(0)
    rows = [tuple(row) for row in np.stack([rng.integers(0, 2, 200), rng.integers(0, 3, 200)], 1)]
    rows = [row if row[0] or rng.random() < 0.4 else (1, 2) for row in rows]
    families = tuple(Family((0, 1), kind=kind) for kind in KINDS)
    design = Design(SHAPE, ((0, 1),) * 5, (1.0,) * 5, Relation.REPLACE, 200, families)
    plan = Plan(method.charges(design, Fraction(50)))
    gate = Gate(
        TinyCounts(SHAPE, rows),
        StrictCharges(plan, Relation.REPLACE),
        Relation.REPLACE,
        SeededNoise(1),
        200,
    )
    query, data = method.players(design, plan)
    model = play(design.problem(200), query, data, gate, rng).model
    truth = np.zeros(SHAPE)
    for row in rows:
        truth[row] += 1 / 200
    for family in families:
        products = family.products(SHAPE)
        error = np.abs(products.answers(truth) - products.answers(model.marginal((0, 1)))).max()
        assert error < 0.12, family.kind


def asked(sigma, rows, view, problem, rounds=1):
    charges = [Charge(ExponentialMechanism.SELECT, Selection(1.0, GRID), rounds)]
    if sigma is not None:
        charges.append(Charge(ExponentialMechanism.MEASURE, Gaussian(sigma), rounds))
    account, noise = StrictCharges(Plan(tuple(charges))), StillNoise()
    counts = TinyCounts(problem.shape, rows)
    gate = Gate(counts, account, Relation.ADD_REMOVE, noise)
    (answer,) = ExponentialMechanism(rounds, sigma).play(problem, gate, view, 0)
    return answer, account


def test_it_finds_the_worst_cell_and_pays_for_it():
    problem = Problem((2, 2), ((0,), (1,), (0, 1)), (1.0,) * 3, 8)
    data = MultiplicativeWeights(1)
    view = data.view(problem, data.start(problem))
    rows = [(0, 1)] * 5 + [(1, 0)] * 3
    answer, account = asked(None, rows, view, problem)
    assert (answer.clique, answer.cell.index, answer.cell.sign) == ((0, 1), (0, 1), 1)
    assert answer.value is None
    assert [purpose for purpose, _ in account.charged] == [ExponentialMechanism.SELECT]
    answer, account = asked(2.0, rows, view, problem)
    assert (answer.clique, answer.cell.index, answer.cell.sign) == ((0, 1), (0, 1), 0)
    assert (answer.value, answer.sigma) == (5.0, 2.0)
    purposes = [ExponentialMechanism.SELECT, ExponentialMechanism.MEASURE]
    assert [purpose for purpose, _ in account.charged] == purposes


def test_too_much_is_seen_as_well_as_too_little():
    problem = Problem((4,), ((0,),), (1.0,), 8)
    data = MultiplicativeWeights(1)
    view = data.view(problem, data.start(problem))
    answer, _ = asked(None, [(0,)] * 2 + [(1,)] * 3 + [(2,)] * 3, view, problem)
    assert (answer.cell.index, answer.cell.sign) == ((3,), -1)

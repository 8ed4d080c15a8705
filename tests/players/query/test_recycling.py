"""DQRS: what recycling keeps, its counterexample, its charges, and DualQuery as a special case."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.exact_privacy import PrivacyViolation, check, game_law, neighbours
from tests.thorough import slow, some
from understudy.errors import InputError
from understudy.game import play, require_pair
from understudy.players.base import DataPlayer, Kind, MeasuredCell, Problem
from understudy.players.data.response import BestResponse, Responses, uniform_queries
from understudy.players.data.universe import MultiplicativeWeights
from understudy.players.query.recycling import GAMMA, Recycling
from understudy.players.query.weights import QueryWeights
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.questions import BernoulliRejection, Cell, rejection_scale
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StrictCharges, TinyCounts


def plan_of(scale, samples=1, t=1, draws=1, moves=SCORE_SENSITIVITY):
    """Coins and draws after response t, B = `scale` rows."""
    return Plan(
        (
            Charge(
                Recycling.coins(t + 1), Selection(rejection_scale(scale, GAMMA), moves, samples)
            ),
            Charge(QueryWeights.purpose(t + 1), Selection(UNIT * scale / t, moves, draws)),
        )
    )


class Given(DataPlayer):
    """A data player whose records and first queries were chosen before the game."""

    accepts, shows = frozenset({Kind.PICKED_CELL}), Responses

    def __init__(self, records, queries):
        self._records, self._queries = np.array(records), tuple(queries)

    def start(self, problem):
        return 0

    def view(self, problem, state):
        return Responses(problem.shape, self._records[:state], (self._queries,))

    def respond(self, problem, state, answers, rng):
        return state + 1

    def finish(self, problem, state):
        return Responses(problem.shape, self._records).model


def keys(answers):
    return [(a.cell.marginal, a.cell.index, a.cell.sign) for a in answers]


SHAPE, CLIQUES = (2, 3), ((0,), (0, 1))
ROWS = ((0, 0), (0, 1), (0, 1), (1, 2), (0, 1))
PROBLEM = Problem(SHAPE, CLIQUES, (1.0, 1.0), len(ROWS))
QUERIES = [
    (j, index, sign)
    for j, clique in enumerate(CLIQUES)
    for index in itertools.product(*(range(SHAPE[i]) for i in clique))
    for sign in (1, -1)
]


def weights(records, scale):
    """Q^{t+1} ∝ exp(Σ_i (n·q(D) − n·q(x^i))/B), by enumeration."""

    def inside(row, j, index):
        return all(row[i] == v for i, v in zip(CLIQUES[j], index, strict=True))

    exponents = []
    for j, index, sign in QUERIES:
        c = sum(inside(row, j, index) for row in ROWS)
        exponents.append(sum(sign * (c - len(ROWS) * inside(x, j, index)) for x in records) / scale)
    mass = np.exp(np.array(exponents))
    return mass / mass.sum()


def test_kept_and_drawn_queries_follow_the_next_weights_where_records_are_fixed():
    number, scale, records = 6_000, 4.0, [(0, 1)]
    before = uniform_queries(PROBLEM, number, np.random.default_rng(3))
    plan = plan_of(scale, samples=number, draws=number)
    gate = Gate(
        TinyCounts(SHAPE, ROWS),
        StrictCharges(plan, Relation.REPLACE),
        Relation.REPLACE,
        SeededNoise(4),
        len(ROWS),
    )
    view = Given(records, before).view(PROBLEM, 1)
    answers = Recycling(2, scale, frozenset({2})).play(PROBLEM, gate, view, 1)
    kept, drawn = answers[:-number], answers[-number:]
    law = weights(records, scale)
    accepted = math.exp(-GAMMA - len(ROWS) / scale)
    assert 0.5 * number * accepted < len(kept) < number * math.exp(-GAMMA)
    for sample in (kept, drawn):
        counts = [keys(sample).count(q) for q in QUERIES]
        assert stats.chisquare(counts, law * len(sample)).pvalue > 1e-5
        # The weights of the round before are told apart.
        uniform = np.full(len(QUERIES), len(sample) / len(QUERIES))
        assert stats.chisquare(counts, uniform).pvalue < 1e-5


def test_recycling_what_led_to_the_response_is_not_the_next_law():
    """|Q| = 2, s = 1, η = 0.1, γ = 0.3: P(S_2 = q | x^1) = 0.810 where Q^2(q) = 0.475."""
    rows, problem = ((0,), (1,)), Problem((2,), ((0,),), (1.0,), 2)
    first = MeasuredCell((0,), Cell(0, (0,), 1))
    scale = 2 / 0.1
    law = game_law(
        Recycling(2, scale, frozenset({2})),
        Given([(0,), (0,)], [first]),  # x^1 = 0 is the best response to the query "is 0"
        problem,
        plan_of(scale),
        rows,
        relation=Relation.REPLACE,
        rows_public=2,
    )

    def is_zero(answer):
        _, _, (_, _, index, sign), *_ = answer
        return (index == (0,)) == (sign > 0)

    drawn = sum(math.exp(p) for (_, a), p in law.items() if is_zero(a[-1]))
    # The kept query is the sample of size one; without it, the new draw.
    sampled = sum(math.exp(p) for (_, a), p in law.items() if is_zero(a[0]))
    assert drawn == pytest.approx(0.475, abs=5e-4)
    kept = math.exp(-GAMMA - 0.15)  # q(D) = 1/2 and q(x^1) = 1
    assert sampled == pytest.approx(kept + (1 - kept) * 0.475, abs=5e-4)


def pairs_of(shape, n, relation):
    universe = tuple(itertools.product(*map(range, shape)))
    return sorted(
        {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbours(universe, n, relation.value)}
    )


@pytest.mark.parametrize("relation", some(Relation, 2, 1), ids=str)
@pytest.mark.parametrize("scale", [1.2, slow(6.0)])
def test_two_recycled_rounds_keep_their_charge(relation, scale):
    shape, n = (3,), 3
    problem = Problem(shape, ((0,),), (1.0,), n)
    plan = plan_of(scale * SCORE_SENSITIVITY / UNIT)
    player, data = Recycling.of(plan), BestResponse(samples=1)
    assert player.recycled == {2}

    def mechanism(plan):
        return lambda rows: game_law(
            player, data, problem, plan, rows, relation=relation, rows_public=n
        )

    rho = float(accounting.total_rho(plan))
    pairs = pairs_of(shape, n if relation is Relation.REPLACE else n - 1, relation)
    pure = float(sum(accounting.pure(charge.event) for charge in plan))
    report = check(mechanism(plan), pairs, rho=rho, pure=pure)
    assert report.rho > 0.05 * rho
    # The analytic charge of the coin is larger still.
    draw = accounting.rho(plan[QueryWeights.purpose(2)].event)
    assert rho < float(draw) + 1 / (2 * GAMMA**2 * scale**2)
    with pytest.raises(PrivacyViolation):
        check(mechanism(plan), pairs, rho=0.9 * report.rho)


def test_draws_after_t_responses_pay_for_t():
    plan = Plan(Recycling.charges(6, 50, 25, Fraction(1, 100)))
    scales = [plan[QueryWeights.purpose(t + 1)].event.scale * t for t in range(1, 6)]
    assert scales == pytest.approx(
        [scales[0] * t**0.25 for t in range(1, 6)]
    )  # η falls as t^(−1/4)
    rounds, _, scale = QueryWeights.read(plan)
    assert (rounds, scale) == (6, pytest.approx(scales[-1]))


@pytest.mark.parametrize("rho", [Fraction(1, 10**9), Fraction(1, 300), Fraction(3)], ids=str)
@pytest.mark.parametrize(("rounds", "samples", "fresh"), [(2, 1, 1), (25, 80, 30), (60, 4, 1)])
def test_eta_is_solved_from_the_budget(rho, rounds, samples, fresh):
    """All of ρ is used: a hundredth less noise would not be paid for."""
    plan = Plan(Recycling.charges(rounds, samples, fresh, rho))
    assert rho * Fraction(99, 100) < accounting.total_rho(plan) <= rho
    recycled = Recycling.of(plan).recycled
    for t in range(1, rounds):
        draws = plan[QueryWeights.purpose(t + 1)].event.k
        assert draws == (fresh if t + 1 in recycled else samples)


def test_recycling_is_cheaper_or_not_done():
    rho = Fraction(1, 1000)
    half, whole = (Recycling.of(Plan(Recycling.charges(60, 4, few, rho))) for few in (2, 4))
    assert half.scale < 0.75 * whole.scale  # the same budget buys a larger η
    # A coin costs 1.9/B² and a draw t²/(2B²): four coins for two draws pay after the third response.
    assert half.recycled == set(range(4, 61))
    assert not whole.recycled


def test_without_coins_it_is_dualquery():
    """The same plan and the same noise give the same game; so do coins that never come up."""
    problem = Problem(SHAPE, CLIQUES, (1.0, 1.0), len(ROWS))
    plan = Plan(QueryWeights.charges(6, 3, Fraction(1)))

    def game(player):
        gate = Gate(
            TinyCounts(SHAPE, ROWS),
            StrictCharges(plan, Relation.REPLACE),
            Relation.REPLACE,
            SeededNoise(2),
            5,
        )
        model = play(problem, player, BestResponse(3), gate, np.random.default_rng(4)).model
        return np.stack(model.codes)

    assert np.array_equal(game(QueryWeights(6)), game(Recycling.of(plan)))
    never = Plan((Charge("coins", Selection(rejection_scale(5.0, 300.0), SCORE_SENSITIVITY, 3)),))
    gate = Gate(
        TinyCounts(SHAPE, ROWS),
        StrictCharges(never, Relation.REPLACE),
        Relation.REPLACE,
        OpenDPNoise(),
        5,
    )
    cells = [Cell(0, (0,), 1)] * 3
    records = (np.array([1]), np.array([0]))
    assert not any(
        gate.ask("coins", BernoulliRejection(CLIQUES, cells, records, 5, scale=5.0, gamma=300.0))
    )


def test_it_needs_a_player_that_lists_records():
    for player in (Recycling(3, 2.0, frozenset({2})), QueryWeights(3)):
        with pytest.raises(InputError, match=r"looks at .*Responses.*, and is shown Universe"):
            require_pair(player, MultiplicativeWeights(3))

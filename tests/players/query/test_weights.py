"""Weights over queries: what is drawn, and what it costs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.exact_privacy import ChoosingNoise, PrivacyViolation, check, game_law, neighbours
from tests.thorough import some
from understudy.players.base import DataPlayer, Kind, Problem
from understudy.players.data.response import BestResponse, Responses, uniform_queries
from understudy.players.query.weights import QueryWeights, squares
from understudy.privacy import accounting, planning
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.relation import Relation
from understudy.testing import check_data_player

SHAPE = (2, 2)
CLIQUES = ((0,), (0, 1))
PROBLEM = Problem(SHAPE, CLIQUES, (1.0, 1.0), 2)
QUERIES = [
    (j, index, sign)
    for j, clique in enumerate(CLIQUES)
    for index in itertools.product(*(range(SHAPE[i]) for i in clique))
    for sign in (1, -1)
]


def answer(query, row):
    """q(x) of a cell or its complement."""
    j, index, sign = query
    inside = all(row[i] == v for i, v in zip(CLIQUES[j], index, strict=True))
    return inside if sign > 0 else not inside


def pairs_of(n, relation):
    universe = tuple(itertools.product(*map(range, SHAPE)))
    return sorted(
        {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbours(universe, n, relation.value)}
    )


def game(rounds=2, samples=1, rho=Fraction(1)):
    plan = Plan(QueryWeights.charges(rounds, samples, rho))
    return QueryWeights(rounds), BestResponse(samples), plan


def law(query, data, plan, rows, relation=Relation.REPLACE, **twin):
    return game_law(
        query, data, PROBLEM, plan, rows, relation=relation, rows_public=PROBLEM.rows, **twin
    )


class Fixed(DataPlayer):
    """A data player whose records were chosen before the game."""

    accepts, shows = frozenset({Kind.PICKED_CELL}), Responses

    def __init__(self, records):
        self._records = np.array(records)

    def start(self, problem):
        return 0

    def view(self, problem, state):
        return Responses(problem.shape, self._records[:state])

    def respond(self, problem, state, answers, rng):
        return state + 1

    def finish(self, problem, state):
        return Responses(problem.shape, self._records).model


@pytest.mark.parametrize(
    ("rho", "rows"),
    some(
        itertools.product(
            (Fraction(1, 50), Fraction(2)),
            (((0, 0), (0, 0)), ((0, 1), (1, 0)), ((1, 1), (1, 0))),
        ),
        4,
    ),
)
def test_draws_have_the_weights_of_brute_force(rows, rho):
    """Q^3(q) ∝ exp(η Σ_{i<3} (q(D) − q(x^i))) with η = n/B, through loop, gate and buckets."""
    records, n = [(0, 1), (1, 1), (0, 0)], len(rows)
    plan = Plan(QueryWeights.charges(3, 1, rho))
    found = law(QueryWeights(3), Fixed(records), plan, rows)
    eta = n / (QueryWeights.read(plan)[2] / UNIT)

    def weights(responses):
        exponents = [
            eta * sum(sum(answer(q, row) for row in rows) / n - answer(q, x) for x in responses)
            for q in QUERIES
        ]
        mass = np.exp(np.array(exponents) - max(exponents))
        return dict(zip(QUERIES, mass / mass.sum(), strict=True))

    second, third = weights(records[:1]), weights(records[:2])
    assert len(found) == len(QUERIES) ** 2
    for transcript, log_p in found.items():
        _, (one,), (two,) = transcript
        keys = [(marginal, index, sign) for _, _, (_, marginal, index, sign), *_ in (one, two)]
        assert math.exp(log_p) == pytest.approx(second[keys[0]] * third[keys[1]], rel=1e-3)


def test_the_first_round_is_free_and_uniform():
    query, data, plan = game(rounds=3, samples=4)
    assert [charge.purpose for charge in plan] == ["queries of round 2", "queries of round 3"]
    assert query.play(PROBLEM, None, None, 0) == ()  # no gate is met
    drawn = uniform_queries(PROBLEM, 6_000, np.random.default_rng(0))
    seen = [drawn_as(query) for query in drawn]
    counts = [seen.count(q) for q in QUERIES]
    assert sum(counts) == 6_000
    assert stats.chisquare(counts).pvalue > 1e-4
    state = data.respond(PROBLEM, data.start(PROBLEM), (), np.random.default_rng(1))
    assert len(state.latest[0]) == 4


def drawn_as(query):
    assert query.clique == CLIQUES[query.cell.marginal]
    return query.cell.marginal, query.cell.index, query.cell.sign


@pytest.mark.parametrize(
    ("rho", "relation"),
    some(itertools.product((Fraction(1, 20), Fraction(2)), Relation), 3),
    ids=str,
)
def test_two_rounds_keep_their_charge(relation, rho):
    query, data, plan = game(rho=rho)
    claims = {
        "pure": float(sum(accounting.pure(charge.event) for charge in plan)),
        "rho": float(accounting.total_rho(plan)),
    }
    pairs = pairs_of(2 if relation is Relation.REPLACE else 1, relation)
    report = check(lambda rows: law(query, data, plan, rows, relation), pairs, **claims)
    assert report.pure > 0.3 * claims["pure"]  # the check is not about nothing


class TwoThirds(ChoosingNoise):
    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale * 2 / 3, k)


def test_too_little_noise_is_caught():
    query, data, plan = game(rho=Fraction(2))
    event = plan["queries of round 2"].event
    pairs = pairs_of(2, Relation.REPLACE)
    honest = check(
        lambda rows: law(query, data, plan, rows),
        pairs,
        bounded_range=float(accounting.pure(event)),
    )
    assert honest.bounded_range > 0.7 * float(accounting.pure(event))
    with pytest.raises(PrivacyViolation, match="range"):
        check(
            lambda rows: law(query, data, plan, rows, noise=TwoThirds),
            pairs,
            bounded_range=float(accounting.pure(event)),
        )


def test_scores_over_more_responses_need_more_noise():
    """One response too few in the charge is caught: two responses at the price of one."""
    cheap = planning.selection(Fraction(2), sensitivity=SCORE_SENSITIVITY)
    plan = Plan((Charge("queries of round 2", cheap), Charge("queries of round 3", cheap)))
    rounds, _, _ = QueryWeights.read(plan)
    assert rounds == 3
    honest = Plan(QueryWeights.charges(3, 1, Fraction(4)))
    first, second = (honest[f"queries of round {t}"].event for t in (2, 3))
    assert second.scale < cheap.scale < first.scale
    assert float(accounting.rho(second)) == pytest.approx(4 * float(accounting.rho(first)))


@pytest.mark.parametrize("rounds", [2, 3, 10, 57])
def test_sum_of_squares_has_its_closed_form(rounds):
    assert squares(rounds) == sum((t - 1) ** 2 for t in range(2, rounds + 1))


@pytest.mark.parametrize(("rounds", "samples"), [(2, 1), (7, 5), (40, 3)])
def test_the_plan_costs_rho_and_has_one_eta(rounds, samples):
    rho = Fraction(1, 7)
    plan = Plan(QueryWeights.charges(rounds, samples, rho))
    cost = accounting.total_rho(plan)
    assert cost <= rho
    assert float(cost / rho) == pytest.approx(1, abs=1e-12)
    found, drawn, scale = QueryWeights.read(plan)
    assert (found, drawn) == (rounds, samples)
    closed = samples * (rounds - 1) * rounds * (2 * rounds - 1) / (12 * (scale / UNIT) ** 2)
    assert float(rho) == pytest.approx(closed, rel=1e-4)  # up to the rounding that is paid for
    for t in range(2, rounds + 1):
        assert plan[f"queries of round {t}"].event.scale * (t - 1) == pytest.approx(scale)


def test_the_data_player_keeps_its_contract():
    check_data_player(lambda problem: BestResponse(samples=3, records=2))

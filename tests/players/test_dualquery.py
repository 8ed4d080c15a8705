"""DualQuery: the weights against brute force, the free first round, exact privacy, the sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import understudy as us
from understudy.errors import InputError
from understudy.game.methods import DualQueryMethod
from understudy.players.base import DataPlayer, Kind, MeasuredCell, Problem
from understudy.players.data.response import BestResponse, Responses, uniform_queries
from understudy.players.query.weights import QueryWeights, squares
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.questions import Cell
from understudy.privacy.relation import Relation
from understudy.schema import Boolean, Category, Schema
from understudy.testing import (
    GivenNoise,
    PrivacyViolation,
    check,
    check_data_player,
    check_method,
    game_law,
    neighbours,
    tiny_design,
)

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
        return self.view(problem, state).model(self._records)


# --- the weights --------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [((0, 0), (0, 0)), ((0, 1), (1, 0)), ((1, 1), (1, 0))])
@pytest.mark.parametrize("rho", [Fraction(1, 50), Fraction(2)])
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
        keys = [(cell.marginal, cell.index, cell.sign) for _, _, cell, _ in (one, two)]
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


# --- exact privacy ------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 20), Fraction(2)], ids=str)
def test_two_rounds_keep_their_charge(relation, rho):
    query, data, plan = game(rho=rho)
    claims = {
        "pure": float(sum(accounting.pure(charge.event) for charge in plan)),
        "rho": float(accounting.total_rho(plan)),
    }
    pairs = pairs_of(2 if relation is Relation.REPLACE else 1, relation)
    report = check(lambda rows: law(query, data, plan, rows, relation), pairs, **claims)
    assert report.pure > 0.3 * claims["pure"]  # the check is not about nothing


class TwoThirds(GivenNoise):
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
    cheap = Selection.within(Fraction(2), sensitivity=SCORE_SENSITIVITY)
    plan = Plan((Charge("queries of round 2", cheap), Charge("queries of round 3", cheap)))
    rounds, _, _ = QueryWeights.read(plan)
    assert rounds == 3
    honest = Plan(QueryWeights.charges(3, 1, Fraction(4)))
    first, second = (honest[f"queries of round {t}"].event for t in (2, 3))
    assert second.scale < cheap.scale < first.scale
    assert float(accounting.rho(second)) == pytest.approx(4 * float(accounting.rho(first)))


# --- sums ---------------------------------------------------------------------------------------


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


# --- responses ----------------------------------------------------------------------------------


def query_of(j, index, sign):
    return MeasuredCell(CLIQUES[j], Cell(j, index, sign))


def test_the_response_is_best_and_ties_never_override_it():
    data = BestResponse(samples=3, records=6)
    rng = np.random.default_rng(0)
    for key in range(40):
        draw = np.random.default_rng(key)
        state = data.start(PROBLEM)
        for _ in range(4):
            picked = [QUERIES[i] for i in draw.integers(0, len(QUERIES), 3)]
            state = data.respond(PROBLEM, state, tuple(query_of(*q) for q in picked), rng)
            universe = list(itertools.product(*map(range, SHAPE)))
            best = max(sum(answer(q, x) for q in picked) for x in universe)
            for record in np.stack(state.newest, axis=1):
                assert sum(answer(q, record) for q in picked) == best


def test_more_answers_than_samples_are_cut_at_random():
    data = BestResponse(samples=2)
    answers = tuple(query_of(*q) for q in QUERIES)
    kept = set()
    for key in range(30):
        state = data.respond(PROBLEM, data.start(PROBLEM), answers, np.random.default_rng(key))
        assert len(state.latest[0]) == 2
        kept |= {drawn_as(query) for query in state.latest[0]}
    assert len(kept) > len(QUERIES) / 2


def test_the_records_of_all_rounds_are_released():
    data, rng = BestResponse(samples=2, records=3), np.random.default_rng(0)
    state = data.start(PROBLEM)
    for _ in range(7):
        state = data.respond(PROBLEM, state, (), rng)
    model = data.finish(PROBLEM, state)
    assert model.size == 3 * 7
    assert np.array_equal(np.stack(model.codes, axis=1), state.records)


def test_the_players_keep_their_contracts():
    check_data_player(lambda problem: BestResponse(samples=3, records=2))
    check_method(DualQueryMethod(rounds=4, samples=3))


# --- the method ---------------------------------------------------------------------------------


def test_rules_are_public_and_bounded():
    for rows, expected in ((400, 400), (None, 10_000)):
        design = tiny_design((2, 3), rows=rows)
        for rho in (Fraction(1, 100), Fraction(1)):
            root = math.sqrt(expected * math.sqrt(2 * rho))
            plan = Plan(DualQueryMethod().charges(design, rho))
            rounds, samples, _ = QueryWeights.read(plan)
            assert rounds == round(1.5 * root)
            assert samples == max(5, round(root / 10))
    for rho in (Fraction(1, 10**15), Fraction(10**6)):
        design = tiny_design((2, 3), rows=10**9)
        rounds, samples, _ = QueryWeights.read(Plan(DualQueryMethod().charges(design, rho)))
        assert 2 <= rounds <= 400
        assert 5 <= samples <= 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds = 0"),
        ({"rounds": 1}, "rounds = 1"),
        ({"rounds": 10**7}, "rounds = 10000000"),
        ({"samples": 0}, "samples = 0"),
        ({"samples": 10**9}, "holds them in memory"),
        ({"records": 0}, "records = 0"),
    ],
)
def test_sizes_that_make_no_game_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        DualQueryMethod(**settings).check(tiny_design((2, 2)))


def test_the_theorem_is_the_formula():
    design = tiny_design((2, 3), rows=10**9)
    method = DualQueryMethod(rounds=400, samples=10_000)
    plan = Plan(method.charges(design, Fraction(1, 10**7)))
    rounds, samples, scale = QueryWeights.read(plan)
    eta = 10**9 * UNIT / scale
    bound = method.theorem(design, plan, 10**9, 0.05)
    deviation = math.sqrt(math.log(2 * 6 * rounds / 0.05) / (2 * samples))
    expected = eta + math.log(2 * (2 + 3 + 6)) / (eta * rounds) + 2 * deviation
    assert bound.bound == pytest.approx(min(1.0, expected))
    assert "exact oracle" in bound.statement
    small = tiny_design((2, 3), rows=50)
    coarse = Plan(DualQueryMethod().charges(small, Fraction(1, 100)))
    assert DualQueryMethod().theorem(small, coarse, 50, 0.05).bound == 1.0


def table(rows, key=0):
    import pyarrow as pa

    rng = np.random.default_rng(key)
    a = rng.choice(["x", "y", "z"], rows, p=[0.7, 0.2, 0.1])
    b = np.where(rng.random(rows) < 0.9, a == "x", rng.random(rows) < 0.5)
    schema = Schema((Category("a", ("x", "y", "z")), Boolean("b")))
    return pa.table({"a": a, "b": b}), schema


def test_it_learns_and_its_release_verifies(tmp_path):
    rows, schema = table(4_000)
    made = us.release(
        rows, schema, epsilon=4, delta="1e-8", method="dualquery", rows_public=4_000, key=1
    )
    assert made.certificate.bound < 0.25
    made.save(tmp_path / "bundle")
    assert us.verify(tmp_path / "bundle").passed

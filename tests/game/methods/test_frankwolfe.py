"""Frank-Wolfe on the entropic dual: gradient, Fenchel equality, the theorem, its limit, its privacy."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.exact_privacy import ChoosingNoise, PrivacyViolation, check, game_law, neighbours
from tests.thorough import slow
from understudy.errors import InputError
from understudy.game import play
from understudy.game.methods.frankwolfe import FrankWolfeMethod
from understudy.players.base import MeasuredCell, Problem
from understudy.players.data.universe import MultiplicativeWeights, SoftmaxResponse, Universe
from understudy.players.query.picking import NoisyVertex
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell
from understudy.privacy.relation import Relation
from understudy.testing import (
    SeededNoise,
    StillNoise,
    StrictCharges,
    TinyCounts,
    check_data_player,
    check_query_player,
    tiny_design,
)

SHAPE = (2, 3, 2)
# So much budget that a selection, drawn without noise, is the true maximum.
STILL = Fraction(10**12)


def rows_of(n, shape=SHAPE, key=0):
    rng = np.random.default_rng(key)
    cells = list(itertools.product(*map(range, shape)))
    picks = rng.choice(len(cells), size=n, p=rng.dirichlet(np.full(len(cells), 0.5)))
    return [cells[i] for i in picks]


def shares(rows, shape=SHAPE):
    table = np.zeros(shape)
    for row in rows:
        table[row] += 1 / len(rows)
    return table


def psi(query, alpha, truth):
    """α·ln Σ exp(q/α) − ⟨q, p_D⟩."""
    top = query.max()
    return float(top + alpha * np.log(np.exp((query - top) / alpha).sum()) - (query * truth).sum())


@pytest.mark.parametrize("alpha", [0.05, 0.7, 3.0])
def test_the_gradient_is_the_error_of_the_response(alpha):
    """∇ψ(q) = softmax(q/α) − p_D, by central differences."""
    rng = np.random.default_rng(1)
    query, truth = rng.uniform(-1, 1, SHAPE), shares(rows_of(50))
    gradient = SoftmaxResponse(alpha, 0.1).distribution(query) - truth
    h = 1e-5 * alpha
    for cell in itertools.product(*map(range, SHAPE)):
        bump = np.zeros(SHAPE)
        bump[cell] = h
        slope = (psi(query + bump, alpha, truth) - psi(query - bump, alpha, truth)) / (2 * h)
        assert slope == pytest.approx(gradient[cell], abs=1e-8)


@pytest.mark.parametrize("alpha", [0.01, 0.3, 2.0])
def test_fenchel_holds_with_equality_at_the_response_only(alpha):
    """⟨q, p⟩ = α·H(p) + α·H*(q/α) at p = softmax(q/α), and ≤ elsewhere."""
    rng = np.random.default_rng(2)
    query = rng.uniform(-1, 1, SHAPE)
    conjugate = psi(query, alpha, np.zeros(SHAPE))

    def slack(p):
        return alpha * float((p * np.log(p)).sum()) + conjugate - float((query * p).sum())

    assert slack(SoftmaxResponse(alpha, 0.1).distribution(query)) == pytest.approx(0, abs=1e-10)
    for _ in range(20):
        assert slack(rng.dirichlet(np.ones(query.size)).reshape(SHAPE)) > 0


class Watching:
    """A data player that writes down every state it went through."""

    def __init__(self, player):
        self._player, self.seen = player, []

    def __getattr__(self, name):
        return getattr(self._player, name)

    def view(self, problem, state):
        self.seen.append(state)
        return self._player.view(problem, state)


def played(method, rows, *, order=3, shape=SHAPE, noise=None, rho=STILL):
    design = tiny_design(shape, Relation.REPLACE, len(rows), order=order)
    plan = Plan(method.charges(design, rho))
    query, data = method.players(design, plan)
    gate = Gate(
        TinyCounts(shape, rows),
        StrictCharges(plan, Relation.REPLACE),
        Relation.REPLACE,
        noise or StillNoise(),
        len(rows),
    )
    watching = Watching(data)
    model = play(design.problem(len(rows)), query, watching, gate, np.random.default_rng(0)).model
    return design, plan, watching, model


def worst(p, design, rows):
    truth = Universe(shares(rows, design.shape))
    return max(np.abs(p.marginal(c) - truth.marginal(c)).max() for c in design.cliques)


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.1])
@pytest.mark.parametrize("rounds", [10, 100, 400])
def test_the_average_gap_keeps_its_bound_without_noise(rounds, alpha):
    """avg_t g(q_t) ≤ 2·√(2 ln|X|/T) at the theory's step, whatever α; g ≥ 0 always."""
    rows = rows_of(300)
    truth = shares(rows)
    method = FrankWolfeMethod(rounds=rounds, alpha=alpha, step=1.0)
    design, _, watching, _ = played(method, rows)
    gaps = []
    for state in watching.seen:
        p = watching.distribution(state.query)
        error = truth - p
        gaps.append(worst(Universe(p), design, rows) - float((state.query * error).sum()))
    assert min(gaps) >= -1e-12
    assert np.mean(gaps) <= 2 * math.sqrt(2 * math.log(truth.size) / rounds) + 1e-9


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("alpha", "step"), [(0.001, 2.5), (0.001, 1.0), (0.05, 4.0), (20.0, 9.0)])
def test_the_theorem_holds_for_every_step(alpha, step, noisy):
    """The last half, any step (also one cut off at γ = 1), with and without noise."""
    rows = rows_of(5_000)
    said = []
    for key in range(2):
        method = FrankWolfeMethod(rounds=150, alpha=alpha, step=step)
        noise = SeededNoise(key) if noisy else StillNoise()
        design, plan, _, model = played(
            method, rows, noise=noise, rho=Fraction(1, 2) if noisy else STILL
        )
        theorem = method.theorem(design, plan, len(rows), 0.05)
        assert worst(model, design, rows) <= theorem.bound
        said.append(theorem.bound)
    assert 0 < min(said) <= 1


def test_the_theorem_speaks_of_expectation_and_population():
    design = tiny_design((2, 2), rows=10_000)
    method = FrankWolfeMethod(rounds=5_000, step=1.0)
    plan = Plan(method.charges(design, Fraction(1)))
    theorem = method.theorem(design, plan, 10_000, 0.05)
    (charge,) = plan
    epsilon0, cells = float(accounting.pure(charge.event)), 2 + 2 + 4
    picking = 2 / (10_000 * epsilon0) * math.log(2 * cells * 5_000 / 0.05)
    game = math.sqrt(2 * math.log(4) / 5_000)  # each of the two halves of the regret, twice
    assert theorem.bound == pytest.approx(4 * game + 2 * picking + 0.001 * math.log(4), rel=1e-4)
    assert "expectation" in theorem.statement
    assert f"{math.sqrt(math.log(2 * cells / 0.05) / 20_000):.3g}" in theorem.statement


def test_small_alpha_is_multiplicative_weights():
    """With γ/α the step of multiplicative weights and α → 0, the trajectory is the same."""
    rounds, alpha, rows = 40, 1e-9, rows_of(400)
    eta = math.sqrt(8 * math.log(math.prod(SHAPE)) / rounds)
    softmax, weights = SoftmaxResponse(alpha, eta * alpha), MultiplicativeWeights(rounds)
    design = tiny_design(SHAPE, Relation.REPLACE, len(rows))
    problem, rng = design.problem(len(rows)), np.random.default_rng(0)
    plan = Plan(FrankWolfeMethod(rounds=rounds).charges(design, STILL))
    gate = Gate(
        TinyCounts(SHAPE, rows),
        StrictCharges(plan, Relation.REPLACE),
        Relation.REPLACE,
        StillNoise(),
        len(rows),
    )
    one, two = softmax.start(problem), weights.start(problem)
    query = NoisyVertex.over(rounds, design.cliques, SHAPE)
    for t in range(rounds):
        seen, other = softmax.view(problem, one), weights.view(problem, two)
        np.testing.assert_allclose(seen.p, other.p, rtol=0, atol=1e-7)
        answers = query.play(problem, gate, seen, t)
        one, two = (
            player.respond(problem, state, answers, rng)
            for player, state in ((softmax, one), (weights, two))
        )
    full = (0, 1, 2)
    np.testing.assert_allclose(
        softmax.finish(problem, one).marginal(full),
        weights.finish(problem, two).marginal(full),
        atol=1e-7,
    )


def test_error_goes_to_zero_without_noise():
    rows = rows_of(400)
    found = []
    for rounds in (8, 100, 1_000):
        design, _, _, model = played(FrankWolfeMethod(rounds=rounds), rows)
        found.append(worst(model, design, rows))
    assert found[2] < found[1] < found[0]
    assert found[2] < 0.03


def test_the_last_half_is_averaged():
    problem = Problem((2,), ((0,),), (1.0,), 10)
    data, rng = SoftmaxResponse(0.5, 0.2, keep_from=2), np.random.default_rng(0)
    state, seen = data.start(problem), []
    for sign in (1, 1, -1, 1):
        seen.append(data.view(problem, state).p)
        answer = MeasuredCell((0,), Cell(0, (1,), sign))
        state = data.respond(problem, state, (answer,), rng)
    np.testing.assert_allclose(
        data.finish(problem, state).marginal((0,)), (seen[2] + seen[3]) / 2, atol=1e-15
    )


def test_the_players_conform():
    check_data_player(lambda problem: SoftmaxResponse(0.01, 0.1, 1))
    design = tiny_design((3, 2, 1, 2))
    plan = Plan(FrankWolfeMethod(rounds=4).charges(design, Fraction(1)))
    check_query_player(lambda: NoisyVertex.over(4, design.cliques, design.shape), plan)


class HalfTheNoise(ChoosingNoise):
    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [slow(Fraction(1, 10)), Fraction(2)], ids=str)
def test_two_rounds_on_three_values_keep_their_plan_exactly(relation, rho):
    """Every transcript of the real loop on every pair of neighbouring tables; half the noise fails."""
    n = 3
    method = FrankWolfeMethod(rounds=2, alpha=0.1)
    design = tiny_design((3,), relation, n)
    plan = Plan(method.charges(design, rho))
    query, data = method.players(design, plan)

    def law(noise):
        return lambda rows: game_law(
            query,
            data,
            design.problem(n),
            plan,
            rows,
            relation=relation,
            rows_public=n,
            noise=noise,
        )

    universe = tuple((i,) for i in range(3))
    pairs = sorted(
        {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbours(universe, n, relation.value)}
    )
    pure = sum(float(accounting.pure(c.event)) * c.times for c in plan)
    total = float(accounting.total_rho(plan))
    report = check(law(ChoosingNoise), pairs, pure=pure, rho=total)
    assert report.pairs > 10
    assert report.pure > 0.3 * pure
    with pytest.raises(PrivacyViolation):
        check(law(HalfTheNoise), pairs, pure=pure if rho == 2 else report.pure, rho=total)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rounds": 0}, "rounds = 0 must be at least 1; leave it out"),
        ({"alpha": 0.0}, "alpha = 0.0 must be above 0"),
        ({"alpha": math.nan}, "alpha = nan"),
        ({"step": -1.0}, "step = -1.0"),
        ({"limit": 5}, "each of the 6 possible rows, above its limit of 5; use method = auto"),
    ],
)
def test_what_cannot_be_served_is_refused_before_planning(parameters, message):
    with pytest.raises(InputError, match=message):
        FrankWolfeMethod(**parameters).check(tiny_design((2, 3)))


def test_rounds_follow_from_public_facts_and_are_never_zero():
    known = tiny_design((2, 3), rows=400)
    for rho in (Fraction(1, 10**15), Fraction(1, 100), Fraction(1)):
        (charge,) = FrankWolfeMethod().charges(known, rho)
        assert charge.times == max(1, round(2 * math.sqrt(400 * math.sqrt(2 * rho))))


def test_its_releases_speak_of_the_population_and_verify(tmp_path):
    import pyarrow as pa

    import understudy as us
    from understudy.schema.imports import import_mbi

    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.integers(0, 3, 500), "b": rng.integers(0, 2, 500)})
    made = us.release(
        table, import_mbi('{"a": 3, "b": 2}'), epsilon="2", method="frankwolfe", rows_public=500
    )
    margin = math.sqrt(math.log(2 * 6 / 0.05) / 1_000)
    assert made.certificate.population == pytest.approx(made.certificate.bound + margin)
    assert "population" in repr(made)
    us.verify(made.save(tmp_path / "bundle")).require()

"""Players over a universe that is written out: multiplicative weights and the softmax response."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.thorough import examples
from understudy.game import play
from understudy.game.methods.mwem import MWEMMethod
from understudy.players.base import MeasuredCell, Problem
from understudy.players.data.universe import MultiplicativeWeights, Universe, log_softmax
from understudy.players.query.picking import ExponentialMechanism
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import GRID, Cell
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts, tiny_design

SHAPE = (2, 2, 2)


def skewed_rows(n, shape=SHAPE, key=0):
    rng = np.random.default_rng(key)
    cells = list(itertools.product(*map(range, shape)))
    picks = rng.choice(len(cells), size=n, p=rng.dirichlet(np.full(len(cells), 0.5)))
    return [cells[i] for i in picks]


def shares(rows, shape=SHAPE):
    table = np.zeros(shape)
    for row in rows:
        table[row] += 1 / len(rows)
    return table


def noiseless(rounds, *, measure, rows, order=3, shape=SHAPE, replays=4, data=None, noise=None):
    """The model of a game in which every selection is the true maximum and every count exact."""
    design = tiny_design(shape, Relation.REPLACE, len(rows), order=order)
    method = MWEMMethod(rounds=rounds, measure=measure, replays=replays)
    plan = Plan(method.charges(design, Fraction(1)))
    query, ours = method.players(design, plan)
    problem = design.problem(len(rows))
    gate = Gate(
        TinyCounts(shape, rows),
        StrictCharges(plan, Relation.REPLACE),
        Relation.REPLACE,
        noise or StillNoise(),
        len(rows),
    )
    return design, play(problem, query, data or ours, gate, np.random.default_rng(0)).model


def worst(model, design, rows):
    truth = shares(rows, design.shape)
    axes = range(truth.ndim)
    return max(
        np.abs(model.marginal(c) - truth.sum(axis=tuple(a for a in axes if a not in c))).max()
        for c in design.cliques
    )


def test_no_rounds_give_the_uniform_distribution():
    problem = Problem((2, 3), ((0,), (1,)), (1.0, 1.0), 10)
    query, data = ExponentialMechanism(0, 1.0), MultiplicativeWeights(0)
    gate = Gate(TinyCounts((2, 3), []), StrictCharges(Plan(())), Relation.ADD_REMOVE, StillNoise())
    model = play(problem, query, data, gate, np.random.default_rng(0)).model
    np.testing.assert_allclose(model.marginal((0, 1)), np.full((2, 3), 1 / 6), rtol=1e-12)


def test_measured_error_goes_to_zero_on_eight_points():
    rows = skewed_rows(400)
    found = []
    for rounds in (1, 10, 40):
        design, model = noiseless(rounds, measure=True, rows=rows)
        found.append(worst(model, design, rows))
    assert found[2] <= found[1] < 1e-4 < found[0]


def test_unmeasured_error_goes_to_zero_on_eight_points():
    rows = skewed_rows(400)
    found = []
    for rounds in (4, 64, 1024):
        design, model = noiseless(rounds, measure=False, rows=rows)
        found.append(worst(model, design, rows))
    assert found[2] < found[1] < found[0]
    assert found[2] < 0.03


@pytest.mark.parametrize("rounds", [1, 3, 10, 50, 300])
@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("key", [0, 1])
def test_the_average_keeps_the_theorem_without_noise(rounds, order, key):
    """max error <= sqrt(ln|X|/(2T)) for best responses; the grid adds at most 1/(16 n)."""
    rows = skewed_rows(200, key=key)
    design, model = noiseless(rounds, measure=False, rows=rows, order=order)
    bound = math.sqrt(math.log(8) / (2 * rounds)) + 1 / (GRID * len(rows))
    assert worst(model, design, rows) <= bound


def test_the_average_keeps_the_theorem_with_noise():
    """... + (2/(n ε0)) ln(|Q|T/β) with probability 1 − β, for the noise that the plan says."""
    rows, rounds, beta = skewed_rows(2_000), 30, 0.01
    for key in range(examples(5, 20)):
        design, model = noiseless(rounds, measure=False, rows=rows, noise=SeededNoise(key))
        (charge,) = MWEMMethod(rounds=rounds, measure=False).charges(design, Fraction(1))
        epsilon0 = float(accounting.pure(charge.event))
        queries = 2 * sum(math.prod(SHAPE[i] for i in c) for c in design.cliques)
        selection = 2 / (len(rows) * epsilon0) * math.log(queries * rounds / beta)
        bound = math.sqrt(math.log(8) / (2 * rounds)) + selection
        assert worst(model, design, rows) <= bound


class Watching:
    """A data player that writes down every distribution it went through."""

    def __init__(self, player):
        self._player, self.seen = player, []

    def __getattr__(self, name):
        return getattr(self._player, name)

    def view(self, problem, state):
        view = self._player.view(problem, state)
        self.seen.append(view.marginal(tuple(range(len(problem.shape)))))
        return view


def divergence(p, q):
    inside = p > 0
    return float((p[inside] * np.log(p[inside] / q[inside])).sum())


@pytest.mark.parametrize("key", [0, 1, 2])
def test_the_potential_falls_by_more_than_the_theorem_asks(key):
    """KL(p_D‖p_t) falls by at least err²/4 a round: moving a cell to its true share is a projection."""
    rows = skewed_rows(300, key=key)
    watching = Watching(MultiplicativeWeights(25, replays=1))
    noiseless(25, measure=True, rows=rows, data=watching)
    truth = shares(rows)
    potentials = [divergence(truth, p) for p in watching.seen]
    for before, after, p in zip(potentials, potentials[1:], watching.seen, strict=False):
        largest = np.abs(p - truth).max()  # cells of the whole universe are among the queries
        assert after <= before - largest**2 / 4 + 1e-9
    assert potentials[-1] < 0.05 * potentials[0]


def test_replays_do_not_hurt():
    rows = skewed_rows(300)
    errors = {}
    for replays in (1, 8):
        design, model = noiseless(12, measure=True, rows=rows, replays=replays)
        errors[replays] = worst(model, design, rows)
    assert errors[8] <= errors[1] + 1e-9


def test_a_measured_cell_gets_its_measured_share():
    problem = Problem((2, 3), ((0,), (0, 1)), (1.0, 1.0), 50)
    data = MultiplicativeWeights(1)
    answer = MeasuredCell((1,), Cell(0, (2,)), 40.0, 1.0)
    state = data.respond(problem, data.start(problem), (answer,), np.random.default_rng(0))
    np.testing.assert_allclose(
        data.finish(problem, state).marginal((1,)), [0.1, 0.1, 0.8], atol=1e-12
    )


def test_a_cell_measured_again_counts_with_the_mean():
    """By 1/σ²; otherwise a second look, which was paid for, would be thrown away."""
    problem = Problem((2, 2), ((0,), (1,)), (1.0, 1.0), 100)
    data, rng = MultiplicativeWeights(3), np.random.default_rng(0)
    state = data.start(problem)
    for value, sigma in ((20.0, 1.0), (40.0, 1.0), (60.0, 0.5)):
        answer = MeasuredCell((0,), Cell(0, (1,)), value, sigma)
        state = data.respond(problem, state, (answer,), rng)
    share = data.finish(problem, state).marginal((0,))[1]
    assert share == pytest.approx((0.2 + 0.4 + 4 * 0.6) / 6)


@pytest.mark.parametrize("value", [-1e9, 0.0, 50.0, 1e9])
def test_shares_at_the_ends_can_still_be_moved_later(value):
    problem = Problem((2,), ((0,),), (1.0,), 50)
    data, rng = MultiplicativeWeights(1), np.random.default_rng(0)
    state = data.start(problem)
    for number in (value, value, 25.0):
        answer = MeasuredCell((0,), Cell(0, (0,)), number, 1.0)
        state = data.respond(problem, state, (answer,), rng)
        p = data.finish(problem, state).marginal((0,))
        assert np.isfinite(p).all()
        assert p.sum() == pytest.approx(1.0)
    assert 0 < p[0] < 1


def test_signs_push_to_their_side():
    problem = Problem((2, 2), ((0,),), (1.0,), 10)
    data, rng = MultiplicativeWeights(4), np.random.default_rng(0)
    for sign in (-1, 1):
        answer = MeasuredCell((0,), Cell(0, (1,), sign))
        state = data.respond(problem, data.start(problem), (answer,), rng)
        moved = data.view(problem, state).marginal((0,))
        eta = math.sqrt(8 * math.log(4) / 4)
        assert moved[1] == pytest.approx(1 / (1 + math.exp(-sign * eta)))


def test_log_softmax_does_not_overflow():
    logits = np.array([1e9, 0.0, -1e9])
    np.testing.assert_allclose(np.exp(log_softmax(logits)), [1.0, 0.0, 0.0])


def test_marginals_of_a_universe_are_sums_in_the_order_asked():
    table = np.random.default_rng(0).dirichlet(np.ones(60)).reshape(3, 4, 1, 5)
    view = Universe(table)
    for size in range(5):
        for clique in itertools.permutations(range(4), size):
            rest = tuple(i for i in range(4) if i not in clique)
            kept = sorted(clique)
            expected = table.sum(axis=rest).transpose([kept.index(i) for i in clique])
            np.testing.assert_allclose(view.marginal(clique), expected, atol=1e-15)

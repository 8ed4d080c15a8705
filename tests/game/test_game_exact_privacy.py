"""Exact privacy of whole games: every transcript, on every pair of neighbours, through the real loop.

Real players, the real loop and the real gate run over all neighbouring tiny tables; only the noise
is replaced, by an enumeration of its exact law. Broken twins must be caught by the same check.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    discrete_laplace_law,
    enumerate_transcripts,
    game_law,
    neighbours,
)
from tests.thorough import slow, some
from understudy.errors import BudgetExhausted
from understudy.game.methods.mst import MSTMethod
from understudy.game.methods.mwem import MWEMMethod
from understudy.models import Measured
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.query.picking import ExponentialMechanism
from understudy.players.query.tree import SpanningTree
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Laplace, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import GRID, Cell, WorstCell, WorstError, WorstMarginals
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts, tiny_design
from understudy.testing.stand_ins import table_of

DELTA = 1e-3
CASES = [
    pytest.param(Relation.REPLACE, True, id="replace"),
    pytest.param(Relation.ADD_REMOVE, True, id="add-remove-public-n"),
    pytest.param(Relation.ADD_REMOVE, False, id="add-remove-private-n"),
]


def pairs_of(shape, n, relation):
    """All neighbours, rows without order: what the gate sees are counts."""
    universe = tuple(itertools.product(*map(range, shape)))
    return sorted(
        {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbours(universe, n, relation.value)}
    )


def claims(plan):
    """What the ledger would say of this plan: pure, zCDP, and (ε, δ)."""
    pure = sum(accounting.pure(charge.event) * charge.times for charge in plan)
    return {
        "pure": float(pure),
        "rho": float(accounting.total_rho(plan)),
        "epsilon_delta": (accounting.epsilon(plan, DELTA).epsilon, DELTA),
    }


class Game:
    """MWEM without measurement, two rounds, on a universe of a few rows."""

    def __init__(self, shape, n, relation, public=True, rho=Fraction(1), rounds=2, sizes=None):
        self.relation, self.rows = relation, n if public else None
        method = MWEMMethod(measure=False, rounds=rounds)
        design = tiny_design(shape, relation, self.rows)
        self.plan = Plan(method.charges(design, rho))
        self.query, self.data = method.players(design, self.plan)
        self.problem = design.problem(n)
        self.pairs = pairs_of(shape, sizes or n, relation)

    def mechanism(self, query=None, **twin):
        return lambda rows: game_law(
            query or self.query,
            self.data,
            self.problem,
            self.plan,
            rows,
            relation=self.relation,
            rows_public=self.rows,
            **twin,
        )

    def check(self, claimed=None, **twin):
        return check(self.mechanism(**twin), self.pairs, **(claimed or claims(self.plan)))


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize(
    ("shape", "n"),
    [((2,), 2), *map(slow, [((2,), 3), ((3,), 2), ((4,), 2), ((3,), 3), ((4,), 3), ((2, 2), 2)])],
)
def test_mwem_without_measurement_keeps_its_plan(shape, n, relation):
    # Over two columns there are 16 candidates a round; one size of table less will do.
    sizes = n - 1 if shape == (2, 2) and relation is Relation.ADD_REMOVE else n
    game = Game(shape, n, relation, sizes=sizes)
    report = game.check()
    assert report.pairs >= 2
    assert report.pure <= claims(game.plan)["pure"] + 1e-9
    assert report.pure > 0.3 * claims(game.plan)["pure"]  # the check is not about nothing


@pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(4)], ids=str)
def test_it_keeps_small_and_large_budgets(rho):
    Game((3,), 2, Relation.REPLACE, rho=rho).check()


def test_it_keeps_its_plan_where_n_is_private():
    """Given the released number of rows, which the players take for n."""
    Game((3,), 2, Relation.ADD_REMOVE, public=False).check()


def test_three_rounds():
    Game((2,), 2, Relation.REPLACE, rounds=3).check()


# --- broken twins -------------------------------------------------------------------------------


class HalfTheNoise(ChoosingNoise):
    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)


class LaplaceMax(ChoosingNoise):
    """Noisy max with Laplace noise at Δ/ε0, half of what it needs."""

    def top_k(self, scores, scale, k):
        assert k == 1
        return (self._chooser.choose(laplace_max_law(scores, scale / 2)),)


def laplace_max_law(scores, b):
    """log P(argmax) of scores + Laplace(b): quadrature between the kinks, where all is smooth."""
    scores = np.asarray(scores, dtype=float)
    kinks = np.unique(scores)
    fine = np.arange(1, 41) * b
    edges = np.concatenate([kinks[0] - fine[::-1], kinks, kinks[-1] + fine])
    nodes, weights = np.polynomial.legendre.leggauss(30)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    x = (middle[:, None] + half[:, None] * nodes).reshape(-1)
    w = (half[:, None] * weights).reshape(-1)
    z = (x[:, None] - scores) / b
    density = np.exp(-np.abs(z)) / (2 * b)
    below = np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)
    others = np.exp(np.log(below).sum(axis=1, keepdims=True) - np.log(below))
    law = (w[:, None] * density * others).sum(axis=0)
    return np.log(law / law.sum())


def test_the_law_of_laplace_noisy_max_is_right():
    b = 2.0
    for gap in (0.0, 1.0, 5.0):
        d = gap / b
        expected = 1 - (1 / 2 + d / 4) * math.exp(-d)  # P(X − Y > −gap) of two Laplace variables
        assert math.exp(laplace_max_law([gap, 0.0], b)[0]) == pytest.approx(expected, abs=1e-10)


class ReadsTheSign(Gate):
    """Selects by the absolute error, then looks up on which side it was."""

    def ask(self, purpose, question, event=None):
        cliques, references = question.cliques, question.references
        cell = super().ask(purpose, WorstCell(cliques, references, signed=False))
        (table,) = self._rows.marginals([cliques[cell.marginal]])
        error = table[cell.index] - references[cell.marginal][cell.index]
        return Cell(cell.marginal, cell.index, 1 if error >= 0 else -1)


class ForgetsToCount(StrictCharges):
    """A reservation that hands out the event as often as it is asked."""

    def charge(self, purpose, event=None):
        return self.plan[purpose].event


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize(
    "twin", [{"noise": HalfTheNoise}, {"noise": LaplaceMax}], ids=["half the noise", "laplace max"]
)
def test_too_little_noise_is_caught(twin, relation):
    game = Game((2,), 3, relation, rho=Fraction(2))
    game.check()
    with pytest.raises(PrivacyViolation):
        game.check(**twin)
    with pytest.raises(PrivacyViolation, match="log-ratio"):
        game.check({"pure": claims(game.plan)["pure"]}, **twin)
    with pytest.raises(PrivacyViolation, match="Rényi"):
        game.check({"rho": claims(game.plan)["rho"]}, **twin)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_reading_the_exact_sign_is_caught(relation):
    game = Game((3,), 2, relation)
    with pytest.raises(PrivacyViolation):
        game.check({"pure": claims(game.plan)["pure"]}, gate=ReadsTheSign)
    with pytest.raises(PrivacyViolation, match="hockey-stick"):
        game.check({"epsilon_delta": claims(game.plan)["epsilon_delta"]}, gate=ReadsTheSign)


def test_a_forgotten_charge_is_refused_and_would_be_caught():
    """Three rounds are played under a plan that says one."""
    game = Game((2,), 3, Relation.REPLACE, rho=Fraction(1, 2), rounds=1)
    longer = ExponentialMechanism(3, None)
    with pytest.raises(BudgetExhausted):
        game.check(query=longer)
    for claim in ("pure", "rho", "epsilon_delta"):
        with pytest.raises(PrivacyViolation):
            game.check({claim: claims(game.plan)[claim]}, query=longer, charges=ForgetsToCount)


# --- one question at a time ---------------------------------------------------------------------

SHAPE, N = (2, 2), 3
CLIQUES = ((0,), (1,), (0, 1))
REFERENCES = tuple(np.array(t) for t in ([1.3, 1.7], [0.0, 3.0], [[0.5, 0.25], [2.0, 1 / 3]]))
ASKS = {
    "a cell": (GRID, 1, lambda g: g.ask("slot", WorstCell(CLIQUES, REFERENCES))),
    "a cell and its side": (
        GRID,
        1,
        lambda g: g.ask("slot", WorstCell(CLIQUES, REFERENCES, signed=True)),
    ),
    "a marginal": (
        None,
        1,
        lambda g: g.ask("slot", WorstMarginals(CLIQUES, REFERENCES, [0.0, 0.5, 1.0])),
    ),
    "two marginals": (
        None,
        2,
        lambda g: g.ask("slot", WorstMarginals(CLIQUES, REFERENCES, [0.0, 0.5, 1.0])),
    ),
}


def selection_law(ask, plan, relation, rows_public, noise=ChoosingNoise):
    def mechanism(rows):
        def run(chooser):
            return repr(
                ask(
                    Gate(
                        TinyCounts(SHAPE, rows),
                        StrictCharges(plan, relation),
                        relation,
                        noise(chooser),
                        rows_public,
                    )
                )
            )

        return enumerate_transcripts(run)

    return mechanism


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize("question", some(ASKS, 2))
def test_one_selection_keeps_its_charge(question, relation, public):
    moves, k, ask = ASKS[question]
    sensitivity = moves or GRID * relation.marginal_l1()
    event = Selection(float(sensitivity), sensitivity, k)
    plan, pairs = Plan((Charge("slot", event),)), pairs_of(SHAPE, N, relation)
    law = selection_law(ask, plan, relation, N if public else None)
    check(law, pairs, **claims(plan))
    if k == 1:
        check(law, pairs, bounded_range=float(accounting.pure(event)))
    half = selection_law(ask, plan, relation, N if public else None, HalfTheNoise)
    with pytest.raises(PrivacyViolation):
        check(half, pairs, bounded_range=float(accounting.pure(event)), rho=claims(plan)["rho"])


def test_top_two_charged_as_one_is_caught():
    _, _, ask = ASKS["two marginals"]
    plan = Plan((Charge("slot", Selection(float(GRID), GRID, 2)),))
    one = Plan((Charge("slot", Selection(float(GRID), GRID, 1)),))
    law = selection_law(ask, plan, Relation.ADD_REMOVE, None)
    with pytest.raises(PrivacyViolation):
        check(law, pairs_of(SHAPE, N, Relation.ADD_REMOVE), rho=claims(one)["rho"])


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize("synthetic", [((0, 0),), ((0, 0), (1, 1)), ((0, 1), (0, 1), (1, 0))])
def test_the_lattice_certificate_keeps_its_charge(relation, public, synthetic):
    event = Laplace(16 / 0.5, l1=16)
    plan, pairs = Plan((Charge("slot", event),)), pairs_of(SHAPE, N, relation)
    tables = [table_of(synthetic, SHAPE, clique) for clique in CLIQUES]

    def law(factor):
        def mechanism(rows):
            noise = StillNoise()
            gate = Gate(
                TinyCounts(SHAPE, rows),
                StrictCharges(plan, relation),
                relation,
                noise,
                N if public else None,
            )
            gate.ask("slot", WorstError(CLIQUES, tables, len(synthetic)))
            ((kind, exact, scale),) = noise.asked
            assert kind == "laplace"
            return discrete_laplace_law(int(exact[0]), factor * scale, range(-1, 200))

        return mechanism

    report = check(law(1.0), pairs, **claims(plan))
    with pytest.raises(PrivacyViolation):
        check(law(0.5), pairs, pure=report.pure)


# --- the spanning tree --------------------------------------------------------------------------

TREE_SHAPE = (2, 2, 2)


class OneWaysOnly(MaximumEntropy):
    """Leaves the fit of the pairs out: by then everything is released."""

    def respond(self, problem, state, answers, rng):
        ones = tuple(a for a in answers if isinstance(a, Measured) and len(a.clique) == 1)
        return MaximumEntropy.respond(self, problem, state, ones, rng)


def tree_game(relation, rows_public, given, noise=ChoosingNoise):
    """(law, plan of the selections) of MST's tree, given what the Gaussian draws released."""
    design = tiny_design(TREE_SHAPE, relation, rows_public)
    plan = Plan(MSTMethod().charges(design, Fraction(8)))
    query, _ = MSTMethod().players(design, plan)
    problem = design.problem(2)
    pairs_released = np.zeros(2 * 4, dtype=np.int64)

    def mechanism(rows):
        return game_law(
            query,
            OneWaysOnly(),
            problem,
            plan,
            rows,
            relation=relation,
            rows_public=rows_public,
            noise=lambda chooser: noise(chooser, [given, pairs_released]),
        )

    return mechanism, Plan((plan[SpanningTree.SELECT],))


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize(
    "given", [[1, 1, 1, 1, 1, 1], slow([2, 0, 0, 2, 5, -3])], ids=["even", "skewed"]
)
def test_tree_selections_keep_their_charges(relation, public, given):
    """Given any one-way releases, the d − 1 selections cost what they are charged."""
    mechanism, selections = tree_game(relation, 2 if public else None, np.array(given))
    pairs = pairs_of(TREE_SHAPE, 2 if relation is Relation.REPLACE else 1, relation)
    report = check(mechanism, pairs, **claims(selections))
    assert report.pure > 0.1 * claims(selections)["pure"]
    half, _ = tree_game(relation, 2 if public else None, np.array(given), HalfTheNoise)
    with pytest.raises(PrivacyViolation):
        check(half, pairs, pure=report.pure, rho=report.rho)

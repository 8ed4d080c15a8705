"""AIM: its candidates, its schedule, and the privacy of its choices."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.exact_privacy import ChoosingNoise, PrivacyViolation, check, game_law, neighbours
from tests.thorough import slow
from understudy.errors import BudgetExhausted
from understudy.game import play
from understudy.game.methods import Design
from understudy.game.methods.aim import AIMMethod
from understudy.players.data.maxent import MaximumEntropy, Move
from understudy.players.query.aim import AdaptiveRounds, candidates
from understudy.privacy import accounting, planning
from understudy.privacy.cost import Plan, Selection, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts, tiny_design


def test_candidates_are_weighted_by_the_workload_they_touch():
    found = candidates([(0, 1), (1, 2)], [1.0, 1.0])
    assert found == {(0,): 1, (1,): 2, (2,): 1, (0, 1): 3, (1, 2): 3}
    assert candidates([(0, 1), (1, 2)], [6.0, 6.0]) == found
    assert candidates([(0, 1)], [2.0]) == {(0,): 1, (1,): 1, (0, 1): 2}
    fine = candidates([(0,), (1,)], [1.0, math.pi])
    assert fine[(1,)] == 4096
    assert fine[(0,)] == round(4096 / math.pi)
    assert candidates([(0,), (1,)], [1.0, 1e9]) == {(0,): 1, (1,): 4096}


def rounds_of(total=Fraction(1), rounds=16, adaptive=None):
    adaptive = adaptive if adaptive is not None else total * Fraction(9, 10)
    return AdaptiveRounds(rounds + 1, 1.0, {(0,): 1}, total, adaptive, total / rounds, 80.0)


def move(settled):
    return Move((0,), 1.0, 2, 0.0 if settled else 1e9)


def spent(query, settled):
    shares, moves = [], []
    for _ in range(query.rounds):
        share, left = query.next_share(moves)
        assert left == query.adaptive - sum(shares)
        if share == 0:
            break
        shares.append(share)
        moves.append(move(settled(len(shares))))
    return shares


def test_rounds_cost_the_same_while_the_model_moves():
    query = rounds_of()
    shares = spent(query, lambda _: False)
    assert shares[:-1] == [Fraction(1, 16)] * (len(shares) - 1)
    assert sum(shares) == query.adaptive
    assert Fraction(1, 16) <= shares[-1] < Fraction(2, 16)
    assert len(shares) < query.rounds


def test_noise_is_halved_where_an_answer_moved_less_than_noise():
    query = rounds_of(rounds=160)
    shares = spent(query, lambda number: number == 3)
    assert shares[:3] == [Fraction(1, 160)] * 3
    assert set(shares[3:-1]) == {Fraction(4, 160)}
    assert sum(shares) == query.adaptive
    always = spent(query, lambda _: True)
    assert [later / first for first, later in itertools.pairwise(always[:-1])] == [4] * (
        len(always) - 2
    )
    assert sum(always) == query.adaptive
    one, two = (planning.gaussian(Fraction(9, 10) * share).sigma for share in shares[2:4])
    assert one / two == pytest.approx(2.0)


SHAPE = (2, 2)


class Stays(MaximumEntropy):
    """Never fits: selections and their charges do not need it, and the schedule is then known."""

    def _fit(self, problem, measured, start):
        return self.start(problem).model, None


def aim_game(relation, rows, rho=Fraction(4)):
    method = AIMMethod(rounds=4)
    design = replace(tiny_design(SHAPE, relation, rows), weights=(1.0, 1.0, 2.0))
    plan = Plan(method.charges(design, rho))
    query, _ = method.players(design, plan)
    return design, plan, query


def charged_selections(design, plan, query):
    charges = StrictCharges(plan, design.relation)
    gate = Gate(
        TinyCounts(SHAPE, [(0, 0)] * 2), charges, design.relation, StillNoise(), design.rows
    )
    play(design.problem(2), query, Stays(), gate, np.random.default_rng(0))
    return [event for _, event in charges.charged if isinstance(event, Selection)]


def law_of(relation, rows, noise=ChoosingNoise):
    design, plan, query = aim_game(relation, rows)
    # The first release has all columns, then a table a round; none is larger than a pair.
    given = [np.array([2, 0, 1, 1])]

    class Released(noise):
        def gaussian(self, values, sigma):
            answer = (
                given[0] if np.size(values) == 4 and not self._seen else np.ones(np.size(values))
            )
            self._seen = True
            return np.asarray(answer, np.int64).reshape(np.shape(values))

        _seen = False

    def mechanism(table):
        return game_law(
            query,
            Stays(),
            design.problem(2),
            plan,
            table,
            relation=relation,
            rows_public=rows,
            noise=Released,
        )

    return mechanism, charged_selections(design, plan, query)


class HalfTheNoise(ChoosingNoise):
    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)


@pytest.mark.parametrize(
    ("relation", "rows"),
    [(Relation.REPLACE, 2), slow((Relation.ADD_REMOVE, 2)), (Relation.ADD_REMOVE, None)],
)
def test_choices_keep_what_they_are_charged(relation, rows):
    """Given whatever was measured, all choices together cost what the filter was told."""
    mechanism, selections = law_of(relation, rows)
    assert len(selections) >= 2
    rho = float(sum(accounting.rho(event) for event in selections))
    pure = float(sum(accounting.pure(event) for event in selections))
    universe = tuple(itertools.product(*map(range, SHAPE)))
    size = 2 if relation is Relation.REPLACE else 1
    pairs = sorted({(tuple(sorted(a)), tuple(sorted(b)))
                    for a, b in neighbours(universe, size, relation.value)})  # fmt: skip
    report = check(mechanism, pairs, rho=rho, pure=pure)
    assert report.pure > 0.2 * pure  # the check is not about nothing
    half, _ = law_of(relation, rows, HalfTheNoise)
    with pytest.raises(PrivacyViolation):
        check(half, pairs, pure=report.pure, rho=report.rho)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_events_cover_the_largest_weight_and_add_up(relation):
    design, plan, query = aim_game(relation, 2)
    selections = charged_selections(design, plan, query)
    weights = max(query.candidates.values())
    assert query.candidates[(0, 1)] == weights > query.candidates[(0,)]
    assert {event.sensitivity for event in selections} == {16 * relation.multiplicity * weights}
    one, adaptive = plan
    assert isinstance(adaptive.event, Zcdp)
    assert float(accounting.total_rho(plan)) == pytest.approx(4.0)
    assert float(accounting.rho(one.event)) == pytest.approx(4.0 * 0.9 * 2 / 4)


def test_the_filter_stops_a_player_that_takes_more():
    design, plan, query = aim_game(Relation.ADD_REMOVE, 2)
    greedy = replace(query, adaptive=2 * query.adaptive)
    with pytest.raises(BudgetExhausted):
        charged_selections(design, plan, greedy)


def parity(n=2_000):
    """Three coins of which any two are independent and all three are not."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(2, size=(2, n))
    return list(zip(a.tolist(), b.tolist(), (a ^ b).tolist(), strict=True))


def played(method, rows, shape, rho, noise, cliques=((0, 1, 2),)):
    design = Design(shape, cliques, (1.0,) * len(cliques), Relation.ADD_REMOVE, len(rows))
    plan = Plan(method.charges(design, rho))
    account = StrictCharges(plan, design.relation)
    gate = Gate(TinyCounts(shape, rows), account, design.relation, noise, len(rows))
    query, data = method.players(design, plan)
    model = play(design.problem(len(rows)), query, data, gate, np.random.default_rng(0)).model
    return model, account


@pytest.mark.slow
def test_a_dependence_among_three_is_found_and_measured():
    rows = parity()
    model, account = played(AIMMethod(iterations=200), rows, (2, 2, 2), Fraction(2), SeededNoise(2))
    truth = np.zeros((2, 2, 2))
    for row in rows:
        truth[row] += 1 / len(rows)
    assert np.abs(model.marginal((0, 1, 2)) - truth).max() < 0.02
    used = sum(accounting.rho(e) for _, e in account.charged)
    assert 0.999 * 2 < float(used) <= 2


def test_a_tree_that_would_be_too_large_is_not_grown():
    rows = parity(200)
    tiny = AIMMethod(megabytes=1e-9, iterations=20)
    model, _ = played(tiny, rows, (2, 2, 2), Fraction(2), SeededNoise(3))
    assert set(model.cliques) == {(0,), (1,), (2,)}

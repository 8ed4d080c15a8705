"""The survey and its weighted records: contracts, units of precision, and what steers."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.thorough import some
from understudy.errors import BudgetExhausted, PrivacyError
from understudy.game import play
from understudy.game.methods.maxent import MaxEntMethod
from understudy.players.query.interactions import Interactions
from understudy.players.query.survey import Opening, Survey
from understudy.privacy import accounting
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, ThresholdedErrors, WorstMarginals
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.queries import counts
from understudy.testing import (
    SeededNoise,
    StrictCharges,
    TinyCounts,
    check_method,
    query_player_checks,
    tiny_design,
)

CASES = [
    pytest.param(Relation.ADD_REMOVE, None, id="add-remove-private-n"),
    pytest.param(Relation.ADD_REMOVE, 30, id="add-remove-public-n"),
    pytest.param(Relation.REPLACE, 30, id="replace"),
]
TINY = [(2,), (1,), (1, 5), (2, 2), (1, 1), (3, 2, 1, 2)]
WIDE = (40, 50, 3, 2)


def planned(shape, relation=Relation.ADD_REMOVE, rows=30, rho=Fraction(1), order=2, **settings):
    method = MaxEntMethod(records=1_000, **settings)
    design = tiny_design(shape, relation, rows, order)
    method.check(design)
    return method, design, Plan(method.charges(design, rho))


@pytest.mark.parametrize(
    ("shape", "relation", "rows"),
    some((pytest.param(shape, *case.values) for shape in [*TINY, WIDE] for case in CASES), 4),
    ids=str,
)
def test_the_query_player_conforms(shape, relation, rows):
    for rho, order in ((Fraction(1, 100), 2), (Fraction(4), 3)):
        method, design, plan = planned(shape, relation, rows, rho, order)
        for kept in query_player_checks(
            lambda method=method, design=design, plan=plan: method.players(design, plan)[0],
            plan,
            problem=design.problem(rows or 30),
            relation=relation,
            rows_public=rows,
        ):
            kept()


@pytest.mark.slow  # at one shape it conforms in tests/testing/test_methods.py
def test_the_pairing_conforms_at_tiny_shapes():
    """Both relations, private and public n, on a real ledger; same releases, same model."""
    assert check_method(MaxEntMethod(records=1_000), shapes=((2,), (1,), (1, 5), (2, 2))) > 20


class Codes:
    """Exact counts of encoded rows, sealed."""

    unit = None

    def __init__(self, codes, shape):
        self._codes, self.shape = [np.asarray(c, np.uint16) for c in codes], tuple(shape)

    def marginals(self, cliques):
        return Sensitive(tuple(counts(self._codes, self.shape, cliques)))


class Asked:
    """A gate that writes down what it was asked: (question, purpose, tables)."""

    def __init__(self, gate):
        self._gate, self.facts, self.log = gate, gate.facts, []

    def ask(self, purpose, question, event=None):
        selecting = isinstance(question, WorstMarginals)
        tables = question.cliques if selecting else question.tables
        self.log.append((type(question), purpose, list(tables)))
        return self._gate.ask(purpose, question, event)


def chained(shape, rows, key=0):
    """Every column follows the one before, so that pairs have something to say."""
    rng = np.random.default_rng(key)
    codes = [rng.integers(shape[0], size=rows)]
    for before, size in itertools.pairwise(shape):
        follows = codes[-1] * size // before
        codes.append(np.where(rng.random(rows) < 0.6, follows, rng.integers(size, size=rows)))
    return codes


def asked(shape, rows, rho, relation=Relation.ADD_REMOVE, order=2, noise=1, **settings):
    method, design, plan = planned(shape, relation, rows, rho, order, **settings)
    account = StrictCharges(plan, relation)
    real = Gate(Codes(chained(shape, rows), shape), account, relation, SeededNoise(noise), rows)
    gate = Asked(real)
    query, data = method.players(design, plan)
    play(design.problem(rows), query, data, gate, np.random.default_rng(0))
    return gate.log, account, plan, query


@pytest.mark.parametrize(
    ("shape", "order", "quanta", "relation"),
    some(
        (
            (shape, order, quanta, relation)
            for shape, order in (((2, 2), 2), (WIDE, 2), ((3, 4, 2, 5), 3))
            for quanta in (1, 2, 24)
            for relation in Relation
        ),
        5,
    ),
    ids=str,
)
def test_quanta_and_slots_are_never_exceeded(shape, order, quanta, relation):
    log, account, plan, query = asked(shape, 2_000, Fraction(1, 50), relation, order, quanta=quanta)
    again = [tables for _, purpose, tables in log if purpose == Survey.AGAIN]
    assert len(again) == plan[Survey.AGAIN].times
    assert all(1 <= len(tables) <= quanta for tables in again)
    for name, purpose, tables in log:
        event = plan[purpose].event
        if name is WorstMarginals:
            assert event.k <= len(tables)
            continue
        moved = 1 if name is ThresholdedErrors else relation.multiplicity
        assert len(tables) * moved <= event.changes
    looks = [len(tables) for name, _, tables in log if name is ThresholdedErrors]
    assert max(looks) <= max(len(query.slots), len(query.higher))
    assert [purpose for purpose, _ in account.charged] == [purpose for _, purpose, _ in log]


def test_every_quantum_is_used_where_there_are_enough_tables():
    log, *_ = asked((3, 4, 2, 5), 2_000, Fraction(1, 50), order=3, quanta=24)
    again = [tables for _, purpose, tables in log if purpose == Survey.AGAIN]
    assert {len(tables) for tables in again} == {24}


@pytest.mark.parametrize("shape", [(3, 4, 2, 5), (40, 50, 30)], ids=str)
def test_round_by_round(shape):
    """Columns, pairs, then looks and what they lead to; larger tables at the last look.

    Of four columns with 120 cells the one table outside the workload is looked at as well.
    """
    log, _, plan, _ = asked(shape, 2_000, Fraction(1, 50), order=3)
    names = [(name, purpose) for name, purpose, _ in log if "one-way" not in purpose]
    look, again = (ThresholdedErrors, Survey.LOOK), (Marginals, Survey.AGAIN)
    rounds = plan[Survey.LOOK].times
    purposes = Interactions.SELECT.format(4), Interactions.LOOK.format(4)
    outside = list(zip((WorstMarginals, ThresholdedErrors), purposes, strict=True))
    assert names == [
        (Marginals, Opening.PAIRS),
        *[look, again] * (rounds - 1),
        look,
        (ThresholdedErrors, Survey.HIGHER),
        *(outside if len(shape) == 4 else ()),
        again,
    ]
    columns = [c for _, purpose, tables in log if "one-way" in purpose for c in tables]
    assert sorted(columns) == [(i,) for i in range(len(shape))]
    (pairs,) = [tables for _, purpose, tables in log if purpose == Opening.PAIRS]
    cliques = [getattr(table, "clique", table) for table in pairs]
    assert cliques == list(itertools.combinations(range(len(shape)), 2))


def test_pairs_that_noise_would_drown_are_merged():
    """n/σ rows per cell decide, both public: whole at a large ρ, merged at a small one."""

    def pairs(rho):
        log, *_ = asked(WIDE, 2_000, rho)
        (tables,) = [tables for _, purpose, tables in log if purpose == Opening.PAIRS]
        return tables

    assert not any(isinstance(table, Coarsened) for table in pairs(Fraction(100)))
    small = pairs(Fraction(1, 10_000))
    assert [type(t) for t in small if getattr(t, "clique", t) == (0, 1)] == [Coarsened]
    assert small[0].shape < WIDE[:2]


def test_pairs_of_ordered_columns_are_merged_to_what_noise_leaves_visible():
    """0.1·n/σ cells where both columns are in order; special values and null stay alone."""
    shape, rows = (9, 11, 9), 20_000
    method, design, plan = planned(shape, rows=rows, rho=Fraction(1, 500))
    design = replace(design, ordered=(True, True, False), apart=(0, 2, 0))
    query, data = method.players(design, plan)
    account = StrictCharges(plan, Relation.ADD_REMOVE)
    codes = Codes(chained(shape, rows), shape)
    gate = Asked(Gate(codes, account, Relation.ADD_REMOVE, SeededNoise(1), rows))
    play(design.problem(rows), query, data, gate, np.random.default_rng(0))
    ((both, *others),) = [tables for _, purpose, tables in gate.log if purpose == Opening.PAIRS]
    assert isinstance(both, Coarsened)
    assert both.clique == (0, 1)
    assert others == [(0, 2), (1, 2)]  # categories have no neighbours
    first, second = both.shape
    assert first * (second - 2) <= 0.1 * rows / plan[Opening.PAIRS].event.sigma < 81
    assert both.labels[1][-2:].tolist() == [second - 2, second - 1]
    assert max(both.labels[1][:-2]) == second - 3


def test_repeated_tables_are_averaged_with_the_noise_that_is_left():
    method, design, plan = planned((2, 2), rows=500, rho=Fraction(1, 10), quanta=12)
    query, data = method.players(design, plan)
    gate = Asked(
        Gate(
            Codes(chained((2, 2), 500), (2, 2)),
            StrictCharges(plan, design.relation),
            design.relation,
            SeededNoise(3),
            500,
        )
    )
    released = play(design.problem(500), query, data, gate, np.random.default_rng(0)).answers
    sigma = plan[Survey.AGAIN].event.sigma
    asked_for = [tables for _, purpose, tables in gate.log if purpose == Survey.AGAIN]
    for answers, tables in zip(released[2:], asked_for, strict=True):
        times = [tables.count(answer.clique) for answer in answers]
        assert sum(times) == 12 == len(tables)
        assert [a.sigma for a in answers] == pytest.approx([sigma / t**0.5 for t in times])


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(2, 7), Fraction(50)], ids=str)
def test_the_plan_uses_the_whole_budget_and_all_of_it_is_drawn(rho, relation):
    for shape, order in (((3,), 1), ((2, 3), 2), ((3, 4, 2, 5), 3)):
        _, account, plan, _ = asked(shape, 500, rho, relation, order)
        cost = accounting.total_rho(plan)
        assert cost <= rho
        assert float(cost / rho) == pytest.approx(1.0, abs=1e-9)
        assert sum(accounting.rho(event) for _, event in account.charged) == cost


def gate_for(plan, design):
    rows = [tuple(0 for _ in design.shape)] * 30
    return Gate(
        TinyCounts(design.shape, rows),
        StrictCharges(plan, design.relation),
        design.relation,
        SeededNoise(1),
        design.rows,
    )


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_a_player_that_takes_more_than_its_plan_is_stopped(relation):
    method, design, plan = planned((3, 2, 2), relation, order=3)
    query, data = method.players(design, plan)

    def played(greedy):
        return play(
            design.problem(30), greedy, data, gate_for(plan, design), np.random.default_rng(0)
        )

    played(query)
    with pytest.raises(BudgetExhausted):
        played(replace(query, again=query.again + 1))
    for greedy in (
        replace(query, units=query.units + 1),
        replace(query, slots=query.slots * 2),
        replace(query, higher=query.higher * 2),
        replace(query, first=replace(query.first, pairs=query.first.pairs * 2)),
    ):
        with pytest.raises(PrivacyError):
            played(greedy)

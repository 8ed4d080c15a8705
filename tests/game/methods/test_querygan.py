"""QueryGAN: plans within the budget, post-processing only, refusals for free, and it learns."""

import math
import re
from dataclasses import fields, replace
from fractions import Fraction

import jax
import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy import demo
from understudy.errors import InputError
from understudy.game import play
from understudy.game.methods import METHODS
from understudy.game.methods.querygan import COLUMNS, FEATURES, ORDERED, TABLES, QueryGANMethod
from understudy.models import Empirical
from understudy.players.base import Measured, PaidOff, Problem
from understudy.players.data.ftpl_generator import FTPLGenerator, Judged
from understudy.players.query.picking import CellPicker
from understudy.players.query.querygan import Payoffs
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import WorstError
from understudy.privacy.relation import Relation
from understudy.releases.certificate import WORST, Certificate
from understudy.schema import Category, Schema
from understudy.testing import (
    SeededNoise,
    StrictCharges,
    Tape,
    TinyCounts,
    check_method,
    tiny_design,
)
from understudy.testing.stand_ins import Front

TINY = QueryGANMethod(rounds=2, batch=8, width=4, records=60, steps=1)
ORACLES = ("moments", "exponential", "weights", "logistic")


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("oracle", ORACLES)
def test_plans_use_the_budget_and_no_more(oracle, relation):
    for shape in ((3, 2, 2, 4), (5,), (2, 2)):
        design = tiny_design(shape, relation, 500)
        for rho in (Fraction(1, 1000), Fraction(2)):
            made = QueryGANMethod(oracle=oracle)
            made.check(design)
            plan = Plan(made.charges(design, rho))
            cost = accounting.total_rho(plan)
            assert cost <= rho
            assert float(cost / rho) > 1 - 1e-9
            query, leader = made.players(design, plan)
            assert query.rounds >= 2
            assert made.forecast(design, plan, 500).seconds > 0
            assert leader.rounds >= 1


def test_moments_are_all_pairs_inside_the_workload():
    design = replace(tiny_design((3, 2, 2, 4), rows=100), cliques=((0, 1, 2), (2, 3)))
    query, _ = QueryGANMethod().players(design, Plan(QueryGANMethod().charges(design, Fraction(1))))
    assert query.then.cliques == ((0, 1), (0, 2), (1, 2), (2, 3))
    three = QueryGANMethod(degree=3)
    query, _ = three.players(design, Plan(three.charges(design, Fraction(1))))
    assert query.then.cliques[-1] == (0, 1, 2)


@pytest.mark.parametrize(("rho", "rounds"), [("1e-12", 300), ("1e-7", 1270), ("50", 4000)])
def test_free_rounds_grow_with_what_the_means_are_worth(rho, rounds):
    design = tiny_design((3, 2, 2), rows=50_000)
    _, leader = QueryGANMethod().players(
        design, Plan(QueryGANMethod().charges(design, Fraction(rho)))
    )
    assert leader.rounds == rounds
    given = QueryGANMethod(rounds=7)
    assert given.players(design, Plan(given.charges(design, Fraction(rho))))[1].rounds == 7


@pytest.mark.parametrize(("rho", "rounds"), [("1e-12", 100), ("1e-8", 286), ("50", 400)])
def test_a_leader_plays_fewer_rounds_against_the_means(rho, rounds):
    design = tiny_design((3, 2, 2), rows=50_000)
    made = QueryGANMethod(play="ftl", critics="best")
    _, leader = made.players(design, Plan(made.charges(design, Fraction(rho))))
    assert (leader.rounds, leader.objective, leader.keep) == (rounds, "max", 0.5)
    assert leader.eta == pytest.approx(0.8 * math.sqrt(math.log(12) / rounds))


@pytest.mark.parametrize("rho", ["1e-6", "1e-3", "1e-2", "1"])
def test_picks_are_a_part_of_those_at_which_both_regrets_are_alike(rho):
    design, made = tiny_design((3, 2, 2), rows=50_000), QueryGANMethod(oracle="exponential")
    _, leader = made.players(design, Plan(made.charges(design, Fraction(rho))))
    kappa = 50_000 * math.sqrt(2 * 0.85 * float(rho))
    # √(2·ln|X|/T) = ln(2|Q|)·√T/κ
    alike = kappa * math.sqrt(2 * math.log(12)) / math.log(2 * design.queries)
    assert leader.rounds == pytest.approx(min(400, max(10, 0.05 * alike)), abs=0.51)


def test_a_sample_of_picks_is_followed_at_half_the_rate():
    design = tiny_design((3, 2, 2), rows=50_000)
    rates = {}
    for name in ("ftl", "sftpl"):
        made = QueryGANMethod(oracle="exponential", play=name, rounds=50)
        rates[name] = made.players(design, Plan(made.charges(design, Fraction(1))))[1].eta
    assert rates["ftl"] == pytest.approx(0.8 * math.sqrt(math.log(12) / 50))
    assert rates["sftpl"] == rates["ftl"] / 2


KEPT = [
    ({}, 0.25, False, False),
    ({"play": "ftl", "critics": "best"}, 0.5, False, False),
    ({"play": "ftpl", "objective": "tv"}, 0.5, False, False),
    ({"play": "ftl"}, 1.0, False, True),
    ({"oracle": "exponential"}, 0.5, False, False),
    ({"oracle": "weights"}, 1.0, True, False),
]


@pytest.mark.parametrize(("settings", "keep", "whole", "regularised"), KEPT)
def test_what_an_oracle_speaks_of_is_what_is_kept(settings, keep, whole, regularised):
    design, made = tiny_design((3, 2, 2), rows=500), QueryGANMethod(**settings)
    made.check(design)
    _, leader = made.players(design, Plan(made.charges(design, Fraction(1))))
    assert (leader.keep, leader.whole) == (keep, whole)
    assert (leader.regularised is not None) is regularised


def test_noise_of_the_moments_is_exactly_calibrated():
    design = tiny_design((3, 2, 2), rows=100)
    columns, tables = (charge.event for charge in QueryGANMethod().charges(design, Fraction(1)))
    assert isinstance(columns, Gaussian)
    assert isinstance(tables, Gaussian)
    assert (columns.changes, tables.changes) == (3, 3)
    assert columns.sigma == pytest.approx(math.sqrt(3 / (2 * 0.15)))
    assert tables.sigma == pytest.approx(math.sqrt(3 / (2 * 0.85)))


def test_tables_that_noise_would_hide_leave_their_share_to_the_columns():
    design = tiny_design((40, 50, 30), rows=100)
    columns, tables = (charge.event for charge in QueryGANMethod().charges(design, Fraction(1)))
    whole = math.sqrt(3 / (2 * 0.85))
    cells = (40 * 50 + 40 * 30 + 50 * 30) / 3
    share = 0.85 * 2 * 100 / (cells * whole)
    assert tables.sigma == pytest.approx(math.sqrt(3 / (2 * share)), rel=1e-4)
    assert columns.sigma == pytest.approx(math.sqrt(3 / (2 * (1 - share))), rel=1e-4)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("features", FEATURES)
def test_every_feature_map_uses_the_budget_and_no_more(features, relation):
    design = tiny_design((3, 2, 2, 4), relation, 500)
    made = QueryGANMethod(features=features, units=4)
    made.check(design)
    for rho in (Fraction(1, 1000), Fraction(2)):
        plan = Plan(made.charges(design, rho))
        assert 1 - 1e-6 < float(accounting.total_rho(plan) / rho) <= 1
        query, leader = made.players(design, plan)
        assert query.rounds == 2
        assert 300 <= leader.rounds <= 4000
        assert made.forecast(design, plan, 500).seconds > 0


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_the_kernel_s_features_are_released_with_its_own_sensitivity(relation):
    """Scaled by w^{|A|/2}, all features have one noise σ, and ρ = c·κ/(2σ²), κ = Σ_k J_k·w^k."""
    design = replace(tiny_design((3, 2, 2, 4), relation, 500), cliques=((0, 1, 2), (2, 3)))
    w, made = 0.2, QueryGANMethod(features="subsets", degree=3, kernel=0.2)
    plan = Plan(made.charges(design, Fraction(1)))
    sigmas = [charge.event.sigma for charge in plan]
    scaled = [s * w ** (order / 2) for order, s in enumerate(sigmas, 1)]
    assert scaled == pytest.approx([scaled[0]] * 3, rel=1e-6)
    kappa = 4 * w + 4 * w**2 + 1 * w**3
    sides = 2 if relation is Relation.REPLACE else 1
    assert scaled[0] == pytest.approx(math.sqrt(sides * kappa / 2), rel=1e-6)
    query, leader = made.players(design, plan)
    assert [player.cliques for player in query.then.players] == [
        ((0, 1), (0, 2), (1, 2), (2, 3)),
        ((0, 1, 2),),
    ]
    assert (leader.objective, leader.kernel) == ("mmd", w)


@pytest.mark.slow
@pytest.mark.parametrize("features", FEATURES)
def test_a_generator_learns_from_every_feature_map(features):
    """Two columns that always agree; independent columns would be off by a half."""
    table = pa.table({"a": ["x", "y"] * 1_000, "b": ["x", "y"] * 1_000})
    columns = [Category(name, values=("x", "y")) for name in ("a", "b")]
    made = us.release(
        table, Schema(tuple(columns)), epsilon=50, workload="marginals:2", method="querygan",
        rows_public=2_000, noise=SeededNoise(0), key=0,
        parameters={
            "features": features, "rounds": 200, "batch": 64, "width": 32, "records": 4_000,
            "units": 8, "rate": 0.02,
        },
    )  # fmt: skip
    agree = np.mean(np.array(made.rows["a"]) == np.array(made.rows["b"]))
    assert agree > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
def test_every_oracle_keeps_the_contract(oracle):
    assert check_method(replace(TINY, oracle=oracle), shapes=((2, 3),)) >= 8


class Watched(FTPLGenerator):
    """Keeps the last state, for a look at the parameters."""

    seen = []  # noqa: RUF012 - one list for all is what is wanted

    def finish(self, problem, state):
        Watched.seen.append(state)
        return super().finish(problem, state)


def test_other_rows_behind_the_same_answers_change_no_bit_of_the_generator(capsys, caplog):
    design = tiny_design((2, 3), rows=4)
    plan = Plan(TINY.charges(design, Fraction(1)))
    tape, states, told = Tape(), [], []
    Watched.seen.clear()
    for rows in ([(0, 1), (1, 2), (1, 1), (0, 0)], [(0, 0)] * 4):
        charges = StrictCharges(plan, design.relation)
        tape = tape if not states else tape.again()
        exact = Gate(TinyCounts(design.shape, rows), charges, design.relation, SeededNoise(1), 4)
        gate, trespasses = Front.around(exact, tape)
        query, data = TINY.players(design, plan)
        watched = Watched(
            **{k.name: getattr(data, k.name) for k in fields(FTPLGenerator) if k.init}
        )
        rng = np.random.default_rng(0)
        play(design.problem(4), query, watched, gate, rng, told.append)
        states.append(Watched.seen[-1])
        assert trespasses == []
        # The oracle's two looks are all that meets the rows.
        assert [purpose for purpose, _ in charges.charged] == [COLUMNS, TABLES]
    one, other = (jax.tree.leaves(state.trained.params) for state in states)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    # What is told follows from released numbers: the same for both tables.
    assert told[: len(told) // 2] == told[len(told) // 2 :]
    assert {step.stage for step in told} <= {"playing", "training"}
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


PROBLEM = Problem((2, 3), ((0, 1),), (1.0,), 100)


def leader(**settings):
    given = {"rounds": 3, "batch": 32, "width": 8, "records": 90, "keep": 1.0, **settings}
    return FTPLGenerator(**given)


PICKING = replace(TINY, oracle="exponential", rounds=6, keep=0.5)


def test_the_payoff_of_picked_queries_has_its_share_where_it_is_of_use():
    design = tiny_design((3, 2), rows=500)
    plan = Plan(PICKING.charges(design, Fraction(1)))
    assert [charge.purpose for charge in plan] == [COLUMNS, CellPicker.PICK, Payoffs.PURPOSE]
    assert plan[Payoffs.PURPOSE].event.l1 == 3 * UNIT  # the last half of six rounds
    silent = replace(PICKING, alpha=0.0)
    assert Payoffs.PURPOSE not in Plan(silent.charges(design, Fraction(1)))
    private = replace(design, rows=None)
    assert Payoffs.PURPOSE not in Plan(PICKING.charges(private, Fraction(1)))


def test_alpha_is_what_the_specification_says():
    design = tiny_design((3, 2), rows=50_000)
    plan = Plan(PICKING.charges(design, Fraction(1, 100)))
    pick, paid = plan[CellPicker.PICK].event, plan[Payoffs.PURPOSE].event
    beta, size, value = 0.05, 40_000, 3 * 900.0
    records = tuple(np.zeros(4, np.int64) for _ in design.shape)
    model = Judged(design.shape, records, (), PaidOff(value, paid.scale / UNIT, 3))
    theorem = PICKING.judged(design, plan, 50_000, beta, model, size)
    third, n, T = beta / 3, 50_000, 3
    queries = 2 * sum(math.prod(design.shape[i] for i in c) for c in design.cliques)
    epsilon, own = 2 * SCORE_SENSITIVITY / pick.scale, paid.l1 / paid.scale
    alpha = (
        value / (n * T) + math.log(1 / (2 * third)) / (n * own)
        + 2 / (n * epsilon) * math.log(queries * T / third)
        + math.sqrt(math.log(2 * queries / third) / (2 * size))
    )  # fmt: skip
    assert theorem.bound == pytest.approx(alpha, rel=2e-4)
    assert theorem.bound >= alpha
    assert theorem.beta == beta
    assert "thesis" in theorem.statement


@pytest.mark.slow
def test_progress_tells_rounds_and_errors_on_released_numbers():
    told = []
    player, problem = leader(rounds=20, records=40), replace(PROBLEM, watch=told.append)
    state, rng = player.start(problem), np.random.default_rng(0)
    one = [Measured((i,), np.array(v), 2.0) for i, v in enumerate(([50, 50], [20, 50, 30]))]
    state = player.respond(problem, state, tuple(one), rng)
    pair = Measured((0, 1), np.array([[20, 30, 0], [0, 20, 30]]), 2.0)
    player.respond(problem, state, (pair,), rng)
    assert [(step.stage, step.done, step.total) for step in told] == [
        ("training", 9, 20),
        ("training", 19, 20),
    ]
    assert all(re.match(r"worst error about 0\.\d+", step.note) for step in told)


def test_the_certificate_covers_whatever_the_generator_did():
    """10⁴ certificates of fixed records through the real code miss no more often than β."""
    rng = np.random.default_rng(0)
    rows = [tuple(int(v) for v in row) for row in rng.integers(0, 2, (40, 2))]
    records = Empirical.of((2, 2), rng.integers(0, 2, (25, 2)))
    synthetic = [np.rint(25 * records.marginal(c)).astype(np.int64) for c in ((0,), (0, 1))]
    event = Laplace(160.0, 64)
    plan, beta, draws = Plan((Charge(WORST, event, 10_000),)), 0.05, 10_000
    counts = TinyCounts((2, 2), rows)
    gate = Gate(counts, StrictCharges(plan, Relation.REPLACE), Relation.REPLACE, SeededNoise(3), 40)
    exact = Empirical.of((2, 2), np.array(rows))
    truth = max(np.abs(exact.marginal(c) - records.marginal(c)).max() for c in ((0,), (0, 1)))
    gate._charges.charge = lambda purpose, event=None: plan[purpose].event  # no list of 10⁴
    missed = 0
    for _ in range(draws):
        worst = gate.ask(WORST, WorstError(((0,), (0, 1)), synthetic, 25))
        made = Certificate(1.0, beta, 6, 25, worst, None, 40).bounded(plan)
        missed += made.bound < truth
    assert beta / 2 < missed / draws <= beta + 3 * math.sqrt(beta / draws)


BAD = {
    "oracle": ({"oracle": "odo"}, "oracle = 'odo' is not one of moments, exponential"),
    "objective": ({"objective": "kl"}, "objective = 'kl' is not one of tv"),
    "whose": (
        {"objective": "max", "oracle": "weights"},
        "maximise; oracle = weights has critics of",
    ),
    "asked": ({"objective": "parity", "features": "relu"}, "asks about cells of tables; .* relu"),
    "play": ({"play": "last"}, "play = 'last' is not one of matching, ftl"),
    "critics": ({"critics": "ftl"}, "critics = 'ftl' is not one of best, ftrl"),
    "matching": (
        {"oracle": "weights", "play": "matching"},
        "matching has no past.* use play = ftl",
    ),
    "ftrl": ({"critics": "ftrl"}, "answered by a leader: use oracle = moments and play = ftl"),
    "ball": ({"critics": "ftrl", "play": "ftl", "objective": "tv"}, "leave objective = tv out"),
    "eta": ({"eta": 0.0}, "eta = 0.0 must be above 0"),
    "history": ({"play": "sftpl", "history": 0}, "history = 0 must be at least 1"),
    "rounds": ({"rounds": 0}, "rounds = 0 must be at least 1"),
    "weights": ({"oracle": "weights", "rounds": 1}, "rounds = 1 must be at least 2"),
    "steps": ({"steps": 0}, "steps = 0 must be at least 1"),
    "degree": ({"degree": 0}, "degree = 0"),
    "rate": ({"rate": 0.0}, "rate = 0.0 must be above 0"),
    "nan": ({"rate": math.nan}, "rate = nan must be above 0"),
    "columns": ({"columns": 1.0}, "columns = 1.0 must lie between 0 and 1; .* 0.15 is usual"),
    "features": ({"features": "rff"}, "features = 'rff' is not one of cells, subsets, fourier"),
    "kernel": ({"features": "subsets", "degree": 1}, "needs tables of two columns: degree = 1"),
    "mixed": ({"features": "relu", "oracle": "weights"}, "relu are released by oracle = moments"),
    "units": ({"features": "relu", "units": 0}, "units = 0 must be at least 1"),
    "held": ({"features": "relu", "units": 10**6}, "units on each of 3 marginals .* fewer units"),
    "alpha": ({"alpha": 1.0}, "alpha = 1.0 must be at least 0 and below 1"),
    "keep": ({"keep": 0.0}, r"keep = 0.0 must be in \(0, 1\]"),
    "memory": ({"limit": 10}, "look at .* above the limit of 10 .* use oracle = exponential"),
    "solver": ({"oracle": "logistic", "cells": 1}, "one weight per cell.*'sex', 'age'.*fewer bins"),
    "unknown": ({"critic": "linear"}, "critic"),
}


@pytest.fixture(scope="module")
def survey():
    wanted = ("sex", "age", "smoker")
    schema = Schema(tuple(c for c in demo.schema().columns if c.name in wanted))
    table = demo.city_health_survey(2_000)
    return table.select([column.name for column in schema.columns]), schema


@pytest.mark.parametrize("name", BAD)
def test_bad_settings_cost_nothing(name, survey, tmp_path):
    parameters, message = BAD[name]
    table, schema = survey
    with us.Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("t", us.Budget.of(5, "1e-6"))
        with pytest.raises(InputError, match=message):
            us.release(
                table, schema, epsilon=1, method="querygan", parameters=parameters,
                ledger=ledger, dataset="t",
            )  # fmt: skip
        assert [entry.kind for entry in ledger.entries("t")] == ["open"]


def test_regressions_of_too_many_rows_are_refused_beforehand(survey):
    given = {"epsilon": 1, "method": "querygan", "parameters": {"oracle": "logistic"}}
    us.prepare(survey[1], rows_public=2**27, **given)
    with pytest.raises(InputError, match=r"134,217,728 rows, and .* 134,217,729; use oracle = mom"):
        us.prepare(survey[1], rows_public=2**27 + 1, **given)


def test_distances_need_a_column_with_an_order(survey):
    schema = Schema(tuple(c for c in survey[1].columns if not c.ordered))
    assert schema.columns
    with pytest.raises(
        InputError, match=r"wasserstein needs a column with an order .*objective = tv"
    ):
        us.prepare(schema, epsilon=1, method="querygan", parameters={"objective": "wasserstein"})


def test_critics_ask_cuts_of_ordered_columns_and_cells_of_others():
    design = replace(
        tiny_design((4, 3, 2, 5), rows=100), ordered=(True, False, True, True), apart=(0, 0, 0, 1)
    )
    made = QueryGANMethod(objective="wasserstein")
    made.check(design)
    _, leader = made.players(design, Plan(made.charges(design, Fraction(1))))
    assert leader.questions == ("cut", "cell", "cell", "cut or null")
    assert replace(made, objective="parity")._questions(design) == ("sign",) * 4
    assert replace(made, objective="tv")._questions(design) == ()


def test_lipschitz_critics_measure_ordered_columns_apart():
    design = replace(tiny_design((4, 3, 2, 5), rows=10**6), ordered=(True, False, True, True))
    rho = Fraction(1, 2)
    for columns, share in ((None, 0.5), (0.1, 0.1)):
        made = QueryGANMethod(objective="wasserstein", columns=columns)
        plan = Plan(made.charges(design, rho))
        spent = {charge.purpose: float(accounting.rho(charge.event)) / 0.5 for charge in plan}
        others = min(share, 0.15) / 2
        assert spent[COLUMNS] == pytest.approx(others, rel=1e-6)
        assert spent[ORDERED] == pytest.approx(share - others, rel=1e-6)
        assert accounting.total_rho(plan) <= rho
        measured = made.players(design, plan)[0].first.players
        assert [player.cliques for player in measured] == [((0,), (3,)), ((1,), (2,))]
    alone = replace(design, ordered=(True,) * 4, shape=(4, 3, 3, 5))
    assert COLUMNS not in Plan(QueryGANMethod(objective="wasserstein").charges(alone, rho))


def test_other_classes_of_queries_are_refused(survey):
    with pytest.raises(InputError, match="querygan serves marginals only"):
        us.prepare(survey[1], epsilon=1, method="querygan", workload=us.workload.prefixes(["age"]))


@pytest.mark.slow
def test_it_learns_and_says_what_was_proved(survey, tmp_path):
    table, schema = survey
    settings = {"rounds": 120, "batch": 128, "width": 32, "records": 20_000, "rate": 5e-3}
    made = us.QueryGAN(epsilon=20, workload="marginals:2", rows_public=2_000, **settings)
    made.fit(table, schema)
    codes = schema.encode(table)
    synthetic = schema.encode(made.sample(20_000))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        exact, found = (
            Empirical.of(schema.shape, np.stack(c, axis=1)).marginal((i, j))
            for c in (codes, synthetic)
        )
        assert 0.5 * np.abs(exact - found).sum() < 0.12
    release = made.release
    assert release.theorem is not None
    assert 0 < release.certificate.bound <= release.theorem.bound < 0.2
    assert "cells that critics look at" in release.theorem.statement
    release.save(tmp_path / "made")
    assert us.verify(tmp_path / "made").passed


def test_it_is_registered():
    assert METHODS["querygan"] is QueryGANMethod
    assert QueryGANMethod().describe()["oracle"] == "moments"
    assert CellPicker.PICK in [
        charge.purpose
        for charge in QueryGANMethod(oracle="exponential").charges(
            tiny_design((2, 2), rows=50), Fraction(1)
        )
    ]

"""What a release is said to be good for."""

import re
from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from tests.releases.conftest import people
from understudy.columns import Identifier
from understudy.releases.verdict import Level, foreseen, verdict
from understudy.units import Unit


def planned(schema, epsilon, rows):
    prepared = us.prepare(schema, epsilon=epsilon)
    return foreseen(prepared, rows, prepared.forecast(rows).errors)


def test_more_rows_and_more_budget_are_never_judged_worse(schema):
    order = [Level.POOR, Level.LIMITED, Level.GOOD]
    judged = {(e, n): planned(schema, e, n).level for e in ("0.1", "1", "8") for n in (50, 10**6)}
    for e in ("0.1", "1", "8"):
        assert order.index(judged[e, 50]) <= order.index(judged[e, 10**6])
    for n in (50, 10**6):
        by_budget = [order.index(judged[e, n]) for e in ("0.1", "1", "8")]
        assert by_budget == sorted(by_budget)
    assert judged["0.1", 50] is Level.POOR
    assert judged["8", 10**6] is Level.GOOD


def test_a_poor_plan_says_what_would_help(schema):
    poor = planned(schema, "0.1", 300)
    assert poor.level is Level.POOR
    assert "In a typical table about" in poor.advice
    assert "; with ε = 8, about 4.7 % (then useful for large groups)" in poor.advice
    assert "no ε up to 10 would make it useful" in planned(schema, "1", 30).advice
    good = planned(schema, "8", 10**6)
    assert good.advice == ""
    assert "accurate to ±10 %" in good.good_for


@pytest.mark.parametrize(
    ("epsilon", "rows"), [("0.3", 600), ("1", 1_500), ("1", 6_000), ("4", 3_000)]
)
def test_a_plan_is_no_better_than_its_release_or_says_a_range(schema, epsilon, rows):
    order = [Level.POOR, Level.LIMITED, Level.GOOD]
    before = planned(schema, epsilon, rows)
    after = verdict(us.release(people(rows), schema, epsilon=epsilon))
    ends = order.index(before.level), order.index(before.best or before.level)
    assert ends[0] <= order.index(after.level) <= ends[1]
    assert (before.best is None) == (ends[0] == ends[1])


def test_a_range_names_both_ends_and_what_decided(schema):
    prepared = us.prepare(schema, epsilon=1)
    errors = prepared.forecast(20_000).errors
    wide = replace(errors, mean=0.01, worst=0.01, worst_between=(0.003, 0.04))
    judged = foreseen(prepared, 20_000, wide)
    assert (judged.level, judged.best) == (Level.LIMITED, Level.GOOD)
    assert str(judged).startswith("Useful for large groups, perhaps for most analyses")
    assert " rows (perhaps " in judged.good_for
    told = (
        r"the bound on the worst cell, forecast at 0\.\d+ to 4\.\d percentage points \(limits: 2 "
    )
    assert re.match(told, judged.decided)
    flat = foreseen(prepared, 20_000, replace(errors, mean=0.06, worst_between=(0.001, 0.001)))
    told = "the typical table, with about 3 % to 12 % of its rows in another cell"
    assert flat.decided.startswith(told)


def test_single_columns_are_good_for_more_than_pairs(schema):
    """What is said of them is said of the noise: most of their shares are as near as that."""
    judged = planned(schema, "1", 10_000)
    assert "shares in single columns (their estimates are typically within ±0." in judged.good_for
    rows = people(10_000)
    made = us.release(rows, schema, epsilon=1)
    told = verdict(made).good_for
    within = float(re.search(r"typically within ±([\d.]+) percentage", told)[1]) / 100
    off: list[float] = []
    for at, column in enumerate(schema.modelled):
        true = np.bincount(column.encode(rows[column.name]), minlength=column.size) / len(rows)
        off += list(abs(made.model.marginal((at,)) - true))
    assert np.mean(np.array(off) <= within) > 0.8


def test_a_method_without_a_forecast_has_no_verdict_before_it_runs(schema):
    prepared = us.prepare(schema, epsilon=1, method="independent")
    assert foreseen(prepared, 1000, prepared.forecast(1000).errors) is None


@pytest.fixture(scope="module")
def release(schema):
    return us.release(people(3_000), schema, epsilon=3)


def test_a_large_bound_is_never_called_useful(release):
    certificate = release.certificate
    for bound, level in ((0.001, None), (0.19, Level.POOR), (1.0, Level.POOR)):
        judged = verdict(replace(release, certificate=replace(certificate, bound=bound)))
        assert level is None or judged.level is level
        assert str(judged).startswith(str(judged.level))
    assert judged.good_for.startswith("shares in single columns (their estimates are typically")
    assert judged.not_for == "numbers of several columns together"
    assert verdict(replace(release, forecast=None)).advice == ""


def test_what_a_bound_promises_is_rounded_up(release):
    n, certificate = release.number, replace(release.certificate, bound=0.010421)
    judged = verdict(replace(release, certificate=certificate))
    assert "the bound on the worst cell, 1.05 percentage points" in judged.decided
    under, held = (
        int(re.search(rf"{words} ([\d,]+)", told)[1].replace(",", ""))
        for words, told in (("under", judged.not_for), ("hold", judged.good_for))
    )
    assert 0.010421 * n <= under <= 1.02 * 0.010421 * n + 1
    assert 0.10421 * n <= held <= 1.02 * 0.10421 * n + 1


def test_a_purpose_is_advised_only_where_none_was_given(schema):
    advised = "a purpose makes the tables"
    given = us.prepare(schema, epsilon=1, purpose=f"model:{schema.modelled[0].name}")
    judged = foreseen(given, 300, given.forecast(300).errors)
    assert judged.advice
    assert advised not in judged.advice
    rows = next(n for n in (300, 1_000, 3_000) if "; " in planned(schema, "1", n).advice)
    assert advised in planned(schema, "1", rows).advice


def test_an_older_release_has_a_verdict_without_advice(release):
    poor = replace(release, certificate=replace(release.certificate, bound=0.5))
    assert "In a typical table about" in verdict(poor).advice
    assert verdict(replace(poor, entries=())).level is Level.POOR
    assert verdict(replace(poor, entries=())).advice == ""


def test_rows_that_contradict_what_was_measured_are_not_praised(release):
    found = {"largest_residual": 9.0, "largest_residual_in": "a × b", "residual_limit": 6.0}
    useful = replace(release, certificate=replace(release.certificate, bound=0.001))
    judged = verdict(replace(useful, diagnostics=found))
    assert judged.level is Level.DOUBTFUL
    assert judged.not_for.startswith("a × b together; ")
    assert judged.decided == "a × b, which the model could not fit"
    large = {**found, "largest_residual_share": 0.03}
    assert verdict(replace(useful, diagnostics=large)).level is Level.DOUBTFUL
    small = verdict(replace(useful, diagnostics={**found, "largest_residual_share": 0.004}))
    assert small.level is verdict(useful).level
    assert small.not_for.startswith("differences of up to 0.4 percentage points in a × b; ")
    assert small.decided == verdict(useful).decided
    within = verdict(replace(useful, diagnostics={**found, "largest_residual": 5.0}))
    assert within.level is not Level.DOUBTFUL
    poor = replace(release, certificate=replace(release.certificate, bound=0.5), diagnostics=found)
    assert verdict(poor).level is Level.POOR


def test_fewer_rows_of_each_are_advised_where_they_would_help(schema):
    who = Unit("person", 5)
    several = replace(schema, columns=(*schema.columns, Identifier("person")), unit=who)
    assert "with 1 row of each instead of 5, if as many" in planned(several, "1", 2_000).advice
    assert "max_rows" not in planned(schema, "1", 300).advice

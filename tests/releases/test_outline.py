"""A plan and an account in public facts alone."""

from __future__ import annotations

import json
import math
import re

import pytest

import understudy as us
from understudy.privacy.cost import Charge, Discovery, Gaussian, Laplace, Zcdp
from understudy.releases.certificate import VARIATION, WORST
from understudy.releases.outline import (
    ASSUMED_ROWS,
    Room,
    buys,
    noise_in_rows,
    outline,
    time_in_words,
)
from understudy.schema import Category, Identifier, Schema, UndeclaredCategory
from understudy.units import Unit


def test_the_outline_adds_up_and_is_json(schema):
    prepared = us.prepare(schema, epsilon=1, variations=True)
    seen = json.loads(json.dumps(outline(prepared)))
    assert sum(charge["share_of_rho"] for charge in seen["charges"]) == pytest.approx(1)
    assert [c["purpose"] for c in seen["charges"]] == [c.purpose for c in prepared.plan]
    assert seen["forecast"]["rows"] == ASSUMED_ROWS
    assert seen["forecast"]["rows_assumed"]
    assert 0.99 < seen["cost"]["epsilon"] <= 1
    assert outline(prepared, rows=77)["forecast"]["rows"] == 77


@pytest.mark.parametrize("most", [1, 3, 20])
def test_shares_are_those_that_were_set_aside_whoever_is_protected(most):
    """4 % of ρ for each column that is discovered, whether a unit has one row or twenty."""
    town = '[[column]]\nname = "{}"\ntype = "category"\nvalues = "discover"\n'
    head = f'[understudy]\nversion = 1\nunit = "id"\nmax_rows = {most}\n'
    person = '[[column]]\nname = "id"\ntype = "identifier"\n'
    text = head + person + "".join(map(town.format, ("a", "b")))
    seen = outline(us.prepare(Schema.loads(text), epsilon=1, method="independent"))
    found = {charge["purpose"]: charge["share_of_rho"] for charge in seen["charges"]}
    assert found == pytest.approx(
        {"values of a": 0.04, "values of b": 0.04, "everything else": 0.92}
    )


def test_noise_is_said_in_rows():
    assert noise_in_rows(Charge("x", Gaussian(3.0))) == 3
    assert noise_in_rows(Charge(VARIATION, Gaussian(4.0, step=2))) == 1
    assert noise_in_rows(Charge(WORST, Laplace(64.0, 64))) == pytest.approx(math.sqrt(2))
    assert noise_in_rows(Charge("x", Zcdp(1))) is None


@pytest.mark.parametrize("rows_public", [None, 1000])
def test_the_noise_of_every_count_is_told_as_of_its_charge(schema, rows_public):
    made = outline(us.prepare(schema, epsilon=1, rows_public=rows_public, variations=True))
    counted = {c["purpose"]: c for c in made["charges"] if c["event"]["kind"] == "gaussian"}
    assert VARIATION in counted
    assert ("number of rows" in counted) == (rows_public is None)
    told = {purpose: charge["noise_rows"] for purpose, charge in counted.items()}
    assert made["forecast"]["noise_rows"] == told


def test_what_a_charge_buys():
    assert buys(Charge(WORST, Laplace(1.0, 64))) == "the bound on the worst error"
    assert "9 or more" in buys(Charge("values of a", Discovery(1.0, 9, 1, 1)))
    assert buys(Charge("x", Gaussian(3.0))) == "counts with noise, for the model"


@pytest.mark.parametrize(("composition", "ratio"), [("zcdp", 4.0), ("basic", 2.0)])
def test_releases_alike_take_the_same_share_of_a_budget(tmp_path, schema, composition, ratio):
    """Of what adds up: by zCDP twice the ε takes about four times as much."""
    with us.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open_dataset("t", us.Budget.of(3, "1e-8"), us.Relation.ADD_REMOVE, composition, None)

        def room(epsilon):
            made = us.prepare(schema, epsilon=epsilon, method="independent")
            return made, Room.of(ledger.books("t"), made.budget, made.plan, None)

        plan, first = room(0.5)
        assert (first.before, first.left) == (1, pytest.approx(1 - first.takes))
        assert room(1)[1].takes == pytest.approx(ratio * first.takes, rel=0.1)
        assert room(4)[1].takes > 1
        assert room(4)[1].fit == 0
        assert first.fit == int(1 / first.takes)
        ledger.reserve("t", plan.budget, plan.plan, relation=us.Relation.ADD_REMOVE)
        _, second = room(0.5)
        assert second.takes == pytest.approx(first.takes)
        assert (second.before, second.fit) == (pytest.approx(first.left), first.fit - 1)
        one, _ = room(1)
        ledger.reserve("t", one.budget, one.plan, relation=us.Relation.ADD_REMOVE)
        large, alone = room(2.9)
        assert not alone.fit
        with us.Ledger(tmp_path / "another.db") as empty:
            facts = (us.Budget.of(3, "1e-8"), us.Relation.ADD_REMOVE, composition, None)
            empty.open_dataset("t", *facts)
            fresh = Room.of(empty.books("t"), large.budget, large.plan, None)
        assert fresh.fit == 1
        assert alone.takes == pytest.approx(fresh.takes, rel=0.01), "whatever is left"


def test_time_is_said_for_a_known_size_or_for_two(schema):
    prepared = us.prepare(schema, epsilon=1)
    assert re.fullmatch(
        r"about .+ for 10,000 rows, .+ for 100,000 rows on an idle core; .+",
        time_in_words(prepared),
    )
    assert re.fullmatch(r"about .+ for 500 rows on an idle core; .+", time_in_words(prepared, 500))
    public = us.prepare(schema, epsilon=1, rows_public=700)
    assert re.fullmatch(r"about .+ for 700 rows .+", time_in_words(public))


def test_the_time_includes_finding_what_is_open_and_counting_every_pair():
    """Ratios of a forecast, not seconds of this machine; figures are in docs/benchmarks.md."""
    declared = [
        Category(f"c{i}", tuple(f"v{j}" for j in range(20)), nullable=False) for i in range(6)
    ]
    open_ = [UndeclaredCategory(c.name, values="discover", nullable=False) for c in declared]
    who = (Identifier("who"),)

    def forecast(columns, rows, unit=None):
        schema = Schema((*who, *columns), unit=unit)
        return us.prepare(schema, epsilon=1).forecast(rows).seconds

    small, large = 10_000, 1_000_000
    for columns in (declared, open_):
        assert forecast(columns[:3], large) < forecast(columns, large)
        assert forecast(columns, small) < forecast(columns, large)
    alone, of_people = forecast(open_, large), forecast(open_, large, Unit("who", 1))
    assert forecast(declared, large) < alone < of_people

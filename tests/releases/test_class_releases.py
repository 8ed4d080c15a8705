"""Releases for other classes of queries than cells of marginals, from the table to the answer."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import understudy as us
from tests.thorough import examples, some
from understudy.errors import BundleError, InputError
from understudy.game.methods import METHODS
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.queries import Family, count
from understudy.releases import certificate as c
from understudy.releases.bundle import digest, manifest_bytes
from understudy.testing import SeededNoise, StrictCharges, TinyCounts

from .conftest import people

WORKLOADS = ["conjunctions:2", "disjunctions:2", "parities:2", "prefixes:2", "halfspaces:3"]
ROWS = 3000


def worst(release, table):
    """The true worst error of the released rows over the workload."""
    shape = release.schema.shape
    found = 0.0
    for family in release.workload.families:
        answers = [
            family.products(shape).answers(
                count(release.schema.encode(rows), shape, family.clique) / rows.num_rows
            )
            for rows in (table, release.rows)
        ]
        found = max(found, float(np.abs(answers[0] - answers[1]).max()))
    return found


@pytest.mark.parametrize(("workload", "method"), some(product(WORKLOADS, ["fem", "sepfem"]), 9))
def test_the_error_falls_with_epsilon(workload, method, table, schema):
    def mean(epsilon):
        errors = []
        for seed in range(1, examples(1, 2) + 1):
            release = us.release(
                table, schema, epsilon=epsilon, workload=workload, method=method, key=seed,
                rows_public=ROWS, parameters={"samples": 100}, noise=SeededNoise(seed),
            )  # fmt: skip
            errors.append(worst(release, table))
        return float(np.mean(errors))

    low, high = mean("0.05"), mean(3)
    assert high < 0.6 * low
    assert high < 0.12


@pytest.fixture(scope="module")
def prefixes(table, schema):
    return us.release(
        table, schema, epsilon=2, key=5, rows_public=ROWS,
        workload=us.workload.prefixes(["age", "visits"]) + us.workload.parities(["sex", "smoker"]),
    )  # fmt: skip


def test_auto_plays_fem(prefixes):
    assert prefixes.method["name"] == "fem"
    assert prefixes.certificate.of == "queries"
    assert "53 queries of the workload" in str(prefixes.certificate)
    assert prefixes.certificate.cells == 50 + 3


def test_a_bundle_says_the_kind_and_is_verified(prefixes, tmp_path):
    path = prefixes.save(tmp_path / "r")
    manifest = json.loads((path / "release.json").read_bytes())
    assert [entry["kind"] for entry in manifest["workload"]] == ["prefixes", "parities"]
    us.verify(path).require()
    again = us.Release.load(path)
    assert again.workload == prefixes.workload
    assert again.certificate == prefixes.certificate
    assert str(again.answer("age < 30")) == str(prefixes.answer("age < 30"))


@pytest.mark.parametrize(("key", "value"), [("cells", 54), ("of", "cells"), ("of", None)])
def test_another_number_or_noun_is_refused(prefixes, tmp_path, key, value):
    path = prefixes.save(tmp_path / "r")
    manifest = json.loads((path / "release.json").read_bytes())
    stated = manifest["certificate"]
    stated[key] = value
    if value is None:
        del stated[key]
    body = {name: item for name, item in stated.items() if name != "words"}
    stated["words"] = us.Certificate.from_json(body).statement
    manifest["digest"] = digest(manifest)
    (path / "release.json").write_bytes(manifest_bytes(manifest))
    if value == "cells":
        with pytest.raises(BundleError, match=r"certificate\.of"):
            us.verify(path)
        return
    failed = [check for check in us.verify(path).checks if not check.passed]
    assert [check.name for check in failed] == ["rows"]
    assert "the workload has 53 queries" in failed[0].detail


@pytest.mark.parametrize(
    ("question", "pieces"),
    [
        ("age < 30", 1),  # a prefix of one of the columns
        ("age >= 30", 1),  # its complement
        ("age < 50 and visits <= 1", 1),
        ("visits > 1 or age >= 50", 1),
        ("age >= 20 and age < 50", 2),  # an interval
        ("visits = 0", 1),
        ("visits = 2", 2),
        ("age < 50 and visits between 2 and 3", 2),
        ("age >= 20 and age < 50 and visits between 2 and 3", 4),
        ("(sex = 'M' and smoker is not null and not smoker) or (sex = 'F' and smoker)", None),
    ],
)
def test_answers_are_certified_where_they_are_queries(prefixes, table, question, pieces):
    answer = prefixes.answer(question)
    if pieces is None:
        assert not answer.certified
        return
    bound = pieces * prefixes.certificate.bound
    assert answer.certified
    assert answer.high - answer.estimate <= bound + 1e-9
    assert answer.low == pytest.approx(max(0, answer.estimate - bound))
    assert answer.high == pytest.approx(min(1, answer.estimate + bound))


def test_a_parity_is_certified_as_itself_and_its_complement_and_nothing_else(table):
    toml = (
        '[understudy]\nversion = 1\n[[column]]\nname = "sex"\ntype = "category"\n'
        'values = ["F", "M"]\n[[column]]\nname = "smoker"\ntype = "boolean"\n'
    )
    release = us.release(
        table.select(["sex", "smoker"]), us.Schema.loads(toml), epsilon=2,
        workload=us.workload.parities(["sex", "smoker"]), key=1,
    )  # fmt: skip
    for text in (
        "(sex = 'M' and not smoker) or (sex = 'F' and smoker)",
        "(sex = 'M' and smoker) or (sex = 'F' and not smoker)",
    ):
        answer = release.answer(text)
        assert answer.certified
        assert answer.high == pytest.approx(min(1, answer.estimate + release.certificate.bound))
    assert not release.answer("sex = 'M'").certified


def test_conjunctions_certify_cells_and_their_unions(table, schema):
    release = us.release(
        table, schema, epsilon=5, rows_public=ROWS, key=3,
        workload=us.workload.conjunctions(["sex", "visits"]),
    )  # fmt: skip
    bound = release.certificate.bound
    for text, pieces in [
        ("sex = 'F' and visits = 2", 1),
        ("sex = 'F' and visits != 2", 1),
        ("sex = 'F' or visits = 2", 1),
        ("visits = 2", 2),
    ]:
        answer = release.answer(text)
        assert answer.high == pytest.approx(min(1, answer.estimate + pieces * bound)), text


def test_total_variations_go_with_any_class(table, schema, tmp_path):
    release = us.release(
        table, schema, epsilon=2, rows_public=ROWS, workload="prefixes:1", variations=True, key=1
    )
    assert len(release.certificate.variations) == 2
    us.verify(release.save(tmp_path / "r")).require()
    answer = release.answer("visits in (0, 2, 4)")
    assert answer.high - answer.estimate <= max(release.certificate.variations) + 1e-9


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"fem", "sepfem"}))
def test_other_methods_say_which_one_to_use(name, schema):
    with pytest.raises(InputError, match=rf"method = {name} serves marginals only.*use fem"):
        us.prepare(schema, epsilon=1, workload="prefixes:1", method=name)


def test_marginals_alone_are_played_as_before(schema):
    for workload in ("marginals:2", us.workload.marginals(["age", "sex"])):
        prepared = us.prepare(schema, epsilon=1, workload=workload, method="fem")
        assert prepared.design.families == ()
        query, _ = prepared.method.players(prepared.design, prepared.plan)
        assert type(query).__name__ == "CellPicker"
    assert us.prepare(schema, epsilon=1, workload="marginals:2").method.name == "maxent"


def test_the_theorem_counts_the_queries(schema):
    few, many = (
        us.prepare(
            schema,
            epsilon=1,
            rows_public=10**6,
            workload=w,
            method="fem",
            beta=0.05,
            parameters={"published": True},
        )
        for w in ("prefixes:1", "conjunctions:2")
    )
    assert few.design.queries == 15
    assert many.design.queries == 452
    bounds = [p.method.theorem(p.design, p.plan, 10**6, 0.05).bound for p in (few, many)]
    assert 0 < bounds[0] <= bounds[1]


# -- coverage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["disjunctions", "prefixes"])
def test_coverage_is_beta(kind, schema):
    """2 000 certificates: the miss rate is β within its error, and half the margin would be caught."""
    beta, times = 0.05, 2000
    true, fixed = (schema.encode(people(200, key)) for key in (1, 2))
    families = [Family((0, 3), kind=kind), Family((3,), kind=kind)]
    classes = [family.products(schema.shape) for family in families]
    cliques = [family.clique for family in families]
    error = max(
        float(
            np.abs(
                each.answers(count(true, schema.shape, each.clique))
                - each.answers(count(fixed, schema.shape, each.clique))
            ).max()
        )
        / 200
        for each in classes
    )
    plan = Plan((Charge(c.WORST, planning.laplace(Fraction(1, 2), l1=c.LATTICE)),))
    rows = list(zip(*(column.tolist() for column in true), strict=True))
    charges = StrictCharges(Plan((replace(plan[c.WORST], times=times),)))
    gate = Gate(TinyCounts(schema.shape, rows), charges, Relation.ADD_REMOVE, SeededNoise(5), 200)
    found = [
        c.certify(gate, plan, cliques, fixed, beta=beta, rows_measured=None, classes=classes)
        for _ in range(times)
    ]
    event = plan[c.WORST].event
    margin = c._laplace_margin(event.scale, beta) / (event.l1 * 200)
    sd = math.sqrt(beta * (1 - beta) / times)
    assert 0 < error < 1
    assert abs(np.mean([u.bound < error for u in found]) - beta) <= 3.5 * sd
    assert np.mean([u.bound - margin / 2 < error for u in found]) > beta + 3 * sd
    assert {u.cells for u in found} == {sum(each.size for each in classes)}

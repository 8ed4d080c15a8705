"""The default's accuracy may not regress: a small table, known bounds, and worse fits that fail."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from tests.thorough import some
from understudy import demo
from understudy.models import blocks, fitting
from understudy.players.data import particles
from understudy.queries import counts
from understudy.schema import Schema
from understudy.testing import SeededNoise


def errors(codes, synthetic, shape, cliques):
    """(mean total variation, worst error of a cell) over marginals."""
    pairs = zip(counts(codes, shape, cliques), counts(synthetic, shape, cliques), strict=True)
    off = [np.abs(a / a.sum() - b / b.sum()) for a, b in pairs]
    return float(np.mean([d.sum() / 2 for d in off])), float(max(d.max() for d in off))


COLUMNS = (
    "sex", "age", "education", "employment", "smoker", "chronic_conditions", "systolic", "insured",
)  # fmt: skip
ROWS = 15_000
# Seen: .0611 and .0058, the mean of three runs with fixed noise; with 15 % of room.
MEAN_TV, WORST = 0.0705, 0.0067


@pytest.fixture(scope="module")
def survey():
    """(table, schema, codes, all triples) of eight columns of the sample table."""
    schema = Schema(tuple(c for c in demo.schema().columns if c.name in COLUMNS))
    table = demo.city_health_survey(ROWS, key=3).select([c.name for c in schema.columns])
    triples = list(itertools.combinations(range(len(schema.shape)), 3))
    return table, schema, [np.asarray(c) for c in schema.encode(table)], triples


def released(survey, noise, **options):
    table, schema, codes, triples = survey
    options = {"epsilon": 1, "workload": "marginals:3", "rows_public": ROWS, "key": 1} | options
    release = us.release(table, schema, noise=SeededNoise(noise), **options)
    rows = [np.asarray(c) for c in schema.encode(release.rows)]
    return release, errors(codes, rows, schema.shape, triples)


@pytest.fixture(scope="module")
def runs(survey):
    """Three releases at ε = 1 with fixed noise, and their errors."""
    return [released(survey, noise) for noise in (1, 2, 3)]


def within(found):
    """Below both bounds."""
    return found[0] <= MEAN_TV and found[1] <= WORST


def test_accuracy_does_not_regress(runs):
    found = np.mean([errors for _, errors in runs], axis=0)
    assert within(found), found
    for release, (_, worst) in runs:
        assert release.method["name"] == "maxent"
        assert worst <= release.certificate.bound


def with_effort(**less):
    def patch(monkeypatch):
        usual = fitting.Effort

        def make(*given, **more):
            return replace(usual(*given, **more), **less)

        monkeypatch.setattr(particles, "Effort", make)

    return patch


def without_pairs(monkeypatch):
    monkeypatch.setattr(blocks, "_beyond_columns", lambda residual: 0 * residual)


WRECKED = {
    "a hundredth of the records": with_effort(records=1_000),
    "no sweep over the weights": with_effort(sweeps=0),
    "a spanning tree only": with_effort(sweeps=0, tree_cells=1),
    "dependence left out": without_pairs,
}


@pytest.mark.parametrize("wreck", some(WRECKED.values(), 4), ids=WRECKED)
def test_a_worse_fit_fails_the_same_bounds(survey, wreck, monkeypatch):
    wreck(monkeypatch)
    assert not within(released(survey, 1)[1])


def test_uniform_rows_and_independent_columns_fail_them_as_well(survey):
    _, schema, codes, triples = survey
    rng = np.random.default_rng(0)
    uniform = [rng.integers(size, size=ROWS) for size in schema.shape]
    assert errors(codes, uniform, schema.shape, triples)[0] > 5 * MEAN_TV
    found = released(survey, 1, method="independent")[1]
    assert found[0] > 2 * MEAN_TV
    assert found[1] > 2 * WORST


@pytest.mark.slow
def test_error_falls_with_epsilon(survey, runs):
    found = {epsilon: released(survey, 1, epsilon=epsilon)[1][0] for epsilon in (0.01, 0.1, 10)}
    assert found[0.01] > found[0.1] > runs[0][1][0] > found[10]
    assert found[10] < 0.5 * MEAN_TV


def test_a_small_table_is_met_where_records_are_moved():
    """Steps ended when tables that are mostly noise were near, others 5 deviations off: .0076."""
    schema, table = demo.schema(), demo.city_health_survey()
    pairs = list(itertools.combinations(range(len(schema.shape)), 2))
    codes = [np.asarray(c) for c in schema.encode(table)]
    survey = table, schema, codes, pairs
    _, (_, worst) = released(survey, 2, workload="marginals:2", rows_public=None, key=2)
    assert worst <= 0.0063

"""The test of independence: Pearson's without noise, of the right size with it, and with power."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import chdtrc
from scipy.stats import chi2_contingency

import understudy as us
from tests.releases.conftest import TOML, people
from understudy.errors import InputError, WorkloadError
from understudy.estimates.independence import _exceeded, independence
from understudy.models import Measured
from understudy.schema import Identifier, Schema
from understudy.units import Unit

P = np.array([0.5, 0.25, 0.15, 0.1])
Q = np.array([0.6, 0.3, 0.1])


def found(*tables, rows=2000, margins=(P, Q), shape=(4, 3), alike=1):
    return independence(tables, (0, 1), shape, rows, margins, ("a", "b"), alike)


def drawn(rng, joint, rows=2000, sigma=30.0):
    counts = rng.multinomial(rows, joint.ravel()).reshape(joint.shape)
    return counts + np.rint(rng.normal(0, sigma, joint.shape)).astype(np.int64)


def test_without_noise_it_is_pearsons():
    rng = np.random.default_rng(0)
    table = rng.multinomial(2000, (np.outer(P, Q) + 0.02 * np.eye(4, 3)).ravel() / 1.06)
    table = table.reshape(4, 3)
    margins = table.sum(1) / 2000, table.sum(0) / 2000
    mine = found(Measured((0, 1), table, 1e-9), margins=margins)
    theirs = chi2_contingency(table, correction=False)
    assert mine.statistic == pytest.approx(theirs.statistic)
    assert (mine.p_value, mine.degrees) == (pytest.approx(theirs.pvalue), 6)


def test_it_has_its_size_and_power():
    """Of 400 tables 5 % ± 5 deviations are called dependent; a lasting dependence is always found."""
    rng = np.random.default_rng(1)
    free, bound = np.outer(P, Q), np.outer(P, Q) + 0.05 * np.outer([1, -1, 0, 0], [1, -1, 0])
    p = np.array([found(Measured((0, 1), drawn(rng, free), 30.0)).p_value for _ in range(400)])
    assert abs((p < 0.05).mean() - 0.05) < 5 * math.sqrt(0.05 * 0.95 / 400)
    assert abs(p.mean() - 0.5) < 5 * math.sqrt(1 / 12 / 400)
    assert all(found(Measured((0, 1), drawn(rng, bound), 30.0)).p_value < 0.05 for _ in range(20))
    # With half of the noise stated, tables would be called dependent that are not.
    wrong = np.array([found(Measured((0, 1), drawn(rng, free), 15.0)).p_value for _ in range(100)])
    assert (wrong < 0.05).mean() > 0.3


def test_tables_are_pooled_and_larger_ones_summed():
    rng = np.random.default_rng(2)
    counts = rng.multinomial(2000, np.outer(P, Q).ravel()).reshape(4, 3)
    noise = rng.normal(0, 10, (2, 4, 3))
    one, two = (Measured((0, 1), counts + each, 10.0) for each in noise)
    mean = Measured((0, 1), counts + noise.mean(0), 10 / 2**0.5)
    assert found(one, two).statistic == pytest.approx(found(mean).statistic)
    split = np.stack([counts, np.zeros((4, 3))], axis=2)
    larger = Measured((0, 1, 2), split, 10.0)
    test = found(larger, shape=(4, 3, 2))
    assert test.sigma == pytest.approx(10 * 2**0.5)
    assert test.statistic == pytest.approx(found(Measured((0, 1), counts, 10 * 2**0.5)).statistic)


def test_merged_tables_are_tested_as_they_are_and_take_finer_ones_in():
    labels = (np.array([0, 1, 1, 1]), np.array([0, 1, 1]))
    counts = 2000 * np.outer([0.5, 0.5], [0.6, 0.4])
    merged = Measured((0, 1), counts, 5.0, labels)
    assert found(merged).cells == (2, 2)
    assert found(merged).statistic == pytest.approx(0, abs=1e-9)
    assert found(merged).merged
    assert "counted together" in found(merged).words
    whole = Measured((0, 1), 2000 * np.outer(P, Q), 5.0)
    both = found(merged, whole)
    assert both.cells == (4, 3)
    drowned = Measured((0, 1), 2000 * np.outer(P, Q), 1000.0)
    assert found(merged, drowned).cells == (2, 2)
    assert found(merged, drowned).sigma < 5.0


@pytest.fixture(scope="module")
def made():
    return released(workload="marginals:2")


def released(**choices):
    return us.release(people(500), Schema.loads(TOML), epsilon=1, key=0, **choices)


def test_words_and_refusals(made):
    told = made.test_independence("age", "visits")
    assert told.columns == ("age", "visits")
    assert str(told) == told.words
    assert f"{told.degrees} degrees of freedom" in told.words
    again = made.test_independence("visits", "age")
    assert again.p_value == pytest.approx(told.p_value)
    assert (again.columns, again.cells) == (("visits", "age"), told.cells[::-1])
    assert again.to_json()["words"] == again.words
    with pytest.raises(WorkloadError, match="smokr"):
        made.test_independence("age", "smokr")
    with pytest.raises(InputError, match="two different columns"):
        made.test_independence("age", "age")
    columns = released(method="independent")
    with pytest.raises(WorkloadError, match="no table with both age and visits"):
        columns.test_independence("age", "visits")
    cells = released(method="mwem", workload="marginals:1")
    with pytest.raises(InputError, match="has no noisy tables"):
        cells.test_independence("age", "visits")


def test_rows_that_may_be_copies_vary_more():
    """Three copies of every row are no more evidence than the rows: the statistic is that of one."""
    counts = np.random.default_rng(3).multinomial(2000, np.outer(P, Q).ravel()).reshape(4, 3)
    once = found(Measured((0, 1), counts, 1e-9))
    often = found(Measured((0, 1), 3 * counts, 1e-9), rows=6000, alike=3)
    assert often.statistic == pytest.approx(once.statistic)


def test_a_release_says_how_many_rows_of_a_person_count(made):
    columns = (Identifier("person"), *made.schema.columns)
    several = replace(made, schema=Schema(columns).protecting(Unit("person", 3)))
    one, three = (each.test_independence("age", "visits") for each in (made, several))
    assert three.statistic < one.statistic


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 40, 1501])
def test_the_chance_to_exceed_is_that_of_chi_square(degrees):
    for x in (0.0, 1e-6, 0.5, degrees / 2, degrees, 2.0 * degrees, 30.0 * degrees):
        wanted = pytest.approx(chdtrc(degrees, x), rel=1e-9, abs=1e-300)
        assert _exceeded(x, degrees) == wanted

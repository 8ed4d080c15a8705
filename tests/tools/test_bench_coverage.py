"""The validation's own arithmetic: textbook intervals, coverage, and a run that goes on."""

import json
import lzma
import math
import multiprocessing

import numpy as np
import pytest
from bench import coverage
from scipy import stats


@pytest.fixture(scope="module")
def population():
    before, coverage.SIZE = coverage.SIZE, 4_000
    try:
        yield coverage.copula()
    finally:
        coverage.SIZE = before


def test_populations_have_14_columns_and_legal_rows(population):
    assert len(population.rows) == 14
    table = population.drawn(300, np.random.default_rng(0))
    assert population.schema.illegal(coverage._arrow(table)) == []


def test_plain_statistics_are_the_textbooks(population):
    rows = population.rows
    x, y, sex = rows["age"], rows["income"], rows["sex"] == "v1"
    found = {each.text: each.plain(rows) for each in population.asked}
    assert found["correlation(age, income)"][0][0] == pytest.approx(stats.pearsonr(x, y)[0])
    design = np.column_stack([np.ones(x.size), x, sex])
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    told = [value for value, _ in found["ols(income ~ age + C(sex, 'v0'))"]]
    assert told == pytest.approx(list(beta[1:]))
    few = y[:500]
    apart = np.abs(few[:, None] - few).mean() / (2 * few.mean())
    assert coverage.gini("y").plain({"y": few})[0][0] == pytest.approx(apart, rel=1e-2)
    half = 1.96 * y.std() / np.sqrt(y.size)
    assert found["mean(income)"][0] == pytest.approx((y.mean(), half), rel=1e-3)
    (slope, _), (shift, _) = found["logit(insured = 'v1' ~ age + C(smoker, 'v0'))"]
    design = np.column_stack([np.ones(x.size), x, rows["smoker"] == "v1"]).astype(float)
    odds = design @ [0, slope, shift]
    insured = rows["insured"] == "v1"
    level = np.linspace(-5, 5, 2001)
    fit = [np.sum(np.logaddexp(0, a + odds) - insured * (a + odds)) for a in level]
    p = 1 / (1 + np.exp(-(level[int(np.argmin(fit))] + odds)))
    assert np.abs(design.T @ (insured - p) / np.abs(design).sum(axis=0)).max() < 2e-3


def line(low, high, truth=0.5, kind="mean", **more):
    return {
        "kind": kind, "log": False, "truth": [truth, truth], "naive": [0.0, 0.1],
        "population": [0.5, low, high, 0.05], "table": None,
        "population flagged": False, "table flagged": True, **more,
    }  # fmt: skip


def test_what_repetitions_come_to():
    held = [[line(0.4, 0.6), line(0.4, 0.6)], [line(0.6, 0.8)], [line(0.4, 0.6)]]
    found = coverage.cell(held)
    assert found.numbers == 4
    assert found.covered[0] == 0.75
    assert found.covered[1] >= np.sqrt(0.75 * 0.25 / 4) - 1e-12
    assert np.isnan(found.table[0])
    assert (found.naive, found.determined, found.flagged) == (0, 1, 0)
    assert found.width == pytest.approx(2)
    odds = line(1.0, np.e**2, truth=1.0, log=True)
    assert coverage._inside(odds, "population")
    assert coverage._width(odds) == pytest.approx(20)


def test_a_run_goes_on_where_it_was_cut(population, tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "ROWS", (400,))
    monkeypatch.setattr(coverage, "EPSILONS", ("1", "2"))
    file, few = tmp_path / "found.jsonl", population.asked[:1]
    rows = {
        name: population.rows[name] for name in ("region", "smoker", "insured", "free_a", "free_b")
    }
    small = coverage.Population("copula", rows, {}, few, population.free[:1], population.bound)
    kept = tmp_path / "kept"
    kept.mkdir()

    def run(turn, *, kept_only=False):
        taken = multiprocessing.Value("q", turn)
        runs = coverage.Runs(file, [[small]], (1,), 3, math.inf, taken, kept, kept_only, False)
        assert [job[:3] for job in runs.jobs()] == [(3, 400, "1"), (3, 400, "2")]
        runs.run()

    run(1)  # another process has begun the first combination
    run(0)
    once = file.read_text()
    assert [json.loads(each)["epsilon"] for each in once.splitlines()] == ["2", "1"]
    file.write_text(once.splitlines()[0] + "\n" + once.splitlines()[1][:50])
    coverage.mended(file)
    run(0, kept_only=True)
    again = [json.loads(each) for each in file.read_text().splitlines() if each.endswith("}")]
    assert [each["epsilon"] for each in again] == ["2", "1"]
    assert again[-1]["numbers"] == json.loads(once.splitlines()[1])["numbers"]
    packed = tmp_path / "found.xz"
    packed.write_bytes(lzma.compress(file.read_bytes()))
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n<!-- python -m bench coverage FILE --report --into -->\nold\n<!-- end -->\nx\n"
    )
    coverage.main([str(file), str(packed), "--report", "--into", str(page)])
    told = page.read_text()
    assert "2 releases, 1 for each" in told  # each release counts once
    assert "| share of 1 |" in told
    assert told.startswith("# T\n<!--")
    assert told.endswith("<!-- end -->\nx\n")
    assert "old" not in told


def test_in_triples_a_marginal_of_the_workload_holds_the_parity(monkeypatch):
    monkeypatch.setattr(coverage, "SIZE", 4_000)
    found = coverage.triples()
    assert (found.workload, found.free, found.bound) == ("marginals:3", (), ())
    assert {"e1", "e2", "e3"} <= set(found.rows)
    assert [each.kind for each in found.asked] == ["parity in a marginal"]

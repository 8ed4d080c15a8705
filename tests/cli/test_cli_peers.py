"""`python -m bench peers`: processes measured from outside, rivals by their interfaces, resumption."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bench.published import peers as module
from bench.published.peers import (
    RIVALS,
    Measures,
    Peers,
    System,
    Task,
    environment,
    floor,
    markdown,
    measured,
    ours,
    run,
    tasks,
    works,
)
from bench.published.wide import wide

from tests.cli.cli_cases import run as command
from tests.thorough import slow, some
from understudy.errors import InputError

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def table():
    return wide(400, 8)


@pytest.fixture(scope="module")
def work(table):
    (found,) = works({"WIDE": table})
    return found


def small(folder, *more):
    return (
        "bench", "peers", "--out", folder, "--wide-rows", 300, "--wide-columns", 5, "--rivals",
        "none", "--methods", "independent", "--epsilons", "1", "--runs", 2, *more,
    )  # fmt: skip


# --- the generated table ------------------------------------------------------------------------


def test_the_wide_table_is_the_same_for_the_same_key():
    one, two, other = wide(500, 20), wide(500, 20), wide(500, 20, key=1)
    assert one.table.equals(two.table)
    assert not one.table.equals(other.table)
    for codes, size in zip(one.codes, one.schema.shape, strict=True):
        assert codes.min() >= 0
        assert codes.max() < size


def test_the_wide_table_has_mixed_domains_and_hidden_dependencies():
    bench = wide(20_000, 30)
    assert min(bench.schema.shape) == 2
    assert max(bench.schema.shape) == 50
    codes = [np.asarray(c, np.int64) for c in bench.codes]
    # Column 9 is the parity of two earlier columns: no single one tells it, one pair does.
    target, best = codes[9], 0.0
    for i in range(9):
        for j in range(i):
            parity = (codes[i] + codes[j]) % 2
            best = max(best, float((parity == target).mean()), float((parity != target).mean()))
    assert best == pytest.approx(0.9, abs=0.01)
    dependent = sum(
        _information(codes[i], codes[i - 1], bench.schema.shape[i], bench.schema.shape[i - 1])
        > 0.01
        for i in range(1, 30)
    )
    assert dependent > 5


def _information(a, b, m, n):
    joint = np.bincount(a * n + b, minlength=m * n).reshape(m, n) / a.size
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    inside = joint > 0
    return float((joint[inside] * np.log(joint[inside] / alone[inside])).sum())


def test_a_wide_table_needs_rows_and_columns():
    with pytest.raises(InputError, match="two columns"):
        wide(10, 1)


# --- one run ------------------------------------------------------------------------------------


def test_a_run_of_ours_is_measured_with_its_imports(work):
    one = run(Task(work, ours("independent"), "1", 0), PYTHON, 300)
    assert "failed" not in one
    assert 0 < one["tv"] < 1
    assert one["cpu"] > 0.3  # NumPy, Arrow and OpenDP alone
    assert one["memory_mb"] > 50
    assert one["made"] == one["rows"] == 400
    assert one["said"]["settings"]["name"] == "independent"
    assert one["said"]["certificate"] > 0


def test_settings_reach_the_method(work):
    one = run(Task(work, ours("mwem:rounds=2"), "1", 0), PYTHON, 300)
    assert one["failed"].startswith("exit code 1")  # too many possible rows; said by the method
    assert "method = mwem" in one["failed"]
    with pytest.raises(InputError, match="method = mwem"):
        ours("mwem:round=2")
    with pytest.raises(InputError, match="is not known"):
        ours("nothing")
    with pytest.raises(InputError, match="must look like"):
        ours("aim:8")
    assert ours("aim:megabytes=8:iterations=200").options == {"megabytes": 8, "iterations": 200}


def test_what_a_process_used_is_what_the_system_says(tmp_path):
    spin = (
        "import time\nx = bytearray(150_000_000)\nx[::4096] = b'1' * len(x[::4096])\n"
        "while time.process_time() < 0.6: pass"
    )
    used = measured([sys.executable, "-c", spin], tmp_path, 60)
    assert used["why"] is None
    assert 0.6 <= used["cpu"] < 5
    assert 150 < used["memory_mb"] < 400
    late = measured([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, 0.5)
    assert late["why"] == "longer than 0.5 seconds"
    assert late["wall"] < 30
    wrong = measured([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path, 60)
    assert wrong["why"] == "exit code 1: no such thing"


def test_memory_of_the_one_who_asks_is_not_counted(tmp_path):
    """The kernel charges a child with what its parent held at the fork; ours must be small."""
    large = bytearray(300_000_000)
    large[::4096] = b"1" * len(large[::4096])
    used = measured([sys.executable, "-c", "pass"], tmp_path, 60)
    assert len(large) > 0
    assert used["why"] is None
    assert used["memory_mb"] < 100


def test_a_command_that_is_not_there_is_said(tmp_path):
    used = measured([str(tmp_path / "nothing")], tmp_path, 60)
    assert "could not be started" in used["why"]
    assert "nothing" in used["why"]


@pytest.mark.slow
def test_children_are_stopped_and_counted_with_their_parent(tmp_path):
    marker = tmp_path / "alive"
    child = f"import time, pathlib\ntime.sleep(3)\npathlib.Path({str(marker)!r}).touch()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    assert measured([sys.executable, "-c", parent], tmp_path, 0.5)["why"] is not None
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    waits = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"
    assert measured([sys.executable, "-c", waits], tmp_path, 60)["cpu"] > 0.5
    subprocess.run([sys.executable, "-c", "import time; time.sleep(3)"], check=True)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (np.zeros((5, 3), int), "array of shape"),
        (np.full((5, 8), 99), "outside the domain"),
        slow((np.full((5, 8), -1), "outside the domain")),
    ],
)
def test_rows_that_are_none_are_a_failure(work, made, why, tmp_path, monkeypatch):
    script = tmp_path / "odd.py"
    script.write_text(
        "import json, sys, numpy as np\njob = json.load(open(sys.argv[1]))\n"
        f"np.save(job['out'], np.array({made.tolist()}))\n"
    )
    one = run(Task(work, System("odd", "odd", {}, str(script), "odd"), "1", 0), PYTHON, 60)
    assert why in one["failed"]
    assert one["cpu"] > 0


# --- rivals -------------------------------------------------------------------------------------

DPMM = """
class Generator:
    def fit(self, table, W=None):
        import json, pathlib
        pathlib.Path("workload.json").write_text(json.dumps(W))
class Model:
    generator = Generator()
    def set_domain(self, domain): self.domain = domain
    def check_fit(self, table): pass
class KIND:
    def __init__(self, epsilon, delta, disable_processing, n_jobs, **more):
        assert disable_processing and n_jobs == 1
        assert abs(epsilon - 0.5) < 1e-12 and 0 < delta < 1e-4
        self.gen, self.table = Model(), None
    def set_random_state(self, state): assert state is None
    def fit(self, table, domain):
        assert list(domain) == list(table.columns)
        assert all((table[c] < domain[c]).all() for c in table)
        self.table = table
    def generate(self, n_records):
        import pandas as pd
        if self.table is not None:
            return self.table[list(self.table.columns)[::-1]]
        import json
        W = json.load(open("workload.json"))
        assert W[0] == [["c0", "c1"], 1.0]
        return pd.DataFrame({c: [0] * n_records for c in self.gen.domain})
"""
SNSYNTH = """
class Synthesizer:
    def __init__(self, method, epsilon, **more): self.method, self.more = method, more
    @classmethod
    def create(cls, method, epsilon, **more):
        assert epsilon == 0.5
        assert ("delta" in more) == (method != "mwem")
        return cls(method, epsilon, **more)
    def fit(self, table, transformer):
        assert transformer.sizes == [len(set(range(s))) for s in transformer.sizes]
        assert all(table.iloc[:, i].max() < s for i, s in enumerate(transformer.sizes))
        if self.method == "aim":
            assert self.get_workload()[0] == ("col0", "col1")
        self.table = table
    def sample(self, rows):
        return self.table
"""
TRANSFORM = """
class LabelTransformer:
    def __init__(self, nullable): assert not nullable
class TableTransformer:
    def __init__(self, each): self.number = len(each)
    def fit(self, table):
        assert len(table.columns) == self.number
        self.sizes = [int(table[c].nunique()) for c in table]
"""


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Packages with the rivals' interfaces, which hold the scripts to what they promise."""
    pytest.importorskip("pandas")
    for kind in ("mst", "aim"):
        folder = tmp_path / "dpmm" / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{kind.upper()}Pipeline"
        (folder / f"{kind}.py").write_text(DPMM.replace("KIND", name))
    (tmp_path / "snsynth").mkdir()
    (tmp_path / "snsynth" / "__init__.py").write_text(SNSYNTH)
    (tmp_path / "snsynth" / "transform.py").write_text(TRANSFORM)
    for package in ("dpmm", "smartnoise_synth", "mbi"):
        facts = tmp_path / f"{package}-9.9.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 9.9\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.parametrize("name", some(RIVALS, 3))
def test_rivals_get_codes_domain_and_budget(name, work, stand_ins):
    one = run(Task(work, RIVALS[name], "0.5", 0), PYTHON, 60)
    assert "failed" not in one, one
    if name != "dpmm-aim":  # the stand-in gives the very rows back
        assert (one["max"], one["tv"]) == (0.0, 0.0)
    assert "9.9" in one["said"].values()


def test_the_scripts_need_nothing_of_ours():
    folder = Path(module.__file__).parent / "rivals"
    scripts = {each.script for each in RIVALS.values()}
    for script in scripts:
        tree = ast.parse((folder / script).read_text(encoding="utf-8"))
        named = {
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        assert not any(str(each).startswith("understudy") for each in named)


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    calls = []

    def fake(step, **how):
        calls.append(step)
        if step[2] == "venv":
            (tmp_path / "thing" / "bin").mkdir(parents=True)
            (tmp_path / "thing" / "bin" / "python").touch()
        return subprocess.CompletedProcess(step, 0)

    monkeypatch.setattr(module.subprocess, "run", fake)
    said = []
    for _ in range(2):
        assert environment(tmp_path, "thing", said.append) == tmp_path / "thing" / "bin" / "python"
    assert [step[2] for step in calls] == ["venv", "pip"]
    assert calls[1][-1] == "thing"
    assert len(said) == 1


def test_an_environment_that_fails_is_said_and_tried_again(tmp_path, monkeypatch):
    def fake(step, stdout, **how):
        stdout.write(b"some words\nERROR: no matching distribution\n")
        return subprocess.CompletedProcess(step, 1)

    monkeypatch.setattr(module.subprocess, "run", fake)
    said = []
    for _ in range(2):
        assert environment(tmp_path, "thing", said.append) is None
    left_out = [text for text in said if "left out" in text]
    assert len(left_out) == 2
    assert "no matching distribution" in left_out[0]
    assert str(tmp_path / "thing.log") in left_out[0]


# --- results ------------------------------------------------------------------------------------


def test_intervals_are_students():
    found = Measures.of([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.half == pytest.approx(3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-6)
    assert Measures.of([7.0]) == Measures(7.0, None)
    assert Measures(0.04071, 0.00042).text("{:.4f}") == "0.0407 ± 0.0004"


def test_first_runs_come_first(work):
    systems = [ours("auto"), RIVALS["dpmm-mst"]]
    order = [(t.number, t.system.name) for t in tasks([work], systems, ["1"], 2)]
    assert order == [(0, "auto"), (0, "dpmm-mst"), (1, "auto"), (1, "dpmm-mst")]


def test_a_failure_stands_for_its_point(work, tmp_path):
    results = Peers(tmp_path / "peers.json")
    first, second = (Task(work, RIVALS["dpmm-mst"], "1", n) for n in range(2))
    key = dict(zip(("workload", "system", "epsilon", "rows", "run"), first.key, strict=True))
    key["options"] = {}
    results.add(key | {"cpu": 1.0, "memory_mb": 10.0, "wall": 1.0, "failed": "longer than 1 s"})
    again = Peers(tmp_path / "peers.json")
    assert first in again
    assert second in again
    assert Task(work, RIVALS["dpmm-mst"], "0.1", 0) not in again
    (point,) = again.points()
    assert (point.max, point.runs, point.failed) == (None, 0, "longer than 1 s")
    assert "longer than 1 s" in markdown([point], {})
    assert again.forget(["dpmm-mst"]) == 1
    assert first not in again


def test_runs_with_other_options_do_not_mix(work, tmp_path):
    results = Peers(tmp_path / "peers.json")
    now = Task(work, RIVALS["dpmm-aim"], "1", 0)
    key = dict(zip(("workload", "system", "epsilon", "rows", "run"), now.key, strict=True))
    costs = {"cpu": 1.0, "memory_mb": 10.0, "wall": 1.0, "max": 0.1, "tv": 0.2}
    results.add(key | costs | {"options": {"max_model_size": 1}})
    assert now not in results
    results.add(key | costs | {"options": dict(now.system.options), "tv": 0.1})
    assert now in results
    (point,) = results.points()
    assert (point.runs, point.tv) == (1, Measures(0.1, None))


def test_the_floor_is_that_of_resampling(work):
    worst, variation = floor(work)
    assert 0 < variation < 1
    assert worst <= 2 * variation
    assert floor(work) == (worst, variation)


@pytest.mark.slow
def test_the_command_writes_table_and_figure_and_goes_on(tmp_path):
    folder = tmp_path / "out"
    done = command(*small(folder))
    assert done.code == 0, done.err
    assert "without ADULT: give it with --adult" in done.err.replace("\n", " ")
    body = json.loads((folder / "peers.json").read_text())
    assert [one["run"] for one in body["runs"]] == [0, 1]
    text = (folder / "peers.md").read_text()
    assert "| WIDE-all2 | understudy independent | 1 | 0." in text
    assert "±" in text
    assert "drawn again (not private)" in text
    assert (folder / "peers.svg").stat().st_size < 300_000
    before = (folder / "peers.json").read_text()
    done = command(*small(folder))
    assert done.code == 0, done.err
    assert "2 runs are there already, 0 are left" in done.err
    assert (folder / "peers.json").read_text() == before
    done = command(*small(folder, "--again", "independent"))
    assert "2 runs are forgotten" in done.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rivals", "sdv"), "rivals = sdv: choose from dpmm-mst"),
        (("--methods", "sdv"), "method = 'sdv' is not known"),
        (("--workloads", "X"), "workloads = X: choose from ADULT-64x3"),
        (("--workloads", "ADULT-64x3"), "none of the workloads has its table"),
        (("--again", "sdv"), "again = sdv"),
        (("--epsilons", "-1"), "epsilons = '-1'"),
        (("--adult", "a.csv"), "--adult and --adult-domain go together"),
        (("--nltcs", "a.csv", "--nltcs-domain", "a.json"), "NLTCS is the National"),
        (("--methods", "", "--rivals", "none"), "nothing to run"),
    ],
)
def test_bad_input_is_named(tmp_path, more, message):
    done = command(*small(tmp_path / "out", *more))
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()

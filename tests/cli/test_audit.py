"""`understudy audit` and `python -m bench mia` as commands."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bench.__main__ import main as bench
from pyarrow import csv

from tests.audit.tables import SCHEMA, background
from understudy.cli import main
from understudy.releases.run import release


def run(*words: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        given = [str(word) for word in words]
        code = bench(given[1:]) if given[:1] == ["bench"] else main(given)
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = SCHEMA.decode(list(background().T), np.random.default_rng(0))
    folder = tmp_path_factory.mktemp("made") / "t.release"
    release(
        table, SCHEMA, epsilon="1", delta="1e-6", workload="marginals:2", method="independent",
        rows=60,
    ).save(folder)  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    path = tmp_path_factory.mktemp("rows") / "known.csv"
    label = np.where(x[:, 0] > 0, "yes", "no")
    csv.write_csv(pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "label": label}), path)
    return path


@pytest.mark.slow
def test_a_release_is_attacked_from_its_own_bundle(made: Path, tmp_path: Path):
    words = ("audit", "release", made, "--out", tmp_path / "a", "--runs", 9, "--canaries", 8)
    code, out, err = run(*words, "--workers", 1, "--beta", 0.001)
    assert code == 0, err
    assert "The claim of ε = 1 is not refuted" in out
    assert "never prove" in out
    assert "8 planted records, hidden in 60 rows: the synthetic rows of the release" in err
    body = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert body["claim"]["epsilon"] == 1
    assert body["runs"] == 9
    assert {"figure.svg", "figure.png", "audit.json", "runs"} == {
        path.name for path in (tmp_path / "a").iterdir()
    }
    done = (tmp_path / "a" / "runs" / "00003.npz").stat().st_mtime_ns
    assert run(*words, "--beta", 0.001)[0] == 0
    assert (tmp_path / "a" / "runs" / "00003.npz").stat().st_mtime_ns == done


@pytest.mark.slow
def test_records_that_the_custodian_names(made: Path, tmp_path: Path):
    named = tmp_path / "named.csv"
    csv.write_csv(pa.table({"a": [7, 8, 6, 8], "b": [8, 7, 8, 6], "c": [8, 8, 7, 5]}), named)
    code, _, err = run(
        "audit", "release", made, "--out", tmp_path / "a", "--runs", 18, "--held-out", named,
        "--workers", 1, "--beta", 0.001,
    )  # fmt: skip
    assert code == 0, err
    assert "4 records of named.csv, named as canaries" in err


def test_a_model_that_claims_too_much_fails_the_build(rows: Path, tmp_path: Path):
    code, out, err = run(
        "audit", "model", "--rows", rows, "--label", "label", "--epsilon", "0.5", "--runs", 9,
        "--learner", "tests.audit.learners:ByHeart", "--out", tmp_path, "--workers", 1,
    )  # fmt: skip
    assert code == 1, err
    assert "The claim of ε = 0.5 is refuted" in out
    assert "40 planted rows among 60 rows of known.csv, named as known" in err
    assert json.loads((tmp_path / "audit.json").read_text())["refuted"] is True


@pytest.mark.slow
def test_our_own_learner_without_a_claim(rows: Path, tmp_path: Path):
    code, out, err = run(
        "audit", "model", "--rows", rows, "--label", "label", "--runs", 6, "--canaries", 10,
        "--out", tmp_path, "--workers", 1,
    )  # fmt: skip
    assert code == 0, err
    assert "nothing was claimed" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "0"], "epsilon = 0.0: a claim is above 0"),
        (["--epsilon", "much"], "epsilon = 'much' is not a number"),
        (["--epsilon", "1", "--canaries", "1"], "too few to say anything"),
        (["--epsilon", "1", "--canaries", "61"], "canaries = 61 are more than the rows"),
        (["--epsilon", "1", "--label", "no"], "label = 'no' is not a column"),
        (["--epsilon", "1", "--learner", "builtins:object"], "object has no fit"),
        (["--epsilon", "1", "--runs", "5"], "at least 6 runs"),
        (["--epsilon", "1", "--beta", "0.9"], "beta = 0.9"),
        (["--epsilon", "1", "--rows", "nowhere.csv"], "nowhere.csv does not exist"),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(
    rows: Path, tmp_path: Path, words: list[str], said: str
):
    given = ["--rows", str(rows), "--label", "label", "--runs", "9", "--out", str(tmp_path / "a")]
    code, _, err = run("audit", "model", *given, "--workers", "1", *words)
    assert code == 2
    assert said in err
    assert not (tmp_path / "a").exists()


def test_ctrl_c_keeps_what_is_done(made: Path, tmp_path: Path):
    """And the same command goes on."""
    words = ["audit", "release", made, "--out", tmp_path / "a", "--runs", 200, "--workers", 1]
    process = subprocess.Popen(
        [sys.executable, "-m", "understudy", *map(str, words)], stderr=subprocess.PIPE, text=True
    )
    kept = tmp_path / "a" / "runs"
    deadline = time.monotonic() + 120
    while len(list(kept.glob("*.npz"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Finished runs are kept" in err
    assert 2 <= len(list(kept.glob("*.npz"))) < 200
    assert not list(kept.glob("*.part"))


@pytest.mark.slow
def test_bench_mia_draws_and_goes_on(tmp_path: Path):
    words = ("bench", "mia", "--out", tmp_path, "--panels", "lasso,multinomial apart")
    words = (*words, "--rows", 300, "--epsilons", "1", "--alone", 2)
    code, out, err = run(*words, "--trainings", 2)
    assert code == 0, err
    assert "| LASSO, p = 10 | 300 | loss |" in out
    assert "73.1" in out  # the ceiling at ε = 1
    body = json.loads((tmp_path / "results.json").read_text())
    assert len(body["runs"]) == 12
    for name in ("attacks", "quality", "loss"):
        assert (tmp_path / f"{name}.svg").is_file()
    before = body["runs"]
    assert run(*words, "--trainings", 3)[0] == 0
    after = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert after[:12] == before
    assert len(after) == 18  # two models, each alone and by two solvers
    code, _, err = run("bench", "mia", "--out", tmp_path, "--panels", "ridge")
    assert code == 2
    assert "panels = ridge" in err
    code, _, err = run("bench", "mia", "--out", tmp_path, "--rows", "12")
    assert code == 2
    assert "rows = 12 must be at least 100" in err

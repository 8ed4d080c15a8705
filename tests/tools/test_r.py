"""The R package: how it calls the command line, and the whole way with the program itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tools" / "r"


def r(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["Rscript", "--vanilla", "-e", code],
        capture_output=True, text=True, timeout=300, env=os.environ | environment,
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _there():
    if shutil.which("Rscript") is None:
        pytest.skip("there is no R here")
    if r("library(jsonlite)").returncode:
        pytest.skip("R lacks jsonlite")


CALLS = {
    "understudy_verify('a b')": ["verify", "a b", "--json"],
    "understudy_answer('a', \"sex = 'F'\")": ["answer", "a", "sex = 'F'", "--json"],
    "understudy_estimate('a', 'mean(income) by sex', level = 0.9)":
        ["estimate", "a", "mean(income) by sex", "--level", "0.9", "--json"],
    "understudy_plan('s.toml', epsilon = 0.5, rows = 1e6)":
        ["plan", "--schema", "s.toml", "--epsilon", "0.5", "--rows", "1000000", "--json"],
}  # fmt: skip


def test_the_words_of_a_call(tmp_path):
    """With a program that prints its own words, one call after the other in one R."""
    stub = tmp_path / "stub.py"
    stub.write_text("import json, sys; print(json.dumps({'words': sys.argv[1:]}))")
    sources = "; ".join(f"source('{path}')" for path in sorted((PACKAGE / "R").glob("*.R")))
    shown = "; ".join(f"cat(jsonlite::toJSON({call}$words), '\\n')" for call in CALLS)
    code = (
        f"fromJSON <- jsonlite::fromJSON; {sources}; "
        f"options(understudy.command = c('{sys.executable}', '{stub}')); {shown}; "
        "cat(options_of(list(rows_public = 5, yes = TRUE, no = FALSE, match = c('a', 'b'))), '\\n'); "
        "options(understudy.command = 'no-such-program'); "
        "cat(tryCatch(understudy_verify('a'), error = conditionMessage))"
    )
    done = r(code)
    assert done.returncode == 0, done.stderr
    *lines, options, lost = done.stdout.strip().splitlines()
    assert [json.loads(line) for line in lines] == list(CALLS.values())
    assert options.split() == ["--rows-public", "5", "--yes", "--match", "a", "--match", "b"]
    assert "was not found" in lost


@pytest.mark.slow
def test_the_whole_way(tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    made = subprocess.run(
        ["R", "CMD", "INSTALL", f"--library={library}", str(PACKAGE)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    done = subprocess.run(
        ["Rscript", "--vanilla", str(PACKAGE / "tests" / "release.R")],
        capture_output=True, text=True, timeout=600,
        env=os.environ | {"R_LIBS": str(library), "UNDERSTUDY": f"{sys.executable} -m understudy"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "all held" in done.stdout

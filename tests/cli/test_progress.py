"""Progress, on a terminal and elsewhere."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import understudy as us
from tests.cli.cli_cases import Case, run
from understudy.cli.progress import Stages
from understudy.progress import Progress
from understudy.source.duckdb import DuckDBSource


def test_files_larger_than_the_memory_limit_are_streamed_with_progress(
    case, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("understudy.source._LEAST_MEMORY", 100)
    monkeypatch.setattr("understudy.cli.progress._PATIENCE", -1)
    given = (
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--method", "independent",
    )  # fmt: skip
    streamed, asked = [], DuckDBSource.bind
    monkeypatch.setattr(
        DuckDBSource, "bind", lambda self, schema: streamed.append(self) or asked(self, schema)
    )
    assert run(*given, "--out", tmp_path / "kept").code == 0
    assert not streamed
    size = case.data.stat().st_size
    monkeypatch.setattr(DuckDBSource, "_connect", lambda self: duckdb.connect())
    made = run(*given, "--out", tmp_path / "streamed", "--memory-limit", f"{size // 2}B")
    assert made.code == 0, made.err
    assert streamed
    assert "counted 50 % of the table" in made.err
    assert run("verify", tmp_path / "streamed").code == 0


Command = Callable[..., list[str]]


def test_progress_on_a_terminal_goes_to_stderr_alone(understudy: Command, case: Case):
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        understudy("release", case.data, "--schema", case.schema, "--epsilon", 1,
                   "--method", "independent", "--out", case.out),
        stdout=subprocess.PIPE, stderr=follower, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(follower)
    screen = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:
            break
        if not read:
            break
        screen += read
    out, _ = process.communicate(timeout=60)
    os.close(leader)
    assert process.returncode == 0
    assert "✓ writing the release" in screen.decode()
    assert re.search(r"\d s; CPU time \d s(,| of)", screen.decode()), "time of one kind is compared"
    assert "\x1b" not in out
    assert us.verify(case.out).passed


def test_how_training_goes_begins_no_new_stage(capsys):
    stages = Stages()
    for round, worst in enumerate((0.5, 0.4, 0.3)):
        stages(Progress("training", 10 * round, 30, f"worst error about {worst}"))
    stages(Progress("playing", 1, 3, "loss 0.2"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "training, worst error about 0.5: step 1 of 30",
        "measuring and fitting, loss 0.2: round 2 of 3",
    ]


def test_a_release_that_takes_longer_than_forecast_says_so(capsys, monkeypatch):
    now = iter([0.0, *[120.0] * 20])
    monkeypatch.setattr("understudy.cli.progress.time.monotonic", lambda: next(now))
    with Stages() as stages:
        stages.expect(20.0, "releasing")
        stages(Progress("playing", 0, 1))
        stages(Progress("sampling", 0, 1))
    err = capsys.readouterr().err
    assert err.count("so far") == 1
    assert "so far 2 min, with 0 s of CPU time; the forecast was 20 s of CPU time" in err
    assert "it took 2 min" in err
    with Stages() as stages:
        stages.expect(1_000.0, "releasing")
    assert "the forecast was" not in capsys.readouterr().err

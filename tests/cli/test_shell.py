"""Exit codes, errors in words, and signals, in real processes."""

import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.cli_cases import Case, run
from understudy.cli import shell
from understudy.cli.progress import Stages
from understudy.cli.shell import interrupts
from understudy.progress import Progress

Command = Callable[..., list[str]]


def _takes_less(command: list[str], seconds: float) -> bool:
    """Of CPU, in one of three runs; unlike time on the wall, others do not disturb it."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def once() -> float:
        before = used()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return used() - before

    return any(once() < seconds for _ in range(3))


def test_help_comes_at_once(understudy: Command):
    assert _takes_less(understudy("--help"), 1.0)
    assert _takes_less([sys.executable, "-c", "import understudy"], 0.5)


def test_the_shell_loads_no_heavy_room():
    """Not even where the help of the program shows every command."""
    heavy = {"numpy", "pyarrow", "opendp", "jax", "mbi", "duckdb", "scipy", "dp_accounting"}
    code = 'import sys; from understudy.cli import main; main(["--help"]); print(*sys.modules)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "understudy.cli.schema" in loaded
    assert not heavy & loaded


def test_exit_codes(understudy: Command, survey: Path, tmp_path: Path):
    def code(*arguments: object) -> int:
        done = subprocess.run(understudy(*arguments), capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        return done.returncode

    assert code("verify", survey / "survey.release") == 0
    assert code("verify", survey / "survey.release", "--digest", "0" * 64) == 1
    assert code("verify", tmp_path) == 2
    assert code("verify") == 2


def test_debugging_shows_the_traceback(understudy: Command, tmp_path: Path):
    done = subprocess.run(
        understudy("verify", tmp_path), capture_output=True, text=True, check=False,
        env={**os.environ, "UNDERSTUDY_DEBUG": "1"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def _started(command: list[str]) -> subprocess.Popen[str]:
    """A release that is in the middle of its game."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "measuring" in line:
            return process
    raise AssertionError(f"the release ended with {process.wait()}: {said}")


def _release(understudy: Command, case: Case, *more: object) -> list[str]:
    return understudy(
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--out", case.out,
        "--method", "mwem", "--set", "rounds=15000", *more,
    )  # fmt: skip


def test_ctrl_c_settles_the_account_and_leaves_nothing(understudy: Command, case: Case):
    before = case.files()
    process = _started(_release(understudy, case, "--ledger", case.ledger, "--dataset", "t"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "interrupted. Nothing was left behind." in err
    assert "Traceback" not in err
    assert case.files() == before
    kinds = case.kinds()
    assert kinds[-1] == "settle"
    [view] = json.loads(run("ledger", "show", case.ledger, "--json").out)
    assert [made["state"] for made in view["releases"]] == ["aborted"]
    if "charge" in kinds:
        assert "stay charged" in err
        assert view["left"]["epsilon"] == 2
    else:
        assert "Nothing was charged" in err
        assert view["left"]["epsilon"] == 3


def test_sigterm_ends_like_ctrl_c(understudy: Command, case: Case):
    before = case.files()
    process = _started(_release(understudy, case))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Nothing was left behind" in err
    assert case.files() == before
    assert case.kinds() == ["open"]


def test_a_disk_that_refuses_while_sampling(understudy: Command, survey: Path, tmp_path: Path):
    command = understudy(
        "sample", survey / "survey.release", "--rows", 5000, "--out", tmp_path / "rows.csv"
    )
    # Files of up to 50 kB, by a shell: forking a test process that has started JAX is no good.
    limited = ["sh", "-c", 'ulimit -f 98; exec "$@"', "sh", *command]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "nothing was left behind" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["methods"], ["--help"]])
def test_a_broken_pipe_is_quiet(understudy: Command, arguments: list[str]):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        understudy(*arguments), stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert done.stderr == ""


def test_a_terminal_that_knows_no_greek(understudy: Command, case: Case):
    done = subprocess.run(
        understudy("ledger", "show", case.ledger), capture_output=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def heeding_ctrl_c():
    """A job in the background may have inherited an ignored SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_ctrl_c")
def test_the_second_ctrl_c_lets_the_first_clean_up():
    before = signal.getsignal(signal.SIGINT)
    cleaned = []

    def work() -> None:
        with interrupts():
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert cleaned
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_python_ignores_ends_the_next_step(monkeypatch: pytest.MonkeyPatch):
    """What is raised in a finalizer, or in a callback from C, is lost."""
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: ignored.append(lost.exc_type))

    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    steps: list[Progress] = []

    def work() -> None:
        with interrupts(), Stages() as stages:
            Finalized()
            for number in range(3):
                steps.append(Progress("playing", number, 3))
                stages(steps[-1])

    with pytest.raises(shell.Terminated):
        work()
    assert ignored == [shell.Terminated]
    assert len(steps) == 1
    with interrupts(), Stages() as stages:  # and the next work is not stopped
        stages(steps[0])


def test_paragraphs_of_a_help_flow_and_examples_do_not():
    @shell.guarded
    def command() -> None:
        """What it does.

        A long
        paragraph.

        \b
        Example
          one
          two
        """

    assert command.__doc__ == "What it does.\n\nA long paragraph.\n\n\b\nExample\n  one\n  two"


def test_prose_at_a_terminal_is_broken_between_words(monkeypatch):
    shown = io.StringIO()
    plain = Console(file=shown, width=40, force_terminal=True, no_color=True, highlight=False)
    monkeypatch.setattr(shell, "out", lambda: plain)
    listed = ", ".join(f"value {i}" for i in range(40))
    shell.paragraph(("bold: ", "bold"), listed, indent=2)
    lines = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in shown.getvalue().splitlines()]
    assert len(lines) > 8
    assert all(line.startswith("  ") and len(line) <= 40 for line in lines)
    assert " ".join(" ".join(lines).split()) == f"bold: {listed}"

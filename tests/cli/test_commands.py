"""Every command that is printed for people works as printed, in a fresh shell."""

import html
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_cases import Result, run
from understudy.cli.commands import command, in_prose, program


def started() -> str:
    """How commands begin here, where tests run the program inside another one."""
    return program() + " "


def printed(result: Result) -> list[str]:
    """The command lines on a screen: ends of lines, and what stands in backticks."""
    screen = result.out + result.err
    lines = [at + end for line in screen.splitlines() if "`" not in line
             for _, at, end in [line.partition(started())]]  # fmt: skip
    quoted = re.findall(r"`([^`\n]*understudy [^`\n]*)`", screen)
    return [line for line in [*lines, *quoted] if line.startswith(started())]


def on_the_page(page: Path) -> list[str]:
    """The command lines of a report, which is read beside its release."""
    found = re.findall(r"<code>understudy (\w+ [^<]*)</code>", page.read_text())
    return [started() + html.unescape(line) for line in found]


def read_by_a_shell(lines: list[str]) -> list[list[str]]:
    """What a shell makes of command lines, without running them."""
    script = "\n".join(f"set -- {line}; printf '%s\\0' \"$@\" END" for line in lines)
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    read = subprocess.run(["sh", "-c", script], env=clean, capture_output=True, check=True)
    assert not read.stderr
    words = iter(read.stdout.decode().split("\0"))
    return [list(iter(lambda: next(words), "END")) for _ in lines]


@pytest.fixture(scope="module")
def place(survey: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo table and its release, in a folder with a name that a shell would take apart."""
    copy = tmp_path_factory.mktemp("printed") / "Ann's data; $HOME"
    shutil.copytree(survey, copy)
    return copy


def screens(place: Path):
    """Commands that print commands, and what they print."""
    data, made, drafted = place / "survey.csv", place / "survey.release", place / "d.schema.toml"
    book = place / "city.ledger"
    yield run("schema", "draft", data, "--out", drafted)
    yield run("schema", "review", drafted, "--list")
    yield run("schema", "check", place / "survey.schema.toml")
    yield run("release", data, "--schema", drafted, "--epsilon", 1, "--out", place / "no.release")
    yield run("ledger", "open", book, "--dataset", "a b", "--epsilon", 3)
    yield run("release", data, "--schema", place / "survey.schema.toml", "--epsilon", 3,
              "--method", "independent", "--workload", "marginals:1", "--ledger", book,
              "--dataset", "a b", "--out", place / "2nd $1.release")  # fmt: skip
    yield run("keys", "new", place / "ann")
    yield run("sign", made, "--key", place / "ann.pem")
    yield run("report", made, "--audit", place)
    yield run("plan", "--schema", place / "survey.schema.toml", "--epsilon", 1,
              "--ledger", place / "none", "--dataset", "a b")  # fmt: skip
    yield run("ledger", "show", place / "none")
    yield run("answer", made, "sex = 'female'")
    yield run("demo", place / "demo", "--rows", 500, "--method", "independent")
    pairs = [f"n{i} n{j}" for i in range(30) for j in range(i)]
    (place / "mails.txt").write_text("\n".join(pairs))
    (place / "people.txt").write_text("\n".join(f"n{i} all" for i in range(30)))
    yield run("graph", "release", place / "mails.txt", "--nodes", place / "people.txt",
              "--epsilon", 5, "--out", place / "mails.release")  # fmt: skip


# What a reader has to fill in stands in capitals.
FILLED = {"TOTAL": "3", "NAME": "t", "E": "3"}


def test_every_printed_command_works_as_printed(place: Path, monkeypatch: pytest.MonkeyPatch):
    seen = dict.fromkeys(line for screen in screens(place) for line in printed(screen))
    seen |= dict.fromkeys(on_the_page(place / "2nd $1.release" / "report.html"))
    assert {"plan", "schema", "verify", "sample", "answer", "ledger", "estimate", "report",
            "release", "graph"} <= {
        line.removeprefix(started()).split()[0] for line in seen
    }  # fmt: skip
    monkeypatch.chdir(place)
    drafted = place / "d.schema.toml"
    waiting = drafted.read_text()
    for line, words in zip(seen, read_by_a_shell(list(seen)), strict=True):
        assert words == shlex.split(line)
        asked = [FILLED.get(word, word) for word in words[len(shlex.split(program())) :]]
        if len(asked) < 3 and "--" not in line:  # the name of a command, in a sentence
            asked.append("--help")
        if asked[:2] == ["schema", "review"] and not any(word.startswith("--") for word in asked):
            asked.append("--list")  # it asks at a terminal, and here is none
        drafted.write_text(waiting)  # one decision has several answers
        if asked[0] == "release" and "--out" in asked:  # the demo has run it
            shutil.rmtree(asked[asked.index("--out") + 1])
        done = run(*asked)
        assert done.code == 0, (line, done.err)
        if asked[0] == "answer":
            shown = runs_in_a_fresh_shell(line, place)
            assert shown == done.out
            assert "certified" in shown
            assert "says nothing" not in shown


def runs_in_a_fresh_shell(line: str, place: Path) -> str:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
    shell = ["sh", "-c", line]
    done = subprocess.run(shell, env=environment, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def test_the_program_is_named_so_that_a_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script = tmp_path / "my bin" / "understudy"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("PATH", "/usr/bin")
    assert program() == f'"{script}"'
    assert in_prose("see `understudy plan`") == f'see `"{script}" plan`'
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "understudy"
    assert command("answer", "a b", "x = 'y'") == """understudy answer "a b" "x = 'y'\""""
    assert shlex.split(command("answer", "$(rm)`id`'!")) == ["understudy", "answer", "$(rm)`id`'!"]
    monkeypatch.setattr(sys, "argv", ["-m"])
    monkeypatch.setattr(sys, "executable", "/opt/python")
    assert program() == "/opt/python -m understudy", "another program of that name is on the path"

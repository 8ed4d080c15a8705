"""Every command that is printed for people works as printed, in a fresh shell."""

import html
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.cli_cases import Result, run
from understudy.cli.app import app
from understudy.cli.commands import command, in_prose, program


def started() -> str:
    """How commands begin here, where tests run the program inside another one."""
    return program() + " "


def printed(result: Result) -> list[str]:
    """The command lines on a screen: ends of lines, and what stands in backticks."""
    screen = result.out + result.err
    lines = [at + end.partition("  # ")[0] for line in screen.splitlines() if "`" not in line
             for _, at, end in [line.partition(started())]]  # fmt: skip
    quoted = re.findall(r"`([^`\n]*understudy [^`\n]*)`", screen)
    return [line for line in [*lines, *quoted] if line.startswith(started())]


def on_the_page(page: Path) -> list[str]:
    """The command lines of a report, which is read beside its release."""
    found = re.findall(r"<code>understudy (\w+ [^<]*)</code>", page.read_text())
    return [started() + html.unescape(line) for line in found]


SHELLS = [["sh"], ["bash", "--norc"], ["zsh", "-f"], ["fish", "-N"]]


def read_by_a_shell(lines: list[str], shell: list[str]) -> list[list[str]]:
    """What a shell makes of command lines, without running them."""
    script = "\n".join(f"printf '%s\\0' {line} END" for line in lines)
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    read = subprocess.run([*shell, "-c", script], env=clean, capture_output=True, check=True)
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
    yield run("schema", "check", drafted, "--data", data)
    shutil.copy(place / "survey.schema.toml", place / "c.schema.toml")
    yield run("schema", "confirm", place / "c.schema.toml", "--all")
    run("schema", "draft", data, "--out", place / "o.schema.toml")
    yield run("schema", "confirm", place / "o.schema.toml", "--all", "--unit", "row")
    domain = place / "domain.json"
    domain.write_text('{"a": 2, "b": 3}')
    yield run("schema", "import", domain, "--from", "mbi", "--out", place / "i.schema.toml")
    yield run("schema", "check", place / "none.schema.toml")
    for full in ([], ["--full"]):
        yield run("plan", "--schema", place / "survey.schema.toml", "--epsilon", 1,
                  "--rows", 2000, *full)  # fmt: skip
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
    yield run("plan", "--schema", place / "survey.schema.toml", "--epsilon", 9,
              "--ledger", book, "--dataset", "a b")  # fmt: skip
    yield run("ledger", "show", place / "none")
    yield run("ledger", "show", book)
    yield run("ledger", "head", book, "--dataset", "a b")
    yield run("ledger", "backup", book, place / "city.backup")
    yield run("release", data, "--schema", place / "survey.schema.toml", "--epsilon", 9,
              "--method", "independent", "--workload", "marginals:1", "--ledger", book,
              "--dataset", "a b", "--out", place / "no.release")  # fmt: skip
    yield run("ledger", "migrate", place / "city.backup", place / "new.ledger")
    yield run("answer", made, "sex = 'female'")
    yield run("answer", made, "sex = 'femal'")
    yield run("estimate", made, "mean(income) by sex")
    yield run("estimate", made, "mean(nothing)")
    yield run("sample", made, "--rows", 10, "--where", "smoker", "--out", place / "s.csv")
    yield run("verify", made)
    yield run("verify", place / "none.release")
    for form in ("csv", "opendp-registry", "sheet"):
        yield run("export", made, "--format", form, "--out", place / f"e.{FORMS.get(form, form)}")
    yield run("export", made)
    yield run("methods")
    yield run("serve", place / "clinic", "--remove-user", "nobody")
    yield run("demo", place / "demo", "--rows", 500, "--method", "independent")
    pairs = [f"n{i} n{j}" for i in range(30) for j in range(i)]
    (place / "mails.txt").write_text("\n".join(pairs))
    (place / "people.txt").write_text("\n".join(f"n{i} all" for i in range(30)))
    yield run("graph", "release", place / "mails.txt", "--nodes", place / "people.txt",
              "--epsilon", 5, "--out", place / "mails.release")  # fmt: skip


FORMS = {"opendp-registry": "yaml", "sheet": "md"}

# What a reader has to fill in stands in capitals.
FILLED = {
    "TOTAL": "3", "NAME": "t", "E": "3", "FILE": "filled.ledger",
    "COLUMN=LEAST to MOST": "bmi=10 to 60",
}  # fmt: skip


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
    for shell in (each for each in SHELLS if shutil.which(each[0])):
        assert read_by_a_shell(list(seen), shell) == [shlex.split(line) for line in seen], shell
    tried: set[str] = set()
    for line in seen:
        words = shlex.split(line)
        asked = [FILLED.get(word, word) for word in words[len(shlex.split(program())) :]]
        if len(asked) < 3 and "--" not in line:  # the name of a command, in a sentence
            asked.append("--help")
        if asked[:2] == ["schema", "review"] and not any(word.startswith("--") for word in asked):
            asked.append("--list")  # it asks at a terminal, and here is none
        drafted.write_text(waiting)  # one decision has several answers
        made = Path(asked[asked.index("--out") + 1]) if asked[0] == "release" else None
        if made is not None:  # it is there, and other commands are about that one
            made.rename(place / "aside")
        # The first of each command in a shell, which takes a process; the others here.
        plain = asked == words[len(shlex.split(program())) :] and asked[0] not in tried
        done = in_a_fresh_shell(line, place) if plain else run(*asked)
        tried |= {asked[0]} if plain else set()
        assert done.code == 0, (line, done.err)
        if made is not None:
            shutil.rmtree(made)
            (place / "aside").rename(made)
        if asked[0] == "answer":
            assert "certified" in done.out
            assert "says nothing" not in done.out
    assert tried >= {"answer", "estimate", "plan", "release", "sample", "schema", "verify"}


def in_a_fresh_shell(line: str, place: Path) -> Result:
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    environment = {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["sh", "-c", line], env=environment, cwd=place, capture_output=True, text=True, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


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


def helps(command: Any, context: Any) -> Iterator[str]:
    """The text of the help of a command and of those below it."""
    yield command.help or ""
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from helps(command.get_command(context, name), context)


def test_the_examples_of_every_help_are_commands_with_options_that_exist():
    whole = typer.main.get_command(app)
    context = whole.make_context("understudy", ["--help"], resilient_parsing=True)
    text = "\n".join(helps(whole, context)).replace("\\\n", " ")
    examples = [
        line.strip() for line in text.splitlines() if line.strip().startswith("understudy ")
    ]
    assert len(examples) > 60
    for line in (line for line in examples if "…" not in line):
        at, words = whole, shlex.split(line)[1:]
        while hasattr(at, "get_command"):
            name = words.pop(0)
            at = at.get_command(context, name)
            assert at is not None, line
        at.make_context(name, words)  # refuses what it does not know, and what is missing

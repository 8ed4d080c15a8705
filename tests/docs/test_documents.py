"""The page about the documents: its commands parse, and what it names exists."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from bench import __main__ as bench

from understudy.cli import options
from understudy.cli.app import app
from understudy.demo import schema
from understudy.errors import InputError, UnderstudyError
from understudy.game.methods import METHODS, method, settings
from understudy.releases import prepare
from understudy.schema import Schema

from .test_readme import ROOT

PAGE = ROOT / "docs" / "documents.md"
SOURCE = ROOT / "src" / "understudy"
BEGINNING = "understudy release table.csv --schema table.schema.toml --epsilon 1 --out made.release"
FEW = Schema(
    tuple(
        column
        for column in schema().columns
        if column.name in ("sex", "age", "education", "employment", "smoker")
    )
)
WRONG_USE: Any = typer.BadParameter.__base__
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def spans() -> list[str]:
    return CODE.findall(PAGE.read_text(encoding="utf-8"))


def commands() -> list[str]:
    """Every command of the page, whole; those that begin with --method follow one beginning."""
    assert BEGINNING in spans(), "the page says what a command that begins with an option follows"
    whole = (f"{BEGINNING} {one}" if one.startswith("--method ") else one for one in spans())
    listed = (one for one in whole if one.startswith(("understudy ", "python ")))
    return [one for one in dict.fromkeys(listed) if "NAME" not in one]


class Parsed(Exception):
    """Raised in place of running what was parsed."""


def parsed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse a command line that does not parse, or that names what no method or experiment has."""
    if words[0] == "understudy":
        of_release(leaf(app, words[1:]))
        return
    assert words[:2] == ["python", "-m"], words
    module, rest = words[2], words[3:]
    if module == "bench" and rest[0] in bench.EXPERIMENTS:
        of_experiment(rest[0], leaf(import_module("bench.commands.game").app, rest))
        return
    if module == "bench" and rest[0] in bench.BENCHMARKS:
        assert rest[1:] == [], words
        return
    if module == "bench":
        assert rest[0] in bench.WITH_FILES, words
        module, rest = f"bench.{rest[0]}", rest[1:]

    def instead(parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        kept(parser, rest)
        raise Parsed

    kept = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", instead)
    found = import_module(module)
    with pytest.raises(Parsed):
        found.main()


def leaf(commands: typer.Typer, words: list[str]) -> dict[str, object]:
    """The parameters of the command that the words name; nothing is run."""
    command: Any = typer.main.get_command(commands)
    context = command.make_context("", list(words))
    while hasattr(command, "resolve_command"):
        words = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, words)
        context = command.make_context(name, rest, parent=context)
    return context.params


def of_release(given: dict[str, Any]) -> None:
    """The method with its parameters and the workload fit a small table: a plan is made of them."""
    if "settings" not in given:
        return
    parameters = options.parameters(given["method"], given["settings"])
    kept = ("epsilon", "delta", "method", "workload", "rows_public", "beta", "variations")
    prepare(FEW, parameters=parameters, **{name: given[name] for name in kept})


def of_experiment(name: str, given: dict[str, object]) -> None:
    """The systems, methods and panels that an experiment is asked for."""
    for option in ("systems", "methods", "panels", "method"):
        listed = given.get(option)
        if not isinstance(listed, str):
            continue
        names = [part.strip() for part in listed.split(",")]
        if option == "systems":
            import_module("bench.published.querygan").systems(names)
        elif option == "panels":
            import_module("bench.commands.mia")._panels(names)
        else:
            assert all(one in METHODS or one == "auto" for one in names), (name, names)


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_page_parses(command, monkeypatch):
    parsed(shlex.split(command), monkeypatch)


@pytest.mark.parametrize(
    "command",
    [
        "understudy release table.csv --schema t.toml --epsilon 1 --out r --no-such-option",
        "understudy release table.csv --schema t.toml --epsilon 1 --out r --method none",
        "understudy release table.csv --schema t.toml --epsilon 1 --out r --method fem --set no=1",
        "understudy release table.csv --schema t.toml --epsilon 1 --out r --method fem --set law=1",
        "understudy release table.csv --schema t.toml --epsilon 1 --out r --workload corners:2",
        "understudy plan --schema t.toml --epsilon 1 --method querygan --set play=none",
        "understudy audit models",
        "python -m bench game --out game --methods none",
        "python -m bench querygan --out nets --systems querygan:none",
        "python -m bench mia --out mia --panels none",
        "python -m bench oracle --fast",
        "python -m bench none",
        "python -m bench.dpgan adult.csv --none",
        "python -m bench graphs",
    ],
)
def test_a_command_that_is_wrong_does_not(command, monkeypatch):
    with pytest.raises((AssertionError, SystemExit, UnderstudyError, WRONG_USE)):
        parsed(shlex.split(command), monkeypatch)


def test_modules_that_the_page_names_exist():
    named = {one for one in spans() if re.fullmatch(r"[\w/]+\.py", one)}
    assert len(named) > 30
    missing = [
        one for one in sorted(named) if not any((at / one).is_file() for at in (SOURCE, ROOT))
    ]
    assert missing == []


def test_options_that_the_page_names_exist():
    """`--set name` and `--set name=value` outside of commands are of one of the documents' methods."""
    named = {
        one.removeprefix("--set ") for one in spans() if re.fullmatch(r"--set \w+(=\S+)?", one)
    }
    assert named
    for one in named:
        name, _, value = one.partition("=")
        given = [one] if value else []
        having = [each for each in METHODS if name in settings(METHODS[each])]
        assert having, one
        assert not value or any(accepted(each, given) for each in having), one


def accepted(name: str, given: list[str]) -> bool:
    try:
        method(name, **options.parameters(name, given))
    except InputError:
        return False
    return True


ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]


def test_every_row_has_its_columns():
    for row in ROWS:
        assert len(re.split(r"(?<!\\)\|", row)) == 7, row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:30])
def test_our_figures_stand_on_the_page_that_is_linked(row):
    """What is bold in the last column is found, as it is, on a page that the column links to."""
    figures = re.split(r"(?<!\\)\|", row)[-2]
    bold = re.findall(r"\*\*([.\d][^*]*)\*\*", figures)
    linked = [ROOT / "docs" / page for page in re.findall(r"\]\(([\w/]+\.md)", figures)]
    text = "\n".join(page.read_text(encoding="utf-8") for page in linked)
    for figure in bold:
        found = re.search(rf"(?<![\w.]){re.escape(figure)}(?![\w.]*\d)", text)
        assert found, f"{figure} is not on {[page.name for page in linked]}"


def heads(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site makes them."""
    from markdown.extensions.toc import slugify

    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {slugify(re.sub(r"[`*]", "", title), "-") for title in titles}


def test_links_lead_to_headings():
    pytest.importorskip("markdown")
    for target, anchor in re.findall(r"\]\(([\w/.]*)#([\w-]+)\)", PAGE.read_text(encoding="utf-8")):
        page = PAGE.parent / target if target else PAGE
        assert anchor in heads(page), f"{target}#{anchor}"

"""The commands together: help, version, wrong use."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.cli_cases import run
from understudy.cli import app, main
from understudy.cli.commands import command as printed


def test_wrong_use_is_2():
    for arguments in ([], ["release"], ["nonsense"], ["schema"], ["plan", "--epsilon"]):
        assert run(*arguments).code == 2, arguments
    assert "did you" not in run("sample").err
    assert " release --help`" in run("release", "x").err
    assert f"Did you mean `{printed('schema', 'review')}`?" in run("reviw", "x").err
    assert f"See `{printed('--help')}`" in run("nonsense").err
    assert "'--rows': give a whole number" in run("plan", "--rows", "70k").err


def test_every_command_teaches():
    runner = CliRunner(env={"COLUMNS": "100"})
    commands = [
        ["schema", "draft"], ["schema", "confirm"], ["schema", "import"], ["schema", "check"],
        ["plan"], ["release"], ["methods"], ["verify"], ["sample"], ["answer"],
        ["sign"], ["keys", "new"],
        ["ledger", "open"], ["ledger", "show"], ["ledger", "settle"], ["demo"],
    ]  # fmt: skip
    for command in commands:
        shown = runner.invoke(app, [*command, "--help"])
        assert shown.exit_code == 0
        assert "Example" in shown.output, command
        assert "understudy " + command[0] in shown.output


def test_the_runner_sees_exit_codes_too(tmp_path: Path):
    assert CliRunner().invoke(app, ["verify", str(tmp_path)]).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("understudy rel", "release"),
        ("understudy schema dr", "draft"),
        ("understudy plan --eps", "--epsilon"),
        ("understudy plan --method maxe", "maxent"),
    ],
)
def test_shells_complete_commands_and_options(shell, typed, offered, monkeypatch, capsys):
    words = typed.split()
    monkeypatch.setenv("_UNDERSTUDY_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert main([]) == 0
    assert offered in capsys.readouterr().out


def test_a_release_without_a_schema_says_how_to_get_one():
    for name in ("release", "plan"):
        refused = run(name, *(["people.csv"] if name == "release" else []), "--epsilon", 1)
        assert refused.code == 2
        assert f"{printed('schema', 'draft')} TABLE" in refused.err

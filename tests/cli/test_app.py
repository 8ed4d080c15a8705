"""The commands together: help, version, wrong use."""

from pathlib import Path

from typer.testing import CliRunner

from tests.cli.cli_cases import run
from understudy.cli import app


def test_wrong_use_is_2():
    for arguments in ([], ["release"], ["nonsense"], ["schema"], ["plan", "--epsilon"]):
        assert run(*arguments).code == 2, arguments
    assert "did you" not in run("sample").err
    assert " release --help`" in run("release", "x").err


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

"""The commands, put together, and the way in."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from understudy._version import __version__
from understudy.cli import shell
from understudy.cli.commands import command

HELP = """Make a synthetic version of a sensitive table: private, certified and verifiable.

\b
[bold]From a table to a release[/bold]
  understudy schema draft patients.csv
  understudy schema review patients.schema.toml patients.csv
  understudy plan --schema patients.schema.toml --epsilon 1
  understudy release patients.csv --schema patients.schema.toml --epsilon 1 \\
                    --out patients.release

\b
[bold]With a release[/bold]
  understudy verify patients.release
  understudy report patients.release
  understudy sample patients.release --rows 10000 --out rows.csv
  understudy answer patients.release "age >= 65 and sex = 'F'"
  understudy estimate patients.release "mean(income) by sex"
"""


class _AsAsked(TyperGroup):
    """Commands in the order in which they are needed, each loaded when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            for name in [cmd_name] if cmd_name in _COMMANDS else _COMMANDS:
                self.commands[name] = _load(name)
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="understudy",
    cls=_AsAsked,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_MAKE, _USE, _KEEP, _TRY = "Make a release", "Use a release", "Keep account", "Try it"
_COMMANDS = {
    "schema": (_MAKE, "schema", "app"),
    "plan": (_MAKE, "plan", "plan"),
    "release": (_MAKE, "release", "release"),
    "graph": (_MAKE, "graph", "app"),
    "methods": (_MAKE, "methods", "methods"),
    "sign": (_MAKE, "sign", "sign"),
    "verify": (_USE, "verify", "verify"),
    "report": (_USE, "report", "report"),
    "compare": (_USE, "compare", "compare"),
    "sample": (_USE, "sample", "sample"),
    "answer": (_USE, "answer", "answer"),
    "estimate": (_USE, "estimate", "estimate"),
    "export": (_USE, "export", "export"),
    "audit": (_USE, "audit", "app"),
    "ledger": (_KEEP, "ledger", "app"),
    "keys": (_KEEP, "sign", "keys"),
    "serve": (_KEEP, "serve", "serve"),
    "demo": (_TRY, "demo", "demo"),
}
"""Every command: the panel that shows it, and the module and name that hold it."""


def _load(name: str) -> Any:
    panel, module, attribute = _COMMANDS[name]
    command = getattr(import_module(f"understudy.cli.{module}"), attribute)
    alone = typer.Typer(rich_markup_mode="rich", callback=lambda: None)
    if isinstance(command, typer.Typer):
        alone.add_typer(command, name=name, rich_help_panel=panel)
    else:
        alone.command(name, rich_help_panel=panel)(command)
    return typer.main.get_group(alone).commands[name]


def _version(asked: bool) -> None:
    if asked:
        shell.say(f"understudy {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Options of the program itself."""


def main(
    arguments: Sequence[str] | None = None,
    commands: typer.Typer = app,
    name: str = "understudy",
) -> int:
    """Run a command of some commands; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    known = typer.main.get_command(commands)
    try:
        with shell.interrupts():
            code = known.main(
                args=None if arguments is None else list(arguments),
                prog_name=name,
                standalone_mode=False,
            )
            sys.stdout.flush()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else shell.FAILED
    except BaseException as error:  # noqa: BLE001
        if isinstance(error, shell.Misuse):
            return _wrong_use(error)
        return shell.explain(error)
    return code if isinstance(code, int) else 0


_IN_OUR_WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "give a whole number, "
    "such as 50000",
    "Input should be a valid number, unable to parse string as a number": "give a number, such as 0.05",
    "Input should be": "it should be",
}


def _inside(word: str) -> list[str]:
    """The commands of a group that a word may mean, such as `schema draft`."""
    groups = [(name, held) for name in _COMMANDS if isinstance(held := _load(name), TyperGroup)]
    return [
        f"{name} {own}" for name, held in groups for own in get_close_matches(word, held.commands)
    ]


def _wrong_use(error: shell.Misuse) -> int:
    """A command line that does not parse."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "understudy"
    message = error.format_message().strip()
    for parsers, ours in _IN_OUR_WORDS.items():
        message = message.replace(parsers, ours)
    if not message:  # no command was given, and the help has been printed
        return shell.WRONG_USE
    more = [f"See `{where} --help`."]
    if message.startswith("No such command") and where == "understudy" and "mean '" not in message:
        more = [f"Did you mean `{where} {each}`?" for each in _inside(message.split("'")[1])] + more
    if "'--schema'" in message:
        drafted = f"{command('schema', 'draft')} TABLE"
        more.insert(0, f"A schema says what is public. To draft one: {drafted}")
    shell.complain(message[0].lower() + message[1:], *more)
    return shell.WRONG_USE

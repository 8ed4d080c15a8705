"""`understudy demo`: the whole way on a sample table, in front of your eyes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from understudy.cli import release as releasing
from understudy.cli import shell, verify
from understudy.cli.commands import command
from understudy.cli.options import MethodName, argument, option
from understudy.errors import VerificationError


@shell.guarded
def demo(
    folder: Annotated[Path, argument("DIR", "The folder to write; it must not exist yet.")],
    rows: Annotated[int, option("--rows N", "Rows of the sample table.", min=0)] = 50_000,
    method: MethodName = "auto",
) -> None:
    """Release and verify a sample table: the health survey of a city that does not exist.

    \b
    [bold]Example[/bold]
      understudy demo demo
    """
    from understudy.releases.bundle import require_absent

    require_absent(folder)
    folder.mkdir()
    try:
        _play(folder, rows, method)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _play(folder: Path, rows: int, method: str) -> None:
    shell.one_thread()
    from pyarrow import csv

    from understudy.demo import city_health_survey, schema

    data, facts, out = (folder / f"survey.{end}" for end in ("csv", "schema.toml", "release"))
    shell.say(f"A generated health survey, {rows:,} people, is in {data};")
    shell.say(f"what is public about its columns, in {facts}.\n")
    csv.write_csv(city_health_survey(rows), data)
    schema().save(facts)

    chosen = () if method == "auto" else ("--method", method)
    _echo(command("release", data, "--schema", facts, "--epsilon", 1, *chosen, "--out", out))
    releasing.release(data=str(data), schema=facts, out=out, epsilon="1", method=method)
    shell.say()
    _echo(command("verify", out))
    if not verify.show(out):
        raise VerificationError(f"{out} fails a check; please report this")


def _echo(command: str) -> None:
    shell.say(("This runs  ", "dim"), (command, "bold"))

"""`understudy report`: the page about a release, made again beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from understudy.cli import options, shell
from understudy.cli.options import option
from understudy.cli.progress import Stages
from understudy.progress import Progress


@shell.guarded
def report(
    folder: options.Folder,
    out: Annotated[
        Path | None, option("--out FILE", "Where to write; DIR.html beside the release by default.")
    ] = None,
    audit: Annotated[
        Path | None,
        option(
            "--audit DIR", "Show the figures of an audit, the folder that `understudy audit` wrote."
        ),
    ] = None,
    title: Annotated[
        str | None, option("--title T", "A title instead of the folder's name.")
    ] = None,
    owner: Annotated[str | None, option("--owner WHO", "Who is responsible for it.")] = None,
) -> None:
    """Write the report of a release: one HTML file, for people.

    It says how wrong a number can be, what is promised and what not to use the rows for, with a
    chart of every column, the errors of pairs, the ledger, and how to verify and to cite. It is
    made of the release alone, opens offline and prints on A4. Costs nothing, reads no private row.
    A release that was made by `understudy release` holds its report already, covered by its digest;
    that one is never changed.

    \b
    [bold]Example[/bold]
      understudy report patients.release
      understudy report patients.release --title "Patients, 2024" --owner "City of Exampleton"
      understudy report patients.release --audit patients.audit --out report.html
    """
    shell.one_thread()
    from understudy.report.page import About, read_audit, write

    shown = None if audit is None else read_audit(audit)
    with Stages() as stages:
        stages(Progress("reporting", 0, 1))
        path = write(folder, out=out, about=About(title, owner), audit=shown)
    size = path.stat().st_size
    shell.say(("wrote ", "bold"), f"{path}, {size / 1000:,.0f} kB")

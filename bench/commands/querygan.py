"""`python -m bench querygan`: generator networks, their critics and what they cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands import options
from bench.commands.signals import undisturbed
from understudy.cli import shell, words
from understudy.cli.progress import Runs
from understudy.errors import InputError

if TYPE_CHECKING:
    from bench.published import Bench
    from bench.published.querygan import Nets, Point, Task

__all__ = ["querygan"]


@shell.guarded
def querygan(
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Where querygan.json and the figure go; runs are kept."
        ),
    ],
    adult: options.Adult = None,
    adult_domain: options.AdultDomain = None,
    loans: options.Loans = None,
    loans_domain: options.LoansDomain = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Use the generated survey, too.", rich_help_panel=options.DATA),
    ] = False,
    rows: options.SurveyRows = 50_000,
    scales: Annotated[
        str,
        typer.Option(
            "--scales",
            metavar="K,…",
            help="Generated tables of ordered columns, by their keys.",
            rich_help_panel=options.DATA,
        ),
    ] = "",
    chains: Annotated[
        str,
        typer.Option(
            "--chains",
            metavar="K,…",
            help="Generated tables of columns that follow from one another, by their keys.",
            rich_help_panel=options.DATA,
        ),
    ] = "",
    ordinal: Annotated[
        str,
        typer.Option(
            "--ordinal",
            metavar="C,…",
            help="Columns whose codes have an order that means something.",
            rich_help_panel=options.DATA,
        ),
    ] = "",
    workload: Annotated[
        str, typer.Option("--workload", metavar="W", help="What must come out well.")
    ] = "marginals:3:64@0",
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems",
            metavar="S,…",
            help="querygan:ORACLE, with more settings as in querygan:moments/objective=tv, and gem.",
        ),
    ] = None,
    epsilons: Annotated[
        str, typer.Option("--epsilons", metavar="ε,…", help="For error against ε.")
    ] = "0.1,0.3,1,3,10",
    rounds: Annotated[
        str, typer.Option("--rounds", metavar="T,…", help="For error against rounds.")
    ] = "10,30,100,300",
    at: Annotated[str, typer.Option("--at", metavar="ε", help="Of error against rounds.")] = "1",
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Of every point.")] = 3,
) -> None:
    """Draw the error of querygan, with each oracle, and of gem against ε and against rounds.

    The errors shown are exact, so they are not private: for public tables only. Interrupt it at any
    time; the same command goes on where it stopped.

    \b
    [bold]Example[/bold]
      python -m bench querygan --adult adult.csv --adult-domain adult-domain.json --out nets
      python -m bench querygan --loans loans.csv --loans-domain loans-domain.json \\
        --systems gem,querygan:moments --rounds '' --runs 1 --out nets
      python -m bench querygan --demo --rows 5000 --workload marginals:2 --runs 1 --out nets
    """
    from bench.published import querygan as bench
    from bench.published import tables as made
    from understudy.errors import require_extra

    require_extra("drawing", "figures")
    require_extra("method = querygan", "nets")
    options.listed(epsilons, "epsilons", float)
    options.listed(at, "at", float)
    chosen = bench.systems(options.split(systems) if systems else None)
    ordered = options.split(ordinal)
    given = [("ADULT", adult, adult_domain), ("LOANS", loans, loans_domain)]
    tables = _tables(given, ordered, demo, rows)
    if scales:
        tables += [made.scales(rows, key) for key in options.listed(scales, "scales", int)]
    if chains:
        tables += [made.chains(rows, key) for key in options.listed(chains, "chains", int)]
    if not tables:
        raise InputError(
            f"there is no table: give --adult and --adult-domain, --loans and --loans-domain, --demo "
            f"for the generated survey, --scales 0 or --chains 0. {made.WHERE['ADULT']}. "
            f"{made.WHERE['LOANS']}"
        )
    results = bench.Nets(out / "querygan.json")
    numbers = options.listed(rounds, "rounds", int) if options.split(rounds) else []
    planned = [
        task
        for table in tables
        for task in bench.tasks(table, workload, chosen, options.split(epsilons), numbers, at, runs)
    ]
    with options.kept(results):
        _run(planned, results)
    results.save()
    _show(results.points())
    if regrets := results.regrets():
        table = words.table("table", "run", "regret", "bound", right=("regret", "bound"))
        for row in regrets:
            table.add_row(*row)
        shell.out().print(table)
    for path in (*bench.draw(results.points(), workload, out), results.path):
        shell.out().print(f"wrote {path}", soft_wrap=True)


def _tables(
    given: Sequence[tuple[str, Path | None, Path | None]],
    ordinal: Sequence[str],
    demo: bool,
    rows: int,
) -> list[Bench]:
    """Those that were given, and the survey if that was asked for."""
    from bench.published import generated, load

    loaded = [load(name, data, domain, ordinal) for name, data, domain in given]
    found = [table for table in loaded if table is not None]
    return [*found, generated(rows)] if demo else found


def _run(planned: Sequence[Task], results: Nets) -> None:
    """Do what is not done yet, and say how it goes."""
    from bench.published.querygan import run

    left = options.left_of(planned, results)
    took: dict[tuple[str, str], float] = {}
    with Runs(len(left)) as progress:
        for position, task in enumerate(left):
            expected = sum(
                took.get((each.bench.name, each.system), 60.0) for each in left[position:]
            )
            progress.show(position, str(task), expected)
            begun = time.monotonic()
            made = run(task)
            with undisturbed():
                results.add(made)
            took[task.bench.name, task.system] = time.monotonic() - begun


def _show(points: Sequence[Point]) -> None:
    """The figure as a table."""
    console = shell.out()
    headings = ("ε", "rounds", "mean TV", "max", "W1", "parity", "certificate", "CPU s", "runs")
    table = words.table("table", "system", *headings, right=headings)
    for point in points:
        table.add_row(
            point.table, point.system, point.epsilon,
            "by rule" if point.rounds is None else str(point.rounds), f"{point.tv:.4f}",
            f"{point.max:.4f}", f"{point.wasserstein:.4f}", f"{point.parity:.4f}",
            f"{point.certificate:.4f}", f"{point.cpu:.1f}", str(point.runs),
        )  # fmt: skip
    console.print(table)

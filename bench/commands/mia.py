"""`python -m bench mia`: attack accuracy against ε for private linear models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands import options
from bench.commands.signals import undisturbed
from understudy.cli import shell
from understudy.cli.progress import Runs
from understudy.errors import InputError

if TYPE_CHECKING:
    from bench.published.mia import Results, Training
    from bench.published.mia_rows import Panel

__all__ = ["mia"]

_SAVE_EVERY = 10.0
_FEWEST_ROWS = 100


@shell.guarded
def mia(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Where results.json, tables and figures go."),
    ],
    trainings: Annotated[
        int, typer.Option("--trainings", metavar="N", min=1, help="Of every point.")
    ] = 10,
    alone: Annotated[
        int, typer.Option("--alone", metavar="N", help="Of every model without privacy, at least.")
    ] = 30,
    rows: Annotated[
        str, typer.Option("--rows", metavar="N,…", help="Members; as many others are drawn.")
    ] = "1000",
    panels: Annotated[
        str | None, typer.Option("--panels", metavar="P,…", help="Only these; all by default.")
    ] = None,
    epsilons: Annotated[str, typer.Option("--epsilons", metavar="ε,…")] = "0.3,1,3",
) -> None:
    """Attack LASSO, logistic and multinomial regression, with and without privacy.

    Chapter 4 of Micali's thesis again, at its sizes, with a sound δ, intervals over trainings and the
    ceiling that no attack can pass on average. Rows are generated. Interrupt it at any time; the same
    command goes on. Exits with 1 if an attack beats the claimed ε.

    \b
    [bold]Example[/bold]
      python -m bench mia --out mia --rows 1000,10000
    """
    from bench.published import mia as work
    from bench.published.mia_figure import draw
    from bench.published.mia_table import tables
    from understudy.errors import require_extra

    require_extra("drawing", "figures")
    chosen, sizes = _panels(options.split(panels) if panels else None), _sizes(rows)
    if trainings < work.LEAST_TRAININGS:
        shell.note(
            f"trainings = {trainings}: intervals over fewer than {work.LEAST_TRAININGS} are wide"
        )
    results = work.Results(out / "results.json")
    budgets = options.listed(epsilons, "epsilons", float)
    wanted = work.trainings(chosen, sizes, budgets, trainings, alone)
    planned = [training for training in wanted if training not in results]
    try:
        _run(planned, results)
    except KeyboardInterrupt as stop:
        stop.add_note(
            f"{results.path} has {len(results.runs):,} trainings; the same command goes on there."
        )
        raise
    finally:
        if results.runs:
            with undisturbed():
                results.save()
    found = out / "tables.md"
    found.write_text(tables(results), encoding="utf-8")
    shell.out().print(found.read_text(encoding="utf-8"), soft_wrap=True)
    for path in (found, *draw(results, out), results.path):
        shell.out().print(f"wrote {path}", soft_wrap=True)
    _judge(results)


def _panels(names: Sequence[str] | None) -> list[Panel]:
    from bench.published.mia_rows import PANELS

    known = {panel.name: panel for panel in PANELS}
    odd = [name for name in names or () if name not in known]
    if odd:
        raise InputError(f"panels = {', '.join(odd)}: there are {', '.join(known)}")
    return [known[name] for name in (names or known)]


def _sizes(given: str) -> list[int]:
    sizes = options.listed(given, "rows", int)
    odd = [size for size in sizes if size < _FEWEST_ROWS]
    if odd:
        raise InputError(f"rows = {odd[0]} must be at least {_FEWEST_ROWS}")
    return sizes


def _run(planned: Sequence[Training], results: Results) -> None:
    from bench.published import mia as work

    begun = saved = time.monotonic()
    with Runs(len(planned)) as progress:
        for position, training in enumerate(planned):
            each = (time.monotonic() - begun) / position if position else 1.5
            progress.show(position, str(training), each * (len(planned) - position))
            results.add(work.run(training))
            if time.monotonic() - saved > _SAVE_EVERY:
                with undisturbed():
                    results.save()
                saved = time.monotonic()


def _judge(results: Results) -> None:
    """An attack whose interval lies above the ceiling refutes the claim, and fails the build."""
    beaten = [point for point in results.points() if not point.within]
    for point in beaten:
        shell.note(
            f"{point.panel}, N = {point.rows}, {point.solver}, ε = {point.epsilon}: {point.attack} by "
            f"{point.rule} is right in at least {100 * point.low:.1f} % of guesses, above the ceiling "
            f"of {100 * (point.ceiling or 0):.1f} %"
        )
    if beaten:
        raise typer.Exit(1)

"""`python -m bench mia`: attack accuracy against ε for private linear models."""

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
    from bench.published.mia import Panel, Results, Training

__all__ = ["mia"]

_SAVE_EVERY = 10.0


@shell.guarded
def mia(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Where results.json and the figure go."),
    ],
    trainings: Annotated[
        int, typer.Option("--trainings", metavar="N", min=1, help="Of every point.")
    ] = 30,
    panels: Annotated[
        str | None, typer.Option("--panels", metavar="P,…", help="Only these; all by default.")
    ] = None,
    epsilons: Annotated[str, typer.Option("--epsilons", metavar="ε,…")] = "0.3,1,3",
) -> None:
    """Attack LASSO, logistic and multinomial regression, with and without privacy.

    Chapter 4 of Micali's thesis again, with a sound δ, intervals over trainings and the ceiling that
    no attack can pass on average. Rows are generated. Interrupt it at any time; the same command goes
    on.

    \b
    [bold]Example[/bold]
      python -m bench mia --out mia
    """
    from bench.published import mia as work
    from bench.published.mia_figure import draw
    from understudy.figures import require_matplotlib

    require_matplotlib()
    chosen = _panels(options.split(panels) if panels else None)
    if trainings < work.LEAST_TRAININGS:
        shell.note(
            f"trainings = {trainings}: intervals over fewer than {work.LEAST_TRAININGS} are wide"
        )
    results = work.Results(out / "results.json")
    wanted = work.trainings(chosen, options.listed(epsilons, "epsilons", float), trainings)
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
    _show(results)
    for path in (*draw(results, out), results.path):
        shell.out().print(f"wrote {path}", soft_wrap=True)


def _panels(names: Sequence[str] | None) -> list[Panel]:
    from bench.published.mia import PANELS

    known = {panel.name: panel for panel in PANELS}
    odd = [name for name in names or () if name not in known]
    if odd:
        raise InputError(f"panels = {', '.join(odd)}: there are {', '.join(known)}")
    return [known[name] for name in (names or known)]


def _run(planned: Sequence[Training], results: Results) -> None:
    from bench.published import mia as work

    begun = saved = time.monotonic()
    with Runs(len(planned)) as progress:
        for position, training in enumerate(planned):
            each = (time.monotonic() - begun) / position if position else 0.15
            progress.show(position, str(training), each * (len(planned) - position))
            results.add(work.run(training))
            if time.monotonic() - saved > _SAVE_EVERY:
                with undisturbed():
                    results.save()
                saved = time.monotonic()


def _show(results: Results) -> None:
    """Accuracy of the rank rule, in per cent, with its interval, beside the ceiling."""
    from bench.published.mia import PANELS

    points = [point for point in results.points() if point.rule == "rank"]
    epsilons = sorted({point.epsilon for point in points if point.epsilon is not None})
    heads = [*(f"ε = {epsilon:g}" for epsilon in epsilons), "without privacy"]
    table = words.table("model", "attack", "solver", *heads, right=heads)
    for panel in PANELS:
        for solver in ("frank-wolfe", "sgd"):
            mine = [
                point for point in points
                if point.panel == panel.name and point.attack == panel.score
                and point.solver in (solver, "none")
            ]  # fmt: skip
            if not mine:
                continue
            at = {point.epsilon: point for point in mine}
            cells = [
                f"{100 * at[e].mean:.1f} ± {50 * (at[e].high - at[e].low):.1f}" if e in at else "–"
                for e in (*epsilons, None)
            ]
            table.add_row(panel.title, panel.score, solver, *cells)
    bounds = {
        epsilon: max(p.ceiling for p in points if p.epsilon == epsilon and p.ceiling is not None)
        for epsilon in epsilons
    }
    table.add_section()
    table.add_row("ceiling", "any", "any", *(f"{100 * bounds[e]:.1f}" for e in epsilons), "100")
    console = shell.out()
    console.print("attack accuracy in per cent, mean and 95 % interval over trainings")
    console.print(table)

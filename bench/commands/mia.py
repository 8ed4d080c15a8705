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
    from bench.published.mia import Point, Results, Training
    from bench.published.mia_rows import Panel

__all__ = ["mia"]

_SAVE_EVERY = 10.0
_FEWEST_ROWS = 100


@shell.guarded
def mia(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Where results.json and the figures go."),
    ],
    trainings: Annotated[
        int, typer.Option("--trainings", metavar="N", min=1, help="Of every point.")
    ] = 10,
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
    from understudy.figures import require_matplotlib

    require_matplotlib()
    chosen, sizes = _panels(options.split(panels) if panels else None), _sizes(rows)
    if trainings < work.LEAST_TRAININGS:
        shell.note(
            f"trainings = {trainings}: intervals over fewer than {work.LEAST_TRAININGS} are wide"
        )
    results = work.Results(out / "results.json")
    wanted = work.trainings(chosen, sizes, options.listed(epsilons, "epsilons", float), trainings)
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


def _show(results: Results) -> None:
    points = results.points()
    for show in (_attacks, _learnt):
        show([point for point in points if point.attack == _read(point.panel)])
    _fits(results)


def _read(name: str) -> str:
    from bench.published.mia_rows import PANELS

    return next(panel.attack for panel in PANELS if panel.name == name)


def _lines(points: Sequence[Point]) -> dict[tuple[str, int, str], dict[float | None, Point]]:
    """Panel, rows and solver, with its points by ε; the model without privacy stands in both."""
    from bench.published.mia_rows import PANELS, SOLVERS

    lines: dict[tuple[str, int, str], dict[float | None, Point]] = {}
    for rows in sorted({point.rows for point in points}):
        for panel in PANELS:
            for solver in SOLVERS:
                mine = {
                    point.epsilon: point
                    for point in points
                    if (point.panel, point.rows) == (panel.name, rows)
                    and point.solver in (solver, "none")
                }
                if len(mine) > 1:
                    lines[f"{panel.title}, N = {rows:,}", rows, solver] = mine
    return lines


def _attacks(points: Sequence[Point]) -> None:
    """Accuracy, in per cent, with its interval, beside the ceiling, by rule."""
    from bench.published.mia import RULES

    epsilons = sorted({point.epsilon for point in points if point.epsilon is not None})
    for rule in RULES:
        heads = [*(f"ε = {epsilon:g}" for epsilon in epsilons), "without privacy"]
        table = words.table("model", "solver", *heads, right=heads)
        for (title, _, solver), at in _lines([p for p in points if p.rule == rule]).items():
            cells = [_accuracy(at[e]) if e in at else "–" for e in (*epsilons, None)]
            table.add_row(title, solver, *cells)
        table.add_section()
        bounds = [
            max(p.ceiling for p in points if p.epsilon == e and p.ceiling is not None)
            for e in epsilons
        ]
        table.add_row("ceiling", "any", *(f"{100 * bound:.1f}" for bound in bounds), "100")
        console = shell.out()
        console.print(f"attack accuracy in per cent by the {rule} rule, mean and 95 % interval")
        console.print(table)


def _accuracy(point: Point) -> str:
    if not point.better:
        return "constant"
    return f"{100 * point.mean:.1f} ± {50 * (point.high - point.low):.1f}"


def _learnt(points: Sequence[Point]) -> None:
    """What the attacked models are worth: quality, excess loss beside its bound, distance to w*."""
    heads = ["ε", "steps", "quality", "constant", "F − F*", "bound", "‖w − w*‖"]
    table = words.table("model", "solver", *heads, right=heads)
    for (title, _, solver), at in _lines([p for p in points if p.rule == "rank"]).items():
        for epsilon, point in sorted(at.items(), key=lambda item: item[0] or float("inf")):
            table.add_row(
                title,
                solver,
                "∞" if epsilon is None else f"{epsilon:g}",
                f"{point.steps:,}" if point.steps else "–",
                f"{point.quality:.3f}",
                f"{point.constant:.3f}",
                f"{point.excess:.4f}",
                _bound(point),
                f"{point.distance:.3f}",
            )
    shell.out().print(table)


def _bound(point: Point) -> str:
    if point.epsilon is None:
        return "–"
    return (
        f"{point.bound:.3g}" if point.bound < point.start else f"says nothing ({point.bound:.3g})"
    )


def _fits(results: Results) -> None:
    """Log fits, as the thesis draws them, with the interval over trainings."""
    table = words.table("model", "N", "solver", "of", "slope in ln ε", right=["slope in ln ε"])
    for slope in results.slopes():
        size, half = (100, "%") if slope.what == "accuracy" else (1, "")
        table.add_row(
            slope.panel, f"{slope.rows:,}", slope.solver, slope.what,
            f"{size * slope.mean:+.2f} ± {size * (slope.high - slope.low) / 2:.2f}{half}",
        )  # fmt: skip
    shell.out().print(table)

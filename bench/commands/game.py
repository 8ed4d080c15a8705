"""`python -m bench game`, `rounds` and the other experiments: run again on public tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands import mia, options, peers, querygan
from bench.commands.signals import undisturbed
from understudy.cli import shell, words
from understudy.cli.progress import Runs
from understudy.errors import InputError, require_extra

if TYPE_CHECKING:
    from bench.published import Bench, LeftOut, Panel, Results, Task

__all__ = ["app"]

app = typer.Typer(
    help="Run published experiments again, on public tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command("peers")(peers.peers)
app.command("mia")(mia.mia)
app.command("querygan")(querygan.querygan)


@app.command("game")
@shell.guarded
def game(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where results.json, results.md and the figure go; runs in it are kept.",
        ),
    ],
    adult: options.Adult = None,
    adult_domain: options.AdultDomain = None,
    adult_raw: options.AdultRaw = None,
    loans: options.Loans = None,
    loans_domain: options.LoansDomain = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Use the generated survey, as without any table.",
            rich_help_panel=options.DATA,
        ),
    ] = False,
    rows: options.SurveyRows = 50_000,
    figure: Annotated[
        str, typer.Option("--figure", metavar="1|2|both", help="Error over ε, or over workloads.")
    ] = "both",
    methods: Annotated[
        str | None, typer.Option("--methods", metavar="M,…", help="Only these; all by default.")
    ] = None,
    epsilons: Annotated[
        str, typer.Option("--epsilons", metavar="ε,…", help="For figure 1.")
    ] = "0.1,0.15,0.2,0.25,0.5,1",
    orders: Annotated[
        str, typer.Option("--orders", metavar="K,…", help="Columns of a marginal.")
    ] = "3,5",
    most: Annotated[
        int | None,
        typer.Option("--most", metavar="N", min=64, help="The most marginals, for figure 2."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Of every point.")] = 3,
) -> None:
    """Draw figures 1 and 2 of the FEM paper again, with every method beside the published values.

    The errors shown are exact, so they are not private: for public tables only. Interrupt it at any
    time; the same command goes on where it stopped.

    \b
    [bold]Example[/bold]
      python -m bench game --demo --out game
      python -m bench game --adult adult.csv --adult-domain adult-domain.json --out game
    """
    from bench.published import Results, answered, figure_one, figure_two, tasks
    from bench.published.figure import draw
    from bench.published.game_tables import markdown

    if figure not in ("1", "2", "both"):
        raise InputError(f"figure = {figure!r} must be 1, 2 or both")
    require_extra("drawing", "figures")
    wanted = options.listed(orders, "orders", int)
    options.listed(epsilons, "epsilons", float)
    benches = _tables(adult, adult_domain, adult_raw, loans, loans_domain, demo, rows)
    narrow = min(len(bench.schema.shape) for bench in benches)
    if not all(1 <= order <= narrow for order in wanted):
        raise InputError(f"orders = {orders}: a marginal has from 1 to {narrow} columns here")
    panels: list[Panel] = []
    if figure in ("1", "both"):
        panels += figure_one(benches, wanted, options.split(epsilons))
    if figure in ("2", "both"):
        panels += figure_two(benches, wanted, most)
    results = Results(out / "results.json")

    def skipped(one: LeftOut) -> None:
        shell.note(str(one))
        results.leave_out(one)

    planned = list(tasks(panels, runs, options.split(methods) if methods else None, skipped))
    results.answered = answered(panels)
    with options.kept(results):
        _run(planned, results)
    results.save()
    _show(results, panels)
    text = results.path.with_suffix(".md")
    text.write_text(markdown(results), encoding="utf-8")
    for path in (*draw(panels, results, out), text, results.path):
        shell.out().print(f"wrote {path}", soft_wrap=True)


@app.command("rounds")
@shell.guarded
def rounds(
    method: Annotated[
        str, typer.Option("--method", metavar="M", help="fem, sepfem, dualquery or dqrs.")
    ] = "fem",
    marginals: Annotated[
        str, typer.Option("--marginals", metavar="N,…", help="Of 1000 queries each, on 30 columns.")
    ] = "1,10,100,1000",
    columns: Annotated[
        str, typer.Option("--columns", metavar="N,…", help="With 100 marginals each.")
    ] = "10,20,50,100,200",
) -> None:
    """Time a round of the game, both players apart, as queries and columns grow.

    \b
    [bold]Example[/bold]
      python -m bench rounds --method dualquery
    """
    from bench.published.game import warm_up
    from bench.published.rounds import over_columns, over_queries

    warm_up(method)
    table = words.table(
        "columns", "queries", "counting once", "query player", "data player",
        right=("columns", "queries", "counting once", "query player", "data player"),
    )  # fmt: skip
    kinds = (
        over_queries(method, options.listed(marginals, "marginals", int)),
        over_columns(method, options.listed(columns, "columns", int)),
    )
    for kind in kinds:
        for one in kind:
            table.add_row(
                f"{one.columns}", f"{one.queries:,}", f"{1e3 * one.counting:.1f} ms",
                f"{1e3 * one.query:.2f} ms", f"{1e3 * one.data:.2f} ms",
            )  # fmt: skip
        table.add_section()
    console = shell.out()
    console.print(f"{method}: CPU time of one round, mean of all rounds after the first")
    console.print(table)


def _tables(
    adult: Path | None,
    adult_domain: Path | None,
    adult_raw: Path | None,
    loans: Path | None,
    loans_domain: Path | None,
    demo: bool,
    rows: int,
) -> list[Bench]:
    """What was given, or the survey; a remark on what is missing."""
    from bench.published import adult_of_15, generated, load

    given = {
        "ADULT": load("ADULT", adult, adult_domain),
        "ADULT-15": adult_of_15(adult_raw),
        "LOANS": load("LOANS", loans, loans_domain),
    }
    found = [bench for bench in given.values() if bench is not None]
    if demo:
        return [*found, generated(rows)]
    for name, bench in given.items():
        if bench is None and name != "ADULT-15":
            options.missing(name)
    if not found:
        shell.note("no table was given: the generated survey takes their place.")
        return [generated(rows)]
    return found


def _run(planned: Sequence[Task], results: Results) -> None:
    """Do what is not done yet, and say how it goes."""
    from bench.published.game import run, warm_up

    left = options.left_of(planned, results)
    took: dict[tuple[str, str], list[float]] = {}
    warm: set[str] = set()
    with Runs(len(left)) as progress:
        for position, task in enumerate(left):
            progress.show(
                position, str(task), sum(_expected(each, took) for each in left[position:])
            )
            if task.method not in warm:
                warm_up(task.method)
                warm.add(task.method)
            begun = time.monotonic()
            made = run(task)
            with undisturbed():
                results.add(made)
            took.setdefault((task.panel.name, task.method), []).append(time.monotonic() - begun)


def _expected(task: Task, took: dict[tuple[str, str], list[float]]) -> float:
    """Seconds: as it took before on these axes, else as the method forecasts."""
    known = took.get((task.panel.name, task.method))
    return sum(known) / len(known) if known else task.seconds


def _show(results: Results, panels: Sequence[Panel]) -> None:
    """The figure as a table: worst errors, mean over runs."""
    from bench.published import published

    console = shell.out()
    points = results.points()
    for panel in panels:
        mine = [point for point in points if point.panel == panel.name]
        if not mine:
            continue
        growing = panel.figure == 2
        headings = (
            [str(n) for n in sorted({p.marginals for p in mine})] if growing else [*panel.epsilons]
        )
        axis = "marginals" if growing else "ε"
        table = words.table(
            "method", *(f"{axis} {text}" for text in headings), "rounds", "CPU s",
            right=[*(f"{axis} {text}" for text in headings), "rounds", "CPU s"],
        )  # fmt: skip
        known = {} if growing else published.fem(panel.bench.name, panel.order)
        if known:
            values = [f"{known[e]:.3f}" if e in known else "–" for e in headings]
            table.add_row(published.FEM_NAME, *values, "–", "–")
        for method in dict.fromkeys(point.method for point in mine):
            at = {str(p.marginals) if growing else p.epsilon: p for p in mine if p.method == method}
            values = [f"{at[text].mean:.3f}" if text in at else "–" for text in headings]
            shown = list(at.values())
            table.add_row(
                method, *values,
                _range([p.rounds for p in shown], "{:.0f}"), _range([p.cpu for p in shown], "{:.1f}"),
            )  # fmt: skip
        console.print(panel.title)
        console.print(table)


def _range(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"

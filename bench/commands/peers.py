"""`python -m bench peers`: ours against what installs from PyPI."""

from __future__ import annotations

import sys
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
    from bench.published.peers import Peers, Point, System, Task

__all__ = ["peers"]


@shell.guarded
def peers(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where peers.json, peers.md and the figure go; runs in it are kept.",
        ),
    ],
    adult: options.Adult = None,
    adult_domain: options.AdultDomain = None,
    loans: options.Loans = None,
    loans_domain: options.LoansDomain = None,
    nltcs: Annotated[
        Path | None, typer.Option("--nltcs", metavar="CSV", rich_help_panel=options.DATA)
    ] = None,
    nltcs_domain: Annotated[
        Path | None, typer.Option("--nltcs-domain", metavar="JSON", rich_help_panel=options.DATA)
    ] = None,
    wide_rows: Annotated[
        int,
        typer.Option(
            "--wide-rows",
            metavar="N",
            min=0,
            help="Of the generated table; 0 leaves it out.",
            rich_help_panel=options.DATA,
        ),
    ] = 100_000,
    wide_columns: Annotated[
        int, typer.Option("--wide-columns", metavar="N", min=3, rich_help_panel=options.DATA)
    ] = 100,
    workloads: Annotated[
        str | None, typer.Option("--workloads", metavar="W,…", help="Only these, of five.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option("--methods", metavar="M,…", help="Of ours, as auto,aim:megabytes=8."),
    ] = "auto",
    rivals: Annotated[
        str | None,
        typer.Option("--rivals", metavar="R,…", help="Only these; none for ours alone."),
    ] = None,
    epsilons: Annotated[str, typer.Option("--epsilons", metavar="ε,…")] = "0.1,1",
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Of every point.")] = 5,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", min=1, help="For one run.")
    ] = 3600.0,
    envs: Annotated[
        Path | None,
        typer.Option(
            "--envs", metavar="DIR", help="Where rivals are installed, once; DIR/envs of --out."
        ),
    ] = None,
    again: Annotated[
        str | None,
        typer.Option("--again", metavar="S,…", help="Forget the runs of these systems first."),
    ] = None,
) -> None:
    """Run our methods and rival libraries on the same workloads; error, CPU seconds and memory.

    The errors shown are exact, so they are not private: for public tables only. Rivals (dpmm,
    smartnoise-synth) are installed from PyPI into environments of their own. Interrupt it at any
    time; the same command goes on where it stopped.

    \b
    [bold]Example[/bold]
      python -m bench peers --adult adult.csv --adult-domain adult-domain.json --out peers
      python -m bench peers --wide-rows 2000 --rivals none --runs 1 --out peers
    """  # fmt: skip
    from bench.published.peers import RIVALS, Peers, floor, markdown, ours, tasks, works
    from bench.published.peers_figure import draw_peers
    from understudy.errors import require_extra

    require_extra("drawing", "figures")
    options.listed(epsilons, "epsilons", float)
    systems = [ours(text) for text in options.split(methods)] + _rivals(rivals)
    if not systems:
        raise InputError("there is nothing to run: give --methods, or --rivals")
    tables = _tables(
        {"ADULT": (adult, adult_domain), "LOANS": (loans, loans_domain),
         "NLTCS": (nltcs, nltcs_domain)},
        wide_rows, wide_columns,
    )  # fmt: skip
    chosen = works(tables, options.split(workloads) if workloads else None)
    if not chosen:
        raise InputError("none of the workloads has its table: give one, or --wide-rows 100000")
    results = Peers(out / "peers.json")
    if again:
        known = {*RIVALS, *(one["system"] for one in results.runs)}
        odd = [name for name in options.split(again) if name not in known]
        if odd:
            raise InputError(f"again = {', '.join(odd)}: the results hold {', '.join(known)}")
        shell.note(f"{results.forget(options.split(again)):,} runs are forgotten")
    planned = list(tasks(chosen, systems, options.split(epsilons), runs))
    with options.kept(results):
        _run(planned, results, envs or out / "envs", limit)
    results.save()
    floors = {work.name: floor(work) for work in chosen}
    points = results.points()
    text = out / "peers.md"
    text.write_text(markdown(points, floors), encoding="utf-8")
    _show(points)
    for path in (*draw_peers(points, floors, out), text, results.path):
        shell.out().print(f"wrote {path}", soft_wrap=True)


def _rivals(text: str | None) -> list[System]:
    from bench.published.peers import RIVALS

    if text is None:
        return list(RIVALS.values())
    wanted = [name for name in options.split(text) if name != "none"]
    odd = [name for name in wanted if name not in RIVALS]
    if odd:
        raise InputError(
            f"rivals = {', '.join(odd)}: choose from {', '.join(RIVALS)}, or none for ours alone"
        )
    return [RIVALS[name] for name in wanted]


def _tables(
    given: dict[str, tuple[Path | None, Path | None]], wide_rows: int, wide_columns: int
) -> dict[str, Bench]:
    """What was given, and the generated table; a remark on what is missing."""
    from bench.published import load
    from bench.published.wide import wide

    found: dict[str, Bench] = {}
    for name, (data, domain) in given.items():
        bench = load(name, data, domain)
        if bench is not None:
            found[name] = bench
        else:
            options.missing(name)
    if wide_rows:
        found["WIDE"] = wide(wide_rows, wide_columns)
    return found


def _run(planned: Sequence[Task], results: Peers, envs: Path, limit: float) -> None:
    """Do what is not done yet, and say how it goes."""
    from bench.published.peers import environment, run

    left = options.left_of(planned, results)
    pythons: dict[str | None, Path | None] = {None: Path(sys.executable)}
    for requirement in dict.fromkeys(task.system.requirement for task in left):
        if requirement is not None:
            pythons[requirement] = environment(envs.resolve(), requirement, shell.note)
    able = [task for task in left if pythons[task.system.requirement] is not None]
    took: dict[tuple[str, str], float] = {}
    with Runs(len(able)) as progress:
        for position, task in enumerate(able):
            python = pythons[task.system.requirement]
            if task in results or python is None:  # its first run failed
                continue
            known = [took.get((t.work.name, t.system.name), 60.0) for t in able[position:]]
            progress.show(position, str(task), sum(known))
            begun = time.monotonic()
            one = run(task, python, limit)
            with undisturbed():
                results.add(one)
            if "failed" in one:
                shell.note(f"{task}: {one['failed']}; its other runs are left out")
            took[task.work.name, task.system.name] = time.monotonic() - begun


def _show(points: Sequence[Point]) -> None:
    from bench.published.peers import label

    console = shell.out()
    headings = ("ε", "max", "mean TV", "CPU s", "peak MB", "runs")
    for workload in dict.fromkeys(point.workload for point in points):
        table = words.table("system", *headings, right=headings)
        for point in (p for p in points if p.workload == workload):
            worst = "failed" if point.max is None else point.max.text("{:.4f}")
            mean = "–" if point.tv is None else point.tv.text("{:.4f}")
            table.add_row(
                label(point.system), point.epsilon, worst, mean, point.cpu.text("{:.1f}"),
                point.memory_mb.text("{:.0f}"), str(point.runs),
            )  # fmt: skip
        console.print(workload)
        console.print(table)

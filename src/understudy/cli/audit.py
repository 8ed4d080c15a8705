"""`understudy audit`: attack a model or a release, and see whether its ε can be kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from understudy.cli import options, shell, words
from understudy.cli.progress import Runs
from understudy.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.audit.report import Audit

__all__ = ["app"]

app = typer.Typer(
    help="Attack a model or a release. An audit can refute a claimed ε, never prove one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_ROWS, _RUNS, _MODEL = "Rows that may be known", "Runs", "Model"

Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="Where audit.json, the figure and the shadow runs go."
    ),
]
RunsOf = Annotated[
    int, typer.Option("--runs", metavar="N", min=1, help="Shadow runs.", rich_help_panel=_RUNS)
]
Canaries = Annotated[
    int,
    typer.Option(
        "--canaries", metavar="N", help="Records planted, each in by a fair coin.",
        rich_help_panel=_ROWS,
    ),
]  # fmt: skip
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Processes; one per core by default.",
        rich_help_panel=_RUNS,
    ),
]  # fmt: skip
Beta = Annotated[
    float,
    typer.Option(
        "--beta", metavar="B", help="The bound fails with at most this probability.",
        rich_help_panel=_RUNS,
    ),
]  # fmt: skip
Key = Annotated[
    int, typer.Option("--key", metavar="N", help="Of the coins, public.", rich_help_panel=_RUNS)
]


@app.command("release")
@shell.guarded
def release(
    folder: options.Folder,
    out: Out,
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows", metavar="FILE", rich_help_panel=_ROWS,
            help="A table that may be known, to hide canaries in; by default the synthetic rows "
            "of the release.",
        ),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(
            "--held-out", metavar="FILE", rich_help_panel=_ROWS,
            help="Records that you name as canaries, instead of planted ones.",
        ),
    ] = None,
    background: Annotated[
        int, typer.Option("--background", metavar="N", min=1, rich_help_panel=_ROWS,
                          help="At most so many of those rows."),
    ] = 2_000,
    canaries: Canaries = 20,
    runs: RunsOf = 48,
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", metavar="E", help="The claim, if not that of the release."),
    ] = None,
    beta: Beta = 0.05,
    workers: Workers = None,
    key: Key = 0,
) -> None:  # fmt: skip
    """Make the release again and again with planted records, and attack all that comes out.

    The same method, budget and workload run on a table that may be known, so no protected row is
    read and nothing is charged. Interrupt it at any time; the same command goes on. Exits with 1 if
    the claimed ε is refuted.

    \b
    [bold]Example[/bold]
      understudy audit release patients.release --out patients.audit
    """
    from understudy.audit.judge import Claim
    from understudy.audit.releases import (
        Releasing,
        audit_release,
        encoded,
        plant,
        releasing_like,
    )  # fmt: skip
    from understudy.releases import Release

    made = Release.load(folder)
    pipeline = releasing_like(made)
    table = made.rows if rows is None else _read(rows, "rows")
    known = encoded(made.schema, table.slice(0, background))
    if made.rows_public is not None:
        pipeline = Releasing(made.schema, {**pipeline.choices, "rows_public": len(known)})
    named = None if held_out is None else encoded(made.schema, _read(held_out, "held-out"))
    claim = Claim(_number(epsilon, made.epsilon), made.delta, beta)
    design = plant(pipeline, known, canaries=canaries if named is None else named, key=key)
    where = "the synthetic rows of the release" if rows is None else f"{rows.name}, named as known"
    which = (
        f"{len(design.canaries)} planted records"
        if held_out is None
        else f"{len(design.canaries)} records of {held_out.name}, named as canaries"
    )
    used = f"{which}, hidden in {len(design.background):,} rows: {where}"
    _finish(
        used,
        out,
        lambda progress: audit_release(
            design, claim, runs=runs, folder=out / "runs", workers=_workers(workers),
            progress=progress, rows_used=used,
        ),
    )  # fmt: skip


@app.command("model")
@shell.guarded
def model(
    out: Out,
    rows: Annotated[
        Path,
        typer.Option(
            "--rows", metavar="FILE", rich_help_panel=_ROWS,
            help="A table that may be known: held out and named by you, public, or synthetic.",
        ),
    ],
    label: Annotated[
        str, typer.Option("--label", metavar="COLUMN", help="What is predicted.",
                          rich_help_panel=_ROWS),
    ],
    learner: Annotated[
        str,
        typer.Option(
            "--learner", metavar="L", rich_help_panel=_MODEL,
            help="logistic, or module:factory for an estimator of your own.",
        ),
    ] = "logistic",
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", metavar="E", rich_help_panel=_MODEL, show_default=False,
            help="The claim, and for logistic the budget; without it, no privacy is claimed.",
        ),
    ] = None,
    delta: Annotated[
        str, typer.Option("--delta", metavar="D", help="Of the claim.", rich_help_panel=_MODEL)
    ] = "1e-5",
    solver: Annotated[
        str, typer.Option("--solver", metavar="S", help="sgd or frank-wolfe, for logistic.",
                          rich_help_panel=_MODEL),
    ] = "sgd",
    held_out: Annotated[
        Path | None,
        typer.Option(
            "--held-out", metavar="FILE", rich_help_panel=_ROWS,
            help="Rows that you name as canaries, instead of planted ones.",
        ),
    ] = None,
    canaries: Canaries = 40,
    runs: RunsOf = 48,
    beta: Beta = 0.05,
    workers: Workers = None,
    key: Key = 0,
) -> None:  # fmt: skip
    """Train a model again and again with planted rows, and attack what it predicts.

    Scores, LiRA and shadow networks are learnt on a third of the runs, the best is chosen on a
    sixth and judged on half. Interrupt it at any time; the same command goes on. Exits with 1 if
    the claimed ε is refuted.

    \b
    [bold]Example[/bold]
      understudy audit model --rows public.csv --label outcome --epsilon 1 --out model.audit
    """
    from understudy.audit.judge import Claim
    from understudy.audit.learners import Learner, Logistic, Own
    from understudy.audit.models import Trained, audit_model, corners
    from understudy.audit.reading import Layout

    claimed = None if epsilon is None else _number(epsilon, 0.0)
    claim = Claim(claimed, _number(delta, 0.0, "delta"), beta)
    table = _read(rows, "rows")
    layout = Layout(table, label)
    known = layout.examples(table)
    known.require()
    if held_out is None:
        chosen, which = corners(known, canaries, key), f"{canaries} planted rows"
    else:
        chosen = layout.examples(_read(held_out, "held-out"))
        which = f"{len(chosen.labels)} rows of {held_out.name}, named as canaries"
    trained: Learner
    if learner == "logistic":
        ends = (known.features, chosen.features)
        low = tuple(min(e[:, c].min() for e in ends) for c in range(known.features.shape[1]))
        high = tuple(max(e[:, c].max() for e in ends) for c in range(known.features.shape[1]))
        trained = Logistic(
            len(layout.classes), (low, high), claimed, claim.delta,
            len(known.labels) + len(chosen.labels) // 2, {"solver": solver},
        )  # fmt: skip
    else:
        trained = Own(learner)
        trained.make()
    used = f"{which} among {len(known.labels):,} rows of {rows.name}, named as known"
    design = Trained(trained, known, chosen, key)
    _finish(
        used,
        out,
        lambda progress: audit_model(
            design, claim, runs=runs, folder=out / "runs", workers=_workers(workers),
            progress=progress, rows_used=used,
        ),
    )  # fmt: skip


def _finish(used: str, out: Path, work: Callable[[Any], Audit]) -> None:
    """Run, save, draw, tell; the exit code says whether the claim fell."""
    from understudy.audit.figure import draw
    from understudy.figures import require_matplotlib

    require_matplotlib()
    shell.note(f"rows: {used}. No other row is read.")
    begun = time.monotonic()
    shown: list[Runs] = []
    first: list[int] = []

    def progress(done: int, total: int) -> None:
        if not shown:
            shown.append(Runs(total).__enter__())
            first.append(done)
        if done > first[0]:
            each = (time.monotonic() - begun) / (done - first[0])
            shown[0].show(done, "shadow runs", each * (total - done))

    try:
        audit = work(progress)
    except KeyboardInterrupt as stop:
        stop.add_note(f"Finished runs are kept in {out / 'runs'}; the same command goes on there.")
        raise
    finally:
        for each in shown:
            each.__exit__()
    written = [audit.save(out / "audit.json"), *draw(audit, out)]
    _show(audit)
    for path in written:
        shell.out().print(f"wrote {path}", soft_wrap=True)
    if audit.refuted:
        raise typer.Exit(shell.FAILED)


def _show(audit: Audit) -> None:
    console = shell.out()
    right = ("AUC", "advantage", "TPR at FPR 1 %", "TPR at FPR 0.1 %")
    table = words.table("attack", *right, right=right)
    for attack in sorted(audit.attacks, key=lambda a: -a.curve.auc):
        table.add_row(
            attack.name, f"{attack.curve.auc:.3f}", f"{attack.curve.advantage:.3f}",
            f"{100 * attack.tpr_at[0.01]:.2f} %", f"{100 * attack.tpr_at[0.001]:.2f} %",
        )  # fmt: skip
    console.print(table)
    style = "bold red" if audit.refuted else "bold"
    said = audit.verdict.words
    console.print(Text(said[0].upper() + said[1:] + ".", style=style), soft_wrap=True)


def _read(path: Path, name: str) -> pa.Table:
    """A table that may be known; it is read whole."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from understudy.quoting import in_our_words

    options.require_file(path, name, "give a CSV or Parquet file")
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        return csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name} = {path} cannot be read: {in_our_words(error)}") from None


def _number(text: str | None, otherwise: float, name: str = "epsilon") -> float:
    if text is None:
        return otherwise
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{name} = {text!r} is not a number") from None


def _workers(asked: int | None) -> int:
    return asked if asked is not None else len(os.sched_getaffinity(0))

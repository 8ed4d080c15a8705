"""`understudy audit`: attack a model or a release, and see whether its ε can be kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options, shell, words
from understudy.cli.options import option
from understudy.cli.progress import Runs
from understudy.errors import InputError, require_extra

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.audit.judge import Audit, Claim, Design

app = typer.Typer(
    help="Attack a model or a release. An audit can refute a claimed ε, never prove one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_ROWS, _RUNS, _MODEL = "Rows that may be known", "Runs", "Model"

Out = Annotated[Path, option("--out DIR", "Where audit.json, the figure and the shadow runs go.")]
Canaries = Annotated[
    int, option("--canaries N", "Records planted, each with probability 1/2.", _ROWS)
]


@dataclass(frozen=True)
class Shadow:
    """The runs of an audit."""

    runs: Annotated[int, option("--runs N", "Shadow runs.", _RUNS, min=1)] = 48
    beta: Annotated[
        float, option("--beta B", "The bound fails with at most this probability.", _RUNS)
    ] = 0.05
    workers: Annotated[
        int | None, option("--workers N", "Processes; one per core by default.", _RUNS, min=1)
    ] = None
    key: Annotated[int, option("--key N", "Makes those draws repeatable; public.", _RUNS)] = 0


@app.command("release")
@shell.guarded
def release(
    folder: options.Folder,
    out: Out,
    rows: Annotated[
        Path | None,
        option(
            "--rows FILE",
            "A table that may be known, to hide canaries in; by default the synthetic rows "
            "of the release.",
            _ROWS,
        ),
    ] = None,
    held_out: Annotated[
        Path | None,
        option(
            "--held-out FILE", "Records that you name as canaries, instead of planted ones.", _ROWS
        ),
    ] = None,
    background: Annotated[
        int, option("--background N", "At most so many of those rows.", _ROWS, min=1)
    ] = 2_000,
    canaries: Canaries = 20,
    epsilon: Annotated[
        str | None, option("--epsilon E", "The claim, if not that of the release.")
    ] = None,
    *,
    shadow: Shadow,
) -> None:
    """Make the release again and again with planted records, and attack all that comes out.

    The same method, budget and workload run on a table that may be known, so no protected row is
    read and nothing is charged. Interrupt it at any time; the same command goes on. Exits with 1 if
    the claimed ε is refuted.

    \b
    [bold]Example[/bold]
      understudy audit release patients.release --out patients.audit
    """
    from understudy.audit.judge import Claim
    from understudy.audit.releases import plant_like
    from understudy.releases import Release

    attacked = Release.load(folder)
    table = attacked.rows if rows is None else _read(rows, "rows")
    named = canaries if held_out is None else _read(held_out, "held-out")
    claim = Claim(_number(epsilon, attacked.epsilon), attacked.delta, shadow.beta)
    design = plant_like(attacked, table.slice(0, background), named, shadow.key)
    where = "the synthetic rows of the release" if rows is None else f"{rows.name}, named as known"
    which = "planted records"
    if held_out is not None:
        which = f"records of {held_out.name}, named as canaries"
    hidden = f"hidden in {len(design.background):,} rows: {where}"
    _finish(design, claim, f"{len(design.canaries)} {which}, {hidden}", out, shadow)


@app.command("model")
@shell.guarded
def model(
    out: Out,
    rows: Annotated[
        Path,
        option(
            "--rows FILE",
            "A table that may be known: held out and named by you, public, or synthetic.",
            _ROWS,
        ),
    ],
    label: Annotated[str, option("--label COLUMN", "What is predicted.", _ROWS)],
    learner: Annotated[
        str,
        option("--learner L", "logistic, or module:factory for an estimator of your own.", _MODEL),
    ] = "logistic",
    epsilon: Annotated[
        str | None,
        option(
            "--epsilon E",
            "The claim, and for logistic the budget; without it, no privacy is claimed.",
            _MODEL,
            show_default=False,
        ),
    ] = None,
    delta: Annotated[str, option("--delta D", "Of the claim.", _MODEL)] = "1e-5",
    solver: Annotated[
        str, option("--solver S", "sgd or frank-wolfe, for logistic.", _MODEL)
    ] = "sgd",
    held_out: Annotated[
        Path | None,
        option(
            "--held-out FILE", "Rows that you name as canaries, instead of planted ones.", _ROWS
        ),
    ] = None,
    canaries: Canaries = 40,
    *,
    shadow: Shadow,
) -> None:
    """Train a model again and again with planted rows, and attack what it predicts.

    Scores, LiRA and shadow networks are learnt on a third of the runs, the best is chosen on a
    sixth and judged on half. Interrupt it at any time; the same command goes on. Exits with 1 if
    the claimed ε is refuted.

    \b
    [bold]Example[/bold]
      understudy audit model --rows public.csv --label outcome --epsilon 1 --out model.audit
    """
    import numpy as np

    from understudy.audit.judge import Claim
    from understudy.audit.models import Layout, Learner, Logistic, Own, Trained, corners

    claimed = None if epsilon is None else _number(epsilon, 0.0)
    claim = Claim(claimed, _number(delta, 0.0, "delta"), shadow.beta)
    table = _read(rows, "rows")
    layout = Layout(table, label)
    known = layout.examples(table)
    known.require()
    if held_out is None:
        chosen, which = corners(known, canaries, shadow.key), f"{canaries} planted rows"
    else:
        chosen = layout.examples(_read(held_out, "held-out"))
        which = f"{len(chosen)} rows of {held_out.name}, named as canaries"
    trained: Learner
    if learner == "logistic":
        both = np.concatenate([known.features, chosen.features])
        trained = Logistic(
            len(layout.classes),
            (tuple(both.min(axis=0)), tuple(both.max(axis=0))),
            claimed,
            claim.delta,
            len(known) + len(chosen) // 2,
            {"solver": solver},
        )
    else:
        trained = Own(learner)
        trained.make()
    used = f"{which} among {len(known):,} rows of {rows.name}, named as known"
    _finish(Trained(trained, known, chosen, shadow.key), claim, used, out, shadow)


def _finish(design: Design, claim: Claim, used: str, out: Path, shadow: Shadow) -> None:
    """Run, save, draw, tell; the exit code says whether the claim fell."""
    from understudy.audit.figure import draw
    from understudy.audit.judge import audit

    require_extra("drawing", "figures")
    shell.note(f"rows: {used}. No other row is read.")
    with Runs() as runs:
        try:
            found = audit(
                design,
                claim,
                runs=shadow.runs,
                folder=out / "runs",
                workers=shadow.workers or len(os.sched_getaffinity(0)),
                progress=runs.count,
                rows_used=used,
            )
        except KeyboardInterrupt as stop:
            kept = f"Finished runs are kept in {out / 'runs'}; the same command goes on there."
            stop.add_note(kept)
            raise
    written = [found.save(out / "audit.json"), *draw(found, out)]
    _show(found)
    for path in written:
        shell.say(f"wrote {path}")
    if found.refuted:
        raise typer.Exit(shell.FAILED)


def _show(audit: Audit) -> None:
    right = ("AUC", "advantage", "TPR at FPR 1 %", "TPR at FPR 0.1 %")
    table = words.table("attack", *right, right=right)
    for attack in sorted(audit.attacks, key=lambda a: -a.curve.auc):
        rates = (f"{100 * attack.tpr_at[rate]:.2f} %" for rate in (0.01, 0.001))
        curve = attack.curve
        table.add_row(attack.name, f"{curve.auc:.3f}", f"{curve.advantage:.3f}", *rates)
    shell.out().print(table)
    style = "bold red" if audit.refuted else "bold"
    said = audit.verdict.words
    shell.say((said[0].upper() + said[1:] + ".", style))


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

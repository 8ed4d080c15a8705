"""`understudy compare`: a release against the table it stands in for, for those who may look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.panel import Panel
from rich.text import Text

from understudy import files, wording
from understudy.cli import options, shell, words
from understudy.cli.commands import command
from understudy.cli.options import argument, option
from understudy.cli.progress import Stages
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.report.compare import Comparison
    from understudy.units import Unit

_SHOWN = 5
_SUFFIXES = (".json", ".html")


@shell.guarded
def compare(
    real: Annotated[str, argument("REAL", "The private table, as for `understudy release`.")],
    folder: options.Folder,
    target: Annotated[
        list[str] | None,
        option(
            "--target COLUMN",
            "A column to predict from the others; may be given several times. By default the "
            "categories among the columns.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("--out FILE", "Write everything to X.json or X.html; never into a release."),
    ] = None,
    key: Annotated[
        int, option("--key K", "Makes the random questions and splits repeatable.", min=0)
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Compare a release with the private table. [bold]The output is not private.[/bold]

    For a custodian who may see the table: errors over the workload, SDNist's k-marginal score,
    whether a classifier can tell real from synthetic rows, models trained on synthetic and tested
    on real rows, associations between columns, random questions. Nothing is charged, and nothing of
    it goes into a release.

    \b
    [bold]Example[/bold]
      understudy compare patients.csv patients.release
      understudy compare patients.csv patients.release --target diagnosis --out look.html
    """
    from understudy.releases import Release
    from understudy.report.compare import compare as work

    if out is not None:
        _require_place(out)
    if (Path(real) / "release.json").is_file() and not folder.is_dir():
        raise InputError(
            f"{real} is a release; give the private table first: {command('compare', folder, real)}"
        )
    release = Release.load(folder)
    with Stages() as stages:
        comparison = work(real, release, targets=target or None, key=key, progress=stages)
    if out is not None:
        _write(comparison, out, folder.name)
    if as_json:
        words.as_json(comparison.to_json())
    else:
        _show(comparison, folder, release.schema.unit)
    if out is not None:
        shell.note(f"wrote {out}, which is NOT PRIVATE")


def _require_place(out: Path) -> None:
    if out.suffix.lower() not in _SUFFIXES:
        raise InputError(f"out = {out} must end in .json or .html; that chooses the format")
    options.require_outside(
        out, "what `compare` finds is not private and never goes into a release"
    )


def _write(comparison: Comparison, out: Path, name: str) -> None:
    if out.suffix.lower() == ".json":
        text = json.dumps(comparison.to_json(), indent=2, ensure_ascii=False) + "\n"
    else:
        from understudy.report.compare import page

        text = page(comparison, name)
    files.write(out, text)


def _show(comparison: Comparison, folder: Path, unit: Unit | None) -> None:
    from understudy.report.compare import LOUD

    console = shell.out()
    if console.is_terminal:
        shell.out().print(Panel(Text(LOUD, style="bold red"), border_style="red"))
    else:
        shell.say(LOUD)
    holds = "which holds" if comparison.covered else "which FAILED, as it may with probability β"
    scores = [f"{score:.0f} (k = {k})" for k, score in comparison.k_marginal.items()]
    told_apart = (
        f"pMSE {comparison.propensity_mse:.4f} of 0.25; area under the ROC "
        f"{comparison.propensity_area:.3f}, guessing 0.5"
    )
    words.facts(
        [
            ("rows", f"{comparison.rows_real:,} real, {comparison.rows_synthetic:,} in {folder}"),
            *words.scope(unit),
            (
                "worst error",
                f"{wording.points(comparison.worst)}, certified "
                f"{wording.bound(comparison.bound)}, {holds}",
            ),
            ("mean total variation", f"{wording.points(comparison.mean)} over the workload"),
            ("k-marginal score", ", ".join(scores) + " of 1000"),
            ("propensity", told_apart),
            ("unique real rows reproduced", wording.percent(comparison.unique_matches)),
        ]
    )
    right = ("total variation", "worst query")
    worst = words.table("worst of the workload", *right, right=right)
    for error in sorted(comparison.workload, key=lambda e: -e.total_variation)[:_SHOWN]:
        name = " × ".join(error.columns)
        name = name if error.kind == "marginals" else f"{error.kind} of {name}"
        worst.add_row(name, wording.points(error.total_variation), wording.points(error.worst))
    shell.out().print(worst)
    if comparison.learnt:
        right = ("on synthetic", "on real", "a constant")
        learnt = words.table("accuracy of predicting, trained", *right, right=right)
        for each in comparison.learnt:
            scores = (each.trained_on_synthetic, each.trained_on_real, each.constant)
            learnt.add_row(each.target, *(f"{100 * score:.1f} %" for score in scores))
        shell.out().print(learnt)
    if comparison.associations:
        right = ("real", "synthetic")
        changed = sorted(comparison.associations, key=lambda a: -abs(a.real - a.synthetic))
        table = words.table("associations that changed most (Cramér's V)", *right, right=right)
        for each in changed[:_SHOWN]:
            table.add_row(" × ".join(each.columns), f"{each.real:.3f}", f"{each.synthetic:.3f}")
        shell.out().print(table)
    right = ("number", "mean error", "worst", "median relative")
    asked = words.table("random questions, true share", *right, right=right)
    for band in comparison.queries:
        errors = (band.mean_error, band.worst_error, band.median_relative)
        asked.add_row(
            f"{wording.percent(band.low)} to {wording.percent(band.high)}",
            str(band.questions),
            *("–" if error is None else wording.percent(error) for error in errors),
        )
    shell.out().print(asked)

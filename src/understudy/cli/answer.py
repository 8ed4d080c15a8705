"""`understudy answer`: questions to a release, with certified error bars where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from understudy import wording
from understudy.cli import options, shell, words
from understudy.cli.commands import command
from understudy.cli.options import argument

if TYPE_CHECKING:
    from understudy.releases import Release

_WIDE = 0.2


@shell.guarded
def answer(
    folder: options.Folder,
    predicate: Annotated[str, argument("PREDICATE", "A condition on rows, as in SQL's WHERE.")],
    as_json: options.AsJson = False,
) -> None:
    """Estimate the share of rows that satisfy a condition.

    Costs nothing. The error bar is certified where a marginal of the workload holds all the columns
    that the condition names. Intervals that are estimated and not certified, often narrower, and
    other statistics than shares have their own command: `understudy estimate`. A value such as '250*',
    where a release has any, stands for all rare codes that begin with 250.

    \b
      age >= 65 and sex = 'F'        district in ('Harbour', 'Old Town')
      income between 1000 and 2000   income is null or not smoker

    \b
    [bold]Example[/bold]
      understudy answer patients.release "age >= 65 and sex = 'F'"
    """
    from understudy.queries import Predicate
    from understudy.releases import Release
    from understudy.units import things

    release = Release.load(folder)
    answer = release.answer(predicate)
    if as_json:
        words.as_json(
            {
                "predicate": predicate,
                "estimate": answer.estimate,
                "certified": answer.certified,
                "low": answer.low,
                "high": answer.high,
                "confidence": answer.confidence if answer.certified else None,
                "columns": None if answer.by is None else list(answer.by),
                "rows_estimate": release.number,
            }
        )
        return
    wide = False
    interval = Text("not certified: no marginal of the workload holds its columns", "yellow")
    if answer.low is not None and answer.high is not None:
        wide = answer.high - answer.low > _WIDE
        interval = Text(
            f"{wording.between(answer.low, answer.high)}, certified with "
            f"{100 * answer.confidence:g} % confidence"
            f"{wording.nothing(answer.high - answer.low)}",
            style="green",
        )
    count, unit = round(answer.estimate * release.number), release.schema.unit
    size = "" if release.rows_public is not None else "about "
    words.facts(
        [
            ("share", Text(f"{100 * answer.estimate:.2f} %", style="bold")),
            ("true share", interval),
            (things(unit), f"about {count:,} of {size}{release.number:,}"),
            *words.scope(unit, brief=True),
        ]
    )
    parsed = Predicate.parse(predicate, release.schema)
    if answer.by is not None and answer.cells > 1:
        shell.note(_summed(answer.by, answer.cells, release, alone=len(parsed.clique) == 1))
    for remark in parsed.remarks:
        shell.note(f"{remark}.")
    if wide and release.certificate.variations is None:
        shell.note(
            "A release made with --variations has narrower intervals where many cells are added."
        )
    if release.tables:
        asked = command("estimate", folder, f"share({predicate})")
        shell.note(f"For an estimated interval, which is often narrower and not certified: {asked}")


def _summed(by: Sequence[str], cells: int, release: Release, *, alone: bool) -> str:
    """Where a bound beyond the certificate's own comes from; `alone` is a question of one column."""
    each = f"± {wording.at_most(release.certificate.bound)} percentage points each"
    table = f"The bound is that of the certified table of {' and '.join(by)}"
    told = f"{table}: {cells} {release.certificate.of} of {each}"
    if len(by) < 2 or not alone:
        return f"{told}."
    return (
        f"{told}. Tables of one column are not certified by themselves in this workload; a new release "
        "with marginals:1 in its --workload, such as marginals:1+marginals:2, certifies them."
    )

"""`understudy estimate`: statistics of a release with estimated intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from rich.text import Text

from understudy.cli import options, shell, words
from understudy.cli.commands import quoted
from understudy.cli.options import argument, option
from understudy.units import things

if TYPE_CHECKING:
    from understudy.estimates import Estimate, Parts
    from understudy.units import Unit


@shell.guarded
def estimate(
    folder: options.Folder,
    asked: Annotated[str, argument("STATISTIC", "What to estimate, such as mean(income) by sex.")],
    target: Annotated[
        Literal["population", "table"],
        option(
            "--target", "The population that rows were drawn from, or the private table itself."
        ),
    ] = "population",
    level: Annotated[float, option("--level P", "How often intervals hold the truth.")] = 0.95,
    as_json: options.AsJson = False,
) -> None:
    """Estimate a statistic, with an interval.

    Costs nothing. It uses the model and every noisy table of the release, not the synthetic rows:
    intervals and tests computed on synthetic rows as if they were data are wrong. Intervals are
    estimated and hold under stated assumptions; `understudy answer` has certified bounds, for shares
    alone.

    \b
      share(age >= 65 and sex = 'F')     mean(income)     sum(income)
      count(smoker)                      median(income)   gini(income)
      quantile(income, 0.9)              correlation(age, income)
      mean(income) by sex                mean(income) where age >= 65
      difference(mean(income) by sex)    odds(smoker, sex = 'F')
      ols(income ~ age + C(sex))         logit(insured ~ age + education)
      independence(age, district)

    Conditions are those of `understudy answer`. Differences are to the first group. In a formula a
    category, or C(x), has a term for each value but the first; C(x, 'B') has B as its base. Values
    that noise hides are left out, and named.

    \b
    [bold]Example[/bold]
      understudy estimate patients.release "mean(income) by sex"
    """
    shell.one_thread()
    from understudy.estimates import Estimate, Estimates, Independence, remarks
    from understudy.releases import Release

    release = Release.load(folder)
    found = release.estimate(asked, target=target, level=level)
    if as_json:
        words.as_json(found.to_json())
        return
    if isinstance(found, Independence):
        shell.say(found.words)
    elif isinstance(found, Estimate):
        _one(found, release.schema.unit)
    else:
        listed = words.table("", "estimate", "low", "high", right=("estimate", "low", "high"))
        for each in found:
            listed.add_row(each.name, *each.shown)
        shell.out().print(listed)
        first = found[0]
        shell.say(f"  Intervals: estimated, {100 * first.level:g} %, for the {first.target}.")
        for why in dict.fromkeys(each.warning for each in found if each.warning is not None):
            named = [each.name for each in found if each.warning == why]
            if named == [each.name for each in found if each.determined]:
                shell.note(f"{why[0].upper()}{why[1:]}.")
            else:
                shell.note(f"{', '.join(named)}: {why}.")
    words.facts(words.scope(release.schema.unit, brief=True))
    told = [found] if isinstance(found, Estimate) else found if isinstance(found, Estimates) else []
    for remark in remarks(asked, release.schema):
        shell.note(f"{remark}.")
    if all(each.determined and not _guessed(each.parts) for each in told):
        return
    why, purpose = release.advice(asked)
    if purpose is not None:
        method = "" if release.method.get("name") == "maxent" else "--method maxent "
        why += (
            f". A new release with {method}--purpose {quoted(purpose)} would measure them together, "
            "and costs budget of its own"
        )
    if purpose is not None or any(_guessed(each.parts) for each in told):
        shell.note(f"{why}.")


def _guessed(parts: Parts | None) -> bool:
    """Whether what no table tells is most of the width."""
    return parts is not None and parts.model > 2 * max(parts.noise, parts.sampling)


def _one(found: Estimate, unit: Unit | None) -> None:
    value, low, high = found.shown
    if found.parts is None:
        facts = [("estimate", Text(value, style="yellow")), ("why", str(found.warning))]
        return words.facts([("asked", found.name), *facts])
    parts, counted = found.parts, things(unit)
    made = {
        "noise (sd)": parts.noise,
        f"number of {counted} (sd)": parts.rows,
        "sampling (sd)": parts.sampling,
        "model (bound)": parts.model,
        "inside bins (bound)": parts.inside,
    }
    whose = {
        "population": f"the population that the {counted} were drawn from",
        "table": "the two tables themselves" if unit and unit.family else "the table itself",
    }
    ranked = found.name.startswith(("median(", "quantile("))
    times, of = (100, " percentage points") if found.unit or ranked else (1, "")
    of += " of the share below it" if ranked else ""
    told = ", ".join(f"{name} {times * part:.2g}" for name, part in made.items() if part > 0)
    words.facts(
        [
            ("asked", found.name),
            ("estimate", Text(value, style="bold")),
            ("interval", f"{low} to {high}, estimated, {100 * found.level:g} %"),
            ("target", whose[found.target]),
            ("parts", f"{told}{of}" if told else "none: the schema alone says it"),
        ]
    )
    if found.warning is not None:
        shell.note(f"{found.warning[0].upper()}{found.warning[1:]}.")
    return None

"""`understudy plan`: what a release would charge and how good it would be, from public facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from understudy.cli import options, shell, words
from understudy.cli.options import ACCOUNT, option

if TYPE_CHECKING:
    from understudy.game.forecast import Errors
    from understudy.game.methods import Theorem
    from understudy.queries import Workload
    from understudy.releases import Options, Prepared
    from understudy.schema import Schema

__all__ = ["errors_in_words", "needed_epsilon", "plan", "theorem_in_words"]

_WORST_MARGINALS = 3
_ENGINES = {
    "memory": "in memory",
    "duckdb": "files (DuckDB)",
    "sql": "a database",
    "spark": "Spark",
}


@shell.guarded
def plan(
    schema: options.SchemaFile,
    target: options.Target,
    choices: options.Choices,
    rows: Annotated[
        int | None,
        option(
            "--rows N",
            "About how many rows the table has: an assumption for the forecast alone.",
            "Forecast",
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        option("--ledger LEDGER", "Say how many such releases this ledger has room for.", ACCOUNT),
    ] = None,
    dataset: Annotated[
        str | None, option("--dataset NAME", "The dataset in that ledger.", ACCOUNT)
    ] = None,
    drop_other_columns: options.DropOthers = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a release would charge, and how good it would be.

    Reads the schema and, if it is named, the ledger; reads no row and spends nothing.

    \b
    [bold]Example[/bold]
      understudy plan --schema patients.schema.toml --epsilon 1 --rows 50000
      understudy plan --schema patients.schema.toml --target-error 0.01 --rows 50000
    """
    from understudy.releases import outline, prepare
    from understudy.schema import Schema

    wanted = options.wanted(target, choices, rows=rows, **options.account(ledger, dataset))
    loaded = options.read_as(Schema.load(schema), None, drop_other_columns)
    prepared = prepare(loaded, wanted.resolved())
    fit = _fit(prepared)
    if as_json:
        room = {} if fit is None else {"releases_that_fit": fit}
        words.as_json({**outline.outline(prepared, rows), **room})
    else:
        if target.target_error is not None:
            shell.say((needed_epsilon(wanted, prepared), "bold"))
        _show(prepared, rows)
        if fit is not None:
            room = f"Dataset {dataset!r} has room for {fit:,} such releases."
            shell.say(f"\n{room}")


def _fit(prepared: Prepared) -> int | None:
    """How many such releases the named account has room for."""
    dataset = prepared.options.dataset
    with prepared.options.account() as ledger:
        if ledger is None or dataset is None:
            return None
        ledger.dataset(dataset).require_unit(prepared.schema.unit)
        return ledger.more_like(dataset, prepared.budget, prepared.plan, prepared.schema.unit)


def needed_epsilon(wanted: Options, prepared: Prepared) -> str:
    """Which ε a target error needs, and what it speaks of."""
    from understudy.privacy.budget import decimal
    from understudy.releases.plan import OF

    target, of = wanted.target_error, OF[wanted.target_of]
    epsilon = decimal(prepared.budget.epsilon)
    return f"A forecast error of {target:g} ({of}) needs --epsilon {epsilon}"


def _show(prepared: Prepared, rows: int | None) -> None:
    from understudy.releases import outline

    design, workload = prepared.design, prepared.workload
    unit = prepared.schema.unit
    words.facts(
        [
            (
                "promise",
                f"{prepared.budget}-differential privacy per {unit.column if unit else 'row'}",
            ),
            ("neighbours", design.relation.describe(rows_public=design.rows, unit=unit)),
            ("method", prepared.method.name),
            ("workload", _workload_words(workload, design.shape)),
        ]
    )
    right = ("draws", "noise in rows", "budget")
    charges = words.table("charge", *right, "buys", right=right)
    for charge, share in zip(prepared.plan, outline.shares(prepared), strict=True):
        spread = outline.noise_in_rows(charge, prepared.schema.weight)
        charges.add_row(
            charge.purpose,
            f"{charge.times:,}",
            "–" if spread is None else f"± {words.number(spread)}",
            words.percent(share),
            outline.buys(charge),
        )
    shell.out().print(charges)
    cost = prepared.cost()
    shell.say(
        f"  All of it costs ε = {cost.epsilon:.6g} at δ = {cost.delta:g}, recomputed by "
        f"{outline.ACCOUNTING[cost.by]}."
    )
    shell.say(("  Budget shares are shares of ρ, in which the charges add up (zCDP).", "dim"))
    shell.say()
    _show_forecast(prepared, rows)


def _workload_words(workload: Workload, shape: tuple[int, ...]) -> str:
    number = f"{workload.cells(shape):,}"
    if workload.plain:
        return f"{len(workload):,} marginals, {number} cells"
    return f"{len(workload):,} families of {', '.join(workload.kinds)}, {number} queries"


def _show_forecast(prepared: Prepared, rows: int | None) -> None:
    from understudy.releases import outline

    size = outline.assumed_rows(prepared, rows)
    forecast = prepared.forecast(size)
    source = "assumed" if rows is not None else "assumed; say more with --rows N"
    if rows is None and prepared.design.rows is not None:
        source = "public"
    shell.say((f"What to expect of a table of {size:,} rows ({source})", "bold"))
    pairs: list[tuple[str, str | Text]] = [
        (
            f"a cell of {purpose}",
            f"± {words.number(sigma)} rows, {words.percent(sigma / size)} of the table",
        )
        for purpose, sigma in ((p, s / prepared.schema.weight) for p, s in forecast.noise.items())
    ]
    margin = prepared.margin(size)
    pairs += [
        (
            "certificate",
            f"true worst error + {words.percent(margin)} ({words.number(margin * size)} rows), "
            f"{100 * (1 - prepared.beta):g} % confidence{words.nothing(margin)}",
        ),
        *errors_in_words(forecast.errors, prepared.schema),
        *theorem_in_words(prepared.theorem(size)),
        ("what is measured", forecast.measured),
        ("memory", f"about {words.byte_size(forecast.memory_bytes)}"),
        ("time", f"about {words.duration(forecast.seconds)}"),
    ]
    words.facts(pairs)
    _show_engines(prepared, size)


def _show_engines(prepared: Prepared, rows: int) -> None:
    from understudy.source.pushed import engine_costs

    shell.say()
    shell.say(("Counting the workload once, where the rows are", "bold"))
    table = words.table(
        "engine", "passes", "rows gone over", "comes back", right=("passes", "rows gone over")
    )
    for cost in engine_costs(prepared.design.shape, prepared.workload.cliques, rows):
        back = "nothing: files are streamed through"
        if cost.bytes_back:
            back = f"counts, at most {words.byte_size(cost.bytes_back)}"
        elif cost.held:
            back = f"nothing: codes are kept, {words.byte_size(cost.held)}"
        table.add_row(_ENGINES[cost.engine], f"{cost.passes:,}", f"{cost.rows:,}", back)
    shell.out().print(table)


def theorem_in_words(theorem: Theorem | None) -> list[tuple[str, str | Text]]:
    """What is proved of a method, where anything is."""
    return [] if theorem is None else [("theorem", str(theorem))]


def errors_in_words(errors: Errors | None, schema: Schema) -> list[tuple[str, str | Text]]:
    """What a forecast says of the workload, and of the marginals that fare worst; may be nothing."""
    if errors is None or not errors.marginals:
        return []
    lines: list[tuple[str, str | Text]] = [("expected error", str(errors))]
    if len(errors.marginals) > 1:
        names = [column.name for column in schema.modelled]
        worst = sorted(errors.marginals, key=lambda e: -e.total_variation)[:_WORST_MARGINALS]
        shown = "; ".join(
            f"{' × '.join(names[i] for i in each.clique)} {words.percent(each.total_variation)}"
            for each in worst
        )
        lines.append(("worst expected", f"{shown} (total variation; all of them with --json)"))
    return lines

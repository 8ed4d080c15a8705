"""`understudy plan`: what a release would charge and how good it would be, from public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from understudy import wording
from understudy.cli import options, shell, words
from understudy.cli.commands import command, program
from understudy.cli.options import ACCOUNT, flag, option

if TYPE_CHECKING:
    from understudy.game.forecast import Errors
    from understudy.game.methods import Forecast, Theorem
    from understudy.privacy.ledger import Dataset
    from understudy.queries import Workload
    from understudy.releases import Options, Prepared
    from understudy.releases.outline import Room
    from understudy.releases.verdict import Verdict
    from understudy.schema import Schema
    from understudy.units import Unit

_WORST_MARGINALS = 3
_VARIATIONS = "; --variations bounds each table too, for a share of the budget"
_TABLES = (".csv", ".csv.gz", ".tsv", ".parquet")
_FLAGS = {"settings": "set"}
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
    full: Annotated[
        bool,
        flag("--full", "Also every charge with its noise, theorems, and what engines do."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show how good a release would be, how long it takes and what it leaves of a budget.

    Reads the schema and, if it is named, the ledger; reads no row and spends nothing. Errors are
    estimates; a release measures its own.

    \b
    [bold]Example[/bold]
      understudy plan --schema patients.schema.toml --epsilon 1 --rows 50000
      understudy plan --schema patients.schema.toml --target-error 1pp --rows 50000
      understudy plan --schema patients.schema.toml --epsilon 1 --rows 50000 \\
                      --purpose model:readmitted
    """
    from understudy.privacy.budget import decimal
    from understudy.releases import outline, prepare
    from understudy.releases.verdict import foreseen
    from understudy.units import things

    loaded = options.read_as(options.confirmed(schema), None, drop_other_columns)
    charged = options.account(ledger, dataset, unit=loaded.unit)
    wanted = options.wanted(target, choices, rows=rows, **charged)
    prepared = prepare(loaded, wanted.resolved())
    account = _account(prepared)
    if as_json:
        room = {} if account is None else {"releases_that_fit": account[0].fit}
        words.as_json({**outline.outline(prepared, rows), **room})
        return
    if target.target_error is not None:
        shell.say((needed_epsilon(wanted, prepared), "bold"))
    size = outline.assumed_rows(prepared, rows)
    forecast = prepared.forecast(size)
    source = "assumed"
    if rows is None:
        source = "public" if prepared.design.rows else "assumed: give --rows N for your table"
    unit = prepared.schema.unit
    table = "" if unit and unit.family else "a table of "
    shell.say(
        (f"Plan for {table}{size:,} {things(unit)} ({source})", "bold"),
        f", by {prepared.method.name}; nothing is spent",
    )
    _show(prepared, forecast, size, account)
    if rows is not None or prepared.design.rows:
        show_verdict(foreseen(prepared, size, forecast.errors))
    if full:
        _show_charges(prepared)
        _show_more(prepared, forecast, size)
        _show_engines(prepared, size)
    if account is None or account[0].fit:
        given: dict[str, object] = {"epsilon": decimal(prepared.budget.epsilon)}
        given |= {
            f.name: v for f in fields(choices) if (v := getattr(choices, f.name)) != f.default
        }
        given |= {"ledger": ledger, "dataset": dataset, "drop_other_columns": drop_other_columns}
        if ledger is not None:  # then a release that is interrupted need not pay again
            given["checkpoint"] = schema.with_name(f"{_stem(schema)}.checkpoint")
        _show_next(schema, prepared.schema, given)
    if not full:
        shell.note("--full shows every charge and its noise.")


def _stem(schema: Path) -> str:
    return schema.name.removesuffix(".toml").removesuffix(".schema")


def _show_next(path: Path, schema: Schema, given: Mapping[str, object]) -> None:
    """The command for this release; a table that lies beside its schema has the name of that."""
    from understudy.schema.family import FamilySchema

    def table(missing: str, *stems: str) -> Path | str:
        named = (path.with_name(stem + suffix) for stem in stems for suffix in _TABLES)
        return next((each for each in named if each.is_file()), missing)

    stem, family = _stem(path), schema.tables[-1] if isinstance(schema, FamilySchema) else None
    if family is None or stem == family.child:
        tables: list[Path | str] = [table("TABLE", stem)]
    else:
        tables = [
            table("TABLE", stem, family.parent),
            "--children",
            table("CHILDREN", family.child),
        ]
    options: list[object] = []
    for name, value in given.items():
        switch = f"--{_FLAGS.get(name, name.replace('_', '-'))}"
        for each in value if isinstance(value, list) else [value]:
            options += [switch] if each is True else [switch, each] if each else []
    out = path.with_name(f"{stem}.release")
    line = command("release", *tables, "--schema", path, *options, "--out", out)
    if {"TABLE", "CHILDREN"}.intersection(tables):
        shell.note(f"To make it: `{line}`")
    else:
        words.next_commands(line)


def _account(prepared: Prepared) -> tuple[Room, Dataset] | None:
    """What the release would take of the named account, and what the account is."""
    from understudy.releases.outline import Room

    dataset, unit = prepared.options.dataset, prepared.schema.unit
    with prepared.options.account() as ledger:
        if ledger is None or dataset is None:
            return None
        ledger.dataset(dataset).require_unit(unit)
        books = ledger.books(dataset)
    return Room.of(books, prepared.budget, prepared.plan, unit), books.facts


def _left(account: tuple[Room, Dataset] | None, unit: Unit | None) -> str:
    """What is left of a budget, in words."""
    if account is None:
        own = "" if unit is None else f" --unit {wording.quoted(unit.column)}"
        opening = f"`{program()} ledger open FILE --dataset NAME --epsilon TOTAL{own}`"
        return f"not tracked; {opening} keeps a total: then add --ledger FILE --dataset NAME"
    room, dataset = account
    takes = (
        f"takes {wording.percent(room.takes)} of the lifetime budget of ε = "
        f"{wording.number(dataset.budget.epsilon)}"
    )
    if not room.fit:
        return f"does not fit: it {takes}, and {wording.percent(room.before)} is left"
    return (
        f"{takes} and leaves {wording.percent(room.left)}; {room.fit:,} such "
        f"{'release fits' if room.fit == 1 else 'releases fit'} in what is left now "
        f"({wording.ADDS_UP[dataset.composition]})"
    )


def needed_epsilon(wanted: Options, prepared: Prepared) -> str:
    """Which ε a target error needs, and what it speaks of."""
    from understudy.privacy.budget import decimal
    from understudy.releases.plan import OF

    target, of = wanted.target_error, OF[wanted.target_of]
    assert target is not None
    epsilon = decimal(prepared.budget.epsilon)
    return f"An expected error of {wording.points(target)} ({of}) needs --epsilon {epsilon}"


def _show(
    prepared: Prepared, forecast: Forecast, size: int, account: tuple[Room, Dataset] | None
) -> None:
    """The promise, and the figures that decide."""
    from understudy.releases.ends import sought_in_words
    from understudy.releases.outline import by_group, time_in_words
    from understudy.report.words import caution, meaning, protected

    unit, relation = prepared.schema.unit, prepared.design.relation
    errors, margin = forecast.errors, prepared.margin(size)
    budget, ends = prepared.budget, sought_in_words(prepared.declared or prepared.schema)
    words.facts(
        [
            ("promise", f"{budget}-differential privacy per {protected(unit)}"),
            ("that means", meaning(float(budget.epsilon), float(budget.delta), unit, relation)),
            *words.warning(caution(float(budget.epsilon))),
            *words.scope(unit),
            *(
                [("expected error", "this method forecasts none")]
                if errors is None
                else expected_errors(errors, unit, _too_high(prepared))
            ),
            (
                "certificate",
                f"adds {wording.points(margin)} to the true worst error "
                f"({100 * (1 - prepared.beta):g} % confidence){wording.nothing(margin)}"
                f"{'' if prepared.blueprint.variations or margin >= 1 else _VARIATIONS}",
            ),
            *_purpose_words(prepared, size),
            ("tables", forecast.measured),
            *([] if (told := by_group(prepared, forecast)) is None else [("groups", told)]),
            *([] if ends is None else [("bounds", ends)]),
            ("time", time_in_words(prepared)),
            ("memory", f"about {wording.byte_size(forecast.memory_bytes)}"),
            ("budget", _left(account, unit)),
        ]
    )


def _too_high(prepared: Prepared) -> str:
    """Why a forecast is too high rather than too low, where that is known."""
    from understudy.schema import UndeclaredCategory

    declared = () if prepared.declared is None else prepared.declared.undeclared
    found = sum(isinstance(column, UndeclaredCategory) for column in declared)
    if not found:
        return ""
    return (
        f", too high where the {found} lists that are found privately turn out shorter than allowed"
    )


def show_verdict(judged: Verdict | None) -> None:
    """Whether a release is, or would be, useful, and for what."""
    if judged is None:
        return
    style = {"GOOD": "bold green", "POOR": "bold red"}.get(judged.level.name, "bold yellow")
    lines: list[tuple[str, str | Text]] = [
        ("verdict", Text(judged.headline, style)),
        ("good for", judged.good_for),
        ("not good for", judged.not_for),
        *([("decided by", judged.decided)] if judged.decided else []),
        *([("what would help", judged.advice)] if judged.advice else []),
    ]
    shell.say()
    words.facts(lines)


def _show_charges(prepared: Prepared) -> None:
    from understudy.releases import outline

    right = ("draws", "noise in rows", "budget")
    charges = words.table("charge", *right, "buys", right=right)
    for charge, share in zip(prepared.plan, outline.shares(prepared), strict=True):
        spread = outline.noise_in_rows(charge, prepared.schema.weight)
        charges.add_row(
            outline.shown(charge.purpose),
            f"{charge.times:,}",
            "–" if spread is None else f"± {wording.number(spread)}",
            wording.percent(share),
            outline.buys(charge),
        )
    shell.say()
    shell.out().print(charges)
    cost = prepared.cost()
    shell.say(
        f"  All of it costs ε = {cost.epsilon:.6g} at δ = {wording.small(cost.delta)}, recomputed by "
        f"{outline.ACCOUNTING[cost.by]}."
    )
    shell.say(("  Budget shares are shares of ρ, in which the charges add up (zCDP).\n", "dim"))


def _workload_words(workload: Workload, shape: tuple[int, ...]) -> str:
    number = f"{workload.cells(shape):,}"
    if workload.plain:
        return f"{len(workload):,} marginals, {number} cells"
    return f"{len(workload):,} families of {', '.join(workload.kinds)}, {number} queries"


def _show_more(prepared: Prepared, forecast: Forecast, size: int) -> None:
    """What only a reader of every detail asks for."""
    from understudy.releases.outline import noises, shown

    design, workload = prepared.design, prepared.workload
    unit = prepared.schema.unit
    pairs: list[tuple[str, str | Text]] = [
        ("neighbours", design.relation.describe(rows_public=design.rows, unit=unit)),
        ("workload", _workload_words(workload, design.shape)),
        *(
            (
                f"noise: {shown(purpose)}",
                f"± {wording.number(sigma)} rows, {wording.points(sigma / size)}",
            )
            for purpose, sigma in noises(prepared, size).items()
        ),
        *_all_errors(forecast.errors, prepared.schema),
        *theorem_in_words(prepared.theorem(size)),
    ]
    words.facts(pairs)


def _purpose_words(prepared: Prepared, size: int) -> list[tuple[str, str | Text]]:
    """The purposes, and what they change."""
    from understudy.releases.outline import tradeoff

    stated: list[tuple[str, str | Text]] = [("purpose", p) for p in prepared.options.purposes]
    return [*stated, ("what it changes", str(tradeoff(prepared, size)))] if stated else []


def _show_engines(prepared: Prepared, rows: int) -> None:
    from understudy.source.pushed import engine_costs

    shell.say()
    shell.say(("Counting the workload once, where the rows are", "bold"))
    table = words.table(
        "engine", "passes", "rows scanned", "comes back", right=("passes", "rows scanned")
    )
    for cost in engine_costs(prepared.design.shape, prepared.workload.cliques, rows):
        back = "nothing: files are streamed through"
        if cost.bytes_back:
            back = f"counts, at most {wording.byte_size(cost.bytes_back)}"
        elif cost.held:
            back = f"nothing: codes are kept, {wording.byte_size(cost.held)}"
        table.add_row(_ENGINES[cost.engine], f"{cost.passes:,}", f"{cost.rows:,}", back)
    shell.out().print(table)


def theorem_in_words(theorem: Theorem | None) -> list[tuple[str, str | Text]]:
    """What is proved of a method, where anything is."""
    return [] if theorem is None else [("theorem", str(theorem))]


def expected_errors(
    errors: Errors, unit: Unit | None, but: str = ""
) -> list[tuple[str, str | Text]]:
    """The two figures that verdicts are made of; `but` is what makes them too high."""
    from understudy.units import things

    mean = f"about {wording.percent(errors.mean)} of the {things(unit)} are in another cell"
    return [
        ("worst cell", f"off by {errors.worst_in_words}"),
        ("typical table", f"{mean} (mean over {len(errors.marginals):,} tables; estimate{but})"),
    ]


def _all_errors(errors: Errors | None, schema: Schema) -> list[tuple[str, str | Text]]:
    """What a forecast says of the workload, and of the marginals that fare worst; may be nothing."""
    if errors is None or not errors.marginals:
        return []
    lines: list[tuple[str, str | Text]] = [("expected error", str(errors))]
    if len(errors.marginals) > 1:
        names = [column.name for column in schema.modelled]
        worst = sorted(errors.marginals, key=lambda e: -e.total_variation)[:_WORST_MARGINALS]
        shown = "; ".join(
            f"{' × '.join(names[i] for i in each.clique)} {wording.points(each.total_variation)}"
            for each in worst
        )
        lines.append(("worst expected", f"{shown} (total variation; all of them with --json)"))
    return lines

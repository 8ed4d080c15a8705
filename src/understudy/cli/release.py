"""`understudy release`: from a table to a folder that can be published."""

from __future__ import annotations

import secrets
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy import wording
from understudy.cli import options, shell, words
from understudy.cli.commands import command
from understudy.cli.options import argument, flag, option
from understudy.cli.plan import expected_errors, needed_epsilon, show_verdict, theorem_in_words
from understudy.cli.progress import Stages
from understudy.errors import BudgetExhausted, InputError, UnderstudyError, WorkError
from understudy.progress import Progress

if TYPE_CHECKING:
    from understudy.privacy.budget import Exact
    from understudy.releases import Options, Prepared, Release
    from understudy.schema import Schema
    from understudy.source import Source
    from understudy.source.families import FamilySource

_HEADROOM = 32_000_000
_MOST_OTHERS = 4


@dataclass(frozen=True)
class Where:
    """Where the table is; for `understudy.source.read`."""

    table: options.TableName = None
    path: Annotated[
        str | None,
        option(
            "--path DIR",
            "On Spark, a folder of Parquet files instead of a table.",
            show_default=False,
        ),
    ] = None
    memory_limit: Annotated[
        str | None,
        option(
            "--memory-limit SIZE",
            "What reading files may take, such as 2GB; larger ones are streamed. By default half "
            "of what is free.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class Reading:
    """How the table is read, beside what the schema says."""

    children: Annotated[
        str | None,
        option(
            "--children DATA",
            "The table of children, where DATA holds their parents and the schema both: a file, or a "
            "table of the same database; on Spark a table, or a folder with --path. Without it DATA "
            "is one flat table, which is split where the schema has two.",
            show_default=False,
        ),
    ] = None

    null: options.NullTexts = None
    drop_other_columns: options.DropOthers = False


@dataclass(frozen=True)
class Account:
    """The account that is charged."""

    ledger: Annotated[
        str | None,
        option(
            "--ledger LEDGER",
            "Charge this ledger, which keeps a total over releases; a file, or "
            "postgresql://USER@HOST/DATABASE; needs --dataset.",
            options.ACCOUNT,
        ),
    ] = None
    dataset: options.DatasetName = None
    expect_head: options.ExpectHead = None


@dataclass(frozen=True)
class Making:
    """How the rows are made; none of it touches the promise."""

    rows: Annotated[
        int | None,
        option(
            "--rows N",
            "How many synthetic rows to make; by default as many as there seem to be.",
            options.OUTPUT,
        ),
    ] = None
    key: Annotated[
        int | None,
        option(
            "--key K",
            "Makes the public randomness (sampling) repeatable; privacy noise takes no seed.",
            options.OUTPUT,
            min=0,
        ),
    ] = None
    public: Annotated[
        str | None,
        option(
            "--public DATA",
            "Public rows in the same schema, for methods that start from such (gem, dpgan).",
            "Method",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        option(
            "--checkpoint DIR",
            "Keep what is released on the way here; the same command goes on after a crash "
            "without spending again.",
            options.OUTPUT,
        ),
    ] = None
    title: Annotated[
        str | None, option("--title T", "The title of its report.", options.OUTPUT)
    ] = None
    owner: Annotated[
        str | None,
        option("--owner WHO", "Who is responsible for it, for its report.", options.OUTPUT),
    ] = None


@shell.guarded
def release(
    data: Annotated[
        str,
        argument(
            "DATA",
            "The private table: a CSV or Parquet file, a folder of Parquet files, a glob; or, "
            "with --table, a database (postgresql://user@host/db) or a Spark master.",
        ),
    ],
    schema: options.SchemaFile,
    out: options.NewFolder,
    *,
    where: Where,
    reading: Reading,
    target: options.Target,
    yes: Annotated[
        bool,
        flag(
            "--yes",
            "Spend the ε that --target-error finds, or one above 10, without asking.",
            options.PRIVACY,
        ),
    ] = False,
    choices: options.Choices,
    account: Account,
    making: Making,
) -> None:
    """Release a private, certified synthetic version of a table.

    Everything is checked before anything is spent, every draw is charged before it is made, and the
    folder appears whole or not at all. What is wrong inside the rows (values outside the schema,
    nulls) is private too and never reported; `schema check --data` shows it to a custodian.

    \b
    [bold]Example[/bold]
      understudy release patients.csv --schema patients.schema.toml --epsilon 1 \\
                         --out patients.release
      understudy release postgresql://ann@db.example/clinic --table visits.patients \\
                         --schema patients.schema.toml --epsilon 1 --out patients.release
      understudy release households.csv --children persons.csv --schema homes.toml \\
                         --epsilon 1 --out homes.release
    """
    if choices.method in ("auto", "maxent"):
        shell.one_thread()
    from understudy.releases.bundle import require_absent

    require_absent(out)
    loaded = options.confirmed(schema, *_reviewed(data, reading.children, where))
    loaded = options.read_as(loaded, reading.null, reading.drop_other_columns)
    charged = options.account(account.ledger, account.dataset, account.expect_head, loaded.unit)
    made = dict(vars(making))
    cover = (made.pop("title"), made.pop("owner"))
    wanted = options.wanted(target, choices, **made, **charged)
    if wanted.target_error is not None or wanted.epsilon is None:
        wanted = _agreed(loaded, wanted, yes)
    elif not yes:
        _require_protecting(wanted.epsilon)
    source = _families(data, loaded, reading.children, where)
    released = make(source, loaded, out, wanted, where, cover=cover)
    _show(released, data, out, wanted)


def _reviewed(data: str, children: str | None, where: Where) -> tuple[str | None, str | None]:
    """The rows by which a schema is reviewed, of two tables the children, and their table."""
    if where.path is not None:
        return None, None
    if where.table is not None:
        return data, children or where.table
    return children or data, None


def _families(data: str, schema: Schema, children: str | None, where: Where) -> str | FamilySource:
    """Both tables, where the schema is of two; those of an engine are in one place."""
    from understudy.schema.family import FamilySchema
    from understudy.source import read
    from understudy.source.families import FamilySource

    if isinstance(schema, FamilySchema):
        first = read(data, **vars(where))
        if children is None:  # one flat table, of which the schema has two levels
            return FamilySource(first)
        if where.table is not None:
            return FamilySource(first, read(data, table=children))
        if where.path is not None:
            return FamilySource(first, read(data, path=children))
        return FamilySource(first, read(children, memory_limit=where.memory_limit))
    if children is not None:
        raise InputError(
            f"--children {children} goes with a schema of two tables, which has version = 2; see "
            f"docs/families.md"
        )
    return data


def make(
    data: str | Source | FamilySource,
    schema: Schema,
    out: Path,
    wanted: Options,
    where: Where | None = None,
    *,
    cover: tuple[str | None, str | None] = (None, None),
) -> Release:
    """Release and save, with progress; says what a failure has cost.

    `cover` is the title and the owner that its report states.
    """
    from understudy.releases import prepare, reserve
    from understudy.releases.outline import seconds, time_in_words
    from understudy.releases.warm import warmed
    from understudy.report import About, save
    from understudy.source import read
    from understudy.source.families import FamilySource

    # Known before it is made, so that what it has cost can be told wherever it is interrupted.
    wanted = replace(wanted, reservation=secrets.token_hex(8))
    with Stages() as stages:
        stages(Progress("checking", 0, 1))
        try:
            source = (
                data if isinstance(data, FamilySource) else read(data, **vars(where or Where()))
            )
            prepared = prepare(schema, warmed(wanted, schema, source).resolved())
            _require_space(prepared, out)
            how = f"{prepared.budget} by {prepared.method.name}"
            stages.expect(seconds(prepared), f"releasing with {how}, {time_in_words(prepared)}")
            with reserve(prepared, source, progress=stages) as reserved:
                release = reserved.run(stages)
            save(release, out, about=About(*cover), progress=stages)
            if wanted.checkpoint is not None:
                with suppress(OSError):  # it is empty, unless something else is in it
                    Path(wanted.checkpoint).rmdir()
        except BaseException as error:
            if told := _aftermath(error, wanted, out):
                error.add_note(told)
            raise
        return release


def _agreed(schema: Schema, wanted: Options, yes: bool) -> Options:
    """With the ε that a target error needs, which is spent only if somebody has agreed to it."""
    from understudy.releases import prepare

    prepared = prepare(schema, wanted.resolved())
    needed = needed_epsilon(wanted, prepared)
    if yes:
        shell.note(needed)
    elif not (sys.stdin.isatty() and typer.confirm(f"{needed}. Spend it?", err=True)):
        raise InputError(
            f"{needed}, and it needs your consent; nothing was spent. Give --epsilon, or --yes"
        )
    return replace(wanted, epsilon=prepared.budget.epsilon, target_error=None)


def _require_protecting(epsilon: Exact) -> None:
    """An ε that promises hardly anything, perhaps a slip of the pen, is spent only on purpose."""
    from understudy.privacy.budget import exact
    from understudy.report.words import caution

    told = caution(float(exact(epsilon, "epsilon")))
    if told and not (sys.stdin.isatty() and typer.confirm(f"{told}. Spend it?", err=True)):
        raise InputError(f"{told}. Nothing was spent; give a smaller --epsilon, or --yes")


def _require_space(prepared: Prepared, out: Path) -> None:
    """Room for the bundle, by public facts; found before spending."""
    from understudy.releases.outline import assumed_rows

    shape = prepared.schema.shape
    size = assumed_rows(prepared, prepared.options.rows)
    largest = sorted(shape)[-2:]
    pair = largest[0] * largest[-1]
    need = _HEADROOM + 8 * size * len(prepared.schema.written) + 8 * len(shape) * pair
    free = shutil.disk_usage(out.parent).free
    if free < need:
        raise WorkError(
            f"out = {out}: the release may need {wording.byte_size(need)}, but only "
            f"{wording.byte_size(free)} are free there. Nothing was spent; free some space or choose "
            f"another disk"
        )


def about_report(out: Path) -> tuple[str, str]:
    """Where the report of a release lies, as a line of facts."""
    page = out / "report.html"
    if page.is_file():
        return "report", str(page)
    return "report", f"none, it could not be made; {command('report', out)} says why"


def _aftermath(error: BaseException, wanted: Options, out: Path) -> str:
    """What a failed or interrupted release has left and what it has cost; "" where it says so."""
    stopped = isinstance(error, KeyboardInterrupt)
    if wanted.checkpoint is not None:
        again = stopped or isinstance(error, WorkError)
        return f"The same command goes on from {wanted.checkpoint}." if again else ""
    if isinstance(error, BudgetExhausted) or (wanted.ledger is None and not stopped):
        return ""
    cost = "" if wanted.ledger is None else _cost(wanted)
    if not stopped:
        return cost
    finished = f"The release was finished and is in {out}."
    again = "Nothing was left behind. One that was begun with --checkpoint DIR goes on instead."
    return f"{finished if out.exists() else again} {cost}".rstrip()


def _cost(wanted: Options) -> str:
    from understudy.releases.outline import gone, room_in_words

    identity, dataset = wanted.reservation or "", wanted.dataset or ""
    try:
        with wanted.account() as ledger:
            assert ledger is not None
            if dataset not in ledger.datasets() or identity not in ledger.books(dataset).releases:
                return "Nothing was charged."
            ledger.settle(identity, "aborted", dataset=dataset)  # where it is settled, nothing
            books = ledger.books(dataset)
            made, facts = books.releases[identity], books.facts
            drawn, returned = len(made.charges), facts.composition == "zcdp"
            left = 1 - gone(books.spent(), facts)
            room = room_in_words(books, made, "this one")
    except UnderstudyError as failure:
        return (
            f"Release {identity} of dataset {dataset!r} may still hold its budget ({failure}); look "
            f"with `understudy ledger show` and close it with `understudy ledger settle`."
        )
    if not drawn:
        return f"Nothing was charged to dataset {dataset!r}."
    return (
        f"{drawn} {'draw was' if drawn == 1 else 'draws were'} made before that and stay charged to "
        f"dataset {dataset!r}; what was reserved and not drawn is "
        f"{'returned' if returned else 'not returned (it adds up ε and δ)'}. "
        f"{wording.percent(left)} of its budget of ε = {wording.number(facts.budget.epsilon)} is left: "
        f"room for {room}."
    )


def _others(release: Release) -> list[tuple[str, str]]:
    """What became of values that are not listed, by the released rows, where it is more than noise."""
    from understudy.columns import Category

    seen = {name: share for name, share in release.others.items() if share > release.hidden(name)}
    shares = sorted(seen.items(), key=lambda each: -each[1])
    if not shares:
        return []
    columns = {column.name: column for column in release.schema.modelled}

    def told(name: str, share: float) -> str:
        column = columns[name]
        written = column.other if isinstance(column, Category) else None
        return f"{wording.percent(share)} in {name}" + (
            "" if written == "OTHER" else f" (written as {written})"
        )

    said = ", ".join(told(name, share) for name, share in shares[:_MOST_OTHERS])
    more = "" if len(shares) <= _MOST_OTHERS else f" and {len(shares) - _MOST_OTHERS} columns more"
    return [("OTHER", f"values that are not listed, of the synthetic rows: about {said}{more}")]


def _figure(release: Release) -> str | None:
    """A statistic of its first column, to be estimated; None where nothing can be."""
    from understudy.report.estimated import headlines, possible

    return next(headlines(release), None) if possible(release) else None


def _account(release: Release, wanted: Options) -> list[tuple[str, str]]:
    if wanted.ledger is None or wanted.dataset is None:
        said = "not tracked: every further release of this table adds its ε to this one"
        return [("budget", f"{said}; --ledger FILE --dataset NAME adds them up")]
    from understudy.releases.outline import gone, room_in_words

    with wanted.account() as ledger:
        assert ledger is not None
        books, place = ledger.books(wanted.dataset), ledger.path
    own = books.made(release.facts["reservation"])
    left = wording.percent(1 - gone(books.spent(), books.facts))
    room = (
        f"{left} is left of a lifetime budget of ε = {wording.number(books.facts.budget.epsilon)} for "
        f"dataset {wanted.dataset!r} in {place}: room for {room_in_words(books, own, 'this')}"
    )
    return [
        ("budget", room),
        ("head", f"{books.head}  (keep a copy elsewhere; see --expect-head)"),
    ]


def _show(release: Release, data: str, out: Path, wanted: Options) -> None:
    from understudy.releases.agreement import contradiction
    from understudy.releases.bundle import read_manifest
    from understudy.releases.ends import found_in_words
    from understudy.releases.example import example
    from understudy.releases.verdict import verdict
    from understudy.report.words import caution, inferred, whose
    from understudy.source import shown

    rows, unit = release.rows.num_rows, release.schema.unit
    neighbours = release.relation.describe(rows_public=release.rows_public, unit=unit)
    shell.say(("Wrote the synthetic release of ", "bold"), shown(data), (" to ", "bold"), str(out))
    words.facts(
        [
            ("rows", release.size_in_words),
            ("promise", f"{release.budget}-differential privacy per {whose(release)}"),
            ("neighbours", neighbours),
            ("certificate", str(release.certificate)),
            *words.scope(unit),
            *([] if release.forecast is None else expected_errors(release.forecast, unit)),
            *([] if (told := inferred(release)) is None else [("tables", told)]),
            *_others(release),
            *([] if (told := found_in_words(release)) is None else [("bounds", told)]),
            *words.warning(contradiction(release.diagnostics)),
            *words.warning(caution(release.epsilon)),
            *theorem_in_words(release.theorem),
            *([] if release.proofs is None else [("oracle", release.proofs)]),
            *_account(release, wanted),
            about_report(out),
            ("digest", read_manifest(out)["digest"]),
        ]
    )
    show_verdict(verdict(release))
    asked = example(release)
    words.next_commands(
        command("verify", out),
        command(
            "sample", out, "--rows", rows, "--out", out.with_name(release.sample_name(out.stem))
        ),
        *([] if asked is None else [command("answer", out, asked)]),
        *([command("estimate", out, figure)] if (figure := _figure(release)) else []),
    )
    shell.note(
        f"Read the report first: {out / 'report.html'}, in a browser. To publish the release, copy the "
        "folder as it is, and state its digest in another place."
    )

"""`understudy release`: from a table to a folder that can be published."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from understudy.cli import options, shell, words
from understudy.cli.plan import errors_in_words, found_in_words
from understudy.cli.progress import Stages
from understudy.errors import InputError, UnderstudyError, WorkError
from understudy.progress import Progress

if TYPE_CHECKING:
    from understudy.releases import Options, Prepared, Release
    from understudy.schema import Schema
    from understudy.source import Source

__all__ = ["about_report", "make", "release"]

_ACCOUNT = "Account"
_OUTPUT = "Output"
_HEADROOM = 32_000_000


@shell.guarded
def release(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="The private table: a CSV or Parquet file, a folder of Parquet files, a glob; or, "
            "with --table, a database (postgresql://user@host/db) or a Spark master.",
        ),
    ],
    schema: options.SchemaFile,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="The folder to write; it must not exist yet.",
            rich_help_panel=_OUTPUT,
        ),
    ],
    table: options.TableName = None,
    path: options.FilesOnSpark = None,
    memory_limit: options.MemoryLimit = None,
    epsilon: options.MaybeEpsilon = None,
    target_error: options.TargetError = None,
    target_of: options.TargetOf = options.Targets.WORST,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Spend the ε that --target-error finds without asking.",
            rich_help_panel="Privacy",
        ),
    ] = False,
    delta: options.Delta = "1e-9",
    neighbours: options.Neighbours = None,
    rows_public: options.RowsPublic = None,
    workload: options.WorkloadText = None,
    method: options.MethodName = "auto",
    settings: options.Settings = None,
    variations: options.Variations = False,
    beta: options.Beta = 0.05,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="LEDGER",
            help="Charge this ledger, which keeps a total over releases; a file, or "
            "postgresql://USER@HOST/DATABASE; needs --dataset.",
            rich_help_panel=_ACCOUNT,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", metavar="NAME", help="The name of the dataset in the ledger.",
            rich_help_panel=_ACCOUNT,
        ),
    ] = None,
    expect_head: options.ExpectHead = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", metavar="N",
            help="How many synthetic rows to make; by default as many as there seem to be.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    key: Annotated[
        int | None,
        typer.Option(
            "--key", metavar="K", min=0,
            help="Makes the public randomness (sampling) repeatable; privacy noise takes no seed.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public", metavar="DATA",
            help="Public rows in the same schema, for methods that start from such (gem, dpgan).",
            rich_help_panel="Method",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR",
            help="Keep what is released on the way here; the same command goes on after a crash "
            "without spending again.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
) -> None:  # fmt: skip
    """Release a private, certified stand-in for a table.

    Everything is checked before anything is spent, every draw is charged before it is made, and the
    folder appears whole or not at all. What is wrong inside the rows (values outside the schema,
    nulls) is private too and never reported; `schema check --data` is the look for a custodian.

    \b
    [bold]Example[/bold]
      understudy release patients.csv --schema patients.schema.toml --epsilon 1 \\
                         --out patients.release
      understudy release postgresql://ann@db.example/clinic --table visits.patients \\
                         --schema patients.schema.toml --epsilon 1 --out patients.release
    """
    from understudy.releases import Options
    from understudy.releases.bundle import require_absent
    from understudy.schema import Schema

    require_absent(out)
    loaded = Schema.load(schema)
    wanted = Options(
        epsilon=epsilon,
        target_error=target_error,
        target_of=target_of.value,
        delta=delta,
        workload=workload,
        method=method,
        parameters=options.parameters(method, settings),
        neighbours=neighbours,
        rows_public=rows_public,
        beta=beta,
        variations=variations,
        rows=rows,
        key=key,
        public=public,
        checkpoint=checkpoint,
        **options.account(ledger, dataset, expect_head),
    )
    if target_error is not None or epsilon is None:
        wanted = _agreed(loaded, wanted, yes)
    where = {"table": table, "path": path, "memory_limit": memory_limit}
    made = make(data, loaded, out, wanted, where)
    _show(made, data, out, wanted)


def make(
    data: str | Source,
    schema: Schema,
    out: Path,
    wanted: Options,
    where: Mapping[str, str | None] | None = None,
) -> Release:
    """Release and save, with progress; says what a failure has cost.

    `where` has the choices of `understudy.source.read`.
    """
    from understudy.releases import prepare, reserve
    from understudy.releases.outline import assumed_rows
    from understudy.releases.warm import warmed
    from understudy.report import save
    from understudy.source import read

    # Known before it is made, so that what it has cost can be told wherever it is interrupted.
    wanted = replace(wanted, reservation=secrets.token_hex(8))
    with Stages() as stages:
        stages(Progress("checking", 0, 1))
        try:
            source = read(data, **(where or {}))
            prepared = prepare(schema, warmed(wanted, schema, source).resolved())
            _require_space(prepared, out)
            about = prepared.forecast(assumed_rows(prepared, wanted.rows)).seconds
            stages.expect(
                about,
                f"releasing with {prepared.budget} by {prepared.method.name}, "
                f"about {words.duration(about)}",
            )
            with reserve(prepared, source, progress=stages) as reserved:
                made = reserved.run(stages)
            stages(Progress("saving", 0, 1))
            save(made, out)
        except BaseException as error:
            if wanted.checkpoint is not None:
                error.add_note(f"The same command goes on from {wanted.checkpoint}.")
            else:
                error.add_note(_aftermath(error, wanted, out))
            raise
        return made


def _agreed(schema: Schema, wanted: Options, yes: bool) -> Options:
    """With the ε that a target error needs, which is spent only if somebody has agreed to it."""
    from understudy.releases import prepare

    prepared = prepare(schema, wanted.resolved())
    assert wanted.target_error is not None
    found = found_in_words(prepared, wanted.target_error, wanted.target_of)
    if yes:
        shell.note(found)
    elif not (sys.stdin.isatty() and typer.confirm(f"{found}. Spend it?", err=True)):
        raise InputError(
            f"{found}, and nobody has agreed to it; nothing was spent. Give it, or --yes"
        )
    return replace(wanted, epsilon=prepared.budget.epsilon, target_error=None)


def _require_space(prepared: Prepared, out: Path) -> None:
    """Room for the bundle, by public facts; found before spending."""
    shape = prepared.schema.shape
    from understudy.releases.outline import assumed_rows

    size = assumed_rows(prepared, prepared.options.rows)
    largest = sorted(shape)[-2:]
    pair = largest[0] * largest[-1]
    need = _HEADROOM + 8 * size * len(prepared.schema.written) + 8 * len(shape) * pair
    free = shutil.disk_usage(out.parent).free
    if free < need:
        raise WorkError(
            f"out = {out}: the release may need {words.byte_size(need)}, but only "
            f"{words.byte_size(free)} are free there. Nothing was spent; free some space or choose "
            f"another disk"
        )


def about_report(out: Path) -> tuple[str, str]:
    """Where the report of a release lies, as a line of facts."""
    page = out / "report.html"
    if page.is_file():
        return "report", f"{page}, for people"
    return "report", f"none, it could not be made; `understudy report {out}` says why"


def _aftermath(error: BaseException, wanted: Options, out: Path) -> str:
    """What a failed or interrupted release has left and what it has cost."""
    left = ""
    if isinstance(error, KeyboardInterrupt):
        left = (
            f"The release was finished and lies in {out}."
            if out.exists()
            else "Nothing was left behind."
        )
    cost = "No account was charged." if wanted.ledger is None else _cost(wanted)
    return f"{left} {cost}".strip()


def _cost(wanted: Options) -> str:
    identity, dataset = wanted.reservation or "", wanted.dataset or ""
    try:
        with wanted.account() as ledger:
            assert ledger is not None
            if dataset not in ledger.datasets() or identity not in ledger.books(dataset).releases:
                return "Nothing was charged."
            ledger.settle(identity, "aborted", dataset=dataset)  # where it is settled, nothing
            drawn = len(ledger.books(dataset).releases[identity].charges)
            left = ledger.spent(dataset)
    except UnderstudyError as failure:
        return (
            f"Release {identity} of dataset {dataset!r} may still hold its budget ({failure}); look "
            f"with `understudy ledger show` and close it with `understudy ledger settle`."
        )
    if not drawn:
        return f"Nothing was charged to dataset {dataset!r}."
    return (
        f"Dataset {dataset!r} stays charged: {drawn} {'draw was' if drawn == 1 else 'draws were'} "
        f"made; ε = {words.number(left.remaining_epsilon)} is left."
    )


def _account(made: Release, wanted: Options) -> list[tuple[str, str]]:
    if wanted.ledger is None or wanted.dataset is None:
        return [
            ("account", "its own; to keep a total over releases, give --ledger FILE --dataset NAME")
        ]
    with wanted.account() as ledger:
        assert ledger is not None
        books, place = ledger.books(wanted.dataset), ledger.path
    own = books.made(made.facts["reservation"])
    more = books.more_like(own.budget, own.plan, own.unit)
    return [
        (
            "account",
            f"dataset {wanted.dataset!r} in {place}, with room for {more:,} more like this",
        ),
        ("head", f"{books.head}  (keep it elsewhere; see --expect-head)"),
    ]


def _show(made: Release, data: str, out: Path, wanted: Options) -> None:
    from understudy.releases.bundle import read_manifest
    from understudy.releases.outline import example
    from understudy.source import shown

    console = shell.out()
    rows, columns = made.rows.num_rows, made.rows.num_columns
    console.print(
        Text.assemble(("A stand-in for ", "bold"), shown(data), (" lies in ", "bold"), str(out))
    )
    words.facts(
        console,
        [
            ("rows", f"{rows:,} synthetic rows × {columns} columns"),
            ("promise", made.promise),
            ("certificate", str(made.certificate)),
            *errors_in_words(made.forecast, made.schema)[:1],
            *([] if made.proofs is None else [("oracle", made.proofs)]),
            *_account(made, wanted),
            about_report(out),
            ("digest", read_manifest(out)["digest"]),
        ],
    )
    console.print()
    console.print(Text("Next", style="bold"))
    for line in (
        f"understudy verify {out}",
        f"understudy sample {out} --rows {rows} --out rows.csv",
        f'understudy answer {out} "{example(made.schema)}"',
    ):
        console.print(f"  {line}", soft_wrap=True)

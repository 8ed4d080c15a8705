"""`understudy release`: from a table to a folder that can be published."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from understudy.cli import options, shell, words
from understudy.cli.plan import errors_in_words, found_in_words
from understudy.cli.progress import Stages
from understudy.errors import InputError, UnderstudyError, WorkError

if TYPE_CHECKING:
    from understudy.privacy.stores import Place
    from understudy.releases import Prepared, Release
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
    from understudy.releases.bundle import require_absent
    from understudy.schema import Schema

    require_absent(out)
    loaded = Schema.load(schema)
    if (ledger is None) != (dataset is None):
        raise InputError("--ledger and --dataset go together: give both, or neither")
    if expect_head is not None and ledger is None:
        raise InputError(
            "--expect-head is of a dataset in a ledger; give --ledger and --dataset too"
        )
    choices = {
        "epsilon": epsilon,
        "delta": delta,
        "workload": workload,
        "method": method,
        "parameters": options.parameters(method, settings),
        "neighbours": neighbours,
        "rows_public": rows_public,
        "beta": beta,
        "variations": variations,
        "rows": rows,
        "key": key,
        "public": public,
        "checkpoint": checkpoint,
    }
    account = None if ledger is None else options.ledger(ledger)
    if epsilon is None or target_error is not None:
        prepared = _found(loaded, account, dataset, target_error, target_of, choices)
        choices["epsilon"] = _agreed(prepared, target_error, target_of, yes)
    where = {"table": table, "path": path, "memory_limit": memory_limit}
    choices["expect_head"] = expect_head
    made = make(data, loaded, out, where, ledger=account, dataset=dataset, **choices)
    _show(made, data, out, account, dataset)


def make(
    data: str | Source,
    schema: Schema,
    out: Path,
    where: Mapping[str, str | None] | None = None,
    *,
    ledger: Place | None = None,
    dataset: str | None = None,
    **choices: Any,
) -> Release:
    """Release and save, with progress; says what a failure has cost.

    `where` has the choices of `understudy.source.read`.
    """
    from understudy.releases import release as work
    from understudy.releases.outline import assumed_rows
    from understudy.report import save
    from understudy.source import read

    with ExitStack() as stack:
        stages = stack.enter_context(Stages())
        stages("checking", 0, 1)
        account = None
        if ledger is not None and dataset is not None:
            account = stack.enter_context(_watched(ledger, dataset))
            choices["neighbours"] = choices["neighbours"] or account.dataset(dataset).relation
        choices["neighbours"] = choices["neighbours"] or "add-remove"

        def ready(prepared: Prepared) -> None:
            _require_space(prepared, out, choices["rows"])
            size = assumed_rows(prepared, choices["rows"])
            about = prepared.forecast(size).seconds
            stages.expect(
                about,
                f"releasing with {prepared.budget} by {prepared.method.name}, "
                f"about {words.duration(about)}",
            )

        try:
            made = work(
                read(data, **(where or {})),
                schema,
                ledger=account,
                dataset=dataset,
                progress=stages,
                before_spending=ready,
                **choices,
            )
            stages("saving", 0, 1)
            save(made, out)
        except BaseException as error:
            if choices.get("checkpoint") is not None:
                error.add_note(f"The same command goes on from {choices['checkpoint']}.")
            else:
                error.add_note(_aftermath(error, account, dataset, out))
            raise
        return made


def _found(
    schema: Schema,
    ledger: Place | None,
    dataset: str | None,
    target: float | None,
    of: options.Targets,
    choices: Mapping[str, Any],
) -> Prepared:
    """The plan with the ε that a target error needs; public facts alone, and nothing is spent."""
    from understudy.releases import prepare

    without = ("key", "public", "checkpoint")
    wanted = {name: value for name, value in choices.items() if name not in without}
    if ledger is not None and dataset is not None:
        with _watched(ledger, dataset) as account:
            known = account.dataset(dataset)
        wanted["neighbours"] = wanted["neighbours"] or known.relation
        wanted["rows_public"] = wanted["rows_public"] or known.rows_public
    wanted["neighbours"] = wanted["neighbours"] or "add-remove"
    return prepare(schema, target_error=target, target_of=of.value, **wanted)


def _agreed(prepared: Prepared, target: float | None, of: options.Targets, yes: bool) -> Fraction:
    """An ε that was found is spent only if somebody has agreed to it."""
    assert target is not None
    found = found_in_words(prepared, target, of)
    if yes:
        shell.note(found)
    elif not (sys.stdin.isatty() and typer.confirm(f"{found}. Spend it?", err=True)):
        raise InputError(
            f"{found}, and nobody has agreed to it; nothing was spent. Give it, or --yes"
        )
    return prepared.budget.epsilon


def _watched(path: Place, dataset: str) -> Any:
    """A ledger that remembers the release reserved through it, to say what a failure has cost."""
    from understudy.privacy.ledger import Ledger, Reservation

    class Watched(Ledger):
        reservation: Reservation | None = None

        def reserve(self, *args: Any, **kwargs: Any) -> Reservation:
            with shell.undisturbed():
                self.reservation = super().reserve(*args, **kwargs)
            return self.reservation

    remedy = f"open one with `understudy ledger open {path} --dataset {dataset} --epsilon TOTAL`"
    return Watched(options.existing_ledger(path, remedy))


def _require_space(prepared: Prepared, out: Path, rows: int | None) -> None:
    """Room for the bundle, by public facts; found before spending."""
    shape = prepared.schema.shape
    from understudy.releases.outline import assumed_rows

    size = assumed_rows(prepared, rows)
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


def _aftermath(error: BaseException, account: Any, dataset: str | None, out: Path) -> str:
    """What a failed or interrupted release has left and what it has cost."""
    if isinstance(error, KeyboardInterrupt):
        left = (
            f"The release was finished and lies in {out}." if out.exists()
            else "Nothing was left behind."
        )  # fmt: skip
    else:
        left = ""
    if account is None:
        cost = "No account was charged."
    elif account.reservation is None:
        cost = "Nothing was charged."
    else:
        cost = _cost(account, dataset or "")
    return f"{left} {cost}".strip()


def _cost(account: Any, dataset: str) -> str:
    identity = account.reservation.id
    try:
        account.settle(identity, "aborted")  # does nothing if it is settled, as it should be
        drawn = len(account.reservation.charged())
        left = account.spent(dataset)
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


def _account(made: Release, place: Place, dataset: str) -> list[tuple[str, str]]:
    from understudy.privacy.ledger import Ledger

    with Ledger(place) as ledger:
        books = ledger.books(dataset)
    own = books.made(made.facts["reservation"])
    more = books.more_like(own.budget, own.plan, own.unit)
    return [
        ("account", f"dataset {dataset!r} in {place}, with room for {more:,} more like this"),
        ("head", f"{books.head}  (keep it elsewhere; see --expect-head)"),
    ]


def _show(
    made: Release, data: str, out: Path, ledger: Place | None, dataset: str | None
) -> None:  # fmt: skip
    from understudy.releases.bundle import read_manifest
    from understudy.releases.outline import example
    from understudy.source import shown

    console = shell.out()
    rows, columns = made.rows.num_rows, made.rows.num_columns
    console.print(
        Text.assemble(("A stand-in for ", "bold"), shown(data), (" lies in ", "bold"), str(out))
    )
    account = [
        ("account", "its own; to keep a total over releases, give --ledger FILE --dataset NAME")
    ]
    if ledger is not None and dataset is not None:
        account = _account(made, ledger, dataset)
    words.facts(
        console,
        [
            ("rows", f"{rows:,} synthetic rows × {columns} columns"),
            ("promise", made.promise),
            ("certificate", str(made.certificate)),
            *errors_in_words(made.forecast, made.schema)[:1],
            *([] if made.proofs is None else [("oracle", made.proofs)]),
            *account,
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

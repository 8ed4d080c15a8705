"""Options that several commands share, how they are declared, and how they are read.

A command declares an option as `Annotated[type, option("--name METAVAR", help, panel)]`. Options that
belong together are the fields of a frozen dataclass; `shell.guarded` shows Typer each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from understudy.cli.commands import quoted
from understudy.errors import InputError, UnconfirmedError

if TYPE_CHECKING:
    from understudy.privacy.stores import Place
    from understudy.releases import Options
    from understudy.schema import Schema
    from understudy.units import Unit

PRIVACY, OUTPUT, ACCOUNT = "Privacy", "Output", "Account"
_METHOD, _CERTIFICATE = "Method", "Certificate"


def option(declared: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """An option, declared as `--name METAVAR`; without a metavar, Typer shows its type."""
    name, _, metavar = declared.partition(" ")
    return typer.Option(name, metavar=metavar or None, help=help, rich_help_panel=panel, **more)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """An option without a value; the help shows no type for it."""
    return typer.Option(name, metavar=" ", help=help, rich_help_panel=panel)


def argument(metavar: str, help: str) -> Any:
    """An argument, under the name that the help shows."""
    return typer.Argument(metavar=metavar, help=help)


# What several commands take


def _methods() -> list[str]:
    """What a shell completes."""
    from understudy.game.methods import METHODS

    return ["auto", *METHODS]


Relations = Literal["add-remove", "replace"]
_EPSILON = "The privacy budget ε; smaller is more private. Everything fits inside it."
MethodName = Annotated[
    str, option("--method M", "See `understudy methods`.", _METHOD, autocompletion=_methods)
]
SchemaFile = Annotated[Path, option("--schema S.toml", "The schema, confirmed.")]
NewFolder = Annotated[
    Path, option("--out DIR", "The folder to write; it must not exist yet.", OUTPUT)
]
Delta = Annotated[
    str, option("--delta D", "The δ of (ε, δ); far below 1/(number of rows).", PRIVACY)
]
TableName = Annotated[
    str | None,
    option(
        "--table T",
        "Which table of a database or of Spark's catalogue: table, or schema.table.",
        show_default=False,
    ),
]
NullTexts = Annotated[
    list[str] | None,
    option(
        "--null TOKEN",
        "A text that stands for null, in every column or, as COLUMN=TOKEN, in one; may be given "
        "several times.",
        show_default=False,
    ),
]
DropOthers = Annotated[
    bool,
    flag("--drop-other-columns", "Leave out columns of the table that the schema does not name."),
]
Epsilon = Annotated[str, option("--epsilon E", _EPSILON, PRIVACY)]
MaybeEpsilon = Annotated[str | None, option("--epsilon E", _EPSILON, PRIVACY, show_default=False)]
AsJson = Annotated[bool, flag("--json", "Print JSON, for machines.")]
Folder = Annotated[Path, argument("DIR", "The folder of a release.")]
DatasetName = Annotated[
    str | None, option("--dataset NAME", "The name of the dataset in the ledger.", ACCOUNT)
]
ExpectHead = Annotated[
    str | None,
    option(
        "--expect-head SEQ:HASH",
        "A head of the dataset that was kept elsewhere (`understudy ledger head`): refuse an "
        "account that does not contain it, such as an older copy.",
        ACCOUNT,
    ),
]
LedgerName = Annotated[
    str, argument("LEDGER", "The ledger: a file, or postgresql://USER@HOST/DATABASE.")
]


@dataclass(frozen=True)
class Target:
    """The budget, or the error that it is to be found for."""

    epsilon: MaybeEpsilon = None
    target_error: Annotated[
        str | None,
        option(
            "--target-error X",
            "Instead of --epsilon: find the least ε whose forecast error is at most X percentage "
            "points, written 0.5pp or 0.5% (or, without a unit, a share of the rows: 0.005).",
            PRIVACY,
            show_default=False,
        ),
    ] = None
    target_of: Annotated[
        Literal["worst", "mean"],
        option(
            "--target-of",
            "What --target-error speaks of: the worst cell of the workload, or the mean total "
            "variation of its marginals.",
            PRIVACY,
        ),
    ] = "worst"


@dataclass(frozen=True)
class Choices:
    """What a plan follows from, beside the budget."""

    delta: Delta = "1e-9"
    neighbours: Annotated[
        Relations | None,
        option(
            "--neighbours",
            "What two neighbouring tables differ in: one row added or removed (default), or one "
            "row replaced, which makes the number of rows public.",
            PRIVACY,
            show_default=False,
        ),
    ] = None
    rows_public: Annotated[
        int | None,
        option(
            "--rows-public N",
            "The number of rows, if anyone may know it; otherwise it is measured and charged.",
            PRIVACY,
        ),
    ] = None
    workload: Annotated[
        str | None,
        option(
            "--workload W",
            "What must come out well and is certified: marginals:2 (all pairs, default), "
            "marginals:3:64@0 (64 triples, drawn with seed 0), marginals:3:with=COLUMN (triples "
            "that hold a column), or a .json or .toml list of columns; with fem also "
            "conjunctions:2, disjunctions:2, parities:3, halfspaces:3, prefixes:1, joined by +.",
            _METHOD,
            show_default=False,
        ),
    ] = None
    purpose: Annotated[
        list[str] | None,
        option(
            "--purpose P",
            "What the rows are for. Its tables are added to the workload and come first: they get "
            "less noise, all others a little more (`understudy plan` says how much). model:TARGET "
            "for predicting a column, 'regression:Y ~ A + B', subgroups:COLUMN for comparing "
            "groups; may be given several times.",
            _METHOD,
            show_default=False,
        ),
    ] = None
    method: MethodName = "auto"
    settings: Annotated[
        list[str] | None,
        option(
            "--set NAME=VALUE",
            "A public parameter of the method; may be given several times.",
            _METHOD,
        ),
    ] = None
    variations: Annotated[
        bool,
        flag(
            "--variations",
            "Also certify the total variation of every marginal, for tighter error bars on "
            "answers.",
            _CERTIFICATE,
        ),
    ] = False
    beta: Annotated[
        float,
        option(
            "--beta P",
            "How likely the certificate may be wrong; 0.05 is 95 % confidence.",
            _CERTIFICATE,
        ),
    ] = 0.05


_POINTS = re.compile(r"\s*(pp|%|percentage points?)\s*$")


def share(text: str | None) -> float | None:
    """An error of shares: percentage points with a unit ("0.5pp", "0.5%"), without one a share."""
    if text is None:
        return None
    try:
        value = float(_POINTS.sub("", text))
    except ValueError:
        raise InputError(
            f"--target-error {text} is no error: write percentage points, such as 0.5pp, or a share, "
            f"such as 0.005"
        ) from None
    return value / 100 if _POINTS.search(text) else value


def wanted(target: Target, choices: Choices, **more: Any) -> Options:
    """The options of a release, from what was given on the command line."""
    from understudy.releases import Options

    if (target.epsilon is None) == (target.target_error is None):
        raise InputError(
            "give --epsilon E, the privacy budget, such as 1, or --target-error X, for which it is "
            "found; one of the two"
        )
    chosen = {**vars(target), **vars(choices), **more}
    chosen["target_error"] = share(target.target_error)
    settings = chosen.pop("settings")
    return Options(**chosen, parameters=parameters(choices.method, settings))


def confirmed(path: Path, data: str | None = None, table: str | None = None) -> Schema:
    """The schema of a file; where it is not confirmed, an error that names the command to answer."""
    from understudy.cli.review import resume
    from understudy.schema import Schema

    loaded = Schema.load(path)
    try:
        loaded.require_confirmed()
    except UnconfirmedError as error:
        error.add_note(f"Answer one question after the other: {resume(path, data, table)}")
        raise
    return loaded


def read_as(schema: Schema, null: Sequence[str] | None, drop_other_columns: bool) -> Schema:
    """The schema with what `--null` and `--drop-other-columns` say; a release states it."""
    told = schema.with_nulls(null) if null else schema
    return replace(told, drop_other_columns=True) if drop_other_columns else told


# Ledgers and files


def ledger(text: str | Place) -> Place:
    """A ledger file or server; as text it shows no password."""
    from understudy.privacy.stores import place

    return place(text)


def existing_ledger(text: str | Place, remedy: str) -> Place:
    """A file must be there; a server says so itself."""
    where = ledger(text)
    if isinstance(where, Path):
        require_file(where, "ledger", remedy)
    return where


def account(
    name: str | None, dataset: str | None, head: str | None = None, unit: Unit | None = None
) -> dict[str, Any]:
    """The options of a release that say where it is charged; checked before anything else is done.

    `unit` is that of the schema, for the command that opens an account for it.
    """
    if (name is None) != (dataset is None):
        raise InputError("--ledger and --dataset go together: give both, or neither")
    if name is None:
        if head is not None:
            raise InputError(
                "--expect-head is of a dataset in a ledger; give --ledger and --dataset too"
            )
        return {}
    own = "" if unit is None else f" --unit {quoted(unit.column)}"
    named = f"{quoted(name)} --dataset {quoted(dataset or '')}"
    opened = f"understudy ledger open {named} --epsilon TOTAL{own}"
    where = existing_ledger(name, f"open one with `{opened}`")
    from understudy.privacy.ledger import Ledger

    with Ledger(where) as found:
        known = found.datasets()
    if dataset not in known:
        from understudy.columns.base import near

        hint = near(str(dataset), known) or f", which has {', '.join(known) or 'none'}"
        raise InputError(
            f"dataset {dataset!r} is not in ledger {where}{hint}; open it with `{opened}`"
        )
    return {"ledger": where, "dataset": dataset, "expect_head": head}


def require_file(path: Path, what: str, remedy: str) -> None:
    """The file is there; a ledger, above all, is never made by looking for it."""
    if not path.is_file():
        state = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"{what} {path} {state}; {remedy}")


def require_new(out: Path) -> None:
    """Nothing is there yet, and its folder is."""
    if out.exists() or out.is_symlink():
        raise InputError(
            f"out = {out} exists already and is not overwritten; choose another name or remove it"
        )
    if not out.parent.is_dir():
        raise InputError(f"out = {out}: the folder {out.parent} does not exist; make it first")


def require_outside(out: Path, why: str) -> None:
    """`out` is new, and in no release's folder."""
    for parent in out.resolve().parents:
        if (parent / "release.json").is_file():
            raise InputError(
                f"out = {out} lies in the release {parent}; {why}: choose another folder"
            )
    require_new(out)


# Parameters of a method


def parameters(method: str, settings: Sequence[str] | None) -> dict[str, Any]:
    """The `--set name=value` of a method, checked against what it knows."""
    if not settings:
        return {}
    from understudy.game.methods import method as named
    from understudy.game.methods import settings as settings_of

    maker = named(method)
    known = settings_of(type(maker))
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            example = next(iter(known), "rounds")
            raise InputError(f"--set {setting}: write it as name=value, such as {example}=…")
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InputError(
                f"--set {setting}: method {maker.name} has no parameter {name!r}; it has: {listed}"
            )
        if name in chosen:
            raise InputError(f"--set {setting}: {name} is set twice")
        chosen[name] = _value(setting, text, known[name])
    return chosen


def _value(setting: str, text: str, allowed: tuple[Any, ...]) -> Any:
    from understudy.game.methods import typed

    if Any in allowed:  # a name, or an object that only Python can hand in
        return None if text == "None" else text
    try:
        value = json.loads(text.lower() if text in ("True", "False", "None") else text)
    except ValueError:
        value = None if text == "None" else text
    value = typed(f"--set {setting}: the value", value, allowed)
    if isinstance(value, (int, float)) and not value >= 0:
        raise InputError(f"--set {setting}: the value must not be below 0")
    return value

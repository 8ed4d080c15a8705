"""Options that several commands share, and how they are read."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from understudy.privacy.stores import Place

from understudy.errors import InputError

__all__ = [
    "AsJson",
    "Beta",
    "Delta",
    "Epsilon",
    "FilesOnSpark",
    "Folder",
    "LedgerName",
    "MaybeEpsilon",
    "MemoryLimit",
    "MethodName",
    "Neighbours",
    "Relations",
    "RowsPublic",
    "SchemaFile",
    "Settings",
    "TableName",
    "TargetError",
    "TargetOf",
    "Targets",
    "Variations",
    "WorkloadText",
    "parameters",
    "require_file",
]

_PRIVACY, _METHOD, _CERTIFICATE = "Privacy", "Method", "Certificate"


class Relations(StrEnum):
    """The neighbouring relations, for the help."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class Targets(StrEnum):
    """What a target error may speak of, for the help."""

    WORST = "worst"
    MEAN = "mean"


SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="S.toml", help="The schema, confirmed.")
]
Epsilon = Annotated[
    str,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="The privacy budget ε; smaller is more private. Everything fits inside it.",
        rich_help_panel=_PRIVACY,
    ),
]
MaybeEpsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="The privacy budget ε; smaller is more private. Everything fits inside it.",
        rich_help_panel=_PRIVACY,
        show_default=False,
    ),
]
TargetError = Annotated[
    float | None,
    typer.Option(
        "--target-error",
        metavar="X",
        help="Instead of --epsilon: find the least ε whose forecast error is at most X, a share of "
        "the rows such as 0.01.",
        rich_help_panel=_PRIVACY,
        show_default=False,
    ),
]
TargetOf = Annotated[
    Targets,
    typer.Option(
        "--target-of",
        help="What --target-error speaks of: the worst cell of the workload, or the mean total "
        "variation of its marginals.",
        rich_help_panel=_PRIVACY,
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        "--delta",
        metavar="D",
        help="The δ of (ε, δ); far below 1/(number of rows).",
        rich_help_panel=_PRIVACY,
    ),
]
Neighbours = Annotated[
    Relations | None,
    typer.Option(
        "--neighbours",
        help="What two neighbouring tables differ in: one row added or removed (default), or one "
        "row replaced, which makes the number of rows public.",
        rich_help_panel=_PRIVACY,
        show_default=False,
    ),
]
RowsPublic = Annotated[
    int | None,
    typer.Option(
        "--rows-public",
        metavar="N",
        help="The number of rows, if anyone may know it; otherwise it is measured and charged.",
        rich_help_panel=_PRIVACY,
    ),
]
WorkloadText = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="W",
        help="What must come out well and is certified: marginals:2 (all pairs, default), "
        "marginals:3:64@0 (64 triples, drawn with seed 0), or a .json or .toml list of columns; "
        "with fem also conjunctions:2, disjunctions:2, parities:3, prefixes:1, joined by +.",
        rich_help_panel=_METHOD,
        show_default=False,
    ),
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method", metavar="M", help="See `understudy methods`.", rich_help_panel=_METHOD
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A public parameter of the method; may be given several times.",
        rich_help_panel=_METHOD,
    ),
]
Variations = Annotated[
    bool,
    typer.Option(
        "--variations",
        help="Also certify the total variation of every marginal, for tighter error bars on "
        "answers.",
        rich_help_panel=_CERTIFICATE,
    ),
]
Beta = Annotated[
    float,
    typer.Option(
        "--beta",
        metavar="P",
        help="How likely the certificate may be wrong; 0.05 is 95 % confidence.",
        rich_help_panel=_CERTIFICATE,
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="T",
        help="Which table of a database or of Spark's catalogue: table, or schema.table.",
        show_default=False,
    ),
]
FilesOnSpark = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="DIR",
        help="On Spark, a folder of Parquet files instead of a table.",
        show_default=False,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="What reading files may take, such as 2GB; larger ones are streamed. By default half of "
        "what is free.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.")]


ExpectHead = Annotated[
    str | None,
    typer.Option(
        "--expect-head",
        metavar="SEQ:HASH",
        help="A head of the dataset that was kept elsewhere (`understudy ledger head`): refuse an "
        "account that does not contain it, such as an older copy.",
        rich_help_panel="Account",
    ),
]
LedgerName = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER", help="The ledger: a file, or postgresql://USER@HOST/DATABASE."
    ),
]


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


def account(name: str | None, dataset: str | None, head: str | None = None) -> dict[str, Any]:
    """The options of a release that say where it is charged; checked before anything else is done."""
    if (name is None) != (dataset is None):
        raise InputError("--ledger and --dataset go together: give both, or neither")
    if name is None:
        if head is not None:
            raise InputError(
                "--expect-head is of a dataset in a ledger; give --ledger and --dataset too"
            )
        return {}
    remedy = f"open one with `understudy ledger open {name} --dataset {dataset} --epsilon TOTAL`"
    return {"ledger": existing_ledger(name, remedy), "dataset": dataset, "expect_head": head}


def require_file(path: Path, what: str, remedy: str) -> None:
    """The file is there; a ledger, above all, is never made by looking for it."""
    if not path.is_file():
        state = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"{what} {path} {state}; {remedy}")


def parameters(method: str, settings: Sequence[str] | None) -> dict[str, Any]:
    """The `--set name=value` of a method, checked against what it knows."""
    if not settings:
        return {}
    from understudy.game.methods import method as named

    made = named(method)
    known = _known(made)
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise InputError(f"--set {setting}: write it as name=value, such as {_example(known)}")
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InputError(f"--set {setting}: method {made.name} has no parameter {name!r}; it "
                             f"has: {listed}")  # fmt: skip
        if name in chosen:
            raise InputError(f"--set {setting}: {name} is set twice")
        chosen[name] = _value(setting, text, known[name])
    return chosen


def _known(method: Any) -> dict[str, tuple[type, ...]]:
    """The parameters of a method and the types each may have."""
    hints = typing.get_type_hints(type(method))
    found: dict[str, tuple[type, ...]] = {}
    for field in dataclasses.fields(method):
        if field.name != "name":
            hint = hints[field.name]
            is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
            found[field.name] = typing.get_args(hint) if is_union else (hint,)
    return found


def _example(known: dict[str, tuple[type, ...]]) -> str:
    return f"{next(iter(known), 'rounds')}=…"


def _value(setting: str, text: str, allowed: tuple[type, ...]) -> Any:
    try:
        value = json.loads(text.lower() if text in ("True", "False", "None") else text)
    except ValueError:
        value = None if text == "None" else text
    if type(value) is int and int not in allowed and float in allowed:
        value = float(value)
    if Any in allowed:  # a name, or an object that only Python can hand in
        return None if text == "None" else text
    if type(value) not in allowed:
        names = {type(None): "null", bool: "true or false", int: "a whole number",
                 float: "a number", str: "a text"}  # fmt: skip
        wanted = " or ".join(names.get(kind, kind.__name__) for kind in allowed)
        raise InputError(f"--set {setting}: the value must be {wanted}")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not value > 0:
        raise InputError(f"--set {setting}: the value must be above 0")
    return value

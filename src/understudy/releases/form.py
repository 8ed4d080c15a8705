"""The form of a bundle: what is checked before anything in it is believed, or costs time or memory.

A bundle comes from strangers. Its sizes, nesting, digits and lengths have limits that are part of the
format (docs/bundle.md, "Limits"), and every field has its type: a manifest without a field, with a
field that the format does not have, or with `true` where a number belongs is refused here, with the
field's name, so that no later check meets it. Everything below raises `BundleError`.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.reading import numpy_of
from understudy.errors import BundleError
from understudy.models import copula as copulas
from understudy.models.weighted import MOST_SWAPS
from understudy.queries.classes import KINDS

MIB = 2**20
FAMILY_FILES = ("parents.parquet", "children.parquet")
"""The rows of a release of families."""
LARGEST = {
    "release.json": 32 * MIB,
    "schema.toml": 4 * MIB,
    "model.json": 16 * MIB,
    "model.npz": 4096 * MIB,
    "measurements.npz": 256 * MIB,
    "synthetic.parquet": 4096 * MIB,
    "parents.parquet": 4096 * MIB,
    "children.parquet": 4096 * MIB,
    "report.html": 2 * MIB,
}
"""The most bytes of each file."""

DEEPEST = 64
MOST_VALUES = 1_000_000
LONGEST_NUMBER = 40
LONGEST_NAME = 1024
LONGEST_TEXT = MIB
MOST_COLUMNS = 10_000
MOST_MARGINALS = 100_000
MOST_SLOTS = 10_000
MOST_TIMES = 1_000_000
MOST_KEPT = 2**24
"""Cells of all noisy tables together, beyond which a bundle leaves them out."""
BIGGEST = 2**63 - 1
FREE_CELLS, CELLS_PER_BYTE = 2**24, 64
FREE_BYTES, UNPACKED_PER_BYTE = 64 * MIB, 256

Form = Callable[[Any, str], None]


# -- files ---------------------------------------------------------------------------------------


def require_file(path: Path) -> None:
    """A plain file, neither a link nor a folder nor a pipe, of a size that its name may have."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise BundleError(f"{path.parent} lacks {path.name}; it is damaged") from None
    if not stat.S_ISREG(found.st_mode):
        raise BundleError(f"{path.name} is not a plain file")
    most = LARGEST.get(path.name, MIB)
    if found.st_size > most:
        raise BundleError(
            f"{path.name} has {found.st_size:,} bytes; a bundle's has at most {most:,}"
        )


def values(data: bytes) -> int:
    """At least as many values as a JSON text has."""
    return sum(map(data.count, (b",", b"[", b"{")))


def strict_json(data: bytes, name: str) -> Any:
    """What JSON says, if it says one thing: no key twice, no NaN, no BOM, within the limits."""
    if values(data) > MOST_VALUES:
        raise BundleError(f"{name} has more than {MOST_VALUES:,} values")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except RecursionError:
        raise BundleError(f"{name} is nested deeper than {DEEPEST}") from None
    except ValueError as error:
        raise BundleError(f"{name} is not JSON ({str(error)[:200]}); it is damaged") from None
    _require_limits(value, name)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _float(text: str) -> float:
    if len(text) > LONGEST_NUMBER or math.isinf(float(text)):
        raise ValueError(f"{text[:60]} is no number that a float can hold")
    return float(text)


def _int(text: str) -> int:
    if len(text) > LONGEST_NUMBER or abs(int(text)) > BIGGEST:
        raise ValueError(f"{text[:60]} is beyond 64 bits")
    return int(text)


def _require_limits(value: Any, name: str) -> None:
    """Walk without recursion: how deep it is nested, and how long its texts are."""
    level = [value]
    for _ in range(DEEPEST + 1):
        for each in level:
            texts = each if isinstance(each, dict) else (each,)
            if any(isinstance(text, str) and len(text) > LONGEST_TEXT for text in texts):
                raise BundleError(f"{name} has a text of more than {LONGEST_TEXT:,} characters")
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise BundleError(f"{name} is nested deeper than {DEEPEST}")


def _inside(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value if type(value) is list else ())


# -- forms of values -----------------------------------------------------------------------------


def _wrong(where: str, value: Any, wanted: str) -> BundleError:
    return BundleError(f"{where} = {repr(value)[:80]} must be {wanted}")


def _that(is_right: Callable[[Any], Any], wanted: str) -> Form:
    def check(value: Any, where: str) -> None:
        if not is_right(value):
            raise _wrong(where, value, wanted)

    return check


def _whole(low: int, high: int = BIGGEST) -> Form:
    wanted = f"a whole number from {low} to {high}"
    return _that(lambda value: type(value) is int and low <= value <= high, wanted)


def _number(low: float, high: float) -> Form:
    wanted = f"a number from {low:g} to {high:g}"
    return _that(lambda value: type(value) in (int, float) and low <= value <= high, wanted)


def _matching(pattern: str, wanted: str) -> Form:
    fits = re.compile(pattern, re.ASCII).fullmatch
    return _that(lambda value: isinstance(value, str) and fits(value), wanted)


def _text(longest: int, least: int = 0) -> Form:
    wanted = f"a text of {least} to {longest:,} characters"
    return _that(lambda value: isinstance(value, str) and least <= len(value) <= longest, wanted)


def _one_of(*constants: Any) -> Form:
    """One of these, of their type: 1 and true are two values."""
    known = [(type(each), each) for each in constants]
    return _that(lambda value: (type(value), value) in known, " or ".join(map(repr, constants)))


_any_object = _that(lambda value: type(value) is dict, "an object")


def _or_null(form: Form) -> Form:
    return lambda value, where: None if value is None else form(value, where)


def _list(form: Form, least: int = 0, most: int = MOST_VALUES) -> Form:
    def check(value: Any, where: str) -> None:
        if type(value) is not list or not least <= len(value) <= most:
            raise _wrong(where, value, f"a list of {least} to {most:,}")
        for i, each in enumerate(value):
            form(each, f"{where}[{i}]")

    return check


def _object_of(required: Mapping[str, Form], optional: Mapping[str, Form] | None = None) -> Form:
    known = {**required, **(optional or {})}

    def check(value: Any, where: str) -> None:
        _any_object(value, where)
        for name in required:
            if name not in value:
                raise BundleError(f"{where} lacks {name!r}")
        for name, inner in value.items():
            if name not in known:
                raise BundleError(f"{where} has {name[:80]!r}, which the format does not have")
            known[name](inner, f"{where}.{name}")

    return check


# -- the manifest --------------------------------------------------------------------------------

_HASH = _matching("[0-9a-f]{64}", "a sha256 in lower-case hex")
_FILE = _object_of({"sha256": _HASH, "bytes": _whole(0)})
_NAME = _text(LONGEST_NAME, 1)
_TEXT = _text(LONGEST_TEXT)
_COUNT = _whole(1, 2**53)
_POSITIVE = _number(1e-60, 1e18)
_SHARE = _number(0, 1)
_BETA = _number(1e-15, 0.5)
_EXACT = _matching(
    r"[0-9]{1,400}(\.[0-9]{1,400})?(E[+-]?[0-9]{1,3})?|[0-9]{1,400}/[1-9][0-9]{0,399}",
    "an exact decimal or a fraction, as text",
)
_RELATION = _one_of("add-remove", "replace")
_BUDGET = {"epsilon": _EXACT, "delta": _EXACT}
_UNIT = _object_of(
    {"column": _NAME, "max_rows": _whole(1, 10**6), "salt": _text(LONGEST_NAME)},
    {"family": _NAME, "equal": _whole(1, 1_000)},
)

_FIELDS: dict[str, Form] = {
    **dict.fromkeys(("sigma", "scale", "jacobian", "output_sigma", "rho"), _POSITIVE),
    **dict.fromkeys(("threshold", "values", "step", "changes", "k", "sensitivity"), _COUNT),
    **dict.fromkeys(("l1", "l2", "output_l2", "coordinates"), _COUNT),
    "rate": _number(2.0**-32, 1),
    "sides": _one_of(1, 2),
    "multipliers": _list(_POSITIVE, 1, MOST_SLOTS),
}
_EVENTS = {
    "discovery": ("sigma", "threshold", "values", "sides"),
    "gaussian": ("sigma", "step", "changes"),
    "laplace": ("scale", "l1"),
    "perturbation": (
        *("sigma", "step", "changes", "jacobian"),
        *("coordinates", "output_sigma", "output_l2"),
    ),
    "sampled gaussian": ("sigma", "l2", "coordinates", "rate", "sides"),
    "sampled groups": ("multipliers", "coordinates", "rate", "sides"),
    "sampled selection": ("scale", "sensitivity", "rate"),
    "selection": ("scale", "sensitivity", "k"),
    "zcdp": ("rho",),
}


def _by_kind(forms: Mapping[str, Form]) -> Form:
    """An object whose `kind` says which form it has."""

    def check(value: Any, where: str) -> None:
        _any_object(value, where)
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in forms:
            raise _wrong(f"{where}.kind", kind, "one of " + ", ".join(forms))
        forms[kind](value, where)

    return check


_EVENT = _by_kind(
    {
        kind: _object_of({"kind": _TEXT, **{name: _FIELDS[name] for name in names}})
        for kind, names in _EVENTS.items()
    }
)


def _slot(value: Any, where: str) -> None:
    _object_of({"purpose": _NAME, "event": _EVENT, "times": _whole(1, MOST_TIMES)})(value, where)
    if value["event"]["kind"] == "zcdp" and value["times"] != 1:
        raise _wrong(f"{where}.times", value["times"], "1: a zCDP filter is given once")


_PLAN = _list(_slot, 1, MOST_SLOTS)


def _method(value: Any, where: str) -> None:
    """A name and parameters; what a method's parameters are, the method knows."""
    _any_object(value, where)
    _NAME(value.get("name"), f"{where}.name")


def _workload(value: Any, where: str) -> None:
    _list(
        _object_of(
            {"columns": _list(_NAME, 1, MOST_COLUMNS), "weight": _POSITIVE},
            {"kind": _one_of(*sorted(KINDS))},
        ),
        1,
        MOST_MARGINALS,
    )(value, where)
    seen: set[tuple[str, frozenset[str]]] = set()
    for i, each in enumerate(value):
        columns = frozenset(each["columns"])
        key = each.get("kind", "marginals"), columns
        if len(columns) != len(each["columns"]) or key in seen:
            raise BundleError(f"{where}[{i}] names a column, or itself, twice")
        seen.add(key)


_ROWS_PUBLIC = _or_null(_whole(1))
_STAMP = {"writer": _NAME, "time": _NAME}
_FACTS = _object_of(
    {
        "schema": _HASH,
        "workload": _workload,
        "method": _method,
        "rows_public": _ROWS_PUBLIC,
        "understudy": _NAME,
    },
    {
        "declared": _TEXT,
        "request": _NAME,
        "rho": _POSITIVE,
        "certificate_share": _EXACT,
        "purposes": _list(_TEXT, 1, MOST_COLUMNS),
    },
)
_BODIES: dict[str, Form] = {
    "reserve": _object_of(
        {
            "reservation": _NAME,
            "budget": _object_of(_BUDGET),
            "relation": _RELATION,
            "noise": _NAME,
            "plan": _PLAN,
            "facts": _FACTS,
        },
        {"unit": _UNIT, **_STAMP},
    ),
    "charge": _object_of({"reservation": _NAME, "purpose": _NAME, "event": _EVENT}, _STAMP),
    "redraw": _object_of({"reservation": _NAME, "charge": _whole(0)}, _STAMP),
    "refine": _object_of(
        {
            "reservation": _NAME,
            "purpose": _NAME,
            "plan": _PLAN,
            "facts": _object_of({"schema": _HASH}),
        },
        _STAMP,
    ),
    "settle": _object_of({"reservation": _NAME, "outcome": _NAME}, _STAMP),
}
_LINK = {"seq": _whole(0), "digest": _HASH, "prev": _HASH, "hash": _HASH}
_WITHHELD = _object_of(_LINK)
_SHOWN = {
    kind: _object_of({"kind": _NAME, "body": body, **_LINK}) for kind, body in _BODIES.items()
}


def _entry(value: Any, where: str) -> None:
    shown = type(value) is dict and ("kind" in value or "body" in value)
    (_by_kind(_SHOWN) if shown else _WITHHELD)(value, where)


_KEY = _matching("-?[0-9]{1,400}", "an integer, as text")


def require_choices(reserved: Any, plan: Any, beta: float, key: int | None) -> None:
    """What is known of a manifest before anything is drawn: the reservation's body, every charge."""
    _BODIES["reserve"](reserved, "reserve")
    _PLAN(plan, "plan")
    _BETA(beta, "beta")
    if key is not None and not 0 <= key < 10**400:
        raise BundleError("key must be a whole number, at least 0, of at most 400 digits")


_MANIFEST = _object_of(
    {
        "format": _one_of("understudy release"),
        "version": _one_of(1),
        "understudy": _NAME,
        "created": _NAME,
        "private": _one_of(True, False),
        "promise": _object_of(
            {
                **_BUDGET,
                "relation": _RELATION,
                "unit": lambda value, where: None if value == "row" else _UNIT(value, where),
                "rows_public": _ROWS_PUBLIC,
                "words": _TEXT,
            }
        ),
        "method": _method,
        "workload": _workload,
        "rows": _whole(0),
        "rows_estimate": _whole(0),
        "key": _KEY,
        "certificate": _object_of(
            {
                "bound": _SHARE,
                "beta": _BETA,
                "cells": _whole(1),
                "rows": _whole(0),
                "worst": _whole(-BIGGEST),
                "rows_measured": _or_null(_whole(-BIGGEST)),
                "rows_public": _ROWS_PUBLIC,
                "variations": _or_null(_list(_SHARE, 1)),
                "variations_measured": _or_null(_list(_whole(-BIGGEST), 1)),
                "words": _TEXT,
            },
            {"population": _SHARE, "of": _one_of("queries")},
        ),
        "theorem": _or_null(
            _object_of({"bound": _number(0, 1e300), "beta": _SHARE, "statement": _TEXT})
        ),
        "ledger": _object_of({"reservation": _NAME, "entries": _list(_entry, 1)}),
        "files": _object_of(
            dict.fromkeys(("model.json", "model.npz", "schema.toml"), _FILE),
            dict.fromkeys(
                ("report.html", "measurements.npz", "synthetic.parquet", *FAMILY_FILES), _FILE
            ),
        ),
        "digest": _HASH,
    },
    {
        "forecast": _or_null(
            _object_of(
                {
                    "rows": _whole(0),
                    **dict.fromkeys(("mean", "worst", "blind"), _number(0, 1e300)),
                    **dict.fromkeys(("total_variations", "worst_cells"), _list(_number(0, 1e300))),
                    "words": _TEXT,
                },
                {
                    "variation": _number(0, 1e300),
                    **dict.fromkeys(
                        ("worst_between", "variation_between"), _list(_number(0, 1e300), 2, 2)
                    ),
                },
            )
        ),
        "remarks": _any_object,
        "families": _object_of({"parents": _whole(0), "children": _whole(0)}),
        "measurements": _list(
            _object_of(
                {
                    "columns": _list(_NAME, 1, MOST_COLUMNS),
                    "kind": _one_of("table", "cells", "queries"),
                    "sigma": _or_null(_number(0, 1e300)),
                    "times": _whole(1),
                },
                {
                    "merged": _one_of(True),
                    "draws": _whole(2, MOST_TIMES),
                    "counts": _list(_number(-1e300, 1e300)),
                },
            )
        ),
    },
)


def require_manifest(manifest: Any) -> None:
    """Every field there, none that is not, each of its type and in its range."""
    _MANIFEST(manifest, "release.json")
    forecast, marginals = manifest.get("forecast"), len(manifest["workload"])
    if forecast is not None and not (
        len(forecast["total_variations"]) == len(forecast["worst_cells"]) == marginals
    ):
        raise BundleError("release.json.forecast does not speak of every marginal once")
    for name in tables_of(manifest):
        if name not in manifest["files"]:
            raise BundleError(f"release.json.files lacks {name}")
    others = {"synthetic.parquet", *FAMILY_FILES} - set(tables_of(manifest))
    if found := sorted(others & set(manifest["files"])):
        raise BundleError(f"release.json.files: {found[0]} is of another kind of release")


def tables_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """The files with synthetic rows, and how many rows each has."""
    if "families" not in manifest:
        return {"synthetic.parquet": manifest["rows"]}
    made = manifest["families"]
    return dict(zip(FAMILY_FILES, (made["parents"], made["children"]), strict=True))


# -- model and rows ------------------------------------------------------------------------------


def require_description(description: Any) -> None:
    """`model.json`: a kind, the shape, and cliques of columns that the shape has."""
    fields = {
        "kind": _NAME,
        "shape": _list(_whole(1), 1, MOST_COLUMNS),
        "cliques": _list(_list(_whole(0, MOST_COLUMNS), 0, MOST_COLUMNS), 0, MOST_MARGINALS),
    }
    listed = _object_of({name: fields[name] for name in ("kind", "shape")})
    copula = _object_of(
        {
            "columns": _list(_whole(0, MOST_COLUMNS), 2, copulas.MOST_COLUMNS),
            "ends": _list(_list(_number(-100, 100)), 2, copulas.MOST_COLUMNS),
            "correlations": _list(_list(_number(-1, 1), 2), 2, copulas.MOST_COLUMNS),
        }
    )
    kinds = {
        "decomposable": _object_of(fields),
        "empirical": listed,
        "weighted": _object_of(fields, {"swaps": _whole(0, MOST_SWAPS), "copula": copula}),
    }
    _by_kind(kinds)(description, "model.json")
    columns = len(description["shape"])
    for clique in description.get("cliques", ()):
        if len(set(clique)) != len(clique) or any(i >= columns for i in clique):
            raise BundleError(f"model.json: the clique {clique[:20]} leaves the columns")


def require_arrays(path: Path, description: Mapping[str, Any]) -> None:
    """`model.npz`: the arrays of the description, stored, each as large as its header says."""
    tables = [f"table_{i}" for i in range(len(description.get("cliques", ())))]
    columns = [f"column_{i}" for i in range(len(description["shape"]))]
    weighted = ["weights"] * (description["kind"] == "weighted")
    wanted = tables if description["kind"] == "decomposable" else columns + weighted
    with zipfile.ZipFile(path) as archive:
        members = _members(archive, wanted, "model.json")
        if sum(m.file_size for m in members) > os.path.getsize(path):
            raise BundleError("model.npz claims more bytes than it has")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED:
                raise BundleError(f"model.npz: {member.filename} is packed; arrays are stored")
            dtype, shape = _header(archive, member)
            if dtype.kind not in "fu" or min(shape, default=0) < 0:
                raise BundleError(f"model.npz: {member.filename} is of {dtype}")


def packed_arrays(path: Path, dtypes: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """The arrays of `measurements.npz`, each a list of numbers of its type, stored or deflated.

    Nothing is unpacked before its size is known to be within what the file's own size allows.
    """
    require_file(path)
    size = os.path.getsize(path)
    with zipfile.ZipFile(path) as archive:
        members = _members(archive, dtypes, "a release's measurements")
        unpacked = sum(m.file_size for m in members)
        if unpacked > min(FREE_BYTES + UNPACKED_PER_BYTE * size, LARGEST[path.name]):
            raise BundleError(f"{path.name} unpacks to {unpacked:,} bytes from {size:,}")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BundleError(f"{path.name}: {member.filename} is packed in an unknown way")
            dtype, shape = _header(archive, member)
            if dtype.str != dtypes[member.filename.removesuffix(".npy")] or len(shape) != 1:
                raise BundleError(f"{path.name}: {member.filename} is of {dtype}, {len(shape)}-way")
        found: dict[str, NDArray[Any]] = {}
        for name in dtypes:
            with archive.open(f"{name}.npy") as file:
                found[name] = np.lib.format.read_array(file, allow_pickle=False)
        return found


def _members(archive: zipfile.ZipFile, wanted: Iterable[str], whose: str) -> list[zipfile.ZipInfo]:
    """The members of an .npz, which are the arrays that are wanted, and none twice."""
    members, name = archive.infolist(), Path(str(archive.filename)).name
    if sorted(m.filename for m in members) != sorted(f"{each}.npy" for each in wanted):
        raise BundleError(f"{name} does not hold the arrays of {whose}")
    for member in members:
        if member.flag_bits & 1:
            raise BundleError(f"{name}: {member.filename} is encrypted")
    return members


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[Any, tuple[int, ...]]:
    """Type and shape that an array claims, if it has as many bytes as they need."""
    where = f"{Path(str(archive.filename)).name}: {member.filename}"
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise BundleError(f"{where} has .npy version {version}")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
        size = math.prod(shape) * dtype.itemsize + file.tell()
    if size != member.file_size:
        raise BundleError(
            f"{where} claims the shape {str(shape)[:80]}, which needs {size:,} bytes; it has "
            f"{member.file_size:,}"
        )
    if by_column:
        raise BundleError(f"{where} is in Fortran's order")
    return dtype, shape


def most_cells(size: int) -> int:
    """How many cells, rows × columns, a Parquet file of this many bytes may have."""
    return FREE_CELLS + CELLS_PER_BYTE * size


def require_rows(path: Path, rows: int) -> None:
    """A file of rows: as many as stated, and no larger unpacked than its size allows."""
    import pyarrow.parquet as pq

    size = os.path.getsize(path)
    with pq.ParquetFile(path) as file:
        facts, schema = file.metadata, file.schema_arrow
        if facts.num_rows != rows:
            raise BundleError(f"{path.name} has {facts.num_rows} rows, not {rows}")
        cells = facts.num_rows * max(facts.num_columns, 1)
        if facts.num_columns > MOST_COLUMNS or cells > most_cells(size):
            raise BundleError(
                f"{path.name} has {size:,} bytes and claims {facts.num_rows:,} rows × "
                f"{facts.num_columns:,} columns"
            )
        if len(set(schema.names)) < len(schema.names):
            raise BundleError(f"{path.name} has two columns of one name")
        groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
        most = FREE_BYTES + UNPACKED_PER_BYTE * size
        unpacked = sum(group.total_byte_size for group in groups)
        if sum(group.num_rows for group in groups) != rows or not 0 <= unpacked <= most:
            raise BundleError(f"{path.name} unpacks to {unpacked:,} bytes from {size:,}")
    texts = [each.name for each in schema if _is_text(each.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for name in texts:  # a long text that is repeated is there once, until it is unpacked
            for chunk in file.read([name]).column(0).chunks:
                raw = chunk.dictionary.cast(pa.large_binary()).to_pylist()
                lengths = np.array([len(text or b"") for text in raw], np.int64)
                codes = numpy_of(chunk.indices.drop_null())
                most -= int((np.bincount(codes, minlength=len(lengths)) * lengths).sum())
        if most < 0:
            raise BundleError(f"{path.name} unpacks to texts beyond any file of its size")


def _is_text(type_: Any) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return str(type_) in ("string", "large_string", "binary", "large_binary")

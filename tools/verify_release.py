#!/usr/bin/env python3
"""Check a release of understudy without understudy: a second verifier, written from docs/bundle.md.

    python verify_release.py FOLDER [FOLDER ...]

One file; it needs Python 3.11, NumPy and pyarrow, and imports nothing of understudy. `verify(folder)`
carries out checks 1 to 13 of that page and returns what is wrong, [] if nothing is. Privacy is
recomputed by three accountants of its own: pure ε, zCDP, and the privacy loss distribution of the
plan, convolved with NumPy's FFT after a tilt and with a bound on its error. The plan of every method
is made again from public facts, what was measured is held against it, and the rows are drawn again
from model and key. As a program it prints what it found and exits with 1 if a release is refused.

Whether a release is the one that its custodian published, no program can tell from the folder alone:
compare the digest that is printed with the published one. Of a signature only the form is checked:
the page says how openssl checks the rest.
"""

import base64
import contextlib
import datetime
import functools
import hashlib
import io
import itertools
import json
import math
import operator
import os
import re
import stat
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SIGNATURE, MOST_SIGNATURE = "signature.dsse.json", 1 << 16
OTHERS = ("model.json", "model.npz", "schema.toml")
ROWS, FAMILIES = ("synthetic.parquet",), ("parents.parquet", "children.parquet")
PERHAPS = ("report.html", "measurements.npz")
CLOSE = 1e-9  # floats are recomputed in other orders; nothing that matters is this small
LONGEST = 2000  # characters of a reason


class Bundle:
    """The folder, parsed as far as it can be; checks read what they need and fail on what is not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plain_file(folder / "release.json")
        self.bytes = (folder / "release.json").read_bytes()
        self.manifest = parsed(self.bytes)
        fits(self.manifest, MANIFEST, "release.json")
        self.promise = self.manifest["promise"]
        self.certificate = self.manifest["certificate"]
        self.entries = self.manifest["ledger"]["entries"]

    @property
    def own(self) -> list[dict[str, Any]]:
        reservation = self.manifest["ledger"]["reservation"]
        return [e for e in self.entries if e.get("body", {}).get("reservation") == reservation]

    @property
    def reserve(self) -> dict[str, Any]:
        return self.own[0]["body"]

    @property
    def reserved(self) -> list[dict[str, Any]]:
        return self.reserve["plan"]

    @property
    def refinements(self) -> list[dict[str, Any]]:
        return [e["body"] for e in self.own if e["kind"] == "refine"]

    @property
    def plan(self) -> list[dict[str, Any]]:
        """What was reserved, with the zCDP filter as it was filled later, if it was."""
        plan = self.reserved
        for body in self.refinements:
            plan = [slot for slot in plan if slot["purpose"] != body["purpose"]] + body["plan"]
        return plan

    def event(self, purpose: str, kind: str) -> dict[str, Any]:
        found = [slot["event"] for slot in self.plan if slot["purpose"] == purpose]
        if [event["kind"] for event in found] != [kind]:
            told = " and ".join(event["kind"] for event in found) or "nothing"
            raise ValueError(f"{purpose!r} is planned as {told}, and must be one {kind}")
        return found[0]

    def schema_text(self) -> str:
        plain_file(self.folder / "schema.toml")
        return (self.folder / "schema.toml").read_bytes().decode()

    def schema_hash(self) -> str:
        """Of its bytes from the line [understudy] on; above it are only comments."""
        text = self.schema_text()
        start = text.index("[understudy]\n")
        if any(line.strip() and line[0] != "#" for line in text[:start].split("\n")):
            raise ValueError("schema.toml does not begin with [understudy]")
        return sha256(text[start:].encode())

    def schema_stated(self) -> str:
        """The digest of the schema: as reserved or, with open columns, as found."""
        facts = self.reserve["facts"]
        if "declared" not in facts:
            return facts["schema"]
        (refinement,) = self.refinements
        return refinement["facts"]["schema"]

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """What schema.toml says; of two tables, what it says of their views."""
        found = tomllib.loads(self.schema_text())
        return views(found) if "table" in found else found

    @property
    def tables(self) -> dict[str, int]:
        """The files of rows, and how many each has."""
        made = self.manifest.get("families")
        if made is None:
            return {ROWS[0]: self.manifest["rows"]}
        return {FAMILIES[0]: made["parents"], FAMILIES[1]: made["children"]}

    def unit_declared(self) -> Any:
        head = self.schema["understudy"]
        if "tables" in self.schema:
            return head["family"]
        if "read_from_rows" in head or (head.get("unit") == "?" and "max_rows" not in head):
            raise ValueError("schema.toml leaves open who is protected")
        if "unit" not in head or (head["unit"] == "row" and "max_rows" not in head):
            return "row"
        most, salt = head["max_rows"], head.get("unit_salt", "")
        if "weight" not in head:
            return {"column": head["unit"], "max_rows": most, "salt": salt}
        if head["weight"] != "equal" or type(most) is not int or not 1 <= most <= 1000:
            raise ValueError(
                "schema.toml has weights that are not equal, or of more than 1,000 rows"
            )
        shared = {"max_rows": shared_weight(range(1, most + 1)), "salt": salt, "equal": most}
        return {"column": head["unit"], **shared}

    @property
    def group(self) -> int:
        """How many rows a neighbour may differ in."""
        unit = self.promise["unit"]
        return 1 if unit == "row" else _whole(unit["max_rows"])

    def columns(self) -> list[dict[str, Any]]:
        """Those of the schema but free text, which is left out."""
        return [column for column in self.schema["column"] if column["type"] != "text"]


def verify(folder: str | Path) -> list[str]:
    """What is wrong with the release in `folder`; [] if nothing is."""
    try:
        bundle = Bundle(Path(folder))
    except Exception as error:  # noqa: BLE001 - whatever cannot be read is refused
        return [f"check 1: release.json cannot be read ({error!r})"[:LONGEST]]
    problems: list[str] = []
    for number, check in enumerate(CHECKS, 1):
        if problems and check in (check_privacy, check_drawn):  # the others are quick
            continue
        try:
            problems += (f"check {number}: {problem}"[:LONGEST] for problem in check(bundle))
        except Exception as error:  # noqa: BLE001 - nor does one hold that cannot be checked
            told = f" ({error!r})" if not problems or isinstance(error, ValueError) else " either"
            problems.append(f"check {number}: cannot be carried out{told}"[:LONGEST])
    return problems


# --- form --------------------------------------------------------------------------------------
#
# What a bundle may be before anything in it is believed: its files, the limits on what is read, and
# the fields of the manifest with their types. Limits are part of the format.

MIB = 2**20
SIZES = {
    "release.json": 32,
    "schema.toml": 4,
    "model.json": 16,
    "model.npz": 4096,
    "measurements.npz": 256,
    "synthetic.parquet": 4096,
    "parents.parquet": 4096,
    "children.parquet": 4096,
    "report.html": 2,
}  # MiB; fmt: skip


def plain_file(path: Path) -> None:
    """Not a link, a folder or a pipe, and not too large."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is no plain file")
    if found.st_size > SIZES.get(path.name, 1) * MIB:
        raise ValueError(f"{path.name} has {found.st_size} bytes, too many")


def parsed(data: bytes) -> Any:
    """JSON without a key twice, NaN, numbers beyond 64 bits or a float, deep nests, long texts."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > 1_000_000:
        raise ValueError("more than a million values")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items() if len(pairs) > 1 else ():
            if times > 1:
                raise ValueError(f"the key {key!r:.80} stands twice")
        return dict(pairs)

    def number(text: str) -> int | float:
        if len(text) > 40:
            raise ValueError(f"{text[:40]}… has too many digits")
        value = int(text) if text.lstrip("-").isdigit() else float(text)
        if not abs(value) < (2**63 if type(value) is int else math.inf):
            raise ValueError(f"{text} is too large")
        return value

    value = json.loads(data.decode(), object_pairs_hook=once, parse_constant=_no_constant,
                       parse_float=number, parse_int=number)  # fmt: skip
    todo = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if depth > 64:
            raise ValueError("nested deeper than 64")
        if isinstance(item, dict):
            todo += ((inner, depth + 1) for pair in item.items() for inner in pair)
        elif isinstance(item, list):
            todo += ((inner, depth + 1) for inner in item)
        elif isinstance(item, str) and len(item) > MIB:
            raise ValueError("a text of more than a million characters")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def is_exact(value: Any) -> bool:
    """A decimal, perhaps with an exponent of up to three digits, or p/q."""
    form = r"\d{1,400}(\.\d{1,400})?(E[+-]?\d{1,3})?|\d{1,400}/[1-9]\d{0,399}"
    return isinstance(value, str) and re.fullmatch(form, value, re.ASCII) is not None


def _is_int(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _is_number(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) in (int, float) and low <= value <= high


def _is_text(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and low <= len(value) <= high


LEAVES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "true": lambda value: value is True,
    "false": lambda value: value is False,
    "one": _is_int(1, 1),
    "side": _is_int(1, 2),
    "small": _is_int(1, 10**4),
    "count": _is_int(1, 2**53),
    "times": _is_int(1, 10**6),
    "several": _is_int(2, 10**6),
    "natural": _is_int(0, 2**63 - 1),
    "swaps": _is_int(0, 20),
    "above 0": _is_int(1, 2**63 - 1),
    "integer": _is_int(-(2**63), 2**63),
    "positive": _is_number(1e-60, 1e18),
    "share": _is_number(0, 1),
    "correlation": _is_number(-1, 1),
    "beta": _is_number(1e-15, 0.5),
    "rate": _is_number(2.0**-32, 1),
    "not negative": _is_number(0, 1e300),
    "number": _is_number(-1e300, 1e300),
    "exact": is_exact,
    "name": _is_text(1, 1024),
    "salt": _is_text(0, 1024),
    "text": _is_text(0, MIB),
    "hash": lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{64}", value)),
    "key": lambda value: isinstance(value, str) and bool(re.fullmatch("-?[0-9]{1,400}", value)),
    "object": lambda value: isinstance(value, dict),
    "anything": lambda value: True,
}
LENGTHS = {"workload": (1, 10**5), "plan": (1, 10**4), "columns": (1, 10**4), "entries": (1, 10**6),
           "multipliers": (1, 10**4), "shape": (1, 10**4), "cliques": (0, 10**5),
           "variations": (1, 10**6), "variations_measured": (1, 10**6),
           "worst_between": (2, 2), "variation_between": (2, 2),
           "purposes": (1, 10**4)}  # fmt: skip

EVENTS = [
    {"kind": "=discovery", "sigma": "positive", "threshold": "count", "values": "count",
     "sides": "side"},
    {"kind": "=gaussian", "sigma": "positive", "step": "count", "changes": "count"},
    {"kind": "=laplace", "scale": "positive", "l1": "count"},
    {"kind": "=perturbation", "sigma": "positive", "step": "count", "changes": "count",
     "jacobian": "positive", "coordinates": "count", "output_sigma": "positive",
     "output_l2": "count"},
    {"kind": "=sampled gaussian", "sigma": "positive", "l2": "count", "coordinates": "count",
     "rate": "rate", "sides": "side"},
    {"kind": "=sampled groups", "multipliers": ["positive"], "coordinates": "count",
     "rate": "rate", "sides": "side"},
    {"kind": "=sampled selection", "scale": "positive", "sensitivity": "count", "rate": "rate"},
    {"kind": "=selection", "scale": "positive", "sensitivity": "count", "k": "count"},
]  # fmt: skip
ALLOWANCE = {"kind": "=zcdp", "rho": "positive"}
PLAN = [
    (
        {"purpose": "name", "event": tuple(EVENTS), "times": "times"},
        {"purpose": "name", "event": ALLOWANCE, "times": "one"},
    )
]
UNIT = {"column": "name", "max_rows": "times", "salt": "salt", "family?": "name", "equal?": "times"}
KINDS = ("=marginals", "=conjunctions", "=disjunctions", "=parities", "=prefixes", "=halfspaces")
WORKLOAD = [{"columns": ["name"], "weight": "positive", "kind?": KINDS}]
METHOD = {"name": "name", "*": "anything"}
LINK = {"seq": "natural", "digest": "hash", "prev": "hash", "hash": "hash"}
STAMP = {"reservation": "name", "writer?": "name", "time?": "name"}
FACTS = {"schema": "hash", "workload": WORKLOAD, "method": METHOD, "understudy": "name",
         "rows_public": ("null", "above 0"), "rho": "positive", "certificate_share": "exact",
         "declared?": "text", "request?": "name", "purposes?": ["text"]}  # fmt: skip
RELATION = ("=add-remove", "=replace")
BODIES = {
    "reserve": {**STAMP, "budget": {"epsilon": "exact", "delta": "exact"}, "relation": RELATION,
                "noise": "name", "plan": PLAN, "facts": FACTS, "unit?": UNIT},
    "charge": {**STAMP, "purpose": "name", "event": (*EVENTS, ALLOWANCE)},
    "redraw": {**STAMP, "charge": "natural"},
    "refine": {**STAMP, "purpose": "name", "plan": PLAN, "facts": {"schema": "hash"}},
    "settle": {**STAMP, "outcome": "name"},
}  # fmt: skip
SHOWN = [{**LINK, "kind": f"={kind}", "body": body} for kind, body in BODIES.items()]
MODEL = {"kind": "name", "shape": ["above 0"]}
COPULA = {"columns": ["natural"], "ends": [["number"]], "correlations": [["correlation"]]}
MANIFEST = {
    "format": "=understudy release",
    "version": "one",
    "understudy": "name",
    "created": "name",
    "private": ("true", "false"),
    "promise": {"epsilon": "exact", "delta": "exact", "relation": RELATION, "unit": ("=row", UNIT),
                "rows_public": ("null", "above 0"), "words": "text"},
    "method": METHOD,
    "workload": WORKLOAD,
    "rows": "natural",
    "rows_estimate": "natural",
    "key": "key",
    "certificate": {"bound": "share", "beta": "beta", "cells": "above 0", "rows": "natural",
                    "worst": "integer", "rows_measured": ("null", "integer"),
                    "rows_public": ("null", "above 0"), "variations": ("null", ["share"]),
                    "variations_measured": ("null", ["integer"]), "words": "text",
                    "population?": "share", "of?": "=queries"},
    "theorem": ("null", {"bound": "not negative", "beta": "share", "statement": "text"}),
    "forecast?": ("null", {"rows": "natural", "mean": "not negative", "worst": "not negative",
                           "blind": "not negative", "total_variations": ["not negative"],
                           "worst_cells": ["not negative"], "words": "text",
                           "variation?": "not negative", "worst_between?": ["not negative"],
                           "variation_between?": ["not negative"]}),
    "remarks?": "object",
    "measurements": [{"columns": ["name"], "kind": ("=table", "=cells", "=queries"),
                       "sigma": ("null", "not negative"), "times": "above 0", "merged?": "true",
                       "draws?": "several", "counts?": ["number"]}],
    "ledger": {"reservation": "name", "entries": [(*SHOWN, LINK)]},
    "families?": {"parents": "natural", "children": "natural"},
    "files": {name: {"sha256": "hash", "bytes": "natural"} for name in
              (*OTHERS, *(f"{name}?" for name in (*ROWS, *FAMILIES, *PERHAPS)))},
    "digest": "hash",
}  # fmt: skip


def fits(value: Any, form: Any, where: str) -> None:
    """A form is the name of a leaf, =a text, {field: form}, [form], or a tuple of such to choose from.

    A field with ? may be absent; * stands for all others. A list is as long as LENGTHS lets it be.
    """
    if isinstance(form, tuple):
        _one_of(value, form, where)
    elif isinstance(form, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{where} = {value!r:.80} is no object")
        forms = {name.rstrip("?"): inner for name, inner in form.items()}
        if lacking := [name for name in form if name[-1] not in "?*" and name not in value]:
            raise ValueError(f"{where} lacks {', '.join(lacking)}")
        for name, inner in value.items():
            if name in forms:
                fits(inner, forms[name], f"{where}.{name}")
            elif "*" not in forms:
                raise ValueError(f"{where} has the unknown field {name!r:.80}")
    elif isinstance(form, list):
        low, high = LENGTHS.get(re.split(r"[.\[]", where.rstrip("[]0123456789"))[-1], (0, 10**6))
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise ValueError(f"{where} = {value!r:.80} is no list of {low} to {high}")
        for i, inner in enumerate(value):
            fits(inner, form[0], f"{where}[{i}]")
    elif form[0] == "=":
        if value != form[1:]:
            raise ValueError(f"{where} = {value!r:.80} is not {form[1:]!r}")
    elif not LEAVES[form](value):
        raise ValueError(f"{where} = {value!r:.80} is no {form!r}")


def _one_of(value: Any, forms: tuple[Any, ...], where: str) -> None:
    """Of several forms the one that the value's kind names, or else any."""
    if isinstance(value, dict):
        named = [
            f for f in forms if isinstance(f, dict) and f.get("kind") == f"={value.get('kind')}"
        ]
        objects = [form for form in forms if isinstance(form, dict)]
        if len(named) == 1 or len(objects) == 1:
            return fits(value, (named or objects)[0], where)
    reasons = []
    for form in forms:
        try:
            return fits(value, form, where)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError(reasons[0] if len(set(reasons)) == 1 else f"{reasons[0]}, nor {reasons[-1]}")


def stored_arrays(path: Path) -> None:
    """Every array of an .npz is stored, plain, and as large as its header says."""
    plain_file(path)
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if len({info.filename for info in infos}) < len(infos):
            raise ValueError("model.npz names an array twice")
        if sum(info.file_size for info in infos) > path.stat().st_size:
            raise ValueError("model.npz is smaller than its arrays")
        for info in infos:
            name = info.filename
            if (
                info.compress_type != zipfile.ZIP_STORED
                or info.flag_bits & 1
                or name[-4:] != ".npy"
            ):
                raise ValueError(f"model.npz: {name!r:.80} is not stored plainly")
            with archive.open(info) as file:
                if np.lib.format.read_magic(file) != (1, 0):
                    raise ValueError(f"model.npz: {name!r:.80} is not of .npy version 1.0")
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
                needed = file.tell() + math.prod(shape) * dtype.itemsize
            if fortran or dtype.kind not in "fu" or any(side < 0 for side in shape):
                raise ValueError(f"model.npz: {name!r:.80} is of {dtype}")
            if needed != info.file_size:
                raise ValueError(f"model.npz: {name!r:.80} claims the shape {shape!s:.80}")


def packed_integers(path: Path, dtypes: dict[str, str]) -> dict[str, Any]:
    """The arrays of measurements.npz: lists of integers, of which the sizes are known before."""
    plain_file(path)
    size, found = path.stat().st_size, {}
    with zipfile.ZipFile(path) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        if len(archive.infolist()) != len(dtypes) or set(infos) != {f"{d}.npy" for d in dtypes}:
            raise ValueError(f"{path.name} holds other arrays than {', '.join(dtypes)}")
        unpacked = sum(info.file_size for info in infos.values())
        if unpacked > min(64 * MIB + 256 * size, 256 * MIB):
            raise ValueError(f"{path.name} unpacks to {unpacked} bytes")
        for name, dtype in dtypes.items():
            info = infos[f"{name}.npy"]
            known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if not known or info.flag_bits & 1:
                raise ValueError(f"{path.name}: {name} is packed in an unknown way")
            with archive.open(info) as file:
                if np.lib.format.read_magic(file) != (1, 0):
                    raise ValueError(f"{path.name}: {name} is not of .npy version 1.0")
                shape, _, held = np.lib.format.read_array_header_1_0(file)
                needed = file.tell() + math.prod(shape) * held.itemsize
                if held.str != dtype or len(shape) != 1 or needed != info.file_size:
                    raise ValueError(f"{path.name}: {name} is of {held}, {shape!s:.80}")
                found[name] = np.frombuffer(file.read(), dtype)
    return found


def kept_tables(b: Bundle, shape: tuple[int, ...]) -> Iterator[str]:
    """What is wrong with measurements.npz: whether it holds the tables of the index, one by one."""
    held = packed_integers(b.folder / "measurements.npz", {"labels": "<i4", "values": "<i8"})
    at = {column["name"]: i for i, column in enumerate(modelled(b))}
    labels, read, wanted = held["labels"], 0, 0
    for made in (made for made in b.manifest["measurements"] if made["kind"] == "table"):
        sides = [shape[at[name]] for name in made["columns"]]
        if "counts" in made or made["times"] != 1:
            yield f"measurements: counts or times of {made['columns']} are not those of a kept table"
        for k, side in enumerate(sides if made.get("merged") else ()):
            own = labels[read : read + side]
            read += side
            sides[k] = len(np.unique(own))
            if len(own) != side or own.min() != 0 or own.max() != sides[k] - 1:
                yield f"measurements: labels of {made['columns']} are not 0, 1, …"
                return
        wanted += math.prod(sides)
    if read != len(labels) or wanted != len(held["values"]) or not wanted:
        yield f"measurements.npz has {len(held['values'])} values, its tables have {wanted}"


def small_enough(path: Path, rows: int) -> None:
    """That Parquet unpacks to what its size allows: 64 cells and 256 bytes a byte, and some free."""
    plain_file(path)
    size = path.stat().st_size
    with pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    if not rows == metadata.num_rows == sum(group.num_rows for group in groups):
        raise ValueError(f"{metadata.num_rows} rows, stated are {rows}")
    if metadata.num_columns > 10_000 or rows * max(1, metadata.num_columns) > 2**24 + 64 * size:
        raise ValueError(f"{size} bytes for {rows} rows of {metadata.num_columns} columns")
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("two columns have one name")
    room = 64 * MIB + 256 * size
    if not all(group.total_byte_size >= 0 for group in groups):
        raise ValueError("a group of rows has less than no bytes")
    if sum(group.total_byte_size for group in groups) > room:
        raise ValueError(f"{size} bytes unpack to more than {room}")
    for column in schema:  # texts, which a dictionary holds once and a column often
        held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if str(held) not in ("string", "large_string", "binary", "large_binary"):
            continue
        with pq.ParquetFile(path, read_dictionary=[column.name]) as file:
            for chunk in file.read([column.name]).column(0).chunks:
                for count in chunk.indices.drop_null().value_counts().to_pylist():
                    text = chunk.dictionary[count["values"]].as_py() or ""
                    bytes_ = text.encode() if isinstance(text, str) else text
                    room -= count["counts"] * len(bytes_)
        if room < 0:
            raise ValueError(f"the texts of {column.name!r:.80} unpack to too much")


# --- bytes -------------------------------------------------------------------------------------


def canonical(value: Any) -> bytes:
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def pretty(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=2)
    return (text + "\n").encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_form(b: Bundle) -> Iterator[str]:
    if pretty(b.manifest) != b.bytes:
        yield "release.json is not in its one byte form"
    if b.manifest["private"] is not True:
        yield "made with test noise"


def check_digest(b: Bundle) -> Iterator[str]:
    rest = {key: value for key, value in b.manifest.items() if key != "digest"}
    if sha256(canonical(rest)) != b.manifest["digest"]:
        yield "the manifest's digest does not match"


def check_files(b: Bundle) -> Iterator[str]:
    stated = b.manifest["files"]
    needed = {*OTHERS, *b.tables}
    if needed - set(stated) or set(stated) - needed - {*PERHAPS}:
        yield f"lists {sorted(stated)}"
    allowed = {*stated, "release.json", SIGNATURE}
    for path in b.folder.iterdir():
        if path.name not in allowed:
            yield f"{path.name} does not belong to a release"
            return
        plain_file(path)
    for name in stated:
        plain_file(b.folder / name)
        with open(b.folder / name, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
        if found != (stated[name]["sha256"], stated[name]["bytes"]):
            yield f"{name} was changed"
    if "report.html" in stated:
        problem = next(report_problems((b.folder / "report.html").read_bytes()), None)
        yield from [problem] if problem else []


# --- ledger ------------------------------------------------------------------------------------


def check_chain(b: Bundle) -> Iterator[str]:
    before = None
    for entry in b.entries:
        seq, prev = entry["seq"], entry["prev"]
        if before is not None and (type(seq) is not int or seq != before["seq"] + 1):
            yield f"entry {seq} does not follow entry {before['seq']}"
        if before is not None and prev != before["hash"]:
            yield f"entry {seq} does not link to the one before"
        if ("kind" in entry) != ("body" in entry):
            yield f"entry {seq} is neither whole nor withheld"
        if "body" in entry:
            content = {"body": entry["body"], "kind": entry["kind"]}
            if sha256(canonical(content)) != entry["digest"]:
                yield f"entry {seq} does not have its digest"
        link = {"digest": entry["digest"], "prev": prev, "seq": seq}
        if sha256(canonical(link)) != entry["hash"]:
            yield f"entry {seq} does not have its hash"
        before = entry


def check_charges(b: Bundle) -> Iterator[str]:
    own = b.own
    if any("body" in e and e not in own for e in b.entries):
        yield "an entry of another release is shown"
    if b.entries[0] != own[0] or b.entries[-1] != own[-1]:
        yield "the stretch does not run from the reservation to the last entry"
    kinds = [e["kind"] for e in own]
    later = [kind for kind in kinds if kind not in ("refine", "redraw")]
    if later != ["reserve", *["charge"] * (len(later) - 2), "settle"] or kinds.count("refine") > 1:
        yield f"its entries are {kinds}"
    again = [(e["seq"], e["body"]["charge"]) for e in own if e["kind"] == "redraw"]
    charged = [e["seq"] for e in own if e["kind"] == "charge"]
    for seq, charge in again:  # a charge whose draw was not made is drawn under once
        if type(charge) is not int or charge != max((c for c in charged if c < seq), default=None):
            yield f"entry {seq} draws again what was not the last charge"
    if len({charge for _, charge in again}) != len(again):
        yield "a charge was drawn again more than once"
    for body in b.refinements:
        (slot,) = (slot for slot in b.reserved if slot["purpose"] == body["purpose"])
        cost = sum(drawn_rho(each["event"]) * each["times"] for each in body["plan"])
        if slot["event"]["kind"] != "zcdp" or slot["times"] != 1:
            yield f"{body['purpose']!r} was filled, and is no zCDP filter"
        elif any(each["event"]["kind"] == "discovery" for each in body["plan"]):
            yield f"{body['purpose']!r} was filled by a plan with a δ of its own"
        elif cost > rho(slot["event"]) * (1 + CLOSE):
            yield f"{body['purpose']!r} was filled by a plan that costs more"
        # What a private fact asks follows from those before it, and the filled plan from all of them.
        early = own[: kinds.index("refine")]
        asked = [e["body"]["purpose"] for e in early if e["kind"] == "charge"]
        if asked != [s["purpose"] for s in b.reserved if s["purpose"] != body["purpose"]]:
            yield f"{body['purpose']!r} was filled after charges for {asked}, not those planned"
    if own[-1]["body"].get("outcome") != "finished":
        yield "the release was not finished"
    slots = {slot["purpose"]: slot for slot in b.plan}
    if len(slots) != len(b.plan):
        yield "two slots of the plan have one purpose"
    drawn: dict[str, list[dict[str, Any]]] = {purpose: [] for purpose in slots}
    for entry in own[1:-1]:
        body = entry["body"]
        if entry["kind"] in ("refine", "redraw"):
            continue
        if body["purpose"] in drawn:
            drawn[body["purpose"]].append(body["event"])
        else:
            yield f"{body['purpose']!r} was charged, not planned"
    for purpose, events in drawn.items():
        event, times = slots[purpose]["event"], slots[purpose]["times"]
        if type(times) is not int or times < 1:
            yield f"{purpose!r} is planned {times!r} times"
        if event["kind"] == "zcdp":
            if not events or sum(map(exact_rho, events)) > Fraction(_positive(event["rho"])):
                yield f"{purpose!r} does not keep to its zCDP filter"
        elif any(canonical(drawn_) != canonical(event) for drawn_ in events):
            yield f"{purpose!r} was charged with another event than planned"
        elif len(events) != times:
            yield f"{purpose!r} was charged {len(events)} times, planned {times}"


def check_facts(b: Bundle) -> Iterator[str]:
    reserve, facts = b.reserve, b.reserve["facts"]
    for name in ("epsilon", "delta"):
        if exact(reserve["budget"][name]) != exact(b.promise[name]):
            yield f"{name} is {b.promise[name]}, reserved was {reserve['budget'][name]}"
    pairs = {
        "relation": (reserve["relation"], b.promise["relation"]),
        "noise": (reserve["noise"], "opendp"),
        "unit": (b.promise["unit"], reserve.get("unit", "row")),
        "unit of the schema": (b.unit_declared(), reserve.get("unit", "row")),
        "rows_public": (facts["rows_public"], b.promise["rows_public"]),
        "method": (facts["method"], b.manifest["method"]),
        "workload": (facts["workload"], b.manifest["workload"]),
        "schema": (b.schema_stated(), b.schema_hash()),
        "declared schema": (
            facts["schema"],
            sha256(facts["declared"].encode()) if "declared" in facts else facts["schema"],
        ),
    }
    for name, (one, other) in pairs.items():
        if canonical(one) != canonical(other):
            yield f"{name} in the ledger is not that of the release"
    if b.promise["relation"] == "replace" and b.promise["rows_public"] is None:
        yield "a row is replaced, and the number of rows is not public"
    asked = [(m.get("kind", "marginals"), *sorted(m["columns"])) for m in b.manifest["workload"]]
    if len(set(asked)) < len(asked) or any(len(set(m)) < len(m) for m in asked):
        yield "the workload has a marginal, or a column of one, twice"
    at = {column["name"]: i for i, column in enumerate(modelled(b))}
    for made in (*b.manifest["workload"], *b.manifest.get("measurements", [])):
        order = [at.get(name, -1) for name in made["columns"]]
        if -1 in order or order != sorted(set(order)):
            yield f"{made['columns']} are not columns of the schema, in its order"
    forecast = b.manifest.get("forecast")
    if forecast and not (
        len(forecast["total_variations"]) == len(forecast["worst_cells"]) == len(asked)
    ):
        yield "the forecast does not speak of every marginal once"


def exact(text: str) -> Fraction:
    if not is_exact(text):
        raise ValueError(f"{text!r:.80} is not an exact number as text")
    return Fraction(text)


# --- privacy -----------------------------------------------------------------------------------


def check_privacy(b: Bundle) -> Iterator[str]:
    promised, delta = exact(b.promise["epsilon"]), exact(b.promise["delta"])
    if not (promised > 0 and 0 <= delta < 1):
        yield "the promise is none"
        return
    if b.promise["words"] != in_words(b.promise):
        yield f"the promise is {in_words(b.promise)!r}; it is stated otherwise"
    for slot in b.plan:
        event = slot["event"]
        if "sides" in event and _sides(event) < (2 if b.promise["relation"] == "replace" else 1):
            yield f"{slot['purpose']!r} counts one side of a replacement"
        if event["kind"] == "discovery" and _whole(event["values"]) < b.group:
            yield f"{slot['purpose']!r} counts fewer values than a unit may hold"
    found = epsilon(b.reserved, float(delta), b.group)
    if not found <= float(promised) * (1 + CLOSE):
        yield f"the plan costs ε = {found:.6g} at δ = {float(delta):g}, promised is {promised}"


def in_words(promise: dict[str, Any]) -> str:
    n, unit = promise["rows_public"], promise["unit"]
    who = one = "row"
    if unit != "row":
        who = unit["column"]
        one = f"{who} (at most {unit['max_rows']} of its rows count)"
        if "family" in unit:
            one = f"{who} with all its {unit['family']}"
        elif "equal" in unit:
            one = f"{who} (at most {unit['equal']} of its rows count, together as one)"
        if "family" in unit or "equal" in unit:
            n = None if n is None else n // unit["max_rows"]
    change = "replaced by another" if promise["relation"] == "replace" else "added or removed"
    if n is None:
        what = "families" if unit != "row" and "family" in unit else "rows"
        what = "units" if unit != "row" and "equal" in unit else what
        relation = f"one {one} {change}; the number of {what} is private"
    elif promise["relation"] == "replace" and unit == "row":
        relation = f"one row {change}; the number of rows ({n}) is public"
    else:
        relation = f"one {one} {change}; shares are taken of the public number {n}, "
        relation += "which does not move"
    delta = float(exact(promise["delta"]))
    told = decimal(exact(promise["epsilon"]))
    return f"(ε = {told}, δ = {delta:g})-differential privacy per {who} ({relation})"


def decimal(value: Fraction) -> str:
    """The exact decimal, or p/q if there is none."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    context = Context(prec=10 + 2 * max(map(int.bit_length, value.as_integer_ratio())))
    number = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    text = format(number, "f")
    return text if len(text) <= 24 else str(number)


def epsilon(plan: list[dict[str, Any]], delta: float, group: int = 1) -> float:
    """The smallest of three valid ε for the plan at δ: pure, zCDP, and the composed profile."""
    steps = [(slot["event"], slot["times"]) for slot in plan]
    # How far the noise of gradients as drawn may be from Gaussian noise, rounded; on the log scale.
    apart = 2.0**-38 * sum(
        _whole(event["coordinates"]) * times
        for event, times in steps
        if event["kind"] == "sampled groups"
    )
    delta *= math.exp(-apart)
    delta -= sum(discovery_delta(event) * times for event, times in steps)
    found: list[float] = [sum(group * pure(event) * times for event, times in steps)]
    if delta > 0:
        total = sum(group_rho(event, group) * times for event, times in steps)
        found.append(zcdp_epsilon(total, delta))
        if all(event["kind"] not in ("zcdp", "discovery", "perturbation") for event, _ in steps):
            found.append(profile_epsilon(steps, delta, group, found[-1]))
    return min(found) + 2 * apart


def pure(event: dict[str, Any]) -> float:
    match event["kind"]:
        case "laplace":
            return _whole(event["l1"]) / _positive(event["scale"])
        case "selection":
            return _whole(event["k"]) * _pick(event)
        case "sampled selection":
            whole = _pick(event)
            return whole + math.log1p((1 - _rate(event)) * math.expm1(-whole))
    return math.inf


def discovery_delta(event: dict[str, Any]) -> float:
    """How likely a value that one neighbour alone holds is shown: values·Φ̄((threshold − 2)/σ)."""
    if event["kind"] != "discovery":
        return 0.0
    reach = (_whole(event["threshold"]) - 2) / _positive(event["sigma"])
    return _whole(event["values"]) * math.erfc(reach / math.sqrt(2)) / 2 * (1 + 1e-12)


def group_rho(event: dict[str, Any], group: int) -> float:
    """ρ for neighbours that differ in up to `group` rows: group²·ρ, or that of a pure group·ε."""
    if event["kind"] == "discovery":
        return rho(event)  # it speaks of whole units
    whole = group * pure(event)
    alone = math.inf if math.isinf(whole) else whole * math.tanh(whole / 2)
    return rho(event) if group == 1 else min(group**2 * rho(event), alone)


def rho(event: dict[str, Any]) -> float:
    match event["kind"]:
        case "gaussian":
            changes, step = _whole(event["changes"]), _whole(event["step"])
            return changes * step**2 / (2 * _positive(event["sigma"]) ** 2)
        case "laplace" | "sampled selection":
            return pure(event) * math.tanh(pure(event) / 2)
        case "perturbation":
            # Gaussian noise in an objective's linear term, its lattice, and noise on the minimum.
            sigma = _positive(event["sigma"])
            gradient = _whole(event["changes"]) * _whole(event["step"]) ** 2 / (2 * sigma**2)
            root = math.sqrt(gradient + 4 * _positive(event["jacobian"]) ** 2)
            lattice = math.sqrt(8 * _whole(event["coordinates"])) / sigma
            output = _whole(event["output_l2"]) / _positive(event["output_sigma"])
            return (root + lattice) ** 2 + output**2 / 2
        case "selection":
            return _whole(event["k"]) * _pick(event) ** 2 / 8
        case "sampled groups":
            return _sides(event) ** 2 / (2 * _joint(event) ** 2)
        case "sampled gaussian":
            shift = _sides(event) * _whole(event["l2"])
            return shift**2 / (2 * _positive(event["sigma"]) ** 2)
        case "discovery":
            return _sides(event) * _whole(event["values"]) / (2 * _positive(event["sigma"]) ** 2)
        case "zcdp":
            return _positive(event["rho"])
    raise ValueError(f"unknown event {event['kind']!r}")


def drawn_rho(event: dict[str, Any]) -> float:
    """ρ of what is drawn, where ρ adds up: for noise within e^±η of that accounted for, a little more.

    ρ·(1 + t) + η·(2 + 1/t) for every t > 0, the least of which is this.
    """
    if event["kind"] == "discovery":
        return math.inf  # its δ is in no zCDP filter
    if event["kind"] != "sampled groups":
        return rho(event)
    eta = 2.0**-38 * _whole(event["coordinates"])
    return (math.sqrt(rho(event)) + math.sqrt(eta)) ** 2 + eta


def exact_rho(event: dict[str, Any]) -> Fraction:
    """The same without rounding, where it is a fraction: a zCDP filter is kept to the last digit."""
    match event["kind"]:
        case "gaussian":
            return event["changes"] * (event["step"] / Fraction(event["sigma"])) ** 2 / 2
        case "selection":
            return event["k"] * (event["sensitivity"] / Fraction(event["scale"])) ** 2 / 2
    return Fraction(drawn_rho(event))


def _joint(event: dict[str, Any]) -> float:
    """The multiplier of all groups together: (Σ 1/m²)^−½."""
    return 1 / math.sqrt(sum(1 / _positive(m) ** 2 for m in event["multipliers"]))


def _sides(event: dict[str, Any]) -> int:
    if event["sides"] not in (1, 2):
        raise ValueError(f"sides = {event['sides']!r} is neither 1 nor 2")
    return event["sides"]


def _rate(event: dict[str, Any]) -> float:
    rate = _positive(event["rate"])
    if rate > 1 or rate * 2.0**32 != int(rate * 2.0**32):
        raise ValueError(f"rate = {rate!r} is no multiple of 2^-32 up to 1")
    return rate


def _pick(event: dict[str, Any]) -> float:
    return 2 * _whole(event["sensitivity"]) / _positive(event["scale"])


def _whole(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r} is no positive integer")
    return value


def _positive(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ValueError(f"{value!r} is no positive number")
    return float(value)


def zcdp_epsilon(total: float, delta: float) -> float:
    """min over α > 1 of ρα + ln(1 − 1/α) − (ln δ + ln α)/(α − 1); every α is valid."""
    low, high = -12.0, 12.0  # powers of ten of α − 1
    best = math.inf
    for _ in range(6):
        powers = np.linspace(low, high, 401)
        over = 10.0**powers
        values = total * (1 + over) - np.log1p(1 / over)
        values -= (math.log(delta) + np.log1p(over)) / over
        at = int(np.argmin(values))
        best = min(best, float(values[at]))
        width = (high - low) / 100
        low, high = powers[at] - width, powers[at] + width
    return max(0.0, best)


# --- the composed profile ----------------------------------------------------------------------
#
# δ(ε) = E[(1 − e^(ε − L))₊], L the sum of the privacy losses of pairs that dominate the events.
# Gaussian losses are one, N(μ²/2, μ²), and stay exact: with X the sum of all others,
#     δ(ε) = E[δ_G(ε − X)],  δ_G(y) = Φ̄(y/μ − μ/2) − e^y·Φ̄(y/μ + μ/2)  (μ = 0: (1 − e^y)₊).
# The law of X is computed on a grid of width h. Every number below is at least the true one:
#  1. Grid. A loss is split between the two nearest grid points so that its mass under both tables
#     is kept. That is a mean-preserving spread of the likelihood ratio, so δ rises everywhere
#     ("connect the dots", Doroshenko et al. 2022). Continuous losses are integrated by four-point
#     Gauss-Legendre on pieces that no grid point divides; the integrands p − e^x·q are entire, so
#     the remainder, below 1e-13 on pieces this short, is relative.
#  2. Tilt. w(x) = P(X = x)·e^(λx − K(λ)) is a law of its own, K the logarithm of E e^(λX), and
#         δ(ε) = e^(K + K_G − λε)·Σ w(x)·γ(ε − x),  γ(y) = e^(λy − K_G)·δ_G(y) ≤ 1,
#     K_G = μ²λ(λ + 1)/2. With λ about the saddle point w lies where δ is decided, so absolute
#     errors of w are relative errors of δ.
#  3. Circle. w is convolved on a circle of N cells. What leaves the window weighs at most
#     P_w(outside)·e^(K + K_G − λε), because γ ≤ 1; P_w(outside) is bounded by Chernoff's inequality
#     on both sides. What it adds inside only raises δ.
#  4. Rounding. A transform of length N is off by at most η = (8·log₂N + 16)·u in the 2-norm,
#     relative (Higham 2002, Theorem 24.2, with a constant above his), so a part w_i has spectrum f_i
#     within e_i = η·√N·‖w_i‖₂ in every frequency, and the product of powers is within
#     Π(|f_i| + e_i)^T_i − Π|f_i|^T_i. The mean of that over all frequencies, plus η·‖w‖₂ for the way
#     back, bounds the error of each w(x), and is added to each.
#  5. Masses carry a relative error below 1e-12 a step, which a T-fold convolution of positive
#     numbers turns into at most e^(T·1e-12); losses one of 2^-46·(1 + |loss|), which shifts ε by at
#     most the sum. Both are charged. Tails that are cut off have less than δ·1e-8 together.
# Where all this exceeds δ, as it may at an absurd number of steps, zCDP is what remains.

CUT = 1e-8  # the share of δ that is spent on tails
OUTSIDE = 1e-10  # about the share of a tilted law that may leave its window
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
Part = tuple[np.ndarray, np.ndarray, int]  # losses, logarithms of their masses, independent copies
Key = tuple[Any, ...]


def profile_epsilon(
    steps: list[tuple[dict[str, Any], int]], delta: float, group: int, most: float
) -> float:
    """ε at δ of the composed dominating pairs; infinite if it is above `most`."""
    mu, apart, losses = dominating(steps, group)
    if not (mu < math.inf and most < math.inf):
        return math.inf
    delta *= math.exp(-apart)
    # One way round and the other differ where rows are sampled and one is added or removed.
    ways = {False, *(key[0] == "sampled" and key[3] == 1 for key in losses)}
    return max(_one_way(mu, losses, delta, way, most) for way in ways) + 2 * apart


def dominating(
    steps: list[tuple[dict[str, Any], int]], group: int
) -> tuple[float, float, Counter[Key]]:
    """μ of all Gaussian losses, how far noise is from Gaussian noise, and the other losses.

    A discrete Gaussian for which the continuous one would be too much keeps its lattice: noise on
    integers is log-concave, so smaller steps than `step` tell less. For groups, whose rows may move
    different coordinates, only the L2 norm is bounded, and the continuous one is used. The lattice's
    δ swings by about its squared width around that of N(x, σ²); a Gaussian loss as small as that is
    added, so that the figure is never below the closed form that others compare with. Samples of a
    group's rows are bounded by the group itself (divergences are jointly convex), and so are
    samples with hardly any noise.
    """
    squares, apart, others = 0.0, 0.0, Counter[Key]()
    whole = 2 * sum(rho(event) * times for event, times in steps)
    for event, times in steps:
        kind = event["kind"]
        if kind == "selection":
            others["range", group * _pick(event)] += _whole(event["k"]) * times
        elif kind == "gaussian":
            sigma, step = _positive(event["sigma"]), _whole(event["step"])
            copies = _whole(event["changes"]) * times
            precision, off = _continuous(sigma, group * copies)
            more = copies * step**2 * (precision - 1 / sigma**2)
            if group == 1 and (sigma < 20 or (more > 3e-5 * whole and copies * sigma < 1e7)):
                squares += (step / sigma**2) ** 2 / 4 if sigma >= 20 else 0.0
                others["lattice", step, sigma] += copies
            else:
                squares += copies * (group * step) ** 2 * precision
                apart += off
        elif kind in ("sampled gaussian", "sampled groups"):
            if kind == "sampled gaussian":
                draws = _whole(event["coordinates"]) * times
                precision, off = _continuous(_positive(event["sigma"]), draws)
                shift = _whole(event["l2"]) * math.sqrt(precision)
                apart += off
            else:
                shift = 1 / _joint(event)
            sides, rate = _sides(event), _rate(event)
            if group == 1 and rate < 1 and shift < 50:
                others["sampled", 1 / shift, rate, sides] += times
            else:
                squares += times * (group * sides * shift) ** 2
        else:
            others["response", group * pure(event)] += times
    return math.sqrt(squares), apart, others


def _continuous(sigma: float, draws: int) -> tuple[float, float]:
    """1/(σ² − c) of the Gaussian that bounds N_ℤ(x, σ²), and how far n draws are from it.

    Within a factor e^±η, η = 4·e^(−2π²c), N_ℤ(x, σ²) is what becomes of N(x, σ² − c) when y is
    rounded at random to N_ℤ(y, c): the convolution is Gaussian, and by Poisson summation
    Σ_z e^(−(z − y)²/2c) is √(2πc) within a factor 1 ± 2.01·e^(−2π²c), as that of σ² is. So n draws
    cost what those of the Gaussian do at δ·e^(−nη), and 2nη more. c is such that nη = 1e-4/σ².
    """
    c = math.log(4e4 * draws * max(1.0, sigma**2)) / (2 * math.pi**2)
    if sigma**2 < 2 * c:
        return math.inf, 0.0
    return 1 / (sigma**2 - c), draws * 4 * math.exp(-2 * math.pi**2 * c)


def _one_way(mu: float, losses: Counter[Key], delta: float, turned: bool, most: float) -> float:
    """ε at δ, at most `most`, for a Gaussian loss of μ and these others, in one direction."""
    if most <= 0:
        return 0.0  # zCDP or the pure sum says so already
    if any(key[0] != "sampled" and key[-1] > 1e3 for key in losses):
        return math.inf  # steps of ε > 1000: nothing is gained by convolving them
    if not losses:
        atom = Tilted(np.zeros(1), np.ones(1), 0.0, 0.0, 0.0)
        return _solve(atom, mu, math.log(delta), most)
    tail = CUT * delta / sum(losses.values())

    def parts(grid: float) -> list[Part]:
        return [_atoms(key, times, tail, turned, grid) for key, times in losses.items()]

    rough = parts(math.inf)
    count = sum(copies for _, _, copies in rough)
    charged = math.log1p(-CUT) - 1e-12 * count - 1e-8 * len(losses)
    span = max(float(np.ptp(values)) for values, _, _ in rough)
    room = -math.log(delta)

    def exponent(tilt: float) -> float:
        return _cumulant(rough, tilt) + mu * mu * tilt * (tilt + 1) / 2

    # Every tilt is valid. First the one of Chernoff's bound on ε, then the saddle point at the ε found.
    tilt = _least(lambda tilt: (exponent(tilt) + room) / tilt, room / most)
    found, about = math.inf, min(most, (exponent(tilt) + room) / tilt)
    for few, many in ((1 << 13, 1 << 16), (1 << 15, 1 << 21)):  # cells
        tilt = min(tilt, 50 * room / about)  # the saddle point of a bounded loss may be infinite
        grid = math.sqrt(1e-4 * about / (count * (tilt + 1)))
        window, moves = _window(rough, tilt, count * grid**2)
        width = window[1] - window[0]
        grid = max(min(grid, width / few), width / (0.99 * many), span / many)
        law = _convolved(parts(grid), grid, tilt, window, moves)
        law = law.coarser(min(math.sqrt(1e-5 * about / (tilt + 1)), 4 * width / few), grid)
        found = min(found, _solve(law, mu, charged - room, min(most, 1.05 * about)))
        about = min(about, found)
        if about <= 0:
            return 0.0
        tilt = _least(lambda tilt, at=about: exponent(tilt) - tilt * at, room / about)
    return found + 2.0**-46 * sum(
        copies * (1 + float(np.abs(values).max())) for values, _, copies in rough
    )


def _atoms(key: Key, times: int, tail: float, turned: bool, grid: float) -> Part:
    """Losses and masses of a pair, all but `tail` of it, on pieces that no multiple of `grid` cuts."""
    kind, *numbers = key
    far = math.sqrt(2 * math.log(2 / tail))
    if kind == "response":
        # Pure ε: randomised response, P(loss = ε) = 1/(1 + e^−ε); `times` of them are a binomial.
        (each,) = numbers
        mean, reach = times / (1 + math.exp(-each)), far * math.sqrt(times) / 2 + 1  # Hoeffding
        i = np.arange(max(0, math.floor(mean - reach)), min(times, math.ceil(mean + reach)) + 1)
        ratios = np.log((times - i[:-1]) / (i[:-1] + 1)) + each
        logs = np.concatenate([[0.0], np.cumsum(ratios)])
        return (2 * i - times) * each, logs - _log_sum(logs), 1
    if kind == "lattice":
        step, sigma = numbers
        z = np.arange(-math.ceil(far * sigma), math.ceil(far * sigma) + 1)
        logs = -((z / sigma) ** 2) / 2
        return step / sigma**2 * (z + step / 2), logs - _log_sum(logs), times
    if kind == "range":
        # Bounded range: the largest δ(x) of pairs whose losses are t and t − ε, over all t, is
        # (1 − e^((x − ε)/2))²/(1 − e^−ε): that of densities ∝ e^(x/2) and e^(−x/2) on [−ε, ε].
        (each,) = numbers
        cuts = grid * np.arange(math.floor(-each / grid) + 1, math.ceil(each / grid))
        x, weights = _pieces(-each, each, min(0.1, each / 32), cuts)
        return x, np.log(weights / -math.expm1(-each) / 2) + (x - each) / 2, times
    m, q, sides = numbers
    end = 1 + far * m
    low, high = _sampled_loss(np.array([-end, end]), m, q, sides)
    cuts = grid * np.arange(math.floor(low / grid) + 1, math.ceil(high / grid))
    x, weights = _pieces(-end, end, 0.02 * min(m, m * m), _outcome(cuts, m, q, sides))
    logs = np.log(weights / (m * math.sqrt(2 * math.pi))) - (x / m) ** 2 / 2
    loss = _sampled_loss(x, m, q, sides)
    return (-loss, logs, times) if turned else (loss, logs + _mixture(x, m, q), times)


def _pieces(low: float, high: float, widest: float, cuts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Nodes and weights of Gauss and Legendre on [low, high], cut as asked."""
    even = np.linspace(low, high, math.ceil((high - low) / widest) + 1)
    edges = np.unique(np.concatenate([even, cuts[(low < cuts) & (cuts < high)]]))
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()


def _mixture(x: np.ndarray, m: float, q: float) -> np.ndarray:
    """ln of (1 − q)·N(0, m²) + q·N(1, m²) over N(0, m²)."""
    return np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * m * m))


def _sampled_loss(x: np.ndarray, m: float, q: float, sides: int) -> np.ndarray:
    """Against N(0, m²) or, where a row is replaced, against (1 − q)·N(0, m²) + q·N(−1, m²)."""
    return _mixture(x, m, q) - (_mixture(-x, m, q) if sides == 2 else 0.0)


def _outcome(loss: np.ndarray, m: float, q: float, sides: int) -> np.ndarray:
    """Where the loss, which rises with x, has these values."""
    if sides == 1:
        return m * m * (loss - math.log(q) + np.log(-np.expm1(math.log1p(-q) - loss))) + 0.5
    # With r = (1 − q)/q·e^(1/2m²): x/m² = loss/2 + arsinh(r·sinh(loss/2)).
    size = np.maximum(np.abs(loss), 1e-300)
    logs = math.log1p(-q) - math.log(2 * q) + 1 / (2 * m * m) + size / 2
    logs += np.log(-np.expm1(-size))
    back = np.where(logs > 20, logs + math.log(2), np.arcsinh(np.exp(np.minimum(logs, 20))))
    return m * m * np.sign(loss) * (size / 2 + back)


def _log_sum(logs: np.ndarray) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))


def _cumulant(parts: list[Part], tilt: float) -> float:
    """K(λ): the logarithm of E e^(λX)."""
    return sum(copies * _log_sum(tilt * losses + logs) for losses, logs, copies in parts)


def _least(function: Callable[[float], float], scale: float) -> float:
    """About where a function with one minimum has it, from 0.01 to a million times `scale`."""
    low, high = -2.0, 6.0
    for _ in range(30):
        third = (high - low) / 3
        if function(scale * 10 ** (low + third)) < function(scale * 10 ** (high - third)):
            high -= third
        else:
            low += third
    return scale * 10.0**low


def _window(
    parts: list[Part], tilt: float, least: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where all but about OUTSIDE of the tilted law lies on either side, and Chernoff's steps."""
    variance, room = least, -math.log(OUTSIDE)
    for losses, logs, copies in parts:
        weights = np.exp(tilt * losses + logs - _log_sum(tilt * losses + logs))
        mean = float(weights @ losses)
        variance += copies * float(weights @ (losses - mean) ** 2)
    base = _cumulant(parts, tilt)
    moves = [math.sqrt(2 * room / variance) * share for share in (0.25, 0.5, 0.7, 1.0, 1.4)]
    top, up = min(((_cumulant(parts, tilt + m) - base + room) / m, m) for m in moves)
    bottom, down = max(((base - _cumulant(parts, tilt - m) - room) / m, m) for m in moves)
    slack = math.sqrt(least)
    return (bottom - slack, top + slack), (down, up)


@dataclass(frozen=True)
class Tilted:
    """At least e^(λx − K)·P(X = x) at the points x, and at most how much of it lies elsewhere."""

    x: np.ndarray
    weights: np.ndarray
    tilt: float
    cumulant: float
    outside: float

    def coarser(self, wide: float, grid: float) -> "Tilted":
        """The same on a wider grid, by the same split: what comes after is then cheap."""
        if wide <= grid:
            return self
        above, below = _between(self.x, wide)
        up = self.weights * (1 - below) * np.exp(self.tilt * (wide * above - self.x))
        down = self.weights * below * np.exp(self.tilt * (wide * (above - 1) - self.x))
        first, weights = _gathered(above, up, down)
        x = wide * (first + np.arange(len(weights)))
        return Tilted(x, weights, self.tilt, self.cumulant, self.outside)


def _between(losses: np.ndarray, grid: float) -> tuple[np.ndarray, np.ndarray]:
    """The grid point at or above each loss, and which share of its mass goes to the one below."""
    above = np.ceil(losses / grid).astype(np.int64)
    return above, np.clip(np.expm1(above * grid - losses) / math.expm1(grid), 0, 1)


def _gathered(above: np.ndarray, up: np.ndarray, down: np.ndarray) -> tuple[int, np.ndarray]:
    first = int(above.min()) - 1
    size = int(above.max()) - first + 1
    masses = np.bincount(above - first, up, minlength=size)
    return first, masses + np.bincount(above - 1 - first, down, minlength=size)


def _convolved(
    parts: list[Part],
    grid: float,
    tilt: float,
    window: tuple[float, float],
    moves: tuple[float, float],
) -> Tilted:
    """The tilted law of the sum on the grid, by points 1 to 4 above."""
    spread: list[Part] = []
    starts: list[int] = []
    for losses, logs, copies in parts:
        above, below = _between(losses, grid)
        masses = np.exp(logs)
        first, masses = _gathered(above, masses * (1 - below), masses * below)
        with np.errstate(divide="ignore"):
            spread.append((grid * (first + np.arange(len(masses))), np.log(masses), copies))
        starts.append(first)
    start = math.floor(window[0] / grid)
    size = 1 << (math.ceil(window[1] / grid) - start).bit_length()
    eta = (8 * math.log2(size) + 16) * 2.0**-53
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    most = np.zeros(size // 2 + 1)  # ln Π(|f| + e)^T
    over = np.zeros(size // 2 + 1)  # the same less ln Π|f|^T
    with np.errstate(divide="ignore", invalid="ignore"):
        for first, (losses, logs, copies) in zip(starts, spread, strict=True):
            tilted = tilt * losses + logs
            weights = np.exp(tilted - _log_sum(tilted))
            folded = np.bincount((first + np.arange(len(weights))) % size, weights, minlength=size)
            part = np.fft.rfft(folded)
            error = eta * math.sqrt(size) * float(np.linalg.norm(folded))
            spectrum *= part if copies == 1 else np.exp(copies * np.log(part))
            most += copies * np.log(np.abs(part) + error)
            over += copies * np.log1p(error / np.abs(part))
    spectrum[np.isnan(spectrum)] = 0  # powers of nothing
    law = np.roll(np.fft.irfft(spectrum, size), -(start % size))
    error = 2 / size * float((np.exp(most) * -np.expm1(-over)).sum())
    error += eta * float(np.linalg.norm(law))
    base, (down, up) = _cumulant(spread, tilt), moves
    bottom, top = grid * start, grid * (start + size)
    outside = math.exp(min(0.0, _cumulant(spread, tilt + up) - base - up * top))
    outside += math.exp(min(0.0, _cumulant(spread, tilt - down) - base + down * bottom))
    x = grid * (start + np.arange(size))
    return Tilted(x, np.maximum(law, 0) + error, tilt, base, outside)


def _solve(law: Tilted, mu: float, log_delta: float, most: float) -> float:
    """The least ε up to `most` whose δ, rounded up, is at most δ."""
    gaussian = mu * mu * law.tilt * (law.tilt + 1) / 2

    def log_delta_at(value: float) -> float:
        y = value - law.x
        with np.errstate(divide="ignore"):
            logs = np.log(law.weights) + law.tilt * y - gaussian + log_gaussian_delta(y, mu)
        share = float(np.exp(np.minimum(logs, 0.0)).sum()) + law.outside
        return law.cumulant + gaussian - law.tilt * value + math.log(max(share, 1e-300))

    if not log_delta_at(most) <= log_delta:
        return math.inf
    if log_delta_at(0.0) <= log_delta:
        return 0.0
    low, high = 0.0, most
    below, above = log_delta_at(low) - log_delta, log_delta_at(high) - log_delta  # signs: +, −
    for _ in range(100):  # false position (Illinois), which keeps the root between low and high
        if high - low <= 1e-8 * high:
            break
        middle = (low * above - high * below) / (above - below)
        middle = min(max(middle, low + 1e-9 * high), high - 1e-9 * high)
        value = log_delta_at(middle) - log_delta
        if value > 0:
            low, below, above = middle, value, above / 2
        else:
            high, above, below = middle, value, below / 2
    return high * (1 + 1e-13)


def log_gaussian_delta(y: np.ndarray, mu: float) -> np.ndarray:
    """ln of Φ̄(a) − e^y·Φ̄(b), a = y/μ − μ/2 and b = a + μ, rounded up; for μ = 0, of (1 − e^y)₊.

    Φ̄(x) = φ(x)·R(x) and e^y·φ(b) = φ(a), so it is φ(a)·(R(a) − R(b)), which keeps its digits.
    """
    if mu == 0:
        return np.log(-np.expm1(np.minimum(y, 0.0)))
    a = y / mu - mu / 2
    b = a + mu
    log_phi = -(a**2) / 2 - math.log(2 * math.pi) / 2
    phi, near, beyond = np.exp(log_phi), mills(np.abs(a)), mills(np.abs(b))
    other = np.where(b >= 0, phi * beyond, np.exp(np.minimum(y, 0.0)) - phi * beyond)
    outer = near * (1 + 1e-13) - beyond
    inner = 1 + 1e-13 - phi * near - other
    return np.where(a >= 0, log_phi, 0.0) + np.log(np.where(a >= 0, outer, inner))


APART = 1 / 16  # of the nodes, from 0 to 6
RATIOS = math.sqrt(math.pi / 2) * np.array(
    [math.exp(x * x / 2) * math.erfc(x / math.sqrt(2)) for x in np.arange(0, 6 + APART, APART)]
)


def mills(x: np.ndarray) -> np.ndarray:
    """R(x) = Φ̄(x)/φ(x) for x ≥ 0, to 2e-14: Taylor's series at the next node, or a continued fraction.

    R' = x·R − 1, so the terms t_n = R⁽ⁿ⁾(a)·hⁿ/n! have n·t_n = a·h·t_(n−1) + h²·t_(n−2).
    """
    ratio, small = np.empty_like(x), x < 6
    near, far = x[small], x[~small]
    node = np.rint(near / APART).astype(np.int64)
    a, before = APART * node, RATIOS[node]
    h = near - a
    term = (a * before - 1) * h
    total = before + term
    for n in range(2, 10):
        before, term = term, (a * h * term + h * h * before) / n
        total += term
    ratio[small] = total
    fraction = far / 2 + np.sqrt(far * far / 4 + 20)  # about what the rest of it comes to
    for n in range(20, 0, -1):
        fraction = far + n / fraction
    ratio[~small] = 1 / fraction
    return ratio


# --- the plan ----------------------------------------------------------------------------------
#
# A plan is a public function of the schema, the workload, the method and one number, ρ, which the
# certificate's own draw gives away. Below it is made a second time, from the table of docs/bundle.md,
# and what was reserved must be it: purposes and kinds in order, every integer, how often, and noise
# scales to 1e-9, which is far more than another order of operations can do to them.
#
# Sensitivities, in rows. `sides` is 1 where a row is added or removed and 2 where one is replaced:
#   J tables of counts       sides cells of each move by one: changes = J·sides, step = 1
#   the L1 error of a table  moves by sides: step = sides, changes = how many; on the grid 1/16 of the
#                            scores of selections, 16·sides
#   the count of a cell      moves by one, either way; its score on the grid 1/16 by 16, and on that of
#                            1/65536, where rounding adds up to 3 units, by 65,539
#   a checkpoint's score     by 256, and by 1 for rounding

GRID, FINE, SCORE = 16, 2**16, 2**16 + 3
LATTICE = 64  # of the certificate: units of 1/64 row
Slot = dict[str, Any]
Clique = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Design:
    """What a plan may depend on, all of it public. `rows` is None where their number is private."""

    columns: list[dict[str, Any]]
    shape: tuple[int, ...]
    cliques: list[Clique]
    weights: list[float]
    queries: int
    sides: int
    rows: int | None
    weight: int = 1

    def assumed(self, instead: int = 10_000) -> int:
        """The number of rows, or what rules take for it where it is private."""
        return self.rows or instead * self.weight

    def cells(self, clique: Clique) -> int:
        return math.prod(self.shape[i] for i in clique)

    def mean_cells(self, cliques: list[Clique]) -> float:
        return sum(map(self.cells, cliques)) / len(cliques)


@functools.lru_cache(maxsize=1)
def design_of(b: Bundle) -> Design:
    columns = modelled(b)
    shape = tuple(cells(column) for column in columns)
    at = {column["name"]: i for i, column in enumerate(columns)}
    asked = b.manifest["workload"]
    if sum(len(m["columns"]) ** 2 for m in asked) > 2_000_000:
        raise ValueError("the workload has too many pairs of columns for a plan")
    queries = sum(queries_of(m, {name: shape[at[name]] for name in m["columns"]}) for m in asked)
    return Design(
        columns,
        shape,
        [tuple(at[name] for name in m["columns"]) for m in asked],
        [float(m["weight"]) for m in asked],
        queries,
        2 if b.promise["relation"] == "replace" else 1,
        b.promise["rows_public"],
        b.group if "families" in b.manifest or "equal" in b.promise["unit"] else 1,
    )


def check_plan(b: Bundle) -> Iterator[str]:
    design, asked, facts = design_of(b), b.manifest["method"], b.reserve["facts"]
    name = asked["name"]
    if name not in GAMES:
        yield f"method.name = {name!r:.80} is not one of {', '.join(GAMES)}"
        return
    fits(asked, {"name": "name", **GAMES[name][1], "*": "anything"}, "method")
    others = {m.get("kind", "marginals") for m in b.manifest["workload"]} - {"marginals"}
    if others and name not in ("fem", "sepfem"):
        yield f"method.name = {name} serves marginals alone, the workload has {sorted(others)}"
    made, total, where = b.reserved, facts["rho"], "plan"
    if "declared" in facts:
        yield from closing_problems(b)
        yield from differences(made, opening(b, design, total), where)
        (refinement,) = b.refinements
        made, total, where = refinement["plan"], rho(made[-1]["event"]), "plan of the refinement"
    elif b.refinements:
        yield "a plan was filled later, and no column was open"
    share = float(exact(facts["certificate_share"]))
    varied = b.certificate["variations"] is not None
    yield from differences(made, planned(design, asked, total, share, varied), where)
    if name == "aim":
        yield from adaptive_problems(b, design)


def planned(
    design: Design, asked: dict[str, Any], total: float, share: float, varied: bool
) -> list[Slot]:
    """The number of rows where it is private, the game, the certificate, and total variations."""
    private = design.rows is None
    left = 1 - share - 2 * share * varied - 0.01 * private
    if not 0 < share <= 0.5 or left <= 0:
        raise ValueError(f"certificate_share = {share:g} leaves nothing to the game")
    slots = [gaussian("number of rows", 0.01 * total, 1)] if private else []
    slots += GAMES[asked["name"]][0](design, asked, total * left)
    slots.append(laplace("certificate", share * total, LATTICE))
    if varied:
        step = 4 if private or design.sides == 2 else 2
        many = len(design.cliques)
        slots.append(gaussian("certificate of total variation", 2 * share * total, many, step))
    return slots


def opening(b: Bundle, design: Design, total: float) -> list[Slot]:
    """What finds the domains of open columns, and the zCDP filter for all that follows."""
    schema = tomllib.loads(b.reserve["facts"]["declared"])
    declared = [c for c in schema["column"] if c["name"] not in computed(schema)]
    listed = [c for c in declared if c.get("values") == "discover"]
    cut = [c for c in declared if isinstance(c.get("bins"), dict)]
    shaped = [c for c in declared if c.get("bins") == "shape"]
    if not listed and not cut and not shaped:
        raise ValueError("no column of the declared schema is open")
    asked = 0.04 * (len(listed) + len(cut)) + 0.05 * len(shaped)
    share, shape = (each * min(1, 0.2 / asked) for each in (0.04, 0.05))
    slots: list[Slot] = []
    if listed:
        shown = float(exact(b.promise["delta"])) / 10 / len(listed) * (1 - CLOSE)
        for column in listed:  # values, then their beginnings, for equal parts of ρ and δ
            lengths = column.get("prefixes", [])
            parts = 1 + len(lengths)
            event = discovery(total * share / parts, shown / parts, b.group, design.sides)
            names = [f"values of {column['name']}"]
            names += [f"{length}-character prefixes of {column['name']}" for length in lengths]
            slots += [{"purpose": name, "event": event, "times": 1} for name in names]
    tables = [("quantiles", share, len(cut))]
    for at, part in enumerate(LEVELS, 1):
        tables.append((f"shapes, level {at} of {len(LEVELS)}", part * shape, len(shaped)))
    tables.append(("round values", 0.1 * shape, sum(map(has_round_values, shaped))))
    left = total * (1 - share * len(listed))
    for name, part, many in tables:
        if many:
            each = total * part * many
            slots.append(gaussian(name, each / b.group**2, design.sides * many))
            left -= each
    event = {"kind": "zcdp", "rho": left / b.group**2}
    return [*slots, {"purpose": "everything else", "event": event, "times": 1}]


def discovery(rho: float, shown: float, values: int, sides: int) -> dict[str, Any]:
    """The event of this cost, with the least threshold that shows a lone value so rarely."""
    sigma = math.sqrt(sides * values / (2 * rho))
    low, high = 2, 2 + math.ceil(40 * sigma)
    event = {"kind": "discovery", "sigma": sigma, "values": values, "sides": sides}
    while low < high:
        middle = (low + high) // 2
        few = discovery_delta({**event, "threshold": middle}) <= shown
        low, high = (low, middle) if few else (middle + 1, high)
    return {**event, "threshold": low}


LEVELS = (0.30, 0.22, 0.16, 0.12, 0.10)


def has_round_values(column: dict[str, Any]) -> bool:
    """Whole numbers, decimals, and moments that are known to less than a day."""
    if column["type"] == "number":
        return "decimals" in column or column["dtype"].startswith("decimal")
    finer = column.get("resolution", "second") != "day"
    return column["type"] == "integer" or (column["type"] == "datetime" and finer)


def closing_problems(b: Bundle) -> Iterator[str]:
    """What schema.toml has that neither was declared nor can have been found in an open column."""
    declared = tomllib.loads(b.reserve["facts"]["declared"])
    made = tomllib.loads(b.schema_text())
    derived = computed(declared)
    before, after = declared.pop("column"), made.pop("column")
    if declared != made or [c["name"] for c in before] != [c["name"] for c in after]:
        yield "schema.toml is not the declared schema with its open columns found"
        return
    for old, new in zip(before, after, strict=True):
        wanted = {key: value for key, value in old.items() if key not in ("values", "max_values")}
        if old["name"] in derived:  # computed, and not looked for
            wanted = old
        elif old.get("values") == "discover":
            other, lengths = wanted.pop("other", "OTHER"), wanted.pop("prefixes", [])
            texts = sorted({*new["values"]} - {other})
            left, levels = old.get("max_values", 64), [0, *lengths]
            stars = {n: [t for t in texts if t[-1:] == "*" and len(t) == n + 1] for n in lengths}
            stars[0] = [text for text in texts if not any(text in stars[n] for n in lengths)]
            for at, length in enumerate(levels, 1):  # each may use half of what is left
                if len(stars[length]) > (left if at == len(levels) else (left + 1) // 2):
                    yield f"column {old['name']!r} has more values than could be found"
                left -= len(stars[length])
            wanted |= {"values": texts, "other": other} if texts else {"values": [other]}
            if any(stars[length] for length in lengths):
                wanted["prefixes"] = lengths
        elif isinstance(old.get("bins"), dict):
            low, high, bins = (wanted.pop(key) for key in ("lower", "upper", "bins"))
            edges = new.get("edges", [])
            inside = [edge for edge in edges if low < edge < high]
            if len(edges) <= bins["quantiles"] + 1 and inside == sorted({*inside}):
                wanted["edges"] = [low, *inside, high]
        elif old.get("bins") == "shape":
            del wanted["bins"]
            low, high = (wanted.pop(key, None) for key in ("lower", "upper"))
            edges, shape = new.get("edges", []), new.get("shape", {})
            below = low is not None and point(edges[0], new) < point(low, new)
            above = high is not None and point(edges[-1], new) > point(high, new)
            if not below and not above and nests(shape, edges, new):
                wanted |= {"edges": edges, "shape": shape}
        else:
            wanted = old
        if isinstance(old.get("bins"), dict | str) and decimals_of(new) == decimals_of(old):
            wanted = {**wanted, **{k: new[k] for k in ("decimals",) if k in new}}
        usual = {"resolution": "second"} if old["type"] == "datetime" else {}
        if {**usual, **new} != {**usual, **wanted}:
            yield f"column {old['name']!r} of schema.toml is neither what was declared nor found"


def nests(shape: dict[str, Any], edges: list[Any], column: dict[str, Any]) -> bool:
    """Whether the leaves of a shape are parts of the cells, with weights that are whole numbers.

    And whether the numbers of each kind of round values can be counted (`kinds_fault`).
    """
    leaves, weights = shape["leaves"], shape["weights"]
    rising = all(a < b for values in (leaves, edges) for a, b in itertools.pairwise(values))
    decades, rounds, steps = (shape.get(key, []) for key in ("decades", "roundness", "steps"))
    numbers = [*weights, *rounds]
    longest = max(len(leaves) / 2**16, len(decades) / 64)
    starts = [leaf_at(edge, column) for edge in edges]
    *firsts, last = starts
    after = last + 1 if isinstance(last, int) else math.nextafter(last, math.inf)
    return (
        set(shape) <= {"leaves", "weights", "decades", "steps", "rests", "roundness"}
        and rising
        and len(leaves) == len(weights) + 1
        and longest <= 1
        and all(type(number) is int and 0 <= number < 2**63 for number in numbers)
        and all(a < b for a, b in itertools.pairwise(decades))
        and not kinds_fault(steps, shape.get("rests", []))
        and all(type(x) is int and -(2**63) <= x < 2**63 for x in decades)
        and len(rounds) == max(len(decades) - 1, 0) * (len(steps) + 1)
        and firsts[0] == leaves[0]
        and set(firsts) <= set(leaves[:-1])
        and leaves[-1] in (last, after)
    )


def kinds_fault(steps: list[Any], rests: list[Any]) -> str:
    """Why numbers cannot be counted by their kinds, the first step and rest that fit; "" if they can.

    First some steps above 100 without a rest, each a multiple of the next one. All others repeat after
    P numbers, P at most 100 and a divisor of the larger steps, and each of them, as well as none, is
    the kind of one of P numbers.
    """
    if any(type(x) is not int or not 0 <= x < 2**63 for x in [*steps, *rests]) or len(steps) > 64:
        return "steps and rests are not at most 64 whole numbers from 0 of 64 bits"
    if rests and len(rests) != len(steps):
        return f"{len(steps)} steps have {len(rests)} rests"
    kinds = list(zip(steps, rests or [0] * len(steps), strict=True))
    if any(rest >= step for step, rest in kinds):
        return "a rest is not below its step"
    large = [step for step in steps if step > 100]
    if steps[: len(large)] != large or any(rests[: len(large)]):
        return "steps above 100 are not the first, or have rests"
    if any(a % b or a == b for a, b in itertools.pairwise(large)):
        return "a step above 100 is no larger multiple of the next"
    period = math.lcm(*steps[len(large) :])
    if period > 100 or any(step % period for step in large):
        return "steps up to 100 do not repeat within 100 numbers, or not within a larger step"
    held = {kind_of(x, kinds[len(large) :]) for x in range(period)}
    return "" if len(held) == len(steps) - len(large) + 1 else "a kind has no numbers of its own"


def kind_of(number: int, kinds: list[tuple[int, int]]) -> int:
    """The first step and rest that the absolute value of a number has; after all, if none."""
    fits = (at for at, (step, rest) in enumerate(kinds) if abs(number) % step == rest)
    return next(fits, len(kinds))


def decimals_of(column: dict[str, Any]) -> int | None:
    """How many decimals a number has, by itself or by its type; None for doubles."""
    scale = re.fullmatch(r"decimal128\(\d+, (\d+)\)", column["dtype"])
    return column.get("decimals", int(scale[1]) if scale else None)


def leaf_at(edge: Any, column: dict[str, Any]) -> int | float:
    """An edge as leaves count it: whole numbers of the least unit, or a double."""
    if column["type"] == "number":
        decimals = decimals_of(column)
        exact = Fraction(repr(edge))
        return float(edge) if decimals is None else math.ceil(exact * 10**decimals)
    return tick(edge, column)


def differences(made: list[Slot], wanted: list[Slot], where: str) -> Iterator[str]:
    """How a plan is not the one that its method makes; None stands for what other checks hold."""
    names, expected = ([slot["purpose"] for slot in plan] for plan in (made, wanted))
    if names != expected:
        at = next(
            (i for i, (one, two) in enumerate(zip(names, expected, strict=False)) if one != two),
            min(len(names), len(expected)),
        )
        found, right = ([*plan, "nothing"][at] for plan in (names, expected))
        yield f"{where}[{at}] is {found!r:.80}, the method draws {right!r:.80} there"
        return
    for slot, other in zip(made, wanted, strict=True):
        name = f"{where}: {slot['purpose']!r:.80}"
        if slot["times"] != other["times"]:
            yield f"{name} has times = {slot['times']}, the method draws it {other['times']} times"
        event, right = slot["event"], other["event"]
        if event["kind"] != right["kind"]:
            yield f"{name} is {event['kind']!r}, the method draws {right['kind']!r}"
            continue
        for key, value in right.items():
            if value is not None and not alike(event[key], value):
                yield f"{name} has {key} = {event[key]!s:.80}, the method's is {value!s:.80}"


def alike(one: Any, two: Any) -> bool:
    if isinstance(two, list):  # multipliers, which are found by trial
        return len(one) == len(two) and np.allclose(one, two, rtol=1e-6, atol=0)
    return math.isclose(one, two, rel_tol=CLOSE) if isinstance(two, float) else one == two


def gaussian(purpose: str, rho: float, changes: int, step: int = 1, times: int = 1) -> Slot:
    """A draw that costs ρ; and so below."""
    sigma = step * math.sqrt(changes / (2 * rho))
    event = {"kind": "gaussian", "sigma": sigma, "step": step, "changes": changes}
    return {"purpose": purpose, "event": event, "times": times}


def selection(purpose: str, rho: float, sensitivity: int, times: int = 1, k: int = 1) -> Slot:
    scale = sensitivity * math.sqrt(k / (2 * rho))
    event = {"kind": "selection", "scale": scale, "sensitivity": sensitivity, "k": k}
    return {"purpose": purpose, "event": event, "times": times}


def laplace(purpose: str, rho: float, l1: int) -> Slot:
    event = {"kind": "laplace", "scale": l1 / pure_for(rho), "l1": l1}
    return {"purpose": purpose, "event": event, "times": 1}


def pure_for(rho: float) -> float:
    """The ε whose ε·tanh(ε/2) is ρ."""
    low, high = 0.0, 2 + 2 * rho
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low


# What each method draws with a share ρ of its own. Numbers in the rules are the methods'; what rests
# on a sensitivity is in the list above.


def _independent(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    return [gaussian("one-way marginals", rho, d.sides * len(d.shape))]


def _gaussian(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    return [gaussian("all marginals of the workload", rho, d.sides * len(_all_marginals(d)))]


def _all_marginals(d: Design) -> set[Clique]:
    """Those of the workload, and columns that none of them holds."""
    held = {i for clique in d.cliques for i in clique}
    return {*d.cliques, *((i,) for i in range(len(d.shape)) if i not in held)}


def _mst(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    edges = len(d.shape) - 1
    if edges == 0:
        return [gaussian("one-way marginals", rho, d.sides)]
    whole = p["one_ways"] + p["selection"] + p["pairs"]
    return [
        gaussian("one-way marginals", rho * p["one_ways"] / whole, d.sides * len(d.shape)),
        selection("select tree edges", rho * p["selection"] / whole / edges, GRID * d.sides, edges),
        gaussian("tree pairs", rho * p["pairs"] / whole, d.sides * edges),
    ]


def _mwem(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    rounds = p["rounds"] or max(1, round(0.9 * math.sqrt(d.assumed() * math.sqrt(2 * rho))))
    share = p["selection"] if p["measure"] else 1.0
    slots = [selection("select a cell", rho * share / rounds, GRID, rounds)]
    if p["measure"]:
        slots.append(gaussian("measure the cell", rho * (1 - share) / rounds, 1, times=rounds))
    return slots


def _frankwolfe(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    rounds = p["rounds"] or max(1, round(2 * math.sqrt(d.assumed() * math.sqrt(2 * rho))))
    return [selection("select a vertex", rho / rounds, SCORE, rounds)]


def _fem(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    kappa = d.assumed() * math.sqrt(2 * rho)
    most = 88 * kappa / math.log(2 * d.queries) ** 2.5
    rounds = p["rounds"] or max(1, round(min(2 * math.sqrt(kappa), most)))
    return [selection("pick a query", rho / rounds, SCORE, rounds)]


def _sizes(d: Design, p: dict[str, Any], rho: float) -> tuple[int, int]:
    """Rounds and draws a round of weights over queries."""
    kappa = d.assumed() * math.sqrt(2 * rho)
    root = math.sqrt(kappa)
    telling = 3 * (kappa / (5 * math.log(2 * d.queries))) ** 2
    draws = min(2 * root * max(3, root / 15), telling)
    samples = p["samples"] or min(100, max(1, int(draws / (p["rounds"] or 2 * root) + 1e-9)))
    rounds = p["rounds"] or min(400, max(2, round(min(draws / samples, 3 * root))))
    if rounds > 10_000:
        raise ValueError(f"method.rounds = {rounds} is more than a plan may have")
    return rounds, samples


def _dualquery(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    """One inverse temperature for all rounds: ρ goes with (t − 1)²."""
    rounds, samples = _sizes(d, p, rho)
    squares = (rounds - 1) * rounds * (2 * rounds - 1) / 6
    return [
        selection(f"queries of round {t}", rho * (t - 1) ** 2 / squares, SCORE, k=samples)
        for t in range(2, rounds + 1)
    ]


def _dqrs(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    """The B = n/η, in rows, at which coins, where they cost less, and draws anew cost ρ."""
    fresh = p["fresh"] or (math.ceil(p["samples"] / 2) if p["samples"] else None)
    rounds, fresh = _sizes(d, {**p, "samples": fresh}, rho)
    samples = p["samples"] or 2 * fresh
    t = np.arange(1, rounds)
    share = -math.expm1(-0.3)
    coin = 1 / (8 * share**2)
    tossed = coin * samples < (samples - fresh) * t**2 / 2
    few = np.where(tossed, fresh, samples)
    rising = (t / (rounds - 1)) ** 0.25
    high = math.sqrt(float(((tossed * coin * samples + few * t**2 / 2) / rising**2).sum()) / rho)
    slots: list[Slot] = []
    for at in range(rounds - 1):
        own = high * float(rising[at])
        if tossed[at]:
            event = {"kind": "selection", "scale": 2 * SCORE * own * share, "sensitivity": SCORE,
                     "k": samples}  # fmt: skip
            slots.append({"purpose": f"coins of round {at + 2}", "event": event, "times": 1})
        scale = SCORE * own / (at + 1)
        event = {"kind": "selection", "scale": scale, "sensitivity": SCORE, "k": int(few[at])}
        slots.append({"purpose": f"queries of round {at + 2}", "event": event, "times": 1})
    return slots


def _aim(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    columns = len(d.shape)
    first = 0.9 * rho * columns / (p["rounds"] or 16 * columns)
    rest = {"purpose": "adaptive rounds", "event": {"kind": "zcdp", "rho": rho - first}, "times": 1}
    return [gaussian("one-way marginals", first, d.sides * columns), rest]


def _pairs(d: Design) -> dict[Clique, float]:
    """Pairs inside marginals of the workload, and how much of it holds each."""
    wanted: dict[Clique, float] = {}
    for clique, weight in zip(d.cliques, d.weights, strict=True):
        for pair in combinations(clique, 2):
            wanted[pair] = wanted.get(pair, 0.0) + weight
    return wanted


def _pairs_share(d: Design, pairs: list[Clique], rho: float, rows: int) -> float:
    """0.45·min(1, 2n/(Kσ)), K the mean cells of a pair and σ its noise at a share of 0.45."""
    sigma = math.sqrt(d.sides * len(pairs) / (0.9 * rho))
    return round(0.45 * min(1.0, 2 * rows / (d.mean_cells(pairs) * sigma)), 6)


def _maxent(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    pairs, rows = _heaviest(d, p["pairs"]), d.assumed(20_000)
    quanta = _quanta(p, pairs)
    if not pairs:
        return _one_ways(d, rho)
    hidden = rows < 60 * math.sqrt(d.sides * len(pairs) / (0.9 * rho))
    if hidden and len(pairs) > 20 * len(d.shape):
        picks, heavy = math.ceil(len(d.shape) / 2), _pair_tiers(d, pairs)[:-1]
        return [
            *_one_ways(d, 0.25 * rho),
            *_tiered(d, heavy, 0.3 * rho),
            selection("select the worst", 0.1 * rho / 4, GRID * d.sides, 4, picks),
            gaussian(
                "measure the worst", (0.35 if heavy else 0.65) * rho / 4, d.sides * picks, times=4
            ),
        ]
    share = _pairs_share(d, pairs, rho, rows)
    larger = {clique for clique in d.cliques if len(clique) > 2}
    higher = 0.01 if larger else 0.0
    one = 1 - share - 0.04 - higher - 0.41
    outside = _outside(d, p, pairs)
    rho /= one + max(share, 1e-6) + 0.04 + higher + 0.41 + 0.005 * len(outside)

    def merged(part: float) -> int:
        """Pairs too large to be seen whole where `quanta` tables share this part of ρ."""
        sigma = math.sqrt(d.sides * quanta / (2 * part))
        return sum(d.cells(pair) > 4 * (rows / sigma) for pair in pairs)

    rounds = 2 if 2 * merged(0.41 * rho) > len(pairs) else 1
    slots = 2 * merged(0.41 * rho / rounds) + len(pairs)
    beyond = min(2000, sum(d.cells(clique) <= 20_000_000 for clique in larger))
    made = _one_ways(d, rho * one)
    made += _tiered(d, _pair_tiers(d, pairs), rho * max(share, 1e-6))
    made.append(gaussian("look for excess", 0.04 * rho / rounds, slots, d.sides, rounds))
    if beyond:
        made.append(gaussian("look for excess beyond pairs", higher * rho, beyond, d.sides))
    for order, tables in outside.items():
        named, k = f"select {order}-way tables beyond the workload", min(4, len(tables))
        made.append(selection(named, 0.0025 * rho, GRID * d.sides, k=k))
        made.append(gaussian(f"errors of {order}-way tables", 0.0025 * rho, k, d.sides))
    made.append(gaussian("measure again", 0.41 * rho / rounds, d.sides * quanta, times=rounds))
    return made


def _quanta(p: dict[str, Any], pairs: list[Clique]) -> int:
    """How many tables a round measures again."""
    return p["quanta"] or min(60, max(30, len(pairs) // 3))


def _outside(d: Design, p: dict[str, Any], pairs: list[Clique]) -> dict[int, list[Clique]]:
    """Tables of up to 256 cells outside the workload whose pairs are all measured, by their order."""
    if "interactions" not in p:
        return {}
    known, workload = set(pairs), set(d.cliques)
    held = sorted({i for pair in pairs for i in pair}, key=lambda i: (d.shape[i], i))
    found = {
        order: [
            clique
            for clique in combinations(sorted(held[:most]), order)
            if d.cells(clique) <= 256
            and clique not in workload
            and known.issuperset(combinations(clique, 2))
        ]
        for order, most in ((3, 24), (4, 16))
    }
    return {order: tables for order, tables in found.items() if tables}


def _heaviest(d: Design, most: int | None) -> list[Clique]:
    """The pairs that most of the workload holds."""
    wanted = _pairs(d)
    return sorted(wanted, key=lambda pair: (-wanted[pair], pair))[:most]


def _held(d: Design) -> list[float]:
    """How much of the workload holds each column."""
    held = [0.0] * len(d.shape)
    for clique, weight in zip(d.cliques, d.weights, strict=True):
        for i in clique:
            held[i] += weight
    return held


def _one_ways(d: Design, rho: float) -> list[Slot]:
    return _tiered(d, _column_tiers(d), rho)


Tier = tuple[str, list[Clique], int]
"""Tables of one noise level: purpose, tables, and how precise next to other tiers."""


def _tiered(d: Design, tiers: list[Tier], rho: float) -> list[Slot]:
    whole = sum(len(own) * precision for _, own, precision in tiers)
    return [
        gaussian(purpose, rho * len(own) * precision / whole, d.sides * len(own))
        for purpose, own, precision in tiers
    ]


def _column_tiers(d: Design) -> list[Tier]:
    """Columns by precision, in steps of two: a step is round(log₂(weight · values)/2)."""
    held = _held(d)
    least = min((weight for weight in held if weight > 0), default=1.0)
    steps = [round(math.log2(max(w, least) * n) / 2) for w, n in zip(held, d.shape, strict=True)]
    return _tiers("one-way marginals", {(i,): step for i, step in enumerate(steps)}, 2)


def _pair_tiers(d: Design, pairs: list[Clique]) -> list[Tier]:
    """Pairs by precision, in steps of four: a step for every factor of eight in weight."""
    weights = _pairs(d)
    least = min((weights[pair] for pair in pairs), default=1.0)
    steps = {pair: int(math.log2(weights[pair] / least) / 3) for pair in pairs}
    return _tiers("pairs", steps, 4)


def _tiers(name: str, steps: dict[Clique, int], base: int) -> list[Tier]:
    """The most precise first, none more than three steps behind it."""
    near = {clique: max(step, max(steps.values()) - 3) for clique, step in steps.items()}
    levels = sorted(set(near.values()), reverse=True)
    named = name if len(levels) == 1 else name + ", tier {}"
    return [
        (named.format(k), [c for c in near if near[c] == level], base ** (level - levels[-1]))
        for k, level in enumerate(levels, 1)
    ]


def _gem(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    pairs, rows, rounds = sorted(_pairs(d)), d.assumed(20_000), p["rounds"]
    if not pairs:
        return [gaussian("columns", rho, d.sides * len(d.shape))]
    picks = 0
    if rounds:
        sigma = math.sqrt(d.sides * p["picks"] * rounds / (0.8 * rho))
        most = min(250_000, 12 * rows / sigma)
        larger = {clique for clique in d.cliques if len(clique) > 2}
        picks = min(p["picks"], sum(d.cells(c) <= most for c in (*pairs, *larger)))
    share = max(1e-6, _pairs_share(d, pairs, rho, rows))
    one = 1 - share - (0.45 if picks else 0.0)
    slots = [
        gaussian("columns", rho * one, d.sides * len(d.shape)),
        gaussian("pairs", rho * share, d.sides * len(pairs)),
    ]
    if picks:
        slots += [
            selection("select the worst", 0.05 * rho / rounds, GRID * d.sides, rounds, picks),
            gaussian("measure the worst", 0.4 * rho / rounds, d.sides * picks, times=rounds),
        ]
    return slots


def _closure(cliques: list[Clique]) -> list[Clique]:
    """Every subset of every clique but the empty one, small ones first."""
    if sum(3 ** min(len(clique), 40) for clique in cliques) > 1_000_000:
        raise ValueError("the workload has too many subsets for a plan")
    found = {p for c in cliques for k in range(1, len(c) + 1) for p in combinations(c, k)}
    return sorted(found, key=lambda part: (len(part), part))


def _hdmm(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    levels = hdmm_levels(d, p["levels"])
    return [
        gaussian(f"marginals, noise level {at}", rho * share, d.sides * len(cliques))
        for at, (cliques, share) in enumerate(levels, 1)
    ]


@functools.lru_cache(maxsize=1)
def hdmm_levels(d: Design, levels: int) -> list[tuple[list[Clique], float]]:
    """Marginals to measure in levels of noise, and the share of ρ of each level.

    Over all marginals S in the closure of the workload, with weights w_S that add up to one, minimise
        Σ_A c_A / Σ_{S ⊇ A} w_S/m(S∖A),   c_A = Π_{i in A}(n_i − 1)·Σ_{W ⊇ A} weight_W/m(W∖A),
    m(B) = Π_{i in B} n_i, by 300 steps w ← w·√(−gradient); leave out those that hold next to nothing
    and are no maximal marginal, gather the others by ln w in `levels` of one width, and minimise
    again with one weight a level.
    """
    wanted: dict[Clique, float] = {}
    for clique, weight in zip(d.cliques, d.weights, strict=True):
        wanted[clique] = wanted.get(clique, 0.0) + weight
    wanted |= {clique: 1.0 for clique in _all_marginals(d) if clique not in wanted}
    measured = _closure(list(wanted))
    number = {part: at for at, part in enumerate([(), *measured])}
    needed = np.zeros(len(number))
    for clique, weight in wanted.items():
        for part in _parts(clique):
            each = math.prod(d.shape[i] - 1 for i in part)
            needed[number[part]] += weight * each * d.cells(part) / d.cells(clique)
    entries = [
        (number[part], at, d.cells(part) / d.cells(clique))
        for at, clique in enumerate(measured)
        for part in _parts(clique)
    ]
    pieces, owners, gains = (np.array(column) for column in zip(*entries, strict=True))

    def least(group: np.ndarray, groups: int) -> np.ndarray:
        inside = group[owners] >= 0
        at, of = pieces[inside], group[owners[inside]]
        each = gains[inside] / np.bincount(group[group >= 0], minlength=groups)[of]
        share = np.full(groups, 1 / groups)
        for _ in range(300):
            precision = np.bincount(at, each * share[of], minlength=needed.size)
            precision[precision <= 0] = np.inf
            share = share * np.sqrt(
                np.bincount(of, (needed / precision**2)[at] * each, minlength=groups)
            )
            if share.sum() <= 0:  # columns of one value: every answer is known
                return np.full(groups, 1 / groups)
            share /= share.sum()
        return share

    fine = least(np.arange(len(measured)), len(measured))
    inner = {part for clique in wanted for part in _parts(clique) if part != clique}
    kept = np.array([part not in inner for part in measured]) | (fine > 1e-3 / len(measured))
    logs = np.log(np.maximum(fine, 1e-300))
    low, high = logs[kept].min(), logs[kept].max()
    level = ((logs - low) / max((high - low) / levels, 1e-9)).astype(np.int64)
    group = np.where(kept, np.minimum(level, levels - 1), -1)
    used = np.unique(group[kept])
    group = np.where(kept, np.searchsorted(used, group), -1)
    share = np.maximum(least(group, used.size), 1e-9)
    return [
        ([part for part, g in zip(measured, group, strict=True) if g == at], float(part_of))
        for at, part_of in enumerate(share / share.sum())
    ]


def _parts(clique: Clique) -> Iterator[Clique]:
    return (part for k in range(len(clique) + 1) for part in combinations(clique, k))


def _graph(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    """A row is an edge: it moves the degrees of its two ends, and one count of edges."""
    nodes, blocks = sum(p["sizes"]), len(p["sizes"])
    if d.shape != (nodes, nodes, blocks, blocks):
        raise ValueError("sizes are not those of the schema")
    closed = 0.2 if p.get("triangles") else 0.0
    left, pairs = rho * (1 - closed), 0.35 if blocks > 1 else 0.0
    slots = [
        gaussian("degrees", left * (0.8 - pairs), 2 * d.sides),
        gaussian("degrees by name", left * 0.15, 2 * d.sides),
    ]
    if pairs:
        slots.append(gaussian("edges between blocks", left * pairs, d.sides))
    slots.append(gaussian("edges between classes of degrees", left * 0.05, d.sides))
    if closed:  # an edge closes at most one triangle with every other node
        slots.append(gaussian("triangles", rho * closed, 1, max(1, nodes - 2)))
    return slots


def _querygan(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    columns, tables = len(d.shape), _critics(d, p["degree"])
    if p["features"] == "subsets":
        w = p["kernel"] if p["kernel"] is not None else 1 / columns
        orders = Counter({1: columns}) + Counter(len(c) for c in tables if len(c) > 1)
        whole = sum(number * w**k for k, number in orders.items())
        return [
            gaussian(
                "one-way marginals" if k == 1 else f"moments of order {k}",
                rho * orders[k] * w**k / whole,
                d.sides * orders[k],
            )
            for k in sorted(orders)
        ]
    share = p["columns"] or (0.5 if p["objective"] == "wasserstein" else 0.15)
    if p["oracle"] == "moments" and p["features"] == "cells":
        sigma = math.sqrt(d.sides * len(tables) / (2 * (1 - share) * rho))
        seen = min(1.0, 2 * d.assumed() / (d.mean_cells(tables) * sigma))
        share = 1 - (1 - share) * max(1e-6, round(seen, 6))
    ordered = _lipschitz(d, p)
    others = columns - len(ordered)
    plain = share if not ordered else min(share, 0.15) * others / columns
    slots: list[Slot] = []
    if ordered:
        slots.append(gaussian("ordered columns", (share - plain) * rho, d.sides * len(ordered)))
    if others:
        slots.append(gaussian("one-way marginals", plain * rho, d.sides * others))
    return [*slots, *_oracle(d, p, (1 - share) * rho, tables)]


def _lipschitz(d: Design, p: dict[str, Any]) -> list[Clique]:
    """Columns of more than two codes with an order, where critics are Lipschitz functions of cells."""
    if p["objective"] != "wasserstein" or p["features"] != "cells":
        return []
    return [
        (i,) for i, column in enumerate(d.columns)
        if d.shape[i] > 2 and column.get("ordinal", column["type"] not in ("category", "boolean"))
    ]  # fmt: skip


def _critics(d: Design, degree: int) -> list[Clique]:
    """Sets of 2 to `degree` columns inside marginals of the workload; columns if there are none."""
    orders = [range(2, min(degree, len(clique)) + 1) for clique in d.cliques]
    number = sum(math.comb(len(c), k) for c, ks in zip(d.cliques, orders, strict=True) for k in ks)
    if number > 500_000:
        raise ValueError("the workload has too many subsets for a plan")
    found = {
        part for c, ks in zip(d.cliques, orders, strict=True) for k in ks
        for part in combinations(c, k)
    }  # fmt: skip
    ordered = sorted(found, key=lambda part: (len(part), part))
    return ordered or [(i,) for i in range(len(d.shape))]


def _oracle(d: Design, p: dict[str, Any], rho: float, tables: list[Clique]) -> list[Slot]:
    match p["oracle"]:
        case "moments" if p["features"] == "cells":
            return [gaussian("moments of the critics", rho, d.sides * len(tables))]
        case "moments":
            # Units on each of J marginals have norm 1; in units of 1/4096, rounded, √J·(4096 + √K/2).
            many = p["units"] * (2 if p["features"] == "fourier" else 1)
            l2 = math.sqrt(len(d.cliques)) * (4096 + math.sqrt(many) / 2)
            l2 = math.ceil(l2 * (1 + 1e-9))
            event = {"kind": "sampled gaussian", "sigma": d.sides * l2 / math.sqrt(2 * rho),
                     "l2": l2, "coordinates": many * len(d.cliques), "rate": 1.0,
                     "sides": d.sides}  # fmt: skip
            return [{"purpose": "moments of random features", "event": event, "times": 1}]
        case "weights":
            return _dualquery(d, p, rho)
        case "exponential":
            universe = max(math.log(2), sum(map(math.log, d.shape)))
            even = d.assumed() * math.sqrt(2 * rho) * math.sqrt(2 * universe)
            rounds = p["rounds"] or round(min(max(10, 0.05 * even / math.log(2 * d.queries)), 400))
            paid = p["alpha"] * rho if d.rows is not None else 0.0
            slots = [selection("pick a query", (rho - paid) / rounds, SCORE, rounds)]
            if paid:
                kept = rounds - math.floor(rounds * (1 - (p["keep"] or 0.5)))
                slots.append(laplace("payoff of the critics", paid, FINE * kept))
            return slots
        case "logistic":
            groups: list[list[Clique]] = []
            for table in tables:
                if groups and sum(map(d.cells, groups[-1])) + d.cells(table) <= p["cells"]:
                    groups[-1].append(table)
                else:
                    groups.append([table])
            noise = math.sqrt(d.sides * len(tables) / (2 * rho))
            clear = (d.assumed() / (4 * d.mean_cells(tables) * noise)) ** 2
            passes = max(1, min(10, math.floor(clear), 100 // len(groups)))
            rounds = p["rounds"] or len(groups) * passes
            curved = 0.05 * min(1.0, max(1e-6, round(clear * len(groups) / rounds, 6)))
            return [
                {
                    "purpose": f"critics of group {i + 1}",
                    "event": _perturbation(d, group, rho / rounds, curved),
                    "times": len(range(i, rounds, len(groups))),
                }
                for i, group in enumerate(groups[:rounds])
            ]
    raise ValueError(f"method.oracle = {p['oracle']!r:.80} is not known")


def _perturbation(d: Design, group: list[Clique], rho: float, share: float) -> dict[str, Any]:
    """Objective perturbation over the p cells of J tables, at ρ.

    A hundredth of ρ is for noise on the result, `share` for the determinant. The linear term is on
    the lattice 2⁻²⁴, where J cells (twice, for a replacement) move by one row; the result on the grid
    2⁻³⁰, within γ = 2⁻²⁰ and rounding of the minimum, over the ridge.
    """
    size, changes = sum(map(d.cells, group)), d.sides * len(group)
    whole, curved = 0.99 * rho, share * rho
    jacobian = math.sqrt(curved / 4)
    a, b = changes * 2.0**48 / 2, math.sqrt(8 * size)
    root = math.sqrt(whole * b * b + (a - b * b) * (whole - curved))
    radius = (2.0**-20 + math.sqrt(size) / 2**25) * 4 * jacobian / len(group)
    beyond = math.ceil((2 * radius * 2**30 + math.sqrt(size)) * (1 + 1e-9))
    return {
        "kind": "perturbation",
        "sigma": (a - b * b) / (root - math.sqrt(whole) * b),
        "step": 2**24,
        "changes": changes,
        "jacobian": jacobian,
        "coordinates": size,
        "output_sigma": beyond / math.sqrt(rho / 50),
        "output_l2": beyond,
    }


def _dpgan(d: Design, p: dict[str, Any], rho: float) -> list[Slot]:
    choice = p["choice"] if p["pick"] else 0.0
    slots = [gaussian("columns", rho * p["columns"], d.sides * len(d.shape))]
    event, times = _critic_steps(d, p, rho * (1 - p["columns"] - choice))
    slots.append({"purpose": "critic step", "event": event, "times": times})
    if p["pick"]:
        slots.append(selection("choice of checkpoints", rho * choice, 257, k=p["pick"]))
    return slots


def _critic_steps(d: Design, p: dict[str, Any], rho: float) -> tuple[dict[str, Any], int]:
    """The event and how often. A step at rate q and joint multiplier m is worth, by the central limit,
    min(s²/(2m²), q²·(e^(s²/m²) − 1)/2), s the sides: so plans are laid out, and counted exactly later.
    """
    judged = p["pick"] and (p["task"] is not None or p["selection"] == "clustering")
    held = round(p["holdout"] * 2**32) / 2**32 if judged else 0.0
    rows, groups, sides = d.assumed(20_000) * (1 - held), p["groups"], d.sides
    rate = p["rate"]
    if rate is None:
        rate = (p["batch"] or min(1024, max(1, rows // 10))) / max(1.0, rows)
    rate = min(1.0, max(1.0, float(round(rate * 2**32))) / 2**32)
    if p["sigma"] is not None:
        joint = float(p["sigma"])
        inside = min((sides / joint) ** 2, 700.0)
        worth = min((sides / joint) ** 2 / 2, rate**2 * math.expm1(inside) / 2)
        times = max(1, min(10**6, math.floor(rho / worth * (1 + 1e-12))))
    else:
        times = p["steps"]
        inverse = math.log1p(2 * rho / times / rate**2) / sides**2
        joint = min(1 / math.sqrt(inverse), sides / math.sqrt(2 * rho / times))
    multipliers, bits = [joint], 0
    if p["adapt"]:  # a bit for each group, whether the norm is below its threshold
        watch = max(rate * rows / 10 / math.sqrt(groups), joint / math.sqrt(0.05))
        multipliers, bits = [(joint**-2 - watch**-2) ** -0.5, watch], groups
    event = {"kind": "sampled groups", "multipliers": multipliers, "rate": rate, "sides": sides}
    return {**event, "coordinates": _critic_weights(d, p) + bits}, times


def _critic_weights(d: Design, p: dict[str, Any]) -> int:
    """A network from encoded rows: categories as choices, small integers as bits, numbers as one."""
    width = 0
    for column, size in zip(d.columns, d.shape, strict=True):
        beside = column["nullable"] + len(column.get("special", []))  # no values in order
        values, null = size - beside, beside == 1
        listed = column["type"] in ("category", "boolean") or beside > 1
        if listed or p["numbers"] == "bins" or values <= 2:
            width += 1 if size == 2 else size
        elif column["type"] == "integer" and values <= 15:
            width += max(1, math.ceil(math.log2(max(2, values)))) + null
        else:
            width += 1 + null
    layers = [width, *[p["critic_width"]] * p["critic_layers"], 1]
    return sum((one + 1) * two for one, two in itertools.pairwise(layers))


ROUNDS, NUMBER = ("null", "times"), ("null", "positive")
DRAWS = {"rounds": ROUNDS, "samples": ROUNDS}
PICKS = {"rounds": ROUNDS}
GAMES: dict[str, tuple[Callable[..., list[Slot]], dict[str, Any]]] = {
    "aim": (_aim, PICKS),
    "dpgan": (_dpgan, {
        "steps": "times", "sigma": NUMBER, "batch": ("null", "count"), "rate": ("null", "share"),
        "groups": "small", "adapt": "share", "numbers": ("=bins", "=real"), "pick": "natural",
        "columns": "share", "choice": "share", "holdout": "share", "task": "anything",
        "critic_width": "small", "critic_layers": "small",
    }),
    "dqrs": (_dqrs, DRAWS),
    "dualquery": (_dualquery, DRAWS),
    "fem": (_fem, PICKS),
    "frankwolfe": (_frankwolfe, PICKS),
    "gaussian": (_gaussian, {}),
    "gem": (_gem, {"rounds": "natural", "picks": "times"}),
    "graph": (_graph, {"sizes": ["above 0"], "triangles?": "true"}),
    "hdmm": (_hdmm, {"levels": "small"}),
    "independent": (_independent, {}),
    "maxent": (_maxent, {
        "quanta": ("null", "times"), "pairs": ("null", "times"), "interactions?": "true",
    }),
    "mst": (_mst, {"one_ways": "positive", "selection": "positive", "pairs": "positive"}),
    "mwem": (_mwem, {**PICKS, "measure": ("true", "false"), "selection": "share"}),
    "querygan": (_querygan, {
        **DRAWS, "oracle": "name", "features": ("=cells", "=subsets", "=fourier", "=relu",
        "=softplus"), "degree": "times", "columns": ("null", "share"), "alpha": "share",
        "objective": ("null", "name"), "units": "times",
        "kernel": NUMBER, "keep": ("null", "share"), "cells": "times",
    }),
    "sepfem": (_fem, PICKS),
}  # fmt: skip


# --- what was measured ---------------------------------------------------------------------------


@dataclass
class Pool:
    """Tables that one event paid for: each of `tables` once, or, of them, `number` in all."""

    event: dict[str, Any]
    tables: set[Clique]
    number: int | None = None  # None: each once
    merged: bool = False
    averaged: bool = False  # the mean of m draws has the deviation σ/√m
    taken: Counter[Clique] = field(default_factory=Counter)

    def takes(self, clique: Clique, made: dict[str, Any]) -> bool:
        many, merged = self.draws(made), made.get("merged", False)
        if many < 1 or clique not in self.tables or (merged and not self.merged):
            return False
        if self.number is None and (self.taken[clique] or made["times"] > 1):
            return False
        self.taken[clique] += many * made["times"]
        return True

    def draws(self, made: dict[str, Any]) -> int:
        """How many draws the noise of a measurement is the mean of; 0 if it is none of these."""
        sigma, drawn = made["sigma"] or 0.0, self.event["sigma"]
        if not self.averaged:
            return int(sigma == drawn)
        many = round((drawn / sigma) ** 2) if sigma > 1e-4 * drawn else 0
        return many if many and alike(sigma, drawn / math.sqrt(many)) else 0

    def lacking(self) -> bool:
        if self.number is None:
            return any(self.taken[clique] != 1 for clique in self.tables)
        return self.taken.total() != self.number


def check_measured(b: Bundle) -> Iterator[str]:
    design, asked = design_of(b), b.manifest["method"]
    at = {column["name"]: i for i, column in enumerate(design.columns)}
    events = {slot["purpose"]: slot for slot in b.plan}
    pools = pools_of(design, asked, b)
    single = Counter({"cells": 0, "queries": 0})
    kept = "measurements.npz" in b.manifest["files"]
    listed = any("counts" in made for made in b.manifest["measurements"])
    if kept:
        yield from kept_tables(b, design.shape)
    for number, made in enumerate(b.manifest["measurements"]):
        where = f"measurements[{number}]"
        clique, kind = tuple(at[name] for name in made["columns"]), made["kind"]
        pool = None
        if kind == "table":
            pool = next((pool for pool in pools if pool.takes(clique, made)), None)
            if pool is None:
                yield f"{where}: no draw paid for a table of {made['columns']} at {made['sigma']}"
                continue
        elif clique not in design.cliques:
            yield f"{where}: {made['columns']} is no marginal of the workload"
        elif kind == "cells" and made["sigma"] != _sigma_of(events):
            yield f"{where}: sigma = {made['sigma']} is not that of its draw"
        elif kind == "queries" and made["sigma"] is not None:
            yield f"{where}: a query that was selected has sigma = {made['sigma']}"
        single[kind] += made["times"]
        if "draws" in made and pool is None:
            yield f"{where}: {kind} are no mean of draws"
        if kept and pool is not None and made.get("draws", 1) != pool.draws(made):
            yield f"{where}: draws = {made.get('draws', 1)}; its sigma is that of {pool.draws(made)}"
        counts, size = made.get("counts"), design.cells(clique)
        whole = pool is not None and len(clique) == 1 and size <= 10_000 and not made.get("merged")
        if (counts is not None) != (listed and whole) or (
            counts is not None and len(counts) != size
        ):
            yield f"{where}: counts are not one for every value"
        elif counts is not None and pool is not None:
            whole = np.array(counts) * pool.draws(made)
            if not np.allclose(whole, np.rint(whole), rtol=1e-13, atol=1e-6):
                yield f"{where}: counts are no counts"
    if any(pool.lacking() for pool in pools):
        yield "measurements lack a table that was drawn, or have it twice"
    if asked["name"] == "mst" and len(pools) > 1 and not joined(pools[1].taken, len(design.shape)):
        yield "measurements: the pairs of the tree do not join all columns"
    few, most = single_draws(events)
    if single["cells"] != events.get("measure the cell", {"times": 0})["times"]:
        yield f"measurements have {single['cells']} cells"
    if "measure the cell" in events:
        few = most = 0
    if not few <= single["queries"] <= most:
        yield f"measurements have {single['queries']} queries, {few} to {most} were drawn"


def _sigma_of(events: dict[str, Any]) -> float:
    return events["measure the cell"]["event"]["sigma"] if "measure the cell" in events else 0.0


def single_draws(events: dict[str, Any]) -> tuple[int, int]:
    """How many queries were selected, at least and at most: those that coins keep are not counted."""
    names = ("pick a query", "select a vertex", "select a cell", "queries of round ")
    drawn = {purpose: slot["event"]["k"] * slot["times"] for purpose, slot in events.items()
             if slot["event"]["kind"] == "selection"}  # fmt: skip
    new = sum(many for purpose, many in drawn.items() if purpose.startswith(names))
    return new, new + sum(many for purpose, many in drawn.items() if purpose.startswith("coins"))


def joined(pairs: Iterable[Clique], columns: int) -> bool:
    """Whether pairs join all columns."""
    reached, before = {0}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {i for pair in pairs if reached & set(pair) for i in pair}
    return len(reached) == columns


def pools_of(d: Design, p: dict[str, Any], b: Bundle) -> list[Pool]:
    """What each Gaussian draw of a method measured."""
    slots = {slot["purpose"]: slot for slot in b.plan}
    pools: list[Pool] = []

    def pool(
        purpose: str,
        tables: Iterable[Clique],
        number: int | None = None,
        merged: bool = False,
        averaged: bool = False,
    ) -> None:
        if purpose in slots and slots[purpose]["event"]["kind"] == "gaussian":
            pools.append(Pool(slots[purpose]["event"], set(tables), number, merged, averaged))

    columns = [(i,) for i in range(len(d.shape))]
    name, pairs = p["name"], set(_pairs(d))
    larger = {clique for clique in d.cliques if len(clique) > 2}
    if name == "maxent":
        for purpose, own, _ in _column_tiers(d):
            pool(purpose, own)
        measured = _heaviest(d, p["pairs"])
        outside = {c for tables in _outside(d, p, measured).values() for c in tables}
        for purpose, own, _ in _pair_tiers(d, measured):
            pool(purpose, own, merged=True)
        again = slots.get("measure again", {"times": 0})["times"] * _quanta(p, measured)
        able = {*columns, *pairs, *larger, *outside}
        pool("measure again", able, again, merged=True, averaged=True)
        worst = slots.get("select the worst", {"times": 0, "event": {"k": 0}})
        selected = worst["times"] * worst["event"]["k"]
        pool("measure the worst", measured, selected)
        return pools
    if name == "querygan":
        ordered = _lipschitz(d, p)
        pool("ordered columns", ordered)
        pool("one-way marginals", set(columns) - set(ordered))
    elif name not in ("gaussian", "hdmm", "mwem", "graph"):
        pool("columns" if name in ("gem", "dpgan") else "one-way marginals", columns)
    if name == "mst":
        at = {column["name"]: i for i, column in enumerate(d.columns)}
        named = (made["columns"] for made in b.manifest["measurements"])
        chosen = {tuple(at[name] for name in names) for names in named if len(names) == 2}
        pool("tree pairs", chosen, len(d.shape) - 1)
    elif name == "aim":
        drawn = Counter(e["sigma"] for e in adaptive_charges(b) if e["kind"] == "gaussian")
        candidates = set(_closure(d.cliques))
        pools += [Pool({"sigma": sigma}, candidates, many) for sigma, many in drawn.items()]
    elif name == "gaussian":
        pool("all marginals of the workload", _all_marginals(d))
    elif name == "hdmm":
        for k, (tables, _) in enumerate(hdmm_levels(d, p["levels"]), 1):
            pool(f"marginals, noise level {k}", tables)
    elif name == "gem":
        pool("pairs", pairs, merged=True)
        worst = slots.get("select the worst", {"times": 0, "event": {"k": 0}})
        pool("measure the worst", pairs | larger, worst["times"] * worst["event"]["k"])
    elif name == "querygan":
        tables = _critics(d, p["degree"])
        pool("moments of the critics", tables)
        for k in {len(table) for table in tables} - {1}:
            pool(f"moments of order {k}", [table for table in tables if len(table) == k])
    elif name == "graph":
        pool("edges between blocks", [(2, 3)])
        pool("edges between classes of degrees", [(0, 1)], merged=True)
    return pools


def adaptive_charges(b: Bundle) -> list[dict[str, Any]]:
    """What aim drew against its zCDP filter, in order."""
    charges = (entry["body"] for entry in b.own if entry["kind"] == "charge")
    return [body["event"] for body in charges if body["purpose"] == "adaptive rounds"]


def adaptive_problems(b: Bundle, d: Design) -> Iterator[str]:
    """Rounds of aim: a selection and a table each, at r/10 and 0.9·r of ρ, until all is used.

    r is that of the round before, or four times it; and all that is left, where that is below 2r.
    """
    charges, left = adaptive_charges(b), rho(b.event("adaptive rounds", "zcdp"))
    total = left + rho(b.event("one-way marginals", "gaussian"))
    each = [total / (b.manifest["method"]["rounds"] or 16 * len(d.shape))]
    weights = candidate_weights(d)
    least = max(weights.get((i,), 1) for i in range(len(d.shape)))
    units = {GRID * d.sides * weight for weight in weights.values() if weight >= least}
    for pick, table in zip(charges[::2], charges[1::2], strict=False):
        if (pick["kind"], table["kind"]) != ("selection", "gaussian"):
            yield "the charges of 'adaptive rounds' are not a selection and a table each"
            return
        if pick["sensitivity"] not in units or pick["k"] != 1:
            yield f"a round was charged with sensitivity = {pick['sensitivity']}, k = {pick['k']}"
        if (table["step"], table["changes"]) != (1, d.sides):
            moved = table["step"], table["changes"]
            yield f"a round was charged with step = {moved[0]}, changes = {moved[1]}"
        spent = rho(pick) + rho(table)
        may = [left for share in each if left < 2 * share * (1 + CLOSE)]
        may += [share for share in each if left > 2 * share * (1 - CLOSE)]
        if not alike(rho(table), 9 * rho(pick)) or not any(alike(spent, share) for share in may):
            yield f"the charges of a round cost ρ = {spent:.6g}, it may be {may}"
            return
        left, each = left - spent, [spent, 4 * spent]
    if len(charges) % 2 or left > CLOSE * total:
        yield "the charges of 'adaptive rounds' do not use the zCDP filter, or a round is not whole"


def candidate_weights(d: Design) -> dict[Clique, int]:
    """How much of the workload each subset of its marginals touches, in whole numbers up to 4096."""
    held = _held(d)
    raw = {part: sum(held[i] for i in part) for part in _closure(d.cliques)}
    most = max(raw.values())
    if all(weight.is_integer() for weight in d.weights):
        divisor = math.gcd(*map(int, raw.values()))
        if most / divisor <= 4096:
            return {part: int(value) // divisor for part, value in raw.items()}
    return {part: max(1, round(value * (4096 / most))) for part, value in raw.items()}


# --- certificate -------------------------------------------------------------------------------


def check_certificate(b: Bundle) -> Iterator[str]:
    stated, public = b.certificate, b.promise["rows_public"]
    beta = stated["beta"]
    if not 0 < beta < 1:
        yield f"beta = {beta} is no probability"
    if stated["rows_public"] != public or (stated["rows_measured"] is None) != (public is not None):
        yield "does not agree with the promise on the number of rows"
    sizes = {column["name"]: cells(column) for column in modelled(b)}
    count = sum(queries_of(m, sizes) for m in b.manifest["workload"])
    other = any(m.get("kind", "marginals") != "marginals" for m in b.manifest["workload"])
    noun = "queries" if other else "cells"
    if stated["cells"] != count or stated.get("of", "cells") != noun:
        yield f"the workload has {count} {noun}, stated are {stated['cells']}"
    if stated["rows"] != b.manifest["rows"]:
        yield "was made for another number of rows"

    left, n, sigma = beta, public, 0.0
    if public is None:
        left = 0.8 * beta
        sigma = b.event("number of rows", "gaussian")["sigma"]
        lower = math.ceil(sigma * NormalDist().inv_cdf(1 - 0.2 * beta))
        n = max(1, stated["rows_measured"] - lower)
    if stated["variations"] is not None:
        left /= 2

    draw = b.event("certificate", "laplace")
    a = math.exp(-1 / draw["scale"])
    t = max(0, math.ceil(-math.log(left * (1 + a)) * draw["scale"] - 1 - CLOSE))
    if stated["worst"] < -24 * draw["scale"]:  # less likely than 1e-10
        yield f"worst = {stated['worst']} is lower than noise could have made it"
    if public is None and stated["rows_measured"] < -8 * sigma:
        yield f"rows_measured = {stated['rows_measured']} is lower than noise could have made it"
    if b.manifest["rows_estimate"] != max(1, stated["rows_measured"] if public is None else public):
        yield f"rows_estimate = {b.manifest['rows_estimate']} is not the number of rows"
    bound = min(1.0, (max(stated["worst"], 0) + t) / (draw["l1"] * n))
    if not math.isclose(stated["bound"], bound, rel_tol=CLOSE):
        yield f"the bound is {bound}, stated is {stated['bound']}"

    measured, variations = stated["variations_measured"], stated["variations"]
    planned = any(s["purpose"] == "certificate of total variation" for s in b.plan)
    if not planned == (variations is not None) == (measured is not None):
        yield "total variations are stated without their draw, or the other way round"
    elif planned:
        draw = b.event("certificate of total variation", "gaussian")
        many = len(b.manifest["workload"])
        step = 2 if public is not None and b.promise["relation"] == "add-remove" else 4
        if (draw["changes"], draw["step"]) != (many, step):
            yield "the total variations were drawn with another sensitivity"
        level = (1 - left) ** (1 / many)
        margin = max(0, math.ceil(draw["sigma"] * NormalDist().inv_cdf(level)))
        if min(measured) < -8 * draw["sigma"]:
            yield "a total variation is lower than noise could have made it"
        bounds = [min(1.0, (max(v, 0) + margin) / (4 * n)) for v in measured]
        if len(measured) != many or len(variations) != many:
            yield "not one total variation for every marginal"
        elif not np.allclose(variations, bounds, rtol=CLOSE, atol=0):
            yield "a total variation is not what was measured"
    words = f"worst error over {count:,} {noun} of the workload ≤ {stated['bound']:.4f}"
    words += f" ({100 * (1 - beta):g} % confidence)"
    if variations is not None:
        words += f"; total variation of every marginal ≤ {max(variations):.4f}"
    beyond = stated.get("population")
    if beyond is not None:
        margin = math.sqrt(math.log(2 * count / beta) / (2 * n))
        if not math.isclose(beyond, min(1.0, bound + margin), rel_tol=CLOSE):
            yield f"the bound for the population is {min(1.0, bound + margin)}, stated is {beyond}"
        words += "; against a population that the rows were drawn from independently"
        words += f" ≤ {beyond:.4f} ({100 * (1 - 2 * beta):g} % confidence)"
    if stated["words"] != words:
        yield "its words say something else"


def modelled(b: Bundle) -> list[dict[str, Any]]:
    derived = computed(b.schema)
    return [c for c in b.columns() if c["type"] != "identifier" and c["name"] not in derived]


RESOLUTIONS = {
    name: datetime.timedelta(**{f"{name}s": 1})
    for name in ("microsecond", "millisecond", "second", "minute", "hour", "day")
}


def queries_of(entry: dict[str, Any], sizes: dict[str, int]) -> int:
    """The number of queries of an entry of the workload."""
    kind, columns = entry.get("kind", "marginals"), entry["columns"]
    thresholds = len(columns) if kind == "halfspaces" else 1
    return thresholds * math.prod(literals(kind, sizes[name]) for name in columns)


def literals(kind: str, size: int) -> int:
    match kind:
        case "conjunctions" | "disjunctions" | "halfspaces" if size > 2:
            return 2 * size
        case "parities" if size == 2:
            return 1
        case _ if f"={kind}" in KINDS:
            return size
    raise ValueError(f"a workload of {kind!r}")


def cells(column: dict[str, Any]) -> int:
    """The number of codes of a modelled column: cells in order, special values, null."""
    special = len(column.get("special", []))
    count = len(Cells.of(column).lows) + special if special else intervals(column)
    return count + column["nullable"]


def intervals(column: dict[str, Any]) -> int:
    """The number of listed values, or of cells that bins or edges name."""
    kind = column["type"]
    if kind == "category":
        count = len(column["values"]) + ("other" in column)
    elif kind == "boolean":
        count = 2
    elif "edges" in column:
        count = len(column["edges"]) - 1
    elif "bins" in column:
        count = column["bins"]
    else:
        width = column["upper"] - column["lower"]
        if kind == "date":
            width = width.days
        elif kind == "datetime":
            width = width // RESOLUTIONS[column.get("resolution", "second")]
        count = width + 1
    return count


# --- rows and model ----------------------------------------------------------------------------


def check_rows(b: Bundle) -> Iterator[str]:
    if b.schema_hash() != b.schema_stated():
        yield "the schema is another one"
        return
    read = []
    for name, rows in b.tables.items():
        small_enough(b.folder / name, rows)
        read.append(pq.ParquetFile(b.folder / name).read())
        if read[-1].num_rows != rows:
            yield f"{name} has {read[-1].num_rows} rows, stated are {rows}"
    if "families" in b.manifest:
        yield from family_problems(b, *read)
    else:
        yield from table_problems(b.schema, b.columns(), read[0])
    yield from model_problems(b)


def table_problems(
    schema: dict[str, Any], columns: list[dict[str, Any]], table: pa.Table
) -> Iterator[str]:
    """Values that are not legal under a schema of these columns."""
    written = [
        column
        for column in columns
        if column["type"] != "identifier" or column.get("action", "drop") != "drop"
    ]
    derived = computed(schema)
    if table.column_names != [column["name"] for column in written]:
        yield f"its columns are {table.column_names}"
        return
    for column, values in zip(written, table.columns, strict=True):
        name = column["name"]
        yield from stated_problems(column)
        if not same_type(values.type, column["dtype"]):
            yield f"{name!r} is {values.type}, declared is {column['dtype']}"
        if values.null_count and not column["nullable"]:
            yield f"{name!r} has nulls, declared are none"
        if name in derived:  # a rule says what it is
            legal = True
        elif column["type"] == "identifier":
            texts = [str(value) for value in values.to_pylist()]
            legal = texts == [column["action"].format(i + 1) for i in range(len(texts))]
        else:
            if pa.types.is_dictionary(values.type):
                values = pc.cast(values, values.type.value_type)
            legal = all(
                in_domain(value, column, values.type)
                for value in values.unique().to_pylist()
                if value is not None
            )
        if not legal:
            yield f"{name!r} has values outside its declared domain"
    for place in schema.get("geography", []):
        y, x = place["latitude"], place["longitude"]
        pairs = zip(table[y].to_pylist(), table[x].to_pylist(), strict=True)
        if not all(on_mask(float(v), float(w), place) for v, w in pairs if None not in (v, w)):
            yield f"{y!r} and {x!r} have places off their mask"
    for rule in schema.get("rule", []):
        if broken := rule_broken(rule, {c["name"]: c for c in written}, table):
            yield f"{broken} rows break the rule {rule['says']!r}"


# --- families ----------------------------------------------------------------------------------
#
# Two tables are planned for, measured and certified as one of views: parent, number of children, a
# child and, in the tables that name it, a sibling; docs/families.md. How families are made from the
# model is not done again here: that they are legal, whole and of the weight certified is.

POSITIONS = ["only", "first", "middle", "last"]
MOST_WEIGHT = 27_720


def views(found: dict[str, Any]) -> dict[str, Any]:
    """The schema of the views of two tables."""
    (parent,) = (table for table in found["table"] if "parent" not in table)
    (child,) = (table for table in found["table"] if "parent" in table)
    most, least, ordered = child["max_children"], child.get("min_children", 0), "order" in child
    own = {
        table["name"]: [c for c in found["column"] if c["table"] == table["name"]]
        for table in (parent, child)
    }
    word = "previous" if ordered else "sibling"
    within: dict[str, Any] = {name: {"rule": []} for name in own}
    between = []
    for rule in found.get("rule", []):
        told = [whose(name, own, word) for name in named(rule["says"])]
        (first, *others) = {table if column not in FIGURES else "" for table, column in told}
        if not others and first in own:
            own_names = iter([column for _, column in told])
            within[first]["rule"].append({**rule, "says": renamed(rule["says"], own_names)})
        else:
            view_names = iter([f"{table}.{column}" for table, column in told])
            between.append({**rule, "says": renamed(rule["says"], view_names)})
    known = {name: [c for c in columns if c["type"] not in ("identifier", "text")
                    and c["name"] not in computed(within[name])]
             for name, columns in own.items()}  # fmt: skip
    names = [column["name"] for column in known[child["name"]]]
    siblings = child.get("siblings", "same")
    paired = {"same": names, "all": names, "none": []}.get(siblings)
    if paired is None:
        paired = [second for _, second in child["pairs"]]
    if most < 2:
        paired = []
    paired = {*paired, *(name.partition(".")[2] for rule in between
                         for name in named(rule["says"]) if name.startswith(f"{word}."))}  # fmt: skip
    key = f"{parent['name']}.{parent['key']}"
    columns = [{"name": key, "type": "identifier", "dtype": "string", "nullable": False}]
    columns += [{**c, "name": f"{parent['name']}.{c['name']}"} for c in known[parent["name"]]]
    plain = {"dtype": "int64", "nullable": False}
    columns.append({"name": f"{child['name']}.count", "type": "integer", "lower": least,
                    "upper": most, **plain})  # fmt: skip
    for column in known[child["name"]]:
        absent = column["nullable"] or least == 0
        columns.append({**column, "name": f"{child['name']}.{column['name']}", "nullable": absent})
    if ordered:
        columns.append({"name": f"{child['name']}.position", "type": "category",
                        "values": POSITIONS, "dtype": "string", "nullable": least == 0})  # fmt: skip
    columns += [{**c, "name": f"{word}.{c['name']}", "nullable": True}
                for c in known[child["name"]] if c["name"] in paired]  # fmt: skip
    weight = shared_weight(divisor(s, ordered) for s in range(1, most + 1))
    unit = {"column": key, "max_rows": weight, "salt": "", "family": child["name"]}
    head = {**found["understudy"], "family": unit}
    return {"understudy": head, "column": columns, "tables": (parent, child), "own": own,
            "within": within, "between": between}  # fmt: skip


FIGURES = ("count", "position")


def named(says: str) -> list[str]:
    """The names of columns in a rule, in the order they are written."""
    words = Condition(says, {}).words
    return [text for kind, text in words if kind == "name"
            and text.lower() not in ("implies", "determines")]  # fmt: skip


def renamed(says: str, names: Iterator[str]) -> str:
    """A rule with other names of columns."""
    text, at = "", 0
    for match in TOKEN.finditer(says):
        word = match["name"]
        if word and word.lower() not in (*KEYWORDS, "implies", "determines"):
            text += says[at : match.start()] + "`" + next(names).replace("`", "``") + "`"
            at = match.end()
    return text + says[at:]


def whose(name: str, own: dict[str, list[dict[str, Any]]], word: str) -> tuple[str, str]:
    """(table, column) that a rule of families names; `word` is the sibling's table."""
    parent, child = own
    has = {table: {column["name"] for column in columns} for table, columns in own.items()}
    has |= {word: has[child]}
    table, _, column = name.partition(".")
    if column in has.get(table, ()) or (table == child and column in FIGURES):
        return table, column
    (table,) = (table for table in (parent, child) if name in has[table])
    return table, name


def between_problems(
    schema: dict[str, Any], tables: tuple[pa.Table, pa.Table], home: np.ndarray, sizes: np.ndarray
) -> Iterator[str]:
    """Rules between members of a family, for all members that they name, by their values."""
    parent, child = schema["tables"]
    known = {column["name"]: column for column in schema["column"]}
    starts = np.cumsum(sizes) - sizes
    every = np.arange(home.size)
    for rule in schema["between"]:
        names = list(dict.fromkeys(named(rule["says"])))
        parts = {name.partition(".")[0] for name in names if name != f"{child['name']}.count"}
        parts.discard(parent["name"])
        family, one, other = np.arange(sizes.size), None, None
        if parts == {child["name"]}:
            family, one = home, every
        elif parts and "order" in child:
            one = every[every > starts[home]]
            family, other = home[one], one - 1
        elif parts:
            each = sizes[home] - 1
            one = np.repeat(every, each)
            index = np.arange(one.size) - np.repeat(np.cumsum(each) - each, each)
            other = starts[home[one]] + index
            other, family = other + (other >= one), home[one]
        values = {}
        for name in names:
            table, _, column = name.partition(".")
            if name == f"{child['name']}.count":
                values[name] = pa.array(sizes[family])
            elif name == f"{child['name']}.position":
                last = sizes[family] - 1
                place = one - starts[family]
                inner = np.where(place == 0, 1, np.where(place == last, 3, 2))
                values[name] = pa.array(np.array(POSITIONS)[np.where(last == 0, 0, inner)])
            elif table == parent["name"]:
                values[name] = tables[0][column].take(pa.array(family))
            else:
                values[name] = tables[1][column].take(
                    pa.array(one if table == child["name"] else other)
                )
        rows = pa.table(values)
        for name in names:
            if not name.startswith(f"{parent['name']}."):
                rows = rows.filter(rows[name].is_valid())
        if broken := rule_broken(rule, {name: known[name] for name in names}, rows):
            yield f"{broken} members of families break the rule {rule['says']!r}"


def shared_weight(divisors: Iterable[int]) -> int:
    """The least weight that all of them divide, or a large one."""
    weight = 1
    for each in divisors:
        weight = math.lcm(weight, each)
        if weight > MOST_WEIGHT:
            return MOST_WEIGHT
    return weight


def divisor(s: int, ordered: bool) -> int:
    """How many views a family of s children has."""
    return max(s if ordered else s * (s - 1), 1)


def parents_not_drawn(b: Bundle, rng: np.random.Generator) -> Iterator[str]:
    """Parents and numbers of children are rows of the model, before children are made for them.

    Where there are rules, families that cannot keep them are replaced, and nothing is compared.
    """
    if b.schema["between"] or any(each["rule"] for each in b.schema["within"].values()):
        return
    parent, child = b.schema["tables"]
    parents, children = (pq.ParquetFile(b.folder / name).read() for name in FAMILIES)
    codes = dict(
        zip((c["name"] for c in modelled(b)), sampled(b, parents.num_rows, rng), strict=True)
    )
    for column in b.schema["own"][parent["name"]]:
        if column["type"] in ("identifier", "text"):
            continue
        cell = Cells.of(column)
        at, beside = cell.points(parents[column["name"]])
        wanted = codes[f"{parent['name']}.{column['name']}"]
        if wrong := int((np.where(beside < 0, cell.find(at), beside) != wanted).sum()):
            yield f"{wrong} parents' {column['name']!r} are not those that model and key give"
    keys = {str(key): i for i, key in enumerate(parents[parent["key"]].to_pylist())}
    home = np.array(
        [keys[str(key)] for key in children[child["foreign_key"]].to_pylist()], np.int64
    )
    sizes = np.bincount(home, minlength=parents.num_rows) - child.get("min_children", 0)
    if wrong := int((sizes != codes[f"{child['name']}.count"]).sum()):
        yield f"{wrong} families have other numbers of children than model and key give"


def family_problems(b: Bundle, parents: pa.Table, children: pa.Table) -> Iterator[str]:
    """Tables that are not legal, keys that do not hold, sizes beyond the declared."""
    if "tables" not in b.schema:
        yield "families of a schema of one table"
        return
    parent, child = b.schema["tables"]
    numbered = {parent["name"]: [parent["key"]], child["name"]: [child.get("order")]}
    for table, rows in ((parent, parents), (child, children)):
        columns = []
        for column in b.schema["own"][table["name"]]:
            if column["name"] in numbered[table["name"]] and column["type"] == "identifier":
                action = column.get("action", "drop")
                column = {**column, "action": "{}" if action == "drop" else action}
            if table is not child or column["name"] != child["foreign_key"]:
                columns.append(column)
        if table is child:
            rows = rows.drop_columns([child["foreign_key"]])
        yield from table_problems(b.schema["within"][table["name"]], columns, rows)
    at = {str(key): i for i, key in enumerate(parents[parent["key"]].to_pylist())}
    home = [at.get(str(key), -1) for key in children[child["foreign_key"]].to_pylist()]
    if len(at) != parents.num_rows or -1 in home:
        yield "a key is there twice, or a child has no parent"
        return
    if home != sorted(home):
        yield "children do not follow their parents"
    sizes = np.bincount(np.array(home, np.int64), minlength=parents.num_rows)
    if sizes.size and (
        sizes.min() < child.get("min_children", 0) or sizes.max() > child["max_children"]
    ):
        yield f"families have {sizes.min()} to {sizes.max()} children"
        return
    yield from between_problems(b.schema, (parents, children), np.array(home, np.int64), sizes)
    weight, total = b.schema["understudy"]["family"]["max_rows"], 0
    for s, many in enumerate(np.bincount(sizes)):
        each = divisor(s, "order" in child)
        total += int(many) * each * (weight // each)
    if total != b.manifest["rows"]:
        yield f"the families weigh {total}, certified are {b.manifest['rows']}"


def stated_problems(column: dict[str, Any]) -> Iterator[str]:
    """Special values that are no such, and parents that nothing can fall to."""
    name, own, lengths = column["name"], column.get("special", []), column.get("prefixes", [])
    if "shape" in column and not nests(column["shape"], column["edges"], column):
        fault = kinds_fault(*(column["shape"].get(key, []) for key in ("steps", "rests")))
        yield f"{name!r} has a shape that does not nest in its cells" + f": {fault}" * bool(fault)
    if own and column["type"] not in ("integer", "number", "date", "datetime"):
        yield f"{name!r} has special values and no order"
        return
    for text in (value for value in own if isinstance(value, str)):
        with contextlib.suppress(ValueError):
            point(text, column)
            yield f"{name!r} has the special text {text!r:.40}, which is a value"
        if not text or text != text.strip() or text in column.get("null_values", []):
            yield f"{name!r} has the special text {text!r:.40}, which cannot be one"
    if [special(value, column) for value in own] != list(range(len(own))):
        yield f"{name!r} has a special value twice"
    parents = [value for value in column.get("values", []) if str(value)[-1:] == "*"]
    if lengths != sorted({*lengths}, reverse=True) or any(n < 1 for n in lengths):
        yield f"{name!r} has prefixes {lengths!r:.40}, which are none"
    elif lengths and not any(len(str(parent)) - 1 in lengths for parent in parents):
        yield f"{name!r} has prefixes and no parents"


# --- rules -------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""\s+|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<string>'(?:[^']|'')*')"""
    r"""|(?P<name>"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d]\w*(?:\.[^\W\d]\w*)*)|(?P<sign><=|>=|<>|!=|==|[=<>(),+-])"""
)
Test = Callable[[dict[str, Any]], bool | None]


def rule_broken(rule: dict[str, Any], columns: dict[str, Any], table: pa.Table) -> int:
    """How many rows break a rule, by their values."""
    words = Condition(rule["says"], columns).words
    names = [name for name in columns if name in {text for kind, text in words if kind == "name"}]
    rows = Counter(zip(*(table[name].to_pylist() for name in names), strict=True))
    if len(words) == 3 and words[1] == ("name", "determines"):
        broken = _undetermined(rule, words[0][1], words[2][1], columns)
    elif (sum_ := formula(words)) is not None:
        broken = _miscounted(words[0][1], sum_, columns)
    else:
        left, implies, right = _split(rule["says"])
        given = Condition(left, columns).parse() if implies else None
        then = compared(right, columns) or Condition(right, columns).parse()

        def unmet(row: dict[str, Any]) -> bool:
            return (given is None or given(row) is True) and then(row) is not True

        broken = unmet
    return sum(n for row, n in rows.items() if broken(dict(zip(names, row, strict=True))))


Sum = tuple[dict[str, int], Fraction]


def computed(schema: dict[str, Any]) -> set[str]:
    """The columns that rules compute from others: neither modelled nor measured."""
    found: set[str] = set()
    for rule in schema.get("rule", []):
        words = Condition(rule["says"], {}).words
        if len(words) == 3 and words[1] == ("name", "determines"):
            if rule.get("derived") or "cuts" in rule:
                found.add(words[2][1])
        elif formula(words) is not None:
            found.add(words[0][1])
    return found


def formula(words: list[tuple[str, str]]) -> Sum | None:
    """What `total = a + b - 3` adds up; None for other rules."""
    if len(words) < 3 or words[0][0] != "name" or words[1][1] not in ("=", "=="):
        return None
    found = added(words[2:])
    return found if found is not None and found[0] else None


def added(words: list[tuple[str, str]]) -> Sum | None:
    terms: Counter[str] = Counter()
    constant, sign, wanted = Fraction(0), 1, True
    for at, (kind, text) in enumerate(words):
        if kind == "sign" and text in "+-" and (not wanted or at == 0):
            sign, wanted = (-1 if text == "-" else 1), True
        elif wanted and kind == "name":
            terms[text] += sign
            wanted = False
        elif wanted and kind == "number":
            constant += sign * fraction(text)
            wanted = False
        else:
            return None
    return None if wanted else (dict(terms), constant)


def fraction(text: str) -> Fraction:
    """What a text says; ValueError for an exponent of more than three digits, which takes for ever."""
    if re.search(r"[eE][+-]?0*[\d_]{4}", text):
        raise ValueError(f"{text!r:.60} is too large")
    return Fraction(text)


def dated(column: dict[str, Any]) -> bool:
    """Whether its values are days or moments, in whatever type they are written."""
    listed = column["type"] == "category" and isinstance(column["values"][0], datetime.date)
    return listed or column["type"] in ("date", "datetime")


def amount(value: Any, column: dict[str, Any]) -> Fraction | None:
    """A value as an exact number, microseconds for dates; None if it is none."""
    if value is None or special(value, column) is not None:
        return None
    if column["type"] == "category" and value == column.get("other"):
        return None
    if column["type"] == "category" and column.get("ordinal") and isinstance(value, str):
        return Fraction(column["values"].index(value))  # its place in the declared order
    if dated(column):
        moment = point(value, column)
        return Fraction((moment - datetime.datetime(1970, 1, 1)) // RESOLUTIONS["microsecond"])
    try:
        if isinstance(value, float) and "decimals" in column:
            return Fraction(round(value * 10 ** column["decimals"]), 10 ** column["decimals"])
        return Fraction(value) if isinstance(value, float) else fraction(str(plain(value, column)))
    except ValueError:
        return None


def compared(text: str, columns: dict[str, Any]) -> Test | None:
    """`a <= b + 3`; None for other conditions. Where one is no number nothing is asked."""
    words = Condition(text, columns).words
    at = [i for i, (_, word) in enumerate(words) if word in ("<", "<=", ">", ">=")]
    sides = [added(words[: at[0]]), added(words[at[0] + 1 :])] if len(at) == 1 else [None, None]
    (one, two), sign = sides, words[at[0]][1] if at else ""
    if one is None or two is None or len({*one[0], *two[0]}) < 2:
        return None

    def test(row: dict[str, Any]) -> bool:
        ends = [summed(side, row, columns) for side in (one, two)]
        if ends[0] is None or ends[1] is None:
            return True
        return {"<": ends[0] < ends[1], "<=": ends[0] <= ends[1], ">": ends[0] > ends[1],
                ">=": ends[0] >= ends[1]}[sign]  # fmt: skip

    return test


def summed(side: Sum, row: dict[str, Any], columns: dict[str, Any]) -> Fraction | None:
    """The sum of columns of a row; None where one of them is no number."""
    parts = {name: amount(row[name], columns[name]) for name in side[0]}
    days = any(dated(columns[name]) for name in side[0])
    total = side[1] * (86_400 * 10**6 if days else 1)
    for name, factor in side[0].items():
        part = parts[name]
        if part is None:
            return None
        plain = days and not dated(columns[name])  # a number of days
        total += factor * part * (86_400 * 10**6 if plain else 1)
    return total


def _miscounted(
    target: str, side: Sum, columns: dict[str, Any]
) -> Callable[[dict[str, Any]], bool]:
    close = 1e-6 if "float32" in columns[target]["dtype"] else 1e-12
    days = any(dated(columns[name]) for name in side[0])

    def broken(row: dict[str, Any]) -> bool:
        total, made = summed(side, row, columns), plain(row[target], columns[target])
        if total is None or made is None:
            return total is not None or made is not None
        if dated(columns[target]):
            wanted = point(made, columns[target]) - datetime.datetime(1970, 1, 1)
            return total != wanted // RESOLUTIONS["microsecond"]
        total /= 86_400 * 10**6 if days else 1
        if isinstance(made, float | str):  # doubles are rounded after each term
            parts = (abs(amount(row[name], columns[name]) or 0) for name in side[0])
            return not math.isclose(
                float(made), total, rel_tol=close, abs_tol=1e-12 * float(1 + sum(parts))
            )
        return Fraction(str(made)) != total

    return broken


def _undetermined(
    rule: dict[str, Any], source: str, target: str, columns: dict[str, Any]
) -> Callable[[dict[str, Any]], bool]:
    """Whether a row has another value than one that its other value, or its interval, determines."""
    one, two = columns[source], columns[target]
    listed = {_plain(key, one): value for key, value in rule.get("mapping", {}).items()}
    default, total = rule.get("default"), rule.get("derived") or "cuts" in rule

    def broken(row: dict[str, Any]) -> bool:
        value, wanted = row[source], default
        if "cuts" in rule and amount(value, one) is not None:
            here = point(value, one)
            wanted = rule["values"][sum(point(cut, one) <= here for cut in rule["cuts"])]
        elif value is not None and _plain(as_text(value), one) in listed:
            wanted = listed[_plain(as_text(value), one)]
        elif not total:
            return False
        elif value is None and two["nullable"]:
            wanted = None
        if wanted is None or row[target] is None:
            return wanted is not None or row[target] is not None
        return _plain(as_text(row[target]), two) != _plain(as_text(wanted), two)

    return broken


def _plain(text: str, column: dict[str, Any]) -> str:
    """How a value is written, numbers in one way."""
    values = column.get("values", "")
    if column["type"] in ("integer", "number") or (
        isinstance(values, list)
        and isinstance(values[0], int | float)
        and not isinstance(values[0], bool)
    ):
        with contextlib.suppress(ValueError):
            return str(float(plain(text, column)))
    return text


def _split(says: str) -> tuple[str, str, str]:
    """Before and after the word `implies`, outside of quotes; without it all is after."""
    for match in TOKEN.finditer(says):
        if match["name"] and match["name"].lower() == "implies":
            return says[: match.start()], "implies", says[match.end() :]
    return "", "", says


def as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Condition:
    """A condition of SQL's WHERE on one row: true, false, or unknown (None) because of a null."""

    def __init__(self, text: str, columns: dict[str, Any]) -> None:
        self.columns = columns
        self.words: list[tuple[str, str]] = []
        for match in TOKEN.finditer(text):
            kind, word = match.lastgroup, match.group()
            if kind in ("string", "name") and word[0] in "'\"`":
                word = word[1:-1].replace(word[0] * 2, word[0])
            elif kind == "name" and word.lower() in KEYWORDS:
                kind, word = "keyword", word.lower()
            if kind:
                self.words.append((kind, word))

    def parse(self) -> Test:
        test = self._any()
        if self.words:
            raise ValueError(f"{self.words[0][1]!r} is not understood in a rule")
        return test

    def _take(self, *wanted: str) -> bool:
        if self.words and self.words[0][0] in ("keyword", "sign") and self.words[0][1] in wanted:
            self.words.pop(0)
            return True
        return False

    def _any(self) -> Test:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return _either(parts)

    def _all(self) -> Test:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return _negated(_either([_negated(part) for part in parts]))

    def _not(self) -> Test:
        if self._take("not"):
            return _negated(self._not())
        if self._take("("):
            test = self._any()
            self._expect(")")
            return test
        if self.words[0][0] != "name":  # 65 <= age
            value = self._value()
            sign = self.words.pop(0)[1]
            return self._compare(self.words.pop(0)[1], {"<": ">", ">": "<", "<=": ">=",
                                                        ">=": "<="}.get(sign, sign), value)  # fmt: skip
        name = self.words.pop(0)[1]
        column = self.columns[name]
        if self._take("is"):
            absent = not self._take("not")
            self._expect("null")
            return lambda row: (row[name] is None) == absent
        negate = self._take("not")
        if self._take("in"):
            self._expect("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._expect(")")
            test = _either([self._compare(name, "=", value) for value in values])
        elif self._take("between"):
            low = self._value()
            self._expect("and")
            high = self._compare(name, "<=", self._value())
            above = self._compare(name, ">=", low)
            test = _negated(_either([_negated(above), _negated(high)]))
        elif self.words and self.words[0][0] == "sign" and self.words[0][1] not in "(),":
            sign = self.words.pop(0)[1]
            if self.words and self.words[0][0] == "name":
                test = self._between(name, sign, self.words.pop(0)[1])
            else:
                test = self._compare(name, sign, self._value())
        elif column["type"] == "boolean":
            test = self._compare(name, "=", True)
        else:
            raise ValueError(f"{name!r} says nothing by itself")
        return _negated(test) if negate else test

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise ValueError(f"a rule lacks {word!r}")

    def _value(self) -> Any:
        sign = -1 if self._take("-") else 1
        self._take("+")
        kind, word = self.words.pop(0)
        if kind == "number":
            return sign * (int(word) if word.isdigit() else float(word))
        return {"true": True, "false": False}[word] if kind == "keyword" else word

    def _between(self, left: str, sign: str, right: str) -> Test:
        """Two columns compared; unknown where one of them is no number."""
        sign = {"==": "=", "<>": "!="}.get(sign, sign)

        def test(row: dict[str, Any]) -> bool | None:
            one, two = (amount(row[name], self.columns[name]) for name in (left, right))
            if one is None or two is None:
                return None
            return SIGNS[sign](one, two)

        return test

    def _compare(self, name: str, sign: str, literal: Any) -> Test:
        column = self.columns[name]
        sign = {"==": "=", "<>": "!="}.get(sign, sign)

        def test(row: dict[str, Any]) -> bool | None:
            value = row[name]
            if value is None:
                return None
            own, other = special(value, column), special(literal, column)
            if own is not None or (other is not None and sign in ("=", "!=")):
                return {"=": own == other, "!=": own != other}.get(sign, False)  # on no side
            if column["type"] in ("category", "boolean") and sign in ("=", "!="):
                same = as_text(value) == as_text(literal) or value == literal
                return same == (sign == "=")
            one, two = point(value, column), point(literal, column)
            if one is None or two is None:  # OTHER has no place in an order
                return None
            return SIGNS[sign](one, two)

        return test


KEYWORDS = {"and", "or", "not", "in", "between", "is", "null", "true", "false"}
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _negated(test: Test) -> Test:
    def negated(row: dict[str, Any]) -> bool | None:
        found = test(row)
        return None if found is None else not found

    return negated


def _either(tests: list[Test]) -> Test:
    def either(row: dict[str, Any]) -> bool | None:
        found = [test(row) for test in tests]
        return True if True in found else None if None in found else False

    return either


def plain(value: Any, column: dict[str, Any]) -> Any:
    """A number that is written as its column says (by "#.##0,00 €") as programs write it."""
    if not isinstance(value, str) or column["type"] not in ("integer", "number"):
        return value
    form = r"([^0#]*)(?:#(.)##(?:\2##)?)?0(?:([.,])0+)?([^0#]*)"
    parts = re.fullmatch(form, column.get("format", "0"))
    if parts is None:
        raise ValueError("format")
    before, thousands, decimal, after = (part or "" for part in parts.groups())
    sign = "-" if value.startswith("-") else ""
    whole = value.removeprefix("-").removeprefix(before).removesuffix(after)
    digits, _, rest = whole.partition(decimal) if decimal else (whole, "", "")
    return f"{sign}{digits.replace(thousands, '') if thousands else digits}{decimal and '.'}{rest}"


def special(value: Any, column: dict[str, Any]) -> int | None:
    """Which special value it is, if any."""
    narrow = {"float32": np.float32, "float16": np.float16}.get(column["dtype"], float)
    for at, own in enumerate(column.get("special", [])):
        if value == own:
            return at
        if isinstance(own, str):
            continue
        with contextlib.suppress(TypeError, ValueError):  # the value is another one, a text
            place = float(narrow(own)) if column["type"] == "number" else point(own, column)
            if point(value, column) == place:
                return at
    return None


def point(value: Any, column: dict[str, Any]) -> Any:
    """A value as something that can be compared; None if it has no place in the column's order."""
    kind = column["type"]
    if kind == "category" and isinstance(column["values"][0], str):
        listed = column["values"]
        return listed.index(value) if value in listed and column.get("ordinal") else None
    if dated(column) or isinstance(value, datetime.date):
        if isinstance(value, str) and "format" in column:
            with contextlib.suppress(ValueError):
                value = datetime.datetime.strptime(value, column["format"])
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if not isinstance(value, datetime.datetime):
            value = datetime.datetime.combine(value, datetime.time())
        if value.tzinfo is not None and "tz=" in column["dtype"]:  # instants, in UTC
            value = value.astimezone(datetime.UTC)
        return value.replace(tzinfo=None)
    return float(plain(value, column))


def on_mask(latitude: float, longitude: float, place: dict[str, Any]) -> bool:
    """Whether a place is allowed: inside an odd number of rings, on a 1, or at a centroid."""
    if "polygons" in place:
        east = 0
        for ring in place["polygons"]:
            for (x0, y0), (x1, y1) in zip(ring, [*ring[1:], ring[0]], strict=True):
                if (y0 > latitude) != (y1 > latitude):
                    east += longitude < x0 + (latitude - y0) / (y1 - y0) * (x1 - x0)
        return east % 2 == 1
    if "grid" in place:
        grid = place["grid"]
        (west, south), side = grid["corner"], grid["pixel"]
        line = math.floor((latitude - south) / side)
        column = math.floor((longitude - west) / side)
        rows = grid["rows"][::-1]
        inside = 0 <= line < len(rows) and 0 <= column < len(rows[0])
        return inside and rows[line][column] == "1"
    return any(  # written with the digits of its column
        abs(latitude - y) < 0.01 and abs(longitude - x) < 0.01 for x, y in place["centroids"]
    )


def same_type(type_: pa.DataType, declared: str) -> bool:
    """As declared, or as Parquet gives it back: dictionaries, seconds and date64 are not kept."""
    try:
        return str(type_) == declared or _stored(type_) == _stored(pa.type_for_alias(declared))
    except ValueError:
        return False


def _stored(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_timestamp(type_) and type_.unit == "s":
        return pa.timestamp("ms", type_.tz)
    return pa.date32() if pa.types.is_date64(type_) else type_


def in_domain(value: Any, column: dict[str, Any], type_: pa.DataType) -> bool:
    kind = column["type"]
    if kind == "category":
        return value in [*column["values"], *([column["other"]] if "other" in column else [])]
    if kind == "boolean":
        return isinstance(value, bool)
    if special(value, column) is not None:
        return True
    ends = column.get("edges") or [column["lower"], column["upper"]]
    low, high = ends[0], ends[-1]
    if kind in ("date", "datetime"):
        if isinstance(value, str):
            value = point(value, column)
        if kind == "date" and isinstance(value, datetime.datetime):
            value = value.date()
        if kind == "datetime":
            low, high, value = (point(moment, column) for moment in (low, high, value))
        return low <= value <= high
    value = float(plain(value, column)) if isinstance(value, str) else value
    if pa.types.is_float32(type_):
        low, high = float(np.float32(low)), float(np.float32(high))
    return low <= value <= high and (kind != "integer" or value == int(value))


def copula_problems(copula: dict[str, Any], shape: list[int]) -> Iterator[str]:
    """It says how values lie inside cells, so what it must be is only a normal law of columns."""
    columns, matrix = copula["columns"], copula["correlations"]
    sizes = {len(columns), len(copula["ends"]), len(matrix), *map(len, matrix)}
    if len(sizes) > 1 or not 2 <= len(columns) <= 64 or len(set(columns)) < len(columns):
        yield "the copula of the model is of no columns"
    elif max(columns) >= len(shape) or any(
        len(ends) >= shape[i] or any(a >= b for a, b in itertools.pairwise(ends))
        for i, ends in zip(columns, copula["ends"], strict=True)
    ):
        yield "the copula of the model leaves its cells"
    elif not (
        (np.array(matrix) == np.array(matrix).T).all()
        and (np.diag(matrix) == 1).all()
        and np.linalg.eigvalsh(np.array(matrix, float))[0] >= 0.001
    ):
        yield "the copula of the model has no correlations"


def model_problems(b: Bundle) -> Iterator[str]:
    plain_file(b.folder / "model.json")
    model = parsed((b.folder / "model.json").read_bytes())
    weighted = {**MODEL, "cliques": [["natural"]], "swaps?": "swaps", "copula?": COPULA}
    fits(model, (weighted, MODEL), "model.json")
    if ("swaps" in model or "copula" in model) and model["kind"] != "weighted":
        yield "only weighted records are exchanged for others, or have a copula"
        return
    if "copula" in model:
        yield from copula_problems(model["copula"], model["shape"])
    if ("cliques" in model) != (model["kind"] != "empirical"):
        yield "the model lacks its marginals, or has some"
        return
    for clique in model.get("cliques", []):
        if len(set(clique)) < len(clique) or any(i >= len(model["shape"]) for i in clique):
            yield f"the model's marginal {clique[:20]} leaves its columns"
            return
    stored_arrays(b.folder / "model.npz")
    shape = [cells(column) for column in modelled(b)]
    kinds = ("decomposable", "empirical", "weighted")
    if model["kind"] not in kinds or model["shape"] != shape:
        yield f"the model is {model['kind']!r} of shape {model['shape']}, the schema's is {shape}"
    with np.load(io.BytesIO((b.folder / "model.npz").read_bytes()), allow_pickle=False) as arrays:
        if model["kind"] != "decomposable":
            weighted = model["kind"] == "weighted"
            wanted = [*(f"column_{i}" for i in range(len(shape))), *["weights"] * weighted]
            if sorted(arrays) != sorted(wanted):
                yield f"the model's columns are {sorted(arrays)}"
            if weighted:
                weights = arrays["weights"]
                if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
                    yield "the model's weights are none"
                if any(i not in range(len(shape)) for clique in model["cliques"] for i in clique):
                    yield "a marginal of the model leaves its columns"
            if len({arrays[name].shape for name in arrays}) != 1:
                yield "the model's columns differ in length"
            for i, size in enumerate(shape):
                codes = arrays[f"column_{i}"]
                if codes.dtype.kind != "u" or codes.ndim != 1 or not (codes < size).all():
                    yield f"column_{i} of the model leaves its domain"
            return
        if sorted(arrays) != sorted(f"table_{i}" for i in range(len(model["cliques"]))):
            yield f"the model's tables are {sorted(arrays)}"
        for i, clique in enumerate(model["cliques"]):
            table = arrays[f"table_{i}"]
            if table.shape != tuple(shape[axis] for axis in clique):
                yield f"table_{i} of the model has shape {table.shape}"
            if not ((table >= 0).all() and math.isclose(table.sum(), 1, rel_tol=1e-6)):
                yield f"table_{i} of the model is no probability table"


# --- rows from model and key -------------------------------------------------------------------
#
# Rows are a function of model and key: codes are sampled from the model, moved where rules and places
# ask for it, and every code becomes a value of its cell. All of it is done again here, but for the
# moves: in a column that a rule or a place names the code of a row is taken as it is, and where columns
# are compared, so are their values inside the cells; where there are places, those of all columns,
# because places draw from the same generator.

GOLDEN = (math.sqrt(5) - 1) / 2


def check_drawn(b: Bundle) -> Iterator[str]:
    rng = np.random.default_rng(np.random.SeedSequence(int(b.manifest["key"]), spawn_key=(0,)))
    schema = b.schema
    if "families" in b.manifest:
        yield from parents_not_drawn(b, rng)
        return
    table = pq.ParquetFile(b.folder / "synthetic.parquet").read()
    columns, codes = modelled(b), sampled(b, table.num_rows, rng)
    moved = {name for place in schema.get("geography", []) for name in place.values()
             if isinstance(name, str)}  # fmt: skip
    ordered: set[str] = set()  # drawn anew within their cells, by a generator of their own
    for rule in schema.get("rule", []):
        words = Condition(rule["says"], {c["name"]: c for c in columns}).words
        names = {text for kind, text in words if kind == "name"}
        if formula(words) is not None or rule.get("derived") or "cuts" in rule:
            continue  # computed after all has been drawn
        moved |= names
        _, _, then = _split(rule["says"])
        if compared(then, {}) is not None:
            ordered |= names
    read = [Cells.of(column) for column in columns]
    points = [cell.points(table[cell.column["name"]]) for cell in read]
    found = [
        np.where(beside < 0, cell.find(at), beside)
        for cell, (at, beside) in zip(read, points, strict=True)
    ]
    for cell, own, wanted in zip(read, found, codes, strict=True):
        name = cell.column["name"]
        if name not in moved and (wrong := int((own != wanted).sum())):
            yield f"{wrong} rows of {name!r} are not those that model and key give"
            return
    if schema.get("geography"):
        return
    model = parsed((b.folder / "model.json").read_bytes())
    scores = scores_of(model["copula"], found, rng) if "copula" in model else {}
    for i, (cell, own, (at, beside)) in enumerate(zip(read, found, points, strict=True)):
        drawn = cell.draw(np.where(beside < 0, own, 0), rng)
        if i in scores and (cell.lows < cell.highs).any():
            drawn = arranged(drawn, own, np.flatnonzero(beside < 0), scores[i])
        if cell.column["name"] in ordered:
            continue
        if wrong := int(((beside < 0) & ~cell.same(at, drawn)).sum()):
            yield f"{wrong} values of {cell.column['name']!r} are not those that the key gives"
            return


def arranged(
    drawn: np.ndarray, codes: np.ndarray, inside: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """Points, exchanged among the rows of each cell: they come in the order of the scores."""
    found = drawn.copy()
    rows = inside[np.lexsort((scores[inside], codes[inside]))]
    found[rows] = np.sort(drawn[inside])
    return found


def scores_of(
    copula: dict[str, Any], codes: list[np.ndarray], rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """Normal scores of rows, correlated and inside the intervals that their codes are (Gibbs sampling).

    For 32,768 rows at a time: every column by itself, then three times each column given all others.
    """
    columns, precision = copula["columns"], np.linalg.inv(np.array(copula["correlations"]))
    own = np.stack([codes[i] for i in columns])
    scores = np.zeros(own.shape)
    for start in range(0, own.shape[1], 2**15):
        part = slice(start, start + 2**15)
        lows, highs = (
            np.stack([
                np.array(ends)[np.minimum(each, len(ends) - 1)]
                for each, ends in zip(own[:, part], sides, strict=True)
            ])
            for sides in (
                [[-np.inf, *ends, -np.inf] for ends in copula["ends"]],
                [[*ends, np.inf, np.inf] for ends in copula["ends"]],
            )
        )  # fmt: skip
        z = np.stack(
            [_normal_between(low, high, rng) for low, high in zip(lows, highs, strict=True)]
        )
        for k in [*range(len(columns))] * 3:
            spread = precision[k, k] ** -0.5
            mean = z[k] - (precision[k] @ z) / precision[k, k]
            z[k] = mean + spread * _normal_between(
                (lows[k] - mean) / spread, (highs[k] - mean) / spread, rng
            )
            z[k] = np.clip(z[k], lows[k], highs[k])
        scores[:, part] = z
    return dict(zip(columns, scores, strict=True))


def _normal_between(low: np.ndarray, high: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers between ends, on the side where the law's tail is exact."""
    flip = low > 0
    one, other = (
        np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in end])
        for end in (np.where(flip, -high, low), np.where(flip, -low, high))
    )
    share = np.clip(one + rng.random(low.size) * (other - one), 1e-300, 1 - 2.0**-53)
    drawn = np.array([NormalDist().inv_cdf(p) for p in share.tolist()])
    return np.clip(np.where(flip, -drawn, drawn), low, high)


@dataclass(frozen=True)
class Cells:
    """The cells of a column: listed values, or points from lows[i] to highs[i], both included.

    Points are integers (days, ticks of the resolution, units of the last decimal) or doubles. The
    points of special values are in no cell: they are taken off its ends, and avoided inside.
    """

    column: dict[str, Any]
    lows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # none if listed
    highs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    decimals: int | None = None

    @classmethod
    def of(cls, column: dict[str, Any]) -> "Cells":
        if column["type"] in ("category", "boolean"):
            return cls(column)
        every = cls._cut(column, intervals(column))
        lows, highs, gone = every.lows, every.highs, every.gone
        for _ in range(len(gone) + 1):
            kept = ~((lows == highs) & np.isin(lows, gone))
            lows, highs = lows[kept], highs[kept]
            lows = np.where(np.isin(lows, gone), beside(lows, 1), lows)
            highs = np.where(np.isin(highs, gone) & (lows < highs), beside(highs, -1), highs)
        return replace(every, lows=lows, highs=highs)

    @classmethod
    def _cut(cls, column: dict[str, Any], count: int) -> "Cells":
        decimals = decimals_of(column) if column["type"] == "number" else None
        edges = column.get("edges") or [column["lower"], column["upper"]]
        if column["type"] != "number":
            ticks = [tick(edge, column) for edge in edges]
            lows, last = ticks[:-1], ticks[-1]
            if "edges" not in column:
                lows = [lows[0] + (last - lows[0] + 1) * i // count for i in range(count)]
        elif decimals is None:
            cuts = np.array(edges, float)
            if "edges" not in column:
                cuts = np.linspace(cuts[0], cuts[-1], count + 1)
            highs = np.append(np.nextafter(cuts[1:-1], -np.inf), cuts[-1])
            return cls(column, cuts[:-1], highs)
        else:
            units = [Fraction(repr(float(edge))) * 10**decimals for edge in edges]
            if "edges" not in column:
                width = (units[1] - units[0]) / count
                units = [units[0] + width * i for i in range(count + 1)]
            lows, last = [math.ceil(cut) for cut in units[:-1]], math.floor(units[-1])
        highs = np.array([*(low - 1 for low in lows[1:]), last], np.int64)
        return cls(column, np.array(lows, np.int64), highs, decimals)

    @property
    def gone(self) -> np.ndarray:
        """The points of special values."""
        values = [value for value in self.column.get("special", []) if not isinstance(value, str)]
        narrow = {"float32": np.float32, "float16": np.float16}.get(self.column["dtype"], float)
        values = values if self.lows.dtype.kind == "i" else [float(narrow(v)) for v in values]
        return np.array([self._point(value) for value in values], self.lows.dtype)

    def points(self, values: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
        """The point of every value, or its place in the list; the code of special ones and null.

        One of the two holds: the code of an ordinary value is −1 here, the point of another 0.
        """
        if pa.types.is_dictionary(values.type):
            values = pc.cast(values, values.type.value_type)
        encoded = pa.concat_arrays(values.chunks or [pa.array([], values.type)]).dictionary_encode()
        listed = encoded.dictionary.to_pylist()
        marks = [special(value, self.column) for value in listed]
        each = [0 if m is not None else self._point(v) for v, m in zip(listed, marks, strict=True)]
        codes = [-1 if mark is None else len(self.lows) + mark for mark in marks]
        null = cells(self.column) - 1  # where there is one
        at = encoded.indices.fill_null(len(each)).to_numpy(zero_copy_only=False)
        return np.array([*each, 0], self.lows.dtype)[at], np.array([*codes, null], np.int64)[at]

    def _point(self, value: Any) -> int | float:
        kind = self.column["type"]
        if kind == "boolean":
            return int(value)
        if kind == "category":
            listed = [
                *self.column["values"],
                *([self.column["other"]] if "other" in self.column else []),
            ]
            return listed.index(value)
        if kind == "number":
            if self.decimals is None:
                return float(value)
            if isinstance(value, float):
                return round(value * 10.0**self.decimals)
            return round(Fraction(str(plain(value, self.column))) * 10**self.decimals)
        return tick(value, self.column)

    def find(self, points: np.ndarray) -> np.ndarray:
        if not self.lows.size:
            return points
        return np.maximum(np.searchsorted(self.lows, points, side="right") - 1, 0)

    def draw(self, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A point of every cell; listed values are drawn already."""
        if not self.lows.size:
            return at
        lows, highs = self.lows[at], self.highs[at]
        if "shape" in self.column:
            cuts = self._cut(self.column, intervals(self.column)).lows  # special values or not
            place = np.searchsorted(cuts, self.lows, side="right") - 1
            drawn = by_shape(self.column["shape"], cuts, place[at], rng)
            drawn = np.clip(drawn, lows, highs) if len(self.gone) else drawn
        elif self.lows.dtype.kind == "i":
            drawn = rng.integers(lows, highs, endpoint=True)
        else:
            drawn = np.clip(lows + rng.random(len(at)) * (highs - lows), lows, highs)
        while (hit := np.isin(drawn, self.gone)).any():
            drawn = np.where(hit, beside(drawn, 1), drawn)
        return drawn

    def same(self, points: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """Integers are equal; doubles are as near as their type can write them."""
        if points.dtype.kind == "i":
            return points == drawn
        near = {"float32": 1e-6, "float16": 2e-3}.get(self.column["dtype"], 1e-14)
        return np.isclose(points, drawn, rtol=near, atol=0)


def beside(points: np.ndarray, step: int) -> np.ndarray:
    """The next points, upwards or downwards."""
    return points + step if points.dtype.kind == "i" else np.nextafter(points, step * np.inf)


def by_shape(
    shape: dict[str, Any], lows: np.ndarray, cells_: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A point of every cell: a leaf by its weight, a point by the density there, then a round one.

    The c rows of a cell, in random order, take the shares (k + v)/c of its weight, v one for the cell.
    """
    leaves = np.array(shape["leaves"], lows.dtype)
    weights = np.array(shape["weights"], float)
    first = np.searchsorted(leaves, lows)
    after = np.append(first[1:], len(weights))
    for one, end in zip(first, after, strict=True):
        if not weights[one:end].any():  # evenly
            weights[one:end] = np.diff(leaves[one : end + 1])
    ends = np.concatenate([[0.0], np.cumsum(weights)])
    order = np.lexsort((rng.random(len(cells_)), cells_))
    many = np.bincount(cells_, minlength=len(lows))
    rank = np.empty(len(cells_))
    rank[order] = np.arange(len(cells_)) - (np.cumsum(many) - many)[cells_[order]]
    share = (rank + rng.random(len(lows))[cells_]) / many[cells_]
    start = ends[first[cells_]]
    at = start + share * (ends[after[cells_]] - start)
    leaf = np.searchsorted(ends, at, side="right") - 1
    leaf = np.clip(leaf, first[cells_], after[cells_] - 1)
    mass = ends[leaf + 1] - ends[leaf]
    part = np.where(mass > 0, (at - ends[leaf]) / np.where(mass > 0, mass, 1.0), 0.0)
    drawn = _in_leaf(leaves, np.array(shape["weights"], float), leaf, np.clip(part, 0.0, 1.0))
    return _made_round(shape, leaves, leaf, drawn, rng) if shape.get("roundness") else drawn


def _powers(leaves: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The power of |x| that the density follows in a leaf, from the leaves that touch it: −4 to 4.

    Only leaves with weight, on one side of zero, that are no points have a density.
    """
    ends = leaves.astype(float)
    width = np.diff(ends)
    if leaves.dtype.kind == "i":
        wide = width > 1
    else:
        wide = np.abs(width) > 2.0**-19 * np.maximum(np.abs(ends[1:]), 1e-300)
    dense = (weights > 0) & wide
    place = np.log(np.maximum(np.abs(ends[:-1] + ends[1:]) / 2, 1e-300))
    height = np.log(np.where(dense, weights, 1.0) / np.where(dense, width, 1.0))
    powers = np.zeros(len(weights))
    held = np.flatnonzero(dense & (ends[:-1] * ends[1:] > 0))
    if len(held) < 2:
        return powers
    for at, own in enumerate(held):
        left = held[at - 1] if at and own - held[at - 1] <= 2 else own
        right = held[at + 1] if at + 1 < len(held) and held[at + 1] - own <= 2 else own
        run = place[right] - place[left]
        if abs(run) > 1e-9:
            powers[own] = min(4.0, max(-4.0, (height[right] - height[left]) / run))
    return powers


def _in_leaf(
    leaves: np.ndarray, weights: np.ndarray, leaf: np.ndarray, part: np.ndarray
) -> np.ndarray:
    """The points below which a leaf has these parts of its weight."""
    low, high = leaves[leaf], leaves[leaf + 1]
    near, far = np.abs(low.astype(float)), np.abs(high.astype(float))
    power = _powers(leaves, weights)[leaf]
    bent = (power != 0.0) & (near > 0) & (far > 0)
    ratio = np.where(bent, far, 2.0) / np.where(bent, near, 1.0)
    log, one = np.log(ratio), power + 1.0
    flat = np.abs(one) < 1e-6
    one = np.where(flat, 1.0, one)
    grown = np.where(flat, part * log, np.log1p(part * np.expm1(one * log)) / one)
    way = np.clip(np.where(bent, np.expm1(grown) / (ratio - 1.0), part), 0.0, 1.0)
    if leaves.dtype.kind == "i":
        steps = np.floor(way * (high - low).astype(float)).astype(np.int64)
        return np.minimum(low + steps, high - 1)
    return np.clip(low + way * (high - low), low, np.nextafter(high, low))


def _made_round(
    shape: dict[str, Any],
    leaves: np.ndarray,
    leaf: np.ndarray,
    points: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The points moved to near ones of their leaf that are of a kind, and of no earlier one.

    A kind is as frequent in a leaf as there are numbers of it, out of those of the decade that the leaf
    begins in.
    """
    steps = np.array([*shape["steps"], 1], np.int64)
    rests = np.array([*(shape.get("rests") or [0] * len(shape["steps"])), 0], np.int64)
    decades = np.array(shape["decades"], np.int64)
    counts = np.array(shape["roundness"], float).reshape(-1, len(steps))
    large = int(np.sum(steps > 100))
    small = list(zip(steps[large:-1].tolist(), rests[large:-1].tolist(), strict=True))
    period = math.lcm(*(step for step, _ in small))

    def number(ends: np.ndarray) -> np.ndarray:
        """Numbers of each kind from one end to the next: by all rests of a period, less the chain."""
        upto = np.zeros((len(ends), len(steps)), np.int64)
        for rest in range(period):
            above = -((rest - ends) // period)  # from 0 on, and as many less below
            upto[ends > 0, large + kind_of(rest, small)] += above[ends > 0]
            upto[ends <= 0, large + kind_of(period - rest, small)] += above[ends <= 0]
        each = np.diff(upto, axis=0)
        chain = np.stack([0 * ends, *(-(-ends // step) for step in steps[:large])], axis=1)
        multiples = np.diff(chain, axis=0)
        each[:, :large] = np.diff(multiples, axis=1)
        each[:, large + kind_of(0, small)] -= multiples[:, -1]
        return each.astype(float)

    def right(points: np.ndarray, kind: np.ndarray) -> np.ndarray:
        """Whether points are of a kind: of it, and of none before."""
        fits = np.stack(
            [np.abs(np.fmod(points, s)) == r for s, r in zip(steps, rests, strict=True)]
        )
        return np.argmax(fits, axis=0) == kind

    decade = np.searchsorted(decades, leaves[:-1], side="right") - 1
    decade = np.clip(decade, 0, len(counts) - 1)
    chance = counts[decade] / np.maximum(number(decades), 1)[decade] * number(leaves)
    chance[np.diff(leaves) == 1] = 0.0
    sums = np.cumsum(chance, axis=1)[leaf]
    picked = rng.random(len(leaf)) * sums[:, -1]
    kind = np.minimum((sums <= picked[:, None]).sum(axis=1), len(steps) - 1)
    step, own = steps[kind], np.where(points < 0, -rests[kind], rests[kind])
    near = (points - own + step // 2) // step * step + own
    moved, waits = points.copy(), sums[:, -1] > 0
    for shift in (0, -1, 1, -2, 2):
        to = near + shift * step
        inside = (to >= leaves[leaf]) & (to < leaves[leaf + 1])
        fits = waits & inside & right(to, kind)
        moved[fits] = to[fits]
        waits &= ~fits
    return moved


def tick(value: Any, column: dict[str, Any]) -> int:
    """An integer, a day, or a moment in units of the resolution, since 1970; in UTC if zoned."""
    if column["type"] == "integer":
        return int(Fraction(str(plain(value, column))))
    if isinstance(value, str):
        if "format" in column:
            value = datetime.datetime.strptime(value, column["format"])
        else:
            value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        zoned = "tz=" in column["dtype"]
        value = (value.astimezone(datetime.UTC) if zoned else value).replace(tzinfo=None)
    unit = "day" if column["type"] == "date" else column.get("resolution", "second")
    return (value - datetime.datetime(1970, 1, 1)) // RESOLUTIONS[unit]


def sampled(b: Bundle, rows: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The codes of so many rows of the model, a column each."""
    model = parsed((b.folder / "model.json").read_bytes())
    with np.load(io.BytesIO((b.folder / "model.npz").read_bytes()), allow_pickle=False) as arrays:
        if model["kind"] == "decomposable":
            tables = [arrays[f"table_{i}"] for i in range(len(model["cliques"]))]
            return _by_cliques(model, tables, rows, rng)
        codes = [arrays[f"column_{i}"] for i in range(len(model["shape"]))]
        if model["kind"] == "weighted":
            chosen = _by_weights(model, codes, arrays["weights"].astype(np.float32), rows, rng)
        else:  # every record equally often, up to one
            size = codes[0].size
            times, rest = divmod(rows, size)
            extra = rng.permutation(size)[:rest]
            chosen = rng.permutation(np.concatenate([np.tile(np.arange(size), times), extra]))
        return [column[chosen] for column in codes]


def _by_cliques(
    model: dict[str, Any], tables: list[np.ndarray], rows: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Clique after clique: rows that agree on the separator share its cells, rounded up or down."""
    shape = model["shape"]
    codes = [np.zeros(rows, np.int64) for _ in shape]
    drawn: list[int] = []
    for own, table in zip(model["cliques"], tables, strict=True):
        table = np.ascontiguousarray(table, np.float64)
        if abs(table.sum() - 1) >= 1e-9:
            table = table / table.sum()
        shared = [i for i in own if i in drawn]
        fresh = [i for i in own if i not in drawn]
        if not fresh:
            continue
        group = np.zeros(rows, np.int64)
        for i in shared:
            group = group * shape[i] + codes[i]
        law = np.transpose(table, [own.index(i) for i in shared + fresh])
        law = law.reshape(math.prod(shape[i] for i in shared), -1)
        others = [codes[i] for i in drawn if i not in own]
        picked = _rounded_shares(law, group, others, rng)
        drawn += fresh
        for i, values in zip(
            fresh, np.unravel_index(picked, [shape[i] for i in fresh]), strict=True
        ):
            codes[i] = values.astype(np.int64)
    order = rng.permutation(rows)
    return [column[order] for column in codes]


def _rounded_shares(
    law: np.ndarray, group: np.ndarray, others: list[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """A cell for each row, by quantiles π(k)/c + v modulo 1 of the c rows of a group, v uniform.

    Rows of a group are sorted by the columns before; π is the order of the multiples of the golden
    ratio. A group without mass, which only rounding reaches, takes the shares of all.
    """
    rows = group.size
    if rows == 0:
        return np.zeros(0, np.int64)
    weight = law.sum(axis=1, keepdims=True)
    overall = law.sum(axis=0) / law.sum()
    law = np.where(weight > 0, law / np.where(weight > 0, weight, 1.0), overall)
    order = np.lexsort((rng.random(rows), *others[::-1], group))
    present, first, count = np.unique(group[order], return_index=True, return_counts=True)
    place = np.repeat(np.arange(present.size), count)
    rank = np.arange(rows) - first[place]
    spread = np.empty(rows, np.int64)
    spread[np.lexsort((rank * GOLDEN % 1.0, place))] = rank
    quantile = (spread / count[place] + rng.random(present.size)[place]) % 1.0
    law = law[present]
    ends = np.cumsum(law, axis=1)
    ends /= ends[:, -1:]
    ends = (ends + np.arange(present.size)[:, None]).reshape(-1)  # group g owns (g, g + 1]
    cell = np.searchsorted(ends, place + quantile, side="right") - place * law.shape[1]
    cell = np.clip(cell, 0, law.shape[1] - 1)
    empty = law[place, cell] <= 0  # by rounding: the last cell with mass
    last = law.shape[1] - 1 - np.argmax(law[:, ::-1] > 0, axis=1)
    cell[empty] = last[place[empty]]
    picked = np.empty(rows, np.int64)
    picked[order] = cell
    return picked


def _by_weights(
    model: dict[str, Any], codes: list[np.ndarray], weights: np.ndarray, rows: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Records by systematic resampling, then exchanged where the model's marginals come closer."""
    ends = np.cumsum(weights, dtype=np.float64)

    def systematic(many: int) -> np.ndarray:
        points = (np.arange(many) + rng.random()) * (ends[-1] / max(many, 1))
        return np.minimum(np.searchsorted(ends, points, side="right"), weights.size - 1)

    chosen = systematic(rows)
    cliques = [clique for clique in model["cliques"] if clique]
    if cliques and rows:
        if len(cliques) > 512:
            cliques = [cliques[i] for i in sorted(rng.permutation(len(cliques))[:512])]
        swaps = Swaps(model["shape"], codes, weights, cliques, chosen)
        width = max(map(len, cliques))
        tries = int(min(model.get("swaps", 20) * rows, 600_000_000 / (len(cliques) * width)))
        for start in range(0, tries, 2**20):
            many = min(2**20, tries - start)
            proposals = rng.permutation(systematic(many))
            swaps.carry_out(rng.integers(rows, size=many), proposals)
    return chosen[rng.permutation(rows)]


class Swaps:
    """Rows s of every cell of the marginals against what the model expects, m: Σ (s − m)²/√(1 + m)."""

    def __init__(
        self, shape: list[int], codes: list[np.ndarray], weights: np.ndarray,
        cliques: list[list[int]], chosen: np.ndarray,
    ) -> None:  # fmt: skip
        self.chosen = chosen
        sizes, most = list(shape), max(shape)
        while most > 2 and (
            sum(math.prod(min(sizes[i], most) for i in c) for c in cliques) > 24_000_000
        ):
            most = max(2, int(most * 0.95))
        self.records = np.empty((weights.size, len(codes)), np.int32)
        for i, column in enumerate(codes):  # of large columns the rarest values are one
            if sizes[i] > most:
                order = np.argsort(-np.bincount(column, weights, sizes[i]), kind="stable")
                labels = np.empty(sizes[i], np.int64)
                labels[order] = np.minimum(np.arange(sizes[i]), most - 1)
                column, sizes[i] = labels[column], most
            self.records[:, i] = column
        width, self.first = max(map(len, cliques)), np.zeros(len(cliques), np.int64)
        self.columns = np.zeros((width, len(cliques)), np.int64)
        self.strides = np.zeros((width, len(cliques)), np.int64)
        excess, scale, at = [], [], 0
        for c, clique in enumerate(cliques):
            stride = 1
            for k, i in reversed(list(enumerate(clique))):
                self.columns[k, c], self.strides[k, c] = i, stride
                stride *= sizes[i]
            self.first[c], at = at, at + stride
            cell = self.cell(np.arange(weights.size), slice(c, c + 1))[:, 0] - self.first[c]
            expected = np.bincount(cell, weights, stride)
            expected *= chosen.size / expected.sum()
            scale.append((1 / np.sqrt(1 + expected)).astype(np.float32))
            excess.append((-expected).astype(np.float32))
            np.add.at(excess[-1], cell[chosen], np.float32(1))
        self.excess, self.scale = np.concatenate(excess), np.concatenate(scale)

    def cell(self, which: np.ndarray, of: slice = slice(None)) -> np.ndarray:
        """The cell of each record in each marginal, counted through all of them."""
        found = np.repeat(self.first[None, of], len(which), axis=0)
        for column, stride in zip(self.columns[:, of], self.strides[:, of], strict=True):
            found += self.records[which][:, column] * stride
        return found

    def carry_out(self, places: np.ndarray, proposals: np.ndarray) -> None:
        """One try after the other: row places[t] becomes record proposals[t] if Σ falls.

        As many tries as seem to fail are judged at once; the first that does not changes the rest.
        """
        at, block = 0, 64
        while at < places.size:
            here = slice(at, at + block)
            rows, new = places[here], proposals[here]
            old = self.chosen[rows]
            one, two = self.cell(old), self.cell(new)
            terms = self.scale[two] * (1.0 + 2.0 * self.excess[two].astype(np.float64))
            terms += self.scale[one] * (1.0 - 2.0 * self.excess[one].astype(np.float64))
            terms[one == two] = 0.0
            change = np.cumsum(terms, axis=1)[:, -1]  # in order, as rounding has it
            good = np.flatnonzero((change < 0) & (old != new))
            if not good.size:
                at, block = at + len(rows), min(4096, 2 * block)
                continue
            t = int(good[0])
            self.chosen[rows[t]] = new[t]
            np.subtract.at(self.excess, one[t], np.float32(1))
            np.add.at(self.excess, two[t], np.float32(1))
            at, block = at + t + 1, max(16, min(block, 2 * (t + 1)))


# --- signature ---------------------------------------------------------------------------------


def check_signature(b: Bundle) -> Iterator[str]:
    path = b.folder / SIGNATURE
    if not path.is_file():  # there need not be one
        return
    with path.open("rb") as file:
        data = file.read(MOST_SIGNATURE + 1)
    if len(data) > MOST_SIGNATURE:
        yield "the signature is too large"
        return
    try:
        envelope = json.loads(data.decode())
        payload = base64.b64decode(envelope["payload"], validate=True)
        signature = base64.b64decode(envelope["signatures"][0]["sig"], validate=True)
        said = json.loads(payload.decode())["predicate"]
    except RecursionError:
        yield "the signature is nested too deeply"
        return
    again = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": base64.b64encode(signature).decode()}],
    }
    if canonical(again) + b"\n" != data or len(signature) != 64:
        yield "the signature is not in its one byte form"
    dataset, head, time = said["ledger"]["dataset"], said["ledger"]["head"], said["signed"]
    if not isinstance(dataset, str | None) or not isinstance(said["understudy"], str):
        yield "the dataset or the version in the signed statement is not text"
    if not re.fullmatch("(0|[1-9][0-9]{0,15}):[0-9a-f]{64}", head):
        yield "the signed head is none"
    form = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+]00:00"
    if not re.fullmatch(form, time) or not datetime.datetime.fromisoformat(time):
        yield "the time of signing is not in its form"
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "understudy release", "digest": {"sha256": b.manifest["digest"]}}],
        "predicateType": "urn:understudy:release:v1",
        "predicate": {
            "promise": {key: b.promise[key] for key in ("epsilon", "delta", "unit", "relation")},
            "certificate": {key: b.certificate[key] for key in ("bound", "beta")},
            "ledger": {"dataset": dataset, "head": head},
            "understudy": said["understudy"],
            "signed": time,
        },
    }
    if canonical(statement) != payload:
        yield "what was signed is not what the manifest says"
    last = b.entries[-1]
    if head != f"{last['seq']}:{last['hash']}" and int(head.partition(":")[0]) <= last["seq"]:
        yield "the signed head is not in the account of the release"


# --- report ------------------------------------------------------------------------------------
#
# A browser opens report.html, so it may hold only what is read: text, and tags from a list, in one
# form, <name attribute="value">. With no other < there is nothing that a browser takes for more.

PAGE_BEGINS = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">\
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\
<meta name="viewport" content="width=device-width, initial-scale=1">\
<meta name="color-scheme" content="light dark">"""
PAGE_TAGS, PAGE_ATTRIBUTES = (
    frozenset(re.findall(r"\S+", words))
    for words in (
        """a body caption circle code dd desc details div dl dt figcaption figure footer h1 h2 h3
        head header html li line main p path pre rect section span strong style summary svg table
        tbody td text th thead title tr ul""",
        """aria-hidden aria-label aria-labelledby class cx cy d fill height href id r role rx scope
        style tabindex text-anchor transform viewBox width x x1 x2 y y1 y2""",
    )
)
PAGE_CALLS = re.compile(r"(?<![\w-])[\w-]+(?=\()|@[\w-]*|[&\\]")
PAGE_STYLES = frozenset({"min", "minmax", "nth-child", "repeat", "rotate", "translate", "var",
                         "@media", "@page"})  # fmt: skip


def report_problems(data: bytes) -> Iterator[str]:
    """What a report holds that acts, or that loads something."""
    page = data.decode("utf-8")
    if not page.startswith(PAGE_BEGINS) or "\0" in page:
        raise ValueError("report.html does not begin as a report, or holds a null character")
    raw, at = "", len(PAGE_BEGINS)  # raw: an element that holds text alone
    seen: set[str] = set()
    while (start := page.find("<", at)) >= 0:
        end = page.find(">", start)
        tag = page[start + 1 : end]
        if end < 0 or "<" in tag or (raw and tag != f"/{raw}"):
            yield f"report.html: {page[start : start + 40]!r} is no tag, or not in its place"
            return
        if raw == "style":
            yield from loads(page[at:start])
        if tag not in seen:
            yield from tag_problems(tag)
            seen.add(tag)
        raw, at = (tag if tag in ("style", "title") else ""), end + 1
    if raw:
        yield f"report.html: <{raw}> is left open"


def tag_problems(tag: str) -> Iterator[str]:
    """What is wrong with a tag, given without its brackets."""
    first, *others = tag.split('"')
    name, space, attribute = first.partition(" ")
    pieces = [space + attribute, *others]
    if name in ("style", "title") and tag != name:
        yield f"report.html: <{name}> has attributes"
    elif name not in PAGE_TAGS and not (name[:1] == "/" and tag[1:] in PAGE_TAGS):
        yield f"report.html: the tag {tag!r:.60} is not of a report"
    elif len(pieces) % 2 == 0 or pieces[-1]:
        yield f"report.html: the tag {tag!r:.60} is not in the form of one"
    for key, value in zip(pieces[:-1:2], pieces[1::2], strict=False):
        if key[:1] != " " or key[-1:] != "=" or key[1:-1] not in PAGE_ATTRIBUTES:
            yield f"report.html: the attribute {key!r:.60} is not of a report"
        elif key == " href=" and value[:1] != "#":
            yield f"report.html: a reference to {value!r:.60}"
        elif key != " aria-label=":
            yield from loads(value)


def loads(style: str) -> Iterator[str]:
    """What a style sheet or an attribute would load, or hides."""
    for word in set(PAGE_CALLS.findall(style)) - PAGE_STYLES:
        yield f"report.html: {word!r:.60} in a style or an attribute"


CHECKS: tuple[Callable[[Bundle], Iterator[str]], ...] = (
    check_form,
    check_digest,
    check_files,
    check_chain,
    check_charges,
    check_facts,
    check_privacy,
    check_certificate,
    check_rows,
    check_signature,
    check_plan,
    check_measured,
    check_drawn,
)


def main(folders: list[str]) -> int:
    """Verify every folder; 0 if all of them hold, 1 if one does not, 2 if none was named."""
    if not folders:
        print("usage: verify_release.py FOLDER [FOLDER ...]", file=sys.stderr)
        return 2
    code = 0
    for folder in folders:
        problems = verify(folder)
        if problems:
            code = 1
            print(f"{folder}: refused")
            for problem in problems:
                print(f"  {problem}")
        else:
            bundle = Bundle(Path(folder))
            found = epsilon(bundle.reserved, float(exact(bundle.promise["delta"])), bundle.group)
            print(f"{folder}: holds")
            print(
                f"  (ε, δ) = ({bundle.promise['epsilon']}, {bundle.promise['delta']}) promised, "
                f"the plan costs ε = {found:.6g}"
            )
            vacuous = ": says nothing here" if bundle.certificate["bound"] >= 1 else ""
            print(f"  {bundle.certificate['words']}{vacuous}")
            print(f"  digest {bundle.manifest['digest']}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

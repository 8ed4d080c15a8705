"""The release on disk: a folder of plain files, written down in docs/bundle.md.

    release.json       the promise, the method, the certificate, the ledger entries, a hash of each file
    synthetic.parquet  the certified rows
    schema.toml        the public facts about the columns
    model.json         what the arrays of the model are
    model.npz          the arrays
    measurements.npz   the noisy tables of the game, where it measured some

`report.html`, a page for people, may be among them and is listed then. A custodian's
`signature.dsse.json` may lie beside them, unlisted.

No pickle. The folder is written beside its final name and renamed into place, so it is there whole
or not at all. `release.json` has one canonical byte form, and ends with the digest of its own content.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._version import __version__
from understudy.errors import BundleError, InputError, VerificationError, WorkError
from understudy.files import filled
from understudy.game.forecast import Errors
from understudy.game.methods import Theorem
from understudy.models import Decomposable, Empirical, Weighted, from_arrays
from understudy.privacy.budget import Budget
from understudy.privacy.chain import Entry, as_json, canonical
from understudy.privacy.cost import Plan, event_from_json
from understudy.privacy.ledger import Charged, planned
from understudy.privacy.relation import Relation
from understudy.queries import Workload
from understudy.releases import form
from understudy.releases.certificate import Certificate
from understudy.releases.conditions import Subject
from understudy.releases.families import FamilyRelease, read_families
from understudy.releases.measurements import NAME as MEASURED
from understudy.releases.measurements import Measurement, arrays, with_tables
from understudy.releases.release import Release
from understudy.releases.static_html import NAME as REPORT
from understudy.releases.static_html import require_static
from understudy.schema import Schema
from understudy.schema.family import FamilySchema
from understudy.units import Unit

if TYPE_CHECKING:
    from understudy.releases.plan import Prepared

T = TypeVar("T")

VERSION = 1
FILES = ("model.json", "model.npz", "schema.toml", "synthetic.parquet")
"""Of a release of one table; one of families has two files of rows instead of the last."""
MANIFEST = "release.json"
SIGNATURE = "signature.dsse.json"
"""About the manifest, and therefore not listed in it; see `signature`."""
_DAMAGES = (
    *(KeyError, TypeError, ValueError, AttributeError, StopIteration, AssertionError),
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError),
)
_NO_HASH = "0" * 64
_INDEX = 8  # Values that the index has for every table that was measured, or a few more
_LINK = {"seq": 10**9, "digest": _NO_HASH, "prev": _NO_HASH, "hash": _NO_HASH}
_STAMP = {"reservation": _NO_HASH, "writer": "w" * 64, "time": "t" * 32}


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """The one byte form of a manifest: sorted keys, two-space indent, UTF-8, a final newline."""
    text = json.dumps(manifest, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8")


def digest(manifest: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON of everything in the manifest but the digest itself."""
    body = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.sha256(canonical(body)).hexdigest()


def require_absent(path: Path) -> None:
    """An existing folder is never overwritten, and a parent must exist: found before spending."""
    if path.exists() or path.is_symlink():
        raise InputError(
            f"out = {path} exists already; a release is never overwritten: "
            f"choose another folder or remove it"
        )
    if not path.parent.is_dir():
        raise InputError(f"out = {path}: the folder {path.parent} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"out = {path}: the folder {path.parent} cannot be written to")


def require_room(prepared: Prepared) -> None:
    """Raise `InputError` where a bundle could not hold the release or would be refused.

    The limits of the format hold for genuine releases too: one that is too large to be saved, or that
    both verifiers would refuse, must not cost a budget first.
    """
    schema, plan = prepared.schema, prepared.plan.to_json()
    charges = plan if prepared.inner is None else prepared.game_plan.to_json()
    reserved: dict[str, Any] = {  # what the ledger will say, but for who made it and when
        "reservation": "-",
        "budget": prepared.budget.to_json(),
        "relation": str(prepared.design.relation),
        "noise": "opendp",
        "plan": plan,
        "facts": dict(prepared.facts),
    }
    if schema.unit is not None:
        reserved["unit"] = schema.unit.to_json()
    try:
        form.require_choices(reserved, charges, prepared.beta, prepared.options.key)
    except BundleError as error:
        raise InputError(f"a release cannot be kept as asked for: {error}") from None
    text = len(schema.dumps().encode("utf-8"))
    if text > form.LARGEST["schema.toml"]:
        raise InputError(
            f"the schema has {text:,} bytes, and a release's at most "
            f"{form.LARGEST['schema.toml']:,}: declare fewer values"
        )
    values, size = _foreseen(reserved, charges)
    if values > form.MOST_VALUES or size > form.LARGEST[MANIFEST]:
        draws = sum(charge["times"] for charge in charges)
        raise InputError(
            f"the release would have {draws:,} draws for {len(prepared.workload):,} "
            f"marginals, more than a bundle records ({size:,} of {form.LARGEST[MANIFEST]:,} bytes, "
            f"{values:,} of {form.MOST_VALUES:,} values): use fewer rounds or steps, or a smaller "
            f"workload"
        )


def _foreseen(reserved: Mapping[str, Any], charges: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """About how many values and bytes the manifest will have; rather too many."""
    facts = reserved["facts"]
    kept = {"promise": reserved["budget"], "method": facts["method"]}
    values, size = _measure("reserve", reserved, workload=facts["workload"], **kept)
    for charge in charges:
        times, body = charge["times"], {name: charge[name] for name in ("purpose", "event")}
        more = _measure("charge", body)
        values, size = values + more[0] * times, size + more[1] * times
    tables = sum(charge["times"] * charge["event"].get("changes", 0) for charge in charges)
    forecast = 2 * len(facts["workload"])
    return values + _INDEX * tables + forecast, size + 32 * (_INDEX * tables + forecast)


def _measure(kind: str, body: Mapping[str, Any], **rest: Any) -> tuple[int, int]:
    entry = {"kind": kind, "body": {**body, **_STAMP}, **_LINK}
    data = manifest_bytes({"ledger": {"entries": [entry]}, **rest})
    return form.values(data), len(data)


def save(release: Release, path: Path, *, report: str | None = None) -> Path:
    """Write a bundle; it appears under `path` whole or not at all, its digest published before."""
    require_absent(path)
    page = {} if report is None else {REPORT: report.encode("utf-8")}
    for data in page.values():
        require_static(data)
    contents = {**_contents(release), **page}
    manifest = _manifest(release, contents)
    contents[MANIFEST] = manifest_bytes(manifest)
    for name, data in contents.items():
        if len(data) > form.LARGEST[name]:
            raise WorkError(
                f"{name} has {len(data):,} bytes, and a bundle's has at most "
                f"{form.LARGEST[name]:,}: use fewer rows, coarser columns or a smaller workload"
            )
    try:
        with filled(path, contents):
            release.publish(manifest["digest"])
            require_absent(path)
    except OSError as error:
        raise WorkError(
            f"out = {path} could not be written ({error.strerror or error}); nothing was left "
            f"behind" + (". Free some space" if error.errno == errno.ENOSPC else "")
        ) from None
    return path


def _contents(release: Release) -> dict[str, bytes]:
    tables = {"synthetic.parquet": release.rows}
    if isinstance(release, FamilyRelease):
        tables = dict(zip(form.FAMILY_FILES, (release.parents, release.children), strict=True))
    measured = arrays(release.measurements)
    return {
        **{name: _parquet(table) for name, table in tables.items()},
        **model_files(release),
        **({MEASURED: _arrays_bytes(measured, zipfile.ZIP_DEFLATED)} if measured else {}),
    }


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    rows = io.BytesIO()
    pq.write_table(table, rows, compression="zstd")
    if table.num_rows * table.num_columns > form.most_cells(rows.tell()):
        rows = io.BytesIO()  # so few distinct values that it would look like a bomb
        pq.write_table(table, rows, compression="none", use_dictionary=False)
    return rows.getvalue()


def model_files(subject: Release | Subject) -> dict[str, bytes]:
    """The files that rows can be drawn from: the model and the schema."""
    description, arrays = subject.model.to_arrays()
    return {
        "schema.toml": subject.schema.dumps().encode("utf-8"),
        "model.json": canonical(description) + b"\n",
        "model.npz": _arrays_bytes(arrays),
    }


def _arrays_bytes(arrays: Mapping[str, NDArray[Any]], packed: int = zipfile.ZIP_STORED) -> bytes:
    """An .npz with fixed times, so that equal arrays are equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(arrays):
            data = io.BytesIO()
            np.lib.format.write_array(data, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), packed)
    return out.getvalue()


def _manifest(release: Release, contents: Mapping[str, bytes]) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "format": "understudy release",
        "version": VERSION,
        "understudy": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "private": release.private,
        "promise": {
            **release.budget.to_json(),
            "relation": str(release.relation),
            "unit": "row" if release.schema.unit is None else release.schema.unit.to_json(),
            "rows_public": release.rows_public,
            "words": release.promised(release.budget.recorded),
        },
        "method": dict(release.method),
        "workload": release.workload.to_json(release.schema),
        "rows": release.certificate.rows,
        "rows_estimate": release.rows_estimate,
        "key": release.facts["key"],
        "certificate": {**release.certificate.to_json(), "words": release.certificate.statement},
        "theorem": None if release.theorem is None else asdict(release.theorem),
        "remarks": dict(release.diagnostics),
        "forecast": None if release.forecast is None else release.forecast.to_json(),
        "measurements": [
            made.to_json([column.name for column in release.schema.modelled])
            for made in release.measurements
        ],
        "ledger": {
            "reservation": release.facts["reservation"],
            "entries": as_json(release.entries),
        },
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in sorted(contents.items())
        },
    }
    if isinstance(release, FamilyRelease):
        sizes = {"parents": release.parents.num_rows, "children": release.children.num_rows}
        manifest["families"] = sizes
    manifest["digest"] = digest(manifest)
    return manifest


def read_manifest(path: Path) -> Mapping[str, Any]:
    """The manifest of a bundle of this version, in its form: every field there and of its type."""
    return Bundle.open(path).manifest


@dataclass(frozen=True, eq=False)
class Bundle:
    """A folder whose manifest has its form; every part is read once, when it is first asked for.

    What contradicts itself raises when asked.
    """

    folder: Path
    data: bytes
    """The manifest as it was found."""
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Bundle:
        """Read the manifest, which must be of this version and in its form."""
        file = folder / MANIFEST
        if not file.is_file():
            why = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
            raise BundleError(f"{folder} is not a release: {why}")
        form.require_file(file)
        data = file.read_bytes()
        manifest = form.strict_json(data, str(file))
        if type(manifest) is not dict or manifest.get("format") != "understudy release":
            raise BundleError(f"{file} is not the manifest of an understudy release")
        if manifest.get("version") != VERSION or manifest["version"] is True:
            raise BundleError(
                f"{folder} has format version {str(manifest.get('version'))[:20]}, this understudy "
                f"reads {VERSION}; it was written by understudy "
                f"{str(manifest.get('understudy'))[:20]}: use that or a newer one"
            )
        form.require_manifest(manifest)
        return cls(folder, data, manifest)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The stretch of the dataset's chain."""
        return tuple(Entry.from_json(line) for line in self.manifest["ledger"]["entries"])

    @cached_property
    def own(self) -> tuple[Entry, ...]:
        """The release's entries: its reservation first, nothing of another, nothing after."""
        reservation = self.manifest["ledger"]["reservation"]
        own = tuple(entry for entry in self.entries if entry.body is not None)
        if any(entry.body["reservation"] != reservation for entry in own if entry.body):
            raise VerificationError("the ledger shows what another release did")
        if not own or own[0].kind != "reserve" or own[0] is not self.entries[0]:
            raise VerificationError("the ledger does not begin with the release's reservation")
        if own[-1] is not self.entries[-1]:
            raise VerificationError("the ledger goes on after the release's last entry")
        if [entry.kind for entry in own].count("reserve") != 1:
            raise VerificationError("the ledger reserves the release more than once")
        return own

    @cached_property
    def reserve(self) -> Mapping[str, Any]:
        """The body of the reservation."""
        body = self.own[0].body
        assert body is not None
        return body

    @property
    def facts(self) -> Mapping[str, Any]:
        """The public facts that the plan followed from."""
        return self.reserve["facts"]

    @cached_property
    def refinement(self) -> Mapping[str, Any] | None:
        """The body of the entry that filled the zCDP filter, if there is one."""
        return next((entry.body for entry in self.own if entry.kind == "refine"), None)

    @cached_property
    def _plans(self) -> tuple[Plan, Plan]:
        return planned(self.entries, self.manifest["ledger"]["reservation"])

    @property
    def reserved(self) -> Plan:
        """The plan as it was reserved."""
        return self._plans[0]

    @property
    def plan(self) -> Plan:
        """Every charge, a zCDP filter as it was filled."""
        return self._plans[1]

    @cached_property
    def drawn(self) -> tuple[Charged, ...]:
        """Every charge that was made, in order."""
        return tuple(
            Charged(entry.seq, entry.body["purpose"], event_from_json(entry.body["event"]))
            for entry in self.own
            if entry.kind == "charge" and entry.body is not None
        )

    @cached_property
    def budget(self) -> Budget:
        """The stated (ε, δ)."""
        return Budget.from_json(self.manifest["promise"])

    @cached_property
    def relation(self) -> Relation:
        """The stated neighbours."""
        return Relation(self.manifest["promise"]["relation"])

    @cached_property
    def unit(self) -> Unit | None:
        """Whom the account is kept for."""
        unit = self.reserve.get("unit")
        return None if unit is None else Unit.from_json(unit)

    @cached_property
    def certificate(self) -> Certificate:
        """What is certified, as it is stated."""
        return Certificate.from_json(
            {name: value for name, value in self.manifest["certificate"].items() if name != "words"}
        )

    @cached_property
    def release(self) -> Release:
        """All of it; raises `BundleError` where it is damaged."""
        return replace(self.synthetic, measurements=self.measurements)

    @cached_property
    def synthetic(self) -> Release:
        """All but what was measured on the way; raises `BundleError` where it is damaged."""
        for name in (*FILES[:-1], *form.tables_of(self.manifest)):
            form.require_file(self.folder / name)
        return self._undamaged(self._release)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """What was measured on the way, none in the oldest bundles, with its tables where they are."""
        schema, listed = self.synthetic.schema, self.manifest.get("measurements", ())
        names = [column.name for column in schema.modelled]

        def read() -> tuple[Measurement, ...]:
            made = tuple(Measurement.from_json(body, names) for body in listed)
            kept = MEASURED in self.manifest["files"]
            return with_tables(made, schema.shape, self.folder / MEASURED) if kept else made

        return self._undamaged(read)

    def _undamaged(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except FileNotFoundError as error:
            lacking = Path(error.filename or "synthetic.parquet").name  # Arrow names no file
            raise BundleError(f"{self.folder} lacks {lacking}; it is damaged") from None
        except (*_DAMAGES, pa.ArrowException) as error:
            raise BundleError(
                f"{self.folder} is damaged ({type(error).__name__}: {error}); `understudy verify` "
                f"says more"
            ) from None

    def _release(self) -> Release:
        manifest = self.manifest
        text = (self.folder / "schema.toml").read_text(encoding="utf-8")
        schema = Schema.loads(text)  # a stranger's may not name files of this machine
        workload = Workload.from_json(manifest["workload"], schema, max_cells=2**62)
        tables = [self._table(name, rows) for name, rows in form.tables_of(manifest).items()]
        table, made = tables[0], None
        if isinstance(schema, FamilySchema) != (len(tables) == 2):
            raise BundleError(
                "schema.toml and the files of rows are of different kinds of releases"
            )
        if isinstance(schema, FamilySchema):
            made = read_families(schema, tables[0], tables[1])
            table = made.one_view_each(int(manifest["key"]))
        # Bundles of older versions have no forecast.
        theorem, forecast = manifest["theorem"], manifest.get("forecast")
        kept: dict[str, Any] = {
            "schema": schema,
            "workload": workload,
            "model": load_model(self.folder),
            "rows": table,
            "certificate": self.certificate,
            "budget": self.budget,
            "relation": self.relation,
            "rows_public": manifest["promise"]["rows_public"],
            "rows_estimate": manifest["rows_estimate"],
            "plan": self.plan,
            "entries": self.entries,
            "method": manifest["method"],
            "private": manifest["private"],
            "theorem": None if theorem is None else Theorem(**theorem),
            "forecast": None if forecast is None else Errors.from_json(forecast, workload.cliques),
            "diagnostics": manifest.get("remarks", {}),
            "facts": {
                "key": manifest["key"],
                "understudy": manifest["understudy"],
                "reservation": manifest["ledger"]["reservation"],
            },
        }
        return Release(**kept) if made is None else FamilyRelease(**kept, made=made)

    def _table(self, name: str, rows: int) -> pa.Table:
        import pyarrow.parquet as pq

        form.require_rows(self.folder / name, rows)
        table = pq.ParquetFile(self.folder / name).read()
        if table.num_rows != rows:  # a footer may lie about its column chunks
            raise BundleError(f"{name} has {table.num_rows:,} rows, not {rows:,}")
        return table


def load_model(path: Path) -> Decomposable | Empirical | Weighted:
    """The model of a bundle; arrays are read without pickle."""
    description = form.strict_json((path / "model.json").read_bytes(), "model.json")
    form.require_description(description)
    form.require_arrays(path / "model.npz", description)
    with np.load(path / "model.npz", allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if description["kind"] == "decomposable":
        for name, table in arrays.items():
            if not math.isclose(table.sum(), 1, rel_tol=1e-6):
                raise BundleError(f"model.npz: {name} is not a distribution")
    return from_arrays(description, arrays)

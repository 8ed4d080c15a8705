"""Check a release offline, trusting neither the custodian's word nor ours.

What has not the form of a bundle is refused when it is opened (`form`). Every check then recomputes
something from the bundle alone; `docs/bundle.md` says how a stranger would. What a bundle cannot show
by itself is that nobody rewrote all of it consistently: for that, compare its digest with the one the
custodian published, or with the custodian's ledger, or ask for the custodian's signature.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import (
    BundleError,
    InputError,
    PrivacyError,
    UnderstudyError,
    VerificationError,
)
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.chain import canonical, check_chain
from understudy.privacy.cost import (
    Discovery,
    Event,
    Gaussian,
    Laplace,
    Plan,
    SampledGaussian,
    SampledGroups,
    Zcdp,
)
from understudy.privacy.ledger import Ledger
from understudy.privacy.questions import variation_step
from understudy.privacy.relation import Relation
from understudy.privacy.stores import Place, place
from understudy.releases import signature
from understudy.releases.bundle import MANIFEST, SIGNATURE, Bundle, digest, manifest_bytes
from understudy.releases.certificate import ROWS, VARIATION, WORST, Certificate
from understudy.releases.families import FamilyRelease, made_families
from understudy.releases.form import require_file
from understudy.releases.paid import require_paid
from understudy.releases.release import Release, promise_words
from understudy.releases.replan import CLOSE, require_plan
from understudy.releases.rows import drawn_rows
from understudy.releases.static_html import NAME as REPORT
from understudy.releases.static_html import require_static
from understudy.units import OPEN, group
from understudy.wording import small

_LONGEST_DETAIL = 2000
# Released numbers below these never occur: noise this far out has a probability below 1e-10.
_LAPLACE_REACH, _GAUSSIAN_REACH = 24, 8


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was recomputed, and how it came out."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of a release."""

    checks: tuple[Check, ...]
    digest: str

    def __repr__(self) -> str:
        """A line for each check."""
        lines = (f"{'✓' if c.passed else '✗'} {c.name}: {c.detail}" for c in self.checks)
        return (
            "\n  ".join((f"<Verification, {'passed' if self.passed else 'REFUSED'}", *lines)) + ">"
        )

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def require(self) -> None:
        """Raise `VerificationError` unless every check passed."""
        failed = [f"{check.name}: {check.detail}" for check in self.checks if not check.passed]
        if failed:
            raise VerificationError("the release is refused: " + "; ".join(failed))


_Refused = VerificationError  # a check found something


def verify(
    path: str | Path,
    *,
    expected_digest: str | None = None,
    ledger: str | Place | None = None,
    dataset: str | None = None,
    expect_head: str | None = None,
    signed_by: str | Path | Sequence[str | Path] = (),
) -> Verification:
    """Recompute everything that a release states; see `passed`.

    With `signed_by`, files of public keys, one of them must have signed the release, and the ledger,
    if it is given, must contain the head that was signed.

    Raises `BundleError` only for a folder whose manifest is missing, not JSON, of another version or
    not of the form that docs/bundle.md gives it.
    """
    folder = Path(path)
    given = (signed_by,) if isinstance(signed_by, str | Path) else tuple(signed_by)
    keys = [signature.public_key(name) for name in given]
    if not folder.is_dir():
        raise BundleError(f"{folder} is not a folder; give the folder of a release")
    bundle = Bundle.open(folder)
    manifest = bundle.manifest
    checks: list[Check] = []

    def check(name: str, look: Callable[[], str]) -> bool:
        try:
            checks.append(Check(name, True, look()))
        except UnderstudyError as error:
            checks.append(Check(name, False, str(error)[:_LONGEST_DETAIL]))
        except Exception as error:  # noqa: BLE001 - whatever cannot be checked is refused
            told = f"it cannot be read ({type(error).__name__}: {error})"
            checks.append(Check(name, False, told[:_LONGEST_DETAIL]))
        return checks[-1].passed

    check("manifest", lambda: _manifest(bundle, expected_digest))
    files = check("files", lambda: _files(folder, manifest))
    chain = check("ledger chain", lambda: _chain(bundle))
    if chain:
        check("charges", lambda: _charges(bundle))
        check("privacy", lambda: _privacy(bundle))
        check("certificate", lambda: _certificate(bundle))
    rows = files and check("rows", lambda: _rows(bundle))
    if rows and chain and check("plan", lambda: require_plan(bundle)):
        check("measurements", lambda: require_paid(bundle))
    if all(each.passed for each in checks):  # it takes longest, and says nothing of what is refused
        check("drawn", lambda: _drawn(bundle.synthetic))
    signed = None
    if keys or os.path.lexists(folder / SIGNATURE):
        sound = check("signature", lambda: _signature(folder, manifest, keys))
        signed = signature.read(folder, manifest) if sound and keys else None
    if ledger is not None:
        check(
            "custodian's ledger",
            lambda: _custodian(bundle, place(ledger), dataset, expect_head, signed),
        )
    return Verification(tuple(checks), manifest["digest"])


def _manifest(bundle: Bundle, expected: str | None) -> str:
    manifest = bundle.manifest
    if bundle.data != manifest_bytes(manifest):
        raise _Refused(f"{MANIFEST} is not in its canonical form; it was changed")
    if digest(manifest) != manifest["digest"]:
        raise _Refused(f"{MANIFEST} does not match its digest; it was changed")
    if expected is not None and expected != manifest["digest"]:
        raise _Refused(f"its digest is {manifest['digest']}, not the published {expected}")
    if manifest["private"] is not True:
        raise _Refused("made with seeded test noise: NOT PRIVATE")
    known = "" if expected is None else ", the one that you gave"
    return f"digest {manifest['digest']}{known}"


def _files(folder: Path, manifest: Mapping[str, Any]) -> str:
    stated = manifest["files"]
    with os.scandir(folder) as items:  # of a million files the first is enough
        for item in items:
            if item.name not in {MANIFEST, SIGNATURE, *stated}:
                raise _Refused(f"a file that it does not list: {item.name}")
            require_file(Path(item.path))
    for name, facts in stated.items():
        file = folder / name
        if not file.is_file():
            raise _Refused(f"{name} is missing")
        with open(file, "rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if file.stat().st_size != facts["bytes"] or found != facts["sha256"]:
            raise _Refused(f"{name} was changed")
    if REPORT in stated:
        require_static((folder / REPORT).read_bytes())
    return f"{len(stated)} files match their hashes"


def _chain(bundle: Bundle) -> str:
    check_chain(bundle.entries, whole=False)
    return f"{len(bundle.entries)} entries, hash chain intact"


def _same(one: Any, other: Any) -> bool:
    """The same JSON: 1, 1.0 and true are three values."""
    return canonical(one) == canonical(other)


def _charges(bundle: Bundle) -> str:
    *later, last = bundle.own
    if last.kind != "settle" or last.body is None:
        raise _Refused("the release was not settled")
    if last.body["outcome"] != "finished":
        raise _Refused(f"the release was settled as {last.body['outcome']!r}")
    _require_order(bundle)
    again = None  # the charge that may be drawn once more
    for entry in later[1:]:
        if entry.kind == "charge":
            again = entry.seq
        elif entry.kind == "redraw" and entry.body is not None:
            if entry.body["charge"] != again:
                raise _Refused(f"entry {entry.seq} draws again without a charge, or twice")
            again = None
        elif entry.kind != "refine":
            raise _Refused(f"entry {entry.seq} of kind {entry.kind!r} stands among the charges")
    made: dict[str, list[Event]] = defaultdict(list)
    for drawn in bundle.drawn:
        made[drawn.purpose].append(drawn.event)
        slot = bundle.plan[drawn.purpose].event
        if not isinstance(slot, Zcdp) and not _same(drawn.event.to_json(), slot.to_json()):
            raise _Refused(
                f"entry {drawn.seq}: the charge for {drawn.purpose!r} is not the planned one"
            )
    for slot in bundle.plan:
        events = made[slot.purpose]
        if not events:
            raise _Refused(f"no charge was made for {slot.purpose}")
        if isinstance(slot.event, Zcdp):
            if accounting.total_rho(events) > accounting.rho(slot.event):
                raise _Refused(f"{slot.purpose!r} drew more than its zCDP filter allows")
        elif len(events) != slot.times:
            raise _Refused(f"{slot.purpose!r} has {len(events)} charges, its plan has {slot.times}")
    return f"{len(bundle.drawn)} draws, each as planned"


def _require_order(bundle: Bundle) -> None:
    """Every private fact is charged in the order of its plan, and before the plan that follows from it.

    What a fact asks depends on those before it, and the later plan on all of them.
    """
    if bundle.refinement is None:
        return
    filled, before = bundle.refinement["purpose"], []
    for entry in bundle.own[1:]:
        if entry.kind == "refine":
            break
        if entry.kind == "charge" and entry.body is not None:
            before.append(entry.body["purpose"])
    wanted = [charge.purpose for charge in bundle.reserved if charge.purpose != filled]
    if before != wanted:
        raise _Refused(
            f"before {filled!r} was filled, charges were made for {', '.join(before) or 'nothing'}; "
            f"planned were, in this order, {', '.join(wanted)}"
        )


def _privacy(bundle: Bundle) -> str:
    manifest = bundle.manifest
    promise = manifest["promise"]
    budget, reserve = bundle.budget, bundle.reserve
    if Budget.from_json(reserve["budget"]) != budget:
        raise _Refused("the stated ε and δ are not those reserved in the ledger")
    if reserve["relation"] != promise["relation"]:
        raise _Refused("the stated neighbours are not those of the ledger")
    if reserve["noise"] != "opendp":
        raise _Refused("made with seeded test noise: NOT PRIVATE")
    if not _same(reserve["facts"]["rows_public"], promise["rows_public"]):
        raise _Refused("the stated public number of rows is not that of the ledger")
    relation, unit = bundle.relation, bundle.unit
    if relation is Relation.REPLACE and promise["rows_public"] is None:
        raise PrivacyError("neighbours = replace needs a public number of rows")
    stated = "row" if unit is None else unit.to_json()
    words = promise_words(budget.recorded, relation, promise["rows_public"], unit)
    if not _same(promise["unit"], stated) or promise["words"] != words:
        raise _Refused(f"the promise is {words!r}; it is stated otherwise")
    for name in ("method", "workload"):
        if not _same(reserve["facts"][name], manifest[name]):
            raise _Refused(f"the stated {name} is not the one in the ledger")
    for charge in bundle.plan:
        event = charge.event
        two_sided = isinstance(event, Discovery | SampledGaussian | SampledGroups)
        if two_sided and event.sides < relation.multiplicity:
            raise _Refused(f"{charge.purpose!r} counts one side of a replacement")
        if isinstance(event, Discovery) and event.values < group(unit):
            raise _Refused(f"{charge.purpose!r} counts fewer values than a unit may hold")
    spent = accounting.epsilon(bundle.reserved, budget.delta, group(unit))
    if spent.epsilon > budget.epsilon:
        raise _Refused(
            f"the plan costs ε = {spent.epsilon:.6g} at δ = {small(budget.delta)}, "
            f"more than the stated {float(budget.epsilon):g}"
        )
    return (
        f"ε = {spent.epsilon:.6g} at δ = {small(budget.delta)} recomputed by {spent.by}, "
        f"within the stated {float(budget.epsilon):g}"
    )


def _certificate(bundle: Bundle) -> str:
    manifest, plan, stated = bundle.manifest, bundle.plan, bundle.certificate
    if WORST not in plan or (stated.variations is not None) != (VARIATION in plan):
        raise _Refused("the certificate was not charged")
    if (stated.rows_measured is not None) != (ROWS in plan):
        raise _Refused("the number of rows was not charged")
    if not isinstance(plan[WORST].event, Laplace):
        raise _Refused("the certificate was not charged as discrete Laplace noise")
    if ROWS in plan and not isinstance(plan[ROWS].event, Gaussian):
        raise _Refused("the number of rows was not charged as discrete Gaussian noise")
    if VARIATION in plan:
        event, marginals = plan[VARIATION].event, len(manifest["workload"])
        step = variation_step(bundle.relation, rows_public=stated.rows_public is not None)
        if not isinstance(event, Gaussian) or event.step < step or event.changes < marginals:
            raise _Refused(
                f"{marginals} total variations move by {step} each; they were charged as {event}"
            )
        if len(stated.variations_measured or ()) != marginals:
            raise _Refused("there must be one total variation for each marginal of the workload")
    if stated.rows_public != manifest["promise"]["rows_public"] or stated.rows != manifest["rows"]:
        raise _Refused("the certificate speaks of another table")
    if stated.rows_public is None and stated.rows_measured is None:
        raise _Refused("the number of rows is neither public nor measured")
    known = stated.rows_measured if stated.rows_public is None else stated.rows_public
    if manifest["rows_estimate"] != max(1, known or 0):
        raise _Refused(f"rows_estimate = {manifest['rows_estimate']} is not the number of rows")
    again = stated.bounded(plan, population=stated.population is not None)
    if not _close(again, stated) or manifest["certificate"]["words"] != stated.statement:
        raise _Refused(f"recomputed from its measurement, the bound is {again.bound}")
    _require_possible(plan, stated)
    return str(stated)


def _close(one: Certificate, other: Certificate) -> bool:
    """Equal bounds, to a relative 1e-9: others add in another order."""
    pairs = [(one.bound, other.bound), (one.population or 0.0, other.population or 0.0)]
    pairs += zip(one.variations or (), other.variations or (), strict=True)
    return all(math.isclose(*pair, rel_tol=CLOSE) for pair in pairs)


def _require_possible(plan: Plan, stated: Certificate) -> None:
    """An error, a variation and a number of rows are never negative; noise alone makes them so."""
    worst, spread = plan[WORST].event, plan[VARIATION].event if VARIATION in plan else None
    assert isinstance(worst, Laplace)
    low = stated.worst < -_LAPLACE_REACH * worst.scale
    if isinstance(spread, Gaussian):
        low |= min(stated.variations_measured or (0,)) < -_GAUSSIAN_REACH * spread.sigma
    if ROWS in plan and isinstance(counted := plan[ROWS].event, Gaussian):
        low |= (stated.rows_measured or 0) < -_GAUSSIAN_REACH * counted.sigma
    if low:
        raise _Refused("a released number is lower than its noise could have made it")


def _rows(bundle: Bundle) -> str:
    manifest, facts = bundle.manifest, bundle.facts
    stated = facts["schema"]
    if "declared" in facts:  # with open columns; the ledger says later what came of them
        if hashlib.sha256(facts["declared"].encode()).hexdigest() != stated:
            raise _Refused("the declared schema is not the one in the ledger")
        if bundle.refinement is None:
            raise _Refused("columns were left open, and never found")
        stated = bundle.refinement["facts"]["schema"]
    if _schema_digest(bundle.folder) != stated:
        raise _Refused("schema.toml is not the schema in the ledger")
    release = bundle.synthetic
    ordered = [family["columns"] for family in release.workload.to_json(release.schema)]
    if ordered != [family["columns"] for family in manifest["workload"]]:
        raise _Refused("columns of a marginal of the workload are not in the order of the schema")
    if release.schema.unit_word == OPEN or release.schema.read_from_rows:
        raise _Refused("schema.toml leaves open who is protected")
    if release.schema.unit != bundle.unit:
        raise _Refused("the unit of schema.toml is not the one in the ledger")
    problems = release.schema.illegal(release.rows)
    if problems:
        raise _Refused("rows are not legal under the schema: " + "; ".join(problems[:3]))
    if release.model.shape != release.schema.shape:
        raise _Refused("the model is of another shape than the schema")
    cells = release.workload.cells(release.schema.shape)
    of = "cells" if release.workload.plain else "queries"
    if cells != release.certificate.cells or of != release.certificate.of:
        stated = f"{release.certificate.cells} {release.certificate.of}"
        raise _Refused(f"the workload has {cells} {of}, not {stated}")
    if isinstance(release, FamilyRelease):
        if release.families.views.total != release.certificate.rows:
            raise _Refused("the certificate speaks of other families")
        return (
            f"{release.parents.num_rows:,} families with {release.children.num_rows:,} children, all "
            f"as the schema allows, every child with its parent"
        )
    columns = release.rows.num_columns
    return f"{release.rows.num_rows:,} rows × {columns} columns, all as the schema allows"


def _drawn(release: Release) -> str:
    """The rows are what the model gives for the key: all of them, value by value."""
    schema, key, number = release.schema, int(release.facts["key"]), 0
    if isinstance(release, FamilyRelease):
        families, cliques = release.families, release.workload.cliques
        size = release.parents.num_rows
        again = made_families(families.schema, release.model, size, key, cliques)
        pairs = [(release.parents, again.parents), (release.children, again.children)]
    else:
        pairs = [(release.rows, drawn_rows(schema, release.model, release.rows.num_rows, key)[1])]
    for stated, made in pairs:
        _require_alike(stated, made)
        number += made.num_rows
    return f"{number:,} rows drawn again from model and key, all the same"


def _require_alike(stated: pa.Table, made: pa.Table) -> None:
    if stated.num_rows != made.num_rows:
        raise _Refused(
            f"the model gives {made.num_rows:,} rows for the key, not {stated.num_rows:,}"
        )
    for name, theirs, ours in zip(made.column_names, stated.columns, made.columns, strict=True):
        # Parquet keeps the values of a dictionary, and some types as wider ones.
        if not theirs.equals(ours.cast(theirs.type)):
            raise _Refused(
                f"the rows are not those that the model gives for the key: column {name!r} differs "
                f"(drawn with NumPy {np.__version__}; its generators promise the same numbers only "
                f"to the same version)"
            )


def _signature(
    folder: Path, manifest: Mapping[str, Any], keys: Sequence[signature.PublicKey]
) -> str:
    signed = signature.read(folder, manifest)
    if not keys:
        return "signed; not checked: give --signed-by"
    for key in keys:
        if key.made(signed):
            return f"signed by {key.name} at {signed.time}, with the account at {signed.head}"
    raise _Refused(f"it was not signed by {' or '.join(key.name for key in keys)}")


def _schema_digest(folder: Path) -> str:
    """sha256 of the bytes of schema.toml from its line [understudy] on; above it are comments only."""
    head, found, rest = (folder / "schema.toml").read_bytes().partition(b"[understudy]\n")
    if not found or any(line.strip() and not line.startswith(b"#") for line in head.split(b"\n")):
        raise _Refused("schema.toml does not begin with [understudy]")
    return hashlib.sha256(found + rest).hexdigest()


def _custodian(
    bundle: Bundle,
    path: Place,
    dataset: str | None,
    head: str | None,
    signed: signature.Signed | None,
) -> str:
    if isinstance(path, Path) and not path.is_file():
        raise InputError(f"ledger {path} does not exist")
    manifest, own = bundle.manifest, bundle.entries
    with Ledger(path) as ledger:
        for name in [dataset] if dataset is not None else ledger.datasets():
            books = ledger.books(name)
            if not all(books.holds(entry.seq, entry.hash) for entry in own):
                continue
            if head is not None:
                ledger.require_head(name, head)
            if signed is not None:
                if signed.dataset not in (None, name):
                    raise _Refused(f"it was signed as of dataset {signed.dataset!r}, not {name!r}")
                ledger.require_head(name, signed.head)
            published = books.made(manifest["ledger"]["reservation"]).bundles
            if published and manifest["digest"] not in published:
                raise _Refused(f"dataset {name!r} published another bundle for this release")
            return f"every entry is in dataset {name!r}" + (
                ", with this bundle's digest" if published else "; no digest was published there"
            )
    raise _Refused(f"its entries are not in {path}")


def to_json(verification: Verification) -> str:
    """For machines."""
    body = {"passed": verification.passed, "digest": verification.digest}
    body["checks"] = [asdict(check) for check in verification.checks]
    return json.dumps(body, indent=2, ensure_ascii=False)

"""A forger who knows the format: changes a release in one respect and makes all the rest agree with it.

`FORGERIES` are the lies. Each works on a `Draft`, the files and the manifest of a release as plain
values, and tells whether it has anything to change there. `Draft.seal` writes what a custodian would
have written for it: `seq`, digests and hashes of the chain, sizes and hashes of the files, the bound
with everything that follows from it, both sentences, the digest of the manifest. So nothing in such a
folder is wrong by itself, and a verifier must know what a release of that kind looks like.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tools.corpus import rehashed, sealed, sha256
from understudy.models import Weighted
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Gaussian, Laplace
from understudy.privacy.relation import Relation
from understudy.releases import Release
from understudy.releases.release import promise_words
from understudy.releases.rows import drawn_rows
from understudy.schema import Schema

OWN = ("number of rows", "certificate", "certificate of total variation")
"""Draws of every release; all others are the method's."""


class Draft:
    """A release as its forger sees it: files by name, and the manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {item.name: item.read_bytes() for item in folder.iterdir()}
        self.manifest: dict[str, Any] = json.loads(self.files.pop("release.json"))

    @property
    def reserve(self) -> dict[str, Any]:
        return self.manifest["ledger"]["entries"][0]["body"]

    @property
    def plan(self) -> list[dict[str, Any]]:
        return self.reserve["plan"]

    @property
    def game(self) -> list[dict[str, Any]]:
        """What the method draws."""
        return [slot for slot in self.plan if slot["purpose"] not in OWN]

    @property
    def certificate(self) -> dict[str, Any]:
        return self.manifest["certificate"]

    def charges(self, purpose: str) -> list[dict[str, Any]]:
        """The entries that were charged for a purpose."""
        return [
            entry
            for entry in self.manifest["ledger"]["entries"]
            if entry.get("kind") == "charge" and entry["body"]["purpose"] == purpose
        ]

    def events(self, purpose: str) -> list[dict[str, Any]]:
        """The planned event and those that were charged."""
        planned = [slot["event"] for slot in self.plan if slot["purpose"] == purpose]
        return planned + [entry["body"]["event"] for entry in self.charges(purpose)]

    def strike(self, entries: Iterable[dict[str, Any]]) -> None:
        """Take entries out of the ledger."""
        gone = {id(entry) for entry in entries}
        kept = [e for e in self.manifest["ledger"]["entries"] if id(e) not in gone]
        self.manifest["ledger"]["entries"] = kept

    def drop(self, purposes: Iterable[str]) -> None:
        """Never planned, never charged."""
        for purpose in purposes:
            self.strike(self.charges(purpose))
            self.reserve["plan"] = [slot for slot in self.plan if slot["purpose"] != purpose]

    def rename(self, names: Mapping[str, str]) -> None:
        """Other purposes, planned and charged."""
        charged = [e["body"] for e in self.manifest["ledger"]["entries"] if e["kind"] == "charge"]
        for holder in (*self.plan, *charged):
            holder["purpose"] = names.get(holder["purpose"], holder["purpose"])

    def state(self, method: Mapping[str, Any]) -> None:
        """Another method, in the manifest and in the ledger."""
        self.manifest["method"] = dict(method)
        self.reserve["facts"]["method"] = dict(method)

    def rows(self) -> pa.Table:
        return pq.read_table(BytesIO(self.files["synthetic.parquet"]))

    def put(self, rows: pa.Table) -> None:
        """Other rows."""
        out = BytesIO()
        pq.write_table(rows, out, compression="zstd")
        self.files["synthetic.parquet"] = out.getvalue()
        self.manifest["rows"] = self.certificate["rows"] = rows.num_rows

    def seal(self, folder: Path) -> None:
        """Write the folder, consistent in itself."""
        _in_order(self)
        for name, data in self.files.items():
            self.manifest["files"][name] = {"bytes": len(data), "sha256": sha256(data)}
        certify(self)
        promise(self)
        folder.mkdir(parents=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        (folder / "release.json").write_bytes(sealed(self.manifest))


def promise(draft: Draft) -> None:
    """The promise in words, as its fields say it."""
    stated = draft.manifest["promise"]
    schema = Schema.loads(draft.files["schema.toml"].decode())
    stated["words"] = promise_words(
        Budget.from_json(stated).recorded,
        Relation(stated["relation"]),
        stated["rows_public"],
        schema.unit,
    )


def certify(draft: Draft) -> None:
    """Bound, total variations and words, as docs/bundle.md derives them from released numbers."""
    stated = draft.certificate
    quantile = NormalDist().inv_cdf
    beta, n = stated["beta"], stated["rows_public"]
    if n is None:
        sigma = draft.events("number of rows")[0]["sigma"]
        n = max(1, stated["rows_measured"] - math.ceil(sigma * quantile(1 - 0.2 * beta)))
        beta *= 0.8
    measured = stated["variations_measured"]
    if measured is not None:
        beta /= 2
        sigma = draft.events("certificate of total variation")[0]["sigma"]
        margin = max(0, math.ceil(sigma * quantile((1 - beta) ** (1 / len(measured)))))
        stated["variations"] = [min(1.0, (max(v, 0) + margin) / (4 * n)) for v in measured]
    event = draft.events("certificate")[0]
    a = math.exp(-1 / event["scale"])
    t = max(0, math.ceil(math.log(beta * (1 + a)) / math.log(a)) - 1)
    while a ** (t + 1) / (1 + a) > beta:
        t += 1
    while t > 0 and a**t / (1 + a) <= beta:
        t -= 1
    stated["bound"] = min(1.0, (max(stated["worst"], 0) + t) / (event["l1"] * n))
    if "population" in stated:
        margin = math.sqrt(math.log(2 * stated["cells"] / stated["beta"]) / (2 * n))
        stated["population"] = min(1.0, stated["bound"] + margin)
    words(stated)


def words(stated: dict[str, Any]) -> None:
    """The certificate's sentence."""
    stated["words"] = (
        f"worst error over {stated['cells']:,} {stated.get('of', 'cells')} of the workload ≤ "
        f"{stated['bound']:.4f} ({100 * (1 - stated['beta']):g} % confidence)"
    )
    if stated["variations"] is not None:
        worst = max(stated["variations"])
        stated["words"] += f"; total variation of every marginal ≤ {worst:.4f}"
    if "population" in stated:
        stated["words"] += (
            f"; against a population that the rows were drawn from independently ≤ "
            f"{stated['population']:.4f} ({100 * (1 - 2 * stated['beta']):g} % confidence)"
        )


@dataclass(frozen=True)
class Forgery:
    """A lie. `reason`: what one of a verifier's reasons must speak of, as a regular expression.

    `change` says whether there was anything to change. `spoil` writes into the manifest what the
    forger does not recompute; the chain and the digest are sealed once more after it.
    """

    name: str
    change: Callable[[Draft], bool]
    reason: str
    spoil: Callable[[Draft], None] | None = None

    def make(self, good: Path, bad: Path) -> bool:
        """Write the forged release, if this lie can be told about `good`."""
        draft = Draft(good)
        if not self.change(draft):
            return False
        draft.seal(bad)
        if self.spoil is not None:
            self.spoil(draft)
            (bad / "release.json").write_bytes(sealed(draft.manifest))
        return True


PLAN = r"plan|charge|event|purpose|draw"


# -- charges that are not there, or are called something else -------------------------------------


def _first_dropped(draft: Draft) -> bool:
    draft.drop([draft.game[0]["purpose"]])
    return True


def _last_dropped(draft: Draft) -> bool:
    draft.drop([draft.game[-1]["purpose"]])
    return True


def _all_dropped(draft: Draft) -> bool:
    draft.drop([slot["purpose"] for slot in draft.game])
    return True


def _uncharged(draft: Draft) -> bool:
    """Planned, but not charged; of a zCDP filter, no draw."""
    draft.strike(draft.charges(draft.game[-1]["purpose"]))
    return True


def _renamed(draft: Draft) -> bool:
    draft.rename({slot["purpose"]: f"formality {i}" for i, slot in enumerate(draft.game)})
    return True


def _swapped(draft: Draft) -> bool:
    """Two purposes, of different events, trade their names."""
    slots = draft.game
    for one in slots:
        for other in slots:
            if one["event"] != other["event"] and one["times"] == other["times"]:
                draft.rename({one["purpose"]: other["purpose"], other["purpose"]: one["purpose"]})
                return True
    return False


def _own_name(draft: Draft) -> bool:
    """A draw of the method passes as one that every release has."""
    if "certificate of total variation" in {slot["purpose"] for slot in draft.plan}:
        return False
    draft.rename({draft.game[0]["purpose"]: "certificate of total variation"})
    return True


# -- events that cost less ------------------------------------------------------------------------


def _lowered(field: str, to: int = 1, of: Iterable[str] | None = None) -> Callable[[Draft], bool]:
    """A field of all events, planned and charged, where it is larger."""

    def change(draft: Draft) -> bool:
        done = False
        for purpose in [slot["purpose"] for slot in draft.plan] if of is None else of:
            for event in draft.events(purpose):
                if event.get(field, 0) > to:
                    event[field] = to
                    done = True
        return done

    return change


def _game_lowered(field: str) -> Callable[[Draft], bool]:
    return lambda draft: _lowered(field, of=[slot["purpose"] for slot in draft.game])(draft)


def _charged_lowered(field: str) -> Callable[[Draft], bool]:
    """Only in charges against a zCDP filter, of which the plan says nothing."""

    def change(draft: Draft) -> bool:
        done = False
        for slot in draft.game:
            for entry in draft.charges(slot["purpose"]):
                event = entry["body"]["event"]
                if slot["event"]["kind"] == "zcdp" and event.get(field, 0) > 1:
                    event[field], done = 1, True
        return done

    return change


def _another_kind(draft: Draft) -> bool:
    """A Gaussian draw of the game becomes a Laplace one, of hardly any cost."""
    for slot in draft.game:
        if slot["event"]["kind"] == "gaussian":
            for event in draft.events(slot["purpose"]):
                scale = 1000 * event["sigma"]
                event.clear()
                event.update(kind="laplace", l1=1, scale=scale)
            return True
    return False


def _fewer_times(draft: Draft) -> bool:
    done = False
    for slot in draft.game:
        if slot["times"] > 1:
            slot["times"] -= 1
            draft.strike(draft.charges(slot["purpose"])[-1:])
            done = True
    return done


def _fewer_rounds(draft: Draft) -> bool:
    """The parameters say it too."""
    method = draft.manifest["method"]
    if not isinstance(method.get("rounds"), int) or not _fewer_times(draft):
        return False
    draft.state({**method, "rounds": method["rounds"] - 1})
    return True


def _zcdp(draft: Draft) -> bool:
    """The whole game on a zCDP filter of next to nothing."""
    first = draft.charges(draft.game[0]["purpose"])[0]
    draft.strike(
        entry
        for slot in draft.game
        for entry in draft.charges(slot["purpose"])
        if entry is not first
    )
    purpose = draft.game[0]["purpose"]
    small = {"kind": "zcdp", "rho": 1e-6}
    slot = {"purpose": purpose, "event": small, "times": 1}
    own = [slot for slot in draft.plan if slot["purpose"] in OWN]
    draft.reserve["plan"] = [slot, *own]
    first["body"]["event"] = {"kind": "gaussian", "sigma": 1e6, "step": 1, "changes": 1}
    return True


def _small_filter(draft: Draft) -> bool:
    """A zCDP filter that was there is made small, and all but one of its charges are gone."""
    for slot in draft.game:
        if slot["event"]["kind"] == "zcdp":
            slot["event"]["rho"] /= 100
            first, *others = draft.charges(slot["purpose"])
            draft.strike(others)
            first["body"]["event"] = {"kind": "gaussian", "sigma": 1e6, "step": 1, "changes": 1}
            return True
    return False


# -- another method, other parameters, another promise --------------------------------------------


def _method_name(draft: Draft) -> bool:
    method = draft.manifest["method"]
    name = "mst" if method["name"] != "mst" else "gaussian"
    draft.state({**method, "name": name})
    return True


def _simpler_method(draft: Draft) -> bool:
    """A name that has no parameters at all."""
    if draft.manifest["method"]["name"] == "independent":
        return False
    draft.state({"name": "independent"})
    return True


def _no_method(draft: Draft) -> bool:
    draft.state({**draft.manifest["method"], "name": "a better one"})
    return True


OTHERWISE: dict[str, dict[str, Any]] = {
    "mwem": {"rounds": 1, "selection": 0.5, "measure": False},
    "mst": {"selection": 0.4, "one_ways": 0.1},
    "fem": {"rounds": 40},
    "sepfem": {"rounds": 40},
    "dualquery": {"rounds": 3, "samples": 10},
    "dqrs": {"rounds": 2, "samples": 10},
    "hdmm": {"levels": 1},
    "frankwolfe": {"rounds": 30},
    "gem": {"rounds": 1, "picks": 2},
    "querygan": {"degree": 1, "columns": 0.5},
    "dpgan": {"steps": 2, "columns": 0.5, "critic_width": 8},
}
"""Parameters that the plan depends on, and other values of them."""


def _parameters(draft: Draft) -> bool:
    method = draft.manifest["method"]
    others = OTHERWISE.get(method["name"], {})
    draft.state({**method, **others})
    return bool(others)


def _one_parameter(draft: Draft) -> bool:
    method = draft.manifest["method"]
    others = OTHERWISE.get(method["name"], {})
    draft.state({**method, **dict(list(others.items())[:1])})
    return bool(others)


def _workload(draft: Draft) -> bool:
    """Half of the workload was never asked for; the certificate counts what is left."""
    whole = len(draft.manifest["workload"])
    if not any(slot["event"].get("changes") == whole for slot in draft.game):
        return False  # what is drawn does not depend on it
    schema = Schema.loads(draft.files["schema.toml"].decode())
    sizes = dict(zip((c.name for c in schema.modelled), schema.shape, strict=True))
    kept = draft.manifest["workload"][::2]
    draft.manifest["workload"] = kept
    draft.reserve["facts"]["workload"] = copy.deepcopy(kept)
    forecast = draft.manifest.get("forecast") or {}
    for name in ("total_variations", "worst_cells"):
        if name in forecast:
            forecast[name] = forecast[name][::2]
    stated = draft.certificate
    stated["cells"] = sum(math.prod(sizes[name] for name in each["columns"]) for each in kept)
    if stated["variations_measured"] is not None:
        stated["variations_measured"] = stated["variations_measured"][::2]
        for event in draft.events("certificate of total variation"):
            event["changes"] = len(kept)
    return True


def _rows_public(draft: Draft) -> bool:
    """The number of rows was public all along."""
    if draft.manifest["promise"]["rows_public"] is not None:
        return False
    n = draft.certificate["rows_measured"]
    draft.drop(["number of rows"])
    draft.manifest["promise"]["rows_public"] = draft.reserve["facts"]["rows_public"] = n
    draft.certificate.update(rows_public=n, rows_measured=None)
    for event in draft.events("certificate of total variation"):
        event["step"] = 2
    return True


def _relation(draft: Draft) -> bool:
    """Rows were added or removed, not replaced, which is half of the cost."""
    if draft.manifest["promise"]["relation"] != "replace":
        return False
    draft.manifest["promise"]["relation"] = draft.reserve["relation"] = "add-remove"
    for event in draft.events("certificate of total variation"):
        event["step"] = 2
    return True


def _epsilon(draft: Draft) -> bool:
    """Half of ε, of the same plan."""
    half = str(float(Fraction(draft.manifest["promise"]["epsilon"])) / 2)
    draft.manifest["promise"]["epsilon"] = draft.reserve["budget"]["epsilon"] = half
    return True


# -- the certificate ------------------------------------------------------------------------------


def _lattice(l1: int) -> Callable[[Draft], bool]:
    """Another lattice, at the same cost and with the same bound."""

    def change(draft: Draft) -> bool:
        factor = l1 / draft.events("certificate")[0]["l1"]
        for event in draft.events("certificate"):
            event.update(l1=l1, scale=event["scale"] * factor)
        draft.certificate["worst"] = round(draft.certificate["worst"] * factor)
        return True

    return change


def _cheap_certificate(draft: Draft) -> bool:
    """`l1` alone: a sixty-fourth of the cost."""
    return _lowered("l1", of=["certificate"])(draft)


def _coarse_worst(draft: Draft) -> bool:
    """In whole rows, on a lattice of whole rows, with the noise it had."""
    draft.certificate["worst"] //= draft.events("certificate")[0]["l1"]
    return _cheap_certificate(draft)


def _sharp_certificate(draft: Draft) -> bool:
    """A bound of less noise, which the game's noise pays for."""
    for event in draft.events("certificate"):
        event["scale"] /= 1.4
    for slot in draft.game:
        for event in draft.events(slot["purpose"]):
            for field in ("sigma", "scale"):
                if field in event:
                    event[field] *= 4
            if "multipliers" in event:
                event["multipliers"] = [4 * m for m in event["multipliers"]]
            if "rho" in event:
                event["rho"] /= 16
    for each in draft.manifest.get("measurements", ()):
        if each["sigma"] is not None:
            each["sigma"] *= 4
    return True


def _overspent_certificate(draft: Draft) -> bool:
    """A bound of a tenth of the noise, which nothing pays for."""
    for event in draft.events("certificate"):
        event["scale"] /= 10
    return True


def _has(purpose: str) -> Callable[[Draft], bool]:
    return lambda draft: bool(draft.charges(purpose))


def _never_drawn(purpose: str) -> Callable[[Draft], None]:
    """Of what every release draws: its charge is gone, and what was measured is still stated."""

    def spoil(draft: Draft) -> None:
        draft.drop([purpose])
        _in_order(draft)

    return spoil


def _drawn_as(purpose: str, kind: Gaussian | Laplace) -> Callable[[Draft], None]:
    """Noise of another kind, from which no bound follows."""

    def spoil(draft: Draft) -> None:
        for event in draft.events(purpose):
            event.clear()
            event.update(kind.to_json())
        _in_order(draft)

    return spoil


def _rows_unknown(draft: Draft) -> None:
    """Neither public nor measured, as if that were usual."""
    draft.certificate["rows_measured"] = None
    draft.manifest["rows_estimate"] = 1
    _never_drawn("number of rows")(draft)


def _in_order(draft: Draft) -> None:
    entries = draft.manifest["ledger"]["entries"]
    for place, entry in enumerate(entries):
        entry["seq"] = entries[0]["seq"] + place
    rehashed(draft.manifest)


def _far_below(draft: Draft) -> bool:
    """A worst error that no noise makes so small, for the smallest bound that there can be."""
    draft.certificate["worst"] = -math.ceil(65 * draft.events("certificate")[0]["scale"])
    return True


def _negative(draft: Draft) -> bool:
    draft.certificate["worst"] = -math.ceil(draft.events("certificate")[0]["scale"])
    return True


def _below_nothing(draft: Draft) -> None:
    """The bound takes a worst error below 0 as it is."""
    stated, event = draft.certificate, draft.events("certificate")[0]
    honest = dict(stated, worst=0)
    n = honest["rows_public"] or honest["rows_measured"]
    stated["bound"] = max(0.0, stated["bound"] + stated["worst"] / (event["l1"] * n))
    words(stated)


def _surer(draft: Draft) -> None:
    """The same bound, with a confidence that it does not have."""
    draft.certificate["beta"] /= 100
    words(draft.certificate)


def _anything(draft: Draft) -> bool:
    return True


def _half_as_many(draft: Draft) -> bool:
    """What shares are shown as, in rows."""
    draft.manifest["rows_estimate"] //= 2
    return True


# -- model, rows, measurements --------------------------------------------------------------------


def another_model(other: Path) -> Callable[[Draft], bool]:
    """The model of another release of the same schema."""

    def change(draft: Draft) -> bool:
        for name in ("model.json", "model.npz"):
            draft.files[name] = (other / name).read_bytes()
        return True

    return change


def another_method(other: Path) -> Callable[[Draft], bool]:
    """Name and parameters of the method of another release."""

    def change(draft: Draft) -> bool:
        method = json.loads((other / "release.json").read_bytes())["method"]
        mine = draft.manifest["method"]["name"]
        draft.state(method)
        return method["name"] != mine

    return change


def _exchanged(draft: Draft) -> bool:
    """The first row, and one that differs from it, change places: the counts stay the same."""
    rows = draft.rows()
    listed = rows.to_pylist()
    other = next((i for i, row in enumerate(listed) if row != listed[0]), None)
    if other is None:
        return False
    listed[0], listed[other] = listed[other], listed[0]
    draft.put(pa.Table.from_pylist(listed, rows.schema))
    return True


def _planted(draft: Draft) -> bool:
    """A few rows are others, as somebody would plant them."""
    rows = draft.rows()
    listed = rows.to_pylist()
    other = next((row for row in listed if row != listed[0]), None)
    if other is None:
        return False
    changed = [other if row == listed[0] else row for row in listed[:5]]
    draft.put(pa.Table.from_pylist(changed + listed[5:], rows.schema))
    return True


def _one_value(draft: Draft) -> bool:
    """One value of one row is another one of its column."""
    rows = draft.rows()
    for name in rows.column_names:
        values = rows[name].to_pylist()
        other = next((value for value in values if value != values[-1]), None)
        if other is not None:
            values[-1] = other
            at = rows.column_names.index(name)
            field = rows.schema.field(name)
            draft.put(rows.set_column(at, field, pa.array(values, field.type)))
            return True
    return False


def _another_draw(draft: Draft) -> bool:
    """All rows are drawn anew from the model, with a key that is not stated."""
    release = Release.load(draft.folder)
    rows = draft.rows()
    drawn = release.sample(rows.num_rows, key=int(draft.manifest["key"]) + 1, like="arrow")
    draft.put(drawn.cast(rows.schema))
    return not drawn.cast(rows.schema).equals(rows)


def _another_key(draft: Draft) -> bool:
    draft.manifest["key"] = str(int(draft.manifest["key"]) + 1)
    return True


def _more_rows(draft: Draft) -> bool:
    """Twice as many rows, of the same shares."""
    rows = draft.rows()
    draft.put(pa.concat_tables([rows, rows]))
    return True


def _copula(change: Callable[[dict[str, Any]], None]) -> Callable[[Draft], bool]:
    """Values are said to lie together in another way than they were drawn."""

    def changed(draft: Draft) -> bool:
        model = json.loads(draft.files["model.json"])
        if "copula" not in model:
            return False
        change(model["copula"])
        if not model["copula"]:
            del model["copula"]
        draft.files["model.json"] = json.dumps(model).encode()
        return True

    return changed


def _correlated(change: Callable[[int, int, float], float]) -> Callable[[Draft], bool]:
    """Other correlations of different columns."""

    def changed(copula: dict[str, Any]) -> None:
        for i, row in enumerate(copula["correlations"]):
            row[:] = [r if i == j else change(i, j, r) for j, r in enumerate(row)]

    return _copula(changed)


def _moved_ends(copula: dict[str, Any]) -> None:
    copula["ends"] = [[end + 0.5 for end in ends] for ends in copula["ends"]]


def _hundreds(copula: dict[str, Any]) -> None:
    copula["columns"] = [*range(300)]
    copula["ends"] = [[0.0]] * 300
    copula["correlations"] = [[float(i == j) for j in range(300)] for i in range(300)]


def _apart(draft: Draft) -> bool:
    """Rows of the same model and key, but for how values lie together."""
    release = Release.load(draft.folder)
    model = release.model
    if not isinstance(model, Weighted) or model.copula is None:
        return False
    key, rows = int(draft.manifest["key"]), draft.rows()
    _, drawn = drawn_rows(release.schema, replace(model, copula=None), rows.num_rows, key)
    draft.put(drawn.cast(rows.schema))
    return True


def _measured(draft: Draft) -> list[dict[str, Any]]:
    """What was measured with noise of its own."""
    return [m for m in draft.manifest["measurements"] if m["sigma"] is not None]


def _unmeasured(draft: Draft) -> bool:
    measured = _measured(draft)
    if measured:
        draft.manifest["measurements"].remove(measured[-1])
    return bool(measured)


def _nothing_measured(draft: Draft) -> bool:
    there = bool(_measured(draft))
    draft.manifest["measurements"] = []
    return there


def _measured_twice(draft: Draft) -> bool:
    """A table more than was paid for."""
    measured = _measured(draft)
    draft.manifest["measurements"] += copy.deepcopy(measured[-1:])
    return bool(measured)


def _measured_sharply(draft: Draft) -> bool:
    """With less noise than was paid for."""
    for each in _measured(draft):
        each["sigma"] /= 2
    return bool(_measured(draft))


def _measured_nearly(draft: Draft) -> bool:
    """With noise that is off in its last digit."""
    for each in _measured(draft):
        each["sigma"] = math.nextafter(each["sigma"], 0)
    return bool(_measured(draft))


def _columns_turned(draft: Draft) -> bool:
    """A table names its columns in another order than the schema."""
    larger = [m for m in draft.manifest["measurements"] if len(m["columns"]) > 1]
    for each in larger:
        each["columns"].reverse()
    return bool(larger)


def _workload_turned(draft: Draft) -> bool:
    """And so do the marginals of the workload."""
    for marginal in draft.manifest["workload"]:
        marginal["columns"].reverse()
    draft.reserve["facts"]["workload"] = copy.deepcopy(draft.manifest["workload"])
    return any(len(marginal["columns"]) > 1 for marginal in draft.manifest["workload"])


def _measured_often(draft: Draft) -> bool:
    for each in _measured(draft):
        each["times"] += 1
    return bool(_measured(draft))


MODEL = r"rows|model|key"
CERTIFICATE = r"certificate|lattice|bound|l1|plan|event"
FORGERIES = (
    Forgery("the first draw of the game is dropped", _first_dropped, PLAN),
    Forgery("the last draw of the game is dropped", _last_dropped, PLAN),
    Forgery("the whole game is dropped", _all_dropped, PLAN),
    Forgery("a draw is planned and not charged", _uncharged, PLAN),
    Forgery("purposes are renamed", _renamed, PLAN),
    Forgery("purposes are swapped", _swapped, PLAN),
    Forgery("a draw has the name of another", _own_name, PLAN),
    Forgery("changes = 1", _lowered("changes"), PLAN + "|changes"),
    Forgery("changes = 1 in the game", _game_lowered("changes"), PLAN + "|changes"),
    Forgery("step = 1", _lowered("step"), PLAN + "|step"),
    Forgery("sensitivity = 1", _lowered("sensitivity"), PLAN + "|sensitivity"),
    Forgery("sensitivity = 1 in a zCDP filter", _charged_lowered("sensitivity"), PLAN + "|sensitivity"),
    Forgery("k = 1", _lowered("k"), PLAN),
    Forgery("one coordinate", _lowered("coordinates"), PLAN + "|coordinates"),
    Forgery("another kind of noise", _another_kind, PLAN),
    Forgery("fewer times", _fewer_times, PLAN + "|times"),
    Forgery("fewer rounds", _fewer_rounds, PLAN + "|times|rounds"),
    Forgery("one small zCDP filter for the game", _zcdp, PLAN),
    Forgery("a smaller zCDP filter", _small_filter, PLAN + "|zCDP filter"),
    Forgery("another method's name", _method_name, PLAN + "|method"),
    Forgery("the simplest method's name", _simpler_method, PLAN + "|method"),
    Forgery("a method that nobody knows", _no_method, PLAN + "|method"),
    Forgery("other parameters", _parameters, PLAN + "|method|parameter"),
    Forgery("another parameter", _one_parameter, PLAN + "|method|parameter"),
    Forgery("half of the workload", _workload, PLAN + "|workload"),
    Forgery("a public number of rows", _rows_public, PLAN + "|rows_public|number of rows"),
    Forgery("rows are not replaced", _relation, PLAN + "|relation|neighbour"),
    Forgery("half of ε", _epsilon, r"ε|epsilon|privacy|promise|plan|cost"),
    Forgery("a lattice of 1", _lattice(1), CERTIFICATE),
    Forgery("a lattice of 32", _lattice(32), CERTIFICATE),
    Forgery("a lattice of 128", _lattice(128), CERTIFICATE),
    Forgery("l1 = 1", _cheap_certificate, CERTIFICATE),
    Forgery("l1 = 1, worst error in rows", _coarse_worst, CERTIFICATE),
    Forgery("a sharper certificate, paid by the game", _sharp_certificate, CERTIFICATE),
    Forgery("a sharper certificate", _overspent_certificate, CERTIFICATE + "|ε|epsilon|cost"),
    Forgery("no certificate was drawn", _has("certificate"), CERTIFICATE,
            _never_drawn("certificate")),
    Forgery("a certificate of Gaussian noise", _has("certificate"), CERTIFICATE,
            _drawn_as("certificate", Gaussian(30.0))),
    Forgery("the number of rows was not drawn", _has("number of rows"), "number of rows",
            _never_drawn("number of rows")),
    Forgery("a number of rows of Laplace noise", _has("number of rows"), "number of rows",
            _drawn_as("number of rows", Laplace(30.0))),
    Forgery("nobody knows the number of rows", _has("number of rows"), "number of rows",
            _rows_unknown),
    Forgery("total variations of Laplace noise", _has("certificate of total variation"),
            "variation", _drawn_as("certificate of total variation", Laplace(30.0))),
    Forgery("a worst error far below 0", _far_below, r"worst|certificate|noise"),
    Forgery("a bound of a worst error below 0", _negative, r"bound|certificate", _below_nothing),
    Forgery("a confidence that the bound does not have", _anything, r"bound|beta|β", _surer),
    Forgery("half as many rows", _half_as_many, r"rows_estimate"),
    Forgery("two rows are exchanged", _exchanged, MODEL),
    Forgery("a few rows are planted", _planted, MODEL),
    Forgery("one value is another", _one_value, MODEL),
    Forgery("rows are drawn with another key", _another_draw, MODEL),
    Forgery("another key is stated", _another_key, MODEL),
    Forgery("rows are doubled", _more_rows, MODEL),
    Forgery("values lie together in no way", _copula(dict.clear), MODEL),
    Forgery("values lie together weakly", _correlated(lambda i, j, r: 0.9 * r), MODEL),
    Forgery("values lie together the other way round",
            _correlated(lambda i, j, r: r if i and j else -r), MODEL),
    Forgery("cells begin elsewhere", _copula(_moved_ends), MODEL),
    Forgery("rows are drawn apart", _apart, MODEL),
    Forgery("correlations of no law", _correlated(lambda i, j, r: 1.0), "copula"),
    Forgery("correlations that are nearly 1", _correlated(lambda i, j, r: 1 - 2**-40), "copula"),
    Forgery("correlations that are no numbers", _correlated(lambda i, j, r: math.nan), r"NaN|model"),
    Forgery("correlations of no column", _copula(lambda c: c["correlations"].clear()), "copula"),
    Forgery("a copula of hundreds of columns", _copula(_hundreds), "copula"),
    Forgery("ends that are no numbers",
            _copula(lambda c: c.update(ends=[[math.nan]] * len(c["ends"]))), r"NaN|model"),
    Forgery("ends that go down", _copula(lambda c: c["ends"][0].reverse()), "copula"),
    Forgery("a measured table is left out", _unmeasured, r"measure|table"),
    Forgery("no table was measured", _nothing_measured, r"measure|table"),
    Forgery("a measured table too many", _measured_twice, r"measure|table"),
    Forgery("tables of less noise", _measured_sharply, r"measure|table|sigma|noise"),
    Forgery("tables of noise that is off by a digit", _measured_nearly, r"measure|table|sigma|noise"),
    Forgery("tables of columns in another order", _columns_turned, r"columns|order|its tables have"),
    Forgery("a workload of columns in another order", _workload_turned, r"columns|order"),
    Forgery("tables measured more often", _measured_often, r"measure|table|times"),
)  # fmt: skip


def borrowed(other: Path) -> tuple[Forgery, ...]:
    """What a forger takes from another release of the same schema."""
    return (
        Forgery("another release's model", another_model(other), MODEL),
        Forgery("another release's method", another_method(other), PLAN + "|method"),
    )

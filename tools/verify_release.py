#!/usr/bin/env python3
"""Check a release of understudy without understudy: a second verifier, written from docs/bundle.md.

    python verify_release.py FOLDER [FOLDER ...]

One file; it needs Python 3.11, NumPy and pyarrow, and imports nothing of understudy. `verify(folder)`
carries out checks 1 to 9 of that page and returns what is wrong, [] if nothing is. Privacy is
recomputed by three accountants of its own: pure ε, zCDP, and the privacy loss distribution of the
plan, convolved with NumPy's FFT. As a program it prints what it found and exits with 1 if a release is
refused.

Whether a release is the one that its custodian published, no program can tell from the folder alone:
compare the digest that is printed with the published one.
"""

import contextlib
import datetime
import hashlib
import io
import json
import math
import re
import sys
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

OTHERS = ("model.json", "model.npz", "schema.toml", "synthetic.parquet")
CLOSE = 1e-9  # floats are recomputed in other orders; nothing that matters is this small
BAD = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    pa.ArrowException,
    zipfile.BadZipFile,
    zlib.error,
)


class Bundle:
    """The folder, parsed as far as it can be; checks read what they need and fail on what is not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bytes = (folder / "release.json").read_bytes()
        self.manifest = json.loads(self.bytes.decode(), parse_constant=_no_constant)
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
        """What was reserved, with the allowance as it was filled later, if it was."""
        plan = self.reserved
        for body in self.refinements:
            plan = [slot for slot in plan if slot["purpose"] != body["purpose"]] + body["plan"]
        return plan

    def event(self, purpose: str) -> dict[str, Any]:
        (event,) = (slot["event"] for slot in self.plan if slot["purpose"] == purpose)
        return event

    def schema_text(self) -> str:
        return (self.folder / "schema.toml").read_bytes().decode()

    def schema_stated(self) -> str:
        """The digest of the schema: as reserved or, with open columns, as found."""
        facts = self.reserve["facts"]
        if "declared" not in facts:
            return facts["schema"]
        (refinement,) = self.refinements
        return refinement["facts"]["schema"]

    def unit_declared(self) -> Any:
        head = tomllib.loads(self.schema_text())["understudy"]
        if "unit" not in head:
            return "row"
        salt = head.get("unit_salt", "")
        return {"column": head["unit"], "max_rows": head["max_rows"], "salt": salt}

    @property
    def group(self) -> int:
        """How many rows a neighbour may differ in."""
        unit = self.promise["unit"]
        return 1 if unit == "row" else _whole(unit["max_rows"])

    def columns(self) -> list[dict[str, Any]]:
        return tomllib.loads(self.schema_text())["column"]


def verify(folder: str | Path) -> list[str]:
    """What is wrong with the release in `folder`; [] if nothing is."""
    try:
        bundle = Bundle(Path(folder))
    except BAD as error:
        return [f"release.json: cannot be read ({error!r})"]
    problems: list[str] = []
    for number, check in enumerate(CHECKS, 1):
        try:
            problems += (f"check {number}: {problem}" for problem in check(bundle))
        except BAD as error:
            problems.append(f"check {number}: cannot be carried out ({error!r})")
    return problems


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


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def check_form(b: Bundle) -> Iterator[str]:
    if pretty(b.manifest) != b.bytes:
        yield "release.json is not in its one byte form"
    if (b.manifest["format"], b.manifest["version"]) != ("understudy release", 1):
        yield "not a release of version 1"
    if b.manifest["private"] is not True:
        yield "made with test noise"


def check_digest(b: Bundle) -> Iterator[str]:
    rest = {key: value for key, value in b.manifest.items() if key != "digest"}
    if sha256(canonical(rest)) != b.manifest["digest"]:
        yield "the manifest's digest does not match"


def check_files(b: Bundle) -> Iterator[str]:
    stated = b.manifest["files"]
    if sorted(stated) != sorted(OTHERS):
        yield f"lists {sorted(stated)}"
    allowed = {*OTHERS, "release.json", "report.html"}
    for path in sorted(b.folder.iterdir()):
        if path.name not in allowed or not path.is_file():
            yield f"{path.name} does not belong to a release"
    for name in OTHERS:
        data = (b.folder / name).read_bytes()
        if (len(data), sha256(data)) != (stated[name]["bytes"], stated[name]["sha256"]):
            yield f"{name} was changed"


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
            yield f"{body['purpose']!r} was filled, and is no allowance"
        elif any(each["event"]["kind"] == "discovery" for each in body["plan"]):
            yield f"{body['purpose']!r} was filled by a plan with a δ of its own"
        elif cost > rho(slot["event"]) * (1 + CLOSE):
            yield f"{body['purpose']!r} was filled by a plan that costs more"
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
            if not events or sum(map(drawn_rho, events)) > rho(event) * (1 + CLOSE):
                yield f"{purpose!r} does not keep to its allowance"
        elif any(canonical(drawn_) != canonical(event) for drawn_ in events):
            yield f"{purpose!r} was charged with another event than planned"
        elif len(events) != times:
            yield f"{purpose!r} was charged {len(events)} times, planned {times}"


def check_facts(b: Bundle) -> Iterator[str]:
    reserve, facts = b.reserve, b.reserve["facts"]
    for name in ("epsilon", "delta"):
        if exact(reserve["budget"][name]) != exact(b.promise[name]):
            yield f"{name} is {b.promise[name]}, reserved was {reserve['budget'][name]}"
    text = b.schema_text()
    pairs = {
        "relation": (reserve["relation"], b.promise["relation"]),
        "noise": (reserve["noise"], "opendp"),
        "unit": (b.promise["unit"], reserve.get("unit", "row")),
        "unit of the schema": (b.unit_declared(), reserve.get("unit", "row")),
        "rows_public": (facts["rows_public"], b.promise["rows_public"]),
        "method": (facts["method"], b.manifest["method"]),
        "workload": (facts["workload"], b.manifest["workload"]),
        "schema": (b.schema_stated(), sha256(text[text.index("[understudy]\n") :].encode())),
        "declared schema": (
            facts["schema"],
            sha256(facts["declared"].encode()) if "declared" in facts else facts["schema"],
        ),
    }
    for name, (one, other) in pairs.items():
        if canonical(one) != canonical(other):
            yield f"{name} in the ledger is not that of the release"
    if b.promise["relation"] not in ("add-remove", "replace"):
        yield f"unknown relation {b.promise['relation']!r}"


def exact(text: str) -> Fraction:
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is not a number as text")
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
    change = "replaced by another" if promise["relation"] == "replace" else "added or removed"
    if n is None:
        relation = f"one {one} {change}; the number of rows is private"
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
    """The smallest of three valid ε for the plan at δ; two where neighbours differ in a group."""
    steps = [(slot["event"], slot["times"]) for slot in plan]
    # How far the noise of gradients as drawn may be from Gaussian noise, rounded; on the log scale.
    apart = 2.0**-38 * sum(
        _whole(event["coordinates"]) * times
        for event, times in steps
        if event["kind"] == "sampled groups"
    )
    delta *= math.exp(-apart)
    delta -= sum(discovery_delta(event) * times for event, times in steps)
    found = [sum(group * pure(event) * times for event, times in steps)]
    if delta > 0:
        total = sum(group_rho(event, group) * times for event, times in steps)
        found.append(zcdp_epsilon(total, delta))
        if group == 1 and all(event["kind"] not in ("zcdp", "discovery") for event, _ in steps):
            found.append(rounded_epsilon(steps, delta))
    return min(found) + 2 * apart


def rounded_epsilon(steps: list[tuple[dict[str, Any], int]], delta: float) -> float:
    """ε at δ by privacy loss distributions; samples with discrete noise as if it were rounded.

    The two kinds of noise differ by 1/(40σ²) a coordinate in total variation, σ ≥ 16; (1 + e^ε) times
    that is paid from δ at an ε that is not passed.
    """
    sums = [(event, times) for event, times in steps if event["kind"] == "sampled gaussian"]
    if any(_positive(event["sigma"]) < 16 for event, _ in sums):
        return math.inf
    steps = [(_in_units(event), times) for event, times in steps]
    # One way round and the other differ where rows are sampled.
    ways = {False, *(event["kind"] == "sampled groups" for event, _ in steps)}
    found = max(pld_epsilon(steps, delta, way) for way in ways)
    if not sums or math.isinf(found):
        return found
    apart = sum(times * _whole(e["coordinates"]) / (40 * e["sigma"] ** 2) for e, times in sums)
    most = found + 1
    left = delta - (1 + math.exp(min(most, 700.0))) * apart
    found = max(pld_epsilon(steps, left, way) for way in ways) if left > 0 else math.inf
    return found if found <= most else math.inf


def _in_units(event: dict[str, Any]) -> dict[str, Any]:
    """A sum over a sample with its noise in units of what a row adds: one group."""
    if event["kind"] != "sampled gaussian":
        return event
    multiplier = _positive(event["sigma"]) / _whole(event["l2"])
    return {**event, "kind": "sampled groups", "multipliers": [multiplier]}


def pure(event: dict[str, Any]) -> float:
    match event["kind"]:
        case "laplace":
            return _whole(event["l1"]) / _positive(event["scale"])
        case "selection":
            return _whole(event["k"]) * _pick(event)
        case "perturbation":
            noise = _whole(event["l1"]) / _positive(event["scale"])
            output = _whole(event["output_l1"]) / _positive(event["output_scale"])
            return noise + math.log1p(_positive(event["jacobian"])) + output
    return math.inf


def discovery_delta(event: dict[str, Any]) -> float:
    """How likely a value that one neighbour alone holds is shown: values·Φ̄((threshold − 2)/σ)."""
    if event["kind"] != "discovery":
        return 0.0
    reach = (_whole(event["threshold"]) - 2) / _positive(event["sigma"])
    return _whole(event["values"]) * math.erfc(reach / math.sqrt(2)) / 2


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
        case "laplace" | "perturbation":
            return pure(event) * math.tanh(pure(event) / 2)
        case "selection":
            return _whole(event["k"]) * _pick(event) ** 2 / 8
        case "sampled groups" | "sampled gaussian":
            return _sides(event) ** 2 / (2 * _joint(_in_units(event)) ** 2)
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
        return math.inf  # its δ is in no allowance
    if event["kind"] != "sampled groups":
        return rho(event)
    eta = 2.0**-38 * _whole(event["coordinates"])
    return (math.sqrt(rho(event)) + math.sqrt(eta)) ** 2 + eta


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


def _worth(event: dict[str, Any]) -> float:
    """About the ρ of one of many: for the grid and the window only."""
    if event["kind"] != "sampled groups":
        return rho(event)
    return min(rho(event), _rate(event) ** 2 * math.expm1(min(2 * rho(event), 700)) / 2)


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
    low, high = -8.0, 12.0  # powers of ten of α − 1
    best = math.inf
    for _ in range(6):
        powers = np.linspace(low, high, 401)
        alpha = 1 + 10.0**powers
        values = total * alpha + np.log1p(-1 / alpha)
        values -= (math.log(delta) + np.log(alpha)) / (alpha - 1)
        at = int(np.argmin(values))
        best = min(best, float(values[at]))
        width = (high - low) / 100
        low, high = powers[at] - width, powers[at] + width
    return max(0.0, best)


def pld_epsilon(
    steps: list[tuple[dict[str, Any], int]], delta: float, turned: bool = False
) -> float:  # fmt: skip
    """ε at δ of the convolved privacy loss distributions, rounded to the private side.

    Every loss is split between the two nearest grid points so that its mass is kept under both
    tables: a mean-preserving spread of the likelihood ratio, which only raises every δ(ε). The
    distributions are tilted by e^(λ·loss) before the FFT, so that the tail, where δ is decided, is
    what the floating-point numbers resolve. What wraps around is counted where it lands, never lost.
    """
    total = sum(_worth(event) * times for event, times in steps)
    tilt = math.sqrt(math.log(1 / delta) / total)  # where a Gaussian loss would decide δ
    parts = [part for event, times in steps for part in _losses(event, times, 2 * tilt, turned)]
    count = sum(times for _, _, times in parts)
    grid = math.sqrt(4e-5 * total / count)
    atoms = [(*_spread(losses, masses, grid), times) for losses, masses, times in parts]

    def log_mgf(tilt: float) -> float:
        return sum(
            times * _log_sum(tilt * grid * (first + np.arange(len(p))), p)
            for first, p, times in atoms
        )

    if any(event["kind"] == "sampled groups" for event, _ in steps):
        # Losses of samples are far from Gaussian; take the tilt that bounds ε best (Chernoff).
        tries = [tilt * share for share in np.geomspace(0.02, 1.0, 24)]
        tilt = min(tries, key=lambda t: (log_mgf(t) - math.log(delta)) / t)
    log_m = log_mgf(tilt)

    # A window that all but 1e-13 of the tilted law lies in (Chernoff, both sides).
    room = math.log(1e13)
    moves = [m * tilt for m in (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)]
    top = min((log_mgf(tilt + m) - log_m + room) / m for m in moves)
    bottom = max((log_m - log_mgf(tilt - m) - room) / m for m in moves)
    start, stop = math.floor(bottom / grid), math.ceil(top / grid)
    size = 1 << (stop - start).bit_length()
    if size > 1 << 24:
        return math.inf  # too fine for this small program; the other accountants remain

    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for first, p, times in atoms:
        at = first + np.arange(len(p))
        weights = p * np.exp(tilt * grid * at - _log_sum(tilt * grid * at, p))
        spectrum *= np.fft.rfft(np.bincount(at % size, weights, minlength=size)) ** times
    law = np.fft.irfft(spectrum, size)
    order = np.arange(start, start + size)
    losses = grid * order
    masses = np.maximum(law[order % size], 0) * np.exp(np.minimum(log_m - tilt * losses, 700))
    lost = math.exp(min(0.0, log_m - tilt * grid * (start + size))) * 1e-13

    above = np.append(np.cumsum(masses[::-1])[::-1], 0)
    other = np.append(np.cumsum((masses * np.exp(-np.maximum(losses, 0)))[::-1])[::-1], 0)

    def delta_at(value: float) -> float:
        first = np.searchsorted(losses, value, side="right")
        return float(above[first] - math.exp(value) * other[first]) + lost

    low, high = 0.0, float(losses[-1])
    if high <= 0 or delta_at(0.0) <= delta:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def _losses(
    event: dict[str, Any], times: int, reach: float, turned: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Loss values, their masses, and how many independent copies there are."""
    if event["kind"] == "sampled groups":
        yield *_sampled(event, reach, turned), times
    elif event["kind"] == "gaussian":
        sigma, step = event["sigma"], event["step"]
        ends = -math.ceil(reach * step + 14 * sigma + 1), math.ceil(14 * sigma + 1)
        if ends[1] - ends[0] > 30_000_000:
            raise OverflowError(f"sigma = {sigma} is too wide for this small program")
        x = np.arange(ends[0], ends[1] + 1, dtype=float)
        masses = np.exp(-(x**2) / (2 * sigma**2))
        yield (
            (step**2 - 2 * step * x) / (2 * sigma**2),
            masses / masses.sum(),
            times * event["changes"],
        )
    else:
        several = event["kind"] == "selection"
        single = _pick(event) if several else pure(event)
        copies = times * (event["k"] if several else 1)
        truth = 1 / (1 + math.exp(-single))
        yield np.array([-single, single]), np.array([1 - truth, truth]), copies


def _sampled(
    event: dict[str, Any], reach: float, turned: bool
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Losses of the Poisson-sampled Gaussian mechanism of sensitivity 1 and noise m.

    P = (1 − q)·N(0) + q·N(1) against Q = N(0), or the other way round if `turned`; where a row is
    replaced, against (1 − q)·N(0) + q·N(−1). Outcomes are cut into small cells, on each of which the
    loss is monotone; a cell's mass goes to its two ends so that P and Q both keep it: a
    mean-preserving spread, which only raises every δ(ε).
    """
    m, q = _joint(event), _rate(event)
    far = reach + 14 * m + 2
    x = np.linspace(-far, far, 2 * int(far / (2e-4 * m)) + 1)
    if len(x) > 30_000_000:
        raise OverflowError(f"a multiplier of {m} is too narrow for this small program")
    middle = (x[1:] + x[:-1]) / 2

    def mixture(at: np.ndarray, moved: float) -> np.ndarray:
        """ln of the density over that of N(0)."""
        tilted = (2 * moved * at - 1) / (2 * m * m)
        if q == 1:
            return tilted
        return np.logaddexp(math.log1p(-q), math.log(q) + tilted)

    def logs(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        normal = -(at**2) / (2 * m * m)
        one = normal + mixture(at, 1.0)
        other = normal + (mixture(at, -1.0) if _sides(event) == 2 else 0.0)
        return (other, one) if turned else (one, other)

    ends, middles = logs(x), logs(middle)
    # Simpson's rule; cells are 2e-4 of a deviation, far below what float64 tells.
    shares = []
    for end, inner in zip(ends, middles, strict=True):
        density = np.exp(end)
        mass = density[1:] + density[:-1] + 4 * np.exp(inner)
        shares.append(mass / mass.sum())
    p, against = shares
    loss = ends[0] - ends[1]
    low, high = np.exp(-loss[:-1]), np.exp(-loss[1:])
    gap = np.where(low == high, 1.0, low - high)
    upper = np.clip(np.where(low == high, 0.5 * p, (p * low - against) / gap), 0, p)
    masses = np.zeros(len(x))
    masses[:-1] += p - upper
    masses[1:] += upper
    return loss, masses


def _spread(losses: np.ndarray, masses: np.ndarray, grid: float) -> tuple[int, np.ndarray]:
    above = np.ceil(losses / grid).astype(np.int64)
    below = np.clip(np.expm1(above * grid - losses) / math.expm1(grid), 0, 1)
    first = int(above.min()) - 1
    size = int(above.max()) - first + 1
    p = np.bincount(above - first, masses * (1 - below), minlength=size)
    return first, p + np.bincount(above - 1 - first, masses * below, minlength=size)


def _log_sum(exponents: np.ndarray, weights: np.ndarray) -> float:
    kept = weights > 0
    values = exponents[kept] + np.log(weights[kept])
    most = values.max()
    return float(most + np.log(np.exp(values - most).sum()))


# --- certificate -------------------------------------------------------------------------------


def check_certificate(b: Bundle) -> Iterator[str]:
    stated, public = b.certificate, b.promise["rows_public"]
    beta = stated["beta"]
    if not 0 < beta < 1:
        yield f"beta = {beta} is no probability"
    if stated["rows_public"] != public or (stated["rows_measured"] is None) != (public is not None):
        yield "does not agree with the promise on the number of rows"
    sizes = {column["name"]: cells(column) for column in modelled(b)}
    count = sum(
        math.prod(literals(m.get("kind", "marginals"), sizes[name]) for name in m["columns"])
        for m in b.manifest["workload"]
    )
    other = any(m.get("kind", "marginals") != "marginals" for m in b.manifest["workload"])
    noun = "queries" if other else "cells"
    if stated["cells"] != count or stated.get("of", "cells") != noun:
        yield f"the workload has {count} {noun}, stated are {stated['cells']}"
    if stated["rows"] != b.manifest["rows"]:
        yield "was made for another number of rows"

    left, n = beta, public
    if public is None:
        left = 0.8 * beta
        lower = math.ceil(b.event("number of rows")["sigma"] * NormalDist().inv_cdf(1 - 0.2 * beta))
        n = max(1, stated["rows_measured"] - lower)
    if stated["variations"] is not None:
        left /= 2

    draw = b.event("certificate")
    if draw["kind"] != "laplace":
        yield "the certificate was not drawn with discrete Laplace noise"
    a = math.exp(-1 / draw["scale"])
    t = max(0, math.ceil(math.log(left * (1 + a)) / math.log(a) - 1 - CLOSE))
    bound = min(1.0, (max(stated["worst"], 0) + t) / (draw["l1"] * n))
    if not math.isclose(stated["bound"], bound, rel_tol=CLOSE):
        yield f"the bound is {bound}, stated is {stated['bound']}"

    measured, variations = stated["variations_measured"], stated["variations"]
    planned = any(s["purpose"] == "certificate of total variation" for s in b.plan)
    if not planned == (variations is not None) == (measured is not None):
        yield "total variations are stated without their draw, or the other way round"
    elif planned:
        draw, many = b.event("certificate of total variation"), len(b.manifest["workload"])
        step = 2 if public is not None and b.promise["relation"] == "add-remove" else 4
        if draw["kind"] != "gaussian" or (draw["changes"], draw["step"]) != (many, step):
            yield "the total variations were drawn with another sensitivity"
        level = (1 - left) ** (1 / many)
        margin = max(0, math.ceil(draw["sigma"] * NormalDist().inv_cdf(level)))
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
    return [column for column in b.columns() if column["type"] != "identifier"]


RESOLUTIONS = {
    name: datetime.timedelta(**{f"{name}s": 1})
    for name in ("microsecond", "millisecond", "second", "minute", "hour", "day")
}


def literals(kind: str, size: int) -> int:
    match kind:
        case "conjunctions" | "disjunctions" if size > 2:
            return 2 * size
        case "parities" if size == 2:
            return 1
        case "marginals" | "conjunctions" | "disjunctions" | "parities" | "prefixes":
            return size
    raise ValueError(f"a workload of {kind!r}")


def cells(column: dict[str, Any]) -> int:
    """The number of codes of a modelled column."""
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
    return count + column["nullable"]


# --- rows and model ----------------------------------------------------------------------------


def check_rows(b: Bundle) -> Iterator[str]:
    table = pq.read_table(b.folder / "synthetic.parquet")
    written = [
        column
        for column in b.columns()
        if column["type"] != "identifier" or column.get("action", "drop") != "drop"
    ]
    if table.num_rows != b.manifest["rows"]:
        yield f"{table.num_rows} rows, stated are {b.manifest['rows']}"
    if table.column_names != [column["name"] for column in written]:
        yield f"its columns are {table.column_names}"
        return
    for column, values in zip(written, table.columns, strict=True):
        name = column["name"]
        if not same_type(values.type, column["dtype"]):
            yield f"{name!r} is {values.type}, declared is {column['dtype']}"
        if values.null_count and not column["nullable"]:
            yield f"{name!r} has nulls, declared are none"
        if column["type"] == "identifier":
            texts = [str(value) for value in values.to_pylist()]
            legal = texts == [column["action"].format(i + 1) for i in range(len(texts))]
        else:
            if pa.types.is_dictionary(values.type):
                values = pc.cast(values, values.type.value_type)
            legal = all(
                in_domain(value, column, values.type)
                for value in pc.unique(values).to_pylist()
                if value is not None
            )
        if not legal:
            yield f"{name!r} has values outside its declared domain"
    for place in tomllib.loads(b.schema_text()).get("geography", []):
        y, x = place["latitude"], place["longitude"]
        pairs = zip(table[y].to_pylist(), table[x].to_pylist(), strict=True)
        if not all(on_mask(float(v), float(w), place) for v, w in pairs if None not in (v, w)):
            yield f"{y!r} and {x!r} have places off their mask"
    for rule in tomllib.loads(b.schema_text()).get("rule", []):
        if broken := rule_broken(rule, {c["name"]: c for c in written}, table):
            yield f"{broken} rows break the rule {rule['says']!r}"
    yield from model_problems(b)


# --- rules -------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""\s+|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<string>'(?:[^']|'')*')"""
    r"""|(?P<name>"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|[=<>(),+-])"""
)
Test = Callable[[dict[str, Any]], bool | None]


def rule_broken(rule: dict[str, Any], columns: dict[str, Any], table: pa.Table) -> int:
    """How many rows break a rule, by their values."""
    words = Condition(rule["says"], columns).words
    names = [name for name in columns if name in {text for kind, text in words if kind == "name"}]
    rows = Counter(zip(*(table[name].to_pylist() for name in names), strict=True))
    if len(words) == 3 and words[1] == ("name", "determines"):
        source, target = words[0][1], words[2][1]
        known = rule["mapping"]

        def broken(row: dict[str, Any]) -> bool:
            wanted = known.get(as_text(row[source]))
            return wanted is not None and as_text(row[target]) != as_text(wanted)
    else:
        left, implies, right = _split(rule["says"])
        given = Condition(left, columns).parse() if implies else None
        then = Condition(right, columns).parse()

        def broken(row: dict[str, Any]) -> bool:
            return (given is None or given(row) is True) and then(row) is not True

    return sum(n for row, n in rows.items() if broken(dict(zip(names, row, strict=True))))


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

        def test(row: dict[str, Any]) -> bool | None:
            found = [part(row) for part in parts]
            return True if True in found else None if None in found else False

        return test

    def _all(self) -> Test:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())

        def test(row: dict[str, Any]) -> bool | None:
            found = [part(row) for part in parts]
            return False if False in found else None if None in found else True

        return test

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
            test = self._compare(name, self.words.pop(0)[1], self._value())
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

    def _compare(self, name: str, sign: str, literal: Any) -> Test:
        column = self.columns[name]
        sign = {"==": "=", "<>": "!="}.get(sign, sign)

        def test(row: dict[str, Any]) -> bool | None:
            value = row[name]
            if value is None:
                return None
            if column["type"] in ("category", "boolean") and sign in ("=", "!="):
                same = as_text(value) == as_text(literal) or value == literal
                return same == (sign == "=")
            one, two = point(value, column), point(literal, column)
            if one is None or two is None:  # OTHER has no place in an order
                return None
            return {"=": one == two, "!=": one != two, "<": one < two, "<=": one <= two,
                    ">": one > two, ">=": one >= two}[sign]  # fmt: skip

        return test


KEYWORDS = {"and", "or", "not", "in", "between", "is", "null", "true", "false"}


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


def point(value: Any, column: dict[str, Any]) -> Any:
    """A value as something that can be compared; None if it has no place in the column's order."""
    kind = column["type"]
    if kind == "category" and isinstance(column["values"][0], str):
        listed = column["values"]
        return listed.index(value) if value in listed and column.get("ordinal") else None
    if kind in ("date", "datetime") or isinstance(value, datetime.date):
        if isinstance(value, str) and "format" in column:
            with contextlib.suppress(ValueError):
                value = datetime.datetime.strptime(value, column["format"])
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if not isinstance(value, datetime.datetime):
            value = datetime.datetime.combine(value, datetime.time())
        return value.replace(tzinfo=None)
    return float(value)


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
    try:
        return str(type_) == declared or type_ == pa.type_for_alias(declared)
    except ValueError:
        return False


def in_domain(value: Any, column: dict[str, Any], type_: pa.DataType) -> bool:
    kind = column["type"]
    if kind == "category":
        return value in [*column["values"], *([column["other"]] if "other" in column else [])]
    if kind == "boolean":
        return isinstance(value, bool)
    ends = column.get("edges") or [column["lower"], column["upper"]]
    low, high = ends[0], ends[-1]
    if kind in ("date", "datetime"):
        if isinstance(value, str):
            value = datetime.datetime.strptime(value, column["format"])
        if kind == "date" and isinstance(value, datetime.datetime):
            value = value.date()
        if kind == "datetime":
            low, high, value = (moment.replace(tzinfo=None) for moment in (low, high, value))
        return low <= value <= high
    if pa.types.is_float32(type_):
        low, high = float(np.float32(low)), float(np.float32(high))
    return low <= value <= high and (kind != "integer" or value == int(value))


def model_problems(b: Bundle) -> Iterator[str]:
    model = json.loads((b.folder / "model.json").read_bytes(), parse_constant=_no_constant)
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
            print(f"  {bundle.certificate['words']}")
            print(f"  digest {bundle.manifest['digest']}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

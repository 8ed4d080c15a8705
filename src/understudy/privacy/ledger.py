"""The ledger: what was ever charged against a dataset, durable before any noise is drawn.

A file (SQLite) or a server (PostgreSQL, for a team) holds an append-only, hash-chained list of entries
per dataset, see `stores`; every fact is derived from the entries alone:

* `open`     a dataset with its total budget, relation, rule of composition and privacy unit
* `reserve`  a release: its (ε, δ) and its whole plan, checked against what is left
* `charge`   one draw of the plan, committed before the draw
* `refine`   an allowance of the plan is filled by a plan that follows from earlier draws
* `settle`   the release is over; later charges are refused
* `publish`  the digest of the bundle that came of it
* `move`, `arrive`  the dataset goes on in another ledger, and came from one

Guarantees. (1) Charges of one dataset never pass its total budget, with any number of processes and
crashes at any moment: a reservation is made inside one block of writing, and a charge only inside a
live reservation. (2) When `charge` returns, the entry is on disk.

Composition over releases, declared when the dataset is opened:
* `basic`: Σε ≤ ε and Σδ ≤ δ. A release counts in full from its reservation on; settled without a
  single charge it counts nothing. Valid for releases chosen adaptively (Rogers et al. 2016).
* `zcdp`: Σρ, converted tightly at the dataset's δ. An open release counts its plan, a settled one
  the charges it made. Valid adaptively (Feldman-Zrnic 2021).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from types import TracebackType
from typing import Any, Literal, Self

from understudy.errors import (
    BudgetExhausted,
    ChainBroken,
    InputError,
    LedgerError,
    PrivacyError,
    RelationError,
)
from understudy.privacy import accounting
from understudy.privacy.budget import Budget, decimal
from understudy.privacy.chain import GENESIS, Entry, check_chain
from understudy.privacy.cost import Discovery, Event, Plan, Zcdp, event_from_json
from understudy.privacy.relation import Relation
from understudy.privacy.stores import Lost, Place, Server, open_store, place
from understudy.units import Unit, group

__all__ = ["Account", "Composition", "Dataset", "Ledger", "Reservation", "planned", "refined"]

Composition = Literal["basic", "zcdp"]

_OUTCOMES = ("finished", "aborted")
_MOVED, _ARRIVED = "move", "arrive"


@dataclass(frozen=True, slots=True)
class Dataset:
    """The public facts under which a dataset was opened."""

    name: str
    budget: Budget
    relation: Relation
    composition: Composition
    rows_public: int | None
    unit: str | None = None
    """The column whose values the budget protects; None where that is one row."""

    @property
    def neighbours(self) -> str:
        """What two neighbouring tables differ in, in words."""
        words = self.relation.describe(rows_public=self.rows_public)
        if self.unit is None:
            return words
        return words.replace("one row", f"all rows of one {self.unit}", 1)

    def to_json(self) -> dict[str, Any]:
        """The body of its `open` entry, less the time."""
        body = {
            "dataset": self.name,
            "budget": self.budget.to_json(),
            "relation": str(self.relation),
            "composition": self.composition,
            "rows_public": self.rows_public,
        }
        return body if self.unit is None else {**body, "unit": self.unit}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Dataset:
        """Read what `to_json` wrote."""
        return cls(
            body["dataset"],
            Budget.from_json(body["budget"]),
            Relation(body["relation"]),
            body["composition"],
            body["rows_public"],
            body.get("unit"),
        )


@dataclass(frozen=True, slots=True)
class Account:
    """What a dataset has spent and what is left, exact."""

    epsilon: Fraction
    delta: Fraction
    remaining_epsilon: Fraction
    remaining_delta: Fraction


class Ledger:
    """A ledger: a file, or `postgresql://user@host/database` for a team.

    Open one per process and thread; never carry one across a fork. `timeout` is how many seconds to
    wait for other writers, and for a server that restarts.
    """

    def __init__(
        self, path: str | os.PathLike[str] | Server, *, timeout: float = 60.0
    ) -> None:  # fmt: skip
        self.path: Place = place(path)
        self._store = open_store(self.path, timeout)

    def close(self) -> None:
        """Let go of the file or the server."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write(self, name: str, attempt: Callable[[], Entry | None]) -> Entry | None:
        """Run `attempt` in one block: what it appends is durable when this returns, or nothing is.

        `attempt` appends at most one entry, to `name`. If the connection breaks, it is run again
        unless just that entry is found to be there.
        """
        entry: Entry | None = None
        while True:
            try:
                with self._store.writing():
                    # Under the lock, so that a server which still commits the last try is waited for.
                    if entry is None or not self._store.holds(name, entry):
                        entry = None
                        entry = attempt()
                return entry
            except Lost:
                self._store.recover()

    # -- entries ---------------------------------------------------------------------------------

    def _append(self, dataset: str, kind: str, body: Mapping[str, Any]) -> Entry:
        last = self._store.last(dataset)
        if last is not None and last[1] == _MOVED and kind != _ARRIVED:
            (moved,) = self._bodies(dataset, _MOVED)[-1:]
            raise LedgerError(
                f"dataset {dataset!r} was moved from {self.path} to {moved['to']}; use that ledger"
            )
        seq, prev = (last[0] + 1, last[2]) if last else (0, GENESIS)
        timed = {**body, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        entry = Entry.make(seq, kind, timed, prev)
        self._store.append(dataset, entry)
        return entry

    def entries(self, dataset: str, *, since: int = 0) -> list[Entry]:
        """Every entry of a dataset from `since` on, in order."""
        rows = self._store.entries(dataset, since)
        return [Entry(s, k, json.loads(b), d, p, h) for s, k, b, d, p, h in rows]

    def verify(self, dataset: str) -> None:
        """Raise `ChainBroken` unless the whole chain of the dataset holds.

        A chain cannot show that its newest entries were cut off; compare its head with one that was
        noted elsewhere, for instance in a bundle (`understudy verify DIR --ledger FILE`).
        """
        entries = self.entries(dataset)
        if not entries:
            self.dataset(dataset)
        check_chain(entries)
        first = entries[0]
        if first.kind != "open" or first.body is None or first.body.get("dataset") != dataset:
            raise ChainBroken(f"dataset {dataset!r}: its first entry does not open it")

    # -- datasets --------------------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """The names of all datasets, sorted."""
        return self._store.datasets()

    def open_dataset(
        self,
        name: str,
        budget: Budget,
        relation: Relation = Relation.ADD_REMOVE,
        composition: Composition = "basic",
        rows_public: int | None = None,
        unit: str | None = None,
    ) -> Dataset:
        """Declare a dataset and its total budget. Opening it again with the same facts is fine.

        `unit` is the column whose values are protected; without, one row is.
        """
        if not name or not name.isprintable():
            raise InputError(f"dataset = {name!r} is not a name; give a printable one")
        if composition not in ("basic", "zcdp"):
            raise InputError(f"composition = {composition!r} must be 'basic' or 'zcdp'")
        if relation is Relation.REPLACE and rows_public is None:
            raise InputError(
                "neighbours = replace makes the number of rows public: declare it "
                "(rows_public, on the command line --rows-public N)"
            )
        if unit is not None and not unit:
            raise InputError("unit is empty: give the name of a column, or leave it out")
        wanted = Dataset(name, budget, Relation(relation), composition, rows_public, unit)

        def attempt() -> Entry | None:
            missing = self._first(name) is None
            return self._append(name, "open", wanted.to_json()) if missing else None

        self._write(name, attempt)
        have = self.dataset(name)
        if have != wanted:
            raise InputError(
                f"dataset {name!r} is already open with budget {have.budget}, relation "
                f"{have.relation}, composition {have.composition}, public rows "
                f"{have.rows_public}, unit {have.unit or 'row'}: a budget is never changed; use "
                f"those or another name"
            )
        return have

    def _first(self, name: str) -> dict[str, Any] | None:
        body = self._store.first(name)
        return None if body is None else json.loads(body)

    def dataset(self, name: str) -> Dataset:
        """The facts of a dataset."""
        first = self._first(name)
        if first is None:
            known = ", ".join(self.datasets()) or "none"
            raise InputError(
                f"dataset {name!r} is not in ledger {self.path} (it has: {known}); open it with "
                f"`understudy ledger open {self.path} --dataset {name} --epsilon TOTAL`"
            )
        return Dataset.from_json(first)

    def spent(self, name: str) -> Account:
        """What is spent and what is left."""
        dataset = self.dataset(name)
        epsilon, delta = self._spent(dataset)
        return Account(
            epsilon,
            delta,
            max(Fraction(0), dataset.budget.epsilon - epsilon),
            max(Fraction(0), dataset.budget.delta - delta),
        )

    def _bodies(self, name: str, kind: str, reservation: str | None = None) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self._store.bodies(name, kind, reservation)]

    def _spent(self, dataset: Dataset) -> tuple[Fraction, Fraction]:
        settled = {body["reservation"] for body in self._bodies(dataset.name, "settle")}
        reserves = self._bodies(dataset.name, "reserve")
        if dataset.composition == "basic":
            charged = self._store.charged(dataset.name)
            counted = [
                Budget.from_json(body["budget"])
                for body in reserves
                if body["reservation"] in charged or body["reservation"] not in settled
            ]
            return (
                sum((b.epsilon for b in counted), Fraction(0)),
                sum((b.delta for b in counted), Fraction(0)),
            )
        rho, shown = self._used(reserves, settled, self._bodies(dataset.name, "charge"))
        if rho == 0:
            return Fraction(0), Fraction(0)
        delta = dataset.budget.delta
        if shown >= delta:
            return dataset.budget.epsilon, delta
        return Fraction(accounting.epsilon_from_rho(rho, delta - shown)), delta

    @staticmethod
    def _used(
        reserves: list[dict[str, Any]], settled: set[str], charges: list[dict[str, Any]]
    ) -> tuple[Fraction, Fraction]:
        """ρ, and the δ that discoveries cost besides."""
        rho, delta = Fraction(0), Fraction(0)
        rows: dict[str, int] = {}
        for body in reserves:
            rows[body["reservation"]] = group(Unit.from_json(body.get("unit")))
            if body["reservation"] not in settled:
                plan = Plan.from_json(body["plan"])
                rho += accounting.total_rho(plan, rows[body["reservation"]])
                delta += accounting.total_delta(plan)
        for body in charges:
            if body["reservation"] in settled:
                event = event_from_json(body["event"])
                rho += accounting.rho(event, rows[body["reservation"]])
                delta += accounting.total_delta([event])
        return rho, delta

    # -- releases --------------------------------------------------------------------------------

    def reserve(
        self,
        name: str,
        budget: Budget,
        plan: Plan,
        *,
        relation: Relation,
        private_noise: bool = True,
        facts: Mapping[str, Any] | None = None,
        unit: Unit | None = None,
    ) -> Reservation:
        """Set a release's whole plan aside, or refuse. Nothing private has been read by then."""
        dataset = self.dataset(name)
        _require_unit(dataset, unit)
        if relation is not dataset.relation:
            raise RelationError(
                f"dataset {name!r} was opened for neighbours = {dataset.relation}; a release with "
                f"neighbours = {relation} cannot be added to the same account"
            )
        if (
            plan.charges
            and (cost := accounting.epsilon(plan, budget.delta, group(unit)).epsilon)
            > budget.epsilon
        ):
            raise PrivacyError(f"the plan costs ε = {cost:.6g}, above the promised {budget}")
        self.verify(name)
        identity = secrets.token_hex(8)
        body = {
            "reservation": identity,
            "budget": budget.to_json(),
            "relation": str(relation),
            "plan": plan.to_json(),
            "noise": "opendp" if private_noise else "seeded, NOT PRIVATE",
            "facts": dict(facts or {}),
        }
        if unit is not None:
            body["unit"] = unit.to_json()

        def attempt() -> Entry:
            self._require_room(dataset, budget, plan, unit)
            return self._append(name, "reserve", body)

        entry = self._write(name, attempt)
        assert entry is not None
        return Reservation(self, dataset, identity, budget, plan, entry.seq, private_noise, unit)

    def resume(self, name: str, reservation: str, budget: Budget, plan: Plan) -> Reservation:
        """The reservation of a release that was killed, to go on with. Reserves nothing again.

        Raises:
            LedgerError: It is settled, or was made for another budget or plan.
        """
        dataset = self.dataset(name)
        found = [
            entry
            for entry in self.entries(name)
            if entry.kind == "reserve"
            and entry.body is not None
            and entry.body["reservation"] == reservation
        ]
        if not found or found[0].body is None:
            raise LedgerError(f"release {reservation} is not in dataset {name!r} of {self.path}")
        body = found[0].body
        if self._bodies(name, "settle", reservation):
            raise LedgerError(f"release {reservation} is settled; it cannot go on, start anew")
        if body["budget"] != budget.to_json() or body["plan"] != plan.to_json():
            raise LedgerError(f"release {reservation} was planned otherwise; it cannot go on")
        private, unit = body["noise"] == "opendp", Unit.from_json(body.get("unit"))
        return Reservation(self, dataset, reservation, budget, plan, found[0].seq, private, unit)

    def require_room(
        self, name: str, budget: Budget, plan: Plan, unit: Unit | None = None
    ) -> None:  # fmt: skip
        """Raise `BudgetExhausted` if a release could not be reserved now. Spends nothing."""
        dataset = self.dataset(name)
        _require_unit(dataset, unit)
        self._require_room(dataset, budget, plan, unit)

    def _require_room(
        self, dataset: Dataset, budget: Budget, plan: Plan, unit: Unit | None
    ) -> None:  # fmt: skip
        total = dataset.budget
        epsilon, delta = self._spent(dataset)
        if dataset.composition == "basic":
            fits = epsilon + budget.epsilon <= total.epsilon and delta + budget.delta <= total.delta
        else:
            settled = {body["reservation"] for body in self._bodies(dataset.name, "settle")}
            rho, shown = self._used(
                self._bodies(dataset.name, "reserve"), settled, self._bodies(dataset.name, "charge")
            )
            after = rho + accounting.total_rho(plan, group(unit))
            left = total.delta - shown - accounting.total_delta(plan)
            fits = left > 0 and accounting.epsilon_from_rho(after, left) <= total.epsilon
        if not fits:
            left_epsilon, left_delta = total.epsilon - epsilon, total.delta - delta
            raise BudgetExhausted(
                f"dataset {dataset.name!r}: the release asks for {budget}, but of its total "
                f"{total} only ε = {_short(left_epsilon)}"
                + (f", δ = {float(left_delta):g}" if dataset.composition == "basic" else "")
                + " is left. Nothing was spent. Ask for less; a crashed release that still holds "
                "budget is shown by `understudy ledger show` and freed by `understudy ledger settle`"
            )

    def settle(self, reservation: str, outcome: str = "aborted") -> None:
        """Close a release from outside. Always safe: its later charges are refused."""
        if outcome not in _OUTCOMES:
            raise InputError(f"outcome = {outcome!r} must be one of {', '.join(_OUTCOMES)}")
        name = self._dataset_of(reservation)

        def attempt() -> Entry | None:
            if self._bodies(name, "settle", reservation):
                return None
            return self._append(name, "settle", {"reservation": reservation, "outcome": outcome})

        self._write(name, attempt)

    def publish(self, reservation: str, digest: str) -> None:
        """Note the digest of the bundle that came of a release."""
        name, body = self._dataset_of(reservation), {"reservation": reservation, "bundle": digest}
        self._write(name, lambda: self._append(name, "publish", body))

    def _dataset_of(self, reservation: str) -> str:
        name = self._store.dataset_of(reservation)
        if name is None:
            raise InputError(f"release {reservation!r} is not in ledger {self.path}")
        return name

    # -- moving house ----------------------------------------------------------------------------

    def move_to(self, other: Ledger) -> list[str]:
        """Move every dataset to another ledger; the names that went. Nothing can be spent twice.

        Each chain is checked, closed here by a `move` entry that is durable before anything is copied,
        copied as it is, and continued there by an `arrive` entry, all datasets at once. A move that
        was interrupted is finished by the same call. What is open stays open, there.

        Raises:
            InputError: The other ledger has a dataset of one of these names with another history.
        """
        if other.path == self.path:
            raise InputError(f"ledger {self.path} cannot be moved to itself")
        names = [name for name in self.datasets() if not self._gone(name, other)]
        for name in names:
            self.verify(name)
            known, here = other.entries(name), self.entries(name)
            if known != here[: len(known)]:
                raise InputError(
                    f"ledger {other.path} has a dataset {name!r} of its own; it cannot take another "
                    f"of that name. Nothing was moved"
                )
        for name in names:
            last = self._store.last(name)
            if last is None or last[1] != _MOVED:
                self._write(name, lambda n=name: self._append(n, _MOVED, {"to": str(other.path)}))
        for name in names:
            other._take(name, self.entries(name), str(self.path))
        return names

    def _gone(self, name: str, other: Ledger) -> bool:
        """Whether a dataset was moved to the other ledger before, and arrived."""
        here, there = self.entries(name), other.entries(name)
        moved = bool(here) and here[-1].kind == _MOVED
        return moved and len(there) > len(here) and there[: len(here)] == here

    def _take(self, name: str, entries: list[Entry], source: str) -> None:
        """All entries of a chain and the one that says where it came from, in one block."""

        def attempt() -> Entry:
            known = len(self.entries(name))
            for entry in entries[known:]:
                self._store.append(name, entry)
            return self._append(name, _ARRIVED, {"from": source})

        self._write(name, attempt)
        self.verify(name)


def planned(entries: Sequence[Entry], reservation: str) -> tuple[Plan, Plan]:
    """What a release reserved, and that with its allowance as it was filled, if it was.

    Raises:
        PrivacyError: It was filled more than once, by a plan that costs more, or is no allowance.
    """
    own = [e for e in entries if e.body is not None and e.body.get("reservation") == reservation]
    (outer,) = (Plan.from_json(list(e.body["plan"])) for e in own if e.kind == "reserve" and e.body)
    fills = [e.body for e in own if e.kind == "refine" and e.body is not None]
    if not fills:
        return outer, outer
    if len(fills) > 1:
        raise PrivacyError("an allowance was filled more than once")
    inner, purpose = Plan.from_json(list(fills[0]["plan"])), fills[0]["purpose"]
    slot = outer[purpose]
    if not isinstance(slot.event, Zcdp) or slot.times != 1:
        raise PrivacyError(f"{purpose!r} was filled, and is no allowance")
    if not accounting.fits(inner, slot.event):
        raise PrivacyError(f"{purpose!r} was filled by a plan that costs more than the allowance")
    return outer, refined(outer, purpose, inner)


def refined(plan: Plan, purpose: str, later: Plan) -> Plan:
    """A plan with an allowance replaced by what it was filled with."""
    return Plan((*(charge for charge in plan if charge.purpose != purpose), *later))


def _require_unit(dataset: Dataset, unit: Unit | None) -> None:
    """A budget protects rows or the values of one column; releases for others do not add up to it."""
    column = None if unit is None else unit.column
    if column != dataset.unit:
        raise RelationError(
            f"dataset {dataset.name!r} was opened for unit = {dataset.unit or 'row'}; a release with "
            f"unit = {column or 'row'} cannot be added to the same account. Open another dataset "
            f"(`understudy ledger open … --unit COLUMN`), or change unit in the schema"
        )


def _short(value: Fraction) -> str:
    text = decimal(value)
    return text if len(text) <= 12 else f"{float(value):.6g}"


class Reservation:
    """A release's right to draw what its plan says, and nothing else."""

    def __init__(
        self,
        ledger: Ledger,
        dataset: Dataset,
        identity: str,
        budget: Budget,
        plan: Plan,
        seq: int,
        private_noise: bool,
        unit: Unit | None = None,
    ) -> None:
        self._ledger = ledger
        self.dataset = dataset
        self.id = identity
        self.budget = budget
        self.plan = plan
        self._seq = seq
        self.private_noise = private_noise
        self.unit = unit

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """Make the next draw of `purpose` durable and return the event to draw with.

        A slot that is an allowance (`Zcdp`) needs the `event` to charge against it. Raises, with
        nothing charged, if the slot is unknown or used up, or the release is settled.
        """
        if purpose not in self.plan:
            known = ", ".join(charge.purpose for charge in self.plan) or "nothing"
            raise LedgerError(f"charge {purpose!r} is not in the plan, which has {known}")
        slot = self.plan[purpose]
        allowance = slot.event if isinstance(slot.event, Zcdp) else None
        if (event is None) == (allowance is not None):
            raise PrivacyError(
                f"charge {purpose!r}: "
                + ("an allowance needs the event to draw" if allowance else "its event is fixed")
            )
        drawn = event or slot.event
        ledger, name = self._ledger, self.dataset.name

        def attempt() -> Entry:
            if ledger._bodies(name, "settle", self.id):
                raise LedgerError(f"release {self.id} is settled; it can draw nothing more")
            if allowance is not None:
                if any(b["purpose"] == purpose for b in ledger._bodies(name, "refine", self.id)):
                    raise BudgetExhausted(f"charge {purpose!r}: its allowance is planned already")
                used = sum(
                    (
                        accounting.rho(event_from_json(body["event"]))
                        for body in ledger._bodies(name, "charge", self.id)
                        if body["purpose"] == purpose
                    ),
                    Fraction(0),
                )
                own = accounting.rho(drawn)
                if used + own > Fraction(allowance.rho) * slot.times or isinstance(
                    drawn, Discovery
                ):
                    raise BudgetExhausted(f"charge {purpose!r}: its allowance is used up")
            elif ledger._store.drawn(name, self.id, purpose) >= slot.times:
                raise BudgetExhausted(
                    f"charge {purpose!r}: all {slot.times} planned draws have been made"
                )
            body = {"reservation": self.id, "purpose": purpose, "event": drawn.to_json()}
            return ledger._append(name, "charge", body)

        ledger._write(name, attempt)
        return drawn

    def refine(self, purpose: str, plan: Plan, facts: Mapping[str, Any]) -> Reservation:
        """Fill an allowance by a plan that was made after the first draws; the reservation with it.

        What was drawn may have told what to plan: ρ adds up adaptively, so a plan whose ρ stays
        within the allowance costs no more than the allowance (Feldman-Zrnic 2021). Durable before
        anything of it is drawn. Doing it again with the same plan is fine.
        """
        slot = self.plan[purpose]
        if not isinstance(slot.event, Zcdp) or slot.times != 1:
            raise PrivacyError(f"charge {purpose!r} is not an allowance; it cannot be refined")
        if not accounting.fits(plan, slot.event):
            raise PrivacyError(f"charge {purpose!r}: the plan costs more than the allowance")
        ledger, name = self._ledger, self.dataset.name
        body = {
            "reservation": self.id,
            "purpose": purpose,
            "plan": plan.to_json(),
            "facts": dict(facts),
        }
        whole = refined(self.plan, purpose, plan)

        def attempt() -> Entry | None:
            if ledger._bodies(name, "settle", self.id):
                raise LedgerError(f"release {self.id} is settled; it can plan nothing more")
            for known in ledger._bodies(name, "refine", self.id):
                if {key: known[key] for key in body} == json.loads(json.dumps(body)):
                    return None
                raise LedgerError(f"release {self.id} was planned otherwise; it cannot go on")
            if ledger._store.drawn(name, self.id, purpose):
                raise BudgetExhausted(f"charge {purpose!r}: its allowance is in use")
            return ledger._append(name, "refine", body)

        ledger._write(name, attempt)
        return Reservation(
            ledger,
            self.dataset,
            self.id,
            self.budget,
            whole,
            self._seq,
            self.private_noise,
            self.unit,
        )

    def entries(self) -> list[Entry]:
        """The stretch of the chain from this reservation on, other releases' bodies withheld."""
        stretch = self._ledger.entries(self.dataset.name, since=self._seq)
        own = [e for e in stretch if e.body is not None and e.body.get("reservation") == self.id]
        last = own[-1].seq
        return [e if e in own else e.withheld() for e in stretch if e.seq <= last]

    def charged(self) -> Sequence[Mapping[str, Any]]:
        """Its charges so far, in order."""
        return self._ledger._bodies(self.dataset.name, "charge", self.id)

    def redraw(self, purpose: str, event: Event | None = None) -> Event:
        """The event to draw with under the last charge, whose draw was not made; once, ever.

        Durable before it returns. Whoever else holds a copy of this release's state finds the entry
        and is refused, so that no two draws are made under one charge.

        Raises:
            LedgerError: The last charge is another one, or was drawn again already.
        """
        ledger, name = self._ledger, self.dataset.name
        found: list[Event] = []

        def attempt() -> Entry:
            own = [
                e for e in ledger.entries(name) if e.body and e.body.get("reservation") == self.id
            ]
            last = [e for e in own if e.kind == "charge"][-1]
            assert last.body is not None
            found.append(event_from_json(last.body["event"]))
            if last.body["purpose"] != purpose or event not in (None, found[-1]):
                raise LedgerError(
                    f"charge {purpose!r} cannot be drawn again: the last charge of release "
                    f"{self.id} is for {last.body['purpose']!r}"
                )
            if any(e.kind == "redraw" and e.body and e.body["charge"] == last.seq for e in own):
                raise LedgerError(
                    f"charge {purpose!r} (entry {last.seq}) was drawn again already, elsewhere: a "
                    f"copy of this release has gone on. Close it with `understudy ledger settle` "
                    f"({self.id}) and start anew"
                )
            return ledger._append(name, "redraw", {"reservation": self.id, "charge": last.seq})

        ledger._write(name, attempt)
        return found[-1]

    def settle(self, outcome: str = "finished") -> None:
        """The release is over. Settling twice is fine."""
        self._ledger.settle(self.id, outcome)

    def publish(self, digest: str) -> None:
        """Note the digest of the bundle that came of it."""
        self._ledger.publish(self.id, digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.settle("aborted")

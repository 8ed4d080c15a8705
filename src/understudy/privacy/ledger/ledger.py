"""The ledger of many datasets in one file or on one server; see the package for what it promises."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

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
from understudy.privacy.chain import Entry, entry_of
from understudy.privacy.cost import Plan, SampledGaussian, SampledGroups, SampledSelection
from understudy.privacy.ledger.books import Account, Books, Composition, Dataset, Made
from understudy.privacy.ledger.reservation import Reservation
from understudy.privacy.relation import Relation
from understudy.privacy.stores import Lost, Place, Server, SqliteStore, open_store, place
from understudy.units import Unit, group

Said = tuple[str, Mapping[str, Any]]
"""The kind and the body of an entry to append."""

_OUTCOMES = ("finished", "aborted")
_TIMED = ("open", "reserve", "move", "arrive")


class Ledger:
    """A ledger: a file, or `postgresql://user@host/database` for a team.

    Open one per process and thread; never carry one across a fork. `timeout` is how many seconds to
    wait for other writers, and for a server that restarts.
    """

    def __init__(self, path: str | os.PathLike[str] | Server, *, timeout: float = 60.0) -> None:
        self.path: Place = place(path)
        self._store = open_store(self.path, timeout)
        self._known: dict[str, Books] = {}

    def close(self) -> None:
        """Let go of the file or the server."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- entries ---------------------------------------------------------------------------------

    def entries(self, dataset: str, *, since: int = 0) -> list[Entry]:
        """Every entry of a dataset from `since` on, in order, as it is stored."""
        return [entry_of(row) for row in self._store.entries(dataset, since)]

    def books(self, name: str) -> Books:
        """What the entries of a dataset say, every one of them checked.

        What was checked before is kept; the newest of it must still be there, and what came after
        must continue it.
        """
        known = self._known.pop(name, None) or Books(name)
        at = max(len(known.hashes) - 1, 0)
        entries = self.entries(name, since=at)
        if known.hashes:
            if not entries or not known.holds(entries[0].seq, entries[0].hash):
                raise ChainBroken(
                    f"entry {at} of dataset {name!r} in {self.path} was changed or dropped since it "
                    f"was read"
                )
            entries = entries[1:]
        known.add(entries)
        self._known[name] = known
        return known

    def _opened(self, name: str) -> Books:
        books = self.books(name)
        if books.dataset is None:
            known = ", ".join(self.datasets()) or "none"
            raise InputError(
                f"dataset {name!r} is not in ledger {self.path} (it has: {known}); open it with "
                f"`understudy ledger open {_quoted(self.path)} --dataset {_quoted(name)} "
                "--epsilon TOTAL`, with --unit COLUMN where the schema has a unit"
            )
        return books

    def verify(self, dataset: str) -> None:
        """Raise `ChainBroken` unless the whole chain of the dataset holds, read anew.

        A chain cannot show that its newest entries were cut off; see `require_head`.
        """
        self._known.pop(dataset, None)
        self._opened(dataset)

    def head(self, name: str) -> str:
        """`seq:hash` of the newest entry. Keep it elsewhere; see `require_head`."""
        return self._opened(name).head

    def require_head(self, name: str, head: str) -> None:
        """Refuse an account that does not contain a head that was noted elsewhere.

        Raises:
            LedgerError: Entries were cut off (a copy from before, or one without its newest part),
                or it is another ledger.
        """
        seq, _, hash_ = head.partition(":")
        if not seq.isdecimal() or len(hash_) != 64:
            raise InputError(
                f"head = {head[:80]!r} must be SEQ:HASH, as `understudy ledger head` prints it"
            )
        books = self._opened(name)
        if not books.holds(int(seq), hash_):
            raise LedgerError(
                f"dataset {name!r} in {self.path} does not contain the head {head}; its newest "
                f"entry is {books.head}. Entries were lost, or this is an older copy or another "
                f"ledger: do not spend from it"
            )

    def write(self, name: str, decide: Callable[[Books], Said | None]) -> Entry | None:
        """Append what `decide` says, or nothing: durable when this returns, or not there at all.

        `decide` sees the books as they are under the lock. If the connection breaks, it is asked again
        unless just the entry that it made is found to be there.
        """
        entry: Entry | None = None

        def step() -> None:
            nonlocal entry
            # Under the lock, so that a server which still commits the last try is waited for.
            books = self.books(name)
            if entry is None or not books.holds(entry.seq, entry.hash):
                entry = self._next(books, decide(books))
                if entry is not None:
                    self._store.append(name, entry)

        self._durably(step)
        return entry

    def _durably(self, step: Callable[[], None]) -> None:
        """`step` in one block of writing; again from its beginning where the connection broke."""
        while True:
            try:
                with self._store.writing():
                    step()
                return
            except Lost:
                self._store.recover()

    def _next(self, books: Books, said: Said | None) -> Entry | None:
        if said is None:
            return None
        kind, body = said
        if books.moved is not None and kind != "arrive":
            raise LedgerError(
                f"dataset {books.name!r} was moved from {self.path} to {books.moved['to']}; use that "
                f"ledger"
            )
        if self._store.backup and kind != "move":
            raise LedgerError(
                f"{self.path} is a backup, and nothing is spent from one. If the ledger is lost, "
                f"make it a ledger again with `understudy ledger migrate {_quoted(self.path)} NEW`"
            )
        if kind in _TIMED:
            body = {**body, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        return books.next(kind, body)

    # -- datasets --------------------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """The names of all datasets, sorted."""
        return self._store.datasets()

    def open_dataset(
        self,
        name: str,
        budget: Budget,
        relation: Relation = Relation.ADD_REMOVE,
        composition: Composition | None = None,
        rows_public: int | None = None,
        unit: str | None = None,
    ) -> Dataset:
        """Declare a dataset and its total budget. Opening it again with the same facts is fine.

        `unit` is the column whose values are protected; without, one row is. Without a `composition`
        a new dataset adds up ρ (`zcdp`), and ε and δ (`basic`) where δ is 0.
        """
        wanted = Dataset.of(name, budget, relation, composition, rows_public, unit)
        self.write(name, lambda b: ("open", wanted.to_json()) if b.dataset is None else None)
        have = self.dataset(name)
        if composition is None:
            wanted = Dataset.of(name, budget, relation, have.composition, rows_public, unit)
        if have != wanted:
            rows = "private" if have.rows_public is None else f"{have.rows_public:,} (public)"
            raise InputError(
                f"dataset {name!r} is already open with budget {have.budget}, unit "
                f"{have.unit or 'row'}, relation {have.relation}, composition {have.composition}, rows "
                f"{rows}: a budget is never changed; use those or another name"
            )
        return have

    def dataset(self, name: str) -> Dataset:
        """The facts of a dataset."""
        return self._opened(name).facts

    def releases(self, name: str) -> list[Made]:
        """Every release of a dataset, in order."""
        return list(self._opened(name).releases.values())

    def spent(self, name: str) -> Account:
        """What is spent and what is left."""
        return self._opened(name).spent()

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
        identity: str | None = None,
    ) -> Reservation:
        """Set a release's whole plan aside, or refuse. Nothing private has been read by then.

        `identity` is what the release is called; whoever chooses it, 16 hexadecimal digits at random,
        finds the release again even if killed before this returns.
        """
        identity = secrets.token_hex(8) if identity is None else identity
        if not re.fullmatch("[0-9a-f]{16}", identity):
            raise InputError(f"reservation = {identity!r} must be 16 hexadecimal digits")
        dataset = self.dataset(name)
        dataset.require_unit(unit)
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

        def decide(books: Books) -> Said:
            if identity in books.releases:
                raise LedgerError(f"release {identity} is in dataset {name!r} already")
            _require_room(books, budget, plan, unit)
            return "reserve", body

        entry = self.write(name, decide)
        assert entry is not None
        return Reservation(self, dataset, Made.of(entry.seq, body), plan)

    def resume(self, name: str, reservation: str, budget: Budget, plan: Plan) -> Reservation:
        """The reservation of a release that was killed, to go on with. Reserves nothing again.

        Raises:
            LedgerError: It is settled, or was made for another budget or plan.
        """
        books = self._opened(name)
        made = books.made(reservation)
        if made.outcome is not None:
            raise LedgerError(f"release {reservation} is settled; it cannot go on, start anew")
        if made.budget != budget or made.plan.to_json() != plan.to_json():
            raise LedgerError(f"release {reservation} was planned otherwise; it cannot go on")
        return Reservation(self, books.facts, made, plan, len(made.charges))

    def require_room(self, name: str, budget: Budget, plan: Plan, unit: Unit | None = None) -> None:
        """Raise `BudgetExhausted` if a release could not be reserved now. Spends nothing."""
        books = self._opened(name)
        books.facts.require_unit(unit)
        _require_room(books, budget, plan, unit)

    def settle(
        self, reservation: str, outcome: str = "aborted", *, dataset: str | None = None
    ) -> None:
        """Close a release from outside. Always safe: its later charges are refused."""
        if outcome not in _OUTCOMES:
            raise InputError(f"outcome = {outcome!r} must be one of {', '.join(_OUTCOMES)}")
        body = {"reservation": reservation, "outcome": outcome}

        def decide(books: Books) -> Said | None:
            return ("settle", body) if books.made(reservation).outcome is None else None

        self.write(dataset or self.dataset_of(reservation), decide)

    def publish(self, reservation: str, digest: str, *, dataset: str | None = None) -> None:
        """Note the digest of the bundle that came of a release. Noting it twice is fine."""
        body = {"reservation": reservation, "bundle": digest}

        def decide(books: Books) -> Said | None:
            known = digest in books.made(reservation).bundles
            return None if known else ("publish", body)

        self.write(dataset or self.dataset_of(reservation), decide)

    def dataset_of(self, reservation: str) -> str:
        """The dataset that a release belongs to."""
        for name in self.datasets():
            with suppress(ChainBroken):  # of another dataset
                if reservation in self.books(name).releases:
                    return name
        raise InputError(
            f"release {reservation!r} is not in ledger {self.path}; "
            f"`understudy ledger show {_quoted(self.path)}` lists them"
        )

    # -- copies and moving house -----------------------------------------------------------------

    def backup(self, file: str | os.PathLike[str]) -> list[str]:
        """Copy every entry into a new ledger file, marked so that nothing is spent from it.

        Every chain is checked on the way. No writer comes in between.

        Raises:
            InputError: The file is there already.
        """
        with SqliteStore.new_backup(Path(file)) as copy, self._store.writing(), copy.writing():
            names = self.datasets()
            for name in names:
                self.verify(name)
                for entry in self.entries(name):
                    copy.append(name, entry)
        return names

    def move_to(self, other: Ledger) -> list[str]:
        """Move every dataset to another ledger; the names that went. Nothing can be spent twice.

        The other ledger notes a random token first. Each chain is checked, closed here by a `move`
        entry with that token, durable before anything is copied, copied as it is, and continued there
        by an `arrive` entry. A move that was interrupted is finished by the same call, and only where
        the token is: not in a third ledger, nor in a copy of the second from before.

        Raises:
            InputError: The other ledger has a dataset of one of these names with another history.
            LedgerError: Every dataset was moved elsewhere before.
        """
        if _same(self.path, other.path):
            raise InputError(f"ledger {self.path} cannot be moved to itself")
        if other._store.backup:
            raise InputError(f"{other.path} is a backup; give another ledger to move to")
        names: list[str] = []
        elsewhere = ""
        for name in self.datasets():
            self.verify(name)
            here, there = self._opened(name), other.books(name)
            if here.moved is None or other._store.invited(here.moved.get("token", "")):
                if here.moved is not None and len(there.hashes) > len(here.hashes):
                    continue  # it arrived
                if there.hashes != here.hashes[: len(there.hashes)]:
                    raise InputError(
                        f"ledger {other.path} has a dataset {name!r} of its own; it cannot take "
                        f"another of that name. Nothing was moved"
                    )
                names.append(name)
            elif there.hashes[: len(here.hashes)] != here.hashes:
                elsewhere = (
                    f"dataset {name!r} was moved from {self.path} to {here.moved['to']} before, and "
                    f"can go nowhere else from here; use that ledger"
                )
        if elsewhere and not names:
            raise LedgerError(elsewhere)
        if any(self.books(name).moved is None for name in names):
            token = secrets.token_hex(16)
            store = other._store
            other._durably(lambda: None if store.invited(token) else store.invite(token))
            goes: Said = ("move", {"to": str(other.path), "token": token})
            for name in names:
                self.write(name, lambda books: goes if books.moved is None else None)
        for name in names:
            other._take(name, self.entries(name), str(self.path))
        return names

    def _take(self, name: str, entries: list[Entry], source: str) -> None:
        """All entries of a chain and the one that says where it came from, in one block."""
        whole = Books(name)
        whole.add(entries)

        def step() -> None:
            known = self.books(name).hashes
            if known != whole.hashes[: len(known)]:
                if known[: len(entries)] == whole.hashes:
                    return  # the try before was committed
                raise InputError(f"ledger {self.path} has a dataset {name!r} of its own")
            if whole.moved is None or not self._store.invited(whole.moved.get("token", "")):
                raise LedgerError(f"dataset {name!r} was not moved to {self.path}")
            arrive = self._next(whole, ("arrive", {"from": source}))
            assert arrive is not None
            for entry in (*entries[len(known) :], arrive):
                self._store.append(name, entry)

        self._durably(step)
        self.verify(name)


@contextmanager
def own_ledger(
    name: str,
    budget: Budget,
    relation: Relation,
    rows_public: int | None,
    unit: str | None = None,
    place: Path | None = None,
) -> Iterator[Ledger]:
    """The account of one release that nobody named a ledger for, on disk while the release runs.

    At `place`, or in a folder that is removed afterwards. Composition is basic: there is one release,
    which is planned to use all of it.
    """
    with ExitStack() as stack:
        if place is None:
            folder = tempfile.TemporaryDirectory(prefix="understudy-", ignore_cleanup_errors=True)
            place = Path(stack.enter_context(folder)) / "ledger.db"
        own = stack.enter_context(Ledger(place))
        own.open_dataset(name, budget, relation, "basic", rows_public, unit)
        yield own


def _require_room(books: Books, budget: Budget, plan: Plan, unit: Unit | None) -> None:
    if books.room(budget, plan, unit)(1):
        return
    total, account = books.facts.budget, books.spent()
    basic, largest = books.facts.composition == "basic", books.largest(budget, plan, unit)
    waiting = [identity for identity, made in books.releases.items() if made.outcome is None]
    sampled = SampledGaussian | SampledGroups | SampledSelection
    raise BudgetExhausted(
        f"dataset {books.name!r}: a release with {budget} does not fit in what is left of its total "
        f"{total}"
        + (
            "; nothing more fits"
            if not largest
            else f". Ask for at most ε = {_short(largest)} and δ = {float(account.remaining_delta):g}"
            if basic
            else f". Ask for at most about ε = {_short(largest)}"
        )
        + ". Nothing was spent"
        + (
            f". Releases that are not settled hold budget: {', '.join(waiting)}; one that crashed is "
            "freed by `understudy ledger settle`"
            if waiting
            else ""
        )
        + (
            ". This account adds up ρ, where a draw from a sample of the rows counts as one from all "
            "of them; such a release must be the first, or the dataset opened with --composition basic"
            if not basic and any(isinstance(charge.event, sampled) for charge in plan)
            else ""
        )
    )


def _quoted(text: object) -> str:
    """As a shell reads it."""
    return shlex.quote(str(text))


def _same(a: Place, b: Place) -> bool:
    if isinstance(a, Path) and isinstance(b, Path):
        return a.exists() and b.exists() and os.path.samefile(a, b)
    return a == b


def _short(value: Fraction) -> str:
    text = decimal(value)
    return text if len(text) <= 12 else f"{float(value):.6g}"

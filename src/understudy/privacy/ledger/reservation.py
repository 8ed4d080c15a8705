"""A release's right to draw what its plan says, and nothing else."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from understudy.errors import BudgetExhausted, LedgerError, PrivacyError, UnderstudyError, WorkError
from understudy.privacy import accounting
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Event, Plan, Zcdp
from understudy.privacy.ledger.books import Books, Charged, Dataset, Made, refined

if TYPE_CHECKING:
    from understudy.privacy.ledger.ledger import Ledger, Said


class Reservation:
    """A reserved release: it charges its plan, draw by draw, and is settled once.

    As a context it is settled, whatever happens inside.
    """

    def __init__(
        self, ledger: Ledger, dataset: Dataset, made: Made, plan: Plan, drawn: int = 0
    ) -> None:
        self._ledger = ledger
        self._made = made
        self._drawn = drawn
        # Copies of a release that say the same must not take each other's entry for their own, where
        # the connection broke and whether it was committed is seen by the entry (`Ledger.write`).
        self._writer = secrets.token_hex(8)
        self.dataset = dataset
        self.id = made.id
        self.budget = made.budget
        self.plan = plan
        self.private_noise = made.private
        self.unit = made.unit
        self.relation = dataset.relation

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """Make the next draw of `purpose` durable and return the event to draw with.

        A slot that is a zCDP filter (`Zcdp`) needs the `event` to charge against it. Raises, with
        nothing charged, if the slot is unknown or used up, or the release is settled.
        """
        if purpose not in self.plan:
            known = ", ".join(charge.purpose for charge in self.plan) or "nothing"
            raise LedgerError(f"charge {purpose!r} is not in the plan, which has {known}")
        drawn = self.plan.drawn(purpose, event)
        body = {
            "reservation": self.id,
            "purpose": purpose,
            "event": drawn.to_json(),
            "writer": self._writer,
        }

        def decide(books: Books) -> Said:
            self._live(books).require_left(self.plan[purpose], drawn)
            return "charge", body

        self._write(decide, "this one was not made")
        self._drawn += 1
        return drawn

    def redraw(self, charge: int, purpose: str, event: Event | None = None) -> Event:
        """The event to draw with under a charge, by its number, whose draw was not made; once, ever.

        Durable before it returns. Whoever else holds a copy of this release's state finds the entry
        and is refused, so that no two draws are made under one charge. It must be the last one: a
        copy that went on has charged, and drawn, after it.

        Raises:
            LedgerError: The last charge is another one, or was drawn again already.
        """

        paid: list[Charged] = []

        def decide(books: Books) -> Said:
            paid[:] = self._live(books).charges[-1:]
            last = paid[0] if paid else None
            if last is not None and last.seq != charge:
                raise LedgerError(
                    f"charge {purpose!r} (entry {charge}) cannot be drawn again: release {self.id} has "
                    f"charged entry {last.seq} since, so a copy of it has gone on. Close it with "
                    f"`understudy ledger settle LEDGER {self.id}` and start anew"
                )
            if last is None or last.purpose != purpose or event not in (None, last.event):
                had = "nothing" if last is None else repr(last.purpose)
                raise LedgerError(
                    f"charge {purpose!r} cannot be drawn again: the last charge of release "
                    f"{self.id} is for {had}"
                    + (" and another event" if last and last.purpose == purpose else "")
                )
            if last.redrawn:
                raise LedgerError(
                    f"charge {purpose!r} (entry {last.seq}) was drawn again already, elsewhere: a "
                    f"copy of this release has gone on. Close it with `understudy ledger settle` "
                    f"({self.id}) and start anew"
                )
            return "redraw", {"reservation": self.id, "charge": charge, "writer": self._writer}

        self._write(decide, "this one was not made again")
        return paid[0].event

    def refine(self, purpose: str, plan: Plan, facts: Mapping[str, Any]) -> Reservation:
        """Fill a zCDP filter by a plan that was made after the first draws; the reservation with it.

        What was drawn may have told what to plan: ρ adds up adaptively, so a plan whose ρ stays
        within the filter costs no more than the filter (Feldman-Zrnic 2021). Durable before
        anything of it is drawn. Doing it again with the same plan is fine.
        """
        slot = self.plan[purpose]
        if not isinstance(slot.event, Zcdp) or slot.times != 1:
            raise PrivacyError(f"charge {purpose!r} is no zCDP filter; it cannot be refined")
        if not accounting.fits(plan, slot.event):
            raise PrivacyError(f"charge {purpose!r}: the plan costs more than its filter allows")
        body = {
            "reservation": self.id,
            "purpose": purpose,
            "plan": plan.to_json(),
            "facts": dict(facts),
        }

        def decide(books: Books) -> Said | None:
            made = self._live(books)
            if made.refinement is not None:
                known = {key: made.refinement[key] for key in body}
                if known == json.loads(json.dumps(body)):
                    return None
                raise LedgerError(f"release {self.id} was planned otherwise; it cannot go on")
            if made.drawn[purpose]:
                raise BudgetExhausted(f"charge {purpose!r}: its zCDP filter is in use")
            return "refine", body

        whole = refined(self.plan, purpose, plan)  # refuses two slots of one name
        self._write(decide, "nothing more was planned")
        return Reservation(self._ledger, self.dataset, self._made, whole, self._drawn)

    def charged(self) -> list[Charged]:
        """Every draw that was charged, in order, from checked entries."""
        return list(self._ledger.books(self.dataset.name).made(self.id).charges)

    def entries(self) -> list[Entry]:
        """The stretch of the chain from this reservation on, other releases' bodies withheld."""
        stretch = self._ledger.entries(self.dataset.name, since=self._made.seq)
        own = [
            e.seq for e in stretch if e.body is not None and e.body.get("reservation") == self.id
        ]
        mine = set(own)
        return [e if e.seq in mine else e.withheld() for e in stretch if e.seq <= own[-1]]

    def settle(self, outcome: str = "finished") -> None:
        """The release is over. Settling twice is fine."""
        self._ledger.settle(self.id, outcome, dataset=self.dataset.name)

    def publish(self, digest: str) -> None:
        """Note the digest of the bundle that came of it."""
        self._ledger.publish(self.id, digest, dataset=self.dataset.name)

    def _live(self, books: Books) -> Made:
        made = books.made(self.id)
        if made.outcome is not None:
            raise LedgerError(f"release {self.id} is settled; it can draw nothing more")
        return made

    def _write(self, decide: Any, lost: str) -> None:
        """Append, or say what this release has drawn so far and that this entry is not there."""
        try:
            self._ledger.write(self.dataset.name, decide)
        except BudgetExhausted:
            raise
        except (LedgerError, WorkError) as error:
            made = "1 draw was" if self._drawn == 1 else f"{self._drawn} draws were"
            told = f"{made} made" if self._drawn else "nothing was drawn"
            raise type(error)(f"{error}. By this release {told}; {lost}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.settle("aborted")
        except UnderstudyError as failure:
            if error is None:
                raise
            # What went wrong first is what is told; the account stays open, on the private side.
            error.add_note(
                f"Release {self.id} stays open and holds its budget ({failure}); close it later "
                f"with `understudy ledger settle`."
            )

"""What the ledger of a manifest says, read once for all checks of `verify`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from understudy.errors import VerificationError
from understudy.privacy.budget import Budget
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Event, Plan, event_from_json
from understudy.privacy.ledger import planned
from understudy.privacy.relation import Relation
from understudy.units import Unit

__all__ = ["Drawn", "Record"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One charge: what was drawn, for what, and in which entry it stands."""

    seq: int
    purpose: str
    event: Event


@dataclass(frozen=True, eq=False)
class Record:
    """A manifest in its form (`form.require_manifest`). What contradicts itself raises when asked."""

    manifest: Mapping[str, Any]

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
        """The body of the entry that filled the allowance, if there is one."""
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
        """Every charge, an allowance as it was filled."""
        return self._plans[1]

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """Every charge that was made, in order."""
        return tuple(
            Drawn(entry.seq, entry.body["purpose"], event_from_json(entry.body["event"]))
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
        return Unit.from_json(self.reserve.get("unit"))

"""What a chain of entries says: one fold over entries that were checked, and nothing else.

`Books.add` takes a stretch of entries, checks that it continues the chain, and only then counts it. All
spending is computed here, from these entries; no query of a database and no index takes part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from understudy.errors import (
    BudgetExhausted,
    ChainBroken,
    InputError,
    LedgerError,
    PrivacyError,
    RelationError,
    UnderstudyError,
)
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.chain import GENESIS, Entry, check_chain
from understudy.privacy.cost import Charge, Discovery, Event, Plan, Zcdp, event_from_json
from understudy.privacy.relation import Relation
from understudy.units import Unit, group

Composition = Literal["basic", "zcdp"]

_ENDLESS = 1 << 40


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

    @classmethod
    def of(
        cls,
        name: str,
        budget: Budget,
        relation: Relation = Relation.ADD_REMOVE,
        composition: Composition | None = None,
        rows_public: int | None = None,
        unit: str | None = None,
    ) -> Dataset:
        """Check the facts. Without a word releases add up by `zcdp`, and by `basic` where δ is 0."""
        if not name or not name.isprintable():
            raise InputError(f"dataset = {name!r} is not a name; give a printable one")
        if composition is None:
            composition = "zcdp" if budget.delta > 0 else "basic"
        if composition not in ("basic", "zcdp"):
            raise InputError(f"composition = {composition!r} must be 'basic' or 'zcdp'")
        if composition == "zcdp" and budget.delta == 0:
            raise InputError(
                "composition = 'zcdp' needs a delta above 0, such as 1e-9; with delta = 0 "
                "releases add up by 'basic'"
            )
        if relation is Relation.REPLACE and rows_public is None:
            raise InputError(
                "neighbours = replace makes the number of rows public: declare it "
                "(rows_public, on the command line --rows-public N)"
            )
        if rows_public is not None and rows_public < 1:
            raise InputError(f"rows_public = {rows_public} must be at least 1")
        if unit is not None and not unit:
            raise InputError("unit is empty: give the name of a column, or leave it out")
        return cls(name, budget, Relation(relation), composition, rows_public, unit)

    @property
    def neighbours(self) -> str:
        """What two neighbouring tables differ in, in words."""
        words = self.relation.describe(rows_public=self.rows_public)
        if self.unit is None:
            return words
        return words.replace("one row", f"all rows of one {self.unit}", 1)

    def require_unit(self, unit: Unit | None) -> None:
        """A budget protects rows or the values of one column; others do not add up to it."""
        column = None if unit is None else unit.column
        if column != self.unit:
            own = f" --unit {column}" if column else ""
            raise RelationError(
                f"dataset {self.name!r} was opened for unit = {self.unit or 'row'}; a release with "
                f"unit = {column or 'row'} cannot be added to the same account. Open another dataset "
                f"(`understudy ledger open …{own}`), or change unit in the schema"
            )

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


@dataclass(frozen=True, slots=True)
class Charged:
    """One draw that was charged, and whether it was drawn again."""

    seq: int
    purpose: str
    event: Event
    redrawn: bool = False


@dataclass(slots=True)
class Made:
    """One release, as the entries tell it."""

    id: str
    seq: int
    reserved: Mapping[str, Any]
    budget: Budget
    plan: Plan
    unit: Unit | None
    charges: list[Charged] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)
    """How many charges were made for each purpose."""
    refinement: Mapping[str, Any] | None = None
    outcome: str | None = None
    bundles: list[str] = field(default_factory=list)
    alone: bool = False
    """Whether its ρ did not fit, and it was let in as the only release there is."""

    @property
    def counts(self) -> bool:
        """Whether it holds budget or has spent some: settled without a charge, it does neither."""
        return bool(self.charges) or self.outcome is None

    @classmethod
    def of(cls, seq: int, body: Mapping[str, Any]) -> Made:
        """From its `reserve` entry; where that names no unit, one row is protected."""
        unit = body.get("unit")
        return cls(
            body["reservation"],
            seq,
            body,
            Budget.from_json(body["budget"]),
            Plan.from_json(body["plan"]),
            None if unit is None else Unit.from_json(unit),
        )

    @property
    def private(self) -> bool:
        """Whether its noise was private."""
        return self.reserved["noise"] == "opendp"

    @property
    def planned(self) -> int:
        """How many draws its plan has, as far as it is known."""
        times = sum(charge.times for charge in self.plan)
        if self.refinement is not None:  # instead of the one zCDP filter
            times += sum(charge["times"] for charge in self.refinement["plan"]) - 1
        return times

    def count(self, seq: int, purpose: str, event: Event) -> None:
        """Count a charge."""
        self.charges.append(Charged(seq, purpose, event))
        self.drawn[purpose] += 1

    def require_left(self, slot: Charge, drawn: Event) -> None:
        """Refuse a draw that its slot of the plan does not hold any more."""
        where = f"charge {slot.purpose!r}"
        if isinstance(slot.event, Zcdp):
            if self.refinement is not None and self.refinement["purpose"] == slot.purpose:
                raise BudgetExhausted(f"{where}: its zCDP filter is planned already")
            before = (c.event for c in self.charges if c.purpose == slot.purpose)
            used = accounting.total_rho((*before, drawn))  # where one row counts
            if used > Fraction(slot.event.rho) * slot.times or isinstance(drawn, Discovery):
                raise BudgetExhausted(f"{where}: its zCDP filter is used up")
        elif self.drawn[slot.purpose] >= slot.times:
            raise BudgetExhausted(f"{where}: all {slot.times} planned draws have been made")

    def cost(self) -> tuple[Fraction, Fraction]:
        """ρ, and the δ of discoveries: of the plan while it is open, then of what it drew."""
        counted = self.plan if self.outcome is None else [c.event for c in self.charges]
        return accounting.total_rho(counted, group(self.unit)), accounting.total_delta(counted)


@dataclass(slots=True)
class Books:
    """The state of one dataset after the entries that were added; empty before its `open`."""

    name: str
    dataset: Dataset | None = None
    releases: dict[str, Made] = field(default_factory=dict)
    moved: Mapping[str, Any] | None = None
    """The body of the `move` that closed the chain, unless it has arrived since."""
    hashes: list[str] = field(default_factory=list)
    """The hash of every entry, by its number."""

    # -- the fold --------------------------------------------------------------------------------

    def add(self, entries: Sequence[Entry]) -> None:
        """Check that these entries continue the chain, then count them.

        Raises:
            ChainBroken: A link does not hold, or an entry says what no ledger writes. What was added
                before must then not be used either.
        """
        if not entries:
            return
        first = entries[0]
        if first.seq != len(self.hashes) or first.prev != self.head_hash:
            raise ChainBroken(
                f"ledger entry {first.seq} of dataset {self.name!r} does not follow from entry "
                f"{len(self.hashes) - 1}: an entry was changed, dropped or reordered"
            )
        check_chain(entries, whole=not self.hashes)
        for entry in entries:
            try:
                self._count(entry)
            except ChainBroken:
                raise
            except (
                UnderstudyError,
                KeyError,
                TypeError,
                ValueError,
                AttributeError,
                ArithmeticError,
            ) as error:
                raise ChainBroken(
                    f"ledger entry {entry.seq} of dataset {self.name!r} cannot be read "
                    f"({type(error).__name__})"
                ) from None
            self.hashes.append(entry.hash)

    def _count(self, entry: Entry) -> None:
        body, kind = entry.body, entry.kind
        if body is None:
            raise ChainBroken(f"ledger entry {entry.seq}: its body is withheld")
        if (kind == "open") != (entry.seq == 0):
            raise ChainBroken(
                f"dataset {self.name!r}: entry {entry.seq} is {kind!r}; it opens it once"
            )
        match kind:
            case "open":
                if body["dataset"] != self.name:
                    raise ChainBroken(
                        f"dataset {self.name!r}: its first entry opens {body['dataset']!r}"
                    )
                self.dataset = Dataset.from_json(body)
            case "reserve":
                made = Made.of(entry.seq, body)
                if made.id in self.releases:
                    raise ChainBroken(f"ledger entry {entry.seq}: {made.id} is reserved twice")
                made.alone = self._only(made.plan, made.unit)
                self.releases[made.id] = made
            case "move":
                self.moved = body
            case "arrive":
                self.moved = None
            case _:
                self._of_release(entry.seq, str(kind), body)

    def _of_release(self, seq: int, kind: str, body: Mapping[str, Any]) -> None:
        made = self.releases[body["reservation"]]
        match kind:
            case "charge":
                made.count(seq, body["purpose"], event_from_json(body["event"]))
            case "redraw":
                (at,) = (i for i, c in enumerate(made.charges) if c.seq == body["charge"])
                if made.charges[at].redrawn:
                    raise ChainBroken(f"ledger entry {seq} draws charge {body['charge']} once more")
                made.charges[at] = replace(made.charges[at], redrawn=True)
            case "refine":
                made.refinement = body
            case "settle":
                made.outcome = body["outcome"]
            case "publish":
                made.bundles.append(body["bundle"])
            case _:
                raise ChainBroken(f"ledger entry {seq} is of the unknown kind {kind!r}")

    def made(self, reservation: str) -> Made:
        """A release; one that is not there was in another ledger."""
        if reservation not in self.releases:
            raise LedgerError(
                f"release {reservation} is not in dataset {self.name!r} of this ledger"
            )
        return self.releases[reservation]

    # -- the chain -------------------------------------------------------------------------------

    @property
    def head_hash(self) -> str:
        """What the next entry links to."""
        return self.hashes[-1] if self.hashes else GENESIS

    @property
    def head(self) -> str:
        """`seq:hash` of the newest entry: whoever keeps it elsewhere sees if later entries are lost."""
        return f"{len(self.hashes) - 1}:{self.head_hash}"

    def holds(self, seq: int, hash_: str) -> bool:
        """Whether just this entry is in the chain."""
        return 0 <= seq < len(self.hashes) and self.hashes[seq] == hash_

    def next(self, kind: str, body: Mapping[str, Any]) -> Entry:
        """The entry that would continue the chain."""
        return Entry.make(len(self.hashes), kind, body, self.head_hash)

    # -- the budget ------------------------------------------------------------------------------

    @property
    def facts(self) -> Dataset:
        """The facts of a dataset that was opened."""
        assert self.dataset is not None
        return self.dataset

    def _basic(self) -> tuple[Fraction, Fraction]:
        """Σε and Σδ: a release counts in full unless it was settled without a charge."""
        counted = [m.budget for m in self.releases.values() if m.counts]
        epsilons, deltas = (b.epsilon for b in counted), (b.delta for b in counted)
        return sum(epsilons, Fraction(0)), sum(deltas, Fraction(0))

    def _zcdp(self) -> tuple[Fraction, Fraction]:
        """Σρ, and the δ that discoveries cost besides."""
        costs = [made.cost() for made in self.releases.values()]
        return sum((r for r, _ in costs), Fraction(0)), sum((d for _, d in costs), Fraction(0))

    def spent(self) -> Account:
        """What is spent and what is left, under the dataset's rule of composition."""
        total = self.facts.budget
        if self.facts.composition == "basic":
            epsilon, delta = self._basic()
        else:
            rho, shown = self._zcdp()
            epsilon, delta = Fraction(0), Fraction(0)
            if rho or shown:
                epsilon, delta = total.epsilon, total.delta
            if rho and shown < total.delta and not self._taken:
                epsilon = Fraction(accounting.epsilon_from_rho(rho, total.delta - shown))
        return Account(
            epsilon,
            delta,
            max(Fraction(0), total.epsilon - epsilon),
            max(Fraction(0), total.delta - delta),
        )

    def after(self, budget: Budget, plan: Plan, unit: Unit | None = None) -> Account:
        """What would be spent and left if this release were reserved too."""
        also = Made("", -1, {}, budget, plan, unit, alone=self._only(plan, unit))
        return replace(self, releases={**self.releases, "": also}).spent()

    def room(self, budget: Budget, plan: Plan, unit: Unit | None) -> Callable[[int], bool]:
        """Whether so many more releases of this budget and plan fit, one after the other."""
        total = self.facts.budget
        if self.facts.composition == "basic":
            epsilon, delta = self._basic()
            return lambda times: (
                epsilon + times * budget.epsilon <= total.epsilon
                and delta + times * budget.delta <= total.delta
            )
        if self._taken:
            return lambda times: times == 0
        adds = self._adds(plan, unit)
        first = not any(made.counts for made in self.releases.values())
        whole = first and budget.epsilon <= total.epsilon and budget.delta <= total.delta
        return lambda times: adds(times) or (times == 1 and whole)

    def largest(self, budget: Budget, plan: Plan, unit: Unit | None = None) -> Fraction:
        """The largest ε, to two digits, with which a release planned like this one would still fit.

        Where ρ adds up, that of a plan is taken to grow with ε as that of its budget does.
        """
        total = self.facts.budget
        if self.facts.composition == "basic":
            return self.spent().remaining_epsilon
        if not any(made.counts for made in self.releases.values()):
            return total.epsilon
        (rho, shown), found = self._zcdp(), accounting.total_delta(plan)
        left = total.delta - shown - found
        if self._taken or left <= 0:
            return Fraction(0)

        def rho_of(asked: Budget) -> Fraction:
            return planning.rho_for(asked) if asked.delta else asked.epsilon**2

        share = accounting.total_rho(plan, group(unit)) / rho_of(budget)

        def fits(epsilon: Fraction) -> bool:
            own = share * rho_of(Budget(epsilon, budget.delta))
            return accounting.epsilon_from_rho(rho + own, left) <= total.epsilon

        two_digits = [Fraction(digits, 10) for digits in range(99, 9, -1)]
        tried = (Fraction(10) ** power * x for power in range(3, -4, -1) for x in two_digits)
        smaller = [epsilon for epsilon in tried if epsilon < budget.epsilon]
        at = bisect_left(smaller, True, key=fits)
        return smaller[at] if at < len(smaller) else Fraction(0)

    def _adds(self, plan: Plan, unit: Unit | None) -> Callable[[int], bool]:
        """Whether the ρ of so many more releases stays within the total, converted at its δ."""
        total, (rho, shown) = self.facts.budget, self._zcdp()
        own, found = accounting.total_rho(plan, group(unit)), accounting.total_delta(plan)

        def adds(times: int) -> bool:
            left = total.delta - shown - times * found
            after = rho + times * own
            return left > 0 and accounting.epsilon_from_rho(after, left) <= total.epsilon

        return adds

    def _only(self, plan: Plan, unit: Unit | None) -> bool:
        """Whether a release that is reserved now is there for itself: its ρ does not fit the total.

        The account's promise is then that release's own, and nothing else may be drawn, ever, unless
        it is settled without a draw. Which of the two it is follows from the plan, before anything is
        drawn: deciding later would cost a second δ.
        """
        if self.facts.composition == "basic" or any(m.counts for m in self.releases.values()):
            return False
        return not self._adds(plan, unit)(1)

    @property
    def _taken(self) -> bool:
        """Whether one release has the whole account."""
        return any(made.alone and made.counts for made in self.releases.values())

    def more_like(self, budget: Budget, plan: Plan, unit: Unit | None = None) -> int:
        """How many more releases of this budget and plan fit, one after the other."""
        fits = self.room(budget, plan, unit)
        high = 1
        while high < _ENDLESS and fits(high):
            high *= 2
        low = high // 2  # fits, or is 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def planned(entries: Sequence[Entry], reservation: str) -> tuple[Plan, Plan]:
    """What a release reserved, and that with its zCDP filter as it was filled, if it was.

    Raises:
        PrivacyError: It was filled more than once, by a plan that costs more, or is no zCDP filter.
    """
    own = [e for e in entries if e.body is not None and e.body.get("reservation") == reservation]
    (outer,) = (Plan.from_json(list(e.body["plan"])) for e in own if e.kind == "reserve" and e.body)
    fills = [e.body for e in own if e.kind == "refine" and e.body is not None]
    if not fills:
        return outer, outer
    if len(fills) > 1:
        raise PrivacyError("a zCDP filter was filled more than once")
    inner, purpose = Plan.from_json(list(fills[0]["plan"])), fills[0]["purpose"]
    slot = outer[purpose]
    if not isinstance(slot.event, Zcdp) or slot.times != 1:
        raise PrivacyError(f"{purpose!r} was filled, and is no zCDP filter")
    if not accounting.fits(inner, slot.event):
        raise PrivacyError(
            f"{purpose!r} was filled by a plan that costs more than its filter allows"
        )
    return outer, refined(outer, purpose, inner)


def refined(plan: Plan, purpose: str, later: Plan) -> Plan:
    """A plan with a zCDP filter replaced by what it was filled with."""
    return Plan((*(charge for charge in plan if charge.purpose != purpose), *later))

"""The gate: the only way out for a fact about private rows.

`Gate.ask(purpose, question)` does four things, in this order, for every question alike:

1. the question checks its request, which is public, and the planned event must cover what it needs;
2. the ledger makes the charge durable;
3. the question's exact answer, integers of the shape it declared, meets the mechanism with the scale
   that the ledger's entry states;
4. what was drawn is decoded, which is post-processing.

A draw without a charge, or with less noise than was charged for, cannot be written: questions hold
neither noise nor charges, and no other module draws. Guarantee: what leaves is covered by the events
charged, under `relation`, for one row; where the charges are made for a `Unit`, the source must have
bounded its rows in the same way, and the account multiplies (see `understudy.units`).

Nothing that goes wrong after the charge tells anything about the rows: not a message, not the size of
what could not be allocated, only that it went wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from understudy._types import Clique
from understudy.errors import CountingError, PrivacyError, RelationError, UnderstudyError
from understudy.privacy.cost import Event, Plan, Zcdp
from understudy.privacy.exact import ExactCounts, ExactRows, Examples, Facts, Learned, Tables
from understudy.privacy.mechanisms import Buckets, Grouped, Held, Mechanism
from understudy.privacy.noise import Noise
from understudy.privacy.objective import Sides
from understudy.privacy.relation import Relation
from understudy.progress import undisturbed
from understudy.units import Unit

if TYPE_CHECKING:
    from understudy.privacy.journal import Journal

A = TypeVar("A", covariant=True)


@dataclass(frozen=True, slots=True)
class Need:
    """What a question needs: events that cover it, in code and in words, and the shape it answers in.

    `shape` is that of the exact integers, None where their number is itself private and the mechanism
    hides it.
    """

    kinds: tuple[type[Event], ...]
    covers: Callable[[Any], bool]
    words: str
    shape: tuple[int, ...] | None


class Question(Protocol[A]):
    """One request, frozen and public, with the proof of its sensitivity in the docstring."""

    @property
    def mechanism(self) -> Mechanism:
        """How noise meets the exact answer."""
        ...

    def need(self, facts: Facts) -> Need:
        """What covers the request; raises `PrivacyError` for one that does not fit the table."""
        ...

    def exact(self, rows: Any, event: Any) -> Any:
        """Privileged: the exact answer from opened `Tables` or `Learned` rows, in integers."""
        ...

    def decode(self, drawn: Any, facts: Facts) -> A:
        """What the drawn numbers say; post-processing."""
        ...


class Charges(Protocol):
    """A reservation in the ledger, as the gate sees it."""

    plan: Plan
    """What may be drawn."""
    private_noise: bool
    """Whether the ledger was promised noise that protects."""
    unit: Unit | None
    """Whom the account is kept for; None for one row."""
    relation: Relation
    """Which tables are neighbours, by the account."""

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """Make the next draw durable; return the event to draw with."""
        ...


class Gate:
    """Answers questions about private rows, each after its durable charge."""

    def __init__(
        self,
        rows: ExactCounts | Examples,
        charges: Charges,
        relation: Relation,
        noise: Noise,
        rows_public: int | None = None,
        record: Journal | None = None,
        ahead: Sequence[Clique] = (),
    ) -> None:
        """`ahead` says which marginals will be asked about: they are counted in one pass."""
        if charges.private_noise and not noise.private:
            raise PrivacyError("the ledger was promised private noise; this noise is seeded")
        if charges.unit != rows.unit:
            raise PrivacyError(
                f"the account is kept for one {charges.unit or 'row'}, the counts are of one "
                f"{rows.unit or 'row'}; nothing was charged or drawn"
            )
        if charges.relation is not relation:
            raise RelationError(
                f"the account is kept for neighbours = {charges.relation}, the questions are of "
                f"neighbours = {relation}; nothing was charged or drawn"
            )
        by_row = isinstance(rows, ExactRows | Examples)
        facts = self._facts = Facts(tuple(rows.shape), relation, rows_public, rows.unit, by_row)
        self._charges = charges
        self._noise = noise
        self._record = record
        self._rows = (
            Learned(rows, noise)
            if isinstance(rows, Examples)
            else Tables(rows, noise, facts, ahead)
        )

    @property
    def facts(self) -> Facts:
        """What everybody may know of the table."""
        return self._facts

    @property
    def plan(self) -> Plan:
        """What may be asked; public."""
        return self._charges.plan

    def ask(self, purpose: str, question: Question[A], event: Event | None = None) -> A:
        """The noisy answer. `event` goes with a zCDP filter (`Zcdp`) of the plan, and with no other."""
        need = question.need(self.facts)
        planned = self._charges.plan[purpose].event
        candidate = event if isinstance(planned, Zcdp) else planned
        # A subclass could say one thing to the ledger and another here.
        if candidate is None or type(candidate) not in need.kinds or not need.covers(candidate):
            raise PrivacyError(
                f"charge {purpose!r} plans {candidate}, which does not cover {need.words}; "
                f"nothing was charged or drawn"
            )
        drawn = None if self._record is None else self._record.kept(purpose, question)
        if drawn is None:
            drawn = self._draw(purpose, question, need, candidate, event)
        return question.decode(drawn, self.facts)

    def _draw(
        self, purpose: str, question: Question[Any], need: Need, event: Event, given: Event | None
    ) -> Any:
        record, charged = self._record, self._record is not None and self._record.waits
        waits = charged
        try:
            if not waits:
                with undisturbed():
                    _same(purpose, self._charges.charge(purpose, given), event)
                    charged = True
            exact = _guarded(lambda: _integers(question.exact(self._rows, event), need.shape))
        except (CountingError, KeyboardInterrupt):
            if record is not None and charged:
                record.uncounted(purpose, question)
            raise
        with undisturbed():
            if record is not None and waits:
                # After the count, since one that fails again has drawn nothing.
                _same(purpose, record.redraw(self._charges, purpose, given), event)
            drawn = _guarded(lambda: question.mechanism(exact, event, self._noise))
            if record is not None:
                record.keep(purpose, question, drawn)
        return drawn


def _same(purpose: str, charged: Event, event: Event) -> None:
    """Noise is drawn with the scale that the ledger's entry states."""
    if charged != event:
        raise PrivacyError(f"charge {purpose!r}: the ledger holds another event than the plan")


def _integers(exact: Any, shape: tuple[int, ...] | None) -> Any:
    """Noise is charged for integers of a declared shape; anything else stops here, before noise.

    Without a shape only what has a mechanism of its own passes, never a bare array.
    """
    if shape is None:
        right = isinstance(exact, Buckets | Grouped | Held | Sides)
    else:
        right = isinstance(exact, np.ndarray) and exact.dtype == np.int64 and exact.shape == shape
    if not right:
        raise PrivacyError("a question gave another answer than it declared; nothing was drawn")
    return exact


T = TypeVar("T")


def _guarded(step: Callable[[], T]) -> T:
    """No message of what goes wrong past the charge may carry an exact value outside."""
    try:
        return step()
    except UnderstudyError:
        raise
    except Exception as error:  # noqa: BLE001 - its message is withheld, whatever it is
        kind = type(error).__name__
    raise PrivacyError(f"the answer could not be drawn ({kind}); the charge stands")

"""Stand-ins around a real gate: tiny tables, strict accounts, and noise that a test controls.

None of the noises here protects anyone (`private` is False). They are plugged into the real
`Gate`, so that what is tested is its real scores, scales and charges:

* `StillNoise` adds nothing and writes down what it was asked to perturb
* `Tape` plays the gate's answers again, whatever the private table
* `GivenNoise` has the exact-privacy harness play every outcome of a selection, and gives
  measurements that a test fixes
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.errors import BudgetExhausted, PrivacyError
from understudy.privacy import accounting
from understudy.privacy.cost import Event, Plan, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing.checks import ContractBroken
from understudy.testing.distributions import fingerprint
from understudy.testing.exact import Chooser, ChoosingNoise, log_law
from understudy.units import Unit

__all__ = [
    "Front",
    "GivenNoise",
    "RecordingNoise",
    "StillNoise",
    "StrictCharges",
    "Tape",
    "TinyCounts",
    "table_of",
]

Integers = NDArray[np.int64]
Rows = Sequence[tuple[int, ...]]


def table_of(rows: Rows, shape: Sequence[int], clique: Clique) -> Integers:
    """The exact marginal of a few rows of codes, counted one by one."""
    table = np.zeros(tuple(shape[i] for i in clique), dtype=np.int64)
    for row in rows:
        table[tuple(row[i] for i in clique)] += 1
    return table


class TinyCounts:
    """Exact counts (an `ExactCounts`) of a few rows of codes, sealed as those of a source are."""

    def __init__(self, shape: Sequence[int], rows: Rows) -> None:
        self.shape = tuple(shape)
        self.unit: Unit | None = None
        self._rows = tuple(tuple(row) for row in rows)

    def rows(self) -> Sensitive[int]:
        """The exact number of rows."""
        return Sensitive(len(self._rows))

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Integers, ...]]:
        """One exact table per clique."""
        return Sensitive(tuple(table_of(self._rows, self.shape, clique) for clique in cliques))

    def sparse(self, cliques: Sequence[Clique]) -> Sensitive[tuple[tuple[Integers, Integers], ...]]:
        """The occupied cells of each clique."""
        found = []
        for clique in cliques:
            flat = table_of(self._rows, self.shape, clique).reshape(-1)
            cells = np.flatnonzero(flat)
            found.append((cells.astype(np.int64), flat[cells]))
        return Sensitive(tuple(found))

    def records(self) -> Sensitive[list[Integers]]:
        """The rows themselves, one array of codes per column."""
        matrix = np.array(self._rows, np.int64).reshape(len(self._rows), len(self.shape))
        return Sensitive([matrix[:, i] for i in range(len(self.shape))])


class StrictCharges:
    """A reservation without a ledger: as strict, and it writes down what was `charged`."""

    private_noise = False
    unit: Unit | None = None

    def __init__(self, plan: Plan, relation: Relation = Relation.ADD_REMOVE) -> None:
        self.plan = plan
        self.relation = relation
        self.charged: list[tuple[str, Event]] = []

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """The next draw of `purpose`; refuses what the plan does not hold any more."""
        slot = self.plan[purpose]
        zcdp = slot.event if isinstance(slot.event, Zcdp) else None
        if (event is None) == (zcdp is not None):
            raise PrivacyError(f"charge {purpose!r}: an event goes with a zCDP filter only")
        drawn = event or slot.event
        before = [known for name, known in self.charged if name == purpose]
        if zcdp is not None:
            used = sum((accounting.rho(known) for known in (*before, drawn)), Fraction(0))
            if used > Fraction(zcdp.rho) * slot.times:
                raise BudgetExhausted(f"charge {purpose!r}: its zCDP filter is used up")
        elif len(before) >= slot.times:
            raise BudgetExhausted(
                f"charge {purpose!r}: all {slot.times} planned draws have been made"
            )
        self.charged.append((purpose, drawn))
        return drawn


class StillNoise(Noise):
    """No noise at all. `asked` holds (kind, exact values, scale) of every request. NOT PRIVATE."""

    private = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, Integers, float]] = []

    def laplace(self, values: Integers, scale: float) -> Integers:
        """The values."""
        self.asked.append(("laplace", np.array(values), scale))
        return np.array(values)

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """The values."""
        self.asked.append(("gaussian", np.array(values), sigma))
        return np.array(values)

    def below(self, number: int) -> int:
        """Always the first."""
        return 0

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """The k largest, the first of equals first."""
        self.asked.append(("top_k", np.array(scores), scale))
        return tuple(int(i) for i in np.argsort(-np.ravel(scores), kind="stable")[:k])


class RecordingNoise(Noise):
    """Passes on another noise and writes down all that was `released`."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self.private = noise.private
        self.released: list[Any] = []

    def _keep(self, value: Any) -> Any:
        self.released.append(value)
        return value

    def laplace(self, values: Integers, scale: float) -> Integers:
        """See `Noise.laplace`."""
        return self._keep(self._noise.laplace(values, scale))

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """See `Noise.gaussian`."""
        return self._keep(self._noise.gaussian(values, sigma))

    def below(self, number: int) -> int:
        """See `Noise.below`."""
        return self._keep(self._noise.below(number))

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """See `Noise.top_k`."""
        return self._keep(self._noise.top_k(scores, scale, k))


class GivenNoise(ChoosingNoise):
    """`ChoosingNoise` for games that also measure: Gaussian draws get `gaussians`, in order.

    What is enumerated is then the law of the selections given those releases, which is what adaptive
    composition asks about. NOT PRIVATE.
    """

    def __init__(self, chooser: Chooser, gaussians: Sequence[Integers] = ()) -> None:
        super().__init__(chooser)
        self._gaussians = list(gaussians)

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """One branch; single picks by the closed form of their law, which is much faster."""
        if k > 1:
            return super().top_k(scores, scale, k)
        return (self._chooser.choose(log_law(scores, scale)),)

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """The next given answer."""
        if not self._gaussians:
            return super().gaussian(values, sigma)
        return np.asarray(self._gaussians.pop(0), dtype=np.int64).reshape(np.shape(values))


class Tape:
    """What a gate answered, in order; `again()` plays it whatever the private table.

    `faithful` turns False when other questions are asked than in the first run.
    """

    def __init__(self, recorded: Sequence[tuple[Any, Any]] | None = None) -> None:
        self._recorded: list[tuple[Any, Any]] = []
        self._left = None if recorded is None else list(recorded)
        self._faithful = True

    def again(self) -> Tape:
        """The same answers for another table."""
        return Tape(self._recorded)

    @property
    def faithful(self) -> bool:
        """Whether exactly the questions of the first run were asked."""
        return self._faithful and not self._left

    def pass_on(self, question: Any, answer: Any) -> Any:
        """Record an answer, or give the one recorded at this place."""
        if self._left is None:
            self._recorded.append((question, answer))
            return answer
        expected, recorded = self._left.pop(0) if self._left else (None, None)
        if expected != question:
            self._faithful = False
            raise PrivacyError(
                "another question was asked after the same released answers; only released "
                "numbers may steer a game"
            )
        return recorded


class Front:
    """The public face of a gate; reaching for anything behind it breaks the contract.

    `trespasses` keeps what was reached for, should the exception have been swallowed. With a `tape`
    the answers are recorded or played again; checks and charges are the gate's own either way.
    """

    def __init__(self, gate: Gate, tape: Tape | None = None) -> None:
        self.trespasses: list[str] = []
        self.facts, self.plan = gate.facts, gate.plan

        # A closure, so that there is no attribute to be found.
        def ask(purpose: str, question: Any, event: Event | None = None) -> Any:
            answer = gate.ask(purpose, question, event)
            if tape is None:
                return answer
            return tape.pass_on((purpose, fingerprint(question), event), answer)

        # As a bound method would: who goes round the gate must be found out by what it does.
        setattr(ask, "__self__", gate)  # noqa: B010 - no type knows this attribute
        self.ask = ask

    def __getattr__(self, name: str) -> Any:
        self.trespasses.append(name)
        raise ContractBroken(f"reached for {name!r} of the gate, which is not a question")

    @classmethod
    def around(cls, gate: Gate, tape: Tape | None = None) -> tuple[Gate, list[str]]:
        """The front, typed as the gate that it stands for, and its list of trespasses."""
        front = cls(gate, tape)
        return cast(Gate, front), front.trespasses

"""Stand-ins around a real gate: tiny tables, strict accounts, and noise that a test controls.

None of the noises here protects anyone (`private` is False). They are plugged into the real
`Gate`, so that what is tested is its real scores, scales and charges:

* `SeededNoise` has the real laws, repeatably
* `StillNoise` adds nothing and writes down what it was asked to perturb
* `Tape` plays the gate's answers again, whatever the private table
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from understudy._types import Clique, Whole
from understudy.errors import PrivacyError
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Event, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Made
from understudy.privacy.noise import Noise, finite, integers
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing.checks import ContractBroken
from understudy.testing.distributions import fingerprint
from understudy.units import Unit

Rows = Sequence[tuple[int, ...]]


def table_of(rows: Rows, shape: Sequence[int], clique: Clique) -> Whole:
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

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Whole, ...]]:
        """One exact table per clique."""
        return Sensitive(tuple(table_of(self._rows, self.shape, clique) for clique in cliques))

    def sparse(self, cliques: Sequence[Clique]) -> Sensitive[tuple[tuple[Whole, Whole], ...]]:
        """The occupied cells of each clique."""
        found = []
        for clique in cliques:
            flat = table_of(self._rows, self.shape, clique).reshape(-1)
            cells = np.flatnonzero(flat)
            found.append((cells.astype(np.int64), flat[cells]))
        return Sensitive(tuple(found))

    def records(self) -> Sensitive[list[Whole]]:
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
        self._made = Made("", 0, {}, Budget(Fraction(1), Fraction(0)), plan, None)

    @property
    def charged(self) -> list[tuple[str, Event]]:
        """(purpose, event) of every draw, in order."""
        return [(each.purpose, each.event) for each in self._made.charges]

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """The next draw of `purpose`; refuses what the plan does not hold any more."""
        drawn = self.plan.drawn(purpose, event)
        self._made.require_left(self.plan[purpose], drawn)
        self._made.count(0, purpose, drawn)
        return drawn


class SeededNoise(Noise):
    """For tests only: repeatable noise of the same shape. Releases made with it are NOT PRIVATE."""

    private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def laplace(self, values: Whole, scale: float) -> Whole:
        """A difference of geometric variables: the discrete Laplace law, from float arithmetic."""
        array = integers(values)
        p = -np.expm1(-1.0 / finite(scale))
        z = self._rng.geometric(p, array.size) - self._rng.geometric(p, array.size)
        return (array + z).reshape(np.shape(values))

    def gaussian(self, values: Whole, sigma: float) -> Whole:
        """A discrete Gaussian by inversion on ±12σ, in float arithmetic; rounded where σ is large."""
        array, sigma = integers(values), finite(sigma)
        if sigma > 1e5:
            return self.to_be_rounded(array, sigma).reshape(np.shape(values))
        reach = int(np.ceil(12 * sigma)) + 1
        support = np.arange(-reach, reach + 1)
        law = np.exp(-(support.astype(float) ** 2) / (2 * sigma * sigma))
        cdf = np.cumsum(law) / law.sum()
        z = support[np.searchsorted(cdf, self._rng.random(array.size)).clip(0, support.size - 1)]
        return (array + z).reshape(np.shape(values))

    def top_k(self, scores: Whole, scale: float, k: int) -> tuple[int, ...]:
        """Gumbel top-k in float arithmetic."""
        array = integers(scores)
        if not 1 <= k <= array.size:
            raise PrivacyError(f"cannot select {k} of {array.size} candidates")
        noisy = array + self._rng.gumbel(scale=finite(scale), size=array.size)
        return tuple(int(i) for i in np.argsort(-noisy, kind="stable")[:k])

    def to_be_rounded(self, values: Whole, sigma: float) -> Whole:
        """As `OpenDPNoise.to_be_rounded`, repeatable."""
        return values + np.rint(sigma * self._rng.standard_normal(values.size)).astype(np.int64)

    def below(self, number: int) -> int:
        """Uniform; numbers beyond 2^63 lose their lowest bits, which no test minds."""
        if number <= 2**63:
            return int(self._rng.integers(number))
        return int(self._rng.random() * number)


class StillNoise(Noise):
    """No noise at all. `asked` holds (kind, exact values, scale) of every request. NOT PRIVATE."""

    private = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, Whole, float]] = []

    def laplace(self, values: Whole, scale: float) -> Whole:
        """The values."""
        self.asked.append(("laplace", np.array(values), scale))
        return np.array(values)

    def gaussian(self, values: Whole, sigma: float) -> Whole:
        """The values."""
        self.asked.append(("gaussian", np.array(values), sigma))
        return np.array(values)

    def below(self, number: int) -> int:
        """Always the first."""
        return 0

    def top_k(self, scores: Whole, scale: float, k: int) -> tuple[int, ...]:
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

    def laplace(self, values: Whole, scale: float) -> Whole:
        """See `Noise.laplace`."""
        return self._keep(self._noise.laplace(values, scale))

    def gaussian(self, values: Whole, sigma: float) -> Whole:
        """See `Noise.gaussian`."""
        return self._keep(self._noise.gaussian(values, sigma))

    def below(self, number: int) -> int:
        """See `Noise.below`."""
        return self._keep(self._noise.below(number))

    def top_k(self, scores: Whole, scale: float, k: int) -> tuple[int, ...]:
        """See `Noise.top_k`."""
        return self._keep(self._noise.top_k(scores, scale, k))


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

"""What an oracle does: the best response to a history, for many perturbations at once.

    x_j = argmax over records x of  Σ_i w_i q_i(x) + <σ_j, onehot(x)>,    j = 1..s

An oracle sees released queries and public noise only. Whatever it returns, however far from optimal, is
post-processing: a weak oracle costs accuracy, never privacy.

A new query needs a weight (`Split`). For a perturbation σ let x be the best record, y the best among
those that satisfy the query, and gap what y falls short of x. With the query at weight w the best
record of all is y if w > gap, and x if not: so one pair of searches answers for every weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy._types import Floats, Rng, Whole
from understudy.oracles.atoms import Atoms
from understudy.oracles.history import History, Records
from understudy.oracles.noise import Draws, LazyNoise

_ROUNDING = 1e-6
_ENTRIES = 2**22  # perturbation values held at a time: 32 MiB
_TAIL = 60.0  # a perturbation of scale 1 is never so large


@dataclass(frozen=True, eq=False)
class Split:
    """Per perturbation: the best record, the best record that satisfies the query, and the gap.

    The gap is infinite where the oracle found no record that satisfies the query. `late` says that
    an oracle that proves its records ran out of time for one.
    """

    free: Whole
    held: Whole
    gap: Floats
    late: bool = False

    @classmethod
    def of(cls, query: History, free: Whole, held: Whole, gap: Floats, late: bool = False) -> Split:
        """Differences that are rounding are no gap, and a record that fails the query has none."""
        gap = np.where(gap < _ROUNDING, 0.0, gap)
        gap[query.evaluate(held) < 0.5] = np.inf
        return cls(free, held, gap, late)

    def weight(self, share: float) -> float:
        """The least weight with which a `share` of the perturbations satisfies the query."""
        order = np.sort(self.gap)
        place = min(len(order), max(1, round(share * len(order)))) - 1
        reached = order[: place + 1]
        return float(reached[np.isfinite(reached)].max(initial=0.0))

    def at(self, weight: float) -> Whole:
        """The best records with the query at this weight."""
        return np.where((self.gap <= weight)[:, None], self.held, self.free)


def weights(history: History, query: History, noise: float) -> tuple[float, float]:
    """(too little to matter, more than everything else together), for noise of this size."""
    every = float(np.abs(history.weights).sum())
    return 1e-9, 2 * (every + noise * len(history.shape)) + 1.0


def into(query: History, records: Whole) -> Whole:
    """Records that satisfy a single conjunction: a literal that does not hold gets a value for which
    it does.

    Other queries need one attribute to change, which any search finds: records stay as they are.
    """
    if query.terms != 1 or query.weights[0] <= 0:
        return records
    moved = records.copy()
    for column, low, high, negated in query.literals[0]:
        if column < 0:
            continue
        codes = moved[:, column]
        outside = (codes < low) | (codes > high)
        value = low
        if negated:
            value = low - 1 if low > 0 else high + 1
            if value >= query.shape[column]:
                return records
        codes[outside != (negated == 1)] = value
    return moved


@dataclass(frozen=True, eq=False)
class Found:
    """Codes of atoms, one row per perturbation, what they are worth without the history's constant,
    and whether the oracle ran out of time to prove one of them.
    """

    codes: Whole
    worth: Floats
    late: bool = False


@dataclass(frozen=True, eq=False)
class Sought:
    """What a search is about: perturbations `noise` of atoms, (rows, positions), and public randomness.

    Row j may begin at warm[begin + j], a good first guess as codes of atoms; `warm` may be empty.
    """

    atoms: Atoms
    noise: Floats
    warm: Whole
    begin: int
    rng: Rng


class Oracle(ABC):
    """Solves for the best record of every perturbation.

    An oracle is a search over atoms; what is drawn, folded and unfolded around it is the same for all.
    """

    proves: ClassVar[bool] = False
    """Whether it proves its records to be the best, as long as there is time."""

    @abstractmethod
    def search(self, sought: Sought) -> Found:
        """The best codes of every perturbation."""

    def brief(self) -> Oracle:
        """One that is enough where the warm record is nearly the best."""
        return self

    def best(
        self, history: History, noise: LazyNoise, *, warm: Records | None = None, rng: Rng
    ) -> tuple[Whole, bool]:
        """(one legal record per perturbation, (s, d); whether it ran out of time to prove one).

        `warm` holds good first guesses, (s, d). An oracle that proves nothing is never late.
        """
        atoms = Atoms.of_history(history)
        guesses = atoms.guesses(warm)
        records: list[Whole] = []
        late = False
        for begin, drawn in _drawn(noise, atoms, rng):
            found = self.search(Sought(atoms, drawn.values, guesses, begin, rng))
            records.append(drawn.unfold(found.codes))
            late |= found.late
        return np.concatenate(records), late

    def split(
        self, history: History, query: History, noise: LazyNoise, *, warm: Records, rng: Rng
    ) -> Split:
        """Both records of `Split` for every perturbation; `query` is 0 or 1 on every record.

        Noise is drawn once, over values that history and query tell apart.
        """
        small, large = weights(history, query, _TAIL * float(noise.scales(history.shape).max()))
        atoms, bound = (Atoms.of_history(history.plus(query, each)) for each in (small, large))
        guesses = atoms.guesses(warm)
        # Records can be put into a cell, and out of it by one value; other queries need a search.
        few = self.brief() if query.terms == 1 else self
        free: list[Whole] = []
        held: list[Whole] = []
        gaps: list[Floats] = []
        late = False
        for begin, drawn in _drawn(noise, atoms, rng):
            found = self.search(Sought(atoms, drawn.values, guesses, begin, rng))
            free.append(drawn.unfold(found.codes))
            inside = atoms.fold(into(query, free[-1]))
            forced = few.search(Sought(bound, drawn.values, inside, 0, rng))
            held.append(drawn.unfold(forced.codes))
            bonus = (large - small) * (query.evaluate(held[-1]) - query.constant)
            gaps.append(found.worth - (forced.worth - bonus))
            late |= found.late | forced.late
        records = np.concatenate(held)
        return Split.of(query, np.concatenate(free), records, np.concatenate(gaps), late)


def _drawn(noise: LazyNoise, atoms: Atoms, rng: Rng) -> Iterator[tuple[int, Draws]]:
    """Perturbations over atoms, as many rows at a time as fit."""
    step = max(1, _ENTRIES // max(1, atoms.positions))
    for begin in range(0, noise.rows, step):
        rows = range(begin, min(begin + step, noise.rows))
        yield begin, noise.part(rows).fold(atoms, rng)


@dataclass(frozen=True, slots=True)
class Proofs:
    """How many rounds an oracle was asked in, and in how many it ran out of time for a record."""

    rounds: int = 0
    late: int = 0

    def after(self, late: bool) -> Proofs:
        """One round later."""
        return Proofs(self.rounds + 1, self.late + late)

    def diagnostics(self, oracle: Oracle) -> dict[str, int]:
        """What a release says of it; nothing where the oracle proves nothing."""
        if not oracle.proves:
            return {}
        return {"oracle_rounds": self.rounds, "oracle_rounds_without_proof": self.late}

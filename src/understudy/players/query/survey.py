"""Measure every column and every pair, then look where the model is wrong and measure there again.

Round 0 measures all one-way tables, at noise levels fixed publicly. Round 1 measures all pairs of the
workload's closure: whole where n/σ rows per cell leave something to see, with neighbouring values
merged where they do not. Every further round *looks* (`ThresholdedErrors`: how many rows each table is
off beyond what a measurement could mend) and then spends a fixed number of equal *units of precision*
where they promise most: on pairs at several resolutions, on larger tables of the workload that pairs do
not explain, or on columns. A table that is given k units is measured k times; so the adaptive choice
is between draws of one fixed event, and the plan is accounted for exactly before anything is read.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from understudy._types import Table
from understudy.models.fitting import Fitted
from understudy.models.margins import deconvolve
from understudy.models.measured import Labels, merge, pair_labels
from understudy.players.base import Answer, Clique, Kind, Measured, Problem, View
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, ThresholdedErrors

__all__ = ["Slot", "Survey", "Tier"]


# Constants chosen on ADULT and LOANS; see docs/methods/maxent.md.
_WHOLE = 12.0
_COARSE = 0.2
_SPARSE, _DENSE = 0.8, 0.3
"""A measurement with noise σ mends what is beyond 0.8σ, the mean of |N(0, σ²)|, on a table of which
little can be seen; beyond 0.3σ where the fit can pool many visible cells."""
_AGAIN = 0.5
"""The k-th unit of precision on one table of several columns is worth 0.5/k^1.5 of the first."""
_ONE_WAY = 0.5
_CLEAR = 4.0
"""Tables of three and more columns count where their excess is clear of its noise, in deviations,"""
_MATTERS = 0.05
"""and where it is this share of the rows beyond that of their pairs."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Columns measured with one noise level in round 0."""

    purpose: str
    sigma: float
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A table that may be looked at: whole, or merged to `cells`·n/σ cells.

    `dense` says that a whole table has few cells for its rows and the noise.
    """

    clique: Clique
    cells: float | None
    weight: float
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """See the module. Slots, levels and units are public and fixed by the plan."""

    tiers: tuple[Tier, ...]
    pairs: tuple[Clique, ...]
    sigma_pairs: float
    slots: tuple[Slot, ...]
    sigma_look: float
    higher: tuple[Slot, ...]
    sigma_higher: float
    units: int
    sigma_again: float
    columns: tuple[float, ...]
    """Weight of each column: how much of the workload holds it."""
    again: int = 2
    """Rounds of looking and measuring again."""

    PAIRS = "pairs"
    LOOK = "look for excess"
    HIGHER = "look for excess beyond pairs"
    AGAIN = "measure again"

    gives = frozenset({Kind.TABLE, Kind.COARSENED})
    needs = ()

    @property
    def rounds(self) -> int:
        """One-ways, pairs, and the rounds of looking; one-ways alone where there are no pairs."""
        return 2 + self.again if self.pairs else 1

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        if round == 0:
            return self._one_ways(gate)
        shares = view.marginals([(i,) for i in range(len(problem.shape))])
        if round == 1:
            return self._pairs(problem, gate, shares)
        return self._look(problem, gate, view, shares, last=round == self.rounds - 1)

    def _one_ways(self, gate: Gate) -> tuple[Answer, ...]:
        answers: list[Answer] = []
        for tier in self.tiers:
            tables = gate.ask(tier.purpose, Marginals([(i,) for i in tier.columns]))
            answers += [
                Measured((i,), table, tier.sigma)
                for i, table in zip(tier.columns, tables, strict=True)
            ]
        return tuple(answers)

    def _pairs(self, problem: Problem, gate: Gate, shares: Sequence[Table]) -> tuple[Answer, ...]:
        per_cell = problem.rows / self.sigma_pairs
        labels: list[tuple[Labels, ...] | None] = []
        for pair in self.pairs:
            cells = math.prod(problem.shape[i] for i in pair)
            coarse = max(4.0, _COARSE * per_cell)
            own = tuple(shares[i] for i in pair)
            labels.append(pair_labels(own, coarse) if cells > _WHOLE * per_cell else None)
        asked = [(pair, label, 1) for pair, label in zip(self.pairs, labels, strict=True)]
        return _measured(gate, self.PAIRS, asked, self.sigma_pairs)

    def _look(
        self,
        problem: Problem,
        gate: Gate,
        view: View,
        shares: Sequence[Table],
        *,
        last: bool,
    ) -> tuple[Answer, ...]:
        tables, values = self._thresholded_errors(
            problem, gate, view, shares, self.LOOK, self.slots, self.sigma_look
        )
        worth = deconvolve(values, self.sigma_look, positive=True)[0]
        chosen: dict[Clique, tuple[float, int]] = {}
        for number, (slot, _) in enumerate(tables):
            value = slot.weight * float(worth[number])
            if value > chosen.get(slot.clique, (0.0, -1))[0]:
                chosen[slot.clique] = (value, number)
        options = [
            _Option(clique, tables[number][1], value) for clique, (value, number) in chosen.items()
        ]
        if last and self.higher:
            found, seen = self._thresholded_errors(
                problem, gate, view, shares, self.HIGHER, self.higher, self.sigma_higher
            )
            off: dict[Clique, float] = {}
            for number, (slot, _) in enumerate(tables):
                off[slot.clique] = max(off.get(slot.clique, 0.0), float(worth[number]))
            for (slot, labels), value in zip(found, seen, strict=True):
                # What its pairs are off by will be mended by measuring them.
                beyond = float(value) - sum(off.get(p, 0.0) for p in combinations(slot.clique, 2))
                if beyond > max(_CLEAR * self.sigma_higher, _MATTERS * problem.rows):
                    options.append(_Option(slot.clique, labels, slot.weight * beyond))
        options += self._column_options(problem, view, shares)
        return self._spend(gate, options)

    def _thresholded_errors(
        self,
        problem: Problem,
        gate: Gate,
        view: View,
        shares: Sequence[Table],
        purpose: str,
        slots: Sequence[Slot],
        sigma: float,
    ) -> tuple[list[tuple[Slot, tuple[Labels, ...] | None]], Table]:
        per_cell = problem.rows / self.sigma_again
        tables: list[tuple[Slot, tuple[Labels, ...] | None]] = []
        for slot in slots:
            labels = None
            if slot.cells is not None:
                own = tuple(shares[i] for i in slot.clique)
                labels = pair_labels(own, max(4.0, slot.cells * per_cell))
                if labels is None and len(slot.clique) == 2:
                    continue  # the whole table is a slot of its own
            tables.append((slot, labels))
        cliques = list(dict.fromkeys(slot.clique for slot, _ in tables))
        shares_of = zip(cliques, view.marginals(cliques), strict=True)
        expected = {clique: problem.rows * table for clique, table in shares_of}
        references = [
            expected[slot.clique] if labels is None else merge(expected[slot.clique], labels)
            for slot, labels in tables
        ]
        asked = [_table(slot.clique, labels) for slot, labels in tables]
        thresholds = [(_DENSE if slot.dense else _SPARSE) * self.sigma_again for slot, _ in tables]
        noisy = gate.ask(purpose, ThresholdedErrors(asked, references, thresholds))
        return tables, noisy.astype(np.float64)

    def _column_options(
        self, problem: Problem, view: View, shares: Sequence[Table]
    ) -> list[_Option]:
        """Columns: their error is about 0.8σ on every value that can be seen."""
        known = view.deviations if isinstance(view, Fitted) else ()
        options: list[_Option] = []
        for i, sigma in enumerate(known):
            worth: list[float] = []
            for given in range(self.units):
                before = (sigma**-2 + given * self.sigma_again**-2) ** -0.5
                after = (sigma**-2 + (given + 1) * self.sigma_again**-2) ** -0.5
                seen = float(np.minimum(1.0, problem.rows * shares[i] / before).sum())
                worth.append(_ONE_WAY * _SPARSE * self.columns[i] * seen * (before - after))
            options.append(_Option((i,), None, worth[0], tuple(worth[1:])))
        return options

    def _spend(self, gate: Gate, options: Sequence[_Option]) -> tuple[Answer, ...]:
        """All units of precision, each where it promises most after those before it."""
        queue = [(-option.worth(0), number, 0) for number, option in enumerate(options)]
        heapq.heapify(queue)
        times: dict[int, int] = {}
        for _ in range(self.units):
            if not queue:
                break
            _, number, given = queue[0]
            times[number] = given + 1
            heapq.heapreplace(queue, (-options[number].worth(given + 1), number, given + 1))
        asked = [
            (options[n].clique, options[n].labels, count) for n, count in sorted(times.items())
        ]
        return _measured(gate, self.AGAIN, asked, self.sigma_again) if asked else ()


@dataclass(frozen=True, slots=True)
class _Option:
    """A table that units may be spent on: what the first promises and, where known, the others."""

    clique: Clique
    labels: tuple[Labels, ...] | None
    first: float
    others: tuple[float, ...] | None = None

    def worth(self, given: int) -> float:
        """What one more unit promises after so many."""
        if given == 0:
            return self.first
        if self.others is None:
            return self.first * _AGAIN / (given + 1) ** 1.5
        return self.others[given - 1] if given <= len(self.others) else 0.0


def _measured(
    gate: Gate,
    purpose: str,
    asked: Sequence[tuple[Clique, tuple[Labels, ...] | None, int]],
    sigma: float,
) -> tuple[Measured, ...]:
    """Measure every table as often as asked, under one charge, and average its answers."""
    tables = [_table(clique, labels) for clique, labels, _ in asked]
    named = [
        table for table, (_, _, times) in zip(tables, asked, strict=True) for _ in range(times)
    ]
    noisy = iter(gate.ask(purpose, Marginals(named)))
    return tuple(
        Measured(
            clique,
            np.mean([next(noisy) for _ in range(times)], axis=0),
            sigma / times**0.5,
            labels,
        )
        for clique, labels, times in asked
    )


def _table(clique: Clique, labels: tuple[Labels, ...] | None) -> Clique | Coarsened:
    return clique if labels is None else Coarsened(clique, labels)

"""Measure every column and every pair, then look where the model is wrong and measure there again.

Round 0 measures all columns, round 1 all pairs of the workload's closure, whole or with neighbouring
values merged. What follows is a `Survey` (docs/methods/maxent.md) or `WorstAgain`
(docs/methods/gem.md). A table that is given k units of precision is measured k times; so the adaptive
choice is between draws of one fixed event, and the plan is accounted for exactly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Table
from understudy.models.fitting import Fitted
from understudy.models.margins import deconvolve
from understudy.models.measured import Labels, Merged, merge_all
from understudy.players.base import Answers, Kind, Measured, Problem, View, measure
from understudy.players.query.fixed import FixedMarginals, Together
from understudy.players.query.interactions import Interactions, beyond, clear
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, ThresholdedErrors, WorstMarginals
from understudy.queries import cells

# Constants chosen on ADULT and LOANS; see docs/methods/maxent.md.
_WHOLE = 12.0
_COARSE = 0.2
_RUNS = 0.1
"""Pairs of ordered columns are measured in 0.1·n/σ cells; chosen on generated tables and one of
house prices (0.05 was better on most figures of the former, and worse on the latter)."""
_SPARSE, _DENSE = 0.8, 0.3
"""A measurement with noise σ corrects what is beyond 0.8σ, the mean of |N(0, σ²)|, on a table of which
little can be seen; beyond 0.3σ where the fit can pool many visible cells."""
_AGAIN = 0.5
"""The k-th unit of precision on one table of several columns is worth 0.5/k^1.5 of the first."""
_ONE_WAY = 0.5
_FEWEST = 4.0  # Cells that are left of any table


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
class Opening:
    """Every column, then every pair; whole, or with values merged as the noise demands.

    `ordered` says how many of each column's values, the first ones, are in an order.
    """

    columns: tuple[FixedMarginals, ...]
    pairs: tuple[FixedMarginals, ...] = ()
    ordered: tuple[int, ...] = ()

    PAIRS = "pairs"

    gives = frozenset({Kind.TABLE, Kind.COARSENED})
    needs = ()

    @property
    def every_pair(self) -> tuple[Clique, ...]:
        """The pairs of all tiers."""
        return tuple(pair for tier in self.pairs for pair in tier.cliques)

    @property
    def rounds(self) -> int:
        """One-ways, and pairs where there are any."""
        return 2 if self.pairs else 1

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        if round == 0:
            return Together(self.columns).play(problem, gate, view, round)
        shares = view.marginals(problem.columns)
        answers: list[Measured] = []
        for tier in self.pairs:
            forms = self._forms(problem, tier)
            merged = merged_values(shares, tier.cliques, forms)
            asked = [(pair, own, 1) for pair, own in zip(tier.cliques, merged, strict=True)]
            answers += _measured(gate, tier.purpose, asked, tier.sigma)
        return tuple(answers)

    def _forms(self, problem: Problem, tier: FixedMarginals) -> list[Coarse | None]:
        """How coarse each pair of a tier is measured; None: whole."""
        per_cell = problem.rows / tier.sigma
        forms: list[Coarse | None] = []
        for i, j in tier.cliques:
            inner = (self.ordered[i], self.ordered[j]) if self.ordered else ()
            if problem.shape[i] * problem.shape[j] > _WHOLE * per_cell:
                forms.append(Coarse(_COARSE * per_cell))
            elif inner and min(inner) > 1:
                forms.append(Coarse(_RUNS * per_cell, inner))
            else:
                forms.append(None)
        return forms


@dataclass(frozen=True, slots=True)
class WorstAgain:
    """`first` measures columns and pairs; then `again` rounds of `picks` candidates, at `sigma`."""

    first: Opening
    candidates: tuple[Clique, ...]
    sigma: float
    picks: int
    again: int
    penalty: float

    SELECT = "select the worst"
    AGAIN = "measure the worst"

    gives = Opening.gives
    needs = ()

    @property
    def rounds(self) -> int:
        """Those of the opening, and one for every selection."""
        return self.first.rounds + (self.again if self.candidates else 0)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        if round < self.first.rounds:
            return self.first.play(problem, gate, view, round)
        references = [problem.rows * view.marginal(clique) for clique in self.candidates]
        penalties = [float(np.minimum(self.penalty * self.sigma, r).sum()) for r in references]
        numbers = gate.ask(self.SELECT, WorstMarginals(self.candidates, references, penalties))
        chosen = tuple(self.candidates[number] for number in numbers)
        return measure(gate, self.AGAIN, chosen, self.sigma)


@dataclass(frozen=True, slots=True)
class Survey:
    """`first` measures columns and pairs; then `again` rounds look, and measure again.

    Slots, levels and units are public and fixed by the plan.
    """

    first: Opening
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
    interactions: tuple[Interactions, ...] = ()
    """What is looked for outside the workload, in the last round; fewer columns first."""

    LOOK = "look for excess"
    HIGHER = "look for excess beyond pairs"
    AGAIN = "measure again"

    gives = Opening.gives
    needs = ()

    @property
    def rounds(self) -> int:
        """Those of the opening, and one for every look."""
        return self.first.rounds + self.again

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        if round < self.first.rounds:
            return self.first.play(problem, gate, view, round)
        return self._look(problem, gate, view, last=round == self.rounds - 1)

    def _look(self, problem: Problem, gate: Gate, view: View, *, last: bool) -> Answers:
        shares, tables, values = self._errors(problem, gate, view, self.LOOK, self.slots)
        worth = deconvolve(values, self.sigma_look, positive=True)[0]
        chosen: dict[Clique, tuple[float, int]] = {}
        for number, (slot, _) in enumerate(tables):
            value = slot.weight * float(worth[number])
            if value > chosen.get(slot.clique, (0.0, -1))[0]:
                chosen[slot.clique] = (value, number)
        options = [
            _Option(clique, tables[number][1], value) for clique, (value, number) in chosen.items()
        ]
        if last:
            off: dict[Clique, float] = {}
            for number, (slot, _) in enumerate(tables):
                off[slot.clique] = max(off.get(slot.clique, 0.0), float(worth[number]))
            options += self._larger_options(problem, gate, view, off)
        options += self._column_options(problem, view, shares)
        return self._spend(gate, options)

    def _larger_options(
        self, problem: Problem, gate: Gate, view: View, known: dict[Clique, float]
    ) -> list[_Option]:
        """Tables of three and more columns that show more than their parts, `known` to be off."""
        options: list[_Option] = []
        off = dict(known)
        if self.higher:
            _, found, seen = self._errors(problem, gate, view, self.HIGHER, self.higher)
            for (slot, labels), value in zip(found, seen, strict=True):
                excess = beyond(slot.clique, float(value), off)
                if clear(excess, self.sigma_higher, problem.rows):
                    options.append(_Option(slot.clique, labels, slot.weight * excess))
                    off[slot.clique] = excess
        for look in self.interactions:
            shown = look.find(problem, gate, view, self.sigma_again, off)
            for clique, excess in shown.items():
                # Once is nearly enough: what is left then is noise, far below what was found.
                noise = _DENSE * self.sigma_again * cells(problem.shape, clique)
                taken = [noise * (k**-0.5 - (k + 1) ** -0.5) for k in range(1, self.units)]
                options.append(_Option(clique, None, excess, tuple(taken)))
            off |= shown
        return options

    def _errors(
        self, problem: Problem, gate: Gate, view: View, purpose: str, slots: Sequence[Slot]
    ) -> tuple[list[Table], list[tuple[Slot, Merged]], Table]:
        """(shares of columns, slots asked for with their merged values, noisy thresholded errors)."""
        per_cell = problem.rows / self.sigma_again
        cliques = list(dict.fromkeys(slot.clique for slot in slots))
        seen = view.marginals([*problem.columns, *cliques])
        shares, whole = seen[: len(problem.shape)], seen[len(problem.shape) :]
        expected = {c: problem.rows * table for c, table in zip(cliques, whole, strict=True)}
        forms = [None if slot.cells is None else Coarse(slot.cells * per_cell) for slot in slots]
        merged = merged_values(shares, [slot.clique for slot in slots], forms)
        tables = [
            (slot, labels)
            for slot, labels in zip(slots, merged, strict=True)
            # A pair that is small enough is a slot of its own.
            if slot.cells is None or labels is not None or len(slot.clique) > 2
        ]
        references = merge_all(
            [expected[slot.clique] for slot, _ in tables], [labels for _, labels in tables]
        )
        asked = [_table(slot.clique, labels) for slot, labels in tables]
        thresholds = [(_DENSE if slot.dense else _SPARSE) * self.sigma_again for slot, _ in tables]
        noisy = gate.ask(purpose, ThresholdedErrors(asked, references, thresholds))
        return shares, tables, noisy.astype(np.float64)

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

    def _spend(self, gate: Gate, options: Sequence[_Option]) -> Answers:
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
    labels: Merged
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
    gate: Gate, purpose: str, asked: Sequence[tuple[Clique, Merged, int]], sigma: float
) -> tuple[Measured, ...]:
    """Measure every table as often as asked, under one charge, and average its answers."""
    tables = [_table(clique, labels) for clique, labels, _ in asked]
    repeated = [t for t, (_, _, times) in zip(tables, asked, strict=True) for _ in range(times)]
    noisy = iter(gate.ask(purpose, Marginals(repeated)))
    return tuple(
        Measured(
            clique,
            np.mean([next(noisy) for _ in range(times)], axis=0),
            sigma / times**0.5,
            labels,
            times,
        )
        for clique, labels, times in asked
    )


def _table(clique: Clique, labels: Merged) -> Clique | Coarsened:
    return clique if labels is None else Coarsened(clique, labels)


class Coarse(NamedTuple):
    """Of a table, about so many cells; with `ordered`, the first so many values are cut into runs."""

    cells: float
    ordered: tuple[int, ...] | None = None


def merged_values(
    shares: Sequence[Table], cliques: Sequence[Clique], wanted: Sequence[Coarse | None]
) -> list[Merged]:
    """Which values of each table are merged; None for tables that are wanted whole or small enough.

    `shares` are those of all columns.
    """
    found: list[Merged] = []
    for clique, form in zip(cliques, wanted, strict=True):
        own, labels = tuple(shares[i] for i in clique), None
        if form is not None:
            cells = max(_FEWEST, form.cells)
            inner = form.ordered
            labels = pair_labels(own, cells) if inner is None else ordered_labels(own, inner, cells)
        found.append(labels)
    return found


def pair_labels(shares: tuple[Table, ...], cells: float) -> Merged:
    """Merge columns so that their table has about `cells` cells; None where it has no more now."""
    sizes = [s.size for s in shares]
    if math.prod(sizes) <= cells:
        return None
    # Columns below the even share keep all values; the others split what is left.
    wanted = [0.0] * len(sizes)
    open_columns = list(range(len(sizes)))
    left = cells
    while open_columns:
        even = left ** (1 / len(open_columns))
        small = [i for i in open_columns if sizes[i] <= even]
        if not small:
            for i in open_columns:
                wanted[i] = even
            break
        for i in small:
            wanted[i] = sizes[i]
            left /= sizes[i]
            open_columns.remove(i)
    return tuple(adjacent(s, max(2, int(w))) for s, w in zip(shares, wanted, strict=True))


def ordered_labels(shares: tuple[Table, ...], ordered: tuple[int, ...], cells: float) -> Merged:
    """`pair_labels` of the first `ordered` values of each column; the others stay by themselves."""
    inner = tuple(s[:size] for s, size in zip(shares, ordered, strict=True))
    labels = pair_labels(inner, cells)
    if labels is None:
        return None
    return tuple(
        np.concatenate([label, label.max() + 1 + np.arange(s.size - label.size)])
        for label, s in zip(labels, shares, strict=True)
    )


def adjacent(shares: NDArray[Any], most: int) -> Labels:
    """Runs of neighbouring values of about equal mass, at most `most`; frequent values stay alone."""
    size = shares.size
    if size <= most:
        return np.arange(size)
    mass = np.maximum(shares, 0) + 1e-12
    mass = mass / mass.sum()
    bins = np.minimum(((np.cumsum(mass) - mass / 2) * most).astype(np.int64), most - 1)
    return np.unique(bins, return_inverse=True)[1].astype(np.int64)

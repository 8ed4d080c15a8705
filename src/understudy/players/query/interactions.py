"""Find dependence among three or four columns that no pair shows, outside the workload.

Of all small tables of so many columns the exponential mechanism selects a few that the model misses
most. How far those are off is then asked with Gaussian noise, so that a table is measured only where it
shows something. A candidate's score is the error that a measurement with noise σ would correct,

    ‖c − n·p‖₁ − Σ_cells min(0.8σ, n·p) − what its parts are off by,    p the data player's table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from understudy._types import Clique
from understudy.players.base import Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.questions import ThresholdedErrors, WorstMarginals

_CORRECTED = 0.8
"""A measurement with noise σ corrects what is beyond 0.8σ, the mean of |N(0, σ²)|, in a cell."""
_CLEAR = 4.0
"""Tables of three and more columns count where their excess is clear of its noise, in deviations,"""
_MATTERS = 0.05  # and where it is this share of the rows beyond that of their parts


@dataclass(frozen=True, slots=True)
class Interactions:
    """Of `candidates`, all of `order` columns, `picks` are selected; `sigma` is on their errors."""

    order: int
    candidates: tuple[Clique, ...]
    picks: int
    sigma: float

    SELECT = "select {}-way tables beyond the workload"
    LOOK = "errors of {}-way tables"

    def find(
        self, problem: Problem, gate: Gate, view: View, sigma: float, off: Mapping[Clique, float]
    ) -> dict[Clique, float]:
        """The tables that clearly show more than their parts, and how many rows they are off by.

        `sigma` is the noise of the measurement that would follow, `off` how many rows smaller tables
        are known to be off by.
        """
        select, look = self.SELECT.format(self.order), self.LOOK.format(self.order)
        expected = [problem.rows * table for table in view.marginals(self.candidates)]
        penalties = [
            float(np.minimum(_CORRECTED * sigma, table).sum()) + _parts(clique, off)
            for clique, table in zip(self.candidates, expected, strict=True)
        ]
        picked = gate.ask(select, WorstMarginals(self.candidates, expected, penalties))
        cliques = [self.candidates[number] for number in picked]
        references = [expected[number] for number in picked]
        thresholds = [_CORRECTED * sigma] * len(cliques)
        noisy = gate.ask(look, ThresholdedErrors(cliques, references, thresholds))
        excess = {c: beyond(c, float(v), off) for c, v in zip(cliques, noisy, strict=True)}
        return {c: v for c, v in excess.items() if clear(v, self.sigma, problem.rows)}


def beyond(clique: Clique, value: float, off: Mapping[Clique, float]) -> float:
    """How far a table is off beyond its parts, which will be corrected by measuring them."""
    return value - _parts(clique, off)


def clear(value: float, sigma: float, rows: float) -> bool:
    """Whether so much excess is no noise, and matters."""
    return value > max(_CLEAR * sigma, _MATTERS * rows)


def _parts(clique: Clique, off: Mapping[Clique, float]) -> float:
    smaller = (part for k in range(2, len(clique)) for part in combinations(clique, k))
    return sum(off.get(part, 0.0) for part in smaller)

"""Cells of past picks, asked again: coins for rejection sampling, and what they paid.

**Coins.** A coin of a query with score s (in rows; a neighbour moves it by 1) comes up with probability

    p = exp(−γ − (n − s)₊/B) ≤ e^{−γ}.

Its log-odds move by at most 1/(B·(1 − e^{−γ})): d logit(p)/d ln p = 1/(1−p). The log-ratio of the two
outcomes between neighbours has exactly that range, so the coin is a selection between two candidates,
and is drawn and charged as one: the larger of the integers +h and −h under Gumbel(b) noise, 2h the
log-odds in units of b. Each of the two moves by `UNIT` at b = `rejection_scale`, and by one more as h
is rounded: `Selection(rejection_scale(B, γ), SCORE_SENSITIVITY)` covers it. Bounded range gives

    ρ = 1/(8·B²·(1 − e^{−γ})²) a coin,

a quarter of 1/(2γ²B²), the square of the pure ε = 1/(γB) over two, where γ is small.

**Payoff.** Σ_t s_t·(c_t − ref_t) over T cells and their sides, with Laplace noise. References are
public and rounded to 1/65536 row. A row that comes, goes or is replaced moves every count by at most 1,
so the sum moves by at most T rows: l1 = 65536·T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_ROWS, UNIT, clipped
from understudy.privacy.cost import Laplace, Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added, bernoulli
from understudy.privacy.questions.requests import (
    Cell,
    Codes,
    require_cells,
    require_numbered,
    require_records,
    require_rows,
    require_sides,
)

# Below it, log-odds would pass what float64 resolves.
_STEEPEST = 2.0**-20
_MOST = 2**62


def rejection_scale(scale: float, gamma: float) -> float:
    """The Gumbel scale at which each of a coin's two integers moves by `UNIT`."""
    return 2.0 * UNIT * scale * -math.expm1(-gamma)


def covered(sensitivity: int, drawn: float, scale: float, gamma: float) -> bool:
    """Whether a coin's integers, made for noise of scale `drawn`, move by at most `sensitivity`.

    Up to twice `UNIT`: integers are then below 2^51, where float64 is within a quarter of them.
    """
    return (
        UNIT * (drawn / rejection_scale(scale, gamma)) * (1 + 1e-9) + 2 <= sensitivity <= 2 * UNIT
    )


def half_log_odds(scores: Whole, rows: int, scale: float, gamma: float, drawn: float) -> Floats:
    """h of every coin, rounded; `scores` in units of 1/`UNIT` row."""
    minus_log = gamma + np.maximum(UNIT * rows - scores, 0) / (UNIT * scale)
    logit = -(minus_log + np.log(-np.expm1(-minus_log)))
    return np.rint(drawn * logit / 2)


@dataclass(frozen=True, slots=True, eq=False)
class BernoulliRejection:
    """One coin for each of `cells` with its side; B = `scale` in rows, n = `rows`.

    s is a query's score as in `PickedCells`, against these `records`.
    """

    cliques: Sequence[Clique]
    cells: Sequence[Cell]
    records: Sequence[Codes]
    rows: int
    scale: float
    gamma: float

    mechanism = staticmethod(bernoulli)

    def need(self, facts: Facts) -> Need:
        """A selection between two candidates for each coin."""
        require_numbered(self.cliques, facts)
        require_cells(self.cliques, self.cells, facts)
        require_sides(self.cells)
        require_records(self.records, facts)
        require_rows(self.rows)
        low, high = _STEEPEST, MOST_ROWS
        if not (
            low <= self.gamma and low <= self.scale and self.scale * max(1, self.gamma) <= high
        ):
            raise PrivacyError(
                f"scale = {self.scale} and gamma = {self.gamma} must be above 0, 2^-20 at least, "
                f"and scale times gamma at most 2^33 rows"
            )
        return Need(
            (Selection,),
            lambda e: (
                len(self.cells) <= e.k and covered(e.sensitivity, e.scale, self.scale, self.gamma)
            ),
            f"{len(self.cells)} coins with scale = {self.scale:g} rows and gamma = {self.gamma:g}",
            (len(self.cells),),
        )

    def exact(self, rows: Tables, event: Selection) -> Whole:
        """h of every coin."""
        codes = require_records(self.records, rows.facts)
        of, numbers, sides, counts = _counted(self.cliques, self.cells, rows)
        packed = rows.packed(self.cliques, codes)
        inside = (packed[:, of] == numbers).sum(axis=0)
        expected = np.rint(UNIT * self.rows * (inside / codes.shape[1])).astype(np.int64)
        odds = half_log_odds(
            sides * (UNIT * counts - expected), self.rows, self.scale, self.gamma, event.scale
        )
        # Kept inside the integers by clipping, which moves no two values apart; an error here would
        # depend on private counts.
        return np.clip(odds, -(2.0**61), 2.0**61).astype(np.int64)

    def decode(self, drawn: Whole, facts: Facts) -> tuple[bool, ...]:
        """Whether each came up."""
        return tuple(bool(each) for each in drawn)


@dataclass(frozen=True, slots=True)
class Payoff:
    """The noisy sum over `cells`, in rows."""

    cliques: Sequence[Clique]
    cells: Sequence[Cell]
    expected: Sequence[float]

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """T rows."""
        require_numbered(self.cliques, facts)
        require_cells(self.cliques, self.cells, facts)
        require_sides(self.cells)
        count, references = len(self.cells), np.asarray(self.expected, np.float64)
        if references.shape != (count,) or not count:
            raise PrivacyError(f"{count} cells need as many expected counts, and one at least")
        if not np.isfinite(references).all() or np.abs(references).max() > MOST_ROWS:
            raise PrivacyError("an expected count is not finite or too large")
        return Need(
            (Laplace,),
            lambda e: e.l1 >= UNIT * count,
            f"the payoff of {count} cells, which moves by {count} rows",
            (1,),
        )

    def exact(self, rows: Tables, event: Laplace) -> Whole:
        """In units of 1/65536 row."""
        *_, sides, counts = _counted(self.cliques, self.cells, rows)
        gaps = UNIT * counts - np.rint(UNIT * np.asarray(self.expected)).astype(np.int64)
        # Cut off where 64 bits end, which moves no two sums apart.
        total = sum((sides * gaps).tolist())
        return np.array([max(-_MOST, min(_MOST, total))], np.int64)

    def decode(self, drawn: Whole, facts: Facts) -> float:
        """In rows."""
        return float(drawn[0]) / UNIT


def _counted(
    cliques: Sequence[Clique], cells: Sequence[Cell], rows: Tables
) -> tuple[Whole, Whole, Whole, Whole]:
    """(marginal, number in it in C order, side, exact count) of every cell."""
    places = []
    for cell in cells:
        place = 0  # in Python's numbers: marginals may pass what NumPy can index
        for column, code in zip(cliques[cell.marginal], cell.index, strict=True):
            place = place * rows.shape[column] + int(code)
        places.append(place)
    occupied, of = rows.occupied(cliques), np.array([cell.marginal for cell in cells], np.int64)
    numbers = np.array(places, np.int64)
    counts = clipped(occupied.at(numbers + np.array(occupied.offsets[:-1], np.int64)[of]))
    return of, numbers, np.array([cell.sign for cell in cells], np.int64), counts

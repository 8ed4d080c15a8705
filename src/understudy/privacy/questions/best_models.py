"""The k of some public models that fit the rows best, by one-shot Gumbel top-k, in order.

A row is held out by a coin that belongs to it alone, so a neighbour changes one row of one of the two
parts, whichever way rows are numbered; training and selection are charged one after the other all the
same. Scores come in three kinds, whole numbers that a neighbour moves by `Models.SENSITIVITY` at most:

* **a task**: scorers are public functions of the held-out rows with a *declared* sensitivity Δ, for
  instance the number of right predictions (Δ = 1, under both relations). A score is ⌊256·value/Δ⌉, so
  it moves by 256 and one for rounding. That Δ holds is the declarer's word; for counts of rows it is
  a fact.
* **costs**: minus Σ over the held-out rows of ⌊256·min(1, cost/Δ)⌉ with cost(x) = min_k Σ_i T_i[x_i, k]
  ≥ 0, T the model's public tables: for squared distances to centres the cost of k-means, which the
  box's diameter bounds, Δ = diam². Δ needs no one's word: what a row adds is cut off there, so it is a
  whole number from 0 to 256, and a row that comes, goes or is replaced moves the sum by 256 at most.
  It is found from that row alone, by sums in one order, so the others do not touch it.
* **Jensen-Shannon**: minus the mean over marginals of JS(p, q) in nats, p = counts/N with the public N,
  q the model's. With f(p) = ½[p·ln(2p/(p+q)) + q·ln(2q/(p+q))], f' = ½ ln(2p/(p+q)) ≤ ½ ln 2 and
  ∫_0^{1/N} f' ≥ −(ln N + 1 + 1/N − ln 2)/(2N), so that a row that comes or goes moves JS by at most
  Δ = (ln N + 1 + 1/N − ln 2)/(2N), and a replacement by (ln N + 1 + 1/N)/(2N). The mean moves no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.questions.requests import (
    Positions,
    require_cliques,
    require_rows,
    require_rows_at_hand,
    selection,
)
from understudy.privacy.relation import Relation

Scorer = Callable[[NDArray[Any]], float]
"""A public function of rows of codes (h, d)."""

_GRID = 256
_LARGEST = 2.0**52


@dataclass(frozen=True, eq=False)
class Models:
    """Candidates: scorers and their sensitivity, or one list per model: tables of shares or of costs.

    Costs are (values, choices) for every column; `sensitivity` is what one row costs at most.
    """

    scorers: tuple[Scorer, ...] | None = None
    sensitivity: float = 1.0
    cliques: tuple[tuple[int, ...], ...] = ()
    tables: tuple[tuple[Floats, ...], ...] = ()
    costs: tuple[tuple[Floats, ...], ...] = ()

    SENSITIVITY: ClassVar[int] = _GRID + 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", float(self.sensitivity))
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise PrivacyError(f"sensitivity = {self.sensitivity} must be finite and above 0")
        if sum(map(bool, (self.scorers, self.tables, self.costs))) != 1:
            raise PrivacyError("models need one kind of score: scorers, tables or costs")
        if any(len(each) != len(self.cliques) for each in self.tables):
            raise PrivacyError("models need one table per clique each")
        object.__setattr__(self, "tables", _kept(self.tables, 1 + 1e-9))
        object.__setattr__(self, "costs", _kept(self.costs, _LARGEST))

    @property
    def size(self) -> int:
        """How many candidates."""
        return len(self.scorers or self.tables or self.costs)


def _kept(tables: Sequence[Sequence[Any]], most: float) -> tuple[tuple[Any, ...], ...]:
    """Copies that nobody can write to, of shares or costs: what a row moves holds for these alone."""
    kept = tuple(tuple(np.array(table, np.float64) for table in each) for each in tables)
    for table in (table for each in kept for table in each):
        table.setflags(write=False)
        if not ((table >= 0) & (table <= most)).all():
            raise PrivacyError("a model's tables must hold shares from 0 to 1, or costs from 0")
    return kept


def jensen_shannon_step(rows: int, relation: Relation) -> float:
    """How far a neighbour moves the Jensen-Shannon divergence of a histogram over `rows`, in nats."""
    n = max(1, rows)
    whole = (math.log(n) + 1 + 1 / n) / (2 * n)
    return whole if relation is Relation.REPLACE else whole - math.log(2) / (2 * n)


def divergence_scores(
    models: Models, exact: Sequence[Whole], rows: int, relation: Relation
) -> Whole:
    """⌊−256·JS/Δ⌉ of every model, JS the mean over the cliques."""
    step = jensen_shannon_step(rows, relation)
    n = max(1, rows)
    values = [
        -np.mean([_divergence(counts / n, q) for counts, q in zip(exact, each, strict=True)]) / step
        for each in models.tables
    ]
    return _on_grid(np.array(values, dtype=np.float64))


def _divergence(p: Floats, q: Floats) -> float:
    if p.shape != q.shape:
        raise PrivacyError(f"a model's table has shape {q.shape}, not {p.shape}")
    middle = p + q
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(p > 0, p * np.log(2 * p / middle), 0.0)
        other = np.where(q > 0, q * np.log(2 * q / middle), 0.0)
    return float(one.sum() + other.sum()) / 2


def cost_scores(models: Models, rows: NDArray[Any]) -> Whole:
    """−Σ over rows of ⌊256·min(1, cost/Δ)⌉ for every model."""
    scores: list[int] = []
    for each in models.costs:
        total = np.zeros((len(rows), each[0].shape[1]))
        for i, table in enumerate(each):
            total += table[rows[:, i]]
        with np.errstate(over="ignore"):  # a warning would tell of a row
            share = np.minimum(total.min(axis=1) / models.sensitivity, 1.0)
        scores.append(-int(np.rint(_GRID * share).astype(np.int64).sum()))
    return np.array(scores, np.int64)


def _on_grid(values: Floats) -> Whole:
    """⌊256·value⌉; what is no number counts as the worst."""
    bounded = np.nan_to_num(values * _GRID, nan=-_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)
    return np.rint(np.clip(bounded, -_LARGEST, _LARGEST)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class BestModels(Positions):
    """Positions among `models`; `rows` is the public number of rows."""

    models: Models
    rows: int
    held_out: float = 0.0

    def need(self, facts: Facts) -> Need:
        """`Models.SENSITIVITY` for every score."""
        if type(self.models) is not Models:  # a subclass might score otherwise
            raise PrivacyError(f"models must come as Models, got {type(self.models).__name__}")
        if self.models.tables:
            require_rows(self.rows)
            require_cliques(self.models.cliques, facts)
        else:
            require_rows_at_hand(facts)
        for each in self.models.costs:
            _require_costs(each, facts)
        size, moves = self.models.size, Models.SENSITIVITY
        return selection(moves, size, f"{size} models, whose scores move by {moves} units", size)

    def exact(self, rows: Tables, event: Selection) -> Whole:
        """One score for each model."""
        if self.models.tables:
            tables = rows.marginals(self.models.cliques)
            return divergence_scores(self.models, tables, self.rows, rows.facts.relation)
        held = rows.records(self.held_out, inside=True)
        if self.models.scorers:
            values = [float(score(held.copy())) for score in self.models.scorers]
            return _on_grid(np.array(values) / self.models.sensitivity)
        return cost_scores(self.models, held)


def _require_costs(each: Sequence[Floats], facts: Facts) -> None:
    """One table per column, with as many values; all with the same number of choices."""
    sizes = tuple(table.shape[0] if table.ndim == 2 else 0 for table in each)
    if sizes != facts.shape or len({table.shape[1] for table in each}) != 1 or not each[0].size:
        raise PrivacyError(f"a model's costs have {sizes} values, the columns {facts.shape}")

"""A data player that holds weighted records fitted to everything measured so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from understudy._types import Clique, Rng
from understudy.models import Measured, Weighted
from understudy.models.fitting import Effort, Fitted, fit, independent
from understudy.models.margins import Told
from understudy.players.base import Answers, DataPlayer, Kind, Problem
from understudy.progress import passes, silent

State = tuple[tuple[Measured, ...], int]

_LEAST = 20_000
_FURTHER = 4
_TREE_SWEEPS = 5
"""Of the tree of a model that only says where to measure; ten are no nearer (generated tables)."""
_ENTRIES = 200_000_000  # Records times columns that are held in memory


@dataclass(frozen=True, slots=True)
class Particles(DataPlayer[State]):
    """Regularised maximum entropy (`understudy.models.fitting`) on at most `records` records.

    While the game goes on, a model a quarter as large says where to measure.
    Deterministic given the answers and the key that the first round draws.
    """

    records: int = 200_000
    tree_cells: int = 300_000
    sweeps: int = 4
    ordered: tuple[int, ...] = ()
    """How many of each column's values, the first ones, are in an order; empty: none of any."""
    twins: tuple[Clique, ...] = ()
    """Columns of a child with the same of a sibling, whose last value says that there is none."""
    told: tuple[Told, ...] = ()
    """Of each column's first values, what was counted before the game."""

    accepts = frozenset({Kind.TABLE, Kind.COARSENED})
    shows = Fitted

    def start(self, problem: Problem) -> State:
        """Nothing measured: uniform."""
        return (), 0

    def view(self, problem: Problem, state: State) -> Fitted:
        """The current model; independent columns until more than columns was measured."""
        measured, key = state
        if all(len(m.clique) < 2 for m in measured):
            return independent(problem.shape, measured, problem.rows, self.told, problem.rows_sigma)
        records = self.size(problem.rows, len(problem.shape)) // 4
        effort = Effort(records, self.tree_cells // 4, _TREE_SWEEPS, self.sweeps // 2 + 1)
        return self._fit(problem, measured, key, effort)

    def respond(self, problem: Problem, state: State, answers: Answers, rng: Rng) -> State:
        """Add the answers."""
        fresh = tuple(answer for answer in answers if isinstance(answer, Measured))
        return state[0] + fresh, int(rng.integers(2**62))

    def finish(self, problem: Problem, state: State) -> Weighted:
        """The final fit, with all records."""
        measured, key = state
        size = self.size(problem.rows, len(problem.shape))
        # Records that rules have moved are no longer the tree's: weights have further to go.
        sweeps = self.sweeps * (_FURTHER if problem.project is not None else 1)
        effort = Effort(size, self.tree_cells, sweeps=sweeps)
        fitted = self._fit(problem, measured, key, effort)
        assert fitted.model is not None
        return replace(fitted.model, cliques=problem.cliques)

    def size(self, rows: int, columns: int) -> int:
        """How many records: eight for a row, fewer where so many columns would not fit in memory.

        Twice as many of families, for mostly only some have siblings.
        """
        most = self.records * (2 if self.twins else 1)
        return max(_LEAST, min(most, 8 * rows, _ENTRIES // max(columns, 1)))

    def _fit(
        self, problem: Problem, measured: tuple[Measured, ...], key: int, effort: Effort
    ) -> Fitted:
        if problem.watch is not silent:
            effort = replace(effort, tell=passes(problem.watch))
        rng, shape, rows = np.random.default_rng(key), problem.shape, problem.rows
        known = problem.project, self.ordered, self.twins, self.told, problem.rows_sigma
        return fit(shape, measured, rows, effort, rng, *known)

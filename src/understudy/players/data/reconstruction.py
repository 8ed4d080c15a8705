"""Least squares over all measured marginals, and a distribution whose marginals come close to it.

The least-squares reconstruction of every marginal in the closure of the workload
(`understudy.models.residual`) is consistent and unbiased but negative in places. So weights on points
are fitted marginal by marginal, large ones first: a reconstructed table y with standard error σ and the
current table b are replaced by the table m of n rows in all with

    m + (σ²/κ)·(ln(m/b) − ν) = y,    Σ m = n,

the minimiser of ‖m − y‖²/(2σ²) + KL(m‖b)/κ, which is positive and follows noise as little as the spread
of y − b says (κ, by empirical Bayes). Points are the whole universe where it is small, and otherwise a
sample of a tree of the strongest pairs, drawn once more, with its weights, into equal records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Rng, Table
from understudy.models import Decomposable, Empirical, Measured, simplex
from understudy.models.residual import cell_variance, closure, reconstruct
from understudy.players.base import Answers, DataPlayer, Kind, Problem

Codes = Sequence[NDArray[np.integer]]
Target = tuple[Clique, Table, float]
State = tuple[tuple[Measured, ...], Decomposable | Empirical]

_MOST_RECORDS = 1_000_000
# Of the tree that points are drawn from, what is independent columns: no cell goes without points.
_MIXED_IN = 0.05
# A cell with less than this share of the points' weight has no say and no point to move.
_TINY = 1e-12
_NEWTON = 60


def maximal(cliques: Sequence[Clique], columns: int) -> tuple[Clique, ...]:
    """The cliques that no other holds, and a clique of its own for every column outside of all."""
    held = {part for clique in cliques for part in closure([clique]) if part != clique}
    seen = {i for clique in cliques for i in clique}
    kept = [clique for clique in dict.fromkeys(cliques) if clique not in held]
    return (*kept, *((i,) for i in range(columns) if i not in seen))


@dataclass(frozen=True, slots=True)
class Reconstruction(DataPlayer[State]):
    """`enumerate_up_to` possible rows the universe is fitted itself; otherwise `points` are drawn."""

    sweeps: int = 15
    points: int = 200_000
    enumerate_up_to: int = 200_000

    accepts = frozenset({Kind.TABLE})
    shows = Decomposable

    def start(self, problem: Problem) -> State:
        """Uniform."""
        return (), Decomposable.independent(problem.uniform)

    def view(self, problem: Problem, state: State) -> Decomposable | Empirical:
        """The current model."""
        return state[1]

    def respond(self, problem: Problem, state: State, answers: Answers, rng: Rng) -> State:
        """Add the tables and fit again."""
        fresh = tuple(answer for answer in answers if isinstance(answer, Measured))
        if not fresh:
            return state
        measured = state[0] + fresh
        return measured, self._fit(problem, measured, rng)

    def finish(self, problem: Problem, state: State) -> Decomposable | Empirical:
        """The current model."""
        return state[1]

    def _fit(
        self, problem: Problem, measured: tuple[Measured, ...], rng: Rng
    ) -> Decomposable | Empirical:
        shape, total = problem.shape, max(problem.rows, 1)
        known = set(closure([m.clique for m in measured]))
        wanted = [c for c in closure(maximal(problem.cliques, len(shape))) if c and c in known]
        if not wanted:  # the game measured other things than the workload: fit what there is
            wanted = [c for c in known if c]
        wanted = sorted(wanted, key=lambda c: (-len(c), c))
        tables = reconstruct(shape, measured, wanted)
        errors = [math.sqrt(v) for v in cell_variance(shape, _pooled(measured), wanted)]
        targets = list(zip(wanted, tables, errors, strict=True))
        if math.prod(shape) <= self.enumerate_up_to:
            codes: Codes = [axis.reshape(-1) for axis in np.indices(shape)]
            weights = self._weights(shape, codes, targets, total)
            return Decomposable.joint(weights.reshape(shape))
        pairs = {c: simplex(t, total) for c, t, _ in targets if len(c) <= 2}
        codes = _tree(shape, pairs).sample(self.points, rng)
        weights = self._weights(shape, codes, targets, total)
        return _records(shape, codes, weights, min(max(total, 1_000), _MOST_RECORDS), rng)

    def _weights(
        self, shape: tuple[int, ...], codes: Codes, targets: Sequence[Target], total: int
    ) -> Table:
        """Fitted weights of the points, summing to one."""
        points = [np.asarray(column, np.int64) for column in codes]
        cells = [
            np.ravel_multi_index([points[i] for i in clique], [shape[i] for i in clique])
            for clique, _, _ in targets
        ]
        weights = np.full(codes[0].size, 1.0 / codes[0].size)
        for _ in range(self.sweeps):
            for where, (_, table, error) in zip(cells, targets, strict=True):
                current = np.bincount(where, total * weights, minlength=table.size)
                ratio = _block(table.reshape(-1), np.asarray(current, np.float64), error, total)
                weights = weights * ratio[where]
                weights /= weights.sum()
        return weights


def _block(y: Table, b: Table, sigma: float, total: float) -> Table:
    """m/b for the table m above; one where b has no mass."""
    from scipy.special import wrightomega

    inside = b > _TINY * total
    held, aim = b[inside], y[inside]
    ratio = np.ones(b.size)
    if held.size < 2 or sigma <= 0:
        return ratio
    size = held.size
    excess = float(((aim - held) ** 2).sum()) - sigma**2 * (size + math.sqrt(2 * size))
    kappa = max(min(sigma, total / size) / 5, excess / total)
    s = sigma**2 / kappa
    # m = s·ω(ln(b/s) + y/s + ν) solves the equation for a given ν. Σ m grows with ν and is convex, so
    # Newton's method from above, where the first cell alone holds all rows, comes down to the root.
    logs = np.log(held / s) + aim / s
    nu = math.log(total / s) + total / s - float(logs.max())
    mass = held
    for _ in range(_NEWTON):
        mass = s * wrightomega(logs + nu)
        off = float(mass.sum()) - total
        if off <= 1e-9 * total:
            break
        nu -= off / float((s * mass / (mass + s)).sum())
    ratio[inside] = mass / held
    return ratio


def _pooled(measured: Sequence[Measured]) -> dict[Clique, float]:
    precisions: dict[Clique, float] = {}
    for m in measured:
        precisions[m.clique] = precisions.get(m.clique, 0.0) + 1.0 / float(m.sigma) ** 2
    return {clique: 1.0 / precision for clique, precision in precisions.items()}


def _tree(shape: tuple[int, ...], tables: Mapping[Clique, Table]) -> Decomposable:
    """The forest of pairs of largest mutual information, with some independence mixed in."""
    pairs: dict[Clique, Table] = {
        clique: table for clique, table in tables.items() if len(clique) == 2
    }
    ones = [
        (1 - _MIXED_IN) * tables.get((i,), np.zeros(size)) + _MIXED_IN / size
        for i, size in enumerate(shape)
    ]
    ones = [table / table.sum() for table in ones]
    joined = list(range(len(shape)))
    edges: list[Clique] = []
    for edge in sorted(pairs, key=lambda pair: (-_information(pairs[pair]), pair)):
        i, j = edge
        if joined[i] != joined[j]:
            edges.append(edge)
            old, new = joined[j], joined[i]
            joined = [new if c == old else c for c in joined]
    order: list[Clique] = []
    held: list[Table] = []
    seen: set[int] = set()
    while len(seen) < len(shape):
        edge = next((e for e in edges if (e[0] in seen) != (e[1] in seen)), None)
        if edge is None:
            root = next(i for i in range(len(shape)) if i not in seen)
            order.append((root,))
            held.append(ones[root])
            seen.add(root)
            continue
        alone = np.outer(ones[edge[0]], ones[edge[1]])
        order.append(edge)
        held.append((1 - _MIXED_IN) * pairs[edge] + _MIXED_IN * alone)
        seen |= set(edge)
    return Decomposable(shape, tuple(order), tuple(held))


def _information(pair: Table) -> float:
    alone = np.outer(pair.sum(axis=1), pair.sum(axis=0))
    inside = pair > 0
    return float((pair[inside] * np.log(pair[inside] / alone[inside])).sum())


def _records(
    shape: tuple[int, ...], codes: Codes, weights: Table, number: int, rng: Rng
) -> Empirical:
    """Equally weighted records: systematic resampling along the sorted points."""
    order = np.lexsort(tuple(codes)[::-1])
    ends = np.cumsum(weights[order])
    at = (np.arange(number) + rng.random()) / number * ends[-1]
    picked = order[np.minimum(np.searchsorted(ends, at, side="right"), order.size - 1)]
    return Empirical.of(shape, np.column_stack([np.asarray(column)[picked] for column in codes]))

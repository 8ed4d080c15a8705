"""Marginals in orthogonal pieces: least squares over noisy marginals without ever writing out X.

A table over columns 1..d is the sum of its residuals, one for each set A of columns: with μ_A the
marginal on A and n_i the number of values of column i,

    r_A = Π_{i in A} (I − 11ᵀ/n_i) μ_A,      μ_S(x_S) = Σ_{A ⊆ S} r_A(x_A) / m(S∖A),

m(B) = Π_{i in B} n_i. The pieces are orthogonal, and noise that is independent and equal in all cells
of a measured marginal S stays so in each piece: from S, r_A comes with variance v_S·m(S∖A) a cell.
Hence the least-squares estimate from marginals S with variances v_S (A⁺y of the matrix mechanism, for
any strategy of marginals) is the mean by inverse variance, piece by piece,

    u_A = 1 / Σ_{S ⊇ A} 1/(v_S·m(S∖A)),

and a cell of the answer to marginal W has variance Σ_{A ⊆ W} u_A·Π_{i in A}(1 − 1/n_i)/m(W∖A)².
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from understudy._types import Floats, Whole
from understudy.models.decomposable import Clique, Table, project
from understudy.models.measured import Measured

_ITERATIONS = 300
_NEGLIGIBLE = 1e-3  # A marginal whose weight is below this part of the mean adds next to nothing


def subsets(clique: Clique) -> Iterable[Clique]:
    """All subsets, the empty one and the clique itself among them."""
    for size in range(len(clique) + 1):
        yield from combinations(clique, size)


def closure(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Every subset of every clique, small ones first."""
    found = {part for clique in cliques for part in subsets(clique)}
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def _ratio(shape: tuple[int, ...], above: Clique, below: Clique) -> int:
    return math.prod(shape[i] for i in above if i not in below)


def _precisions(shape: tuple[int, ...], variances: Mapping[Clique, float]) -> dict[Clique, float]:
    """1/u_A for every piece that some measured marginal holds."""
    precisions: dict[Clique, float] = {}
    for measured, variance in variances.items():
        for part in subsets(measured):
            each = 1.0 / (variance * _ratio(shape, measured, part))
            precisions[part] = precisions.get(part, 0.0) + each
    return precisions


def cell_variance(
    shape: tuple[int, ...], variances: Mapping[Clique, float], cliques: Sequence[Clique]
) -> list[float]:
    """The variance of a cell of each reconstructed marginal, all cells of one having the same."""
    precisions = _precisions(shape, variances)
    return [
        sum(
            math.prod(1 - 1 / shape[i] for i in part)
            / (precisions[part] * float(_ratio(shape, clique, part)) ** 2)
            for part in subsets(clique)
        )
        for clique in cliques
    ]


def reconstruct(
    shape: tuple[int, ...], measured: Sequence[Measured], cliques: Sequence[Clique]
) -> list[Table]:
    """The least-squares answers: consistent with each other, unbiased, possibly negative."""
    sums: dict[Clique, Table] = {}
    precisions: dict[Clique, float] = {}
    for m in measured:
        values = np.asarray(m.values, dtype=np.float64)
        for part in subsets(m.clique):
            each = 1.0 / (float(m.sigma) ** 2 * _ratio(shape, m.clique, part))
            table = project(m.clique, values, part) * each
            sums[part] = sums[part] + table if part in sums else table
            precisions[part] = precisions.get(part, 0.0) + each
    pieces: dict[Clique, Table] = {}
    for part, table in sums.items():
        pieces[part] = centered(np.asarray(table / precisions[part]))
    return [_assemble(shape, pieces, clique) for clique in cliques]


def centered(table: Table) -> Table:
    """The table without its mean along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _assemble(shape: tuple[int, ...], pieces: Mapping[Clique, Table], clique: Clique) -> Table:
    answer = np.zeros(tuple(shape[i] for i in clique))
    for part in subsets(clique):
        sizes = tuple(shape[i] if i in part else 1 for i in clique)
        answer += pieces[part].reshape(sizes) / _ratio(shape, clique, part)
    return answer


# --- which marginals to measure, and how well ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strategy:
    """Marginals to measure, in a few levels; all of a level share its noise.

    `shares[g]` of ρ goes to level g, split evenly over `levels[g]`. `error` is the workload's squared
    error at Σ 1/v_S = 1, weighted as the workload is.
    """

    levels: tuple[tuple[Clique, ...], ...]
    shares: tuple[float, ...]
    error: float


@lru_cache(maxsize=64)
def optimise(
    shape: tuple[int, ...], cliques: tuple[Clique, ...], weights: tuple[float, ...], levels: int = 6
) -> Strategy:
    """The weights that make the workload's squared error least, over all marginals in its closure.

    With w_S = 1/v_S and Σ w_S = 1 (ρ is a multiple of Σ w_S), minimise the convex

        Σ_A c_A / Σ_{S ⊇ A} w_S/m(S∖A),   c_A = Π_{i in A}(n_i − 1)·Σ_{W ⊇ A} weight_W/m(W∖A),

    by w_S ← w_S·√g_S, g the negative gradient: a monotone algorithm for this kind of design. Then the
    weights are gathered in a few levels and optimised again, level by level, so that a plan holds a
    few different noises and not hundreds.
    """
    candidates = [part for part in closure(cliques) if part]
    number = {part: at for at, part in enumerate([(), *candidates])}
    needed = np.zeros(len(number))
    for clique, weight in zip(cliques, weights, strict=True):
        for part in subsets(clique):
            dimension = math.prod(shape[i] - 1 for i in part)
            needed[number[part]] += weight * dimension / _ratio(shape, clique, part)
    entries = [
        (number[part], at, 1.0 / _ratio(shape, clique, part))
        for at, clique in enumerate(candidates)
        for part in subsets(clique)
    ]
    pieces, owners, gains = (np.array(column) for column in zip(*entries, strict=True))

    def solve(group: Whole, groups: int) -> tuple[Floats, float]:
        """Shares of groups of candidates (−1: left out), each split evenly inside its group."""
        inside = group[owners] >= 0
        at, of = pieces[inside], group[owners[inside]]
        each = gains[inside] / np.bincount(group[group >= 0], minlength=groups)[of]
        share = np.full(groups, 1.0 / groups)
        error = math.inf
        for _ in range(_ITERATIONS):
            precision = np.bincount(at, each * share[of], minlength=needed.size)
            known = np.where(precision > 0, precision, np.inf)
            error = float((needed / known).sum())
            slope = np.bincount(of, (needed / known**2)[at] * each, minlength=groups)
            share = share * np.sqrt(slope)
            total = share.sum()
            if total <= 0:  # every answer is known without a look: one-valued columns only
                return np.full(groups, 1.0 / groups), 0.0
            share /= total
        return share, error

    every = np.arange(len(candidates))
    fine, _ = solve(every, len(candidates))
    held = {part for clique in cliques for part in subsets(clique) if part != clique}
    kept = np.array([part not in held for part in candidates])
    kept |= fine > _NEGLIGIBLE / len(candidates)
    logs = np.log(np.maximum(fine, 1e-300))
    low, high = float(logs[kept].min()), float(logs[kept].max())
    width = max((high - low) / levels, 1e-9)
    level = np.where(kept, np.minimum(((logs - low) / width).astype(np.int64), levels - 1), -1)
    used = sorted(set(level[kept].tolist()))
    renumber = {old: new for new, old in enumerate(used)}
    group = np.array([renumber.get(int(g), -1) for g in level])
    share, error = solve(group, len(used))
    share = np.maximum(share, 1e-9)
    gathered = tuple(
        tuple(part for part, g in zip(candidates, group, strict=True) if g == at)
        for at in range(len(used))
    )
    return Strategy(gathered, tuple(float(s) for s in share / share.sum()), error)

"""How values lie together inside their cells: a Gaussian copula, found from a fitted model.

Codes say in which cells the values of a row lie, not where in them. Drawn column by column, values know
nothing of each other inside cells: a row in the last cell of two areas gets any area of either. So
every ordered column is thought of as a normal score, of which a code tells the interval. The scores of
a row are correlated, and drawn given all intervals (Gibbs sampling of a truncated normal law: Geweke
1991). The rows of a cell then take its values in the order of the scores: every column keeps its
values, and every row its cells.

Correlations are those of scores drawn in this way for records of the model, again and again (stochastic
expectation and maximisation: Celeux and Diebolt 1985). Nothing but the model is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Floats, Rng, Table
from understudy.errors import InputError
from understudy.models import _kernels as kernels

MOST_COLUMNS = 64
"""Wide columns come first, then those that say most of them."""
_RELATED = 0.1  # The least correlation with a wide column at which another one is taken in
_RECORDS, _ROUNDS = 8_000, 16  # Records of the model that are looked at, and how often
_RIDGE, _LEAST_FREE = 0.01, 0.001
"""Fitted correlations are made so much smaller; then, rounded, no eigenvalue is below the second."""
_SWEEPS = 3
_ROWS = 2**15  # Rows that are drawn together


@dataclass(frozen=True, eq=False)
class Copula:
    """Columns, the normal scores at which their cells begin (but the first), and the correlations.

    Codes beyond the last cell have no place in the order.
    """

    columns: Clique
    ends: tuple[tuple[float, ...], ...]
    correlations: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.columns)
        if not 2 <= size <= MOST_COLUMNS or len(set(self.columns)) != size:
            raise InputError(f"a copula is of 2 to {MOST_COLUMNS} columns, each of them once")
        if {len(self.ends), len(self.correlations), *map(len, self.correlations)} != {size}:
            raise InputError("a copula has ends and correlations for each of its columns")
        matrix = np.array(self.correlations, np.float64)
        if not all((np.diff([-np.inf, *ends, np.inf]) > 0).all() for ends in self.ends):
            raise InputError("the ends of a copula's cells increase")
        alike = (matrix == matrix.T).all() and (np.diag(matrix) == 1).all()
        if not (alike and np.linalg.eigvalsh(matrix)[0] >= _LEAST_FREE):
            raise InputError("correlations of a copula are symmetric, definite, 1 on the diagonal")

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether columns of these sizes have all of its cells."""
        return max(self.columns) < len(shape) and all(
            len(ends) < shape[i] for i, ends in zip(self.columns, self.ends, strict=True)
        )

    def scores(self, codes: Sequence[Codes], rng: Rng) -> dict[int, Table]:
        """A number for every row of every column: inside a cell, values are to be in their order."""
        own = [codes[i] for i in self.columns]
        parts = [
            self._drawn([column[start : start + _ROWS] for column in own], rng, _SWEEPS)
            for start in range(0, len(own[0]), _ROWS)
        ]
        return dict(zip(self.columns, np.concatenate(parts, axis=1), strict=True)) if parts else {}

    def _drawn(self, codes: Sequence[Codes], rng: Rng, sweeps: int) -> Table:
        """Scores inside the intervals of the codes, a row for every column."""
        scores, lows, highs = _begun(codes, self.ends, rng)
        return _swept(scores, lows, highs, np.array(self.correlations), rng, sweeps)

    def to_json(self) -> dict[str, object]:
        """What `from_json` takes."""
        return {
            "columns": list(self.columns),
            "ends": [list(ends) for ends in self.ends],
            "correlations": [list(row) for row in self.correlations],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Copula:
        """The copula of a description."""
        return cls(
            tuple(int(i) for i in told["columns"]),
            tuple(tuple(float(end) for end in ends) for ends in told["ends"]),
            tuple(tuple(float(r) for r in row) for row in told["correlations"]),
        )


def copula_of(
    codes: Sequence[Codes],
    weights: NDArray[np.floating],
    ordered: Sequence[int],
    wide: Sequence[int],
    rng: Rng,
) -> Copula | None:
    """The copula of weighted records; None where fewer than two columns have anything to do with it.

    `ordered` says how many of each column's codes, the first ones, are in an order, and `wide` names
    the columns in which cells hold more than one value.
    """
    reached = np.cumsum(weights, dtype=np.float64)
    size = min(_RECORDS, len(reached))
    at = (np.arange(size) + 0.5) * (reached[-1] / size)
    picked = np.minimum(np.searchsorted(reached, at, side="right"), len(reached) - 1)
    ends, some, middles = {}, {}, {}
    for i, count in enumerate(ordered):
        if count < 2 and i not in wide:
            continue
        found = _ends(np.bincount(codes[i], weights, count)[:count].astype(float))
        if found is not None:
            ends[i], some[i] = found, codes[i][picked]
            middles[i] = _standard(_middles(found), some[i])
    inside = [i for i in wide if i in ends][:MOST_COLUMNS]
    related = {
        i: max((abs(float(middles[i] @ middles[j])) / size for j in inside), default=0.0)
        for i in ends
        if i not in inside
    }
    beside = sorted((i for i in related if related[i] >= _RELATED), key=lambda i: -related[i])
    columns = tuple(sorted([*inside, *beside][:MOST_COLUMNS]))
    if min(len(columns), size) < 2:
        return None
    own = [some[i] for i in columns]
    scores, lows, highs = _begun(own, [ends[i] for i in columns], rng)
    matrix = _correlations(scores)
    for _ in range(_ROUNDS):
        scores = _swept(scores, lows, highs, matrix, rng, 1)
        matrix = _correlations(scores)
    return Copula(columns, tuple(ends[i] for i in columns), tuple(map(tuple, matrix.tolist())))


def _ends(counts: Table) -> tuple[float, ...] | None:
    """The normal scores at which the cells after the first begin; None where no row is in order."""
    if not counts.sum() > 0:
        return None
    shares = np.maximum(counts / counts.sum(), 1e-6)
    score = NormalDist().inv_cdf
    found = np.round([score(at) for at in np.cumsum(shares / shares.sum())[:-1]], 6)
    return tuple(np.maximum.accumulate(found + 1e-6 * np.arange(len(found))).tolist())


def _middles(ends: Sequence[float]) -> Table:
    """The score in the middle of every cell."""
    reached = np.array([0.0, *map(NormalDist().cdf, ends), 1.0])
    return np.array([NormalDist().inv_cdf(at) for at in (reached[:-1] + reached[1:]) / 2])


def _standard(middles: Table, codes: Codes) -> Table:
    """Scores of mean 0 and variance 1 for records; the mean for those beside the order."""
    inside = codes < len(middles)
    found = np.where(inside, middles[np.minimum(codes, len(middles) - 1)], 0.0)
    found[inside] -= found[inside].mean() if inside.any() else 0.0
    return found / max(float(np.sqrt((found**2).mean())), 1e-300)


def _begun(
    codes: Sequence[Codes], ends: Sequence[Sequence[float]], rng: Rng
) -> tuple[Table, list[Table], list[Table]]:
    """Scores of every row of every column by itself, and from where to where they lie."""
    lows, highs = [], []
    for column, inner in zip(codes, ends, strict=True):
        at = np.minimum(column, len(inner) + 1).astype(np.intp)
        lows.append(np.array([-np.inf, *inner, -np.inf])[at])
        highs.append(np.array([*inner, np.inf, np.inf])[at])
    return np.stack([_inside(*pair, rng) for pair in zip(lows, highs, strict=True)]), lows, highs


def _inside(low: Table, high: Table, rng: Rng) -> Table:
    """Standard normal numbers between two ends."""
    found = rng.random(low.size)
    kernels.between(low, high, found)
    return found


def _swept(
    scores: Table,
    lows: Sequence[Table],
    highs: Sequence[Table],
    matrix: Table,
    rng: Rng,
    sweeps: int,
) -> Table:
    """The scores drawn anew so often, each given all others of its row."""
    precision = np.linalg.inv(matrix)
    for _ in range(sweeps):
        for k in range(len(scores)):
            deviation = precision[k, k] ** -0.5
            mean = scores[k] - (precision[k] @ scores) / precision[k, k]
            low, high = (lows[k] - mean) / deviation, (highs[k] - mean) / deviation
            drawn = mean + deviation * _inside(low, high, rng)
            scores[k] = np.clip(drawn, lows[k], highs[k])
    return scores


def _correlations(scores: Table) -> Floats:
    """Of the scores, a little nearer to none, and rounded."""
    apart = scores - scores.mean(axis=1, keepdims=True)
    sums = np.einsum("ir,jr->ij", apart, apart)  # BLAS would wake threads that wait at full speed
    spread = np.sqrt(np.diag(sums))
    matrix = np.round((1 - _RIDGE) * sums / np.multiply.outer(spread, spread), 4)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    return matrix

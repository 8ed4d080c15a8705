"""Sums of functions of tables' cells that come near to given functions of points, by least squares.

    x = argmin  Σ_t penalty_t·‖x_t‖²  +  Σ_p weight(p)·(target(p) − Σ_t x_t[cell of p in t])²

Tables overlap: what depends on one column alone can be said by every table that has it, and which of
them says it costs next to nothing. Plain conjugate gradients take hundreds of steps to find out. Here
two parts are solved for exactly in every step: a function of one column for each table that has it, and
the cells that tables tell most of; where these are all cells, that is the solution. Steps are of single
precision: what they are to find is rougher by far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.compiled import kernel

_STEPS = 10
"""At most. Any weights are valid; on the demo 60 steps narrow intervals by half a per cent."""
_SAFE = 1e-8
"""Of its diagonal, what is added to the matrix of parts: of a table's two parts, constants are one."""

_WHOLE, _PART = 1_500, 1_000
"""Cells of all tables together up to which all are solved for exactly, and how many are otherwise."""

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Feature:
    """What tables tell apart of one column: the value of every point, and how many there are."""

    values: NDArray[np.int64]
    size: int


@dataclass(frozen=True, eq=False)
class Ridge:
    """`tables` are given by the positions of their features, with a penalty each.

    x is found on every so many points, which stand for those between; `matrix` has all.
    """

    features: tuple[Feature, ...]
    tables: tuple[tuple[int, ...], ...]
    penalties: tuple[float, ...]
    every_weight: Floats
    every: int = 1

    @cached_property
    def weights(self) -> Floats:
        """Of the points that x is found on."""
        return self.every_weight[:: self.every] * self.every

    @cached_property
    def sizes(self) -> list[int]:
        """The cells of each table."""
        return [prod(self.features[f].size for f in table) for table in self.tables]

    @cached_property
    def matrix(self) -> Any:
        """One row for each point, one column for each cell of each table."""
        return _indicators(self._cells, sum(self.sizes))

    @cached_property
    def _cells(self) -> NDArray[np.int32]:
        """The columns of the matrix that are one, for every point."""
        held, start = np.zeros((len(self.every_weight), len(self.tables)), np.int32), 0
        for k, (table, size) in enumerate(zip(self.tables, self.sizes, strict=True)):
            for f in table:
                held[:, k] = held[:, k] * self.features[f].size + self.features[f].values
            held[:, k] += start
            start += size
        return held

    @cached_property
    def _few(self) -> NDArray[np.int32]:
        return np.ascontiguousarray(self._cells[:: self.every])

    @cached_property
    def _direct(self) -> tuple[NDArray[np.int64], Singles]:
        """The cells that tables tell most of, and their factored matrix."""
        from scipy.linalg import cholesky

        mass = self._across @ self.weights
        most = _WHOLE if len(mass) <= _WHOLE else _PART
        told = np.argsort(-mass / np.maximum(self.penalty, 1e-300), kind="stable")
        chosen = np.sort(told[:most])
        place = np.full(len(mass), -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        whole = np.zeros((len(chosen),) * 2)
        _gram(place[self._few], self.weights, whole)
        at = np.diag_indices(len(whole))
        whole[at] += self.penalty[chosen]
        whole[at] += _SAFE * (whole[at] + float(whole[at].mean())) + 1e-300
        # Only the half that is used was filled.
        factor = cholesky(whole, lower=True, overwrite_a=True, check_finite=False)
        return chosen, factor.astype(np.float32)

    @cached_property
    def penalty(self) -> Floats:
        """Of every cell."""
        return np.repeat(self.penalties, self.sizes)

    @cached_property
    def _across(self) -> Any:
        return _indicators(self._few, sum(self.sizes)).T.tocsr()

    @cached_property
    def _single(self) -> tuple[Singles, Singles, Singles]:
        """In single precision: the weights of points, penalties of cells, and 1/diagonal."""
        scale = 1 / np.maximum(self.penalty + self._across @ self.weights, 1e-300)
        held = self.weights, self.penalty[:, None], scale[:, None]
        weights, penalty, scale = (each.astype(np.float32) for each in held)
        return weights, penalty, scale

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        """(from functions of one column to cells, its transpose, the factored matrix of them).

        One function for each column of each table. Those of the same feature are the same function of
        points, so that two features together are all that is counted.
        """
        from scipy import sparse
        from scipy.linalg import cho_factor

        starts = np.concatenate([[0], np.cumsum([feature.size for feature in self.features])])
        rows, columns, same, width, begin = [], [], [], 0, 0
        for table, size in zip(self.tables, self.sizes, strict=True):
            places = np.indices([self.features[f].size for f in table]).reshape(len(table), -1)
            for f, place in zip(table, places, strict=True):
                rows.append(begin + np.arange(size))
                columns.append(width + place)
                same.append(starts[f] + np.arange(self.features[f].size))
                width += self.features[f].size
            begin += size
        at = np.concatenate(rows), np.concatenate(columns)
        onto = sparse.csr_array((np.ones(len(at[0])), at), shape=(begin, width))
        codes = [
            f.values[:: self.every] + start for f, start in zip(self.features, starts, strict=False)
        ]
        each = _indicators(np.stack(codes, axis=1).astype(np.int32), int(starts[-1]))
        counts = (each.T.tocsr() @ _scaled(each, self.weights)).toarray()
        of = np.concatenate(same)
        whole = counts[np.ix_(of, of)] + (onto.T @ _scaled(onto, self.penalty)).toarray()
        whole[np.diag_indices(width)] *= 1 + _SAFE
        whole[np.diag_indices(width)] += _SAFE * float(np.diag(whole).mean()) + 1e-300
        factor, lower = cho_factor(whole, check_finite=False, overwrite_a=True)
        onto = onto.astype(np.float32)
        return onto, onto.T.tocsr(), (factor.astype(np.float32), lower)

    def _eased(self, left: Singles) -> Singles:
        """About the solution for what is left: one cell or many, and all functions of one column."""
        from scipy.linalg import cho_solve

        chosen, direct = self._direct
        eased = self._single[2] * left
        eased[chosen] = cho_solve((direct, True), left[chosen], check_finite=False)
        if len(chosen) == len(left):
            return eased
        onto, back, factored = self._parts
        return eased + onto @ cho_solve(factored, back @ left, check_finite=False)

    def _applied(self, x: Singles) -> Singles:
        weights, penalty, _ = self._single
        x = np.ascontiguousarray(x)
        out = penalty * x
        _crossed(self._few, weights, x, out, np.empty(x.shape[1], np.float32))
        return out

    def solved(self, target: Floats, near: Floats, start: Floats | None = None) -> Floats:
        """x for each column of `target`, by conjugate gradients.

        The sum that x makes least is about `near`² above its least value, one for each column.
        """
        wanted = (self._across @ (self.weights[:, None] * target[:: self.every])).astype(np.float32)
        found = np.zeros_like(wanted) if start is None else start.astype(np.float32)
        enough = np.maximum(near**2, 1e-300)
        left = wanted if start is None else wanted - self._applied(found)
        eased = self._eased(left)
        live, along, size = np.arange(wanted.shape[1]), eased, np.sum(left * eased, axis=0)
        for _ in range(_STEPS):
            far = size > enough[live]
            if not far.all():
                live, size = live[far], size[far]
                left, along = (each[:, far].copy("C") for each in (left, along))
            if not live.size:
                break
            moved = self._applied(along)
            curve = np.sum(along * moved, axis=0)
            step = np.divide(size, curve, out=np.zeros_like(size), where=curve > 0)
            found[:, live] += step * along
            left = left - step * moved
            eased = self._eased(left)
            before, size = size, np.sum(left * eased, axis=0)
            along = eased + size / before * along
        return found.astype(np.float64)


def _scaled(matrix: Any, weights: Floats) -> Any:
    """Rows times weights."""
    from scipy import sparse

    data = matrix.data * np.repeat(weights, np.diff(matrix.indptr))
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _indicators(cells: NDArray[np.int32], size: int) -> Any:
    """A sparse matrix with a one in every row at each of its cells."""
    from scipy import sparse

    many, each = cells.shape
    ends = np.arange(0, many * each + 1, each, dtype=np.int32)
    return sparse.csr_array((np.ones(many * each), cells.reshape(-1), ends), shape=(many, size))


@kernel
def _crossed(cells: Any, weights: Any, x: Any, out: Any, held: Any) -> None:
    """out += Aᵀ·diag(weights)·A·x, A with ones at the cells of each row."""
    for p in range(cells.shape[0]):
        held[:] = 0.0
        for t in range(cells.shape[1]):
            row = x[cells[p, t]]
            for k in range(held.size):
                held[k] += row[k]
        for k in range(held.size):
            held[k] *= weights[p]
        for t in range(cells.shape[1]):
            row = out[cells[p, t]]
            for k in range(held.size):
                row[k] += held[k]


@kernel
def _gram(cells: Any, weights: Any, out: Any) -> None:
    """out += Aᵀ·diag(weights)·A in its lower half, A with ones at the cells of each row, which rise.

    Cells below 0 are none.
    """
    for p in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            if cells[p, t] >= 0:
                row = out[cells[p, t]]
                for u in range(t + 1):
                    if cells[p, u] >= 0:
                        row[cells[p, u]] += weights[p]

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

from understudy._types import Floats, Whole
from understudy.compiled import kernel

_STEPS = 10
"""At most. Any weights are valid; on the demo 60 steps narrow intervals by half a per cent."""
_SAFE = 1e-8
"""Of its diagonal, what is added to the matrix of parts: of a table's two parts, constants are one."""

_WHOLE, _PART = 1_500, 1_000
"""Cells of all tables together up to which all are solved for exactly, and how many are otherwise."""

_SMALL = 32  # Half the size of a triangle that is inverted at once

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Feature:
    """What tables tell apart of one column: the value of every point, and how many there are."""

    values: Whole
    size: int


@dataclass(frozen=True, eq=False)
class Ones:
    """A matrix with ones at the cells of each row, which rise; cells below 0 are none."""

    cells: NDArray[np.int32]
    size: int

    def told(self, x: Any) -> Any:
        """A·x."""
        out = np.zeros((len(self.cells), *x.shape[1:]), x.dtype)
        _told(self.cells, _wide(x), _wide(out))
        return out

    def summed(self, values: Any) -> Any:
        """Aᵀ·values."""
        out = np.zeros((self.size, *values.shape[1:]), values.dtype)
        _summed(self.cells, _wide(values), _wide(out))
        return out

    def gram(self, weights: Floats) -> Floats:
        """The lower half of Aᵀ·diag(weights)·A."""
        out = np.zeros((self.size, self.size))
        _gram(self.cells, weights, out)
        return out


def _wide(x: Any) -> Any:
    return np.ascontiguousarray(x).reshape(len(x), -1)


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
    def matrix(self) -> Ones:
        """One row for each point, one column for each cell of each table."""
        return Ones(self._cells, sum(self.sizes))

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
    def _few(self) -> Ones:
        """The same for the points that x is found on."""
        return Ones(np.ascontiguousarray(self._cells[:: self.every]), sum(self.sizes))

    @cached_property
    def _direct(self) -> tuple[Whole, Singles]:
        """The cells that tables tell most of, and the inverse factor of their matrix."""
        mass = self._few.summed(self.weights)
        most = _WHOLE if len(mass) <= _WHOLE else _PART
        told = np.argsort(-mass / np.maximum(self.penalty, 1e-300), kind="stable")
        chosen = np.sort(told[:most])
        place = np.full(len(mass), -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        whole = Ones(place[self._few.cells], len(chosen)).gram(self.weights)
        at = np.diag_indices(len(whole))
        whole[at] += self.penalty[chosen]
        whole[at] += _SAFE * (whole[at] + float(whole[at].mean())) + 1e-300
        return chosen, _inverse_factor(whole)

    @cached_property
    def penalty(self) -> Floats:
        """Of every cell."""
        return np.repeat(self.penalties, self.sizes)

    @cached_property
    def _single(self) -> tuple[Singles, Singles, Singles]:
        """In single precision: the weights of points, penalties of cells, and 1/diagonal."""
        scale = 1 / np.maximum(self.penalty + self._few.summed(self.weights), 1e-300)
        held = self.weights, self.penalty[:, None], scale[:, None]
        weights, penalty, scale = (each.astype(np.float32) for each in held)
        return weights, penalty, scale

    @cached_property
    def _parts(self) -> tuple[Ones, Singles]:
        """(from functions of one column to cells, the inverse factor of the matrix of them).

        One function for each column of each table. Those of the same feature are the same function of
        points, so that two features together are all that is counted.
        """
        starts = np.concatenate([[0], np.cumsum([feature.size for feature in self.features])])
        held, same, width, most = [], [], 0, max(map(len, self.tables))
        for table, size in zip(self.tables, self.sizes, strict=True):
            places = np.indices([self.features[f].size for f in table]).reshape(len(table), -1)
            cells = np.full((size, most), -1, np.int32)
            for k, (f, place) in enumerate(zip(table, places, strict=True)):
                cells[:, k] = width + place
                same.append(starts[f] + np.arange(self.features[f].size))
                width += self.features[f].size
            held.append(cells)
        onto = Ones(np.concatenate(held), width)
        codes = [
            f.values[:: self.every] + start for f, start in zip(self.features, starts, strict=False)
        ]
        counts = Ones(np.stack(codes, axis=1).astype(np.int32), int(starts[-1])).gram(self.weights)
        counts += np.tril(counts, -1).T
        of = np.concatenate(same)
        whole = counts[np.ix_(of, of)] + onto.gram(self.penalty)
        whole[np.diag_indices(width)] *= 1 + _SAFE
        whole[np.diag_indices(width)] += _SAFE * float(np.diag(whole).mean()) + 1e-300
        return onto, _inverse_factor(whole)

    def _eased(self, left: Singles) -> Singles:
        """About the solution for what is left: one cell or many, and all functions of one column."""
        chosen, direct = self._direct
        eased = self._single[2] * left
        eased[chosen] = direct.T @ (direct @ left[chosen])
        if len(chosen) == len(left):
            return eased
        onto, factor = self._parts
        return eased + onto.told(factor.T @ (factor @ onto.summed(left)))

    def _applied(self, x: Singles) -> Singles:
        weights, penalty, _ = self._single
        x = np.ascontiguousarray(x)
        out = penalty * x
        _crossed(self._few.cells, weights, x, out, np.empty(x.shape[1], np.float32))
        return out

    def solved(self, target: Floats, near: Floats, start: Floats | None = None) -> Floats:
        """x for each column of `target`, by conjugate gradients.

        The sum that x makes least is about `near`² above its least value, one for each column.
        """
        wanted = self._few.summed(self.weights[:, None] * target[:: self.every]).astype(np.float32)
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


def _inverse_factor(whole: Floats) -> Singles:
    """C with CᵀC = W⁻¹, W given by its lower half."""
    return _inverse(np.linalg.cholesky(whole)).astype(np.float32)


def _inverse(lower: NDArray[np.floating]) -> NDArray[np.floating]:
    """Of a lower triangle, by halves."""
    half = len(lower) // 2
    if half < _SMALL:
        return np.linalg.inv(lower)
    out = np.zeros_like(lower)
    out[:half, :half] = _inverse(lower[:half, :half])
    out[half:, half:] = _inverse(lower[half:, half:])
    out[half:, :half] = -out[half:, half:] @ (lower[half:, :half] @ out[:half, :half])
    return out


@kernel
def _told(cells: Any, x: Any, out: Any) -> None:
    """out += A·x, A with ones at the cells of each row; cells below 0 are none, here and below."""
    for p in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            if cells[p, t] >= 0:
                row = x[cells[p, t]]
                for k in range(row.size):
                    out[p, k] += row[k]


@kernel
def _summed(cells: Any, values: Any, out: Any) -> None:
    """out += Aᵀ·values."""
    for p in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            if cells[p, t] >= 0:
                row = out[cells[p, t]]
                for k in range(row.size):
                    row[k] += values[p, k]


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
    """out += Aᵀ·diag(weights)·A in its lower half, where cells rise."""
    for p in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            if cells[p, t] >= 0:
                row = out[cells[p, t]]
                for u in range(t + 1):
                    if cells[p, u] >= 0:
                        row[cells[p, u]] += weights[p]

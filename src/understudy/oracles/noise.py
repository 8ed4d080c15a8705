"""Perturbations of follow-the-perturbed-leader: <σ, onehot(x)> added to the history.

They make the data player stable against the query player. They are not privacy noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from understudy.oracles.atoms import Atoms
from understudy.oracles.history import offsets


class Law(StrEnum):
    """The law of one perturbation of scale 1: Exp(1), Laplace(1) or the standard Gumbel law."""

    EXPONENTIAL = "exponential"
    LAPLACE = "laplace"
    GUMBEL = "gumbel"

    def draw(self, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent values."""
        if self is Law.EXPONENTIAL:
            return rng.standard_exponential(size)
        return rng.laplace(size=size) if self is Law.LAPLACE else rng.gumbel(size=size)

    def draw_maxima(
        self, counts: NDArray[np.int64], rows: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Independent maxima of `counts[i]` independent values each, (rows, len(counts)).

        P(max <= t) = F(t)^m, so the maximum is the quantile of F at p = U^(1/m). With E = -ln U, which
        is Exp(1), p = exp(-E/m) and 1 - p = -expm1(-E/m), which keeps every digit when m is large.
        """
        exponent = -rng.standard_exponential((rows, len(counts))) / counts
        if self is Law.GUMBEL:
            return -np.log(-exponent)  # F(t) = exp(-exp(-t))
        upper = -np.log(-np.expm1(exponent))  # 1 - F(t) = exp(-t)
        if self is Law.EXPONENTIAL:
            return upper
        half = -np.log(2.0)  # F(t) = exp(t)/2 below zero, 1 - exp(-t)/2 above
        return np.where(exponent < half, exponent - half, upper + half)


@dataclass(frozen=True, eq=False)
class LazyNoise:
    """`rows` perturbations with independent entries of `law`, times the scale of their attribute.

    `scale` is one number, or one per attribute; 0 is no noise. Codes that no term tells apart (an atom
    of m codes) are drawn as one maximum, and which of them it is, uniformly and only if it is chosen.

    The law is the same as that of the full draw. The objective depends on the code v of an attribute
    through its atom A and through σ_v alone, so the best record with its code in A takes v* = argmax of
    σ over A, and its value depends on M = max of σ over A alone. For m independent continuous variables
    of one law, M and v* are independent, M has distribution function F^m and v* is uniform on A, by
    exchangeability; and different atoms share no σ. So (argmax, maximum) of the problem over atoms with
    M drawn from F^m, followed by a uniform v* in each chosen atom, has the law of (argmax, maximum) of
    the full problem.
    """

    law: Law
    scale: float | NDArray[np.float64] | tuple[float, ...]
    rows: int

    def scales(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """One scale per attribute."""
        return np.broadcast_to(np.asarray(self.scale, np.float64), (len(shape),))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        """The full perturbation: (rows, number of one-hot positions)."""
        scale = np.repeat(self.scales(shape), shape)
        return self.law.draw((self.rows, len(scale)), rng) * scale

    def fold(self, atoms: Atoms, rng: np.random.Generator) -> Draws:
        """The perturbation over atoms, drawn lazily."""
        values = self.law.draw((self.rows, atoms.positions), rng)
        several = np.flatnonzero(atoms.sizes > 1)
        values[:, several] = self.law.draw_maxima(atoms.sizes[several], self.rows, rng)
        values *= np.repeat(self.scales(atoms.shape), atoms.terms.shape)
        return _Lazy(atoms, values, rng)

    def part(self, rows: int) -> LazyNoise:
        """The same law for another number of rows."""
        return LazyNoise(self.law, self.scale, rows)


Noise = LazyNoise | NDArray[np.float64]
"""A law to draw from, or drawn values of shape (rows, number of one-hot positions)."""


def draws(noise: Noise, atoms: Atoms, rng: np.random.Generator) -> Draws:
    """The perturbations over atoms."""
    if isinstance(noise, LazyNoise):
        return noise.fold(atoms, rng)
    return _Full(atoms, noise)


@dataclass(frozen=True, eq=False)
class _Lazy:
    """A perturbation of every row over atoms; `values` (rows, positions) are the best within each."""

    atoms: Atoms
    values: NDArray[np.float64]
    rng: np.random.Generator

    def unfold(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Records: row j chose the atoms codes[j]; in each, the value of best perturbation."""
        chosen = codes + self.atoms.start[:-1]
        which = (self.rng.random(chosen.shape) * self.atoms.sizes[chosen]).astype(np.int64)
        return self.atoms.members[self.atoms.first[chosen] + which] - offsets(self.atoms.shape)[:-1]


@dataclass(frozen=True, eq=False)
class _Full:
    """The same of perturbations that were drawn over all one-hot positions."""

    atoms: Atoms
    full: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.float64]:
        values = np.take(self.full, self.atoms.members, axis=1)
        if (self.atoms.sizes == 1).all():
            return values
        return np.maximum.reduceat(values, self.atoms.first, axis=1)

    def unfold(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        chosen = codes + self.atoms.start[:-1]
        sizes, first = self.atoms.sizes, self.atoms.first
        positions = self.atoms.members[first[chosen]]
        for atom in np.flatnonzero(sizes > 1):
            members = self.atoms.members[first[atom] : first[atom] + sizes[atom]]
            column = np.searchsorted(self.atoms.start, atom, side="right") - 1
            rows = np.flatnonzero(chosen[:, column] == atom)
            positions[rows, column] = members[self.full[np.ix_(rows, members)].argmax(axis=1)]
        return positions - offsets(self.atoms.shape)[:-1]


Draws = _Lazy | _Full

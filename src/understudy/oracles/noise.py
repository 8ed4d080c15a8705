"""Perturbations of follow-the-perturbed-leader: <σ, onehot(x)> added to the history.

They make the data player stable against the query player. They are not privacy noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from understudy._types import Floats, Rng, Whole
from understudy.oracles.atoms import Atoms
from understudy.oracles.history import offsets


class Law(StrEnum):
    """The law of one perturbation of scale 1: Exp(1), Laplace(1) or the standard Gumbel law."""

    EXPONENTIAL = "exponential"
    LAPLACE = "laplace"
    GUMBEL = "gumbel"

    def draw(self, size: tuple[int, int], rng: Rng) -> Floats:
        """Independent values."""
        if self is Law.EXPONENTIAL:
            return rng.standard_exponential(size)
        return rng.laplace(size=size) if self is Law.LAPLACE else rng.gumbel(size=size)

    def draw_maxima(self, counts: Whole, rows: int, rng: Rng) -> Floats:
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
    scale: float | Floats | tuple[float, ...]
    rows: int

    def scales(self, shape: tuple[int, ...]) -> Floats:
        """One scale per attribute."""
        return np.broadcast_to(np.asarray(self.scale, np.float64), (len(shape),))

    def fold(self, atoms: Atoms, rng: Rng) -> Draws:
        """The perturbation over atoms, drawn lazily."""
        values = self.law.draw((self.rows, atoms.positions), rng)
        several = np.flatnonzero(atoms.sizes > 1)
        values[:, several] = self.law.draw_maxima(atoms.sizes[several], self.rows, rng)
        values *= np.repeat(self.scales(atoms.shape), atoms.terms.shape)
        return Draws(atoms, values, rng)

    def part(self, rows: range) -> LazyNoise:
        """Some of the rows."""
        return replace(self, rows=len(rows))


@dataclass(frozen=True, eq=False)
class Draws:
    """A perturbation of every row over atoms; `values` (rows, positions) are the best within each."""

    atoms: Atoms
    values: Floats
    rng: Rng

    def unfold(self, codes: Whole) -> Whole:
        """Records: row j chose the atoms codes[j]; in each, the value of best perturbation."""
        chosen = codes + self.atoms.start[:-1]
        which = (self.rng.random(chosen.shape) * self.atoms.sizes[chosen]).astype(np.int64)
        return self.atoms.members[self.atoms.first[chosen] + which] - offsets(self.atoms.shape)[:-1]

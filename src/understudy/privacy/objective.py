"""A logistic critic of private rows by objective perturbation, drawn on integers.

Features of a row are the cells of J public tables that it lies in, ψ(x) ∈ {0,1}^p with J ones, so
‖ψ‖₁ = J and ‖ψ‖₂² = J. The critic tells the n rows from public records x' of total weight W:

    F(θ) = Σ_rows ln(1 + e^{−⟨θ,ψ(x)⟩}) + Σ_records w·ln(1 + e^{⟨θ,ψ(x')⟩}) + (Δ/2)‖θ‖² + ⟨b, θ⟩.

**Guarantee.** The released θ̃ is pure ε-DP for one row (add-remove, c = 1, or replace, c = 2) with

    ε = l1/scale + ln(1 + J/(4Δ)) + output_l1/output_scale.

Proof. (1) *In real numbers.* Let b = h(Z + U), Z discrete Laplace of that scale on ℤ^p, h = 1/lattice,
U uniform on [−½, ½)^p. For every table θ ↦ b = −∇(F − ⟨b,·⟩)(θ) is a diffeomorphism, F being C² and
Δ-strongly convex, so the minimiser θ* has density f_b(b(θ))·|det ∇²F(θ)|. A neighbour moves b(θ) on at
most cJ coordinates and by at most cJ rows in L1 (a row's gradient is −σ(−⟨θ,ψ⟩)ψ), that is by
⌊·⌉-cells of L1 distance at most cJ·lattice + cJ = l1, rounding included; the noise ratio is at most
e^{l1/scale}. Hessians differ by one rank-one matrix of norm at most J/4 on either side of A ⪰ Δ·I, so
determinants differ by a factor of at most 1 + J/(4Δ). (2) *As computed.* b is taken at hZ, the solver
stops at a gradient of norm at most γ, and θ is rounded to the grid: by strong convexity the result
lies within r = (γ + h√p/2)/Δ of θ*, plus rounding. Given θ*, two tables so differ by at most
2r√p·grid + p = output_l1 on the grid in L1, which discrete Laplace noise of `output_scale` hides
(the argument of Iyengar et al. 2019 for approximate minima, with the factor 2 that published code
lacks). The two steps compose. ∎

The noise of ODO-1 is calibrated to ‖x‖_∞, to no curvature and to no swap of sums; see docs.

If the solver does not reach γ nothing is released and the charge stands. Newton's method on a strongly
convex function with backtracking on the norm of the gradient does reach it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.errors import PrivacyError
from understudy.privacy.cost import Laplace, Perturbation
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation

__all__ = [
    "PRECISION",
    "MarginalFeatures",
    "Precision",
    "Sides",
    "covers",
    "event_for",
    "perturbed",
]

Reals = NDArray[np.float64]
_STEPS, _HALVINGS = 200, 60
# Of ε, what hides the distance from the exact minimum; the rest is halved between noise and curvature.
_OUTPUT = Fraction(1, 50)


@dataclass(frozen=True, slots=True)
class Precision:
    """Public: noise comes in multiples of 1/lattice rows, weights of 1/grid; gradients end at γ."""

    lattice: int = 2**24
    grid: int = 2**30
    gamma: float = 2.0**-20


PRECISION = Precision()


@dataclass(frozen=True)
class MarginalFeatures:
    """The cells of J tables of a domain, side by side: p features, of which a row has J."""

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]

    @property
    def columns(self) -> Clique:
        """All columns that are looked at, in order."""
        return tuple(sorted({column for clique in self.cliques for column in clique}))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of every table."""
        return tuple(math.prod(self.shape[i] for i in clique) for clique in self.cliques)

    @property
    def size(self) -> int:
        """p."""
        return sum(self.sizes)

    def matrix(self, codes: Sequence[NDArray[np.integer[Any]]]) -> Any:
        """ψ of rows as a sparse matrix (rows, p); one code array for each of `columns`."""
        from scipy.sparse import csr_array

        pairs = zip(self.columns, codes, strict=True)
        at = {column: np.asarray(code, np.int64) for column, code in pairs}
        rows = len(next(iter(at.values())))
        starts = np.cumsum([0, *self.sizes])[:-1]
        places = np.empty((rows, len(self.cliques)), np.int64)
        for j, clique in enumerate(self.cliques):
            packed = np.zeros(rows, np.int64)
            for column in clique:
                packed = packed * self.shape[column] + at[column]
            places[:, j] = starts[j] + packed
        ends = np.arange(rows + 1) * len(self.cliques)
        return csr_array((np.ones(places.size), places.reshape(-1), ends), (rows, self.size))


def event_for(
    looks: MarginalFeatures, relation: Relation, epsilon: Fraction, precision: Precision = PRECISION
) -> Perturbation:
    """The least noise that costs at most a pure ε."""
    output = _OUTPUT * epsilon
    # More than a factor of 2 between determinants buys nothing that noise would not buy better.
    half = min(float(epsilon - output) / 2, math.log(2))
    moved = _moved(looks, relation, precision)
    jacobian = math.expm1(half) * (1 - 1e-12)
    left = epsilon - output - Fraction(math.log1p(jacobian) * (1 + 1e-14))
    beyond = _beyond(looks, _ridge(looks, jacobian), precision)
    return Perturbation(
        Laplace.within(left, l1=moved).scale,
        moved,
        jacobian,
        Laplace.within(output, l1=beyond).scale,
        beyond,
    )


def covers(
    event: Perturbation,
    looks: MarginalFeatures,
    relation: Relation,
    precision: Precision = PRECISION,
) -> bool:
    """Whether the event's sensitivities are those of a critic with these looks."""
    beyond = _beyond(looks, _ridge(looks, event.jacobian), precision)
    return event.l1 >= _moved(looks, relation, precision) and event.output_l1 >= beyond


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What a critic tells apart: `rows` (codes, counts) are private, `records` (codes, weights) not."""

    looks: MarginalFeatures
    rows: tuple[Sequence[NDArray[np.integer[Any]]], NDArray[np.int64]]
    records: tuple[Sequence[NDArray[np.integer[Any]]], Reals]


def perturbed(
    sides: Sides, event: Perturbation, noise: Noise, precision: Precision = PRECISION
) -> Reals:
    """θ̃ (p,), a mechanism: the gate has made the charge.

    Raises `PrivacyError`, which says nothing of the rows, if the minimum is not found.
    """
    looks = sides.looks
    drawn = noise.laplace(np.zeros(looks.size, np.int64), event.scale)
    real, counts = looks.matrix(sides.rows[0]), np.asarray(sides.rows[1], np.float64)
    fake, weights = looks.matrix(sides.records[0]), np.asarray(sides.records[1], np.float64)
    linear, ridge = drawn / precision.lattice, _ridge(looks, event.jacobian)
    theta = minimum(real, counts, fake, weights, linear, ridge, precision.gamma / 2)
    if theta is None:
        raise PrivacyError(
            "the critic's minimum was not found; nothing is released and the charge stands"
        )
    # What float64 lost along the way is far below the other half of γ. Clipping moves no two values
    # apart, and keeps an error that would depend on private rows from being raised.
    exact = np.clip(np.rint(precision.grid * theta), -(2.0**61), 2.0**61).astype(np.int64)
    return noise.laplace(exact, event.output_scale) / precision.grid


def minimum(
    real: Any,
    counts: Reals,
    fake: Any,
    weights: Reals,
    linear: Reals,
    ridge: float,
    gamma: float,
) -> Reals | None:
    """argmin F up to a gradient of norm γ, by Newton's method; None if that is not reached."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    def gradient(theta: Reals) -> tuple[Reals, Reals, Reals]:
        a, b = expit(-(real @ theta)), expit(fake @ theta)
        g = fake.T @ (weights * b) - real.T @ (counts * a) + ridge * theta + linear
        return g, a, b

    theta = np.zeros(linear.size)
    g, a, b = gradient(theta)
    for _ in range(_STEPS):
        size = float(np.linalg.norm(g))
        if size <= gamma:
            return theta
        hessian = (real.T @ (real * (counts * a * (1 - a))[:, None])).toarray()
        hessian += (fake.T @ (fake * (weights * b * (1 - b))[:, None])).toarray()
        hessian[np.diag_indices(theta.size)] += ridge
        direction = -cho_solve(cho_factor(hessian, check_finite=False), g, check_finite=False)
        step = 1.0
        for _ in range(_HALVINGS):
            moved = gradient(theta + step * direction)
            if float(np.linalg.norm(moved[0])) <= (1 - step / 4) * size:
                break
            step /= 2
        else:
            return None
        theta, (g, a, b) = theta + step * direction, moved
    return None


def _moved(looks: MarginalFeatures, relation: Relation, precision: Precision) -> int:
    """l1: cJ rows on the lattice, and one more for each of cJ coordinates that is rounded."""
    return relation.marginal_l1(len(looks.cliques)) * (precision.lattice + 1)


def _ridge(looks: MarginalFeatures, jacobian: float) -> float:
    """Δ = (J/4)/jacobian."""
    return len(looks.cliques) / 4 / jacobian


def _beyond(looks: MarginalFeatures, ridge: float, precision: Precision) -> int:
    """output_l1: twice r in L1, on the grid, and one more for each coordinate that is rounded."""
    root = math.sqrt(looks.size)
    radius = (precision.gamma + root / (2 * precision.lattice)) / ridge
    return math.ceil(2 * radius * root * precision.grid * (1 + 1e-9)) + looks.size

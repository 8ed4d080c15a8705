"""A logistic critic of private rows by objective perturbation, drawn on integers.

Features of a row are the cells of J public tables that it lies in, ψ(x) ∈ {0,1}^p with J ones, so
‖ψ‖₂² = J. The critic tells the n rows from public records x' of total weight W:

    F(θ) = Σ_rows ln(1 + e^{−⟨θ,ψ(x)⟩}) + Σ_records w·ln(1 + e^{⟨θ,ψ(x')⟩}) + (Δ/2)‖θ‖² + ⟨b, θ⟩.

**Guarantee.** With Gaussian noise of σ rows in b and κ = J/(4Δ), the released θ̃ is ρ-zCDP for one row
(add-remove, c = 1, or replace, c = 2) with

    ρ = (√(cJ/(2σ²) + 4κ²) + √(8p)/s)² + output_l2²/(2·output_sigma²),

s = σ·lattice. The first term is what a Gaussian mechanism pays for the same gradient; known bounds for
objective perturbation with Gaussian noise (Kifer, Smith and Thakurta 2012; Redberg, Koskela and Wang
2023) do not shrink like that as σ grows and so do not compose over rounds.

Proof. (1) *In real numbers.* Let F₀ = F − ⟨b, ·⟩, H = ∇²F₀ and T(θ) = −∇F₀(θ), a diffeomorphism as F₀
is C² and Δ-strongly convex. The minimiser is T⁻¹(b), so its density is P(θ) = φ(T)·det H, φ that of b.
A neighbour has F₀ + u, where u is plus the term of a row that came and minus that of one that went; its
density P' has T + g, g = −∇u, and H + E, E = ∇²u. A row's gradient is −aψ with 0 < a < 1 and its
Hessian a(1 − a)ψψᵀ, so ‖g‖² ≤ cJ =: L², as ψ ≥ 0. For α = 1 + β > 1, by completing the square,

    ∫P'^α P^{−β} ≤ e^{αβL²/2σ²}·∫φ(T + αg)·det(H + αE)·R dθ,  R = det(H + E)^α·det(H)^{−β}/det(H + αE).

T + αg is minus the gradient of F₀ + αu, whose Hessian H + αE ⪰ Δ − βJ/4 = Δ(1 − βκ) (the row that went
is once in H). Where βκ < 1 it is injective, and the integral is at most sup R = Π (1 + λ)^α/(1 + αλ)
over the eigenvalues λ of H^{−1/2}EH^{−1/2}: at most one in [0, κ], for the row that came, and one in
[−κ/(1 + κ), 0], for the one that went. d/dλ ln R = αβλ/((1 + λ)(1 + αλ)), so integrating from 0 their
logarithms are at most αβκ²/2 and αβκ²/(2(1 − βκ)). For βκ ≤ 0.8 hence D_α ≤ αL²/2σ² + 3ακ². For
βκ > 0.8: under P' the vector b' = T + g is N(0, σ²), and ln(P'/P) ≤ −⟨b', g⟩/σ² + L²/2σ² + ln(1 + κ).
−g is a convex combination of 0, ψ, −ψ' and ψ − ψ', so E e^{−β⟨b',g⟩/σ²} ≤ 4·e^{β²L²/2σ²} and
D_α ≤ αL²/2σ² + ln4/β + κ, where ln4/β + κ ≤ βκ²(ln4/0.64 + 1/0.8) ≤ 4ακ². Both ways round: P and P'
play the same part.
(2) *The lattice.* b is drawn as Z/lattice, Z discrete Gaussian with parameter s. Let U be uniform on
[−½, ½)^p. The density of a coordinate of Z + U and that of N(0, s²) have D_α ≤ 2α/s² both ways: their
ratio at k + t is e^{±(kt + t²/2)/s²} up to a theta function within e^{−2π²s²} of one; its powers,
averaged over t, are at most sinh(x)/x ≤ min(e^{x²/6}, e^{|x|}) at x = αk/2s², up to e^{α/8s²}, and the
discrete Gaussian k is sub-Gaussian (orders below 2 by monotonicity, up to s by the first bound, beyond
by the second). Square roots of ρ add along a chain of laws (Bun and Steinke 2016, Prop. 27), here by
√(2p)/s on either side.
(3) *As computed.* b is taken at Z/lattice instead of (Z + U)/lattice, the solver stops at a gradient of
norm at most γ, and θ is rounded to the grid: by strong convexity the result lies within
r = (γ + √p/(2·lattice))/Δ of the minimiser in (2), plus rounding. Given that minimiser two tables
differ by at most 2r·grid + √p = output_l2 on the grid in L2, which discrete Gaussian noise hides (the
argument of Iyengar et al. 2019 for approximate minima, with the factor 2 that published code lacks). ∎

The noise of ODO-1 is calibrated to ‖x‖_∞, to no curvature and to no swap of sums; see docs.

If the solver does not reach γ nothing is released and the charge stands. Newton's method on a strongly
convex function with backtracking on the norm of the gradient does reach it, as long as float64 can tell
γ from what it rounds off: up to 2^27 rows, records and noise, and a curvature above J/4·2^−10. Beyond,
it would depend on the rows whether a minimum is found, so such requests are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy.cost import Perturbation
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation

_STEPS, _HALVINGS = 200, 60
# Up to so many rows, records or units of noise, float64 loses far less of a gradient than half of γ,
# and up to such a jacobian nothing of what makes a Hessian positive.
MOST_ROWS, _FLATTEST = 2.0**27, 2.0**10
_OUTPUT = Fraction(1, 100)  # Of ρ, what hides the distance from the exact minimum


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
    looks: MarginalFeatures,
    relation: Relation,
    rho: Fraction,
    curvature: float = 0.05,
    precision: Precision = PRECISION,
) -> Perturbation:
    """The least noise that costs at most ρ, with a part `curvature` of it for the determinants.

    The less they get the larger Δ is, and the smaller weights and their noise are, by the same factor.
    """
    changes = relation.marginal_l2_squared(len(looks.cliques))
    whole, curved = float(rho * (1 - _OUTPUT)), float(rho) * curvature
    jacobian = math.sqrt(curved / 4)
    # √(a·x² + curved) + d·x = √whole, x = 1/σ on the lattice.
    a, d = changes * precision.lattice**2 / 2, math.sqrt(8 * looks.size)
    root = math.sqrt(whole * d * d + (a - d * d) * (whole - curved))
    sigma = (a - d * d) / (root - math.sqrt(whole) * d) * (1 + 1e-12)
    beyond = _beyond(looks, _ridge(looks, jacobian), precision)
    output = beyond / math.sqrt(2 * float(rho * _OUTPUT)) * (1 + 1e-12)
    return Perturbation(sigma, precision.lattice, changes, jacobian, looks.size, output, beyond)


def covers(
    event: Perturbation,
    looks: MarginalFeatures,
    relation: Relation,
    precision: Precision = PRECISION,
) -> bool:
    """Whether the event's sensitivities are those of a critic with these looks, within float64."""
    return (
        event.step >= precision.lattice
        and event.sigma * math.sqrt(looks.size) <= MOST_ROWS * precision.lattice
        and event.jacobian <= _FLATTEST
        and event.changes >= relation.marginal_l2_squared(len(looks.cliques))
        and event.coordinates >= looks.size
        and event.output_l2 >= _beyond(looks, _ridge(looks, event.jacobian), precision)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What a critic tells apart: `rows` (codes, counts) are private, `records` (codes, weights) not."""

    looks: MarginalFeatures
    rows: tuple[Sequence[NDArray[np.integer[Any]]], Whole]
    records: tuple[Sequence[NDArray[np.integer[Any]]], Floats]


def perturbed(
    sides: Sides, event: Perturbation, noise: Noise, precision: Precision = PRECISION
) -> Floats:
    """θ̃ (p,), a mechanism: the gate has made the charge.

    Raises `PrivacyError`, which says nothing of the rows, if the minimum is not found.
    """
    looks = sides.looks
    drawn = noise.gaussian(np.zeros(looks.size, np.int64), event.sigma)
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
    return noise.gaussian(exact, event.output_sigma) / precision.grid


def minimum(
    real: Any,
    counts: Floats,
    fake: Any,
    weights: Floats,
    linear: Floats,
    ridge: float,
    gamma: float,
) -> Floats | None:
    """argmin F up to a gradient of norm γ, by Newton's method; None if that is not reached."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    def gradient(theta: Floats) -> tuple[Floats, Floats, Floats]:
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


def _ridge(looks: MarginalFeatures, jacobian: float) -> float:
    """Δ = (J/4)/jacobian."""
    return len(looks.cliques) / 4 / jacobian


def _beyond(looks: MarginalFeatures, ridge: float, precision: Precision) -> int:
    """output_l2: twice r, on the grid, and what rounding every coordinate adds."""
    root = math.sqrt(looks.size)
    radius = (precision.gamma + root / (2 * precision.lattice)) / ridge
    return math.ceil((2 * radius * precision.grid + root) * (1 + 1e-9))

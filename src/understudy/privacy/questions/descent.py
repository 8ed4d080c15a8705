"""The questions that learning asks of private examples.

* `TargetLevels`: what all targets together say of the best constant, one sum for each output, with
  discrete Gaussian noise.
* `SteepestVertex`: where to go among the 2·K·p vertices ±e_j of an L1 ball. One exponential mechanism
  with scores ∓Σ_i r_ik·x_ij (Frank-Wolfe; Talwar-Thakurta-Zhang 2015), of all rows or of a Poisson
  sample; or the largest score after Laplace noise.
* `LinearGradient`: Σ_i r_i ⊗ x_i over a Poisson sample, every row's part clipped to L2 norm C, with
  discrete Gaussian noise on every coordinate (noisy gradient descent; Bassily-Smith-Thakurta 2014,
  Abadi et al. 2016).

**Everything is an integer.** Features are multiples of 1/16384 in [−1, 1] (`features`), residuals are
rounded to multiples of L0/65536 in [−L0, L0], so one row moves a score by at most `UNIT` = 2^30 (by
2·`UNIT` where it is replaced), and a row's part of a gradient has L2 norm at most ⌊C/L0·2^30⌋, because
residuals are shortened, towards zero, until it has. Sums of integers do not depend on the order of
rows and lose nothing to float64: these sensitivities are exact, with nothing set aside for rounding.
Weights come as integers times a public unit for the same reason: a score ⟨w, x⟩ is one exact integer
times one public number.

Unit: one row. Relations: add-remove (the released numbers are sums; their public denominator does not
move) and replace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy._types import Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy.cost import Gaussian, Laplace, SampledGaussian, SampledSelection, Selection
from understudy.privacy.exact import Learned, kernels
from understudy.privacy.features import GRID
from understudy.privacy.gate import Facts, Need
from understudy.privacy.losses import Logistic, Loss, Softmax, Squared
from understudy.privacy.mechanisms import added, top
from understudy.privacy.questions.requests import Noised, gaussian

_RESIDUALS = 2**16

UNIT = GRID * _RESIDUALS
"""How far one row moves a sum of L0-bounded gradients: 1 in units of 2^−30·L0."""

_INSIDE = 1 - 1e-6  # A hair below the norm, so that float64 cannot round a row's part beyond it

# Noise that passes 64 bits is cut off there, and of scores that meet so the first is picked: more than
# the charge covers. Up to this scale the chance of that is below e^−200.
_LARGEST_SCALE = 2.0**54


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Public weights (outputs, width): whole numbers times a unit."""

    whole: Whole
    unit: float
    start: tuple[float, ...] = ()
    """What is added to the scores of every output; nothing if empty."""

    @property
    def values(self) -> Floats:
        """The weights themselves."""
        return self.whole.astype(np.float64) * self.unit

    @property
    def added(self) -> Floats:
        """`start` as an array (outputs,)."""
        return np.array(self.start or (0.0,) * len(self.whole))


@dataclass(frozen=True, slots=True)
class Vertex:
    """A corner of the L1 ball: ± the unit vector of one output and feature."""

    output: int
    feature: int
    sign: int


def l2_units(clip: float, loss: Loss) -> int:
    """The norm to which a row's part of the gradient is clipped, in units of 2^−30·L0."""
    return max(1, math.floor(clip / loss.bound * UNIT))


@dataclass(frozen=True, slots=True, eq=False)
class TargetLevels(Noised):
    """Σ_i of the whole numbers that targets say of their scores (`losses`), one for each output.

    How far a row moves them is the loss's `moves`. Planned as a `Gaussian`.
    """

    loss: Loss

    def need(self, facts: Facts) -> Need:
        """As many numbers as outputs."""
        require_loss(self.loss)
        step, changes = self.loss.moves(facts.relation)
        words = f"levels of {self.loss.outputs} outputs, {changes} of which move by {step}"
        return gaussian(step, changes, words, self.loss.outputs)

    def exact(self, rows: Learned, event: Gaussian) -> Whole:
        """Over all rows."""
        return rows.levels(self.loss)


@dataclass(frozen=True, slots=True, eq=False)
class SteepestVertex:
    """The vertex along which the loss falls most, by the exponential mechanism or Laplace noise.

    Score of ±e_kj: ∓Σ_i r_ik·x_ij, which a row moves by at most `UNIT`. Planned as a `Selection` over
    all rows or a `SampledSelection` over a Poisson sample, or as `Laplace` over all rows, whose l1 is
    twice what a score moves: see `mechanisms.top`.
    """

    loss: Loss
    weights: Weights

    mechanism = staticmethod(top)

    def need(self, facts: Facts) -> Need:
        """One row's residual times its features."""
        require_weights(self.weights, self.loss, facts)
        most = UNIT * facts.relation.marginal_l1()

        def covers(event: Selection | SampledSelection | Laplace) -> bool:
            if isinstance(event, Laplace):
                return event.l1 >= 2 * most and event.scale <= _LARGEST_SCALE
            return event.sensitivity >= most and (not isinstance(event, Selection) or event.k == 1)

        return Need(
            (Selection, SampledSelection, Laplace),
            covers,
            f"scores of vertices, which move by {most}",
            (2 * self.loss.outputs * facts.shape[0],),
        )

    def exact(self, rows: Learned, event: Selection | SampledSelection | Laplace) -> Whole:
        """Both sides of every coordinate, from a fresh sample."""
        sample = rows.sample(event.rate if isinstance(event, SampledSelection) else 1.0)
        scores = rows.scores(self.weights.whole)[sample]
        residuals = rows.residuals(self.loss, scores, sample, self.weights.unit, self.weights.added)
        whole = np.rint(residuals * _RESIDUALS).astype(np.int64)
        falls = -kernels().sums(rows.features, sample, whole).reshape(-1)
        return np.concatenate([falls, -falls])

    def decode(self, drawn: Whole, facts: Facts) -> Vertex:
        """Output, feature and side."""
        (width,) = facts.shape
        side, place = divmod(int(drawn[0]), self.loss.outputs * width)
        output, feature = divmod(place, width)
        return Vertex(output, feature, 1 - 2 * side)


@dataclass(frozen=True, slots=True, eq=False)
class LinearGradient:
    """Σ over a Poisson sample of clipped gradients, with discrete Gaussian noise; not divided.

    Planned as a `SampledGaussian` whose `l2` (see `l2_units`) is the norm that rows are clipped to.
    """

    loss: Loss
    weights: Weights

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """As many coordinates as weights; the norm is the event's own."""
        require_weights(self.weights, self.loss, facts)
        coordinates, sides = self.loss.outputs * facts.shape[0], facts.relation.marginal_l1()
        return Need(
            (SampledGaussian,),
            lambda e: e.coordinates >= coordinates and e.sides >= sides,
            f"a gradient of {coordinates} coordinates under {facts.relation}",
            (self.loss.outputs, facts.shape[0]),
        )

    def exact(self, rows: Learned, event: SampledGaussian) -> Whole:
        """Clipped, row by row, in a fresh sample."""
        sample = rows.sample(event.rate)
        taken = rows.features[sample]
        scores = kernels().scores(taken, self.weights.whole)
        residuals = _RESIDUALS * rows.residuals(
            self.loss, scores, sample, self.weights.unit, self.weights.added
        )
        lengths = np.sqrt((residuals**2).sum(axis=1)) * np.sqrt(
            np.vecdot(taken, taken, dtype=np.int64)
        )
        with np.errstate(divide="ignore"):
            shrink = np.minimum(1.0, event.l2 * _INSIDE / lengths)
        whole = np.trunc(residuals * shrink[:, None]).astype(np.int64)
        return kernels().sums(rows.features, sample, whole)

    def decode(self, drawn: Whole, facts: Facts) -> Floats:
        """In the loss's own units."""
        return drawn.astype(np.float64) * (self.loss.bound / UNIT)


def require_weights(weights: Weights, loss: Loss, facts: Facts) -> None:
    """Public weights must fit exact integer sums, and residuals be those of one row each."""
    require_loss(loss)
    shape = (loss.outputs, facts.shape[0])
    if weights.whole.shape != shape or weights.whole.dtype != np.int64:
        raise PrivacyError(f"weights must be int64 of shape {shape}")
    if not (math.isfinite(weights.unit) and weights.unit > 0):
        raise PrivacyError(f"the unit of weights = {weights.unit} must be finite and above 0")
    if float(np.abs(weights.whole.astype(np.float64)).sum()) > 2.0**62 / GRID:
        raise PrivacyError("weights are too large for exact sums; take a coarser unit")
    if len(weights.start) not in (0, loss.outputs) or not all(map(math.isfinite, weights.start)):
        raise PrivacyError(f"start = {weights.start} must be one finite number for each output")


def require_loss(loss: Loss) -> None:
    """Residuals and levels must be those of one row each; another loss might mix rows."""
    if type(loss) not in (Logistic, Softmax, Squared):
        raise PrivacyError(f"the loss must be one of `losses`, got {type(loss).__name__}")

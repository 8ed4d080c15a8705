"""Private descent: the two questions that learning asks of private examples.

* `vertex`: where to go among the 2·K·p vertices ±e_j of an L1 ball. One exponential mechanism with
  scores ∓Σ_i r_ik·x_ij (Frank-Wolfe; Talwar-Thakurta-Zhang 2015), of all rows or of a Poisson sample.
* `gradient`: Σ_i r_i ⊗ x_i over a Poisson sample, every row's part clipped to L2 norm C, with
  discrete Gaussian noise on every coordinate (noisy gradient descent; Bassily-Smith-Thakurta 2014,
  Abadi et al. 2016).

Both charge first, then draw with the scale that the ledger's entry states.

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError, PrivacyError, UnderstudyError
from understudy.privacy.cost import Event, SampledGaussian, SampledSelection, Selection
from understudy.privacy.curator import Charges
from understudy.privacy.features import GRID, Box
from understudy.privacy.losses import Loss
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation
from understudy.privacy.sampling import poisson
from understudy.privacy.sensitive import Sensitive, reveal

__all__ = ["RESIDUALS", "UNIT", "Descent", "Examples", "Vertex", "Weights", "l2_units", "poisson"]

RESIDUALS = 2**16
"""Residuals are multiples of L0/65536."""

UNIT = GRID * RESIDUALS
"""How far one row moves a sum of L0-bounded gradients: 1 in units of 2^−30·L0."""

# A hair below the norm, so that float64 cannot round a row's part beyond it.
_INSIDE = 1 - 1e-6

Reals = NDArray[np.float64]
Counts = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Public weights (outputs, width): whole numbers times a unit."""

    whole: Counts
    unit: float

    @property
    def values(self) -> Reals:
        """The weights themselves."""
        return self.whole.astype(np.float64) * self.unit


@dataclass(frozen=True, slots=True)
class Vertex:
    """A corner of the L1 ball: ± the unit vector of one output and feature."""

    output: int
    feature: int
    sign: int


class Examples:
    """Private rows, sealed: features on the grid of a public box, and targets."""

    def __init__(self, features: Sensitive[NDArray[np.int16]], targets: Sensitive[Reals]) -> None:
        self.features = features
        self.targets = targets

    @classmethod
    def seal(cls, features: NDArray[Any], targets: Reals, box: Box) -> Examples:
        """Clip and scale every row by itself, and seal."""
        if len(features) != len(targets):
            raise InputError(f"{len(features)} rows of features and {len(targets)} of targets")
        return cls(
            Sensitive(box.on_grid(features)), Sensitive(np.asarray(targets, np.float64).copy())
        )


def l2_units(clip: float, loss: Loss) -> int:
    """The norm to which a row's part of the gradient is clipped, in units of 2^−30·L0."""
    return max(1, math.floor(clip / loss.bound * UNIT))


class Descent:
    """Answers the questions of a learner about private examples, each after its durable charge."""

    def __init__(
        self,
        examples: Examples,
        loss: Loss,
        width: int,
        charges: Charges,
        relation: Relation,
        noise: Noise,
    ) -> None:
        if getattr(charges, "private_noise", False) and not noise.private:
            raise PrivacyError("the ledger was promised private noise; this noise is seeded")
        self._examples = examples
        self._charges = charges
        self._noise = noise
        self._scored: tuple[Counts, Sensitive[Counts]] | None = None
        self.loss = loss
        self.width = width
        self.relation = relation

    def planned(self, purpose: str) -> Event:
        """What the plan says of a question; public."""
        return self._charges.plan[purpose].event

    def vertex(self, purpose: str, weights: Weights) -> Vertex:
        """The vertex along which the loss falls most, by the exponential mechanism.

        Score of ±e_kj: ∓Σ_i r_ik·x_ij, which a row moves by at most `UNIT`. Planned as a `Selection`
        over all rows or a `SampledSelection` over a Poisson sample.
        """
        self._check(weights)
        most = UNIT * self.relation.marginal_l1()
        event = self._charge(
            purpose,
            (Selection, SampledSelection),
            lambda e: e.sensitivity >= most and getattr(e, "k", 1) == 1,
            f"scores of vertices, which move by {most}",
        )

        def draw() -> int:
            features = reveal(self._examples.features)
            rows = poisson(self._noise, len(features), getattr(event, "rate", 1.0))
            residuals = self._residuals(self._scores(weights)[rows], rows, weights.unit)
            whole = np.rint(residuals * RESIDUALS).astype(np.int64)
            falls = -_kernels().sums(features, rows, whole).reshape(-1)
            both = np.concatenate([falls, -falls])
            return self._noise.top_k(both, event.scale, 1)[0]

        picked = self._guarded(draw)
        half = self.loss.outputs * self.width
        output, feature = divmod(picked % half, self.width)
        return Vertex(int(output), int(feature), 1 if picked < half else -1)

    def gradient(self, purpose: str, weights: Weights) -> Reals:
        """Σ over a Poisson sample of clipped gradients, with discrete Gaussian noise; not divided.

        Planned as a `SampledGaussian` whose `l2` (see `l2_units`) is the norm that rows are clipped
        to.
        """
        self._check(weights)
        coordinates = self.loss.outputs * self.width
        sides = self.relation.marginal_l1()
        event = self._charge(
            purpose,
            (SampledGaussian,),
            lambda e: e.coordinates >= coordinates and e.sides >= sides,
            f"a gradient of {coordinates} coordinates under {self.relation}",
        )

        def draw() -> Counts:
            features = reveal(self._examples.features)
            rows = poisson(self._noise, len(features), event.rate)
            taken = features[rows]
            scores = _kernels().scores(taken, weights.whole)
            residuals = RESIDUALS * self._residuals(scores, rows, weights.unit)
            lengths = np.sqrt((residuals**2).sum(axis=1)) * np.sqrt(_kernels().norms(taken))
            with np.errstate(divide="ignore"):
                shrink = np.minimum(1.0, event.l2 * _INSIDE / lengths)
            whole = np.trunc(residuals * shrink[:, None]).astype(np.int64)
            exact = _kernels().sums(features, rows, whole)
            return self._noise.gaussian(exact, event.sigma)

        return self._guarded(draw).astype(np.float64) * (self.loss.bound / UNIT)

    # -- how it is kept --------------------------------------------------------------------------

    def _charge(
        self, purpose: str, kinds: tuple[type[Any], ...], covers: Callable[[Any], bool], asked: str
    ) -> Any:
        """Check that the planned event covers the request, charge it durably, return it."""
        planned = self.planned(purpose)
        if not isinstance(planned, kinds) or not covers(planned):
            raise PrivacyError(
                f"charge {purpose!r} plans {planned}, which does not cover {asked}; nothing was "
                f"charged or drawn"
            )
        if self._charges.charge(purpose) != planned:
            raise PrivacyError(f"charge {purpose!r}: the ledger holds another event than the plan")
        return planned

    def _scores(self, weights: Weights) -> Counts:
        """Σ_j x_ij·w_kj of every row; where few weights have changed, only these are added."""
        features = reveal(self._examples.features)
        if self._scored is not None:
            before, sealed = self._scored
            changed = np.argwhere(weights.whole != before)
            if len(changed) <= max(8, self.width // 16):
                scores = reveal(sealed)
                for k, j in changed:
                    moved = int(weights.whole[k, j] - before[k, j])
                    scores[:, k] += moved * features[:, j].astype(np.int64)
                self._scored = weights.whole.copy(), sealed
                return scores
        scores = _kernels().scores(features, weights.whole)
        self._scored = weights.whole.copy(), Sensitive(scores)
        return scores

    def _residuals(self, scores: Counts, rows: Counts, unit: float) -> Reals:
        """Residuals of some rows in units of L0, in [−1, 1]."""
        targets = reveal(self._examples.targets)[rows]
        scaled = scores.astype(np.float64) * (unit / GRID)
        found = self.loss.residuals(scaled, targets) / self.loss.bound
        return np.clip(found, -1.0, 1.0)

    def _check(self, weights: Weights) -> None:
        shape = (self.loss.outputs, self.width)
        if weights.whole.shape != shape or weights.whole.dtype != np.int64:
            raise PrivacyError(f"weights must be int64 of shape {shape}")
        if not (math.isfinite(weights.unit) and weights.unit > 0):
            raise PrivacyError(f"the unit of weights = {weights.unit} must be finite and above 0")
        if float(np.abs(weights.whole.astype(np.float64)).sum()) > 2.0**62 / GRID:
            raise PrivacyError("weights are too large for exact sums; take a coarser unit")

    def _guarded(self, draw: Callable[[], T]) -> T:
        """No message of what went wrong may carry an exact value outside."""
        try:
            return draw()
        except UnderstudyError:
            raise
        except Exception as error:  # noqa: BLE001 - its message is withheld, whatever it is
            kind = type(error).__name__
        raise PrivacyError(f"the noise could not be drawn ({kind}); the charge stands")


def _kernels() -> Any:
    from understudy.privacy import _rows

    return _rows

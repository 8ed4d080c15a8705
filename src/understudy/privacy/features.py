"""A public box for private features: clipped, scaled and put on an integer grid, row by row.

A feature with public bounds [l, h] is read as (x − a)/s, where a is the point of [l, h] nearest to 0
and s = max(h − a, a − l): it lies in [−1, 1], and where 0 is allowed it stays 0, so that indicator
columns keep rows short in L2. What lies outside the bounds is moved to them. The result is rounded to
multiples of 1/`GRID`, each row by itself, so that everything computed from it later is computed on
integers, exactly: a neighbour changes the integers of one row and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats
from understudy.errors import InputError

GRID = 2**14
"""Features are multiples of 1/16384: they fit 16 bits, products with residuals 32."""

_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Box:
    """Public bounds of p features, and whether a constant 1 is put before them."""

    low: Floats
    high: Floats
    intercept: bool = True

    @classmethod
    def of(cls, bounds: Any, features: int, *, intercept: bool = True) -> Box:
        """Check `bounds`: (low, high), each a number for all features or one for each.

        Raises:
            InputError: Bounds are missing, of another length, not finite, or low >= high.
        """
        if bounds is None:
            raise InputError(
                "bounds are missing: declare (low, high) of the features, numbers or one per "
                "column, from knowledge and not from the rows, for instance bounds=(0, 1)"
            )
        if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
            raise InputError(f"bounds = {bounds!r} must be a pair (low, high)")
        low, high = (_side(side, features, name) for side, name in zip(bounds, ("low", "high")))  # noqa: B905 - of length two
        wrong = np.flatnonzero(~(low < high))
        if wrong.size:
            j = int(wrong[0])
            raise InputError(
                f"bounds of column {j}: low = {low[j]:g} is not below high = {high[j]:g}; swap them, "
                f"or leave out a column that cannot vary"
            )
        return cls(low, high, intercept)

    @property
    def anchor(self) -> Floats:
        """a: what is read as 0."""
        return np.clip(0.0, self.low, self.high)

    @property
    def scale(self) -> Floats:
        """s: how far a feature may be from its anchor."""
        return np.maximum(self.high - self.anchor, self.anchor - self.low)

    @property
    def width(self) -> int:
        """Columns after scaling: p, and one for the intercept."""
        return self.low.size + self.intercept

    def scaled(self, features: NDArray[Any]) -> Floats:
        """(n, width) in [−1, 1], not rounded."""
        inside = (np.clip(features, self.low, self.high) - self.anchor) / self.scale
        if not self.intercept:
            return inside
        return np.concatenate([np.ones((len(inside), 1)), inside], axis=1)

    def on_grid(self, features: NDArray[Any]) -> NDArray[np.int16]:
        """(n, width) in units of 1/`GRID`."""
        made = np.empty((len(features), self.width), np.int16)
        rows = max(1, _BLOCK // self.width)
        for start in range(0, len(features), rows):
            part = slice(start, start + rows)
            # What is no number is read as the anchor: a cast of it could be any number.
            made[part] = np.rint(GRID * np.nan_to_num(self.scaled(features[part])))
        return made

    def unscaled(self, weights: Floats) -> tuple[Floats, Floats]:
        """(coefficients (k, p), intercepts (k,)) in the features' own units of weights (k, width)."""
        slopes = weights[:, 1:] if self.intercept else weights
        coefficients = slopes / self.scale
        constants = weights[:, 0] if self.intercept else np.zeros(len(weights))
        return coefficients, constants - coefficients @ self.anchor


def _side(side: Any, features: int, name: str) -> Floats:
    try:
        values = np.asarray(side, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"bounds: {name} = {side!r} is not a number or a row of numbers") from None
    if values.shape not in ((), (1,), (features,)):
        raise InputError(
            f"bounds: {name} has shape {values.shape}; expected a number or one for each of the "
            f"{features} columns"
        )
    if not np.isfinite(values).all():
        j = int(np.flatnonzero(~np.isfinite(np.atleast_1d(values)))[0])
        raise InputError(f"bounds: {name} of column {j} is not finite; give a number")
    return np.broadcast_to(values, (features,)).astype(np.float64)

"""What a statistic is: values at a weighted frame, and how each record moves them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.estimates.estimate import Parts
from understudy.estimates.frame import Condition, Frame

__all__ = ["Fitted", "Interval", "Measured", "Statistic", "Undefined"]

Floats = NDArray[np.float64]


class Undefined(Exception):
    """A statistic that weights do not define, such as the mean of nobody; says why."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Values of a statistic, and the shares that must not be nothing for it to exist.

    influence  for a frame, one row a point: how values and then shares move with the weight of each
               point; the mean over the weights that were fitted is 0
    needed     for each value, the positions among `shares` of those that it needs
    hidden     for each value, what relations inside cells may add, which no nudge shows
    """

    values: Floats
    influence: Callable[[Frame], Floats]
    shares: Floats = field(default_factory=lambda: np.zeros(0))
    needed: tuple[tuple[int, ...], ...] = ()
    hidden: Floats | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A number that was fitted, known up to ± `half`; `why` says why it is not to be told."""

    value: float
    half: float
    parts: Parts
    reliance: float
    why: str | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A number as it is told, with its interval; `why` says why it is not to be told."""

    value: float
    low: float
    high: float
    parts: Parts
    reliance: float
    why: str | None


@dataclass(frozen=True, eq=False)
class Statistic(ABC):
    """Some numbers about some columns. `names` says what is told, one for each."""

    names: tuple[str, ...]

    @property
    @abstractmethod
    def columns(self) -> Clique:
        """Every column that it depends on, sorted."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of them that are used as numbers."""
        return ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that it uses."""
        return ()

    def limits(self, frame: Frame) -> tuple[float, float]:
        """Between which values lie, whatever the table."""
        return -np.inf, np.inf

    @property
    def per_row(self) -> bool:
        """Whether it grows with the number of rows, as sums do; `fit` gives it for one row."""
        return False

    @property
    def first_order(self) -> bool:
        """Whether it is a mean or made of such, so that large errors of the model do little harm."""
        return False

    @property
    def follows(self) -> bool:
        """Whether its values follow from the shares that it needs, and are not tilted beside them."""
        return False

    @property
    def linear(self) -> bool:
        """Whether it is a mean over all rows, so that correcting it once is exact."""
        return False

    @abstractmethod
    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """Its values under some weights, which sum to one.

        Raises:
            Undefined: There is no value.
        """

    def shown(self, values: Floats) -> Floats:
        """Values as they are told; increasing."""
        return values

    def combined(self, frame: Frame, measured: Sequence[Measured]) -> Sequence[Measured | Interval]:
        """What is told, one for each name; by default what was fitted."""
        return measured

"""What a statistic is: values at a weighted frame, and how each record moves them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from understudy._types import Clique, Floats
from understudy.estimates.estimate import Parts
from understudy.estimates.frame import Condition, Frame


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
class Gone:
    """Why a name has no number of its own; `base` says that others are compared with it."""

    why: str
    base: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """A number that was fitted, known up to ± `half`; `why` says why it is not to be told.

    `beyond` is how far rows outside all that was found of a column may lower it, and raise it; `heaps`
    how far values at round numbers may.
    """

    value: float
    half: float
    parts: Parts
    reliance: float
    why: str | None
    beyond: tuple[float, float] = (0.0, 0.0)
    heaps: tuple[float, float] = (0.0, 0.0)


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
    """Some numbers about some columns. `names` says what is told, one for each.

    per_row      whether it grows with the number of rows, as sums do; `fit` gives it for one row
    first_order  whether it is a mean or made of such, so that large errors of the model do little harm
    ranks        whether it hangs on the order of numbers alone, as quantiles do
    follows      whether its values follow from the shares that it needs, and are not tilted beside them
    """

    per_row: ClassVar[bool] = False
    first_order: ClassVar[bool] = False
    follows: ClassVar[bool] = False
    ranks: ClassVar[bool] = False

    names: tuple[str, ...]

    @property
    def unit(self) -> str:
        """In what its values are told: "%" of shares, "points" of their differences, or nothing."""
        return ""

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

    @property
    def divisor(self) -> str:
        """What the shares are that must not be nothing, in words."""
        return "the share of the group"

    def without(self, rare: Mapping[int, frozenset[int]]) -> tuple[Statistic, Mapping[str, Gone]]:
        """The statistic without values of columns that noise hides, and why which names are gone.

        `rare` are their codes. Where a single one of them would leave nothing to say, it is left out.
        """
        return self, {}

    def limits(self, frame: Frame) -> tuple[float, float]:
        """Between which values lie, whatever the table."""
        return -np.inf, np.inf

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


@dataclass(frozen=True, eq=False)
class Domain:
    """The rows that a statistic is about: those of one group, that satisfy a condition; or all.

    `group` is a column and one of its codes.
    """

    where: Condition | None = None
    group: tuple[int, int] | None = None

    @property
    def columns(self) -> set[int]:
        """Every column that it depends on."""
        named = set() if self.where is None else set(self.where.clique)
        return named if self.group is None else named | {self.group[0]}

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The condition, if any."""
        return () if self.where is None else (self.where,)

    def share(self, frame: Frame) -> Floats:
        """How much of every point is in it."""
        held = np.ones(len(frame)) if self.where is None else frame.share(self.where)
        if self.group is not None:
            column, code = self.group
            held = held * (frame.codes(column) == code)
        return held


@dataclass(frozen=True, eq=False)
class Within(Statistic):
    """A statistic of a domain, about `numbers` and the conditions that it counts."""

    domain: Domain

    @property
    def counted(self) -> tuple[Condition, ...]:
        """The conditions that it counts."""
        return ()

    @property
    def columns(self) -> Clique:
        """Of the domain, the numbers and what is counted."""
        named = self.domain.columns | set(self.numbers)
        return tuple(sorted(named.union(*(each.clique for each in self.counted))))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those that it counts, and that of the domain."""
        return (*self.domain.conditions, *self.counted)

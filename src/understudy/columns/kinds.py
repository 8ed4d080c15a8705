"""Kinds of round values: which of some residue classes a whole number is in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Whole

PERIOD = 100
"""Larger steps are a chain, and all others repeat within so many numbers."""


@dataclass(frozen=True)
class Kinds:
    """Kinds of whole numbers: multiples of 1,000, of 50, what ends in 99, and so on.

    A number is of the first kind i for which `steps[i]` leaves the rest `rests[i]` of its absolute
    value (−5.99 ends in 99 as 5.99 does), and of the last one, `len(steps)`, if there is none. Without
    `rests` all are 0.
    """

    steps: tuple[int, ...]
    rests: tuple[int, ...] = ()

    @property
    def classes(self) -> int:
        """How many kinds there are, the last one included."""
        return len(self.steps) + 1

    @cached_property
    def classed(self) -> tuple[tuple[int, int], ...]:
        """The step and the rest of every kind but the last."""
        return tuple(zip(self.steps, self.rests or [0] * len(self.steps), strict=True))

    @cached_property
    def fault(self) -> str:
        """Why numbers of each kind cannot be counted; empty if they can."""
        if self.rests and len(self.rests) != len(self.steps):
            return "steps and rests must be as many"
        if any(not 0 <= rest < step for step, rest in self.classed):
            return "steps must be above their rests, and these at least 0"
        chain, others = self.steps[: self._chain], self.steps[self._chain :]
        if any(self.rests[: self._chain]) or max(others, default=1) > PERIOD:
            return f"steps above {PERIOD} must come first, with rests of 0"
        if any(left <= right or left % right for left, right in pairwise(chain)):
            return f"steps above {PERIOD} must be multiples of the next one"
        period = lcm(*others)
        if period > PERIOD or (chain and chain[-1] % period):
            return (
                f"the least common multiple of steps up to {PERIOD} must be at most {PERIOD}, and "
                "divide the larger ones"
            )
        if len({*self._table.tolist()}) < self.classes - self._chain:
            return "some of steps and rests leave a kind no number of its own"
        return ""

    @cached_property
    def _chain(self) -> int:
        """How many steps at the beginning are large."""
        return next((at for at, s in enumerate(self.steps) if s <= PERIOD), len(self.steps))

    @cached_property
    def _table(self) -> NDArray[np.intp]:
        """The kind of 0, 1, …, 100 at most, from where on all repeat, the chain left out."""
        points = np.arange(lcm(*self.steps[self._chain :]))
        found = np.full(len(points), len(self.steps))
        for at in range(len(self.steps) - 1, self._chain - 1, -1):
            step, rest = self.classed[at]
            found[points % step == rest] = at
        return found

    @cached_property
    def _sums(self) -> Whole:
        """How many of the first numbers of a period are of each kind: from zero, and below it."""
        sums = np.zeros((2, len(self._table) + 1, self.classes), np.int64)
        for side, table in enumerate((self._table, np.roll(self._table[::-1], 1))):
            sums[side, 1:] = np.cumsum(table[:, None] == np.arange(self.classes), axis=0)
        return sums

    def of(self, points: Whole) -> NDArray[np.intp]:
        """The kind of each number."""
        found = self._table[np.abs(np.fmod(points, len(self._table)))]
        for at in range(self._chain - 1, -1, -1):
            found[points % self.steps[at] == 0] = at
        return found

    def between(self, ends: Whole) -> Floats:
        """How many numbers of each kind are from one of rising ends up to before the next."""
        periods, past = np.divmod(ends, len(self._table))
        held = np.diff(
            periods[:, None] * self._sums[0, -1] + self._sums[(ends < 0).astype(np.intp), past],
            axis=0,
        )
        if self._chain:
            chain = np.array(self.steps[: self._chain])
            multiples = np.diff(-(-ends[:, None] // chain), axis=0)
            held[:, : self._chain] = np.diff(multiples, axis=1, prepend=0)
            held[:, self._table[0]] -= multiples[:, -1]
        return held.astype(np.float64)

    def near(self, points: Whole, kind: NDArray[np.intp], shift: int) -> Whole:
        """For each point the nearest number with the step and rest of a kind, or so many steps on."""
        steps, rests = np.array([*self.classed, (1, 0)], np.int64)[kind].T
        rests = np.where(points < 0, -rests, rests)
        return (points - rests + steps // 2) // steps * steps + rests + shift * steps

    def wider(self, kind: int) -> int:
        """The first later kind whose step and rest every number with those of this kind has."""
        step, rest = self.classed[kind]
        for at in range(kind + 1, len(self.steps)):
            other, left = self.classed[at]
            if step % other == 0 and rest % other == left:
                return at
        return len(self.steps)

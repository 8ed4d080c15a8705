"""Σ over a Poisson sample of a public network's gradients, clipped row by row and group by group.

Gaussian noise on every weight; an empty sample is noise alone, and charged. Planned as `SampledGroups`
with one multiplier per group and, with `watch`, one more per group for whether rows were below its
threshold (Andrew et al. 2021). Sensitivities are shown in `understudy.privacy.gradients`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import PrivacyError
from understudy.privacy.cost import SampledGroups
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.gradients import UNIT, Groups, Network, clipped_sums
from understudy.privacy.mechanisms import Grouped, noised
from understudy.privacy.questions.requests import Counts, require_rows_at_hand

__all__ = ["NetworkGradient"]

Steps = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class NetworkGradient:
    """`held_out` is the share of rows, each by a coin of its own, that never take part."""

    network: Network
    groups: Groups
    watch: bool = False
    held_out: float = 0.0

    mechanism = staticmethod(noised)

    @property
    def _wanted(self) -> int:
        return len(self.groups.thresholds) * (1 + self.watch)

    def need(self, facts: Facts) -> Need:
        """One multiplier per group, and as many again to watch."""
        require_rows_at_hand(facts)
        if type(self.groups) is not Groups:  # a subclass might name other groups than it clips
            raise PrivacyError(f"groups must come as Groups, got {type(self.groups).__name__}")
        size = len(self.groups.thresholds)
        numbers = self.groups.flat(self.network.layers).size + self._wanted - size
        sides = facts.relation.marginal_l1()
        return Need(
            (SampledGroups,),
            lambda e: (
                len(e.multipliers) == self._wanted and e.coordinates >= numbers and e.sides >= sides
            ),
            f"a gradient of {numbers} coordinates in {self._wanted} groups under {facts.relation}",
            None,
        )

    def exact(self, rows: Tables, event: SampledGroups) -> Grouped:
        """Sums of a fresh sample, and the group of every coordinate."""
        records = rows.records(self.held_out, inside=False)
        sample = rows.sample(len(records), event.rate)
        sums, below = clipped_sums(self.network, records[sample], self.groups)
        group, size = self.groups.flat(self.network.layers), len(below)
        if self.watch:
            sums = np.concatenate([sums, UNIT * below])
            group = np.concatenate([group, size + np.arange(size)])
        return Grouped(sums, group, UNIT)

    def decode(self, drawn: Counts, facts: Facts) -> tuple[Steps, Steps]:
        """One number per weight, layer after layer and a layer's biases last, in multiples of
        σ_j/`GRAIN`, σ_j = m_j·c_j; and for every group that is watched the rows below its threshold
        less half of all, in multiples of m/(2·`GRAIN`).
        """
        limits = np.iinfo(np.int32)
        steps = np.clip(drawn, limits.min, limits.max).astype(np.int32)
        ends = steps.size - (self._wanted - len(self.groups.thresholds))
        return steps[:ends], steps[ends:]

"""A query player that trains a critic: columns once, then a noisy gradient every round.

It asks the gate for the gradient of the shown critic's loss on a Poisson sample of rows, clipped and
noised, and hands back the mean. There are as many rounds as the plan has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.players.base import Answers, Chosen, CriticGradient, Kind, Problem, measure
from understudy.players.data.gan import GanView
from understudy.privacy.gate import Gate
from understudy.privacy.noise import GRAIN
from understudy.privacy.questions import BestModels, NetworkGradient
from understudy.privacy.questions.best_models import Models
from understudy.privacy.questions.gradient import Groups


@dataclass(frozen=True, slots=True)
class CriticSteps:
    """`steps` gradients with `multipliers` at a sampling `rate`, and perhaps a choice at the end."""

    steps: int
    sigma: float
    multipliers: tuple[float, ...]
    rate: float
    watch: bool = False
    held_out: float = 0.0
    choose: bool = False

    COLUMNS = "columns"
    STEP = "critic step"
    CHOICE = "choice of checkpoints"

    gives = frozenset({Kind.TABLE, Kind.GRADIENT, Kind.CHOICE})
    needs = (GanView,)

    @property
    def rounds(self) -> int:
        """Columns, steps, and the choice."""
        return 1 + self.steps + self.choose

    def play(self, problem: Problem, gate: Gate, view: Any, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        if round == 0:
            return measure(gate, self.COLUMNS, problem.columns, self.sigma)
        if round <= self.steps:
            return (self._step(problem, gate, view),)
        shown = view.candidates
        models = Models(shown.scorers, shown.sensitivity, shown.cliques, shown.tables, shown.costs)
        found = gate.ask(self.CHOICE, BestModels(models, problem.rows, self.held_out))
        return (Chosen(tuple(found)),)

    def _step(self, problem: Problem, gate: Gate, view: Any) -> CriticGradient:
        shown = view.grouping
        groups = Groups(shown.thresholds, shown.members, shown.shares)
        question = NetworkGradient(view.network, groups, self.watch, self.held_out)
        values, within = gate.ask(self.STEP, question)
        # The public number of rows a step is about; where a sample is empty it is the same.
        expected = self.rate * (1 - self.held_out) * max(1, problem.rows)
        grain = self.multipliers[0] / GRAIN / expected
        scales = np.array([grain * unit for unit in groups.scales], np.float32)
        gradient = values.astype(np.float32) * scales[groups.flat(view.network.layers)]
        half = math.sqrt(within.size) * self.multipliers[-1] / (2 * GRAIN) / expected
        return CriticGradient(gradient, tuple(float(b) for b in 0.5 + within * half))

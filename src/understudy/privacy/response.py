"""Randomised response: a yes or no that a person changes by chance before telling it (Warner 1965).

The local model: everybody draws for themselves, nobody keeps the truth, and so there is no table and no
account of one. What is known to a custodian is released through the gate instead, at far less noise.

**Guarantee.** An answer is ε-DP for the bit behind it: the truth with probability ½ + γ, the opposite
with ½ − γ, γ = ½·tanh(ε/2), so that an answer is at most e^ε times as likely from one truth as from the
other, and exactly that. Somebody who answers k questions, or one of them k times, spends k·ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import InputError
from understudy.privacy.budget import Budget, round_down
from understudy.privacy.noise import Noise, OpenDPNoise


@dataclass(frozen=True, slots=True)
class Share:
    """An unbiased estimate of the share of people whose truth is yes, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class RandomisedResponse:
    """Answers at ε each, and what many of them say together."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", round_down(Budget.of(self.epsilon, 0).epsilon))

    @property
    def gamma(self) -> float:
        """How much more often than every second time the truth is told: ½·tanh(ε/2)."""
        return math.tanh(self.epsilon / 2) / 2

    def answer(self, truth: bool, noise: Noise | None = None) -> bool:
        """What a person says, by an exact coin of a cryptographic source.

        The coin is a pick between two scores 1 and −1 under Gumbel noise of scale 2/ε, rounded up: the
        first with probability e^ε/(1 + e^ε).
        """
        source = OpenDPNoise() if noise is None else noise
        scale = math.nextafter(2 / self.epsilon, math.inf)
        honest = source.top_k(np.array([1, -1], np.int64), scale, 1) == (0,)
        return bool(truth) == honest

    def estimate(self, answers: Sequence[bool]) -> Share:
        """The share of yes among the truths, from the answers.

        p̂ = Σ(Y − ½ + γ)/(2γn), unbiased; given the truths its variance is (¼ − γ²)/(4γ²n). It may lie
        outside [0, 1].

        Raises:
            InputError: There are no answers.
        """
        if not len(answers):
            raise InputError("answers are missing: an estimate needs at least one")
        n, gamma = len(answers), self.gamma
        value = (sum(map(bool, answers)) / n - 0.5 + gamma) / (2 * gamma)
        return Share(value, math.sqrt((0.25 - gamma**2) / n) / (2 * gamma))

"""Sums of public random features, once: all that critics over them ever need to know of the rows."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Kind, MeasuredMoments, Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Moments
from understudy.privacy.questions.moments import RandomFeatures

__all__ = ["RandomMoments"]


@dataclass(frozen=True, slots=True)
class RandomMoments:
    """Measures the features of `maps` in one round; `sigma`, in rows, is what the plan says."""

    maps: RandomFeatures
    sigma: float
    rounds: int = 1

    PURPOSE = "moments of random features"

    gives = frozenset({Kind.MOMENTS})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        values = gate.ask(self.PURPOSE, Moments(self.maps))
        return (MeasuredMoments(self.maps, values, self.sigma),)

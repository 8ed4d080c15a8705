"""A query player with a fixed strategy in levels: every level of marginals has a noise of its own."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Clique, Kind, Problem, View
from understudy.players.query.fixed import measure
from understudy.privacy.gate import Gate

__all__ = ["Level", "MarginalLevels"]


@dataclass(frozen=True, slots=True)
class Level:
    """Marginals that are measured together, and the charge that pays for them."""

    purpose: str
    cliques: tuple[Clique, ...]
    sigma: float


@dataclass(frozen=True, slots=True)
class MarginalLevels:
    """Measures every level once, in one round. Cost: one Gaussian release per level."""

    levels: tuple[Level, ...]
    rounds: int = 1

    gives = frozenset({Kind.TABLE})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        return tuple(
            answer
            for level in self.levels
            for answer in measure(gate, level.purpose, level.cliques, level.sigma)
        )

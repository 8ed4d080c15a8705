"""A query player with a fixed strategy: measure these marginals, once."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Clique, Kind, Measured, Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals

__all__ = ["FixedMarginals", "measure"]


def measure(
    gate: Gate, purpose: str, cliques: tuple[Clique, ...], sigma: float
) -> tuple[Measured, ...]:
    """Measure whole marginals through the gate; `sigma` is what the plan says."""
    tables = gate.ask(purpose, Marginals(cliques))
    return tuple(Measured(c, t, sigma) for c, t in zip(cliques, tables, strict=True))


@dataclass(frozen=True, slots=True)
class FixedMarginals:
    """Measures `cliques` in one round under the charge `purpose`."""

    cliques: tuple[Clique, ...]
    sigma: float
    purpose: str = "one-way marginals"
    rounds: int = 1

    gives = frozenset({Kind.TABLE})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        return measure(gate, self.purpose, self.cliques, self.sigma)

"""A query player with a fixed strategy: measure these marginals, once."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Clique, Measured, Problem, View
from understudy.privacy.curator import Curator

__all__ = ["FixedMarginals", "measure"]


def measure(
    curator: Curator, purpose: str, cliques: tuple[Clique, ...], sigma: float
) -> tuple[Measured, ...]:
    """Measure whole marginals through the curator; `sigma` is what the plan says."""
    tables = curator.measure(purpose, cliques)
    return tuple(Measured(c, t, sigma) for c, t in zip(cliques, tables, strict=True))


@dataclass(frozen=True, slots=True)
class FixedMarginals:
    """Measures `cliques` in one round under the charge `purpose`."""

    cliques: tuple[Clique, ...]
    sigma: float
    purpose: str = "one-way marginals"
    rounds: int = 1

    def play(
        self, problem: Problem, curator: Curator, view: View, round: int
    ) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        return measure(curator, self.purpose, self.cliques, self.sigma)

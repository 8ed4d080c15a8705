"""Query players with a fixed strategy, and players one after the other or several in one round."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType

from understudy._types import Clique
from understudy.players.base import Answers, Kind, Problem, QueryPlayer, View, measure
from understudy.privacy.gate import Gate


@dataclass(frozen=True, slots=True)
class FixedMarginals:
    """Measures `cliques` in one round under the charge `purpose`."""

    cliques: tuple[Clique, ...]
    sigma: float
    purpose: str = "one-way marginals"
    rounds: int = 1

    gives = frozenset({Kind.TABLE})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        return measure(gate, self.purpose, self.cliques, self.sigma)


@dataclass(frozen=True, slots=True)
class InTurn:
    """Plays all rounds of `first`, then all of `then`, which counts its own from 0."""

    first: QueryPlayer
    then: QueryPlayer

    @property
    def rounds(self) -> int:
        """Of both together."""
        return self.first.rounds + self.then.rounds

    @property
    def gives(self) -> frozenset[Kind]:
        """Of both."""
        return self.first.gives | self.then.gives

    @property
    def needs(self) -> tuple[type | UnionType, ...]:
        """Of both."""
        return (*self.first.needs, *self.then.needs)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        if round < self.first.rounds:
            return self.first.play(problem, gate, view, round)
        return self.then.play(problem, gate, view, round - self.first.rounds)


@dataclass(frozen=True, slots=True)
class Together:
    """Measures several sets of marginals in one round, each with its own charge and noise."""

    players: tuple[FixedMarginals, ...]
    rounds: int = 1

    gives = FixedMarginals.gives
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        return tuple(
            answer for player in self.players for answer in player.play(problem, gate, view, round)
        )

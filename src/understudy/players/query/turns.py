"""Query players one after the other, an opening and then the game; or several in one round."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType

from understudy.players.base import Answer, Kind, Problem, QueryPlayer, View
from understudy.privacy.gate import Gate

__all__ = ["InTurn", "Together"]


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

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        if round < self.first.rounds:
            return self.first.play(problem, gate, view, round)
        return self.then.play(problem, gate, view, round - self.first.rounds)


@dataclass(frozen=True, slots=True)
class Together:
    """Plays the first round of all `players` as one round."""

    players: tuple[QueryPlayer, ...]
    rounds: int = 1

    @property
    def gives(self) -> frozenset[Kind]:
        """Of all."""
        return frozenset().union(*(player.gives for player in self.players))

    @property
    def needs(self) -> tuple[type | UnionType, ...]:
        """Of all."""
        return tuple(view for player in self.players for view in player.needs)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        return tuple(
            answer for player in self.players for answer in player.play(problem, gate, view, round)
        )

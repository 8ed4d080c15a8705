"""Query players one after the other, an opening and then the game; or several in one round."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Problem, QueryPlayer, View
from understudy.privacy.gate import Gate

__all__ = ["InTurn", "Together"]


@dataclass(frozen=True, slots=True)
class InTurn:
    """Plays all rounds of `first`, then all of `then`, which counts its own from 0.

    Nothing more is asked once the data player says that it can learn no more (`diverged`), a fact about
    released numbers.
    """

    first: QueryPlayer
    then: QueryPlayer

    @property
    def rounds(self) -> int:
        """Of both together."""
        return self.first.rounds + self.then.rounds

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        if getattr(view, "diverged", False):
            return ()
        if round < self.first.rounds:
            return self.first.play(problem, gate, view, round)
        return self.then.play(problem, gate, view, round - self.first.rounds)


@dataclass(frozen=True, slots=True)
class Together:
    """Plays the first round of all `players` as one round."""

    players: tuple[QueryPlayer, ...]
    rounds: int = 1

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        return tuple(
            answer for player in self.players for answer in player.play(problem, gate, view, round)
        )

"""Logistic critics, one a round: a regression of the rows against all records played so far.

Round t looks at one public group of tables and asks the gate for the weights of a critic that tells
rows from records there (objective perturbation, pure ε0, ρ ≤ ε0²/2; no bounded range). Averaging the
records over past rounds, and not summing them, keeps the private weight constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.players.base import Answer, Clique, Kind, LinearCritic, Problem, View
from understudy.players.query.weights import Listed, listed
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Critic

__all__ = ["LogisticCritics", "grouped"]


def grouped(
    cliques: Sequence[Clique], shape: tuple[int, ...], cells: int, columns: int = 2**62
) -> tuple[tuple[Clique, ...], ...]:
    """Groups of neighbouring tables with at most `cells` cells, and `columns` in the joint domain.

    A table that is larger by itself is a group.
    """
    groups: list[tuple[Clique, ...]] = []
    for clique in cliques:
        last = groups[-1] if groups else ()
        if last and _cells((*last, clique), shape) <= cells:
            joint = {column for each in (*last, clique) for column in each}
            if _size(tuple(joint), shape) <= columns:
                groups[-1] = (*last, clique)
                continue
        groups.append((clique,))
    return tuple(groups)


def _size(clique: Clique, shape: tuple[int, ...]) -> int:
    size = 1
    for column in clique:
        size *= shape[column]
    return size


def _cells(cliques: Sequence[Clique], shape: tuple[int, ...]) -> int:
    return sum(_size(clique, shape) for clique in cliques)


@dataclass(frozen=True, slots=True)
class LogisticCritics:
    """Round t looks at `groups[t % len(groups)]`, under a charge of that group."""

    rounds: int
    groups: tuple[tuple[Clique, ...], ...]

    gives = frozenset({Kind.CRITIC})
    needs = (Listed,)

    @staticmethod
    def purpose(group: int) -> str:
        """The charge for the critics of one group."""
        return f"critics of group {group + 1}"

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        at = round % len(self.groups)
        group = self.groups[at]
        tables = gate.ask(self.purpose(at), Critic(group, listed(view), problem.rows))
        return (LinearCritic(group, tables),)

"""QueryGAN's own oracles: what its generator is told of the rows, and what the game was worth.

docs/methods/querygan.md has the critics, and the theorem that payoffs are for. The sum of payoffs
moves by at most one row a round with a row of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy._types import Clique
from understudy.players.base import (
    Answers,
    Cell,
    Kind,
    LinearCritic,
    MeasuredMoments,
    PaidOff,
    Problem,
    View,
)
from understudy.players.data.ftpl_generator import Shown
from understudy.players.query.weights import Listed
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Critic, Moments, Payoff
from understudy.privacy.questions.moments import RandomFeatures
from understudy.queries import cells


@dataclass(frozen=True, slots=True)
class RandomMoments:
    """Measures the features of `maps` in one round; `sigma`, in rows, is what the plan says."""

    maps: RandomFeatures
    sigma: float
    rounds: int = 1

    PURPOSE = "moments of random features"

    gives = frozenset({Kind.MOMENTS})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        values = gate.ask(self.PURPOSE, Moments(self.maps))
        return (MeasuredMoments(self.maps, values, self.sigma),)


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

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        assert isinstance(view, Listed)  # by `needs`
        at = round % len(self.groups)
        group = self.groups[at]
        tables = gate.ask(self.purpose(at), Critic(group, view.codes, problem.rows))
        return (LinearCritic(group, tables),)


def grouped(
    cliques: Sequence[Clique], shape: tuple[int, ...], most: int
) -> tuple[tuple[Clique, ...], ...]:
    """Groups of neighbouring tables with at most so many cells; a larger table is one by itself."""
    groups: list[tuple[Clique, ...]] = []
    for clique in cliques:
        joined = (*groups[-1], clique) if groups else (clique,)
        if groups and sum(cells(shape, each) for each in joined) <= most:
            groups[-1] = joined
        else:
            groups.append((clique,))
    return tuple(groups)


@dataclass(frozen=True, slots=True)
class Payoffs:
    """One round: the noisy sum of payoffs; `scale` is the noise's, in rows."""

    scale: float
    rounds: int = 1

    PURPOSE = "payoff of the critics"

    gives = frozenset({Kind.PAYOFF})
    needs = (Shown,)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        assert isinstance(view, Shown)  # by `needs`
        cells = [
            Cell(problem.cliques.index(picked.clique), picked.cell.index, picked.cell.sign)
            for picked, _ in view.picks
        ]
        expected = [rows for _, rows in view.picks]
        value = gate.ask(self.PURPOSE, Payoff(problem.cliques, cells, expected))
        return (PaidOff(value, self.scale, len(cells)),)

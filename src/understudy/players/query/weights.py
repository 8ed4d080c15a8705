"""Multiplicative weights over queries, sampled: the query player of DualQuery.

The weights are private and never leave the gate (docs/methods/dualquery.md). A round releases s
independent draws from them, each the exponential mechanism over the t−1 records so far with Gumbel
scale b_t = B/(t−1), B = n/η. Neighbours move every score by one row, so a draw costs 1/(2·b_t²) in
zCDP, and the plan needs no n. Q^1 is uniform, whatever the data: the first round asks and costs
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import InputError
from understudy.models import Empirical
from understudy.players.base import Answers, Kind, MeasuredCell, Problem, View
from understudy.players.data.response import Responses
from understudy.privacy import planning
from understudy.privacy.buckets import SCORE_SENSITIVITY
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import PickedCells

Listed = Empirical | Responses
"""Views that list records."""


def squares(rounds: int) -> int:
    """Σ_{t=2..T} (t−1)²."""
    return (rounds - 1) * rounds * (2 * rounds - 1) // 6


@dataclass(frozen=True, slots=True)
class QueryWeights:
    """`rounds` is T. The round that makes record x^t is called round t in the plan, from 2 to T."""

    rounds: int

    gives = frozenset({Kind.PICKED_CELL})
    needs = (Listed,)

    @staticmethod
    def purpose(t: int) -> str:
        """The charge for the draws from Q^t."""
        return f"queries of round {t}"

    @classmethod
    def charges(cls, rounds: int, samples: int, rho: Fraction) -> tuple[Charge, ...]:
        """s draws for every t from 2 to T, with ρ in proportion to (t−1)²: one η for all rounds."""
        total = squares(rounds)
        return tuple(
            Charge(
                cls.purpose(t),
                planning.selection(
                    rho * (t - 1) ** 2 / total, sensitivity=SCORE_SENSITIVITY, k=samples
                ),
            )
            for t in range(2, rounds + 1)
        )

    @classmethod
    def read(cls, plan: Plan) -> tuple[int, int, float]:
        """(T, s, B in units) of a plan that `charges` made, which may hold other charges as well."""
        events = {charge.purpose: charge.event for charge in plan}
        rounds = 1
        event: object = None
        while cls.purpose(rounds + 1) in events:
            rounds += 1
            event = events[cls.purpose(rounds)]
        if not isinstance(event, Selection):
            raise InputError("the plan has no queries to draw; it needs at least 2 rounds")
        return rounds, event.k, event.scale * (rounds - 1)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`. Nothing is asked in the first round."""
        if round == 0:
            return ()
        return self.draw(problem, gate, view, round + 1)

    @classmethod
    def draw(cls, problem: Problem, gate: Gate, view: View, t: int) -> Answers:
        """The draws from Q^t, as many as its charge has."""
        assert isinstance(view, Listed)  # by `needs`
        picks = PickedCells(problem.cliques, view.codes, problem.rows)
        cells = gate.ask(cls.purpose(t), picks)
        return tuple(MeasuredCell(problem.cliques[cell.marginal], cell) for cell in cells)

"""What the played critics earned, released once at the end: the private part of the thesis's α.

With A(D^t, q) = q(D) − q(D^t) and a query player who is never more than r from the best query,

    max_q |q(D) − q(D̄)| ≤ avg_t A(D^t, q_t) + r

for the average D̄ of the records D^t that were shown (no regret of the data player comes in). The sum of
payoffs moves by at most one row a round with a row of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import WorkError
from understudy.players.base import Answer, Kind, PaidOff, Problem, View
from understudy.players.data.ftpl_generator import Shown
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell, Payoff

__all__ = ["Payoffs"]


@dataclass(frozen=True, slots=True)
class Payoffs:
    """One round: the noisy sum of payoffs; `scale` is the noise's, in rows."""

    scale: float
    rounds: int = 1

    PURPOSE = "payoff of the critics"

    gives = frozenset({Kind.PAYOFF})
    needs = (Shown,)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        if not isinstance(view, Shown):
            raise WorkError("payoffs are asked of a data player that remembers what was picked")
        cells = [
            Cell(problem.cliques.index(picked.clique), picked.cell.index, picked.cell.sign)
            for picked, _ in view.picks
        ]
        expected = [rows for _, rows in view.picks]
        value = gate.ask(self.PURPOSE, Payoff(problem.cliques, cells, expected))
        return (PaidOff(value, self.scale, len(cells)),)

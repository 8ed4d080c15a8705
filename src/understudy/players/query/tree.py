"""Measure every column, select a spanning tree of dependent pairs privately, measure the tree.

The selection of NIST-MST (docs/methods/mst.md): Kruskal's algorithm in which the next edge, among
those that join two components, is drawn by the exponential mechanism with score ‖c_ij − n·p_i·p_j‖₁,
sensitivity 1 under add-remove, 2 under replace.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from understudy._types import Clique
from understudy.players.base import Answers, Kind, Problem, View, measure
from understudy.privacy.gate import Gate
from understudy.privacy.questions import WorstMarginals


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """Two rounds: all one-ways; then a private spanning tree and its pairs."""

    sigma_one: float
    sigma_pair: float
    rounds: int = 2

    ONE_WAY = "one-way marginals"
    SELECT = "select tree edges"
    PAIRS = "tree pairs"

    gives = frozenset({Kind.TABLE})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        if round == 0:
            return measure(gate, self.ONE_WAY, problem.columns, self.sigma_one)
        edges = self._tree(problem, gate, view)
        return measure(gate, self.PAIRS, edges, self.sigma_pair) if edges else ()

    def _tree(self, problem: Problem, gate: Gate, view: View) -> tuple[Clique, ...]:
        d = len(problem.shape)
        component = list(range(d))
        edges: list[Clique] = []
        pairs = list(combinations(range(d), 2))
        expected = {pair: problem.rows * view.marginal(pair) for pair in pairs}
        while len(edges) < d - 1:
            open_pairs = [(i, j) for i, j in pairs if component[i] != component[j]]
            references = [expected[pair] for pair in open_pairs]
            dependent = WorstMarginals(open_pairs, references, [0.0] * len(open_pairs))
            (pick,) = gate.ask(self.SELECT, dependent)
            i, j = open_pairs[pick]
            edges.append((i, j))
            old, new = component[j], component[i]
            component = [new if c == old else c for c in component]
        return tuple(sorted(edges))

"""AIM's query player: all columns, then, round by round, the marginal that promises most.

McKenna, Mullins, Sheldon, Miklau (VLDB 2022); docs/methods/aim.md has score and rounds. A score moves
by at most max w over the candidates of the round (twice that under replace), and it may rise and fall,
so ε0 = 2Δ/scale. What sets a round's share of ρ follows from released answers, and every draw goes
through the ledger's zCDP filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from understudy._types import Clique, Table
from understudy.models.decomposable import project
from understudy.models.junction import tree_cells, tree_cliques
from understudy.models.residual import closure
from understudy.players.base import Answers, Kind, Measured, Problem, View, measure
from understudy.players.data.maxent import EntropyModel, Move
from understudy.privacy import accounting, planning
from understudy.privacy.cost import Event, Gaussian, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import LARGEST_WEIGHT, Marginals, WorstMarginals
from understudy.privacy.relation import Relation

SELECTION = Fraction(1, 10)
"""Of a round, what the choice of the marginal costs."""

_CLOSE = 1e-9
_LARGEST_PENALTY = 2.0**50 / LARGEST_WEIGHT


def candidates(cliques: Sequence[Clique], weights: Sequence[float]) -> dict[Clique, int]:
    """The workload's closure, weighted by what each touches; whole numbers up to 4096.

    Weights that are whole numbers stay in their exact ratios as long as those fit.
    """
    parts = [part for part in closure(cliques) if part]
    column: dict[int, float] = {}  # Σ_s weight_s·|r ∩ s| is a sum over the columns of r
    for clique, weight in zip(cliques, weights, strict=True):
        for i in clique:
            column[i] = column.get(i, 0.0) + weight
    raw = {part: sum(column[i] for i in part) for part in parts}
    largest = max(raw.values())
    if all(float(w).is_integer() for w in weights):
        divisor = math.gcd(*(int(value) for value in raw.values()))
        if divisor > 0 and largest / divisor <= LARGEST_WEIGHT:
            return {part: max(1, int(value) // divisor) for part, value in raw.items()}
    scale = LARGEST_WEIGHT / largest
    return {part: max(1, round(value * scale)) for part, value in raw.items()}


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveRounds:
    """`rounds` at most. `total` is ρ, of which `adaptive` is for the rounds after the first."""

    rounds: int
    sigma_one: float
    candidates: dict[Clique, int]
    total: Fraction
    adaptive: Fraction
    share: Fraction
    megabytes: float

    ONE_WAY = "one-way marginals"
    ADAPTIVE = "adaptive rounds"

    gives = frozenset({Kind.TABLE})
    needs = (EntropyModel,)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`. Nothing is asked, or charged, once the zCDP filter is used."""
        if round == 0:
            return measure(gate, self.ONE_WAY, problem.columns, self.sigma_one)
        assert isinstance(view, EntropyModel)  # by `needs`
        share, left = self.next_share(view.moves)
        if share == 0:
            return ()
        spent = self.total - left + share
        limit = self.megabytes * float(spent / self.total)
        return (self._round(problem, gate, view, share, limit),)

    def next_share(self, moves: Sequence[Move]) -> tuple[Fraction, Fraction]:
        """(ρ of the next round, ρ left before it), from what the rounds so far did; 0 at the end."""
        left, share = self.adaptive, self.share
        for move in moves:
            share = left if left < 2 * share else share
            left -= share
            if move.moved <= move.noise:
                share *= 4
        return (left if left < 2 * share else share), left

    def unlike(self, events: Sequence[Event], relation: Relation) -> str | None:
        """Why no game charges these events, in order, against its zCDP filter; None if one may.

        What a round costs is known but for whether it was quadrupled, and what it selects from but
        for which candidates fit the size limit: single columns always do. Where two rounds' worth is
        left, to the last digit, the next may be one of them or both.
        """
        if len(events) % 2 or not events:
            return "a round is a selection and a measurement"
        single = max(weight for clique, weight in self.candidates.items() if len(clique) == 1)
        moves = {
            WorstMarginals.sensitivity(relation, weight)
            for weight in set(self.candidates.values())
            if weight >= single
        }
        moved = (1, relation.marginal_l2_squared())
        left, known = float(self.adaptive), [float(self.share)]
        for pick, table in zip(events[::2], events[1::2], strict=True):
            if not isinstance(pick, Selection) or pick.k != 1 or pick.sensitivity not in moves:
                return f"no round selects by {pick}"
            if not isinstance(table, Gaussian) or (table.step, table.changes) != moved:
                return f"no round measures by {table}"
            chosen, measured = float(accounting.rho(pick)), float(accounting.rho(table))
            cost, parts = chosen + measured, float((1 - SELECTION) / SELECTION)
            if not math.isclose(measured, parts * chosen, rel_tol=_CLOSE):
                return f"{pick} and {table} are not a round's shares"
            wanted = [left for share in known if left < 2 * share * (1 + _CLOSE)]
            wanted += [share for share in known if left > 2 * share * (1 - _CLOSE)]
            if not any(math.isclose(cost, each, rel_tol=_CLOSE) for each in wanted):
                return f"a round of ρ = {cost:.6g} where {left:.6g} is left"
            left, known = left - cost, [cost, 4 * cost]
        if left > _CLOSE * float(self.adaptive):
            return f"ρ = {left:.6g} was never used"
        return None

    def _round(
        self, problem: Problem, gate: Gate, view: EntropyModel, share: Fraction, limit: float
    ) -> Measured:
        relation = gate.facts.relation
        gaussian = planning.tables((1 - SELECTION) * share, relation)
        open_to = self._within(problem.shape, view, limit)
        weights = [self.candidates[clique] for clique in open_to]
        selection = planning.selection(
            SELECTION * share, sensitivity=WorstMarginals.sensitivity(relation, max(weights))
        )
        expected = _marginals(view, open_to, problem.rows)
        noise = math.sqrt(2 / math.pi) * gaussian.sigma
        penalties = [min(noise * table.size, _LARGEST_PENALTY) for table in expected]
        worst = WorstMarginals(open_to, expected, penalties, weights)
        (pick,) = gate.ask(self.ADAPTIVE, worst, selection)
        (table,) = gate.ask(self.ADAPTIVE, Marginals([open_to[pick]]), gaussian)
        return Measured(open_to[pick], table, gaussian.sigma)

    def _within(self, shape: tuple[int, ...], view: EntropyModel, limit: float) -> list[Clique]:
        """Candidates that the model holds already, or whose tree stays within `limit` megabytes."""
        known = [each.clique for each in view.measured]
        held = [set(clique) for clique in tree_cliques(shape, known)]
        most = limit * 2**20 / 8
        return [
            clique
            for clique in self.candidates
            if any(own.issuperset(clique) for own in held)
            or tree_cells(shape, [*known, clique]) <= most
        ]


def _marginals(view: EntropyModel, cliques: Sequence[Clique], rows: int) -> list[Table]:
    """n times the model's tables; those inside larger ones by adding up."""
    found: dict[Clique, Table] = {}
    holds: dict[Clique, Clique] = {}
    for clique in sorted(cliques, key=len, reverse=True):
        above = holds.get(clique)
        if above is None:
            found[clique] = rows * view.marginal(clique)
            for part in closure([clique]):
                holds.setdefault(part, clique)
        else:
            found[clique] = project(above, found[above], clique)
    return [found[clique] for clique in cliques]

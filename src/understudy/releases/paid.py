"""Whether what a release says it measured is what its charges paid for.

Query players are the source: what a player's draws give is known from its plan but for the tables that
it chooses on the way, and of those their number, their noise and where they may come from are known.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from understudy.errors import VerificationError
from understudy.players.base import Clique, QueryPlayer
from understudy.players.query.aim import AdaptiveRounds
from understudy.players.query.critic import CriticSteps
from understudy.players.query.fixed import FixedMarginals, InTurn, Together
from understudy.players.query.graph import DegreesAndBlocks
from understudy.players.query.picking import CellPicker, ExponentialMechanism
from understudy.players.query.recycling import Recycling
from understudy.players.query.survey import Opening, Survey, WorstAgain
from understudy.players.query.tree import SpanningTree
from understudy.players.query.weights import QueryWeights
from understudy.privacy.cost import Gaussian, Selection
from understudy.releases.bundle import Bundle
from understudy.releases.measurements import MOST_COUNTS, NAME, Measurement
from understudy.releases.replan import CLOSE, blueprint


def require_paid(bundle: Bundle) -> str:
    """Raise `VerificationError` unless number, shape and noise of what was measured fit the charges."""
    if "measurements" not in bundle.manifest:
        raise VerificationError("it does not say what was measured")
    own, measured = blueprint(bundle.synthetic), bundle.measurements
    design = own.design
    player = own.method.query_player(design, bundle.plan)
    kept = NAME in bundle.manifest["files"]
    if not kept:
        _require_counts(measured, design.shape)
    heard = _Heard(measured, design.shape, frozenset(design.cliques), kept=kept)
    _match(player, heard, bundle)
    heard.require_none_left()
    tables = sum(made.times for made in measured if made.kind == "table")
    asked = f" and {heard.asked:,} cells or queries" if heard.asked else ""
    return f"{tables:,} tables{asked}, as they were paid for"


@dataclass(slots=True)
class _Left:
    """A measurement, and how many of its `times` nobody has paid for yet."""

    made: Measurement
    times: int


class _Heard:
    """What is said to have been measured; players take from it what they paid for."""

    def __init__(
        self,
        measurements: Iterable[Measurement],
        shape: tuple[int, ...],
        workload: frozenset[Clique],
        *,
        kept: bool,
    ) -> None:
        self.shape, self.workload, self.kept, self.asked = shape, workload, kept, 0
        self._tables: dict[Clique, list[_Left]] = defaultdict(list)
        self._others: dict[str, list[_Left]] = defaultdict(list)
        for made in measurements:
            where = made.clique
            if any(i >= j for i, j in pairwise(where)):
                raise VerificationError(f"a measurement's columns {where} are not in order")
            left = _Left(made, made.times)
            if made.kind == "table":
                self._tables[where].append(left)
            elif made.table is not None or made.merged or made.draws > 1 or where not in workload:
                raise VerificationError(f"it has {made.kind} of columns {where}, which it cannot")
            else:
                self._others[made.kind].append(left)

    def take(self, clique: Clique, sigma: float, *, merged: bool = False) -> None:
        """One table of these columns with this noise; merged only where that may be."""
        for left in self._tables[clique]:
            fits = left.times > 0 and (merged or not left.made.merged)
            if fits and left.made.sigma == sigma:
                self._require_parts(left.made, 1)
                left.times -= 1
                return
        raise VerificationError(f"no table of columns {clique} with σ = {sigma:.6g} is there")

    def take_any(
        self, number: int, sigma: float, fits: Callable[[Clique], bool], *, split: bool = False
    ) -> list[Clique]:
        """So many tables with this noise, of columns that fit; which.

        With `split` a table may have been measured m times at once, with σ/√m, and counts as m.
        """
        found: list[Clique] = []
        for where, lefts in self._tables.items():
            for left in lefts if fits(where) else ():
                times = _times(left.made.sigma, sigma) if split else int(left.made.sigma == sigma)
                if not left.times or not times:
                    continue
                taken = min(left.times, (number - len(found)) // times)
                if taken:
                    self._require_parts(left.made, times)
                left.times -= taken
                found += [where] * (taken * times)
        if len(found) != number:
            raise VerificationError(
                f"{number} tables with σ = {sigma:.6g} were paid for; {len(found)} are there"
            )
        return found

    def _require_parts(self, made: Measurement, times: int) -> None:
        """A table is the mean of so many draws of integers; older bundles have the means alone."""
        if self.kept and made.draws != times:
            raise VerificationError(
                f"the table of columns {made.clique} is the mean of {made.draws} draws; its σ is "
                f"that of {times}"
            )
        counts = () if self.kept or made.table is None else made.table.values
        for count in counts:
            total = count * times
            if abs(total - round(total)) > 1e-6 + 1e-13 * abs(
                total
            ):  # what a mean in float64 loses
                raise VerificationError(f"a count of column {made.clique[0]} is no mean of {times}")

    def ask(self, kind: str, least: int, most: int, sigma: float | None = None) -> None:
        """Cells or queries, from `least` to `most` of them."""
        lefts = self._others.pop(kind, [])
        number = sum(left.times for left in lefts)
        for left in lefts:
            if left.made.sigma != sigma:
                raise VerificationError(f"{kind} with σ = {left.made.sigma} were not paid for")
        if not least <= number <= most:
            raise VerificationError(f"{least} {kind} were paid for; {number} are there")
        self.asked += number

    def require_none_left(self) -> None:
        """Nobody measures what nobody pays for."""
        tables = [left for lefts in self._tables.values() for left in lefts if left.times]
        others = [left for lefts in self._others.values() for left in lefts]
        for left in (*tables, *others):
            raise VerificationError(
                f"a measurement of columns {left.made.clique} with σ = {left.made.sigma} was not "
                f"paid for"
            )


def _times(sigma: float | None, whole: float) -> int:
    """m of σ/√m, 0 where there is none."""
    if sigma is None or sigma <= whole * 1e-4:
        return 0
    many = round((whole / sigma) ** 2)
    return many if many and math.isclose(sigma, whole / many**0.5, rel_tol=CLOSE) else 0


def _require_counts(measured: Iterable[Measurement], shape: tuple[int, ...]) -> None:
    """Without a file of tables, the index has the counts of all columns that are small, or none.

    Older bundles have them; of one whose tables are too large for the file nothing is kept.
    """
    tables = [made for made in measured if made.kind == "table"]
    if all(made.table is None for made in tables):
        return
    for made in tables:
        size = math.prod(shape[i] for i in made.clique)
        whole = len(made.clique) == 1 and not made.merged and size <= MOST_COUNTS
        found = 0 if made.table is None else made.table.values.size
        if (made.table is not None) != whole or found != size * whole:
            raise VerificationError(
                f"the table of column {made.clique[0]} has {found} counts; it has {size} values"
            )


def _match(player: QueryPlayer, heard: _Heard, bundle: Bundle) -> None:
    """Take what this player's draws gave."""
    everywhere = [(i,) for i in range(len(heard.shape))]
    match player:
        case FixedMarginals():
            for clique in player.cliques:
                heard.take(clique, player.sigma)
        case SpanningTree():
            for clique in everywhere:
                heard.take(clique, player.sigma_one)
            if player.rounds > 1:
                pairs = heard.take_any(
                    len(everywhere) - 1, player.sigma_pair, lambda clique: len(clique) == 2
                )
                _require_tree(pairs)
        case Opening():
            for tier in player.columns:
                for clique in tier.cliques:
                    heard.take(clique, tier.sigma)
            for tier in player.pairs:
                for pair in tier.cliques:
                    heard.take(pair, tier.sigma, merged=True)
        case Survey():
            _match(player.first, heard, bundle)
            larger = {slot.clique for slot in player.higher}
            larger |= {clique for look in player.interactions for clique in look.candidates}
            known = {*player.first.every_pair, *larger, *everywhere}
            total = player.units * player.again
            heard.take_any(total, player.sigma_again, known.__contains__, split=True)
        case WorstAgain():
            _match(player.first, heard, bundle)
            pairs = {*player.first.every_pair, *player.candidates}
            number = player.picks * player.again if player.candidates else 0
            heard.take_any(
                number, player.sigma, lambda clique: clique in pairs or clique in heard.workload
            )
        case AdaptiveRounds():
            for clique in everywhere:
                heard.take(clique, player.sigma_one)
            for drawn in bundle.drawn:
                if drawn.purpose == player.ADAPTIVE and isinstance(drawn.event, Gaussian):
                    heard.take_any(1, drawn.event.sigma, lambda clique: clique in player.candidates)
        case CriticSteps():
            for clique in everywhere:
                heard.take(clique, player.sigma)
        case DegreesAndBlocks():
            if player.pair_sigma is not None:
                heard.take((2, 3), player.pair_sigma)
            heard.take((0, 1), player.class_sigma, merged=True)
        case ExponentialMechanism():
            kind = "queries" if player.sigma is None else "cells"
            heard.ask(kind, player.rounds, player.rounds, player.sigma)
        case CellPicker():
            heard.ask("queries", player.rounds, player.rounds)
        case Recycling() | QueryWeights():
            _match_weights(player, heard, bundle)
        case InTurn():
            _match(player.first, heard, bundle)
            _match(player.then, heard, bundle)
        case Together():
            for each in player.players:
                _match(each, heard, bundle)
        case _:  # critics, moments and payoffs: no table comes of them
            pass


def _match_weights(player: Recycling | QueryWeights, heard: _Heard, bundle: Bundle) -> None:
    """Every draw is a query; a coin may have kept one more."""
    drawn = tossed = 0
    for charge in bundle.plan:
        if isinstance(charge.event, Selection):
            drawn += charge.event.k * charge.purpose.startswith("queries of round")
            tossed += charge.event.k * charge.purpose.startswith("coins of round")
    heard.ask("queries", drawn, drawn + tossed)


def _require_tree(pairs: list[Clique]) -> None:
    component: dict[int, int] = {}

    def root(i: int) -> int:
        while component.get(i, i) != i:
            i = component[i]
        return i

    for a, b in pairs:
        if root(a) == root(b):
            raise VerificationError("the pairs that were measured are no tree")
        component[root(a)] = root(b)

"""A data player that is a generator network: a mixture of products, trained on what was released.

GEM of Liu, Vietri and Wu (2021). The rows of the network (`understudy.nets`) are listed once the game
is over, so that a release can be sampled and loaded without it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._types import Clique, Codes, Rng, Table
from understudy.models import Measured, View, Weighted
from understudy.models.blocks import Belief, beliefs
from understudy.models.fitting import independent
from understudy.players.base import Answers, DataPlayer, Kind, Problem
from understudy.progress import Progress, silent

if TYPE_CHECKING:
    from understudy.nets.training import Effort, Mixture


_LEAST, _MOST, _PER_ROW = 20_000, 400_000, 8
"""Records of the final model: so many for a row, within bounds."""
_MIX = 0.05  # Share of independence in other priors: their empty cells are not certain
_LATER, _SLOWER = 0.7, 3.0
"""A network that was trained before takes this share of the steps, at a rate so much lower: a high rate
would throw it off what it knows."""
_SPREAD = 0.3  # Weight of the pull towards independent columns
_SLICE = 30_000_000
_CLOSE, _SMALL = 1e-3, 1e-5
"""No cell is held closer than √(its share/1000): a few spikes measured well would else outweigh all
other cells by orders of magnitude, and nothing would be learned. Smaller shares count as the second."""


@dataclass(frozen=True, eq=False)
class ProductMixture(View):
    """A mixture of product distributions, equally weighted: heads[i] is (B, shape[i])."""

    heads: tuple[Table, ...]

    def marginal(self, clique: Clique) -> Table:
        """The exact average over the mixture, in slices of it."""
        sizes = [self.heads[i].shape[1] for i in clique]
        if not clique:
            return np.ones(())
        last = max(range(len(sizes)), key=lambda k: (sizes[k], k))
        lead = [k for k in range(len(sizes)) if k != last]
        cells = math.prod(sizes[k] for k in lead)
        batch = self.heads[0].shape[0]
        step = max(1, _SLICE // cells)
        total = np.zeros((cells, sizes[last]))
        for at in range(0, batch, step):
            outer = np.ones((min(step, batch - at), 1))
            for k in lead:
                head = self.heads[clique[k]][at : at + step]
                outer = (outer[:, :, None] * head[:, None, :]).reshape(outer.shape[0], -1)
            total += outer.T @ self.heads[clique[last]][at : at + step]
        table = np.moveaxis(total.reshape(*(sizes[k] for k in lead), sizes[last]), -1, last)
        return table / table.sum()


@dataclass(frozen=True, eq=False)
class State:
    """Everything released so far, and the network that was fitted to it."""

    measured: tuple[Measured, ...] = ()
    mixture: Mixture | None = None
    expected: Mapping[Clique, Table] = field(default_factory=dict)
    """Shares that the network gave larger tables before they were measured."""
    round: int = 0
    diverged: bool = False


@dataclass(frozen=True)
class GeneratorPlayer(DataPlayer[State]):
    """Trains `batch` latents and a network of `blocks` × `width` on all released tables.

    `rounds` is how many rounds the game has; the first training is the longest. `public`, one code
    array per column, are rows that anybody may know: training starts there, and where noise hides a
    table, their table is believed instead of independence. `hold_out` stops training by noise that is
    held out of the measurements; otherwise all steps are taken.
    """

    rounds: int
    batch: int = 1000
    latent: int = 64
    width: int = 128
    blocks: int = 1
    steps: int = 1200
    rate: float = 0.03
    memory: float = 2e9
    public: tuple[Codes, ...] | None = field(default=None, repr=False)
    hold_out: bool = False

    accepts = frozenset({Kind.TABLE, Kind.COARSENED})
    shows = ProductMixture

    def start(self, problem: Problem) -> State:
        """Nothing measured and nothing trained."""
        return State()

    def view(self, problem: Problem, state: State) -> Any:
        """The mixture; independent columns before there is one."""
        if state.mixture is None:
            return independent(problem.shape, state.measured, problem.rows)
        return ProductMixture(tuple(state.mixture.heads()))

    def respond(self, problem: Problem, state: State, answers: Answers, rng: Rng) -> State:
        """Train on everything released so far, from where the last round ended."""
        fresh = tuple(answer for answer in answers if isinstance(answer, Measured))
        key = int(rng.integers(2**31))
        measured, number = state.measured + fresh, state.round + 1
        if state.diverged or not fresh:
            return replace(state, measured=measured, round=number)
        alone = all(len(m.clique) < 2 for m in measured)
        if alone and number < self.rounds:
            return replace(state, measured=measured, round=number)
        view, known = self.view(problem, state), dict(state.expected)
        for m in fresh:
            if len(m.clique) > 2 and m.clique not in known:
                known[m.clique] = view.marginal(m.clique)
        told = replace(state, measured=measured, round=number, expected=known)
        return self._train(problem, told, key)

    def finish(self, problem: Problem, state: State) -> Weighted:
        """Records drawn from the mixture with low discrepancy, equally weighted."""
        mixture = state.mixture
        if mixture is None:  # nothing was released, or nothing could be trained
            return self.finish(problem, self._train(problem, replace(state, diverged=True), 0))
        wanted = min(_MOST, max(_LEAST, _PER_ROW * problem.rows))
        each = max(1, round(wanted / self.batch))
        # A fixed key: which records stand for the mixture is of no consequence, but repeatable.
        codes = listed(mixture.heads(), each, np.random.default_rng(len(state.measured)))
        weights = np.full(codes[0].size, 1.0 / codes[0].size, np.float32)
        return Weighted(problem.shape, codes, weights, problem.cliques)

    def over(self, state: State) -> bool:
        """Once training has diverged."""
        return state.diverged

    def _train(self, problem: Problem, state: State, key: int) -> State:
        from understudy.nets.generator import Generator
        from understudy.nets.training import start, train

        rows = float(max(problem.rows, 1))
        prior = self._prior(problem, state)
        rng = np.random.default_rng(key) if self.hold_out else None
        columns, found = beliefs(problem.shape, state.measured, rows, prior, rng)
        shares = [column / column.sum() for column in columns]
        mixture, fresh = state.mixture, state.mixture is None and self.public is None
        if mixture is None:
            net = Generator(problem.shape, self.latent, self.width, self.blocks)
            mixture = start(net, self.batch, key, shares)
            if self.public is not None:  # their tables, as if they had been measured
                evidence = [_evidence(_certain(belief, rows), rows) for belief in found]
                report = self._report(problem, "public rows")
                mixture = train(mixture, shares, evidence, self._effort(True), report).mixture
        if state.diverged:
            return replace(state, mixture=mixture)
        evidence = [_evidence(belief, rows) for belief in found]
        report = self._report(problem, f"round {state.round}")
        done = train(mixture, shares, evidence, self._effort(fresh), report)
        if done.diverged:
            warnings.warn(
                f"training diverged in round {state.round} after {done.steps} steps with rate = "
                f"{self.rate}: the last good state is kept, and nothing more is asked of the "
                f"data; a lower rate may help",
                RuntimeWarning,
                stacklevel=2,
            )
        return replace(state, mixture=done.mixture, diverged=done.diverged)

    def _effort(self, fresh: bool) -> Effort:
        from understudy.nets.training import Effort

        steps = self.steps if fresh else max(1, round(_LATER * self.steps))
        rate = self.rate if fresh else self.rate / _SLOWER
        # Public rows are expected instead of independent columns.
        spread = _SPREAD if self.public is None else _SPREAD / 10
        return Effort(steps, rate, spread, self.memory)

    def _report(self, problem: Problem, what: str) -> Callable[[int, int, float], None] | None:
        if problem.watch is silent:
            return None
        return lambda step, steps, loss: problem.watch(
            Progress(f"training on {what}", step, steps, f"loss {loss:.4g}")
        )

    def _prior(self, problem: Problem, state: State) -> Callable[[Clique], Table]:
        """Counts expected before a measurement: of the network so far, public rows, independence."""
        rows = float(max(problem.rows, 1))
        ones = independent(problem.shape, state.measured, rows)
        known = None
        if self.public is not None:
            weights = np.ones(self.public[0].size, np.float32)
            known = Weighted(problem.shape, self.public, weights)

        def expected(clique: Clique) -> Table:
            flat = rows * ones.marginal(clique)
            if clique in state.expected:
                return (1 - _MIX) * rows * state.expected[clique] + _MIX * flat
            if known is None:
                return flat
            table = np.ascontiguousarray((1 - _MIX) * rows * known.marginal(clique) + _MIX * flat)
            if len(clique) == 2:
                from understudy.models._kernels import balance

                balance(table.reshape(-1), flat.sum(axis=1), flat.sum(axis=0), 20)
            return table

        return expected


def _evidence(belief: Belief, rows: float) -> Any:
    from understudy.nets.tables import Table as Which
    from understudy.nets.training import Evidence

    values, expected = belief.values / rows, belief.expected / rows
    least = _CLOSE * np.maximum(np.maximum(values, expected), _SMALL)
    ratio = np.maximum(np.asarray(belief.ratio) / rows, least)
    noise, again = belief.noise.reshape(-1) / rows**2, belief.again / rows
    return Evidence(Which(belief.clique, belief.labels), values, expected, ratio, noise, again)


def _certain(belief: Belief, rows: float) -> Belief:
    """What was expected, as if it had been measured."""
    sure = np.full(belief.expected.size, 1.0 / rows)
    return replace(
        belief, values=belief.expected, ratio=sure, noise=sure, again=np.zeros(sure.size)
    )


def listed(heads: list[Table], each: int, rng: Rng) -> tuple[Codes, ...]:
    """`each` records for every product of a mixture, one array of codes per column.

    Systematic: in every product a value of probability p is taken ⌊p·each⌋ or ⌈p·each⌉ times, in an
    order of its own for every column, so columns are independent within a product as they should be.
    """
    batch = heads[0].shape[0]
    columns: list[Codes] = []
    for head in heads:
        points = (np.arange(each)[None, :] + rng.random((batch, 1))) / each
        ends = np.cumsum(head, axis=1)
        codes = np.empty((batch, each), np.min_scalar_type(head.shape[1]))
        for b in range(batch):
            codes[b] = np.searchsorted(ends[b], points[b] * ends[b, -1], side="right")
        np.minimum(codes, head.shape[1] - 1, out=codes)
        columns.append(rng.permuted(codes, axis=1).reshape(-1))
    return tuple(columns)

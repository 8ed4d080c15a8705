"""Regularised maximum entropy on weighted records: the fit of the default method.

Given noisy tables y_j with noise σ_j, one-way tables are estimated first (`margins`) and held exactly;
every further table then says something about dependence only. The model is

    p(x) ∝ Π_i exp α_i(x_i) · Π_j exp θ_j(x_j),      θ_j = (y_j − m_j)/e_j on every cell,

m_j its own table: the distribution closest to independence in relative entropy, measurements weighed
by their ratio of noise to prior variance e (`blocks`).

Solved block by block, first on a junction tree (`junction`), which holds the strongest dependences and
is sampled; then on the weights of those records, which hold all. A table that shows nothing beyond its
columns is left out, unless the tree of the others shows something there. Where the weights would leave
few of the records effective, the records are moved instead (`moves`). Deterministic given `rng`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Projection, Table
from understudy.models import _kernels as kernels
from understudy.models.blocks import Block, blocks_of, by_table, column_blocks, refine
from understudy.models.junction import JunctionTree, grow
from understudy.models.margins import Told, one_ways
from understudy.models.measured import Measured, View, total
from understudy.models.moves import Cloud, spread
from understudy.models.smooth import smooth
from understudy.models.trends import trends
from understudy.models.weighted import Weighted, swaps_for

_SETTLED = 0.04
"""A sweep of the tree or the weights that moves the tables by less than this part of how far they are
from what was measured is the last: noise hides what further ones would do."""
_HEALTHY = 0.5
"""The share of records that weights must leave effective."""
_TOLD_BY = 8
"""One record in so many tells whether to try weights, and which tables the model contradicts."""
_FURTHER = 2
"""Sweeps that follow where the weights contradict what was measured."""
_FEWEST_MOVED = 20_000
"""Half of the records are moved, fewer of wide tables, and never fewer than this; all that were drawn
say where they may go."""
_MOVES = 3_000_000_000
"""Entries of factors that one round of moves may look at."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to try. More records lower the sampling error of the model; sweeps converge fast."""

    records: int = 200_000
    tree_cells: int = 300_000
    tree_sweeps: int = 10
    sweeps: int = 4
    tell: Callable[[], None] = field(default=lambda: None, repr=False)
    """Called before every pass over all blocks."""


@dataclass(frozen=True, eq=False)
class Fitted(View):
    """A fitted model, the one-way estimates it holds (counts) and their standard deviations."""

    model: Weighted | None
    one_ways: tuple[Table, ...]
    deviations: tuple[float, ...]

    def marginal(self, clique: Clique) -> Table:
        """Shares summing to one; independent columns where nothing else was measured."""
        if self.model is not None:
            return self.model.marginal(clique)
        table = np.ones(())
        for i in clique:
            table = np.multiply.outer(table, self.one_ways[i] / self.one_ways[i].sum())
        return table


def independent(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    rows: float,
    told: Sequence[Told] = (),
    rows_sigma: float = 0.0,
) -> Fitted:
    """The fit of one-way tables alone: independent columns; `rows` and its noise as in `fit`."""
    estimates, deviations = one_ways(shape, measured, total(measured, rows, rows_sigma), told=told)
    return Fitted(None, estimates, deviations)


def fit(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    rows: float,
    effort: Effort,
    rng: np.random.Generator,
    project: Projection | None = None,
    ordered: Sequence[int] = (),
    twins: Sequence[Clique] = (),
    told: Sequence[Told] = (),
    rows_sigma: float = 0.0,
) -> Fitted:
    """Fit everything that was measured.

    `rows` is the number of rows, with noise of deviation `rows_sigma` where it is not public (`total`).
    `ordered` says how many of each column's values, the first ones, are in an order: tables of pairs
    that were measured in runs of them are fitted smoothly (`smooth`). `twins` are columns of a child
    with the same of a sibling, whose last value says that there is none. `told` is what was counted of
    columns before (`margins`).

    `project` moves records that public rules forbid to the nearest that they allow. It does so before
    the records are weighed, so that what was measured is fitted by allowed records alone: the model
    gives nothing to any other.
    """
    rows = max(float(total(measured, rows, rows_sigma)), 1.0)
    estimates, deviations = one_ways(shape, measured, rows, ordered, told)
    found, gains = blocks_of(shape, measured, estimates, rows, twins=twins, ordered=ordered)
    columns = column_blocks(estimates, deviations)
    blocks = [_smooth(block, estimates, ordered) for block in found if block.shows]
    if ordered:
        blocks += trends(measured, estimates, ordered, rows, [other for _, other in twins])
    tree = JunctionTree(shape, *grow(shape, gains, effort.tree_cells))
    _fit_tree(tree, [*blocks, *columns], rows, effort)
    codes = tree.sample(effort.records, rng)
    if project is not None:
        codes = project(codes)
    cloud = Cloud(codes, shape, rows)
    silent = [block for block in found if not block.shows]
    part = cloud.part(max(1, cloud.size // _TOLD_BY))
    missed = _contradicted(part, found)
    blocks += [_smooth(block, estimates, ordered) for block in silent if block in missed]
    if _weigh(cloud, part, blocks, columns, effort):
        if late := _contradicted(cloud, found):
            new = [block for block in silent if block in late and block not in missed]
            _further(cloud, [*blocks, *new], columns, effort)
    else:
        reach = _reach(cloud, blocks)
        looked_at = sum(sum(shape[i] for i in pair) for pair in reach)
        few = max(_FEWEST_MOVED, min(cloud.size // 2, _MOVES // max(looked_at, 1)))
        cloud = cloud.part(min(few, cloud.size))
        spread(cloud, blocks, columns, reach, rng, project, tell=effort.tell)
        order = np.lexsort([cloud.codes[i] for i in tree.order])
        cloud.codes, cloud.weights = cloud.codes[:, order], cloud.weights[order]
    small = [
        column.astype(np.min_scalar_type(size - 1))
        for column, size in zip(cloud.codes, shape, strict=True)
    ]
    weights = cloud.weights.astype(np.float32)
    model = Weighted(shape, tuple(small), weights, swaps=swaps_for(rows))
    return Fitted(model, estimates, deviations)


def _smooth(block: Block, estimates: Sequence[Table], ordered: Sequence[int]) -> Block:
    """Pairs of two ordered columns that were measured in runs of their values."""
    if not ordered or len(block.clique) != 2 or min(ordered[i] for i in block.clique) < 2:
        return block
    i, j = block.clique
    return smooth(block, (estimates[i], estimates[j]), (ordered[i], ordered[j]))


def _fit_tree(tree: JunctionTree, blocks: Sequence[Block], rows: float, effort: Effort) -> None:
    """Fit the blocks whose columns lie in one clique of the tree."""
    tables = [views for _, views in by_table(blocks)]
    homes: list[list[tuple[int, Clique]]] = [[] for _ in tree.cliques]
    for number, views in enumerate(tables):
        home = tree.home(views[0].clique)
        if home is not None:
            homes[home].append((number, views[0].clique))

    moved = off = 0.0

    def refined(number: int, table: Table) -> Table:
        nonlocal moved, off
        flat = rows * np.ascontiguousarray(table).reshape(-1)
        factors, *far = refine(tables[number], flat, rows, tree.shape)
        moved, off = moved + sum(far[0]), off + sum(far[1])
        return factors.reshape(table.shape)

    for _ in range(effort.tree_sweeps):
        effort.tell()
        moved = off = 0.0
        tree.sweep(homes, refined)
        if moved < _SETTLED * off:
            break


def _weigh(
    cloud: Cloud, part: Cloud, blocks: Sequence[Block], columns: Sequence[Block], effort: Effort
) -> bool:
    """Fit the weights; False, and all factors as they were, if too few records would be effective.

    A part of the records, not weighed yet, tells whether to try.
    """
    every = (*blocks, *columns)
    before = [block.theta for block in every]
    for trial, most in ((part, 1), (cloud, effort.sweeps)):
        for block, theta in zip(every, before, strict=True):
            block.theta = theta
        for _ in range(most):
            effort.tell()
            moved, off = map(np.sum, trial.refine(every))
            if trial.effective < _HEALTHY * trial.size:
                for block, theta in zip(every, before, strict=True):
                    block.theta = theta
                return False
            if moved < _SETTLED * off:
                break
    cloud.hold(columns)
    return True


def _contradicted(cloud: Cloud, found: Sequence[Block]) -> set[Block]:
    """Blocks that the records contradict."""
    spread = cloud.rows / cloud.effective
    return {block for block, table in cloud.tables(found) if block.contradicted(table, spread)}


def _further(
    cloud: Cloud, blocks: Sequence[Block], columns: Sequence[Block], effort: Effort
) -> None:
    """More sweeps on the weights, if they leave enough of the records effective."""
    before = cloud.weights.copy()
    for _ in range(_FURTHER):
        effort.tell()
        cloud.refine(blocks)
        cloud.hold(columns)
    if cloud.effective < _HEALTHY * cloud.size:
        cloud.weights = before


def _reach(cloud: Cloud, blocks: Sequence[Block]) -> dict[Clique, NDArray[np.bool_]]:
    """The cells of every pair that is fitted which some record is in."""
    reach: dict[Clique, NDArray[np.bool_]] = {}
    for pair in dict.fromkeys(block.clique for block in blocks if len(block.clique) == 2):
        held = np.zeros([cloud.shape[i] for i in pair], np.bool_)
        kernels.mark(cloud.codes[pair[0]], cloud.codes[pair[1]], held)
        reach[pair] = held
    return reach

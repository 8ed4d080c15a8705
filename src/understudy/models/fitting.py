"""Regularised maximum entropy on weighted records: the fit of the default method.

Given noisy tables y_j with noise σ_j, one-way tables are estimated first (`margins`) and held exactly;
every further table then says something about dependence only. The model is

    p(x) ∝ Π_i exp α_i(x_i) · Π_j exp θ_j(x_j),      θ_j = (y_j − m_j)/e_j on every cell,

m_j its own table: the distribution closest to independence in relative entropy, measurements weighed
by their ratio of noise to prior variance, e = σ²/κ, where κ·b is the variance a cell of expectation b
is believed to have around it. κ is found per table from the measurement itself (empirical Bayes:
‖y − b‖² beyond what noise would do, per row), and per cell where one stands out by itself. Tables are
seen a second time with rare values merged, so that a shift of much mass is not resisted by many small
cells.

Solved block by block: the factor of a block is taken out of the current table, the margins are put in
place, m + e·ln(m/b) = y + ν is solved (`_kernels.solve`), and the factor put back. First on a junction
tree (`junction`), which holds the strongest dependences and is sampled; then on the weights of those
records, which hold all. Deterministic given `rng`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Projection, Table
from understudy.models.junction import JunctionTree, grow
from understudy.models.margins import FREQUENT, one_ways, per_cell
from understudy.models.measured import Labels, Measured, View, frequent, merge
from understudy.models.weighted import Weighted, swaps_for

__all__ = ["Belief", "Effort", "Fitted", "beliefs", "fit", "independent"]

Prior = Callable[[Clique], Table]
"""A table of counts that is expected before anything is measured, beyond independence."""

# Constants chosen on ADULT and LOANS; see docs/methods/maxent.md.
_FLOOR = 5.0
"""κ is at least min(σ, n/K)/5."""
_SIGNIFICANT = 2.0
"""Deviations by which a second view must differ from independence to be used."""
_THETA = 40.0
_SETTLED = 0.04
"""A sweep that moves the tables by less than this part of how far they are from what was measured is
the last: noise hides what further ones would do."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to try. More records lower the sampling error of the model; sweeps converge fast."""

    records: int = 200_000
    tree_cells: int = 100_000
    tree_sweeps: int = 6
    sweeps: int = 10


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


@dataclass(frozen=True, eq=False)
class Belief:
    """What a measured table says, in counts: values y, what was expected of it, and e of a cell.

    `ratio` is e, the ratio of noise to prior variance, `noise` the variance of the noise in a cell,
    and `again` that noise drawn once more, the same in all views of a table.
    """

    clique: Clique
    labels: tuple[Labels, ...] | None
    values: Table
    expected: Table
    ratio: Table
    noise: Table
    again: Table


@dataclass(eq=False)
class _Block:
    """One table of the fit and its factor so far."""

    clique: Clique
    labels: tuple[Labels, ...] | None
    y: Table
    ratio: Table
    noise: Table
    margins: tuple[Table, Table] | None
    theta: Table = field(init=False)
    again: Table = field(init=False)

    def __post_init__(self) -> None:
        self.theta, self.again = np.zeros(self.y.size), np.zeros(self.y.size)

    def refine(self, current: Table, rows: float) -> Table:
        """Factors that take the current table (flat, summing to `rows`) to the solution."""
        from understudy.models import _kernels as kernels

        base = current * np.exp(-self.theta)
        if self.margins is not None:
            first, second = self.margins
            kernels.balance(base.reshape(first.size, second.size), first, second, 3)
        else:
            base *= rows / max(float(base.sum()), 1e-300)
        with np.errstate(divide="ignore"):
            log_base = np.log(base)
        solved = np.empty_like(base)
        kernels.solve(self.y, log_base, self.ratio, rows, solved)
        if self.margins is not None:
            first, second = self.margins
            kernels.balance(solved.reshape(first.size, second.size), first, second, 3)
        inside = current > 0
        factors = np.divide(solved, current, out=np.ones_like(current), where=inside)
        step = np.log(np.maximum(factors, 1e-300), out=np.zeros_like(factors), where=inside)
        self.theta = np.clip(self.theta + step, -_THETA, _THETA)
        return factors


def independent(shape: tuple[int, ...], measured: Sequence[Measured], rows: float) -> Fitted:
    """The fit of one-way tables alone: independent columns."""
    estimates, deviations = one_ways(shape, measured, rows)
    return Fitted(None, estimates, deviations)


def beliefs(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    rows: float,
    prior: Prior | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[tuple[Table, ...], tuple[Belief, ...]]:
    """(counts of every column, what the larger tables say), for models that fit them otherwise.

    `prior` takes the place of independence as what is expected where noise hides the table. Tables of
    three and more columns are believed whole, what their pairs say included. `rng` draws their noise
    once more.
    """
    rows = max(float(rows), 1.0)
    estimates, _ = one_ways(shape, measured, rows)
    found: list[Belief] = []
    for block in _blocks(shape, measured, estimates, rows, prior, rng, whole_larger=True)[0]:
        expected = _expected(block.clique, estimates, rows, prior)
        if block.labels is not None:
            expected = merge(expected, block.labels)
        told = block.y, expected.reshape(-1), block.ratio, block.noise, block.again
        found.append(Belief(block.clique, block.labels, *told))
    return estimates, tuple(found)


def fit(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    rows: float,
    effort: Effort,
    rng: np.random.Generator,
    cliques: Sequence[Clique] = (),
    project: Projection | None = None,
) -> Fitted:
    """Fit everything that was measured; `cliques` are what sampled rows will be held to.

    `project` moves records that public rules forbid to the nearest that they allow. It does so before
    the records are weighed, so that what was measured is fitted by allowed records alone: the model
    gives nothing to any other.
    """
    rows = max(float(rows), 1.0)
    estimates, deviations = one_ways(shape, measured, rows)
    blocks, gains = _blocks(shape, measured, estimates, rows)
    ones = [
        _Block((i,), None, estimate, np.full(estimate.size, 1e-6), np.zeros(estimate.size), None)
        for i, estimate in enumerate(estimates)
    ]
    blocks = blocks + ones
    tree = JunctionTree(shape, *grow(shape, gains, effort.tree_cells))
    homes: list[list[tuple[int, Clique]]] = [[] for _ in tree.cliques]
    for number, block in enumerate(blocks):
        home = tree.home(block.clique)
        if home is not None:
            homes[home].append((number, block.clique))

    def refine(number: int, table: Table) -> Table:
        from understudy.models import _kernels as kernels

        block = blocks[number]
        if block.labels is None:
            return block.refine(rows * table.reshape(-1), rows).reshape(table.shape)
        cells = _grid(block.labels)
        flat = rows * np.ascontiguousarray(table).reshape(-1)
        current = np.empty(block.y.size)
        kernels.weigh(cells.reshape(-1), flat, current)
        return block.refine(current, rows)[cells]

    for _ in range(effort.tree_sweeps):
        tree.sweep(homes, refine)
    codes = tree.sample(effort.records, rng)
    if project is not None:
        codes = project(codes)
    weights = _reweigh(blocks, ones, codes, shape, rows, effort.sweeps)
    records = weights.astype(np.float32)
    model = Weighted(shape, tuple(codes), records, tuple(cliques), swaps_for(rows))
    return Fitted(model, estimates, deviations)


def _expected(
    clique: Clique, estimates: Sequence[Table], rows: float, prior: Prior | None = None
) -> Table:
    """Counts of a table before it was measured: independent columns, or those of a prior."""
    if prior is not None:
        return prior(clique)
    expected = np.ones(())
    for i in clique:
        expected = np.multiply.outer(expected, estimates[i])
    return expected / rows ** (len(clique) - 1)


def _blocks(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    estimates: Sequence[Table],
    rows: float,
    prior: Prior | None = None,
    rng: np.random.Generator | None = None,
    *,
    whole_larger: bool = False,
) -> tuple[list[_Block], dict[Clique, float]]:
    """The blocks of the fit, and how much dependence (nats) each clique shows."""
    whole: dict[Clique, list[Measured]] = {}
    merged: dict[Clique, list[Measured]] = {}
    for m in measured:
        if len(m.clique) >= 2:
            (whole if m.labels is None else merged).setdefault(m.clique, []).append(m)
    blocks: list[_Block] = []
    gains: dict[Clique, float] = {}
    for clique in dict.fromkeys([*whole, *merged]):
        expected = _expected(clique, estimates, rows, prior)
        views: list[tuple[tuple[Labels, ...] | None, Table, float]] = []
        if clique in whole:
            weights = np.array([m.sigma**-2 for m in whole[clique]])
            average = sum(w * m.values for w, m in zip(weights, whole[clique], strict=True))
            views.append((None, average / weights.sum(), float(weights.sum() ** -0.5)))
        views += [(m.labels, m.values.astype(float), m.sigma) for m in merged.get(clique, [])]
        gain = 0.0
        for labels, values, sigma in views:
            apart = len(clique) <= 2 or not whole_larger
            block, found = _view(clique, labels, values, expected, sigma, rows, apart)
            blocks.append(block)
            gain = max(gain, found)
            noise = np.zeros(values.shape) if rng is None else rng.normal(0, sigma, values.shape)
            noise = _interaction(noise) if apart else noise - noise.mean()
            block.again[:] = noise.reshape(-1)
            if labels is None and len(clique) == 2:
                second = _second_view(clique, values, expected, estimates, sigma, rows)
                if second is not None and second.labels is not None:
                    second.again[:] = merge(noise, second.labels).reshape(-1)
                    blocks.append(second)
        gains[clique] = gain
        if len(clique) > 2:  # its pairs must be able to meet in the tree as well
            gains[clique] = gain + 1e-9
    return blocks, gains


def _view(
    clique: Clique,
    labels: tuple[Labels, ...] | None,
    values: Table,
    expected: Table,
    sigma: float,
    rows: float,
    apart: bool = True,
) -> tuple[_Block, float]:
    """`apart`: what the table says beyond its margins alone, for they are held elsewhere."""
    base = expected if labels is None else merge(expected, labels)
    off = values - base
    residual = _interaction(off) if apart else off - off.mean()
    free = math.prod(size - 1 for size in base.shape) if apart else base.size - 1
    noise = np.full(base.size, sigma * sigma * max(free, 1) / base.size)
    believed = max(
        min(sigma, rows / base.size) / _FLOOR,
        (float((residual**2).sum()) - sigma**2 * (free + math.sqrt(2 * free))) / rows,
    )
    believed = min(believed, 2 * rows)  # no table varies more than all rows in one cell would
    ratio = sigma**2 / per_cell(residual, noise, base, believed)
    margins = _margins(base)
    block = _Block(clique, labels, (base + residual).reshape(-1), ratio, noise, margins)
    flat = base.reshape(-1)
    shown = flat * block.refine(flat.copy(), rows)
    block.theta[:] = 0.0
    share = np.maximum(shown, 1e-300) / rows
    gain = float((share * np.log(share / np.maximum(flat / rows, 1e-300))).sum())
    return block, gain


def _second_view(
    clique: Clique,
    values: Table,
    expected: Table,
    estimates: Sequence[Table],
    sigma: float,
    rows: float,
) -> _Block | None:
    """The same table with rare values merged, where that shows dependence by itself."""
    labels = tuple(frequent(estimates[i], FREQUENT) for i in clique)
    groups = [np.bincount(label) for label in labels]
    coarse = math.prod(g.size for g in groups)
    if coarse >= values.size or min(g.size for g in groups) < 2:
        return None
    base = merge(expected, labels)
    residual = merge(_interaction(values - expected), labels)
    spread = [g * (1 - g / g.sum()) for g in groups]
    noise = sigma**2 * np.multiply.outer(*spread).reshape(-1)
    beyond = float((residual**2).sum() - noise.sum())
    believed = (beyond - _SIGNIFICANT * math.sqrt(2 * float((noise**2).sum()))) / rows
    cells = per_cell(residual, noise, base, max(believed, 0.1))
    if believed <= 0 and cells.max() <= 0.1:
        return None
    ratio = np.maximum(noise, 1e-6) / cells
    return _Block(clique, labels, (base + residual).reshape(-1), ratio, noise, _margins(base))


def _interaction(residual: Table) -> Table:
    """What a residual says beyond its one-way margins: means over every axis taken out."""
    for axis in range(residual.ndim):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    return residual


def _margins(base: Table) -> tuple[Table, Table] | None:
    return (base.sum(axis=1), base.sum(axis=0)) if base.ndim == 2 else None


def _cells(
    block: _Block, codes: Sequence[NDArray[np.unsignedinteger[Any]]], shape: tuple[int, ...]
) -> NDArray[np.unsignedinteger[Any]]:
    """The cell of every record in the table of a block."""
    small = np.uint16 if block.y.size <= 65536 else np.uint32
    cell = np.zeros(codes[0].size, small)
    for k, i in enumerate(block.clique):
        label = None if block.labels is None else block.labels[k]
        cell *= small(shape[i] if label is None else int(label.max()) + 1)
        cell += codes[i].astype(small) if label is None else label.astype(small)[codes[i]]
    return cell


def _grid(labels: tuple[Labels, ...]) -> NDArray[np.int64]:
    """The merged cell of every cell of the whole table."""
    cell = np.zeros((), np.int64)
    for label in labels:
        cell = cell[..., None] * (int(label.max()) + 1) + label
    return cell


def _reweigh(
    blocks: Sequence[_Block],
    ones: Sequence[_Block],
    codes: Sequence[NDArray[np.unsignedinteger[Any]]],
    shape: tuple[int, ...],
    rows: float,
    sweeps: int,
) -> Table:
    from understudy.models import _kernels as kernels

    weights = np.full(codes[0].size, rows / codes[0].size)
    cells = [_cells(block, codes, shape) for block in blocks]
    tables = [np.empty(block.y.size) for block in blocks]
    kernels.weigh(cells[0], weights, tables[0])
    for _ in range(sweeps):
        moved = off = 0.0
        for at, (block, table) in enumerate(zip(blocks, tables, strict=True)):
            factors = _factors(block, table, rows)
            then = (at + 1) % len(blocks)
            moved += float(np.abs(factors * table - table).sum())
            off += float(np.abs(factors * table - block.y).sum())
            kernels.tilt(cells[at], factors, cells[then], weights, tables[then])
        if moved < _SETTLED * off:
            break
    for at in [*range(len(blocks) - len(ones), len(blocks))] * 3:
        kernels.weigh(cells[at], weights, tables[at])
        kernels.multiply(cells[at], weights, _factors(blocks[at], tables[at], rows))
    return weights * (rows / weights.sum())


def _factors(block: _Block, table: Table, rows: float) -> Table:
    table *= rows / table.sum()
    return block.refine(table, rows)

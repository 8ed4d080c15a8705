"""What the measured tables say beyond their columns, as blocks of one model.

Given noisy tables y_j with noise σ_j and estimates of all columns, a block is one table with what is
expected of it (independent columns), what was seen, and e = σ²/κ, the ratio of noise to prior
variance: κ·b is the variance that a cell of expectation b is believed to have around it. κ is found per
table from the measurement itself (empirical Bayes: ‖y − b‖² beyond what noise would do, per row), and
per cell where one stands out by itself. Where a pair shows that one column is almost a function of the
other, that is believed instead (`determined`). Tables are seen a second time with rare values merged,
so that a shift of much mass is not resisted by many small cells.

`Block.refine` solves one block: its factor is taken out of the current table, the margins are put in
place, m + e·ln(m/b) = y + ν is solved (`_kernels.solve`), and the factor put back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Table
from understudy.models import _kernels as kernels
from understudy.models.determined import agrees, determined
from understudy.models.margins import FREQUENT, one_ways, per_cell, stands_out
from understudy.models.measured import Labels, Measured, frequent, merge
from understudy.models.residual import centered
from understudy.models.siblings import Joined, Seen, agree, apart, sides
from understudy.models.siblings import believed as believed_of_siblings

Prior = Callable[[Clique], Table]
"""A table of counts that is expected before anything is measured, beyond independence."""
_Seen = tuple[tuple[Labels, ...] | None, Table, float]
"""One view of a table: what was merged, its values and the deviation of their noise."""

# Constants chosen on ADULT and LOANS; see docs/methods/maxent.md.
_FLOOR = 5.0
"""κ is at least min(σ, n/K)/5."""
_SIGNIFICANT = 2.0
"""Deviations by which a second view must differ from independence to be used."""
_CLEAR = 3.0
"""Deviations by which a model must be off a table to contradict it; chosen on generated tables."""
_SURE = 0.01
"""e where a function is believed: its uncertainty is in the table already."""
_NONE, _NO_CELL = np.zeros(0), np.zeros(0, np.bool_)
_INSIDE = 0.5  # The share of rows in order from which on their order is the score


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


def strides(values: Sequence[Labels]) -> list[NDArray[np.int32]]:
    """For every column of a table: how far each of its values moves the cell."""
    sizes = [int(own.max()) + 1 for own in values]
    ahead = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    return [(own * a).astype(np.int32) for own, a in zip(values, ahead, strict=True)]


@dataclass(eq=False)
class Block:
    """One table of the fit and its factor so far.

    `shows` says whether it holds anything beyond noise; one that does not is needed only where a model
    of the others says something else (`contradicted`). In cells that are `empty` nothing is.
    """

    clique: Clique
    labels: tuple[Labels, ...] | None
    y: Table
    ratio: Table
    noise: Table
    margins: tuple[Table, Table] | None
    shows: bool = True
    empty: NDArray[np.bool_] | None = None
    theta: Table = field(init=False)
    again: Table = field(init=False)

    def __post_init__(self) -> None:
        self.theta, self.again = np.zeros(self.y.size), np.zeros(self.y.size)

    def strides(self, shape: tuple[int, ...]) -> list[NDArray[np.int32]]:
        """As the function; of the whole table where no values are merged."""
        return strides(self.labels or [np.arange(shape[i]) for i in self.clique])

    def cells(self, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """The block's cell of every cell of the whole table."""
        return reduce(np.add.outer, self.strides(shape))

    def merged(self, table: Table, shape: tuple[int, ...]) -> Table:
        """What a whole table, flat, holds in the block's cells."""
        if self.labels is None:
            return table
        sums = np.bincount(self.cells(shape).reshape(-1), table, self.y.size)
        return sums.astype(np.float64, copy=False)

    def whole(self, shape: tuple[int, ...]) -> Table:
        """The factor's logarithm on every cell of the whole table."""
        theta = self.theta if self.labels is None else self.theta[self.cells(shape)]
        return theta.reshape([shape[i] for i in self.clique])

    def refine(self, current: Table, rows: float, part: float = 1.0) -> Table:
        """Factors that take the current table (flat, summing to `rows`) to the solution.

        `part` of the way there, in logarithms; cells that nothing is in then go along with their row
        and column, for records may still move into them.
        """
        first, second = self.margins or (_NONE, _NONE)
        empty = _NO_CELL if self.empty is None else self.empty
        theta, room = self.theta.copy(), np.empty(2 * current.size + first.size + second.size)
        own = self.y, self.ratio, empty, first, second
        kernels.refine(current, *own, float(rows), float(part), theta, room)
        self.theta = theta
        return room[: current.size]

    def contradicted(self, table: Table, spread: float) -> bool:
        """Whether a model's table is further off than noise explains; κ is then what that says.

        What is believed of a table is how far it is from independence, but a model of other tables may
        be off where this one is not. Cells of `table` are counted from records, with a variance of
        `spread` times what they hold.
        """
        noise, off = self.noise + spread * table, self.y - table
        rest = np.abs(off) <= stands_out(noise)
        beyond = float((off[rest] ** 2).sum() - noise[rest].sum())
        beyond -= _CLEAR * math.sqrt(2 * float((noise**2).sum())) * float(rest.mean())
        if beyond <= 0 and rest.all():
            return False
        kappa = per_cell(off, noise, table, max(beyond / float(table.sum()), 1e-9))
        self.ratio = np.minimum(self.ratio, self.noise / kappa)
        return True


def by_table(blocks: Sequence[Block]) -> Iterator[tuple[Block, list[Block]]]:
    """Blocks that are views of one table, with the one whose cells they are read from."""
    tables: dict[Clique, list[Block]] = {}
    for block in blocks:
        tables.setdefault(block.clique, []).append(block)
    for views in tables.values():
        whole = next((block for block in views if block.labels is None), None)
        yield from ((block, [block]) for block in views) if whole is None else [(whole, views)]


def refine(
    views: Sequence[Block],
    table: Table,
    rows: float,
    shape: tuple[int, ...] | None,
    part: float = 1.0,
) -> tuple[Table, list[float], list[float]]:
    """Factors of a flat table whose views take their turns; how far each moved it, and was off.

    Without a `shape` of all columns the table is that of the one view.
    """
    factors, moved, off = np.ones(table.size), [], []
    for block in views:
        now = table * factors
        now *= rows / max(float(now.sum()), 1e-300)
        now = now if shape is None else block.merged(now, shape)
        own = block.refine(now, rows, part)
        after = own * now
        moved.append(float(np.abs(after - now).sum()))
        off.append(float(np.abs(after - block.y).sum()))
        if shape is None or block.labels is None:
            factors *= own
        else:
            factors *= own[block.cells(shape).reshape(-1)]
    return factors, moved, off


def beliefs(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    rows: float,
    prior: Prior | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[tuple[Table, ...], tuple[Belief, ...]]:
    """(counts of every column, what the larger tables say), for models that fit them otherwise.

    `prior` takes the place of independence as what is expected where noise hides the table. `rng` draws
    their noise once more.
    """
    rows = max(float(rows), 1.0)
    estimates, _ = one_ways(shape, measured, rows)
    found: list[Belief] = []
    for block in blocks_of(shape, measured, estimates, rows, prior, rng)[0]:
        expected = _expected(block.clique, estimates, rows, prior)
        if block.labels is not None:
            expected = merge(expected, block.labels)
        told = block.y, expected.reshape(-1), block.ratio, block.noise, block.again
        found.append(Belief(block.clique, block.labels, *told))
    return estimates, tuple(found)


def column_blocks(estimates: Sequence[Table], deviations: Sequence[float]) -> list[Block]:
    """One block a column, which holds its estimate exactly, however far that may be off."""
    ones = [np.ones(estimate.size) for estimate in estimates]
    known = enumerate(zip(estimates, ones, deviations, strict=True))
    return [Block((i,), None, y, 1e-6 * one, off**2 * one, None) for i, (y, one, off) in known]


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


def blocks_of(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    estimates: Sequence[Table],
    rows: float,
    prior: Prior | None = None,
    rng: np.random.Generator | None = None,
    twins: Sequence[Clique] = (),
    ordered: Sequence[int] = (),
) -> tuple[list[Block], dict[Clique, float]]:
    """The blocks of the fit, and how much dependence (nats) each clique shows.

    Of a pair only what it says beyond its columns is used, for those are held elsewhere. Larger tables
    are believed whole, what their pairs say included: otherwise they would ask for independent pairs.
    `twins` are columns with the same of a sibling, whose last value says that there is none, and
    `ordered` says how many of each column's values, the first ones, are in an order (`siblings`).
    """
    whole: dict[Clique, list[Measured]] = {}
    merged: dict[Clique, list[Measured]] = {}
    for m in measured:
        if len(m.clique) >= 2:
            (whole if m.labels is None else merged).setdefault(m.clique, []).append(m)
    siblings = {other for _, other in twins}
    blocks: list[Block] = []
    gains: dict[Clique, float] = {}
    shared: dict[Clique, Seen] = {}
    for clique in dict.fromkeys([*whole, *merged]):
        expected = _expected(clique, estimates, rows, prior)
        views: list[_Seen] = []
        if clique in whole:
            weights = np.array([m.sigma**-2 for m in whole[clique]])
            average = sum(w * m.values for w, m in zip(weights, whole[clique], strict=True))
            views.append((None, average / weights.sum(), float(weights.sum() ** -0.5)))
        views += [(m.labels, m.values.astype(float), m.sigma) for m in merged.get(clique, [])]
        gain = 0.0
        for labels, values, sigma in views:
            others = views[1:] if labels is None else []
            joined = None
            if labels is None and [i in siblings for i in clique] == [False, True]:
                joined = Joined(clique in twins, _trend(clique, estimates, ordered))
            block, found = _view(clique, (labels, values, sigma), expected, rows, others, joined)
            blocks.append(block)
            gain = max(gain, found)
            if joined and block.margins and block.ratio.min() > _SURE:
                told = block.y, block.ratio, block.noise, block.margins
                shared[clique] = Seen(*told, joined.trend)
            noise = np.zeros(values.shape) if rng is None else rng.normal(0, sigma, values.shape)
            noise = _beyond_columns(noise)
            block.again[:] = noise.reshape(-1)
            if labels is None and len(clique) == 2 and joined is None:
                second = _second_view(clique, values, expected, estimates, sigma, rows)
                if second is not None and second.labels is not None:
                    second.again[:] = merge(noise, second.labels).reshape(-1)
                    blocks.append(second)
        gains[clique] = gain
        if len(clique) > 2:  # its pairs must be able to meet in the tree as well
            gains[clique] = gain + 1e-9
    agree(shared, twins, shape)
    return blocks, gains


def _view(
    clique: Clique,
    seen: _Seen,
    expected: Table,
    rows: float,
    others: Sequence[_Seen],
    joined: Joined | None,
) -> tuple[Block, float]:
    """The block of one view, and the dependence that it shows; `others` see the same table merged.

    `joined` is there if the second column is that of a sibling.
    """
    labels, values, sigma = seen
    base = expected if labels is None else merge(expected, labels)
    residual = _beyond_columns(values - base)
    free = math.prod(size - 1 for size in base.shape) if base.ndim == 2 else base.size - 1
    noise = np.full(base.size, sigma * sigma * max(free, 1) / base.size)
    residual = _bounded(residual, noise, base, rows)
    # What stands out speaks for itself alone: else noise would be believed beside it.
    rest = np.abs(residual) <= stands_out(noise).reshape(base.shape)
    beyond = float((residual[rest] ** 2).sum()) - sigma**2 * (free + math.sqrt(2 * free)) * float(
        rest.mean()
    )
    # No table varies more than all rows in one cell would.
    believed = min(max(min(sigma, rows / base.size) / _FLOOR, beyond / rows), 2 * rows)
    if joined:
        kappa = believed_of_siblings(residual, base, noise, joined.trend)
    else:
        kappa = per_cell(residual, noise, base, believed)
    shows = beyond > 0 or not rest.all()
    wanted, ratio = base + residual, sigma**2 / kappa
    if shows and base.ndim == 2:
        # Without Fréchet's bounds, which cut noise off on one side alone.
        table = determined(base + _beyond_columns(values - base), base, sigma)
        if table is not None and all(_agrees(table, other) for other in others):
            wanted, ratio = table, np.full(base.size, _SURE)
    empty = None
    if joined and joined.same:
        table = np.full(base.shape, np.nan)
        table[:, :-1] = sides(values[:, :-1], apart(residual, base), sigma**2)
        wanted = np.where(np.isnan(table), wanted, table)
        ratio = np.where(np.isnan(table.reshape(-1)), ratio, _SURE)
        empty = table.reshape(-1) == 0
    block = Block(clique, labels, wanted.reshape(-1), ratio, noise, _margins(base), shows, empty)
    flat = base.reshape(-1)
    shown = flat * block.refine(flat.copy(), rows)
    block.theta[:] = 0.0
    share = np.maximum(shown, 1e-300) / rows
    gain = float((share * np.log(share / np.maximum(flat / rows, 1e-300))).sum())
    return block, gain


def _trend(clique: Clique, estimates: Sequence[Table], ordered: Sequence[int]) -> Table | None:
    """The products of the scores of a child's and a sibling's column, if both are in an order."""
    if not ordered or min(ordered[i] for i in clique) < 2:
        return None
    i, j = clique
    return np.outer(
        scores(estimates[i], ordered[i]), scores(estimates[j], ordered[j], sibling=True)
    )


def _agrees(table: Table, seen: _Seen) -> bool:
    """Whether another view of a table, in which noise is less, allows what is believed of it."""
    labels, values, sigma = seen
    assert labels is not None
    return agrees(_beyond_columns(values - merge(table, labels)), sigma)


def _second_view(
    clique: Clique,
    values: Table,
    expected: Table,
    estimates: Sequence[Table],
    sigma: float,
    rows: float,
) -> Block | None:
    """The same table with rare values merged, where that shows dependence by itself."""
    labels = tuple(frequent(estimates[i], FREQUENT) for i in clique)
    groups = [np.bincount(label) for label in labels]
    coarse = math.prod(g.size for g in groups)
    if coarse >= values.size or min(g.size for g in groups) < 2:
        return None
    base = merge(expected, labels)
    residual = merge(_beyond_columns(values - expected), labels)
    spread = [g * (1 - g / g.sum()) for g in groups]
    noise = sigma**2 * np.multiply.outer(*spread).reshape(-1)
    residual = _bounded(residual, noise, base, rows)
    beyond = float((residual**2).sum() - noise.sum())
    believed = (beyond - _SIGNIFICANT * math.sqrt(2 * float((noise**2).sum()))) / rows
    cells = per_cell(residual, noise, base, max(believed, 0.1))
    if believed <= 0 and cells.max() <= 0.1:
        return None
    ratio = np.maximum(noise, 1e-6) / cells
    return Block(clique, labels, (base + residual).reshape(-1), ratio, noise, _margins(base))


def _beyond_columns(residual: Table) -> Table:
    """What the residual of a pair says beyond its columns; of a larger table, beyond its sum."""
    return residual - residual.mean() if residual.ndim > 2 else centered(residual)


def _bounded(residual: Table, noise: Table, base: Table, rows: float) -> Table:
    """The residual of a pair, where a cell stands out, within what its row and column allow.

    A cell of sums r and c holds from max(0, r + c − n) to min(r, c) rows (Fréchet 1951). Only cells
    beyond noise are moved: to move all would add rows wherever few are expected.
    """
    if base.ndim != 2:
        return residual
    first, second = base.sum(axis=1)[:, None], base.sum(axis=0)[None, :]
    least, most = np.maximum(first + second - rows, 0.0) - base, np.minimum(first, second) - base
    beyond = np.abs(residual) > stands_out(noise).reshape(base.shape)
    return np.where(beyond, np.clip(residual, least, most), residual)


def _margins(base: Table) -> tuple[Table, Table] | None:
    return (base.sum(axis=1), base.sum(axis=0)) if base.ndim == 2 else None


def normal_scores(estimate: Table, ordered: int) -> tuple[Table, Table]:
    """(shares, normal scores) of the first `ordered` values, the others left out."""
    share = np.maximum(estimate[:ordered], 1e-9 * max(float(estimate.sum()), 1e-300))
    share = share / share.sum()
    return share, np.array([NormalDist().inv_cdf(at) for at in np.cumsum(share) - share / 2])


def scores(estimate: Table, ordered: int, *, sibling: bool = False) -> Table:
    """A number for every value, of mean 0 and variance 1.

    The normal score of the first `ordered` values, and the mean for all others; where fewer than half
    of the rows lie in these, whether a row does. But of a `sibling` always its order: most rows may
    have none.
    """
    share = np.maximum(estimate, 1e-9 * max(float(estimate.sum()), 1e-300))
    share = share / share.sum()
    found = np.zeros(share.size)
    if float(share[:ordered].sum()) < _INSIDE and not sibling:
        found[:ordered] = 1.0
    else:
        inside, normal = normal_scores(estimate, ordered)
        found[:ordered] = normal - float(normal @ inside)
    found -= float(found @ share)
    return found / max(float(np.sqrt(found**2 @ share)), 1e-300)

"""Records that are moved to where the model is, where weights alone would collapse.

Weights take the law that records were drawn from to the model's. Where the two differ much, a few
records come to stand for all. So in rounds (resample-move: Gilks-Berzuini 2001, Chopin 2002)

1. every factor takes a damped step on the weights, then columns are put in place; a step that leaves
   few records effective follows those few, so the next is half as long, and longer again later;
2. the largest power γ ≤ 1 of the weights is taken at which half of the records stay effective; with θ
   the factors' logarithms and θ₀ those before the round, w^γ are the weights of θ₀ + γ·(θ − θ₀),
   exactly;
3. records are drawn again by their weights, and every column of every record is drawn anew given the
   others (Gibbs), which leaves the model's law as it is and makes copies different again.

It ends when a longest step has twice left most records effective, or after a fixed number of rounds;
steps on the weights alone follow until they settle. Cells of pairs that no record of the first law is
in stay out of reach: nothing that was measured speaks for them. Values that moves would crowd into,
because the factors were never fitted where they now apply, are held back. Deterministic given `rng`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Projection, Table
from understudy.models import _kernels as kernels
from understudy.models.blocks import Block, by_table, refine

_STEP = 0.3
"""The longest step, of what every factor would take alone."""
_EQUAL = 0.85
"""The share of records that weights leave effective where the model is reached."""
_LEFT = 0.5
"""The share that a step on the way leaves effective."""
_FEW, _MANY = 0.4, 0.6
"""A step that leaves a smaller share is halved for the next, after a larger one it grows by a half."""
_HALVINGS = 12
_LAST_STEPS, _SETTLED = 10, 0.04
"""Steps on the weights once records stay; they end where too few would be effective, or where one,
taken whole, would move tables by less than this part of how far they are from what was measured."""
_HOLDING, _IN_PLACE = 15, 2e-4
"""Columns are put in place so often at most, or until none is off by more of the rows."""
_OUT_OF_REACH = np.float32(-30.0)
_NONE, _NOTHING = np.zeros(0), np.zeros(0, np.float32)
_LOCATED = 100_000_000
"""Cells of records that are held in memory."""
_CROWDED, _LOOKED = 1.5, 4_000
"""A value is held back where it would get 1.5 times its share, on about so many records."""
_TOGETHER = 128  # Records that are drawn together
_JOINED = 2**14  # Cells that tables added up may have


class Cloud:
    """Records, a row of codes for every column, and weights that sum to `rows`."""

    def __init__(
        self, codes: Sequence[NDArray[Any]] | NDArray[Any], shape: tuple[int, ...], rows: float
    ) -> None:
        self.shape, self.rows = shape, rows
        self.codes = np.stack([column.astype(np.uint16) for column in codes])
        self.weights = np.full(self.size, rows / self.size)

    @property
    def codes(self) -> NDArray[np.uint16]:
        """A row for every column; to be replaced, not written to."""
        return self._codes

    @codes.setter
    def codes(self, codes: NDArray[np.uint16]) -> None:
        self._codes = codes
        self._located: dict[Clique | Block, NDArray[Any]] = {}
        self._room = _LOCATED

    @property
    def size(self) -> int:
        """How many records."""
        return self.codes.shape[1]

    @property
    def effective(self) -> float:
        """(Σw)²/Σw²: so many records of equal weight would say as much."""
        return _effective(self.weights)

    def part(self, size: int) -> Cloud:
        """So many of the records, evenly spread over all, with equal weights."""
        return Cloud(self.codes[:, np.arange(size) * self.size // size], self.shape, self.rows)

    def tables(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, Table]]:
        """What the records say of blocks, in counts."""
        for read, views in by_table(blocks):
            parts = kernels.parts(read.y.size)
            kernels.weigh(self._cells(read), self.weights, parts)
            counts = parts.sum(axis=0)
            counts *= self.rows / max(float(counts.sum()), 1e-300)
            for block in views:
                yield block, counts if block is read else block.merged(counts, self.shape)

    def refine(self, blocks: Sequence[Block], part: float = 1.0) -> tuple[Table, Table]:
        """Take the weights to what every block wants, in turn; how far tables moved and were off.

        Blocks of one table take their turns on that, and then the weights follow.
        """
        cells, factors = self._codes[0, :0], _NONE
        moved: list[float] = []
        off: list[float] = []
        for read, views in by_table(blocks):
            others, parts = self._cells(read), kernels.parts(read.y.size)
            if cells.size and cells.dtype == others.dtype:
                kernels.scale_and_weigh(cells, factors, others, self.weights, parts)
            else:
                kernels.scale(cells, factors, self.weights[: cells.size])
                kernels.weigh(others, self.weights, parts)
            shape = self.shape if read.labels is None else None
            factors, *far = refine(views, parts.sum(axis=0), self.rows, shape, part)
            moved, off, cells = moved + far[0], off + far[1], others
        kernels.scale(cells, factors, self.weights[: cells.size])
        return np.array(moved), np.array(off)

    def _cells(self, block: Block) -> NDArray[Any]:
        """The block's cell of every record; kept while there is room, for as long as the codes."""
        *others, last = block.clique
        key = block.clique if block.labels is None else block
        if key in self._located:
            return self._located[key]
        if not others and block.labels is None:
            return self._codes[last]
        strides = block.strides(self.shape)
        cells = np.empty(self.size, np.uint16 if block.y.size <= 2**16 else np.uint32)
        if len(others) == 1:
            kernels.join(self._codes[others[0]], strides[0], self._codes[last], strides[1], cells)
        else:
            cells[:] = sum(s[self._codes[i]] for i, s in zip(block.clique, strides, strict=True))
        if cells.size <= self._room:
            self._room -= cells.size
            self._located[key] = cells
        return cells

    def hold(self, columns: Sequence[Block]) -> None:
        """Put all columns in place, those known best last: near-copies push each other off."""
        in_turn = sorted(columns, key=lambda block: -float(block.noise[0]))
        for _ in range(_HOLDING):
            if self.refine(in_turn)[0].max() < _IN_PLACE * self.rows:
                break
        self.weights *= self.rows / self.weights.sum()

    def resample(self, rng: np.random.Generator) -> None:
        """Draw as many records by their weights, systematically; equal weights then."""
        ends = np.cumsum(self.weights)
        points = (np.arange(self.size) + rng.random()) * (ends[-1] / self.size)
        chosen = np.minimum(np.searchsorted(ends, points, side="right"), self.size - 1)
        self.codes = np.ascontiguousarray(self.codes[:, chosen])
        self.weights = np.full(self.size, self.rows / self.size)


def spread(
    cloud: Cloud,
    blocks: Sequence[Block],
    columns: Sequence[Block],
    reach: Mapping[Clique, NDArray[np.bool_]],
    rng: np.random.Generator,
    project: Projection | None = None,
    rounds: int = 20,
    tell: Callable[[], None] = lambda: None,
) -> None:
    """Move the records to the model of `blocks` and `columns`; weights end nearly equal.

    That takes at most `rounds` rounds, or twice as many where steps have to be short for so long.
    `reach` holds, for every pair of a block, the cells that records may move into. What rules forbid
    (`project`) is not moved to.
    """
    every, whole, step = [*blocks, *columns], 0, _STEP
    for number in range(1, 2 * rounds + 1):
        tell()
        before = [block.theta.copy() for block in every]
        cloud.refine(blocks, step)
        cloud.refine(columns)
        share = cloud.effective / cloud.size
        whole += step == _STEP and share >= _EQUAL
        power = _power(cloud.weights)
        for block, start in zip(every, before, strict=True):
            block.theta = start + power * (block.theta - start)
        cloud.weights **= power
        cloud.resample(rng)
        before_moves = cloud.codes
        _draw_anew(cloud, blocks, columns, reach, rng)
        if project is not None:
            kept = np.stack(project(list(cloud.codes)))
            broken = (kept != cloud.codes).any(axis=0)
            cloud.codes = np.where(broken, before_moves, cloud.codes)
        if whole == 2 or (number >= rounds and step == _STEP and share > _MANY):
            break
        if share < _FEW:
            step /= 2
        elif share > _MANY:
            step = min(_STEP, 1.5 * step)
    _finish(cloud, blocks, columns, step, tell)


def _finish(
    cloud: Cloud,
    blocks: Sequence[Block],
    columns: Sequence[Block],
    step: float,
    tell: Callable[[], None],
) -> None:
    """Further steps on the weights alone, until they settle or leave too few records effective."""
    for last in range(_LAST_STEPS):
        tell()
        before = cloud.weights.copy()
        moved, off = cloud.refine(blocks, step)
        cloud.hold(columns)
        if last and cloud.effective < _EQUAL * cloud.size:
            cloud.weights = before
            break
        if moved.sum() < _SETTLED * step * off.sum():
            break


def _effective(weights: Table) -> float:
    return float(weights.sum() ** 2 / (weights * weights).sum())


def _power(weights: Table) -> float:
    """The largest power up to one that leaves enough of the records effective."""
    logs = np.log(np.maximum(weights, 1e-300))
    logs -= logs.max()
    if _effective(np.exp(logs)) >= _LEFT * logs.size:
        return 1.0
    power = 0.0
    for step in 0.5 ** np.arange(1, _HALVINGS + 1):
        if _effective(np.exp((power + step) * logs)) >= _LEFT * logs.size:
            power += step
    return power


def _draw_anew(
    cloud: Cloud,
    blocks: Sequence[Block],
    columns: Sequence[Block],
    reach: Mapping[Clique, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """One Gibbs scan over the columns, in random order."""
    factors = _logarithms(blocks, cloud.shape, reach)
    codes = cloud.codes.copy()
    few = codes[:, :: max(1, cloud.size // _LOOKED)].copy()
    cells = np.empty(_TOGETHER, np.int64)
    for i in map(int, rng.permutation(len(cloud.shape))):
        own = columns[i]
        share = np.maximum(own.y / own.y.sum(), 1 / cloud.size)
        alpha = own.theta.astype(np.float32)
        given = *_terms(i, factors, cloud.shape), alpha
        room = cells, np.empty((alpha.size + 1, _TOGETHER), np.float32)
        for _ in range(2):
            law = np.zeros(alpha.size)
            kernels.conditionals(few, *given, *room, law)
            crowded = np.maximum(law / law.sum() / share, 1e-300)
            if crowded.max() <= _CROWDED:
                break
            alpha -= np.log(np.where(crowded > _CROWDED, crowded, 1.0)).astype(np.float32)
        own.theta = alpha.astype(np.float64)
        kernels.gibbs(codes, i, *given, *room, rng.random(cloud.size, dtype=np.float32))
    cloud.codes = codes


def _logarithms(
    blocks: Sequence[Block], shape: tuple[int, ...], reach: Mapping[Clique, NDArray[np.bool_]]
) -> dict[Clique, NDArray[np.float32]]:
    """Of the factors of every table together; cells out of reach are next to impossible."""
    sums: dict[Clique, Table] = {}
    for block in blocks:
        theta = block.whole(shape)
        sums[block.clique] = sums[block.clique] + theta if block.clique in sums else theta
    everywhere = np.True_
    return {
        clique: np.where(reach.get(clique, everywhere), theta.astype(np.float32), _OUT_OF_REACH)
        for clique, theta in sums.items()
    }


def _terms(
    i: int, factors: Mapping[Clique, NDArray[np.float32]], shape: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The terms of a column's law given the others (`_kernels.gibbs`), and all their tables.

    Small tables are added up here, so that less is looked up for every record.
    """
    parts: list[tuple[Clique, NDArray[np.float32]]] = []
    for clique, table in sorted(factors.items(), key=lambda factor: factor[1].size):
        if i not in clique:
            continue
        others = tuple(j for j in clique if j != i)
        part = np.moveaxis(table, clique.index(i), -1).reshape(-1, shape[i])
        if parts and parts[-1][1].size * len(part) <= _JOINED:
            before, sums = parts.pop()
            others, part = before + others, (sums[:, None] + part).reshape(-1, shape[i])
        parts.append((others, part))
    width = 1 + 2 * max((len(others) for others, _ in parts), default=0)
    terms, start = np.zeros((len(parts), width), np.int64), 0
    for term, (others, part) in zip(terms, parts, strict=True):
        term[0], stride = start, part.size
        for k, j in enumerate(others):
            stride //= shape[j]
            term[1 + 2 * k : 3 + 2 * k] = j, stride
        start += part.size
    return terms, np.concatenate([_NOTHING, *(part.reshape(-1) for _, part in parts)])

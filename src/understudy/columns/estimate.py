"""From the released levels of a ladder to the shape of its column: post-processing.

(1) Upwards, a cell's count is the mean of its own and its parts' sum, by precision. (2) The first
level: a piecewise constant fit says which cells hold anything; beyond the last that are clear of noise
cells get what all counts from there on tell of a tail (`tails`). (3) Downwards, the parts of every
opened cell get such a fit too, and are scaled to their cell by one factor: adding the same number to
all parts would put rows into empty ones far away. (4) Cells for the model are cut from the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.columns.kinds import Kinds
from understudy.columns.ladder import Measured, Scale, edge_points, rounds
from understudy.columns.shape import Shape, row_of
from understudy.columns.tails import outward

Floats = NDArray[np.float64]

EVEN, BOUNDED, OPEN = (2.5, 2.0), (4.0, 3.0), (6.0, 4.0)
"""How many deviations a top cell by itself must hold, and a further step of the fit be worth.

Between close bounds, loose ones and without any: one cell of noise at 10⁹ would ruin a mean.
"""
LAST_RESORTS = ((3.0, 2.0), (2.0, 1.5))
"""The same where nothing is found."""
CLEAR = 4.0
"""The last cell found holds so many deviations by itself."""
TRACE = 0.01
"""A tail ends where less than so many deviations are expected."""
PLAIN, BULK, FARTHEST = 8.0, 8, 12
"""Beyond so many deviations a cell is no tail; so many pieces before the tail say how it begins, and
it has so many at most."""
UNIT, FALL = 1 / 3, (2.0, 0.3)
"""A unit of a tail, of a usual cell of the first level; what is below two deviations falls by that much
in each (generated columns, ε from 0.1 to 10)."""
SHORTEST = 1e-15
"""In units, of a piece that is a point among numbers beyond the precision of doubles."""
STRAY, BESIDE = 5.0, 0.1
"""Cells apart from most of the rows hold so many deviations together, and one of which a tail expects
less than so many holds as many."""
AT_BOUND = 2.0
"""Zero is believed sooner, and so are bounds that values reach: all beyond is counted there."""
PART_FOUND, PART_STEP = 2.5, 2.7
"""The same for the parts of a cell that holds something."""
FAINT, FAINT_OPEN = 1.5, 2.5
"""What is pooled and still holds less than so many deviations is empty; again more without bounds."""
POINT = 3.5
"""A point is believed beyond so many deviations."""
ISLAND, GAP = 3.0, 0.18
"""Last leaves below so many deviations go if nothing lies before them for this share of their way from
the middle half of the rows, and for as far as that half takes."""
FEWEST, MOST, RATE = 6, 32, 0.6
"""Cells for the model: RATE·√(rows/σ), within these."""
SEEN, MANY = 3.0, 10
"""A kind of round values is believed beyond so many deviations; so many values of a decade are many."""
UNSEEN = 1e-6
"""Between bounds, the share of all leaves in which nothing was found, by their counts.

It says where in a cell rows lie that the model finds there and the ladder did not.
"""
WHOLE = 10**9
"""The sum of the weights, about."""


def usual_cells(rows: float, sigma: float) -> int:
    """About how many cells a column of so many rows gets, where a first count has this deviation."""
    return int(np.clip(RATE * sqrt(max(rows, 1.0) / sigma), FEWEST, MOST))


def learned(
    scale: Scale,
    history: Sequence[Measured],
    roundness: Measured | None,
    rows: float,
    cuts: Sequence[Any] = (),
) -> Shape:
    """The shape that released counts tell.

    `roundness` has the counts of the codes of `rounds(scale)`, `rows` is a public or released number
    of rows, and `cuts` are public values at which a cell of the shape must begin.
    """
    round_ = None if roundness is None else _round(scale, roundness)
    edges, mass = _leaves(scale, history, round_)
    edges, mass = _with_cuts(edges, mass, [scale.point(cut) for cut in cuts])
    edges, mass = _with_end(scale, edges, mass)
    # A cell that begins at the last value has to hold another one.
    while (last := _last(scale, edges)) < scale.high and last in map(scale.point, cuts):
        edges, mass = np.append(edges, scale.after(edges[-1])), np.append(mass, 0.0)
    if not scale.discrete:  # no point beyond the bound
        edges[-1] = min(edges[-1], nextafter(scale.high, inf))
    count = usual_cells(rows, history[0].sigma)
    starts = _cells(scale, edges, mass, count, history[0].sigma / max(rows, 1.0))
    last = _last(scale, edges)
    inner = [p for cut in cuts if edges[0] < (p := scale.point(cut)) < last]
    starts = sorted({*starts, *np.searchsorted(edges, inner).tolist()})
    if not scale.discrete:
        edges, mass, starts = _exact(scale, edges, mass, starts)
    mass = _seen(mass, starts)
    weights = np.rint(mass * (WHOLE / mass.sum())).astype(int)
    return Shape(
        (*(scale.own(edges[at]) for at in starts), scale.own(last)),
        tuple(edges.tolist()),
        tuple(starts),
        tuple(weights.tolist()),
        *(() if round_ is None else round_.without_points(edges, mass)),
    )


def _seen(mass: Floats, starts: Sequence[int]) -> Floats:
    """What stands for the unseen counts only in cells in which nothing was found."""
    found = np.where(mass > UNSEEN * mass.sum(), mass, 0.0)
    some = np.repeat(np.add.reduceat(found, starts) > 0, np.diff([*starts, len(mass)]))
    return np.where(some, found, mass)


def told(
    scale: Scale, history: Sequence[Measured], edges: Sequence[Any]
) -> tuple[tuple[float, float], ...]:
    """What the levels say of the cells between these edges: counts, and the variances of their noise.

    All that lies beyond is counted in the first and last cell. The variance is infinite where no level
    has an edge.
    """
    levels = [edge_points(scale, level.edges) for level in history]
    counts, variances = _upwards(levels, history)
    sums = [
        np.concatenate([np.zeros((2, 1)), np.cumsum([own, spread], axis=1)], axis=1)
        for own, spread in zip(counts, variances, strict=True)
    ]
    cuts = [levels[0][0], *(scale.point(edge) for edge in edges[1:-1]), levels[0][-1]]
    return tuple(tuple(_between(levels, sums, *cell).tolist()) for cell in pairwise(cuts))


def _between(levels: Sequence[NDArray[Any]], sums: Sequence[Floats], low: Any, high: Any) -> Floats:
    """Count and variance between two points: of whole cells, and of parts of those at the ends.

    A part is counted by itself, or is what the others leave of its cell, whichever has less noise.
    """
    if low >= high:
        return np.zeros(2)
    if not levels:
        return np.array([0.0, inf])
    edges = levels[0]
    first, last = np.searchsorted(edges, low), np.searchsorted(edges, high, side="right") - 1
    if first > last:  # inside one cell
        return _part(levels, sums, int(last), low, high)
    found = sums[0][:, last] - sums[0][:, first]
    if edges[first] > low:
        found = found + _part(levels, sums, int(first) - 1, low, edges[first])
    if edges[last] < high:
        found = found + _part(levels, sums, int(last), edges[last], high)
    return found


def _part(
    levels: Sequence[NDArray[Any]], sums: Sequence[Floats], cell: int, low: Any, high: Any
) -> Floats:
    whole = sums[0][:, cell + 1] - sums[0][:, cell]
    ends = levels[0][cell], levels[0][cell + 1]
    own = _between(levels[1:], sums[1:], low, high)
    left = _between(levels[1:], sums[1:], ends[0], low)
    left = left + _between(levels[1:], sums[1:], high, ends[1])
    rest = np.array([whole[0] - left[0], whole[1] + left[1]])
    return own if own[1] <= rest[1] else rest


@dataclass(frozen=True, eq=False)
class Roundness:
    """How many values of each decade are of each kind."""

    decades: NDArray[Any]
    kinds: Kinds
    counts: Floats
    sigma: float

    @cached_property
    def among(self) -> Floats:
        """How many points of each decade are of each kind; one at least, for leaves go beyond it."""
        return np.maximum(self.kinds.between(self.decades), 1.0)

    def believed(self, alone: Floats | float = 0.0) -> Floats:
        """What each kind holds, less the rows `alone` of points that are counted by themselves.

        Where noise hides a kind, its values are as frequent as those of the next kind that would have
        them: they are of no other kind, and without it would be missing. That it is absent is seen
        where a decade has many of its values; of few, other places in the decade may have more rows.
        """
        counts, found = self.counts - alone, np.zeros_like(self.counts)
        for kind in range(self.kinds.classes - 1, -1, -1):
            own, usual = counts[:, kind], np.zeros(len(counts))
            if kind + 1 < self.kinds.classes:
                wider = self.kinds.wider(kind)
                usual = found[:, wider] * self.among[:, kind] / self.among[:, wider]
            clear = SEEN * self.sigma
            absent = (self.among[:, kind] >= MANY) & (usual - own > clear)
            found[:, kind] = np.where((own > clear) | absent, np.maximum(own, 0.0), usual)
        return found

    def without_points(self, edges: NDArray[Any], mass: Floats) -> tuple[tuple[int, ...], ...]:
        """Of values that are not points by themselves: decades, steps, weights and rests."""
        points = np.flatnonzero((np.diff(edges) == 1) & (mass > 0))
        alone = np.zeros_like(self.counts)
        at = row_of(edges[points], self.decades), self.kinds.of(edges[points])
        np.add.at(alone, at, mass[points])
        weights = np.rint(self.believed(alone)).astype(int).ravel()
        return (
            tuple(self.decades.tolist()),
            self.kinds.steps,
            tuple(weights.tolist()),
            self.kinds.rests,
        )


def _round(scale: Scale, table: Measured) -> Roundness | None:
    """How round the values are, where that is counted."""
    form = rounds(scale)
    if form is None:
        return None
    counts = np.asarray(table.counts, np.float64).reshape(-1, form.kinds.classes)
    return Roundness(edge_points(scale, form.edges), form.kinds, counts, table.sigma)


def _width(edges: NDArray[Any], found: Roundness | None) -> Floats:
    """How much a cell would hold if nothing but the decade and the roundness of values mattered.

    A tenth at most is its plain width, for values of kinds that noise hides.
    """
    plain = np.diff(edges).astype(np.float64)
    if found is None:
        return plain
    counts, row = found.believed(), row_of(edges[:-1], found.decades)
    total = np.maximum(counts.sum(axis=1), 1.0)
    chances = counts / found.among / total[:, None]
    whole = np.diff(found.decades).astype(np.float64)[row]
    round_ = np.sum(chances[row] * found.kinds.between(edges), axis=1) * whole
    hidden = np.minimum(SEEN * found.sigma / total, 0.1)[row]
    return np.where(counts.sum(axis=1)[row] > 0, (1 - hidden) * round_ + hidden * plain, plain)


def _leaves(
    scale: Scale, history: Sequence[Measured], found: Roundness | None
) -> tuple[NDArray[Any], Floats]:
    """The edges of the leaves, in points, and how many rows each holds."""
    levels = [edge_points(scale, level.edges) for level in history]
    counts, variances = _upwards(levels, history)
    known, sigma = counts[0], np.sqrt(variances[0])
    mass = _top(scale, levels[0], counts[0], sigma, _pieces(scale, levels, counts, variances))
    faint = FAINT if scale.bounded else FAINT_OPEN
    for at in range(1, len(levels)):
        parts = np.searchsorted(levels[at], levels[at - 1])
        width = _width(levels[at], found)
        points = _points(scale, levels[at])
        mass = _downwards(
            levels[at], parts, mass, counts[at], np.sqrt(variances[at]), width, points, faint
        )
        same = np.repeat(np.diff(parts) == 1, np.diff(parts))  # known best from above
        known = np.where(same, np.repeat(known, np.diff(parts)), counts[at])
        sigma = np.where(same, np.repeat(sigma, np.diff(parts)), np.sqrt(variances[at]))
    mass = _without_islands(levels[-1], mass, sigma)
    unseen = np.where(mass == 0, np.expm1(2 * np.clip(known / sigma, 0.0, 10.0)), 0.0)
    unseen *= UNSEEN * mass.sum() / max(unseen.sum(), 1.0) if scale.bounded else 0.0
    return _trimmed(scale, levels[-1], mass, unseen)


def _upwards(
    levels: Sequence[NDArray[Any]], history: Sequence[Measured]
) -> tuple[list[Floats], list[Floats]]:
    """Every cell's count by all that was counted in it, and its variance."""
    counts, variances = [], []
    below = levels[-1]
    for edges, level in zip(levels[::-1], history[::-1], strict=True):
        own = np.asarray(level.counts, np.float64)
        precision = np.full(len(own), level.sigma**-2.0)
        total = own * precision
        if counts:
            parts = np.searchsorted(below, edges[:-1])
            inner = 1 / np.add.reduceat(variances[-1], parts)
            total, precision = total + inner * np.add.reduceat(counts[-1], parts), precision + inner
        counts.append(total / precision)
        variances.append(1 / precision)
        below = edges
    return counts[::-1], variances[::-1]


def _top(
    scale: Scale, edges: NDArray[Any], counts: Floats, sigma: Floats, pieces: Pieces
) -> Floats:
    """The first level: what of it holds anything, and how much."""
    points = _points(scale, edges)
    line = np.flatnonzero(~points)
    width = _measure(scale, edges)[line]
    y, s = counts[line], sigma[line]
    mass, far = np.zeros(len(counts)), _far(scale, edges)
    faint = FAINT if scale.bounded else FAINT_OPEN
    usual = EVEN if scale.even else BOUNDED if scale.bounded else OPEN
    for found, step in (usual, *LAST_RESORTS):
        mass[line] = fitted(y[None], s[None], width[None], found**2, step**2, scale.even, faint)[0]
        sooner = edges[:-1] == 0
        if scale.bounded and len(line):  # a loose bound, with nothing beside it, is no top code
            sooner |= (edges[:-1] == scale.high) & (mass[line[-1]] > 0)
            sooner |= (edges[:-1] == scale.low) & (mass[line[0]] > 0)
        # Codes beyond all other values need as much proof as strays; a bound of the column is no code.
        apart = far > far[line][mass[line] > 0].max(initial=np.inf if scale.even else 0.0)
        apart &= mass.any() & ~np.isin(edges[:-1], (scale.low, scale.high))
        least = np.where(sooner, AT_BOUND, np.where(apart, max(found, STRAY), found)) * sigma
        mass[points] = np.where(counts > least, counts, 0.0)[points]
        if mass.any():
            if not scale.even:
                mass[line] = _without_ends(mass[line], y, s)
                mass[line] = _without_strays(far[line], mass[line], y, s)
            for side in (1, -1):
                mass[line] = _with_tail(mass[line], y, s, line, pieces, side, scale.even)
            mass[line] = np.where(mass[line] >= TRACE * s, mass[line], 0.0)
            return mass
    best = np.argmax(counts / sigma)  # nothing but noise: any guess will do
    mass[best] = max(counts[best], sigma[best])
    return mass


def _points(scale: Scale, edges: NDArray[Any]) -> NDArray[np.bool_]:
    """Cells of a single point beside wide ones: atoms, where there is anything."""
    width = np.diff(edges).astype(np.float64)
    if scale.discrete:
        beside = np.maximum(np.append(width[1:], 0), np.append(0, width[:-1]))
        zero = (edges[:-1] == 0) & (scale.calendar is None) & (not scale.even)
        return (width == 1) & ((beside >= 8) | zero)
    return width <= np.array([scale.after(edge) - edge for edge in edges[:-1]]) * 1.001


def _measure(scale: Scale, edges: NDArray[Any]) -> Floats:
    """How much of the axis a top cell takes: decades where the cells are, else their widths."""
    width = np.diff(edges).astype(np.float64)
    low, high = np.abs(edges[:-1].astype(np.float64)), np.abs(edges[1:].astype(np.float64))
    if _evenly(edges):
        return width
    small, large = np.minimum(low, high), np.maximum(low, high)
    return np.clip(np.log10((large + 1e-300) / np.maximum(small, 1e-300)), 0.02, 0.5)


def _evenly(edges: NDArray[Any]) -> bool:
    """Whether the cells are about as wide as each other."""
    width = np.diff(edges).astype(np.float64)
    return bool(np.median(width) * len(width) > 0.2 * width.sum())


def _without_ends(fit: Floats, y: Floats, sigma: Floats) -> Floats:
    """What was found, less cells at its ends that are not clear by themselves: tails say more of them.

    The fit goes on where it is near the counts, and some noise is near those of any cells before.
    """
    clear = np.flatnonzero((fit > 0) & (y >= CLEAR * sigma))
    if len(clear):
        fit = fit.copy()
        fit[: clear[0]] = fit[clear[-1] + 1 :] = 0.0
    return fit


def _far(scale: Scale, edges: NDArray[Any]) -> Floats:
    """How far from zero the middle of each cell lies, as far as that of the cell mirrored at zero."""
    points = edges.astype(np.float64)
    return np.abs(points[:-1] + points[1:] - scale.discrete) / 2


def _without_strays(far: Floats, fit: Floats, y: Floats, sigma: Floats) -> Floats:
    """What was found, less what lies `far` beyond most of it, apart from it, and may be noise.

    Apart are cells with three empty ones between them: a decade. Of thirty cells of noise one lies
    beyond four deviations in one column of a thousand, and far away it would ruin the mean.
    """
    held = fit > 0
    ahead = np.append(held[1:], [False, False])
    run = np.cumsum(~held & ~ahead[:-1] & ~ahead[1:])
    rows, counts, variances = (
        np.bincount(run[held], each[held], run[-1] + 1) for each in (fit, y, sigma**2)
    )
    further = far > far[held & (run == np.argmax(rows))].max(initial=0.0)
    return np.where(further & (counts <= STRAY * np.sqrt(variances))[run], 0.0, fit)


@dataclass(frozen=True, eq=False)
class Pieces:
    """The line in pieces, in order: of about a unit where a cell was opened, else as long as it is."""

    cell: NDArray[np.intp]
    counts: Floats
    sigma: Floats
    lengths: Floats
    """In units."""


def _pieces(
    scale: Scale,
    levels: Sequence[NDArray[Any]],
    counts: Sequence[Floats],
    variances: Sequence[Floats],
) -> Pieces:
    """Of the finest parts; their counts add up to those of their cells."""
    fine, spread = counts[0], variances[0]
    for at in range(1, len(levels)):
        begins = np.searchsorted(levels[at], levels[at - 1])
        many, own = np.diff(begins), variances[at]
        off = np.repeat(fine - np.add.reduceat(counts[at], begins[:-1]), many)
        share = own / np.repeat(np.add.reduceat(own, begins[:-1]), many)
        fine = counts[at] + share * off
        spread = np.where(np.repeat(many, many) == 1, np.repeat(spread, many), own)
    outer, usual = _measure(scale, levels[0]), ~_points(scale, levels[0])
    middle = float(np.median(outer[usual])) if usual.any() else 1.0
    usual &= outer >= 0.2 * middle  # else a rest beside a code
    cell = np.searchsorted(levels[0], levels[-1][:-1], side="right") - 1
    edges = levels[-1].astype(np.float64)
    if not _evenly(levels[0]):
        edges = np.log10(np.maximum(np.abs(edges), 1e-300))
    length = np.abs(np.diff(edges))
    whole = outer / (UNIT * middle)
    length *= (whole / np.maximum(np.bincount(cell, length), 1e-300))[cell]
    reached = np.cumsum(length) - (np.cumsum(whole) - whole)[cell]
    group = np.minimum((reached - 1e-9).astype(int), np.maximum(np.rint(whole)[cell] - 1, 0))
    starts = np.flatnonzero(np.diff(cell, prepend=-1) | np.diff(group, prepend=-1).astype(bool))
    starts = starts[usual[cell[starts]]]
    stops = np.searchsorted(starts, np.arange(len(cell)), side="right") - 1
    kept = usual[cell]
    sums = (np.bincount(stops[kept], each[kept], len(starts)) for each in (fine, spread, length))
    y, variance, lengths = (np.asarray(each, np.float64) for each in sums)
    return Pieces(cell[starts], y, np.sqrt(variance), np.maximum(lengths, SHORTEST))


def _with_tail(
    fit: Floats,
    y: Floats,
    sigma: Floats,
    line: NDArray[np.intp],
    pieces: Pieces,
    side: int,
    even: bool,
) -> Floats:
    """What was found, with the cells beyond the last clear one as all counts together tell them.

    Of even cells those beyond it may be no tail: together they are as clear as a tail is not.
    """
    clear = np.flatnonzero((fit > 0) & (y > PLAIN * sigma))
    last = (clear[-1] if side > 0 else clear[0]) if len(clear) else np.argmax(fit)
    order = np.arange(len(pieces.cell))[::side]
    beyond = side * (pieces.cell[order] - line[last]) > 0
    begin = int(np.argmax(beyond))
    if not begin or fit[last] <= 0:
        return fit
    outside = side * (line - line[last]) > 0
    held = outside & (fit > 0)
    if even and fit[held].sum() > CLEAR * sqrt(np.sum(sigma[held] ** 2)):
        return fit
    bulk = order[max(0, begin - BULK) : begin]
    first = int(np.argmax(pieces.counts[bulk] / pieces.lengths[bulk]))
    run = np.concatenate([bulk[first:], order[begin : begin + FARTHEST]])
    further = pieces.cell[order[begin + FARTHEST :]]  # as they were found
    lengths = pieces.lengths[run]
    units = np.maximum(np.rint(lengths), 1).astype(np.intp)
    told = outward(pieces.counts[run], pieces.sigma[run], units, lengths, FALL)
    outer = np.bincount(pieces.cell[run], told, int(line.max()) + 1)[line]
    # Rows of one value are no part of a tail.
    clear = np.where(outer > BESIDE * sigma, POINT, STRAY) * sigma
    outer = np.where(np.abs(y - outer) > clear, np.maximum(y, 0.0), outer)
    return np.where(outside & ~np.isin(line, further), outer, fit)


def _downwards(
    edges: NDArray[Any],
    parts: NDArray[np.intp],
    above: Floats,
    counts: Floats,
    sigma: Floats,
    width: Floats,
    points: NDArray[np.bool_],
    faint: float,
) -> Floats:
    """The parts of every cell above, scaled to it."""
    mass = np.zeros(len(counts))
    single = np.diff(parts) == 1
    mass[parts[:-1][single]] = above[single]
    opened = np.flatnonzero(~single & (above > 0))
    if not len(opened):
        return mass
    width = width.copy()
    lines = [np.arange(parts[at], parts[at + 1]) for at in opened]
    # A point that is not believed is one of the values of the part beside it.
    counts, variances = counts.copy(), sigma**2
    atoms = points & (counts > POINT * sigma)
    for at in np.flatnonzero(points & ~atoms & np.repeat(~single, np.diff(parts))):
        beside = at + 1 if edges[at] >= 0 else at - 1
        if 0 <= beside < len(counts) and not points[beside]:
            counts[beside] += counts[at]
            variances[beside] += variances[at]
            width[beside] += width[at]
    kept = [line[~points[line]] if not points[line].all() else line for line in lines]
    shape = (len(kept), max(len(line) for line in kept))
    y, s, w = np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)
    for row, line in enumerate(kept):
        y[row, : len(line)], s[row, : len(line)] = counts[line], np.sqrt(variances[line])
        w[row, : len(line)] = width[line]
    fit = fitted(y, s, w, PART_FOUND**2, PART_STEP**2, True, faint)
    for row, (line, cells) in enumerate(zip(kept, lines, strict=True)):
        mass[cells] = np.where(atoms[cells], counts[cells], 0.0)
        mass[line] = fit[row, : len(line)]
        shares = mass[cells] if mass[cells].any() else width[cells]
        mass[cells] = shares * (above[opened[row]] / shares.sum())
    return mass


def _without_islands(edges: NDArray[Any], mass: Floats, sigma: Floats) -> Floats:
    """Light runs of leaves behind a gap at either end are noise."""
    held = mass >= TRACE * sigma
    mass = np.where(held | ~held.any(), mass, 0.0)  # something has to stay
    first, last = np.searchsorted(np.cumsum(mass), mass.sum() * np.array([0.25, 0.75]))
    low, high = float(edges[first]), float(edges[last + 1])
    for side in (-1, 1):
        while True:
            held = np.flatnonzero(mass)[::-side]
            blank = np.flatnonzero(np.abs(np.diff(held)) > 1)
            if not len(blank):
                break
            run, before = held[: blank[0] + 1], held[blank[0] + 1]
            near, far = edges[before + (side > 0)], edges[run[-1] + (side < 0)]
            further = max(float(far) - high, low - float(far))
            away = abs(float(far) - float(near)) > max(GAP * further, high - low)
            if not (away and mass[run].sum() < ISLAND * np.linalg.norm(sigma[run])):
                break
            mass[run] = 0.0
    return mass


def _trimmed(
    scale: Scale, edges: NDArray[Any], mass: Floats, unseen: Floats
) -> tuple[NDArray[Any], Floats]:
    """Leaves without anything merged; without a bound, the column ends where its leaves end."""
    held = np.flatnonzero(mass)
    first = 0 if scale.lower is not None else held[0]
    last = len(mass) if scale.upper is not None else held[-1] + 1
    points = _points(scale, edges)  # a round value before the first leaf belongs to it
    first -= bool(first > 0 and scale.lower is None and points[first - 1] and edges[first] > 0)
    last += bool(last < len(mass) and scale.upper is None and points[last] and edges[last] < 0)
    alone = edges[last] == edges[first] + 1 if scale.discrete else edges[first] >= scale.high
    if alone:  # a column has two values at least
        first, last = (first, last + 1) if last < len(mass) else (first - 1, last)
    if not scale.discrete and edges[first] >= scale.high:
        first -= 1
    edges, mass, unseen = edges[first : last + 1], mass[first:last], unseen[first:last]
    # A point that holds nothing of its own is one of the values of the leaf beside it.
    points = points[first:last]
    wide = ~points & (mass > 0) & ((not scale.discrete) | (np.diff(edges) > 1))
    wide = np.concatenate([[False], wide, [False]])  # of the cell before, and so on
    blank = points & (mass == 0)
    right = blank & wide[2:] & ((edges[:-1] >= 0) | ~wide[:-2])
    left = blank & wide[:-2] & ~right
    joined = np.append(False, right[:-1]) | left
    edges, mass = _merged(edges, mass + unseen * ~blank, joined)
    empty = (mass[1:] == 0) & (mass[:-1] == 0)
    if float(edges[-1]) - float(edges[0]) > 2.0**62:  # the width of a leaf fits 64 bits
        empty &= np.abs(edges[1:-1].astype(np.float64)) < 2.0**60
    return _merged(edges, mass, np.append(False, empty))


def _merged(
    edges: NDArray[Any], mass: Floats, joined: NDArray[np.bool_]
) -> tuple[NDArray[Any], Floats]:
    """Some leaves joined to the one before."""
    begins = np.flatnonzero(~joined)
    return edges[[*begins, len(mass)]], np.add.reduceat(mass, begins)


def _with_cuts(
    edges: NDArray[Any], mass: Floats, cuts: Sequence[Any]
) -> tuple[NDArray[Any], Floats]:
    """Leaves cut at public values."""
    for cut in sorted(set(cuts)):
        at = int(np.searchsorted(edges, cut, side="right")) - 1
        if not 0 <= at < len(mass) or edges[at] == cut:
            continue
        share = float(cut - edges[at]) / float(edges[at + 1] - edges[at])
        edges = np.insert(edges, at + 1, cut)
        mass = np.insert(mass, at, mass[at] * share)
        mass[at + 1] *= 1 - share
    return edges, mass


def _with_end(scale: Scale, edges: NDArray[Any], mass: Floats) -> tuple[NDArray[Any], Floats]:
    """Where the last value is a point by itself, the one before it too: a cell has both."""
    before = scale.high - (scale.after(scale.high) - scale.high)
    held = mass[-1] > 2 * UNSEEN * mass.sum()
    if len(mass) < 2 or edges[-2] != scale.high or not held or edges[-3] >= before:
        return edges, mass
    return np.insert(edges, -2, before), np.insert(mass, -1, 0.0)


def _exact(
    scale: Scale, edges: NDArray[Any], mass: Floats, starts: list[int]
) -> tuple[NDArray[Any], Floats, list[int]]:
    """Points among doubles are one value; the rest of their cells, which `after` says, is empty."""
    ends = np.nextafter(edges[:-1], np.inf)
    points = np.flatnonzero(_points(scale, edges) & (mass > 0) & (edges[1:] > ends))
    moved = [start + int(np.sum(points < start)) for start in starts]
    return np.insert(edges, points + 1, ends[points]), np.insert(mass, points + 1, 0.0), moved


def _last(scale: Scale, edges: NDArray[Any]) -> Any:
    """The last point, which its cell includes."""
    return min(scale.high, edges[-1] - 1 if scale.discrete else edges[-1])


def _cells(scale: Scale, edges: NDArray[Any], mass: Floats, count: int, least: float) -> list[int]:
    """Where cells begin: equal steps of half the rows and half ∫f^⅓; heavy points by themselves."""
    share = mass / mass.sum()
    width = np.diff(edges).astype(np.float64)
    points = _points(scale, edges)
    third = np.where(points, 0.0, np.cbrt(share * width**2))
    both = share / 2 + third / max(third.sum(), 1e-300) / 2
    heavy = np.flatnonzero((points | (width == 1) & scale.discrete) & (share > 0.5 / count))
    fixed = {0, *heavy.tolist(), *(at + 1 for at in heavy.tolist())}
    if len(mass) > 2 and edges[-2] == scale.high and share[-1] > 2 * UNSEEN:
        fixed.add(len(mass) - 2)
    reached = np.concatenate([[0.0], np.cumsum(both)])
    wanted = reached[-1] * np.arange(1, count) / count
    cuts = {int(np.argmin(np.abs(reached - at))) for at in wanted}
    ranks = np.concatenate([[0.0], np.cumsum(share)])
    bounds = sorted(at for at in fixed if at < len(mass))
    starts: list[int] = []
    for at in sorted({*cuts, *bounds}):
        if at >= len(mass) or edges[at] >= _last(scale, edges):
            continue
        if at in bounds:
            while starts and starts[-1] not in bounds and ranks[at] - ranks[starts[-1]] < least:
                starts.pop()
            starts.append(at)
        elif ranks[at] - ranks[starts[-1]] >= least and ranks[-1] - ranks[at] >= least:
            starts.append(at)
    return starts


# Piecewise constant fits to noisy counts: the least squares with a price on every step


def fitted(
    counts: Floats,
    sigma: Floats,
    width: Floats,
    enter: float,
    step: float,
    inside: bool,
    faint: float,
) -> Floats:
    """Counts of neighbouring cells, at least zero, one fit for every row of the arrays.

    Segments are empty or have one density. The sum of squared errors in units of `sigma`, plus
    `enter` for each segment that follows an empty one and `step` for each that follows another, is
    the least possible (dynamic programming). `inside`: to begin with a segment costs nothing, and an
    empty one costs `step` too. A segment with less than `faint` deviations in it is empty. Inside a
    segment counts are then shrunk towards its density (James-Stein). Cells of infinite `sigma` and
    width 0 fill up short rows.
    """
    rows, cells = counts.shape
    precision = sigma**-2.0
    squares = _sums(counts**2 * precision)
    products = _sums(counts * width * precision)
    widths = _sums(width**2 * precision)
    held = np.full((rows, cells + 1), np.inf)  # the least cost so far, the last segment holding
    empty = np.full((rows, cells + 1), np.inf)  # or empty
    held[:, 0] = -step if inside else np.inf
    leave = step if inside else 0.0
    empty[:, 0] = leave
    begins = np.zeros((rows, cells + 1), np.intp)
    after = np.zeros((rows, cells + 1), np.bool_)  # the empty cell before follows another empty one
    for end in range(1, cells + 1):
        product = np.maximum(products[:, end, None] - products[:, :end], 0.0)
        whole = np.maximum(widths[:, end, None] - widths[:, :end], 1e-300)
        rest = squares[:, end, None] - squares[:, :end] - product**2 / whole
        cost = np.minimum(held[:, :end] + step, empty[:, :end] + enter) + rest
        begins[:, end] = np.argmin(cost, axis=1)
        held[:, end] = np.take_along_axis(cost, begins[:, end, None], axis=1)[:, 0]
        alone = squares[:, end] - squares[:, end - 1]
        left = np.inf if end == 1 else held[:, end - 1] + leave
        after[:, end] = empty[:, end - 1] <= left
        empty[:, end] = np.minimum(empty[:, end - 1], left) + alone
    out = np.zeros_like(counts)
    for row in range(rows):
        end, holds = cells, held[row, cells] <= empty[row, cells]
        while end > 0:
            if not holds:
                holds, end = not after[row, end], end - 1
                continue
            begin = int(begins[row, end])
            out[row, begin:end] = _shrunk(
                counts[row, begin:end], precision[row, begin:end], width[row, begin:end], faint
            )
            holds, end = held[row, begin] + step < empty[row, begin] + enter, begin
    return out


def _shrunk(counts: Floats, precision: Floats, width: Floats, faint: float) -> Floats:
    """The counts of a segment, drawn towards its density as far as they differ by noise."""
    total = float(np.sum(width**2 * precision))
    if total <= 0:
        return np.zeros(len(counts))
    product = float(np.sum(counts * width * precision))
    if product < faint * total**0.5:
        return np.zeros(len(counts))
    level = product / total * width
    rest = float(np.sum((counts - level) ** 2 * precision))
    freedom = int(np.count_nonzero(precision)) - 1
    keep = max(0.0, 1.0 - freedom / rest) if rest > 0 else 0.0
    return np.maximum(level + keep * (counts - level), 0.0)


def _sums(values: Floats) -> Floats:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)

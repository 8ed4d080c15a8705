"""One-way tables from everything that was measured: what pairs say of their columns, by least squares.

The sums of a noisy pair over its second column are one estimate of the first, with noise σ² for every
value summed over. Where the second column is skewed that is wasteful: nearly all rows lie in a few of
those cells, and the others add noise. So the rows of a pair are read through what they should look
like. Let value i have r_i rows and the other column shares p; the cells of i are

    y_ij = r_i·p_j + d_ij + noise of σ²,   Σ_j d_ij = 0,   Var d_ij = u_ij = κ_ij·r_i·p_j,

d the dependence of the two columns and κ what is believed of its size (empirical Bayes, from the pair
itself; more where a cell stands out alone). Generalised least squares for r_i weighs the cells by
h = a⁻¹p + a⁻¹u·(uᵀa⁻¹p)/(Σu − uᵀa⁻¹u), a = σ² + u, and has variance 1/(hᵀp): σ²/Σp² where columns
are independent, the plain sum's Jσ² where they depend on each other in any way. Rare values of the
other column are read together, so that κ can be seen. On ADULT at ε = 0.1 columns so come out a quarter
nearer to the truth than by plain sums.

Estimates of one column are averaged by inverse variance (those of values that were merged speak of
their sums, and enter by conjugate gradients). Two passes: r and p are each other's input.

What comes out is still noisy, and `one_way` makes counts of it by empirical Bayes: counts of one column
are taken for draws from an unknown law, which is itself found by maximum likelihood (Kiefer-Wolfowitz
1956, by EM on a grid); the answer is the posterior mean. The law is sought once for the counts
themselves and, for columns whose neighbouring values resemble each other, for their deviations from a
leave-one-out average of the neighbours; the likelihoods of the answers, tempered because laws fitted to
the same answers flatter themselves, weigh them, so whether a column is ordered need not be said. Where
it is, and nearly all rows lie in values that are clear of noise, those beyond them are the tail of a
column (`columns.tails`): few rows far out, believed one by one, would ruin its deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from understudy._types import Table
from understudy.columns.tails import outwards
from understudy.models.measured import Labels, Measured, frequent, simplex

Group = tuple[Labels, Table, Table]
"""Sums over values of one label: the labels, the variance and the estimate of each sum."""

Told = tuple[tuple[float, float], ...]
"""Of the first values of a column: a count, and the variance of its noise."""

FREQUENT = 0.05
"""Values below this share are read together."""
_PASSES = 2
# Constants chosen on ADULT and LOANS; see docs/methods/maxent.md.
_STANDS_OUT = 1.0  # A cell stands out beyond 1 + √(2 ln K) deviations
_CONVERGED, _STEPS = 1e-12, 50

_BANDWIDTHS = (1, 2, 4, 8, 16)
# Below this many values the noise says more about a value than the other values do.
_FEW = 20
_FAR = 7.0
# Exponent of the likelihoods: errors on LOANS are flat from 0.05 to 0.3 and 2 % larger at 1.
_TRUST = 0.2
_DROWNED = 0.03  # Noise above this share of all rows
# A value is clear beyond so many deviations; a tail has more values than so many, beyond clear ones
# that hold this share of the rows, and so many of these say how it begins. Chosen on generated columns.
_SEEN, _BEYOND, _BULK, _BEFORE = 4.0, 2, 0.85, 9


def one_ways(
    shape: tuple[int, ...],
    measured: Sequence[Measured],
    rows: float,
    ordered: Sequence[int] = (),
    told: Sequence[Told] = (),
) -> tuple[tuple[Table, ...], tuple[float, ...]]:
    """Counts of every column, and about the deviation of one; n and uniform where none was seen.

    `ordered` says how many of each column's values, the first ones, are in an order, and `told` what
    was counted of its first values before.
    """
    before = [_Sums.empty(size) for size in shape]
    for each, known in zip(before, told, strict=False):
        each.add_told(known)
    sums = [each.copy() for each in before]
    for m in measured:
        if m.labels is None:
            for axis, i in enumerate(m.clique):
                sums[i].add_margin(m, axis)
    pairs = [m for m in measured if len(m.clique) == 2]
    if not pairs:
        return _estimates(sums, rows, one_way, ordered)
    estimates = _estimates(sums, rows, _projected)
    plain = before
    for m in measured:
        if m.labels is None and len(m.clique) != 2:
            for axis, i in enumerate(m.clique):
                plain[i].add_margin(m, axis)
    for left in reversed(range(_PASSES)):
        sums = [each.copy() for each in plain]
        for m in pairs:
            for axis, i in enumerate(m.clique):
                sums[i].add_pair(m, axis, estimates[0], rows)
        estimates = _estimates(sums, rows, _projected if left else one_way, () if left else ordered)
    counts, deviations = estimates
    return tuple(map(_raked, counts, sums)), deviations


def per_cell(residual: Table, noise: Table, base: Table, believed: float) -> Table:
    """κ per cell, flat: that of the table, or what a cell that stands out says of itself."""
    flat = residual.reshape(-1)
    alone = np.where(
        np.abs(flat) > stands_out(noise), flat**2 / np.maximum(base.reshape(-1), 1.0), 0.0
    )
    return np.maximum(believed, alone)


def stands_out(noise: Table) -> Table:
    """Beyond how much each of these cells says something by itself, given the variance of its noise."""
    return (_STANDS_OUT + math.sqrt(2 * math.log(max(noise.size, 2)))) * np.sqrt(noise)


class _Sums:
    """What is known of one column: precision and weighted sum of every value, and sums of groups."""

    def __init__(self, precision: Table, weighted: Table, groups: list[Group]) -> None:
        self.precision, self.weighted, self.groups = precision, weighted, groups

    @classmethod
    def empty(cls, size: int) -> _Sums:
        return cls(np.zeros(size), np.zeros(size), [])

    def copy(self) -> _Sums:
        return _Sums(self.precision.copy(), self.weighted.copy(), list(self.groups))

    def add_told(self, known: Told) -> None:
        """Counts of the first values, each with a variance of its own."""
        for value, (count, variance) in enumerate(known):
            self.precision[value] += 1 / variance
            self.weighted[value] += count / variance if math.isfinite(variance) else 0.0

    def add_margin(self, m: Measured, axis: int) -> None:
        """A whole table, summed over its other columns."""
        others = tuple(a for a in range(len(m.clique)) if a != axis)
        weight = m.sigma**-2 * self.precision.size / m.values.size
        self.precision += weight
        self.weighted += weight * m.values.sum(axis=others)

    def add_pair(self, m: Measured, axis: int, counts: Sequence[Table], rows: float) -> None:
        """A pair, whole or merged, read through the other column's shares."""
        own, shares = counts[m.clique[axis]], counts[m.clique[1 - axis]] / rows
        table = np.asarray(m.values if axis == 0 else m.values.T, dtype=np.float64)
        if m.labels is None:
            variance, found = _matched(table, own, shares, m.sigma, rows)
            self.precision += 1 / variance
            self.weighted += found / variance
            return
        mine, other = m.labels[axis], m.labels[1 - axis]
        own = np.bincount(mine, own).astype(np.float64)
        shares = np.bincount(other, shares).astype(np.float64)
        variance, found = _matched(table, own, shares, m.sigma, rows)
        alone = (np.bincount(mine) == 1)[mine]
        self.precision[alone] += 1 / variance[mine[alone]]
        self.weighted[alone] += found[mine[alone]] / variance[mine[alone]]
        if not alone.all():
            self.groups.append((mine, variance, found))

    def solve(self) -> Table:
        """Least squares; conjugate gradients where sums of groups were seen."""
        precision = np.maximum(self.precision, 1e-12 * max(float(self.precision.max()), 1e-300))
        x = self.weighted / precision
        if not self.groups:
            return x
        seen = [
            (labels, np.where(np.bincount(labels) > 1, 1 / variance, 0.0), found)
            for labels, variance, found in self.groups
        ]

        def times(z: Table) -> Table:
            product = precision * z
            for labels, weight, _ in seen:
                product += (weight * np.bincount(labels, z))[labels]
            return product

        right, diagonal = self.weighted.copy(), precision.copy()
        for labels, weight, found in seen:
            right += (weight * found)[labels]
            diagonal += weight[labels]
        residual = right - times(x)
        scaled = residual / diagonal
        way, left = scaled, float(residual @ scaled)
        enough = _CONVERGED * float(right @ (right / diagonal))
        for _ in range(_STEPS):
            if left <= enough:
                break
            moved = times(way)
            step = left / float(way @ moved)
            x = x + step * way
            residual = residual - step * moved
            scaled = residual / diagonal
            before, left = left, float(residual @ scaled)
            way = scaled + left / before * way
        return x


def _raked(counts: Table, seen: _Sums) -> Table:
    """Counts whose sums over groups of values are taken towards those of least squares.

    De-noising looks at every value by itself, with the noise of one value; sums over groups were seen
    with far less than it lets them move. Where the sums of a merging differ by more than their noise
    explains, they go the part of the way that James and Stein (1961) take, and values inside a group
    share it by their counts, those that are clear of noise by no more than that.
    """
    rows, solved = counts.sum(), seen.solve()
    noise = 1 / np.maximum(seen.precision, 1e-18)
    variance: dict[bytes, Table] = {}
    for labels, each, _ in seen.groups:
        key, many = labels.astype(np.int64).tobytes(), np.bincount(labels)
        alone = variance.get(key, np.bincount(labels, noise))
        variance[key] = np.where(many > 1, 1 / (1 / alone + 1 / each), alone)
    for key, spread in sorted(variance.items(), key=lambda each: each[1].size):
        labels = np.frombuffer(key, np.int64)
        off = np.bincount(labels, solved - counts)
        off -= spread * (off.sum() / spread.sum())  # how many rows there are is known
        part = max(0.0, 1 - (off.size - 1) / max(float((off**2 / spread).sum()), 1e-300))
        share = np.minimum(counts, np.sqrt(noise))
        moved = (part * off / np.bincount(labels, share))[labels] * share
        counts = _positive(np.maximum(counts + moved, 0.0), rows)
    return counts


def _projected(values: Table, sigma: float, rows: float) -> Table:
    """The nearest counts; enough for the shares that pairs are read through."""
    return rows * simplex(values, rows)


def _estimates(
    sums: Sequence[_Sums],
    rows: float,
    denoised: Callable[[Table, float, float], Table],
    ordered: Sequence[int] = (),
) -> tuple[tuple[Table, ...], tuple[float, ...]]:
    counts: list[Table] = []
    values: list[Table] = []
    deviations: list[float] = []
    for each in sums:
        seen, size = float(each.precision.mean()), each.precision.size
        y, deviation, found = np.zeros(0), float(rows), np.full(size, rows / size)
        if seen > 0:
            y, deviation = each.solve(), seen**-0.5
            found = denoised(y, deviation, rows)
        counts.append(found)
        values.append(y)
        deviations.append(deviation)
    if ordered:
        first = [y[:inner] for y, inner in zip(values, ordered, strict=True)]
        counts = _with_tails(counts, first, deviations, rows)
    return tuple(counts), tuple(deviations)


def _matched(
    table: Table, own: Table, shares: Table, sigma: float, rows: float
) -> tuple[Table, Table]:
    """(variance, estimate) of the sum of every row of `table`; see the module."""
    labels = frequent(shares, FREQUENT)
    many = np.bincount(labels).astype(np.float64)
    p = np.bincount(labels, shares)
    cells = np.zeros((table.shape[0], many.size))
    np.add.at(cells.T, labels, table.T)
    own = np.maximum(own, 1.0)
    base = np.multiply.outer(own, p)
    # Dependence: what is left of the difference when sums over either column are taken out.
    off = cells - base
    off = off - np.multiply.outer(off.sum(axis=1), many / many.sum())
    off = off - off.mean(axis=0, keepdims=True)
    free = many * (1 - many / many.sum())
    noise = sigma**2 * np.broadcast_to(free, cells.shape).reshape(-1)
    beyond = float((off**2).sum()) - float(noise.sum()) * (1 - 1 / table.shape[0])
    believed = max(min(sigma, rows / table.size), beyond / rows)
    kappa = per_cell(off, noise, base, believed).reshape(cells.shape)
    u = kappa * base
    a = sigma**2 * many + u
    rest = (u * (sigma**2 * many) / a).sum(axis=1)  # Σu − uᵀa⁻¹u, without its cancellation
    h = (p + u * ((u * p / a).sum(axis=1) / rest)[:, None]) / a
    precision = h @ p
    return 1 / precision, (h * cells).sum(axis=1) / precision


# --- one noisy column ---------------------------------------------------------------------------


def one_way(values: Table, sigma: float, rows: float) -> Table:
    """Counts above zero that sum to `rows`, from counts with Gaussian noise of deviation `sigma`."""
    y = np.asarray(values, dtype=np.float64)
    rows = max(float(rows), 1.0)
    if sigma > _DROWNED * rows:
        # Hardly a value can be seen: the best linear guess under a uniform law of shares.
        uniform = rows / y.size
        variance = uniform * (rows - uniform) / (y.size + 1)
        y = uniform + (y - uniform) * variance / (variance + sigma * sigma)
        return _positive(rows * simplex(y, rows), rows)
    if y.size <= _FEW:
        return _positive(rows * simplex(y, rows), rows)
    found = [deconvolve(y, sigma, positive=True)]
    found += [_smoothed(y, sigma, b) for b in _BANDWIDTHS if 3 * b < y.size]
    means, evidence = zip(*found, strict=True)
    weight = np.exp(_TRUST * (np.array(evidence) - max(evidence)))
    average = np.tensordot(weight / weight.sum(), np.array(means), 1)
    return _positive(rows * simplex(average, rows), rows)


def deconvolve(y: Table, sigma: float, *, positive: bool, steps: int = 60) -> tuple[Table, float]:
    """(posterior means, log likelihood) under the law of the unknowns that explains y best."""
    top = max(float(np.abs(y).max()), sigma)
    grid = [0.0]
    while grid[-1] < min(top, 8 * sigma):
        grid.append(grid[-1] + sigma / 2)
    while grid[-1] < top:
        grid.append(grid[-1] * 1.25)
    points = np.array(grid) if positive else np.concatenate([-np.array(grid)[:0:-1], grid])
    distance = (y[:, None] - points[None, :]) / sigma
    likelihood = np.exp(-np.minimum(distance * distance / 2, 400.0))
    law = np.full(points.size, 1 / points.size)
    for _ in range(steps):
        law = law * (likelihood.T @ (1 / (likelihood @ law + 1e-300))) / y.size
    density = likelihood @ law + 1e-300
    mean = (likelihood * law) @ points / density
    return np.where(np.abs(y) > _FAR * sigma, y, mean), float(np.log(density).sum())


def _with_tails(
    counts: Sequence[Table], values: Sequence[Table], sigmas: Sequence[float], rows: float
) -> list[Table]:
    """Counts with those of the tails of their first `values`, in order, as all of these tell them."""
    clear = [np.flatnonzero(y > _SEEN * sigma) for y, sigma in zip(values, sigmas, strict=True)]
    found = [own.copy() for own in counts]
    parts = list(zip(found, values, clear, strict=True))
    told = [at for at, part in enumerate(parts) if _bulky(*part, rows)]
    tails = [(own, (y, sigmas[at])) for at in told for own, y in _tails(*parts[at])]
    outer = outwards([run for _, run in tails])
    for (own, _), further in zip(tails, outer, strict=True):
        own[:] = further[-own.size :]
    for at in told:
        own, sure = found[at], clear[at]
        own[sure] *= max(rows - own.sum() + own[sure].sum(), 0.0) / max(own[sure].sum(), 1e-300)
        found[at] = _positive(own, rows)
    return found


def _bulky(own: Table, values: Table, clear: NDArray[np.intp], rows: float) -> bool:
    """Whether nearly all rows lie in values that are clear of noise, or in none of those in order."""
    held = float(values[clear].sum()) + float(own[values.size :].sum())
    return len(clear) > 0 and held >= _BULK * rows


def _tails(own: Table, values: Table, clear: NDArray[np.intp]) -> Iterator[tuple[Table, Table]]:
    """The places of either tail, and the values from the bulk on that tell of it."""
    inner, end = own[: values.size], values.size - 1 - clear[0]
    for y, mine, last in ((values, inner, clear[-1]), (values[::-1], inner[::-1], end)):
        if y.size - last > _BEYOND:
            begin = max(0, last - _BEFORE)
            begin += int(np.argmax(y[begin : last + 1]))
            yield mine[last + 1 :], y[begin:]


def _smoothed(y: Table, sigma: float, bandwidth: int) -> tuple[Table, float]:
    """As `deconvolve`, of deviations from the neighbours; spikes do not speak for theirs."""
    centre = np.maximum(_neighbours(y, bandwidth), 0.0)
    mean, _ = deconvolve(y - centre, sigma, positive=False)
    centre = np.maximum(_neighbours(np.where(np.abs(mean) > 3 * sigma, centre, y), bandwidth), 0.0)
    mean, log_likelihood = deconvolve(y - centre, sigma, positive=False)
    return np.maximum(centre + mean, 0.0), log_likelihood


def _neighbours(y: Table, bandwidth: int) -> Table:
    """Gaussian averages of the values around each, itself left out."""
    reach = 3 * bandwidth
    kernel = np.exp(-((np.arange(-reach, reach + 1) / bandwidth) ** 2) / 2)
    kernel[reach] = 0.0
    return np.convolve(np.pad(y, reach, mode="reflect"), kernel, "valid") / kernel.sum()


def _positive(counts: Table, rows: float) -> Table:
    """No value is ruled out: a cell that is empty here could never be filled by the fit."""
    counts = np.maximum(counts, 1e-3)
    return counts * (rows / counts.sum())

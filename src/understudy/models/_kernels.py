"""Compiled inner loops of fitting and sampling. Everything here is post-processing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.compiled import kernel

_TURNS, _LARGE = 4, 100_000
_GOLDEN = (math.sqrt(5) - 1) / 2
_TILT, _FURTHEST = 60.0, 40.0
_NEAR, _WARM = 1e-4, 0.3


def parts(cells: int) -> NDArray[np.float64]:
    """Empty parts of a table for `weigh`: several, unless it is large."""
    return np.zeros((_TURNS if cells < _LARGE else 1, cells))


@kernel
def _omega(z: float, near: float) -> float:
    """The real ω with ω + ln ω = z (Wright's omega function); `near` is one nearby, or 0."""
    if z < -30.0:
        return math.exp(z)
    if near > 0.0:
        w = near
    elif z < 1.0:
        w = math.exp(z)
        w = max(w / (1.0 + w), 1e-3) if z > -2.0 else w * (1.0 - w)
    else:
        w = z - math.log(z)
    for _ in range(3):
        slope = 1.0 + w
        step = (z - w - math.log(w)) / slope
        w *= 1.0 + step * (1.0 + step / (2.0 * slope))
        if w <= 0.0:
            w = 1e-300
        if abs(step) < _NEAR:
            break
    return w


@kernel
def solve(y: Any, log_base: Any, ratio: Any, total: float, m: Any) -> float:
    """Fill m with the solution of m + ratio·ln(m/base) = y + ν, Σm = total; return ν.

    Cell by cell m = ratio·ω(ln(base/ratio) + (y + ν)/ratio); Newton's method on ν, whose sum is convex
    and increasing, never beyond the ν at which one cell alone would have the total. Cells without
    base stay empty; others that rounding would empty get e^−60 of their base, for an empty cell is
    never filled again. Afterwards `log_base` holds ln(base/ratio).
    """
    most = np.inf
    for i in range(y.size):
        if log_base[i] != -np.inf:
            most = min(most, total + ratio[i] * (math.log(total) - log_base[i]) - y[i])
    if most == np.inf:
        for i in range(m.size):
            m[i] = 0.0
        return 0.0
    for i in range(y.size):
        log_base[i] -= math.log(ratio[i])
    shift, moved = min(0.0, most), np.inf
    for _ in range(60):
        reached = 0.0
        slope = 0.0
        for i in range(y.size):
            if log_base[i] == -np.inf:
                m[i] = 0.0
                continue
            e = ratio[i]
            near = m[i] / e if abs(moved) < _WARM * (m[i] + e) else 0.0
            value = e * _omega(log_base[i] + (y[i] + shift) / e, near)
            m[i] = value
            reached += value
            slope += value / (value + e)
        gap = total - reached
        if abs(gap) < 1e-7 * total:
            break
        # Where nothing is reached yet the slope says nothing, and its inverse may overflow.
        moved = min(gap / max(slope, 1e-300), most - shift)
        shift += moved
    for i in range(y.size):
        if m[i] < 1e-200 and log_base[i] != -np.inf:
            m[i] = math.exp(max(log_base[i] + math.log(ratio[i]) - _TILT, -500.0))
    return shift


@kernel
def _below(z: float) -> float:
    """The share of a standard normal law below z."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@kernel
def _quantile(p: float) -> float:
    """The z below which this share lies (Wichura 1988, AS 241)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        above = 2509.0809287301226727 * r + 33430.575583588128105
        above = (above * r + 67265.770927008700853) * r + 45921.953931549871457
        above = (above * r + 13731.693765509461125) * r + 1971.5909503065514427
        above = (above * r + 133.14166789178437745) * r + 3.387132872796366608
        under = 5226.495278852854561 * r + 28729.085735721942674
        under = (under * r + 39307.89580009271061) * r + 21213.794301586595867
        under = (under * r + 5394.1960214247511077) * r + 687.1870074920579083
        under = (under * r + 42.313330701600911252) * r + 1.0
        return q * above / under
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    if r <= 5.0:
        r -= 1.6
        above = 7.7454501427834140764e-4 * r + 0.0227238449892691845833
        above = (above * r + 0.24178072517745061177) * r + 1.27045825245236838258
        above = (above * r + 3.64784832476320460504) * r + 5.7694972214606914055
        above = (above * r + 4.6303378461565452959) * r + 1.42343711074968357734
        under = 1.05075007164441684324e-9 * r + 5.475938084995344946e-4
        under = (under * r + 0.0151986665636164571966) * r + 0.14810397642748007459
        under = (under * r + 0.68976733498510000455) * r + 1.6763848301838038494
        under = (under * r + 2.05319162663775882187) * r + 1.0
    else:
        r -= 5.0
        above = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
        above = (above * r + 0.0012426609473880784386) * r + 0.026532189526576123093
        above = (above * r + 0.29656057182850489123) * r + 1.7848265399172913358
        above = (above * r + 5.4637849111641143699) * r + 6.6579046435011037772
        under = 2.04426310338993978564e-15 * r + 1.4215117583164458887e-7
        under = (under * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4
        under = (under * r + 0.0148753612908506148525) * r + 0.13692988092273580531
        under = (under * r + 0.59983220655588793769) * r + 1.0
    return -above / under if q < 0.0 else above / under


@kernel
def between(low: Any, high: Any, shares: Any) -> None:
    """Take shares of the standard normal law between two ends, of every row, to where they lie."""
    for r in range(shares.size):
        flip = low[r] > 0.0  # the lower tail is exact
        first = _below(-high[r] if flip else low[r])
        last = _below(-low[r] if flip else high[r])
        p = min(max(first + shares[r] * (last - first), 1e-300), 1.0 - 2.0**-53)
        z = -_quantile(p) if flip else _quantile(p)
        shares[r] = min(max(z, low[r]), high[r])


@kernel
def balance(m: Any, rows: Any, columns: Any, times: int) -> None:
    """Scale a flat table to its two margins, `times` over (iterative proportional fitting)."""
    wide = columns.size
    for _ in range(times):
        for i in range(rows.size):
            s = 0.0
            for c in range(i * wide, (i + 1) * wide):
                s += m[c]
            if s > 0.0:
                f = rows[i] / s
                for c in range(i * wide, (i + 1) * wide):
                    m[c] *= f
        for j in range(wide):
            s = 0.0
            for c in range(j, m.size, wide):
                s += m[c]
            if s > 0.0:
                f = columns[j] / s
                for c in range(j, m.size, wide):
                    m[c] *= f


@kernel
def _shift(gap: float, slope: float, m: float, ratio: float) -> float:
    """The factor of a cell by which a line of them closes its gap, all by one Newton step."""
    x = gap / max(slope, 1e-300) / (m + ratio)
    return math.exp(min(max(x, -1.0), 1.0))


@kernel
def hold(m: Any, ratio: Any, rows: Any, columns: Any, times: int) -> None:
    """Take a flat solution of `solve` towards its two margins by a ν for every row and every column.

    A cell with m + ratio·ln(m/base) = y + ν moves by m/(m + ratio) when ν does: large cells as far as
    those that hold noise, where `balance` would take it out of the large ones.
    """
    wide = columns.size
    for _ in range(times):
        for i in range(rows.size):
            s = 0.0
            slope = 0.0
            for c in range(i * wide, (i + 1) * wide):
                s += m[c]
                slope += m[c] / (m[c] + ratio[c])
            for c in range(i * wide, (i + 1) * wide):
                m[c] *= _shift(rows[i] - s, slope, m[c], ratio[c])
        for j in range(wide):
            s = 0.0
            slope = 0.0
            for c in range(j, m.size, wide):
                s += m[c]
                slope += m[c] / (m[c] + ratio[c])
            for c in range(j, m.size, wide):
                m[c] *= _shift(columns[j] - s, slope, m[c], ratio[c])


@kernel
def _carry(step: Any, rows: Any, columns: Any) -> None:
    """Give every cell that has no step, NaN, that of its row and column; they are filled as well."""
    wide, many, mean = columns.size, 0, 0.0
    for i in range(rows.size):
        rows[i] = 0.0
        count = 0
        for c in range(i * wide, (i + 1) * wide):
            if not math.isnan(step[c]):
                rows[i] += step[c]
                count += 1
        mean += rows[i]
        many += count
        rows[i] /= max(count, 1)
    for j in range(wide):
        columns[j] = 0.0
        count = 0
        for c in range(j, step.size, wide):
            if not math.isnan(step[c]):
                columns[j] += step[c]
                count += 1
        columns[j] /= max(count, 1)
    for i in range(rows.size):
        for j in range(wide):
            if math.isnan(step[i * wide + j]):
                step[i * wide + j] = rows[i] + columns[j] - mean / max(many, 1)


@kernel
def refine(
    current: Any,
    y: Any,
    ratio: Any,
    empty: Any,
    rows: Any,
    columns: Any,
    total: float,
    part: float,
    theta: Any,
    room: Any,
) -> None:
    """Begin `room` with the factors that take a table to its solution; theta gets their logarithms.

    See `understudy.models.blocks.Block.refine`. `rows` and `columns` have no values where margins are
    not held, and `empty` none where no cell is; the rest of `room` is for a table and its margins.
    """
    size, held, reached = current.size, rows.size > 0, 0.0
    factors, base, sides = room[:size], room[size : 2 * size], room[2 * size :]
    for c in range(size):
        base[c] = current[c] * math.exp(-theta[c])
        if empty.size and empty[c]:
            base[c] = 0.0
        reached += base[c]
    if held:
        balance(base, rows, columns, 3)
    for c in range(size):
        if not held:
            base[c] *= total / max(reached, 1e-300)
        base[c] = math.log(base[c]) if base[c] > 0.0 else -np.inf
    solve(y, base, ratio, total, factors)
    if held:
        hold(factors, ratio, rows, columns, 2)
        balance(factors, rows, columns, 2)
    # From here on `base` is the step, NaN where nothing is.
    for c in range(size):
        if current[c] > 0.0 and not (empty.size and empty[c]):
            factors[c] /= current[c]
            base[c] = math.log(max(factors[c], 1e-300))
        else:
            factors[c], base[c] = 1.0, np.nan
    if part < 1.0 and held:
        _carry(base, sides[: rows.size], sides[rows.size :])
    for c in range(size):
        step = 0.0 if math.isnan(base[c]) else base[c]
        if part < 1.0:
            step *= part
            factors[c] = math.exp(step)
        theta[c] = min(max(theta[c] + step, -_FURTHEST), _FURTHEST)
        if empty.size and empty[c]:
            theta[c], factors[c] = -_FURTHEST, 0.0


@kernel
def weigh(cells: Any, weights: Any, parts: Any) -> None:
    """parts.sum(axis=0)[c] += Σ weights of the records in cell c.

    Neighbours are often in one cell, and each addition to it would wait for the one before; so they
    take turns with the parts, a power of two of them.
    """
    turn = parts.shape[0] - 1
    for i in range(cells.size):
        parts[i & turn, cells[i]] += weights[i]


@kernel
def draw(cumulative: Any, group: Any, order: Any, start: Any, out: Any) -> None:
    """One cell per row from the law of its group, along `order`, by a golden-ratio sequence.

    The k-th row of group g takes the quantile start[g] + k·φ modulo one, so every run of neighbours
    along the order gets its shares of every cell, up to a logarithm.
    """
    last = -1
    q = 0.0
    for r in range(order.size):
        i = order[r]
        g = group[i]
        if g != last:
            last = g
            q = start[g]
        law = cumulative[g]
        low = 0
        high = law.size - 1
        x = q * law[high]
        while low < high:
            middle = (low + high) // 2
            if law[middle] > x:
                high = middle
            else:
                low = middle + 1
        out[i] = low
        q += _GOLDEN
        if q >= 1.0:
            q -= 1.0


@kernel
def locate(columns: Any, strides: Any, codes: Any, cells: Any) -> None:
    """The cells of a block of records in every marginal, all marginals one after the other.

    That of record t in marginal c begins at strides[-1, c] and lies Σ_k x[columns[k, c]]·strides[k, c]
    behind it, x = codes[:, t]. Records go along the last axis, where machines take many at once.
    """
    width = columns.shape[0]
    for c in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            cells[c, t] = strides[width, c]
        for k in range(width):
            i = columns[k, c]
            stride = strides[k, c]
            for t in range(cells.shape[1]):
                cells[c, t] += codes[i, t] * stride


@kernel
def tabulate(
    records: Any, weights: Any, columns: Any, strides: Any, codes: Any, cells: Any, table: Any
) -> None:
    """table[c] += Σ weights of the records in cell c, of every marginal."""
    for start in range(0, weights.size, codes.shape[1]):
        many = min(codes.shape[1], weights.size - start)
        for t in range(many):
            for i in range(codes.shape[0]):
                codes[i, t] = records[start + t, i]
        locate(columns, strides, codes, cells)
        for t in range(many):
            for c in range(cells.shape[0]):
                table[cells[c, t]] += weights[start + t]


@kernel
def count(
    records: Any, chosen: Any, columns: Any, strides: Any, codes: Any, cells: Any, excess: Any
) -> None:
    """excess[c] += the number of chosen records in cell c, one by one, of every marginal."""
    for start in range(0, chosen.size, codes.shape[1]):
        many = min(codes.shape[1], chosen.size - start)
        for t in range(many):
            for i in range(codes.shape[0]):
                codes[i, t] = records[chosen[start + t], i]
        locate(columns, strides, codes, cells)
        for t in range(many):
            for c in range(cells.shape[0]):
                excess[cells[c, t]] += np.float32(1.0)


@kernel
def _price(excess: Any, change: Any, u: int) -> None:
    """What the sum changes by when cell u has a row less, and a row more."""
    change[1, u] = change[0, u] * (1.0 - 2.0 * excess[u])
    change[2, u] = change[0, u] * (1.0 + 2.0 * excess[u])


@kernel
def swap(
    records: Any,
    chosen: Any,
    columns: Any,
    strides: Any,
    codes: Any,
    cells: Any,
    excess: Any,
    change: Any,
    tries: Any,
    totals: Any,
) -> int:
    """Replace row tries[0, t] by record tries[1, t] where that lowers Σ scale·excess²; how often.

    `excess` holds counts minus targets of all cells of all marginals; `change` is, cell by cell, the
    scale and what the sum changes by when the cell has a row less, and a row more, held here so that
    they are computed once. The tries are taken one after the other: a block of them is weighed at
    once, and what comes behind a replacement is weighed again.
    `cells` holds those of the rows and those of the records of a block.
    """
    old = cells[0]
    new = cells[1]
    for u in range(excess.size):
        _price(excess, change, u)
    accepted = 0
    for start in range(0, tries.shape[1], codes.shape[1]):
        many = min(codes.shape[1], tries.shape[1] - start)
        for t in range(many):
            for i in range(codes.shape[0]):
                codes[i, t] = records[chosen[tries[0, start + t]], i]
        locate(columns, strides, codes, old)
        for t in range(many):
            for i in range(codes.shape[0]):
                codes[i, t] = records[tries[1, start + t], i]
        locate(columns, strides, codes, new)
        first = 0
        while first < many:
            for t in range(first, many):
                totals[t] = 0.0
            for c in range(old.shape[0]):
                for t in range(first, many):
                    u = old[c, t]
                    v = new[c, t]
                    both = change[2, v] + change[1, u]
                    totals[t] += both if u != v else 0.0
            while first < many and not totals[first] < 0.0:
                first += 1
            if first == many:
                break
            accepted += 1
            row = tries[0, start + first]
            chosen[row] = tries[1, start + first]
            for c in range(old.shape[0]):
                excess[old[c, first]] -= 1.0
                excess[new[c, first]] += 1.0
                _price(excess, change, old[c, first])
                _price(excess, change, new[c, first])
            for t in range(first + 1, many):
                if tries[0, start + t] == row:  # its record is another now
                    for c in range(old.shape[0]):
                        old[c, t] = new[c, first]
            first += 1
    return accepted


@kernel
def join(first: Any, along: Any, second: Any, across: Any, cells: Any) -> None:
    """cells[r] = along[first[r]] + across[second[r]]."""
    for r in range(cells.size):
        cells[r] = along[first[r]] + across[second[r]]


@kernel
def mark(first: Any, second: Any, held: Any) -> None:
    """held[first[r], second[r]] = True."""
    for r in range(first.size):
        held[first[r], second[r]] = True


@kernel
def scale(cells: Any, factors: Any, weights: Any) -> None:
    """Multiply the weight of every record by the factor of its cell."""
    for r in range(weights.size):
        weights[r] *= factors[cells[r]]


@kernel
def scale_and_weigh(cells: Any, factors: Any, others: Any, weights: Any, parts: Any) -> None:
    """`scale` by the factors of some cells and then `weigh` in others, in one pass."""
    turn = parts.shape[0] - 1
    one, two, three, four = parts[0], parts[1 & turn], parts[2 & turn], parts[3 & turn]
    last = weights.size - weights.size % 4
    for r in range(0, last, 4):  # four at a time: a fifth faster
        a = weights[r] * factors[cells[r]]
        b = weights[r + 1] * factors[cells[r + 1]]
        c = weights[r + 2] * factors[cells[r + 2]]
        d = weights[r + 3] * factors[cells[r + 3]]
        weights[r], weights[r + 1], weights[r + 2], weights[r + 3] = a, b, c, d
        one[others[r]] += a
        two[others[r + 1]] += b
        three[others[r + 2]] += c
        four[others[r + 3]] += d
    for r in range(last, weights.size):
        weights[r] *= factors[cells[r]]
        one[others[r]] += weights[r]


@kernel
def _power(x: Any) -> Any:
    """About e^x for x ≤ 0, within a part x²/8192 of it: (1 + x/4096)^4096, which takes no call."""
    y = max(np.float32(1.0) + x * np.float32(1.0 / 4096), np.float32(0.0))
    for _ in range(12):
        y *= y
    return y


@kernel
def given_others(
    codes: Any, start: int, terms: Any, tables: Any, alpha: Any, cells: Any, law: Any
) -> None:
    """law[v, t] ∝ p(x = v | the other columns of record start + t), at most 1; see `gibbs`.

    Of as many records as there are `cells`. They go along the last axis, where machines take many at
    once; the line of `law` behind the values is room.
    """
    size, most = alpha.size, law[alpha.size]
    many = min(cells.size, codes.shape[1] - start)
    for v in range(size):
        for t in range(many):
            law[v, t] = alpha[v]
    for term in range(terms.shape[0]):
        for t in range(many):
            cells[t] = terms[term, 0]
        for k in range(1, terms.shape[1], 2):
            other, stride = codes[terms[term, k]], terms[term, k + 1]
            if stride > 0:
                for t in range(many):
                    cells[t] += stride * other[start + t]
        for v in range(size):
            own = law[v]
            for t in range(many):
                own[t] += tables[cells[t] + v]
    for t in range(many):
        most[t] = law[0, t]
    for v in range(1, size):
        for t in range(many):
            most[t] = max(most[t], law[v, t])
    for v in range(size):
        own = law[v]
        for t in range(many):
            own[t] = _power(own[t] - most[t])


@kernel
def conditionals(
    codes: Any, terms: Any, tables: Any, alpha: Any, cells: Any, law: Any, total: Any
) -> None:
    """total[v] += p(x = v | the others), summed over the records; see `gibbs`."""
    for start in range(0, codes.shape[1], cells.size):
        given_others(codes, start, terms, tables, alpha, cells, law)
        for t in range(min(cells.size, codes.shape[1] - start)):
            all_of_it = np.float32(0.0)
            for v in range(alpha.size):
                all_of_it += law[v, t]
            for v in range(alpha.size):
                total[v] += law[v, t] / all_of_it


@kernel
def gibbs(
    codes: Any, column: int, terms: Any, tables: Any, alpha: Any, cells: Any, law: Any, uniform: Any
) -> None:
    """Draw one column of every record given its others: p(x) ∝ exp(alpha[x] + Σ_t tables[at_t + x]).

    Term t begins at terms[t, 0] and moves by terms[t, k + 1] for every value of column terms[t, k],
    k = 1, 3, ….
    """
    size, total, drawn = alpha.size, law[alpha.size], codes[column]
    for start in range(0, uniform.size, cells.size):
        many = min(cells.size, uniform.size - start)
        given_others(codes, start, terms, tables, alpha, cells, law)
        for t in range(many):
            total[t] = 0.0
        for v in range(size):
            own = law[v]
            for t in range(many):
                total[t] += own[t]
                own[t] = total[t]
        for t in range(many):
            total[t] *= uniform[start + t]
            cells[t] = 0
        for v in range(size - 1):
            own = law[v]
            for t in range(many):
                cells[t] += own[t] <= total[t]
        for t in range(many):
            drawn[start + t] = cells[t]

"""Compiled inner loops of `families`: children that change places. Everything here is post-processing.

`people` has a row for every child: its codes, where it stands in its family, its family. `homes` has a
row for every family: its codes, its first child, how many it has. Families have the views that
`Families.views` makes. `strides` has a column for every table and a row for every code of a view: those
of the family, where A stands, those of A, those of B; then where the table begins, and what is added
where there is no B. So the cell of a view is a sum of offsets, found for all tables at once. The first
`alone` tables have no column of B.

`slopes` holds for every cell scale·(count − goal) and its scale: half the slope and half the curvature
of the objective Σ scale·(count − goal)². Where the scale is zero, the slope is a price that stays.
"""

from __future__ import annotations

from typing import Any

from understudy.compiled import kernel

SCRATCH = 10
"""Rows of the scratch array: the family, the other one, and of either child what it adds as A, as A
after the exchange, as B, as B after the exchange."""
_HOME, _OTHER, _U, _V = 0, 1, 2, 6
_A, _NEW_A, _B, _NEW_B = range(4)


@kernel
def _home(homes: Any, f: int, strides: Any, offsets: Any) -> None:
    """What family f adds to the cells of its views."""
    start = strides.shape[0] - 2
    for c in range(offsets.size):
        offsets[c] = strides[start, c]
    for k in range(homes.shape[1] - 2):
        code = homes[f, k]
        for c in range(offsets.size):
            offsets[c] += strides[k, c] * code


@kernel
def _as_a(people: Any, homes: Any, u: int, strides: Any, offsets: Any) -> None:
    """What child u adds as A, and where it stands."""
    row = homes.shape[1] - 2
    codes = people.shape[1] - 2
    place = people[u, codes]
    for c in range(offsets.size):
        offsets[c] = strides[row, c] * place
    for k in range(codes):
        code = people[u, k]
        for c in range(offsets.size):
            offsets[c] += strides[row + 1 + k, c] * code


@kernel
def _as_b(people: Any, homes: Any, u: int, strides: Any, offsets: Any) -> None:
    """What child u adds as B."""
    codes = people.shape[1] - 2
    row = homes.shape[1] - 1 + codes
    for c in range(offsets.size):
        offsets[c] = 0
    for k in range(codes):
        code = people[u, k]
        for c in range(offsets.size):
            offsets[c] += strides[row + k, c] * code


@kernel
def _nobody(strides: Any, offsets: Any) -> None:
    """What is added where there is no B."""
    for c in range(offsets.size):
        offsets[c] = strides[strides.shape[0] - 1, c]


@kernel
def _weight(size: int, ordered: int) -> float:
    """What one view of a family of this size weighs."""
    return 1.0 / size if ordered or size == 1 else 1.0 / (size * (size - 1))


@kernel
def _slope(
    first: int, last: int, scratch: Any, old: int, new: int, weight: float, slopes: Any
) -> float:
    """What the objective changes by, to first order, when a view moves in some tables."""
    total = 0.0
    for c in range(first, last):
        cell = scratch[_HOME, c] + scratch[_OTHER, c]
        total += slopes[0, cell + scratch[new, c]] - slopes[0, cell + scratch[old, c]]
    return 2.0 * weight * total


@kernel
def _step(
    first: int, last: int, scratch: Any, old: int, new: int, weight: float, slopes: Any
) -> float:
    """Move a view in some tables; what the objective changes by, exactly."""
    total = 0.0
    for c in range(first, last):
        cell = scratch[_HOME, c] + scratch[_OTHER, c]
        before = cell + scratch[old, c]
        after = cell + scratch[new, c]
        if before != after:
            step = weight * slopes[1, before]
            total += weight * (step - 2.0 * slopes[0, before])
            slopes[0, before] -= step
            step = weight * slopes[1, after]
            total += weight * (step + 2.0 * slopes[0, after])
            slopes[0, after] += step
    return total


@kernel
def _change(
    first: int, last: int, scratch: Any, old: int, new: int, weight: float, slopes: Any, really: int
) -> float:
    """What the objective changes by when a view moves in some tables: `_step` or `_slope`."""
    if really:
        return _step(first, last, scratch, old, new, weight, slopes)
    return _slope(first, last, scratch, old, new, weight, slopes)


@kernel
def _replace(
    people: Any,
    homes: Any,
    u: int,
    strides: Any,
    alone: int,
    ordered: int,
    slopes: Any,
    scratch: Any,
    own: int,
    really: int,
) -> float:
    """What the objective changes by when child u is exchanged; `scratch[own:]` is what it adds."""
    f = people[u, people.shape[1] - 1]
    many = strides.shape[1]
    start = homes[f, homes.shape[1] - 2]
    size = homes[f, homes.shape[1] - 1]
    end = start + size
    weight = _weight(size, ordered)
    a = own + _A
    new_a = own + _NEW_A
    b = own + _B
    new_b = own + _NEW_B
    _home(homes, f, strides, scratch[_HOME])
    for c in range(many):
        scratch[_OTHER, c] = 0
    total = _change(0, alone, scratch, a, new_a, 1.0 / size, slopes, really)
    if alone == many:
        return total
    if ordered or size == 1:
        if u == start:
            _nobody(strides, scratch[_OTHER])
        else:
            _as_b(people, homes, u - 1, strides, scratch[_OTHER])
        total += _change(alone, many, scratch, a, new_a, weight, slopes, really)
        if u + 1 < end:
            _as_a(people, homes, u + 1, strides, scratch[_OTHER])
            total += _change(alone, many, scratch, b, new_b, weight, slopes, really)
        return total
    for z in range(start, end):
        if z != u:
            _as_b(people, homes, z, strides, scratch[_OTHER])
            total += _change(alone, many, scratch, a, new_a, weight, slopes, really)
            _as_a(people, homes, z, strides, scratch[_OTHER])
            total += _change(alone, many, scratch, b, new_b, weight, slopes, really)
    return total


@kernel
def _offsets(people: Any, homes: Any, u: int, strides: Any, scratch: Any, row: int) -> None:
    """What child u adds as A, in this row, and as B, two rows on."""
    _as_a(people, homes, u, strides, scratch[row])
    _as_b(people, homes, u, strides, scratch[row + 2])


@kernel
def _back(scratch: Any) -> None:
    """Exchange what either child adds before and after the exchange."""
    for c in range(scratch.shape[1]):
        for row in (_U + _A, _U + _B, _V + _A, _V + _B):
            before = scratch[row, c]
            scratch[row, c] = scratch[row + 1, c]
            scratch[row + 1, c] = before


@kernel
def _swap(people: Any, u: int, v: int) -> int:
    """Exchange the codes of two children; how many differed."""
    differed = 0
    for k in range(people.shape[1] - 2):
        code = people[u, k]
        if code != people[v, k]:
            people[u, k] = people[v, k]
            people[v, k] = code
            differed += 1
    return differed


@kernel
def exchange(
    people: Any,
    homes: Any,
    strides: Any,
    alone: int,
    ordered: int,
    slopes: Any,
    tries: Any,
    scratch: Any,
) -> int:
    """Let children tries[0, t] and tries[1, t] change places, one t after the other, if that helps.

    The objective is convex in the counts, so what does not fall to first order does not fall. Returns
    how many did.
    """
    home = people.shape[1] - 1
    accepted = 0
    for t in range(tries.shape[1]):
        u = tries[0, t]
        v = tries[1, t]
        if people[u, home] == people[v, home]:
            continue
        _offsets(people, homes, u, strides, scratch, _U + _A)
        _offsets(people, homes, v, strides, scratch, _V + _A)
        if not _swap(people, u, v):
            continue
        _offsets(people, homes, u, strides, scratch, _U + _NEW_A)
        _offsets(people, homes, v, strides, scratch, _V + _NEW_A)
        total = _replace(people, homes, u, strides, alone, ordered, slopes, scratch, _U, 0)
        total += _replace(people, homes, v, strides, alone, ordered, slopes, scratch, _V, 0)
        if total < -1e-6:
            total = _replace(people, homes, u, strides, alone, ordered, slopes, scratch, _U, 1)
            total += _replace(people, homes, v, strides, alone, ordered, slopes, scratch, _V, 1)
            if total < -1e-6:
                accepted += 1
                continue
            _back(scratch)
            _replace(people, homes, v, strides, alone, ordered, slopes, scratch, _V, 1)
            _replace(people, homes, u, strides, alone, ordered, slopes, scratch, _U, 1)
        _swap(people, u, v)
    return accepted


@kernel
def _see(first: int, last: int, scratch: Any, weight: float, cells: Any, look: int) -> float:
    """Add a view's weight to its cells in some tables, or if `look` add up what the cells hold."""
    total = 0.0
    for c in range(first, last):
        cell = scratch[_HOME, c] + scratch[_U, c] + scratch[_OTHER, c]
        if look:
            total += cells[cell]
        else:
            cells[cell] += weight
    return total


@kernel
def _views(
    people: Any,
    homes: Any,
    u: int,
    strides: Any,
    alone: int,
    ordered: int,
    cells: Any,
    scratch: Any,
    look: int,
) -> float:
    """See the views in which child u is A."""
    f = people[u, people.shape[1] - 1]
    many = strides.shape[1]
    start = homes[f, homes.shape[1] - 2]
    size = homes[f, homes.shape[1] - 1]
    weight = _weight(size, ordered)
    _home(homes, f, strides, scratch[_HOME])
    _as_a(people, homes, u, strides, scratch[_U])
    for c in range(many):
        scratch[_OTHER, c] = 0
    total = _see(0, alone, scratch, 1.0 / size, cells, look)
    if ordered or size == 1:
        if u == start:
            _nobody(strides, scratch[_OTHER])
        else:
            _as_b(people, homes, u - 1, strides, scratch[_OTHER])
        return total + _see(alone, many, scratch, weight, cells, look)
    for z in range(start, start + size):
        if z != u:
            _as_b(people, homes, z, strides, scratch[_OTHER])
            total += _see(alone, many, scratch, weight, cells, look)
    return total


@kernel
def count(
    people: Any, homes: Any, strides: Any, alone: int, ordered: int, cells: Any, scratch: Any
) -> None:
    """cells[c] += the weight of all views in cell c, one for a whole family, of every table."""
    for u in range(people.shape[0]):
        _views(people, homes, u, strides, alone, ordered, cells, scratch, 0)


@kernel
def flag(
    people: Any,
    homes: Any,
    strides: Any,
    alone: int,
    ordered: int,
    cells: Any,
    scratch: Any,
    flags: Any,
) -> None:
    """flags[u] = Σ cells[c] over the cells of the views in which child u is A."""
    for u in range(people.shape[0]):
        flags[u] = _views(people, homes, u, strides, alone, ordered, cells, scratch, 1)

"""The compiled inner loops of the annealed oracle. Importing this file loads numba.

Attribute a has atoms v = 0..size-1 at positions start[a] + v. A term c is a row of literals (slots);
literals[c, l] = (column, low, high, negated) says that the column has an atom in low..high or, negated,
outside; length[c] slots are used. cover[pointer[q] : pointer[q + 1]] lists the (term, slot) whose
interval holds position q. For the current record `code`, missing[c] = (number, sum of the slots) of the
literals of c that do not hold, so that a single missing literal is known without a search.

The table of payments: every term pays its weight to those values of an attribute that make it true
while all other attributes stay: at all its slots if no literal is missing, at the missing slot if one
is, and nowhere if more are. So what a record gains when attribute a goes from u to v is
    noise[v] + paid[v] - noise[u] - paid[u].
If every literal is an equality (`plain`), table[start[a] + v] = paid[v]. Otherwise the table holds
differences along the atoms of an attribute, so that an interval is paid by two numbers: paid[v] = the
sum of table[start[a] + a : start[a] + a + v + 1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from understudy.oracles.atoms import Atoms

__all__ = ["Problem", "problem", "search"]

_ENOUGH = 1e-9  # a gain that is not rounding
_COLUMN, _LOW, _HIGH, _NEGATED = 0, 1, 2, 3


# Without its runtime: nothing is allocated here, and counting references to arrays that the caller holds
# takes longer than the search.
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled and kept on disk, or for this process alone where nothing can be written."""
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        return numba.njit(**_OPTIONS)(function)


class Problem(NamedTuple):
    """The terms over atoms, in the order the search reads them."""

    start: NDArray[np.int64]
    literals: NDArray[np.int64]
    length: NDArray[np.int64]
    weight: NDArray[np.float64]
    pointer: NDArray[np.int64]
    cover: NDArray[np.int64]
    positive: NDArray[np.int64]
    plain: bool


def problem(atoms: Atoms) -> Problem:
    """The terms of a history, over atoms."""
    terms = atoms.terms
    used = terms.columns >= 0
    first = atoms.start[terms.columns] + terms.low
    spans = np.where(used, terms.high - terms.low + 1, 0).reshape(-1)
    literal = np.repeat(np.arange(spans.size), spans)
    within = np.arange(literal.size) - np.repeat(np.cumsum(spans) - spans, spans)
    position = first.reshape(-1)[literal] + within
    order = np.argsort(position, kind="stable")
    counts = np.bincount(position, minlength=atoms.positions)
    width = max(1, terms.columns.shape[1])
    parts = (terms.columns, terms.low, terms.high, terms.negated)
    return Problem(
        start=atoms.start,
        literals=np.stack([part.astype(np.int64) for part in parts], axis=2),
        length=used.sum(axis=1),
        weight=np.ascontiguousarray(terms.weights),
        pointer=np.concatenate([[0], np.cumsum(counts)]),
        cover=np.stack(np.divmod(literal[order], width), axis=1),
        positive=np.flatnonzero(terms.weights > 0),
        plain=not terms.negated.any() and bool((terms.low == terms.high).all()),
    )


# -- randomness: SplitMix64, one stream per perturbation ---------------------------------------------

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@_compiled
def _mixed(word: Any) -> Any:
    word = (word ^ (word >> _S30)) * _MIX1
    word = (word ^ (word >> _S27)) * _MIX2
    return word ^ (word >> _S31)


@_compiled
def _uniform(stream: Any) -> Any:
    stream[0] += _GOLDEN
    return (_mixed(stream[0]) >> _S11) * 2.0**-53


@_compiled
def _below(stream: Any, bound: Any) -> Any:
    return int(_uniform(stream) * bound)


# -- the table of payments ---------------------------------------------------------------------------


@_compiled
def _pay(
    c: Any, slot: Any, amount: Any, start: Any, literals: Any, plain: Any, table: Any, stale: Any
) -> None:
    """Pay `amount` to the values that literal (c, slot) allows."""
    a = literals[c, slot, _COLUMN]
    stale[a] = True
    if plain:
        table[start[a] + literals[c, slot, _LOW]] += amount
        return
    at = start[a] + a
    if literals[c, slot, _NEGATED]:
        table[at] += amount
        amount = -amount
    table[at + literals[c, slot, _LOW]] += amount
    table[at + literals[c, slot, _HIGH] + 1] -= amount


@_compiled
def _turn(
    c: Any, slot: Any, holds: Any,
    start: Any, literals: Any, length: Any, weight: Any, plain: Any,
    missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Literal (c, slot) begins to hold, or ceases to; what the record gains by term c."""
    sign = 1 if holds else -1
    number, slots = missing[c, 0], missing[c, 1]
    missing[c, 0], missing[c, 1] = number - sign, slots - sign * slot
    if holds:
        number, slots = number - 1, slots - slot
    # Now `number` literals besides this one are missing, and `slots` is the sum of their slots.
    if number > 1:
        return 0.0
    amount = sign * weight[c]
    if number == 1:
        _pay(c, slots, amount, start, literals, plain, table, stale)
        return 0.0
    for other in range(length[c]):
        if other != slot:
            _pay(c, other, amount, start, literals, plain, table, stale)
    return amount


@_compiled
def _move(
    a: Any, v: Any, noise: Any,
    start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, plain: Any,
    code: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Set attribute a to v; what the record gains."""
    u = code[a]
    if u == v:
        return 0.0
    here, there = start[a] + u, start[a] + v
    gain = noise[there] - noise[here]
    code[a] = v
    # A literal turns if its interval holds one of u and v, and not the other.
    for side in range(2):
        at, away = (here, v) if side == 0 else (there, u)
        for i in range(pointer[at], pointer[at + 1]):
            c, slot = cover[i, 0], cover[i, 1]
            holds = side == 1
            if not plain:
                if literals[c, slot, _LOW] <= away <= literals[c, slot, _HIGH]:
                    continue
                holds = holds != (literals[c, slot, _NEGATED] == 1)
            gain += _turn(
                c, slot, holds, start, literals, length, weight, plain, missing, table, stale
            )
    return gain


@_compiled
def _load(
    noise: Any, start: Any, literals: Any, length: Any, weight: Any, plain: Any,
    code: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Bring the state in line with the record `code`; what the record is worth."""
    for q in range(len(table)):
        table[q] = 0.0
    worth = 0.0
    for a in range(len(code)):
        stale[a] = True
        worth += noise[start[a] + code[a]]
    for c in range(len(weight)):
        number, slots = 0, 0
        for slot in range(length[c]):
            if not _allows(literals, c, slot, code[literals[c, slot, _COLUMN]]):
                number += 1
                slots += slot
        missing[c, 0], missing[c, 1] = number, slots
        if number == 0:
            worth += weight[c]
            for slot in range(length[c]):
                _pay(c, slot, weight[c], start, literals, plain, table, stale)
        elif number == 1:
            _pay(c, slots, weight[c], start, literals, plain, table, stale)
    return worth


@_compiled
def _allows(literals: Any, c: Any, slot: Any, v: Any) -> Any:
    inside = literals[c, slot, _LOW] <= v <= literals[c, slot, _HIGH]
    return inside != (literals[c, slot, _NEGATED] == 1)


# -- moves -------------------------------------------------------------------------------------------


@_compiled
def _ascend(
    sweeps: Any, noise: Any,
    start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, plain: Any,
    code: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """The best value of one attribute after the other, until none can be improved; the gain."""
    gain = 0.0
    for _ in range(sweeps):
        moved = False
        for a in range(len(code)):
            if not stale[a]:
                continue
            stale[a] = False
            at, shift = start[a], 0 if plain else a
            paid, top, own, best = 0.0, -np.inf, 0.0, 0
            for v in range(start[a + 1] - at):
                paid = table[at + v] if plain else paid + table[at + shift + v]
                score = noise[at + v] + paid
                if score > top:
                    top, best = score, v
                if v == code[a]:
                    own = score
            if top > own + _ENOUGH:
                gain += _move(
                    a, best, noise, start, literals, length, weight, pointer, cover, plain,
                    code, missing, table, stale,
                )  # fmt: skip
                moved = True
        if not moved:
            break
    return gain


@_compiled
def _best_allowed(
    c: Any, slot: Any, noise: Any, start: Any, literals: Any, plain: Any, table: Any
) -> Any:
    """The best value that literal (c, slot) allows while all other attributes stay; -1: none."""
    if plain:
        return literals[c, slot, _LOW]
    a = literals[c, slot, _COLUMN]
    at = start[a]
    paid, top, best = 0.0, -np.inf, -1
    for v in range(start[a + 1] - at):
        paid += table[at + a + v]
        if noise[at + v] + paid > top and _allows(literals, c, slot, v):
            top, best = noise[at + v] + paid, v
    return best


@_compiled
def _jump(
    c: Any, old: Any, noise: Any,
    start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, plain: Any,
    code: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Make term c true, keeping the former codes of its columns in `old`; the gain."""
    gain = 0.0
    for slot in range(length[c]):
        a = literals[c, slot, _COLUMN]
        old[slot] = code[a]
        if not _allows(literals, c, slot, code[a]):
            v = _best_allowed(c, slot, noise, start, literals, plain, table)
            if v < 0:
                gain = -np.inf
            else:
                gain += _move(
                    a, v, noise, start, literals, length, weight, pointer, cover, plain,
                    code, missing, table, stale,
                )  # fmt: skip
    return gain


@_compiled
def _copy(rows: Any, j: Any, into: Any) -> None:
    for a in range(len(into)):
        into[a] = rows[j, a]


@_compiled
def _begin(
    number: Any, row: Any, noise: Any, warm: Any, start: Any, code: Any, stream: Any
) -> None:
    """Write the record of this start into `code`."""
    if number == 0 and len(warm):
        _copy(warm, row, code)
    elif number == (1 if len(warm) else 0):
        for a in range(len(code)):
            best = start[a]
            for q in range(start[a], start[a + 1]):
                if noise[q] > noise[best]:
                    best = q
            code[a] = best - start[a]
    elif number % 2 == 0 and len(warm):
        _copy(warm, _below(stream, len(warm)), code)
    else:
        for a in range(len(code)):
            code[a] = _below(stream, start[a + 1] - start[a])


@_compiled
def _search(
    start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, positive: Any,
    plain: Any, noises: Any, warm: Any, begin: Any,
    starts: Any, blocks: Any, sweeps: Any, temperature: Any, seed: Any,
    result: Any, code: Any, missing: Any, table: Any, stale: Any, old: Any, stream: Any,
) -> None:  # fmt: skip
    """The best record found for every row of `noises`; row j belongs to warm[begin + j]."""
    for j in range(len(noises)):
        noise = noises[j]
        stream[0] = _mixed(seed + np.uint64(begin + j) * _GOLDEN)
        top = -np.inf
        for number in range(starts):
            _begin(number, begin + j, noise, warm, start, code, stream)
            worth = _load(
                noise, start, literals, length, weight, plain, code, missing, table, stale
            )
            worth += _ascend(
                sweeps, noise, start, literals, length, weight, pointer, cover, plain,
                code, missing, table, stale,
            )  # fmt: skip
            if worth > top:
                top = worth
                for a in range(len(code)):
                    result[j, a] = code[a]
            for block in range(blocks if len(positive) else 0):
                c = positive[_below(stream, len(positive))]
                if missing[c, 0] == 0:
                    continue
                gain = _jump(
                    c, old, noise, start, literals, length, weight, pointer, cover, plain,
                    code, missing, table, stale,
                )  # fmt: skip
                heat = temperature * (1.0 - (block + 1.0) / blocks)
                if gain > _ENOUGH or (heat > 0.0 and _uniform(stream) < np.exp(gain / heat)):
                    worth += gain + _ascend(
                        1, noise, start, literals, length, weight, pointer, cover, plain,
                        code, missing, table, stale,
                    )  # fmt: skip
                    continue
                for slot in range(length[c]):
                    _move(
                        literals[c, slot, _COLUMN], old[slot], noise,
                        start, literals, length, weight, pointer, cover, plain,
                        code, missing, table, stale,
                    )  # fmt: skip
            worth += _ascend(
                sweeps, noise, start, literals, length, weight, pointer, cover, plain,
                code, missing, table, stale,
            )  # fmt: skip
            if worth > top:
                top = worth
                for a in range(len(code)):
                    result[j, a] = code[a]


def search(
    p: Problem,
    noises: NDArray[np.float64],
    warm: NDArray[np.int64],
    begin: int,
    starts: int,
    blocks: int,
    sweeps: int,
    temperature: float,
    seed: np.uint64,
) -> NDArray[np.int64]:
    """The best record found for every row of `noises`; row j belongs to warm[begin + j]."""
    attributes = len(p.start) - 1
    result = np.empty((len(noises), attributes), np.int64)
    _search(
        *p, noises, warm, begin, starts, blocks, sweeps, temperature, seed, result,
        np.zeros(attributes, np.int64),
        np.zeros((len(p.weight), 2), np.int64),
        np.zeros(p.start[-1] + attributes),
        np.zeros(attributes, np.bool_),
        np.zeros(p.literals.shape[1], np.int64),
        np.zeros(1, np.uint64),
    )  # fmt: skip
    return result

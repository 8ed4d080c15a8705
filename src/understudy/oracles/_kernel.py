"""The compiled inner loops of the annealed oracle. Importing this file loads numba.

Attribute a has the positions start[a]..start[a + 1] - 1, one for each of its atoms; a record is the
position `at[a]` of every attribute. A term c is a row of literals (slots), length[c] of them:
literals[c, l] = (column, first, past, negated) holds if first <= at[column] < past or, negated, if not.
cover[pointer[q] : pointer[q + 1]] lists the (term, slot) whose interval holds position q.
missing[c] = (number, sum of the slots) of the literals of c that do not hold in the record, so that a
single missing literal is known without a search.

The table of payments: every term pays its weight to those positions of an attribute that make it true
while all other attributes stay: at all its slots if no literal is missing, at the missing slot if one
is, and nowhere if more are. So what a record gains when an attribute goes from position q to r is
    noise[r] + paid[r] - noise[q] - paid[q].
If every literal is one position (`plain`), the table holds paid. Otherwise it holds the differences of
paid along an attribute, so that an interval is paid by two numbers; every attribute then has a last
position that is no atom, with noise of minus infinity, where the intervals end.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.compiled import compiled
from understudy.oracles.atoms import Atoms

__all__ = ["Problem", "problem", "search"]

_ENOUGH = 1e-9  # a gain that is not rounding
_COLUMN, _FIRST, _PAST, _NEGATED = 0, 1, 2, 3

# Without numba's runtime: nothing is allocated here, and counting references to arrays that the caller
# holds takes longer than the search.
_compiled = partial(compiled, nogil=True, _nrt=False)
_inlined = partial(_compiled, forceinline=True)


class Problem(NamedTuple):
    """The terms over positions, in the order the search reads them."""

    start: NDArray[np.int64]
    literals: NDArray[np.int32]
    length: NDArray[np.int32]
    blank: NDArray[np.int32]
    weight: NDArray[np.float64]
    pointer: NDArray[np.int32]
    cover: NDArray[np.int32]
    positive: NDArray[np.int32]
    plain: bool


def problem(atoms: Atoms) -> Problem:
    """The terms of a history, over the positions of its atoms."""
    terms = atoms.terms
    used = terms.columns >= 0
    plain = not terms.negated.any() and bool((terms.low == terms.high).all())
    start = atoms.start if plain else atoms.start + np.arange(len(atoms.start))
    first = start[np.maximum(terms.columns, 0)] + terms.low
    past = first + terms.high - terms.low + 1
    spans = np.where(used, past - first, 0).reshape(-1)
    literal = np.repeat(np.arange(spans.size), spans)
    within = np.arange(literal.size) - np.repeat(np.cumsum(spans) - spans, spans)
    position = first.reshape(-1)[literal] + within
    order = np.argsort(position, kind="stable")
    counts = np.bincount(position, minlength=int(start[-1]))
    width = max(1, terms.columns.shape[1])
    parts = (terms.columns, first, past, terms.negated.astype(np.int64))
    wanting = used & ~terms.negated  # what is missing in a record outside every interval
    return Problem(
        start=start,
        literals=np.stack(parts, axis=2).astype(np.int32),
        length=used.sum(axis=1, dtype=np.int32),
        blank=np.stack([wanting.sum(axis=1), wanting @ np.arange(used.shape[1])], axis=1).astype(
            np.int32
        ),
        weight=np.ascontiguousarray(terms.weights),
        pointer=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        cover=np.stack(np.divmod(literal[order], width), axis=1).astype(np.int32),
        positive=np.flatnonzero(terms.weights > 0).astype(np.int32),
        plain=plain,
    )


# -- randomness: SplitMix64, one stream per perturbation ---------------------------------------------

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@_inlined
def _mixed(word: Any) -> Any:
    word = (word ^ (word >> _S30)) * _MIX1
    word = (word ^ (word >> _S27)) * _MIX2
    return word ^ (word >> _S31)


@_inlined
def _uniform(stream: Any) -> Any:
    stream[0] += _GOLDEN
    return (_mixed(stream[0]) >> _S11) * 2.0**-53


@_inlined
def _below(stream: Any, bound: Any) -> Any:
    return int(_uniform(stream) * bound)


# -- the table of payments ---------------------------------------------------------------------------


@_inlined
def _covers(literals: Any, c: Any, slot: Any, q: Any) -> Any:
    return literals[c, slot, _FIRST] <= q < literals[c, slot, _PAST]


@_inlined
def _allows(literals: Any, c: Any, slot: Any, q: Any) -> Any:
    return _covers(literals, c, slot, q) != (literals[c, slot, _NEGATED] == 1)


@_inlined
def _pay(
    c: Any, slot: Any, amount: Any, start: Any, literals: Any, plain: Any, table: Any, stale: Any
) -> None:
    """Pay `amount` to the positions that literal (c, slot) allows."""
    a = literals[c, slot, _COLUMN]
    stale[a] = True
    if not plain:
        if literals[c, slot, _NEGATED]:
            table[start[a]] += amount
            amount = -amount
        table[literals[c, slot, _PAST]] -= amount
    table[literals[c, slot, _FIRST]] += amount


@_inlined
def _turn(
    c: Any, slot: Any, holds: Any,
    start: Any, literals: Any, length: Any, weight: Any, plain: Any,
    missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Literal (c, slot) begins to hold, or ceases to; what the record gains by term c."""
    number, slots = missing[c, 0], missing[c, 1]
    amount = weight[c]
    if holds:
        number -= 1
        slots -= slot
        missing[c, 0], missing[c, 1] = number, slots
    else:
        missing[c, 0], missing[c, 1] = number + 1, slots + slot
        amount = -amount
    # Now `number` literals besides this one are missing, and `slots` is the sum of their slots.
    if number > 1:
        return 0.0
    if number == 1:
        _pay(c, slots, amount, start, literals, plain, table, stale)
        return 0.0
    for other in range(length[c]):
        if other != slot:
            _pay(c, other, amount, start, literals, plain, table, stale)
    return amount


@_compiled
def _move(
    a: Any, there: Any, noise: Any,
    start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, plain: Any,
    at: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Set attribute a to position `there`; what the record gains."""
    here = at[a]
    at[a] = there
    gain = noise[there] - noise[here]
    # A literal turns if its interval holds one of the two positions, and not the other.
    for side in range(2):
        q = there if side else here
        for i in range(pointer[q], pointer[q + 1]):
            c, slot = cover[i, 0], cover[i, 1]
            holds = side == 1
            if not plain:
                if _covers(literals, c, slot, here if side else there):
                    continue
                holds = holds != (literals[c, slot, _NEGATED] == 1)
            gain += _turn(
                c, slot, holds, start, literals, length, weight, plain, missing, table, stale
            )
    return gain


@_compiled
def _load(
    noise: Any, start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any,
    plain: Any, blank: Any, at: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """Bring the state in line with the record `at`; what the record is worth."""
    for q in range(len(table)):
        table[q] = 0.0
    for c in range(len(weight)):
        missing[c, 0], missing[c, 1] = blank[c, 0], blank[c, 1]
    worth = 0.0
    for a in range(len(at)):
        stale[a] = True
        worth += noise[at[a]]
        for i in range(pointer[at[a]], pointer[at[a] + 1]):
            c, slot = cover[i, 0], cover[i, 1]
            sign = 1 if literals[c, slot, _NEGATED] else -1
            missing[c, 0] += sign
            missing[c, 1] += sign * slot
    for c in range(len(weight)):
        if missing[c, 0] == 0:
            worth += weight[c]
            for slot in range(length[c]):
                _pay(c, slot, weight[c], start, literals, plain, table, stale)
        elif missing[c, 0] == 1:
            _pay(c, missing[c, 1], weight[c], start, literals, plain, table, stale)
    return worth


# -- moves -------------------------------------------------------------------------------------------


@_compiled
def _ascend(
    sweeps: Any, noise: Any,
    start: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, plain: Any,
    at: Any, missing: Any, table: Any, stale: Any,
) -> Any:  # fmt: skip
    """The best value of one attribute after the other, until none can be improved; the gain."""
    gain = 0.0
    for _ in range(sweeps):
        moved = False
        for a in range(len(at)):
            if not stale[a]:
                continue
            stale[a] = False
            paid, top, own, best = 0.0, -np.inf, 0.0, at[a]
            for q in range(start[a], start[a + 1]):
                paid = table[q] if plain else paid + table[q]
                score = noise[q] + paid
                if score > top:
                    top, best = score, q
                if q == at[a]:
                    own = score
            if top > own + _ENOUGH:
                gain += _move(
                    a, best, noise, start, literals, length, weight, pointer, cover, plain,
                    at, missing, table, stale,
                )  # fmt: skip
                moved = True
        if not moved:
            break
    return gain


@_compiled
def _aim(
    c: Any, noise: Any, start: Any, literals: Any, length: Any, weight: Any, plain: Any,
    at: Any, table: Any, target: Any,
) -> Any:  # fmt: skip
    """For each missing literal of c the best position it allows, else -1; a guess of the gain.

    The guess adds up what every column gains alone, and the weight of c: it is the gain unless some
    other term has literals at two of the positions that are left or reached. -inf: c cannot be true.
    """
    guess = weight[c]
    for slot in range(length[c]):
        a = literals[c, slot, _COLUMN]
        target[slot] = -1
        if _allows(literals, c, slot, at[a]):
            continue
        if plain:
            q = literals[c, slot, _FIRST]
            target[slot] = q
            guess += noise[q] + table[q] - noise[at[a]] - table[at[a]]
            continue
        paid, top, own = 0.0, -np.inf, 0.0
        for q in range(start[a], start[a + 1]):
            paid += table[q]
            if q == at[a]:
                own = noise[q] + paid
            if noise[q] + paid > top and _allows(literals, c, slot, q):
                top = noise[q] + paid
                target[slot] = q
        guess += top - own
    return guess


@_inlined
def _true(literals: Any, length: Any, c: Any, at: Any) -> Any:
    holds = True
    for slot in range(length[c]):
        holds &= _allows(literals, c, slot, at[literals[c, slot, _COLUMN]])
    return holds


@_compiled
def _promise(
    c: Any, noise: Any, literals: Any, length: Any, weight: Any, pointer: Any, cover: Any, plain: Any,
    at: Any, missing: Any, target: Any, seen: Any, stamp: Any,
) -> Any:  # fmt: skip
    """What the record would gain by going to `target` in the columns of c.

    Only terms with a literal at a position that is left or reached can change. One that held falls with
    its first literal that breaks; one that did not hold rises when as many literals are mended as were
    missing, unless another broke. seen[term] - stamp counts them, so a fresh stamp clears all counts.
    """
    gain = 0.0
    for slot in range(length[c]):
        if target[slot] >= 0:
            a = literals[c, slot, _COLUMN]
            gain += noise[target[slot]] - noise[at[a]]
            at[a], target[slot] = target[slot], at[a]
    for slot in range(length[c]):
        if target[slot] < 0:
            continue
        here, there = target[slot], at[literals[c, slot, _COLUMN]]
        for side in range(2):
            q = there if side else here
            for i in range(pointer[q], pointer[q + 1]):
                term = cover[i, 0]
                breaks = side == 0
                if not plain:
                    if _covers(literals, term, cover[i, 1], here if side else there):
                        continue
                    breaks = breaks != (literals[term, cover[i, 1], _NEGATED] == 1)
                if breaks:
                    if missing[term, 0] == 0 and seen[term] < stamp:
                        seen[term] = stamp
                        gain -= weight[term]
                else:
                    seen[term] = max(seen[term], stamp) + 1
                    if seen[term] == stamp + missing[term, 0] and _true(literals, length, term, at):
                        gain += weight[term]
    for slot in range(length[c]):
        if target[slot] >= 0:
            a = literals[c, slot, _COLUMN]
            at[a], target[slot] = target[slot], at[a]
    return gain


@_compiled
def _begin(
    number: Any, row: Any, noise: Any, warm: Any, start: Any, plain: Any, at: Any, stream: Any
) -> None:
    """Write the record of this start into `at`."""
    pad = 0 if plain else 1
    if len(warm) and number != 1 and number % 2 == 0:
        guess = row if number == 0 else _below(stream, len(warm))
        for a in range(len(at)):
            at[a] = start[a] + warm[guess, a]
    elif number == (1 if len(warm) else 0):
        for a in range(len(at)):
            at[a] = start[a]
            for q in range(start[a], start[a + 1]):
                if noise[q] > noise[at[a]]:
                    at[a] = q
    else:
        for a in range(len(at)):
            at[a] = start[a] + _below(stream, start[a + 1] - start[a] - pad)


@_inlined
def _keep(result: Any, j: Any, start: Any, at: Any) -> None:
    for a in range(len(at)):
        result[j, a] = at[a] - start[a]


@_compiled
def _search(
    start: Any, literals: Any, length: Any, blank: Any, weight: Any, pointer: Any, cover: Any,
    positive: Any, plain: Any, noises: Any, warm: Any, begin: Any,
    starts: Any, blocks: Any, sweeps: Any, temperature: Any, margin: Any, seed: Any, result: Any,
    worths: Any, at: Any, missing: Any, table: Any, stale: Any, target: Any, seen: Any, stream: Any,
) -> None:  # fmt: skip
    stamp = 0
    for j in range(len(noises)):
        noise = noises[j]
        stream[0] = _mixed(seed + np.uint64(begin + j) * _GOLDEN)
        top = -np.inf
        for number in range(starts):
            _begin(number, begin + j, noise, warm, start, plain, at, stream)
            worth = _load(
                noise, start, literals, length, weight, pointer, cover, plain, blank,
                at, missing, table, stale,
            )  # fmt: skip
            worth += _ascend(
                sweeps, noise, start, literals, length, weight, pointer, cover, plain,
                at, missing, table, stale,
            )  # fmt: skip
            if worth > top:
                top = worth
                _keep(result, j, start, at)
            for block in range(blocks if len(positive) else 0):
                c = positive[_below(stream, len(positive))]
                heat = temperature * (1.0 - (block + 1.0) / blocks)
                # One missing literal is a move of one attribute: the ascent has tried it.
                if missing[c, 0] < (1 if heat > 0.0 else 2):
                    continue
                least = heat * np.log(1.0 - _uniform(stream)) if heat > 0.0 else _ENOUGH
                guess = _aim(c, noise, start, literals, length, weight, plain, at, table, target)
                if guess + margin <= least:
                    continue
                stamp += len(target) + 1
                gain = _promise(
                    c, noise, literals, length, weight, pointer, cover, plain,
                    at, missing, target, seen, stamp,
                )  # fmt: skip
                if gain <= least:
                    continue
                for slot in range(length[c]):
                    if target[slot] >= 0:
                        worth += _move(
                            literals[c, slot, _COLUMN], target[slot], noise,
                            start, literals, length, weight, pointer, cover, plain,
                            at, missing, table, stale,
                        )  # fmt: skip
                worth += _ascend(
                    1, noise, start, literals, length, weight, pointer, cover, plain,
                    at, missing, table, stale,
                )  # fmt: skip
            worth += _ascend(
                sweeps, noise, start, literals, length, weight, pointer, cover, plain,
                at, missing, table, stale,
            )  # fmt: skip
            if worth > top:
                top = worth
                _keep(result, j, start, at)
        worths[j] = top


def search(
    p: Problem,
    noise: NDArray[np.float64],
    warm: NDArray[np.int64],
    begin: int,
    starts: int,
    blocks: int,
    sweeps: int,
    temperature: float,
    margin: float,
    seed: np.uint64,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For every row of `noise` the best codes of atoms, and what they are worth without the constant.

    Row j belongs to warm[begin + j].
    """
    attributes, positions, terms = len(p.start) - 1, int(p.start[-1]), len(p.weight)
    if not p.plain:
        ends = p.start[1:] - np.arange(1, attributes + 1)
        noise = np.insert(noise, ends, -np.inf, axis=1)
    result, worths = np.empty((len(noise), attributes), np.int64), np.empty(len(noise))
    _search(
        *p, np.ascontiguousarray(noise), np.ascontiguousarray(warm), begin,
        starts, blocks, sweeps, temperature, margin, seed, result, worths,
        np.zeros(attributes, np.int64),
        np.zeros((terms, 2), np.int32),
        np.zeros(positions),
        np.zeros(attributes, np.bool_),
        np.zeros(p.literals.shape[1], np.int64),
        np.zeros(terms, np.int64),
        np.zeros(1, np.uint64),
    )  # fmt: skip
    return result, worths

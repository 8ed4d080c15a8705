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

from understudy._types import Bools, Floats, Whole
from understudy.compiled import compiled
from understudy.oracles.atoms import Atoms

_ENOUGH = 1e-9  # a gain that is not rounding
_COLUMN, _FIRST, _PAST, _NEGATED = 0, 1, 2, 3

# Without numba's runtime: nothing is allocated here, and counting references to arrays that the caller
# holds takes longer than the search.
_compiled = partial(compiled, nogil=True, _nrt=False)
_inlined = partial(_compiled, forceinline=True)


class Problem(NamedTuple):
    """The terms over positions, in the order the search reads them."""

    start: Whole
    literals: NDArray[np.int32]
    length: NDArray[np.int32]
    blank: NDArray[np.int32]
    weight: Floats
    pointer: NDArray[np.int32]
    cover: NDArray[np.int32]
    positive: NDArray[np.int32]
    plain: bool


class State(NamedTuple):
    """A record and what is kept of it; `target`, `seen` and `stream` are the search's own."""

    at: Whole
    missing: NDArray[np.int32]
    table: Floats
    stale: Bools
    target: Whole
    seen: Whole
    stream: NDArray[np.uint64]

    @classmethod
    def of(cls, p: Problem) -> State:
        """Room for one record of the problem."""
        attributes, terms = len(p.start) - 1, len(p.weight)
        return cls(
            at=np.zeros(attributes, np.int64),
            missing=np.zeros((terms, 2), np.int32),
            table=np.zeros(int(p.start[-1])),
            stale=np.zeros(attributes, np.bool_),
            target=np.zeros(p.literals.shape[1], np.int64),
            seen=np.zeros(terms, np.int64),
            stream=np.zeros(1, np.uint64),
        )


class Schedule(NamedTuple):
    """How long to search, and the seed of all streams; see `Annealed`."""

    starts: int
    blocks: int
    sweeps: int
    margin: float
    seed: np.uint64


def problem(atoms: Atoms) -> Problem:
    """The terms of a history, over the positions of its atoms."""
    columns, low, high, negated = atoms.terms.parts
    weights = atoms.terms.weights
    used = columns >= 0
    plain = not negated.any() and bool((low == high).all())
    start = atoms.start if plain else atoms.start + np.arange(len(atoms.start))
    first = start[np.maximum(columns, 0)] + low
    past = first + high - low + 1
    spans = np.where(used, past - first, 0).reshape(-1)
    literal = np.repeat(np.arange(spans.size), spans)
    within = np.arange(literal.size) - np.repeat(np.cumsum(spans) - spans, spans)
    position = first.reshape(-1)[literal] + within
    order = np.argsort(position, kind="stable")
    counts = np.bincount(position, minlength=int(start[-1]))
    width = max(1, columns.shape[1])
    wanting = used & ~negated  # what is missing in a record outside every interval
    return Problem(
        start=start,
        literals=np.stack([columns, first, past, negated], axis=2).astype(np.int32),
        length=used.sum(axis=1, dtype=np.int32),
        blank=np.stack([wanting.sum(axis=1), wanting @ np.arange(used.shape[1])], axis=1).astype(
            np.int32
        ),
        weight=np.ascontiguousarray(weights),
        pointer=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        cover=np.stack(np.divmod(literal[order], width), axis=1).astype(np.int32),
        positive=np.flatnonzero(weights > 0).astype(np.int32),
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
def _covers(p: Any, c: Any, slot: Any, q: Any) -> Any:
    return p.literals[c, slot, _FIRST] <= q < p.literals[c, slot, _PAST]


@_inlined
def _allows(p: Any, c: Any, slot: Any, q: Any) -> Any:
    return _covers(p, c, slot, q) != (p.literals[c, slot, _NEGATED] == 1)


@_inlined
def _pay(p: Any, s: Any, c: Any, slot: Any, amount: Any) -> None:
    """Pay `amount` to the positions that literal (c, slot) allows."""
    a = p.literals[c, slot, _COLUMN]
    s.stale[a] = True
    if not p.plain:
        if p.literals[c, slot, _NEGATED]:
            s.table[p.start[a]] += amount
            amount = -amount
        s.table[p.literals[c, slot, _PAST]] -= amount
    s.table[p.literals[c, slot, _FIRST]] += amount


@_inlined
def _turn(p: Any, s: Any, c: Any, slot: Any, holds: Any) -> Any:
    """Literal (c, slot) begins to hold, or ceases to; what the record gains by term c."""
    number, slots = s.missing[c, 0], s.missing[c, 1]
    amount = p.weight[c]
    if holds:
        number -= 1
        slots -= slot
        s.missing[c, 0], s.missing[c, 1] = number, slots
    else:
        s.missing[c, 0], s.missing[c, 1] = number + 1, slots + slot
        amount = -amount
    # Now `number` literals besides this one are missing, and `slots` is the sum of their slots.
    if number > 1:
        return 0.0
    if number == 1:
        _pay(p, s, c, slots, amount)
        return 0.0
    for other in range(p.length[c]):
        if other != slot:
            _pay(p, s, c, other, amount)
    return amount


@_compiled
def _move(p: Any, s: Any, noise: Any, a: Any, there: Any) -> Any:
    """Set attribute a to position `there`; what the record gains."""
    here = s.at[a]
    s.at[a] = there
    gain = noise[there] - noise[here]
    # A literal turns if its interval holds one of the two positions, and not the other.
    for side in range(2):
        q = there if side else here
        for i in range(p.pointer[q], p.pointer[q + 1]):
            c, slot = p.cover[i, 0], p.cover[i, 1]
            holds = side == 1
            if not p.plain:
                if _covers(p, c, slot, here if side else there):
                    continue
                holds = holds != (p.literals[c, slot, _NEGATED] == 1)
            gain += _turn(p, s, c, slot, holds)
    return gain


@_compiled
def _load(p: Any, s: Any, noise: Any) -> Any:
    """Bring the state in line with its record; what the record is worth."""
    s.table[:] = 0.0
    s.stale[:] = True
    for c in range(len(p.weight)):
        s.missing[c, 0], s.missing[c, 1] = p.blank[c, 0], p.blank[c, 1]
    worth = 0.0
    for a in range(len(s.at)):
        worth += noise[s.at[a]]
        for i in range(p.pointer[s.at[a]], p.pointer[s.at[a] + 1]):
            c, slot = p.cover[i, 0], p.cover[i, 1]
            sign = 1 if p.literals[c, slot, _NEGATED] else -1
            s.missing[c, 0] += sign
            s.missing[c, 1] += sign * slot
    for c in range(len(p.weight)):
        if s.missing[c, 0] == 0:
            worth += p.weight[c]
            for slot in range(p.length[c]):
                _pay(p, s, c, slot, p.weight[c])
        elif s.missing[c, 0] == 1:
            _pay(p, s, c, s.missing[c, 1], p.weight[c])
    return worth


# -- moves -------------------------------------------------------------------------------------------


@_compiled
def _ascend(p: Any, s: Any, noise: Any, sweeps: Any) -> Any:
    """The best value of one attribute after the other, until none can be improved; the gain."""
    gain = 0.0
    for _ in range(sweeps):
        moved = False
        for a in range(len(s.at)):
            if not s.stale[a]:
                continue
            s.stale[a] = False
            paid, top, own, best = 0.0, -np.inf, 0.0, s.at[a]
            for q in range(p.start[a], p.start[a + 1]):
                paid = s.table[q] if p.plain else paid + s.table[q]
                score = noise[q] + paid
                if score > top:
                    top, best = score, q
                if q == s.at[a]:
                    own = score
            if top > own + _ENOUGH:
                gain += _move(p, s, noise, a, best)
                moved = True
        if not moved:
            break
    return gain


@_compiled
def _aim(p: Any, s: Any, noise: Any, c: Any) -> Any:
    """For each missing literal of c the best position it allows, else -1; a guess of the gain.

    The guess adds up what every column gains alone, and the weight of c: it is the gain unless some
    other term has literals at two of the positions that are left or reached. -inf: c cannot be true.
    """
    guess = p.weight[c]
    for slot in range(p.length[c]):
        here = s.at[p.literals[c, slot, _COLUMN]]
        s.target[slot] = -1
        if _allows(p, c, slot, here):
            continue
        if p.plain:
            q = p.literals[c, slot, _FIRST]
            s.target[slot] = q
            guess += noise[q] + s.table[q] - noise[here] - s.table[here]
            continue
        a = p.literals[c, slot, _COLUMN]
        paid, top, own = 0.0, -np.inf, 0.0
        for q in range(p.start[a], p.start[a + 1]):
            paid += s.table[q]
            if q == here:
                own = noise[q] + paid
            if noise[q] + paid > top and _allows(p, c, slot, q):
                top = noise[q] + paid
                s.target[slot] = q
        guess += top - own
    return guess


@_inlined
def _true(p: Any, s: Any, c: Any) -> Any:
    holds = True
    for slot in range(p.length[c]):
        holds &= _allows(p, c, slot, s.at[p.literals[c, slot, _COLUMN]])
    return holds


@_inlined
def _exchange(p: Any, s: Any, noise: Any, c: Any) -> Any:
    """Put the targets of c into the record, what was there into the targets; the noise gained."""
    gain = 0.0
    for slot in range(p.length[c]):
        if s.target[slot] >= 0:
            a = p.literals[c, slot, _COLUMN]
            gain += noise[s.target[slot]] - noise[s.at[a]]
            s.at[a], s.target[slot] = s.target[slot], s.at[a]
    return gain


@_compiled
def _promise(p: Any, s: Any, noise: Any, c: Any, stamp: Any) -> Any:
    """What the record would gain by going to `target` in the columns of c.

    Only terms with a literal at a position that is left or reached can change. One that held falls with
    its first literal that breaks; one that did not hold rises when as many literals are mended as were
    missing, unless another broke. seen[term] - stamp counts them, so a fresh stamp clears all counts.
    """
    gain = _exchange(p, s, noise, c)
    for slot in range(p.length[c]):
        if s.target[slot] < 0:
            continue
        here, there = s.target[slot], s.at[p.literals[c, slot, _COLUMN]]
        for side in range(2):
            q = there if side else here
            for i in range(p.pointer[q], p.pointer[q + 1]):
                term = p.cover[i, 0]
                breaks = side == 0
                if not p.plain:
                    if _covers(p, term, p.cover[i, 1], here if side else there):
                        continue
                    breaks = breaks != (p.literals[term, p.cover[i, 1], _NEGATED] == 1)
                if breaks:
                    if s.missing[term, 0] == 0 and s.seen[term] < stamp:
                        s.seen[term] = stamp
                        gain -= p.weight[term]
                else:
                    s.seen[term] = max(s.seen[term], stamp) + 1
                    if s.seen[term] == stamp + s.missing[term, 0] and _true(p, s, term):
                        gain += p.weight[term]
    _exchange(p, s, noise, c)
    return gain


@_compiled
def _begin(p: Any, s: Any, noise: Any, warm: Any, number: Any, row: Any) -> None:
    """Write the record of this start into the state."""
    pad = 0 if p.plain else 1
    if len(warm) and number != 1 and number % 2 == 0:
        guess = row if number == 0 else _below(s.stream, len(warm))
        for a in range(len(s.at)):
            s.at[a] = p.start[a] + warm[guess, a]
    elif number == (1 if len(warm) else 0):
        for a in range(len(s.at)):
            s.at[a] = p.start[a]
            for q in range(p.start[a], p.start[a + 1]):
                if noise[q] > noise[s.at[a]]:
                    s.at[a] = q
    else:
        for a in range(len(s.at)):
            s.at[a] = p.start[a] + _below(s.stream, p.start[a + 1] - p.start[a] - pad)


@_inlined
def _keep(p: Any, s: Any, record: Any) -> None:
    for a in range(len(s.at)):
        record[a] = s.at[a] - p.start[a]


@_compiled
def _search(
    p: Any, s: Any, noises: Any, warm: Any, begin: Any, schedule: Any, result: Any, worths: Any
) -> None:
    blocks = schedule.blocks if len(p.positive) else 0
    stamp = 0
    for j in range(len(noises)):
        noise = noises[j]
        s.stream[0] = _mixed(schedule.seed + np.uint64(begin + j) * _GOLDEN)
        top = -np.inf
        for number in range(schedule.starts):
            _begin(p, s, noise, warm, number, begin + j)
            worth = _load(p, s, noise) + _ascend(p, s, noise, schedule.sweeps)
            if worth > top:
                top = worth
                _keep(p, s, result[j])
            for _ in range(blocks):
                c = p.positive[_below(s.stream, len(p.positive))]
                # One missing literal is a move of one attribute: the ascent has tried it.
                if s.missing[c, 0] < 2:
                    continue
                if _aim(p, s, noise, c) + schedule.margin <= _ENOUGH:
                    continue
                stamp += len(s.target) + 1
                if _promise(p, s, noise, c, stamp) <= _ENOUGH:
                    continue
                for slot in range(p.length[c]):
                    if s.target[slot] >= 0:
                        worth += _move(p, s, noise, p.literals[c, slot, _COLUMN], s.target[slot])
                worth += _ascend(p, s, noise, 1)
            worth += _ascend(p, s, noise, schedule.sweeps)
            if worth > top:
                top = worth
                _keep(p, s, result[j])
        worths[j] = top


def search(
    p: Problem, noise: Floats, warm: Whole, begin: int, schedule: Schedule
) -> tuple[Whole, Floats]:
    """For every row of `noise` the best codes of atoms, and what they are worth without the constant.

    Row j belongs to warm[begin + j].
    """
    attributes = len(p.start) - 1
    if not p.plain:
        ends = p.start[1:] - np.arange(1, attributes + 1)
        noise = np.insert(noise, ends, -np.inf, axis=1)
    result, worths = np.empty((len(noise), attributes), np.int64), np.empty(len(noise))
    noise, warm = np.ascontiguousarray(noise), np.ascontiguousarray(warm)
    _search(p, State.of(p), noise, warm, begin, schedule, result, worths)
    return result, worths

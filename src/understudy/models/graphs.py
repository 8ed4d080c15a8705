"""Graphs from released numbers: noisy degrees, and noisy counts of edges between blocks and classes.

Degrees are read as Hay, Li, Miklau and Jensen (2009) do: the noise of a sorted sequence is undone by
the nearest non-decreasing sequence (isotonic regression), which averages over all nodes of nearly the
same degree; where k distinct degrees stand for n nodes its squared error falls from n·σ² to about
k·log³n·σ². Edges between blocks are put on the simplex and then scaled (iterative proportional fitting)
until both measurements agree on the ends that a block has.

The graph is drawn from the degree-corrected block model with these numbers fixed ("microcanonical",
Peixoto 2017): ends are matched at random, then loops and repetitions are swapped away, within a pair of
blocks as long as that goes. Whether nodes of many edges link to each other is in the counts between
classes of degrees, towards which further swaps lead. Clustering is what all this brings along, unless
the number of triangles is known too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Rng, Whole
from understudy.models.measured import simplex

Reals = Floats

_SCALINGS = 200
_TRIES = 100
_CLASSES = 4
_SWAPS, _LEAST_SWAPS, _MOST_SWAPS = 20, 100_000, 10**6
"""For every edge; a graph of few has them soon, one of very many is not walked through."""


def counted(
    rows: float,
    rows_sigma: float,
    degrees: NDArray[Any],
    degree_sigma: float,
    pairs: NDArray[Any] | None,
    pair_sigma: float,
) -> int:
    """The number of edges from all that was measured of it, each weighted by its precision.

    Half the sum of the degrees and the sum of edges between blocks say it as well as a count of rows
    (deviation 0: it is public).
    """
    if rows_sigma == 0:
        return round(rows)
    found = [(rows, rows_sigma**2), (degrees.sum() / 2, degrees.size * degree_sigma**2 / 4)]
    if pairs is not None:
        upper = pairs[np.triu_indices(len(pairs))]
        found.append((upper.sum(), upper.size * pair_sigma**2))
    values, variances = (np.array(each, float) for each in zip(*found, strict=True))
    return max(1, round(float(np.average(values, weights=1 / variances))))


def fitted(
    degrees: NDArray[Any],
    degree_sigma: float,
    pairs: NDArray[Any],
    pair_sigma: float,
    sizes: Sequence[int],
    edges: int,
    rng: Rng,
    named: NDArray[Any] | None = None,
) -> tuple[Whole, Whole]:
    """(degree of every node; edges between blocks, upper triangle).

    `degrees` are noisy and were sorted within blocks before the noise came, so who has which is lost.
    `named`, every node's own noisy degree, says it again, by rank; without, it is left to chance. The
    results agree: the degrees of a block sum to its ends, all of them to 2·`edges`.
    """
    from scipy.optimize import isotonic_regression

    count, members = len(sizes), np.split(np.asarray(degrees, float), np.cumsum(sizes)[:-1])
    level = [np.asarray(isotonic_regression(part).x) for part in members]
    caps = _caps(sizes)
    edges = min(edges, int(caps.sum()))
    upper = np.triu_indices(count)
    between = np.zeros((count, count))
    between[upper] = simplex(np.asarray(pairs, float)[upper], edges) * edges
    seen = between + between.T  # the diagonal doubled: both ends of its edges lie there
    by_pairs, by_degrees = seen.sum(axis=1), np.array([part.sum() for part in level])
    noise_pairs = (count + 3) * pair_sigma**2
    noise_degrees = np.asarray(sizes) * degree_sigma**2
    share = noise_pairs / (noise_pairs + noise_degrees)
    wanted = simplex(by_pairs + share * (by_degrees - by_pairs), 2 * edges) * 2 * edges
    for _ in range(_SCALINGS):
        factor = np.sqrt(wanted / np.maximum(seen.sum(axis=1), 1e-12))
        seen *= factor[:, None] * factor[None, :]
    between = np.triu(seen)
    between[np.diag_indices(count)] /= 2
    whole = np.zeros((count, count), np.int64)
    whole[upper] = _whole(_capped(between[upper], caps[upper], edges), edges, rng)
    ends = whole.sum(axis=0) + whole.sum(axis=1)
    most = float(sum(sizes) - 1)
    found = [
        _whole(_capped(simplex(part, total) * total, np.full(len(part), most), total), total, rng)
        for part, total in zip(level, ends.tolist(), strict=True)
    ]
    if named is None:
        return np.concatenate([rng.permutation(part) for part in found]), whole
    given = np.split(np.asarray(named, float), np.cumsum(sizes)[:-1])
    for part, own in zip(found, given, strict=True):
        part[np.lexsort((rng.random(len(part)), own))] = np.sort(part)
    return np.concatenate(found), whole


def classes(degrees: NDArray[Any], count: int = _CLASSES) -> Whole:
    """The class of every node, from few edges to many; each holds about as many ends.

    Cut by released degrees, never by exact ones: an edge more would move a node to another class and
    all its edges with it.
    """
    order = np.argsort(degrees, kind="stable")
    ends = np.asarray(degrees, float)[order]
    middle = np.cumsum(ends) - ends / 2
    cut = np.minimum(count * middle / max(float(ends.sum()), 1e-300), count - 1).astype(np.int64)
    cut = np.maximum.accumulate(
        np.where(np.diff(ends, prepend=-1) > 0, cut, 0)
    )  # ties stay together
    labels = np.empty(len(ends), np.int64)
    labels[order] = np.unique(cut, return_inverse=True)[1]
    return labels


def mixed(u: Whole, v: Whole, labels: Whole) -> Whole:
    """Edges between classes, upper triangle."""
    found = np.zeros((int(labels.max()) + 1,) * 2, np.int64)
    low, high = np.minimum(labels[u], labels[v]), np.maximum(labels[u], labels[v])
    np.add.at(found, (low, high), 1)
    return found


def rewired(
    u: Whole,
    v: Whole,
    sizes: Sequence[int],
    labels: Whole,
    wanted: NDArray[Any],
    sigma: float,
    rng: Rng,
) -> tuple[Whole, Whole]:
    """The graph after swaps that lead to `wanted` edges between classes (upper triangle).

    Two edges a–b and c–d whose ends a and c are in one block become a–d and c–b, which keeps every
    degree and every count between blocks. A Metropolis walk: among all graphs that such swaps reach,
    each is as likely as `wanted` is under it, given noise of deviation `sigma` on every count.
    """
    ends = np.stack([u, v], axis=1).reshape(-1)
    one, other = _proposals(ends, sizes, rng)
    luck = -np.log(1 - rng.random(len(one))) * 2 * sigma**2
    here, group, linked = ends.tolist(), labels.tolist(), _linked(u, v, sum(sizes))
    off = (mixed(u, v, labels) - np.asarray(wanted, float)).tolist()
    for p, q, chance in zip(one.tolist(), other.tolist(), luck.tolist(), strict=True):
        a, b, c, d = here[p], here[p ^ 1], here[q], here[q ^ 1]
        if group[a] == group[c] or group[b] == group[d]:
            continue
        if a == d or b == c or d in linked[a] or b in linked[c]:
            continue
        moves: Counter[tuple[int, int]] = Counter()
        for x, y, step in ((a, b, -1), (c, d, -1), (a, d, 1), (c, b, 1)):
            i, j = group[x], group[y]
            moves[(i, j) if i <= j else (j, i)] += step
        worse = sum(step * (2 * off[i][j] + step) for (i, j), step in moves.items())
        if worse > chance:
            continue
        for (i, j), step in moves.items():
            off[i][j] += step
        _exchange(linked, a, b, c, d)
        here[p], here[q] = c, a
    return _lower_and_higher(here)


def matched(degrees: Whole, pairs: Whole, sizes: Sequence[int], rng: Rng) -> tuple[Whole, Whole]:
    """The ends (lower, higher) of the edges of a random simple graph with these numbers.

    Always simple. Degrees and edges between blocks are as given, but for what no graph can have: where
    swaps within a pair of blocks find no way, one of the whole graph is taken, then an edge is moved.
    """
    count, starts = len(sizes), np.concatenate([[0], np.cumsum(sizes)])
    ends: list[list[Whole]] = []
    for block in range(count):
        nodes = np.arange(starts[block], starts[block + 1])
        own = rng.permutation(np.repeat(nodes, degrees[nodes]))
        parts = [int(pairs[min(block, o), max(block, o)]) for o in range(count)]
        parts[block] *= 2
        ends.append(np.split(own, np.cumsum(parts)[:-1]))
    left, right, of = [], [], []
    for a in range(count):
        for b in range(a, count):
            size = int(pairs[a, b])
            here = (ends[a][a][:size], ends[a][a][size:]) if a == b else (ends[a][b], ends[b][a])
            left.append(here[0])
            right.append(here[1])
            of.append(np.full(size, a * count + b))
    u, v, group = (np.concatenate(each) for each in (left, right, of))
    return _simple(u, v, group, starts, rng)


def triangles(u: Whole, v: Whole, nodes: int) -> int:
    """How many three nodes are all linked."""
    linked = _linked(u, v, nodes)
    pairs = zip(u.tolist(), v.tolist(), strict=True)
    return sum(len(linked[a] & linked[b]) for a, b in pairs) // 3


def closed(
    u: Whole, v: Whole, sizes: Sequence[int], labels: Whole, wanted: float, sigma: float, rng: Rng
) -> tuple[Whole, Whole]:
    """The graph after swaps that lead to `wanted` triangles, until they are within `sigma` of them.

    Swaps as in `rewired`, of two edges that also have ends in one class, so that degrees and counts
    between blocks and classes all stay. A graph within the noise already stays as it is.
    """
    ends = np.stack([u, v], axis=1).reshape(-1)
    here, group, linked = ends.tolist(), labels.tolist(), _linked(u, v, sum(sizes))
    off = triangles(u, v, len(linked)) - wanted
    one, other = _proposals(ends, sizes, rng)
    for p, q in zip(one.tolist(), other.tolist(), strict=True):
        if abs(off) <= sigma:
            break
        a, b, c, d = here[p], here[p ^ 1], here[q], here[q ^ 1]
        if group[a] != group[c] and group[b] != group[d]:
            continue
        if a in (c, d) or b in (c, d) or d in linked[a] or b in linked[c]:
            continue
        opened = len(linked[a] & linked[b]) + len(linked[c] & linked[d])
        _exchange(linked, a, b, c, d)
        # No triangle has both old edges or both new ones: these share no end.
        more = len(linked[a] & linked[d]) + len(linked[c] & linked[b]) - opened
        if abs(off + more) < abs(off):
            off += more
            here[p], here[q] = c, a
        else:
            _exchange(linked, a, d, c, b)
    return _lower_and_higher(here)


def _linked(u: Whole, v: Whole, nodes: int) -> list[set[int]]:
    """The neighbours of every node."""
    linked: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in zip(u.tolist(), v.tolist(), strict=True):
        linked[a].add(b)
        linked[b].add(a)
    return linked


def _exchange(linked: list[set[int]], a: int, b: int, c: int, d: int) -> None:
    """a–b and c–d become a–d and c–b."""
    for one, other in ((a, b), (c, d)):
        linked[one].remove(other)
        linked[other].remove(one)
    for one, other in ((a, d), (c, b)):
        linked[one].add(other)
        linked[other].add(one)


def _lower_and_higher(ends: list[int]) -> tuple[Whole, Whole]:
    edges = np.array(ends, np.int64).reshape(-1, 2)
    return edges.min(axis=1), edges.max(axis=1)


def _proposals(ends: Whole, sizes: Sequence[int], rng: Rng) -> tuple[Whole, Whole]:
    """Places of two ends in one block, at random, for every step of a walk.

    Swaps exchange ends of one block, so the block at a place stays.
    """
    block = np.repeat(np.arange(len(sizes)), sizes)
    places = np.argsort(block[ends], kind="stable")
    first = np.searchsorted(block[ends][places], np.arange(len(sizes) + 1))
    walk = min(_SWAPS * len(ends) // 2 + _LEAST_SWAPS, _MOST_SWAPS)
    one = rng.integers(0, len(ends), walk)
    own = block[ends[one]]
    room = first[own + 1] - first[own]
    return one, places[first[own] + (rng.random(walk) * room).astype(np.int64)]


def _simple(
    u: Whole, v: Whole, group: Whole, starts: NDArray[Any], rng: Rng
) -> tuple[Whole, Whole]:
    nodes, count = int(starts[-1]), len(starts) - 1
    ends = [(min(a, b), max(a, b)) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    present: set[tuple[int, int]] = set()
    bad: list[int] = []
    for at, edge in enumerate(ends):
        if edge[0] == edge[1] or edge in present:
            bad.append(at)
        else:
            present.add(edge)
    wrong = set(bad)
    alike: dict[int, NDArray[np.intp]] = {}

    def swapped(at: int, other: int, turn: bool) -> bool:
        (a, b), (c, d) = ends[at], ends[other]
        if turn and rng.random() < 0.5:
            c, d = d, c
        first, second = (min(a, d), max(a, d)), (min(c, b), max(c, b))
        if other in wrong or first == second or first[0] == first[1] or second[0] == second[1]:
            return False
        if first in present or second in present:
            return False
        present.remove(ends[other])
        present.update((first, second))
        ends[at], ends[other] = first, second
        return True

    for at in bad:
        key = int(group[at])
        first, second = divmod(key, count)
        if key not in alike:
            alike[key] = np.flatnonzero(group == key)
        near = alike[key][rng.integers(0, len(alike[key]), _TRIES)]
        far = rng.integers(0, len(ends), _TRIES)
        done = any(swapped(at, other, first == second) for other in near.tolist())
        if not done and not any(swapped(at, other, True) for other in far.tolist()):
            ends[at] = _free(present, starts, first, second, nodes, rng)
            present.add(ends[at])
        wrong.discard(at)
    found = np.array(ends, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _free(
    present: set[tuple[int, int]],
    starts: NDArray[Any],
    first: int,
    second: int,
    nodes: int,
    rng: Rng,
) -> tuple[int, int]:
    """A pair that is no edge yet: between two blocks if one is found soon, otherwise anywhere."""
    for tries in range(10**6):
        if tries < _TRIES:
            a = int(rng.integers(starts[first], starts[first + 1]))
            b = int(rng.integers(starts[second], starts[second + 1]))
        else:
            a, b = (int(i) for i in rng.integers(0, nodes, 2))
        if a != b and (min(a, b), max(a, b)) not in present:
            return min(a, b), max(a, b)
    raise AssertionError("a graph has no more edges than pairs")


def _caps(sizes: Sequence[int]) -> Reals:
    """How many edges two blocks can have between them, upper triangle."""
    n = np.asarray(sizes, float)
    most = np.triu(np.outer(n, n))
    most[np.diag_indices(len(n))] = n * (n - 1) / 2
    return most


def _capped(values: Reals, caps: Reals, total: float) -> Reals:
    """Values within caps that keep their total: what is cut off goes to those with room."""
    values = np.minimum(values, caps)
    for _ in range(50):
        lack = total - values.sum()
        room = caps - values
        if lack <= 1e-9 or room.sum() <= 0:
            break
        weight = np.where(room > 0, np.maximum(values, 1e-9), 0)
        values = np.minimum(values + lack * weight / weight.sum(), caps)
    return values


def _whole(values: Reals, total: int, rng: Rng) -> Whole:
    """Whole numbers next to the values, with their total (systematic rounding)."""
    scaled = values * (total / values.sum()) if values.sum() > 0 else values
    whole = np.floor(scaled + 1e-9)
    rest = np.clip(scaled - whole, 0, None)
    left = int(total - whole.sum())
    if left > 0 and rest.sum() > 0:
        marks = np.cumsum(rest) * (left / rest.sum())
        marks[-1] = left
        offset = rng.random()
        steps = np.floor(marks + offset)
        whole += np.diff(steps, prepend=np.floor(offset))
    return whole.astype(np.int64)

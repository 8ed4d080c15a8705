"""Generated tables of many kinds, for constants and forecasts that no real table may choose.

`drawn(kind, key)` is one table of a kind; the key draws its size, its domains and how strongly its
columns hang together. Nothing in them is private. What a constant was chosen on and what judged it are
told apart by the key: the first ten of a kind choose, all others judge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.published.tables import Bench
from understudy.schema import Category, Schema

__all__ = ["KINDS", "drawn"]

Columns = list[tuple[int, NDArray[np.int64]]]
"""The number of values of every column, and its codes."""


def drawn(kind: str, key: int, rows: int | None = None, columns: int | None = None) -> Bench:
    """One table, the same for the same arguments; rows and columns are drawn where not given."""
    rng = np.random.default_rng([list(KINDS).index(kind), key])
    made, least, most, wide = KINDS[kind]
    n = int(np.exp(rng.uniform(np.log(least), np.log(most))))
    d = int(rng.integers(*wide))
    found = made(rows or n, columns or d, rng)
    schema = Schema(
        tuple(Category(f"c{at:03d}", tuple(range(size))) for at, (size, _) in enumerate(found))
    )
    arrays = {f"c{at:03d}": codes for at, (_, codes) in enumerate(found)}
    return Bench.of(f"{kind} {key}", schema, pa.table(arrays))


def classes(n: int, d: int, rng: np.random.Generator) -> Columns:
    """Columns of 2 to 12 values that hang together through hidden classes."""
    return _of_classes(n, rng.integers(2, 13, d), rng, rng.uniform(0.3, 2.0))


def skewed(n: int, d: int, rng: np.random.Generator) -> Columns:
    """The same with laws so steep that many columns are nearly constant."""
    return _of_classes(n, rng.integers(2, 30, d), rng, rng.uniform(2.5, 6.0))


def many_values(n: int, d: int, rng: np.random.Generator) -> Columns:
    """Columns of 10 to 100 values: most cells of a pair hold no row."""
    return _of_classes(n, rng.integers(10, 101, d), rng, rng.uniform(0.5, 1.5))


def determined(n: int, d: int, rng: np.random.Generator) -> Columns:
    """Half of the columns are functions of another, but for one row in a hundred."""
    found = _of_classes(n, rng.integers(4, 40, (d + 1) // 2), rng, rng.uniform(0.5, 2.0))
    while len(found) < d:
        size, codes = found[int(rng.integers((d + 1) // 2))]
        coarse = int(rng.integers(2, size + 1))
        table = rng.integers(0, coarse, size)
        stray = rng.random(n) < rng.choice([0.0, 0.01])
        found.append((coarse, np.where(stray, rng.integers(0, coarse, n), table[codes])))
    return [found[i] for i in rng.permutation(d)]


def copies(n: int, d: int, rng: np.random.Generator) -> Columns:
    """A chain: every column repeats the one before in some share of the rows."""
    size, found = int(rng.integers(3, 40)), Columns()
    for _ in range(d):
        fresh = rng.choice(size, n, p=rng.dirichlet(np.full(size, 0.7)))
        kept = rng.random(n) < rng.uniform(0.2, 0.98)
        found.append((size, np.where(kept, found[-1][1], fresh) if found else fresh))
    return found


def scales(n: int, d: int, rng: np.random.Generator) -> Columns:
    """Ordered columns of 5 to 60 steps: correlated numbers, cut evenly."""
    factors = rng.normal(size=(n, 3))
    found = Columns()
    for size in rng.integers(5, 61, d):
        weights = rng.normal(size=3) * rng.uniform(0.2, 1.5)
        values = factors @ weights + rng.normal(size=n)
        cut = np.clip((values / values.std() + 3) / 6, 0, 0.999)
        found.append((int(size), (cut * size).astype(np.int64)))
    return found


def forms(n: int, d: int, rng: np.random.Generator) -> Columns:
    """Questions and what follows from them: most answers are "not asked" unless another says yes."""
    found = Columns()
    while len(found) < d:
        yes = rng.random(n) < rng.uniform(0.02, 0.6)
        if found:
            size, above = found[int(rng.integers(len(found)))]
            yes &= above == int(rng.integers(size))
        found.append((2, yes.astype(np.int64)))
        for _ in range(int(rng.integers(1, 6))):
            size = int(rng.choice([3, 4, 8, 30, 100]))
            answer = 1 + rng.choice(size - 1, n, p=_steep(size - 1, rng.uniform(0.5, 2)))
            found.append((size, np.where(yes, answer, 0)))
    return found[:d]


def independent(n: int, d: int, rng: np.random.Generator) -> Columns:
    """Nothing hangs together."""
    sizes = rng.integers(2, 20, d)
    return [(int(s), rng.choice(s, n, p=rng.dirichlet(np.ones(s)))) for s in sizes]


KINDS: dict[str, tuple[Callable[..., Columns], int, int, tuple[int, int]]] = {
    "classes": (classes, 5_000, 100_000, (6, 21)),
    "skewed": (skewed, 5_000, 100_000, (6, 31)),
    "many values": (many_values, 5_000, 100_000, (6, 21)),
    "determined": (determined, 5_000, 100_000, (8, 25)),
    "copies": (copies, 5_000, 50_000, (5, 15)),
    "scales": (scales, 5_000, 100_000, (5, 20)),
    "forms": (forms, 5_000, 50_000, (15, 60)),
    "independent": (independent, 5_000, 50_000, (5, 20)),
    "few rows": (classes, 300, 3_000, (4, 12)),
    "wide": (classes, 10_000, 50_000, (60, 100)),
}
"""How a table is made; its fewest and most rows; from and below how many columns."""


def _of_classes(
    n: int, sizes: NDArray[np.int64], rng: np.random.Generator, power: float
) -> Columns:
    """Every column has a steep law; a hidden class of rows has its values in an order of its own."""
    many = int(rng.integers(3, 13))
    hidden, apart = rng.choice(many, n, p=_steep(many, 0.8)), rng.uniform(0.1, 0.7)
    found = Columns()
    for size in sizes.tolist():
        orders = np.array([rng.permutation(size)] * many)
        for own in np.flatnonzero(rng.random(many) < apart):
            orders[own] = rng.permutation(size)
        drawn = rng.choice(size, n, p=_steep(size, power * rng.uniform(0.5, 1.5)))
        found.append((size, orders[hidden, drawn]))
    return found


def _steep(size: int, power: float) -> NDArray[np.float64]:
    weights = np.arange(1, size + 1) ** -power
    return weights / weights.sum()

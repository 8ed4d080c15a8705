"""A generated table with many columns: mixed domains, dependencies of two and of three columns.

Nothing in it is private. Columns follow a random tree: each depends on one of the few before it and on
a hidden group that the table does not show, so that no tree explains it all; one in ten is the parity
of two others with some noise, which no pair of columns shows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.published.tables import Bench
from understudy.errors import InputError
from understudy.schema import Category, Schema

__all__ = ["wide"]

_GROUPS = 5
_NEAR = 6
_PARITY_EVERY = 10
_PARITY_HOLDS = 0.9


def wide(rows: int = 100_000, columns: int = 100, key: int = 2026) -> Bench:
    """The table, the same for the same arguments.

    Raises:
        InputError: Fewer than one row or than two columns.
    """
    if rows < 1 or columns < 2:
        raise InputError(f"a wide table needs a row and two columns, not {rows} and {columns}")
    rng = np.random.default_rng(key)
    shape = _sizes(columns, rng)
    groups = rng.choice(_GROUPS, size=rows, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    codes: list[NDArray[np.int64]] = []
    for column, size in enumerate(shape):
        if column >= 2 and column % _PARITY_EVERY == _PARITY_EVERY - 1:
            first, second = rng.choice(column, size=2, replace=False)
            parity = (codes[first] + codes[second]) % 2
            kept = rng.random(rows) < _PARITY_HOLDS
            codes.append(np.where(kept, parity, 1 - parity))
        else:
            parent = int(rng.integers(max(0, column - _NEAR), column)) if column else None
            above = codes[parent] if parent is not None else np.zeros(rows, np.int64)
            values = shape[parent] if parent is not None else 1
            codes.append(_drawn(groups * values + above, _GROUPS * values, size, rng))
    names = [f"c{column:03d}" for column in range(columns)]
    schema = Schema(
        tuple(Category(name, tuple(range(s))) for name, s in zip(names, shape, strict=True))
    )
    return Bench.of("WIDE", schema, pa.table(dict(zip(names, codes, strict=True))))


def _sizes(columns: int, rng: np.random.Generator) -> list[int]:
    """Three in ten binary, four small, the rest up to fifty; parities are binary."""
    sizes = np.concatenate([
        np.full(3 * columns // 10, 2),
        rng.integers(3, 10, size=4 * columns // 10),
        rng.integers(10, 31, size=columns // 4),
    ])  # fmt: skip
    drawn = np.concatenate([sizes, np.full(columns - sizes.size, 50)])
    shape = rng.permutation(drawn).tolist()
    return [
        2 if at >= 2 and at % _PARITY_EVERY == _PARITY_EVERY - 1 else int(size)
        for at, size in enumerate(shape)
    ]


def _drawn(
    given: NDArray[np.int64], contexts: int, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """One value a row, from a law of its own for each context; laws share a common base."""
    base = rng.dirichlet(np.ones(size))
    laws = rng.dirichlet(0.3 + 2.0 * base, size=contexts)
    ends = np.cumsum(0.5 * laws + 0.5 * base, axis=1)
    ends /= ends[:, -1:]
    return (rng.random(given.size)[:, None] > ends[given]).sum(axis=1)

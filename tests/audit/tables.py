"""A tiny table, and pipelines on it: right ones, and ones that leak."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.audit.releases import Planted, Releasing, Seen, outliers
from understudy.queries import count
from understudy.schema import Integer, Schema

SHAPE, ORDERED, CLIQUES = (9, 9, 9), (True, True, True), ((0, 1), (0, 2), (1, 2))
SCHEMA = Schema((Integer("a", 0, 8), Integer("b", 0, 8), Integer("c", 0, 8)))


def background(rows: int = 40) -> np.ndarray:
    """Rows of two neighbouring corners of the domain."""
    rng = np.random.default_rng(0)
    return np.column_stack(
        [np.zeros(rows, int), rng.integers(0, 2, rows), rng.integers(0, 2, rows)]
    )


def worst_error(table: np.ndarray, rows: np.ndarray) -> float:
    """The exact worst cell error over the pairs: what a certificate may only show with noise."""
    share, found = len(table) / len(rows), []
    for clique in CLIQUES:
        true, drawn = (count(list(each.T), SHAPE, clique) for each in (table, rows))
        found.append(float(np.abs(true - share * drawn).max()))
    return max(found)


@dataclass(frozen=True)
class Histogram:
    """All cells with Laplace noise at 0.9ε, rows drawn from them, a certificate at 0.1ε.

    Seeded, and so for tests alone. Adding a row moves one cell by 1, and the worst error by at most 1.
    """

    epsilon: float
    rng: Any
    leak: str = ""

    def describe(self) -> dict[str, Any]:
        return {"histogram": self.epsilon, "leak": self.leak}

    def __call__(self, table: np.ndarray) -> Seen:
        cells = count(list(table.T), SHAPE, (0, 1, 2)) + self.rng.laplace(
            0, 1 / (0.9 * self.epsilon), SHAPE
        )
        chances = np.maximum(cells, 1e-9).ravel()
        drawn = self.rng.choice(chances.size, 40, p=chances / chances.sum())
        rows = np.column_stack(np.unravel_index(drawn, SHAPE))
        if self.leak == "row":
            apart = (table[:, None, :] != table[None, :, :]).sum(axis=2).sum(axis=1)
            rows = np.vstack([rows, table[[apart.argmax()]]])
        worst = worst_error(table, rows)
        if self.leak != "certificate":
            worst += self.rng.laplace(0, 1 / (0.1 * self.epsilon))
        return Seen(rows, None, np.array([worst]), worst)


@dataclass(frozen=True, eq=False)
class Leaking:
    """A real release, and beside it something that nothing was charged for."""

    inner: Releasing
    leak: str

    def describe(self) -> dict[str, Any]:
        return {**self.inner.describe(), "leak": self.leak}

    def __call__(self, table: np.ndarray) -> Seen:
        seen = self.inner(table)
        if self.leak == "certificate":
            return Seen(seen.rows, seen.model, seen.sides, worst_error(table, seen.rows))
        lonely = (table[:, None, :] != table[None, :, :]).sum(axis=2).sum(axis=1).argmax()
        return Seen(np.vstack([seen.rows, table[[lonely]]]), seen.model, seen.sides, seen.worst)


def planted(pipeline: Any, canaries: int, key: int = 1) -> Planted:
    """Outliers in the tiny table; a single canary is one more of its commonest record instead."""
    known = background()
    chosen = outliers(known, SHAPE, ORDERED, canaries, key) if canaries > 1 else common(known)
    return Planted(pipeline, SHAPE, ORDERED, CLIQUES, known, chosen, None, key)


def common(known: np.ndarray) -> np.ndarray:
    """The commonest record, where an exact error of the worst cell shows one row more."""
    records, times = np.unique(known, axis=0, return_counts=True)
    return records[[times.argmax()]]


def lonely(pipeline: Any, key: int = 1) -> Planted:
    """One outlier."""
    known = background()
    chosen = outliers(known, SHAPE, ORDERED, 1, key)
    return Planted(pipeline, SHAPE, ORDERED, CLIQUES, known, chosen, None, key)

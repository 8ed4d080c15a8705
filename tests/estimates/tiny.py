"""A tiny table with a known distribution, its noisy tables, and models of it."""

from itertools import combinations

import numpy as np

from understudy.estimates import Known
from understudy.models import Measured, Weighted
from understudy.schema import Boolean, Category, Integer, Schema

SCHEMA = Schema((Category("a", ("p", "q", "r")), Boolean("b"), Integer("x", 0, 9, bins=5)))
SHAPE = SCHEMA.shape
A, B, X = 0, 1, 2
ALL = tuple(np.indices(SHAPE).reshape(3, -1))


def truth() -> np.ndarray:
    """Shares over all cells: pairs depend on each other, triples follow from pairs."""
    a, b, x = np.indices(SHAPE)
    power = (
        0.5 * (a == 1) - 0.4 * b - 0.15 * x + 0.4 * b * (a == 2) + 0.2 * x * b + 0.1 * x * (a == 0)
    )
    shares = np.exp(power)
    return shares / shares.sum()


def model(shares: np.ndarray) -> Weighted:
    """A model with these shares."""
    return Weighted(SHAPE, ALL, shares.reshape(-1).astype(np.float32))


def counted(
    counts: np.ndarray, sigma: float, rng: np.random.Generator, most: int = 2
) -> list[Measured]:
    """Every noisy table of one to `most` columns."""
    tables = []
    for many in range(1, most + 1):
        for clique in combinations(range(3), many):
            exact = counts.sum(axis=tuple(i for i in range(3) if i not in clique))
            tables.append(Measured(clique, exact + rng.normal(0, sigma, exact.shape), sigma))
    return tables


def known(shares: np.ndarray, tables: list[Measured], rows: float = 2000, **more) -> Known:
    """What a release with this model and these tables would tell."""
    return Known(SCHEMA, model(shares), tables, rows, **more)

"""A test of independence of two columns on a noisy table of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.estimates.reduced import reduced
from understudy.models import Measured

__all__ = ["Independence", "independence"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Independence:
    """A test of independence: χ² with its degrees of freedom and the chance of as much by noise.

    It counts the noise of the release and the sampling of the rows. `tested` is False where no released
    table holds both columns; then there is no p-value.
    """

    columns: tuple[str, str]
    statistic: float | None
    freedom: int | None
    p: float | None

    @property
    def tested(self) -> bool:
        """Whether a released table holds both columns."""
        return self.p is not None

    def __str__(self) -> str:
        pair = " and ".join(self.columns)
        if self.statistic is None or self.p is None:
            return f"{pair}: not tested (no released table holds both columns)"
        p = "< 0.0001" if self.p < 1e-4 else f"= {self.p:.4f}"
        return f"{pair}: χ²({self.freedom}) = {self.statistic:.1f}, p {p}"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"columns": list(self.columns), "statistic": self.statistic,
                "freedom": self.freedom, "p": self.p, "tested": self.tested}  # fmt: skip


def independence(
    tables: Sequence[Measured],
    pair: tuple[int, int],
    shape: tuple[int, ...],
    rows: float,
    margins: tuple[Floats, Floats],
    names: tuple[str, str],
) -> Independence:
    """Whether two columns are independent in the population that the rows were drawn from.

    With margins p, q and U = (I − p1ᵀ)·y·(I − 1qᵀ), Uᵀ V⁺ U is χ² of (r − 1)(c − 1) degrees, where
    V = σ²·LLᵀ ⊗ MMᵀ + n·(D_p − ppᵀ) ⊗ (D_q − qqᵀ). The most precise table of both columns is used,
    as it was counted: with values that were counted together, these are tested together.
    """
    low, high = sorted(pair)
    held = [t for t in reduced(tables, (low, high), shape) if t.clique == (low, high)]
    held = [t for t in held if min(t.values.shape) > 1]
    if not held:
        return Independence(names, None, None, None)
    best = max(held, key=lambda t: (t.values.size - 1) / (1 + t.values.size * t.sigma / rows))
    ordered = margins if pair == (low, high) else margins[::-1]
    p, q = (
        np.bincount(labels, each, size)
        for labels, each, size in zip(best.labels, ordered, best.values.shape, strict=True)
    )
    p, q = (np.maximum(each, 1e-12) / np.maximum(each, 1e-12).sum() for each in (p, q))
    statistic, freedom = _statistic(best.values, p, q, best.sigma, rows)
    from scipy.special import gammaincc

    return Independence(names, statistic, freedom, float(gammaincc(freedom / 2, statistic / 2)))


def _statistic(values: Floats, p: Floats, q: Floats, sigma: float, rows: float) -> tuple[float, int]:
    left = np.eye(len(p)) - np.outer(p, np.ones(len(p)))
    right = np.eye(len(q)) - np.outer(q, np.ones(len(q)))
    excess = left @ values @ right.T
    # One column of each factor is redundant: dropping the last row and column keeps the statistic and
    # makes V regular. In the eigenbasis of each factor's pair of forms, V is diagonal.
    scaled = [
        _diagonal((own @ own.T)[:-1, :-1], (np.diag(m) - np.outer(m, m))[:-1, :-1])
        for own, m in ((left, p), (right, q))
    ]
    (a, u), (b, v) = scaled
    turned = u.T @ excess[:-1, :-1] @ v
    variance = sigma**2 + rows * np.outer(a, b)
    return float(np.sum(turned**2 / variance)), (len(p) - 1) * (len(q) - 1)


def _diagonal(noise: Floats, sampling: Floats) -> tuple[Floats, Floats]:
    """(d, u) with uᵀ·noise·u = I and uᵀ·sampling·u = diag(d)."""
    root = np.linalg.inv(np.linalg.cholesky(noise))
    values, vectors = np.linalg.eigh(root @ sampling @ root.T)
    return np.maximum(values, 0.0), root.T @ vectors

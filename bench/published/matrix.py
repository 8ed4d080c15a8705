"""The matrix mechanism's line: how wrong HDMM's answers are expected to be, without measuring a cell.

HDMM answers queries; it makes no rows. Its answers are unbiased with a variance that depends on the
workload and the budget alone (`understudy.game.methods.hdmm`), so the worst error over all cells has a
median that can be computed for any number of cells, be they 10¹¹: the x with

    Π_W P(|N(0, σ_W²)| ≤ x)^{cells of W} = 1/2.

Errors of cells are correlated, which makes the true median smaller; by Šidák's inequality never larger.
Answers outside 0 to 1 stay as they are. The noise is Gaussian, at the (ε, δ) of everything else here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from bench.published.tables import Bench
from understudy.game.methods.hdmm import HDMMMethod
from understudy.queries import cells
from understudy.releases import prepare

__all__ = ["expected_worst"]


class _AnyWidth(HDMMMethod):
    """Nothing is tabulated here, so there is no limit on cells."""

    max_cells = 2**62


_ANY_WIDTH = _AnyWidth(limit=2**62)


def expected_worst(bench: Bench, workload: str, epsilon: str, delta: Any) -> float:
    """The median of the worst error of HDMM's answers, an upper bound of it where they correlate."""
    prepared = prepare(
        bench.schema, epsilon=epsilon, delta=delta, workload=workload, rows_public=bench.rows,
        method=_ANY_WIDTH,
    )  # fmt: skip
    design = prepared.design
    spread = np.array(_ANY_WIDTH.spread(design, prepared.game_plan)) / bench.rows
    sizes = np.array([float(cells(design.shape, clique)) for clique in design.cliques])

    def excess(x: float) -> float:
        inside = np.log1p(-2 * np.exp(log_ndtr(-x / spread)))
        return float(sizes @ inside) - math.log(0.5)

    found: Any = brentq(excess, 1e-9 * spread.max(), 60 * spread.max())
    return float(found)

"""What the papers printed, for comparison.

Vietri, Tian, Bun, Steinke and Wu, "New Oracle-Efficient Algorithms for Private Synthetic Data Release"
(ICML 2020), figure 1: FEM, 64 random marginals, δ = 1/n², mean of five runs. Its parameters were found
by a grid search on the private table that the ε does not pay for.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EPSILONS", "FEM", "FEM_NAME", "HDMM_NAME", "RUNS", "fem"]

EPSILONS: tuple[str, ...] = ("0.1", "0.15", "0.2", "0.25", "0.5", "1")

FEM_NAME = "FEM as published"

HDMM_NAME = "HDMM's answers, expected"

RUNS = 5
"""Of every value below."""

FEM: Mapping[tuple[str, int], tuple[float, ...]] = {
    ("ADULT", 3): (0.172, 0.133, 0.113, 0.106, 0.078, 0.076),
    ("ADULT", 5): (0.154, 0.133, 0.110, 0.108, 0.080, 0.071),
    ("LOANS", 3): (0.254, 0.214, 0.187, 0.164, 0.120, 0.105),
    ("LOANS", 5): (0.235, 0.205, 0.174, 0.155, 0.118, 0.103),
}
"""Worst errors at `EPSILONS`, by table and number of columns of a marginal."""


def fem(table: str, order: int | None) -> dict[str, float]:
    """Worst errors by ε; empty where the paper has none.

    The paper counts 15 attributes of ADULT: its values stand beside 13 columns and beside 15.
    """
    errors = FEM.get((table.removesuffix("-15"), order), ()) if order is not None else ()
    return dict(zip(EPSILONS, errors, strict=False))

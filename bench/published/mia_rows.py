"""Generated rows for attacks: uniform boxes, one per class, and a linear law for regressions.

Micali 2022, chapter 4: "points are drawn uniformly in [a, b]^p (first class) and [c, d]^p (second
class)", tuned by how far the boxes overlap. Here all boxes lie in [−1, 1]^p, which is what the
learners are told, and have half side 1 − `apart`. Two classes have their centres at ∓`apart` in every
coordinate; three have them on a circle of radius `apart` in every pair of coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PANELS", "SOLVERS", "Panel", "Sample", "apart_for", "draw", "truth"]

Floats = NDArray[np.float64]
SOLVERS = ("frank-wolfe", "sgd")


@dataclass(frozen=True, slots=True)
class Panel:
    """One model on one kind of generated rows."""

    name: str
    title: str
    classes: int
    """0 for a regression."""
    features: int
    apart: float
    """How far a box's centre is from 0 in every coordinate, for classes."""
    radius: float
    """Of the L1 ball, public, for all solvers alike."""
    attack: str = "entropy"
    """What the attack in the picture reads; the results have all."""
    weights: tuple[float, ...] = ()
    """Of the first features, for a regression; the others do not matter."""
    steps: tuple[tuple[str, int | None], ...] = ()
    """Of solvers that do not take the thesis's T = Nε; None for the learner's own rule."""


def apart_for(overlap: float, features: int) -> float:
    """The distance at which two boxes share this part of their rows.

    The common box has sides 2 − 4a of 2 − 2a, so that ((1 − 2a)/(1 − a))^p = overlap.
    """
    side = overlap ** (1 / features)
    return (1 - side) / (2 - side)


def _logistic(share: int) -> Panel:
    title = f"logistic, p = 10, overlap {share} %"
    return Panel(f"logistic {share}", title, 2, 10, apart_for(share / 100, 10), 30.0)


_RULE = (("frank-wolfe", None), ("sgd", None))

PANELS = (
    Panel("lasso", "LASSO, p = 10", 0, 10, 0.0, 5.0, "loss", (0.3, 0.3, 0.3)),
    Panel("lasso wide", "LASSO, p = 200", 0, 200, 0.0, 2.0, "loss", (0.8,), _RULE),
    *(_logistic(share) for share in (20, 40, 60)),
    Panel("logistic wide", "logistic, p = 1000", 2, 1_000, 0.05, 10.0, "loss", (), _RULE[1:]),
    Panel(
        "logistic 10000", "logistic, p = 10 000", 2, 10_000, 0.05, 10.0, "loss", (), (("sgd", 20),)
    ),
    Panel("multinomial apart", "3 classes, p = 2, no overlap", 3, 2, 0.6, 30.0),
    Panel("multinomial near", "3 classes, p = 2, some overlap", 3, 2, 0.35, 30.0),
    Panel("multinomial overlap", "3 classes, p = 2, much overlap", 3, 2, 0.15, 30.0),
    Panel("multinomial wide", "3 classes, p = 300", 3, 300, 0.15, 10.0, "loss", (), _RULE[1:]),
)

_NOISE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows in [−1, 1]^p with a number in [−1, 1] or a class each."""

    x: Floats
    y: Floats


def truth(panel: Panel) -> Floats:
    """The weights that a regression's numbers were made with."""
    return np.concatenate([panel.weights, np.zeros(panel.features - len(panel.weights))])


def draw(panel: Panel, rows: int, rng: np.random.Generator) -> Sample:
    """Independent rows; members and others come from this law."""
    x = rng.uniform(-1, 1, size=(rows, panel.features))
    if panel.classes == 0:
        y = x @ truth(panel) + _NOISE * rng.normal(size=rows)
        return Sample(x, np.clip(y, -1, 1))
    y = rng.integers(0, panel.classes, rows)
    return Sample((1 - panel.apart) * x + panel.apart * _centres(panel)[y], y.astype(float))


def _centres(panel: Panel) -> Floats:
    """(classes, p), for `apart` = 1."""
    if panel.classes == 2:
        return np.array([[-1.0], [1.0]]) * np.ones(panel.features)
    turn = 2 * np.pi * np.arange(panel.classes) / panel.classes + np.pi / 2
    return np.tile(np.column_stack([np.cos(turn), np.sin(turn)]), panel.features // 2)

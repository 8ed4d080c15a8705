"""Attack accuracy against ε for private linear models: a thesis's experiments, run again soundly.

Micali 2022, chapter 4, attacked LASSO, logistic and multinomial regression trained by DP-FW and DP-SGD.
Here δ = N^−1.5 whatever ε is, every point is the mean of at least 30 independent trainings with an
interval over trainings, the rank rule runs over N members and N fresh rows, the threshold of the other
rule comes from rows that it does not judge, and beside it stands the ceiling that (ε, δ) leaves to any
attack.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bench.published.keeping import keep
from understudy._version import __version__
from understudy.audit import ceiling, scores
from understudy.audit.roc import best_threshold, mean_interval, rank_rule, threshold_rule
from understudy.errors import InputError

__all__ = [
    "EPSILONS",
    "PANELS",
    "Panel",
    "Point",
    "Results",
    "Training",
    "delta",
    "run",
    "trainings",
]

Floats = NDArray[np.float64]
EPSILONS = (0.3, 1.0, 3.0)
SOLVERS = ("frank-wolfe", "sgd")
LEAST_TRAININGS = 30


@dataclass(frozen=True, slots=True)
class Panel:
    """One model on one kind of generated rows."""

    name: str
    title: str
    classes: int
    """0 for a regression."""
    rows: int
    features: int
    overlap: float
    """Of two neighbouring classes: twice the share of rows beyond the best boundary."""
    score: str
    """What the attack in the picture reads; the results have all."""
    steps: int = 10


PANELS = (
    Panel("lasso", "LASSO, p = 10", 0, 300, 10, 0.0, "loss"),
    Panel("logistic 20", "logistic, p = 10, overlap 20 %", 2, 300, 10, 0.2, "entropy"),
    Panel("logistic 40", "logistic, p = 10, overlap 40 %", 2, 300, 10, 0.4, "entropy"),
    Panel("logistic 60", "logistic, p = 10, overlap 60 %", 2, 300, 10, 0.6, "entropy"),
    Panel("logistic wide", "logistic, p = 10 000, overlap 20 %", 2, 200, 10_000, 0.2, "entropy", 5),
    Panel("multinomial apart", "3 classes, p = 2, overlap 2 %", 3, 300, 2, 0.02, "entropy"),
    Panel("multinomial overlap", "3 classes, p = 2, overlap 60 %", 3, 300, 2, 0.6, "entropy"),
    Panel("multinomial wide", "3 classes, p = 300, overfitted", 3, 300, 300, 0.6, "loss"),
)


def delta(rows: int) -> float:
    """N^−1.5, whatever ε is."""
    return float(rows) ** -1.5


@dataclass(frozen=True, slots=True)
class Training:
    """One training that is to be done; ε is None for the model without privacy."""

    panel: Panel
    solver: str
    epsilon: float | None
    number: int

    @property
    def key(self) -> tuple[str, str, float | None, int]:
        """What tells runs apart in the results."""
        return self.panel.name, self.solver, self.epsilon, self.number

    def __str__(self) -> str:
        how = "without privacy" if self.epsilon is None else f"{self.solver}, ε = {self.epsilon:g}"
        return f"{self.panel.title}, {how}"


def trainings(panels: Sequence[Panel], epsilons: Sequence[float], count: int) -> Iterator[Training]:
    """Every training, first ones first, so that the picture is whole early."""
    for number in range(count):
        for panel in panels:
            yield Training(panel, "none", None, number)
            for solver in SOLVERS:
                for epsilon in epsilons:
                    yield Training(panel, solver, epsilon, number)


def draw_rows(panel: Panel, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rows in the public box [−1, 1]^p with their labels; members and others come from this law."""
    x = rng.normal(size=(panel.rows, panel.features)) / 3
    if panel.classes == 0:
        weights = np.zeros(panel.features)
        weights[:5] = 0.3
        x = np.clip(x, -1, 1)
        return x, np.clip(x @ weights + 0.1 * rng.normal(size=panel.rows), -1, 1)
    y = rng.integers(0, panel.classes, panel.rows)
    # Two normal classes a distance d apart overlap by 2Φ(−d/2).
    apart = -2 * float(special.ndtri(panel.overlap / 2)) / 3
    if panel.classes == 2:
        x[:, 0] += (y - 0.5) * apart
    else:
        turn = 2 * np.pi * y / panel.classes
        radius = apart / math.sqrt(3)  # the side of the triangle is `apart`
        x[:, 0] += radius * np.cos(turn)
        x[:, 1] += radius * np.sin(turn)
    return np.clip(x, -1, 1), y.astype(float)


def run(training: Training) -> dict[str, Any]:
    """Train on fresh members, score them and as many fresh others."""
    panel = training.panel
    rng = np.random.default_rng([_seed(panel.name), training.number])  # the same rows for every ε
    inside, labels = draw_rows(panel, rng)
    outside, others = draw_rows(panel, rng)
    begun = time.process_time()
    model = _fit(training, inside, labels)
    cpu = time.process_time() - begun
    x, y = np.vstack([inside, outside]), np.concatenate([labels, others])
    members = np.arange(len(y)) < panel.rows
    found: dict[str, Floats] = {}
    if panel.classes == 0:
        found["loss"] = scores.squared_loss(model.predict(x), y)
        quality = float(np.mean(np.square(model.predict(outside) - others)))
    else:
        chances = np.asarray(model.predict_proba(x), dtype=float)
        for name in ("loss", "entropy"):
            found[name] = scores.SCORES[name](chances, y.astype(np.int64))
        quality = float(np.mean(model.predict(outside) == others))
    return {
        "panel": panel.name,
        "solver": training.solver,
        "epsilon": training.epsilon,
        "run": training.number,
        "rows": panel.rows,
        "rank": {name: rank_rule(each, members, rng).accuracy for name, each in found.items()},
        "threshold": {name: _calibrated(each, members) for name, each in found.items()},
        "quality": quality,
        "cpu": cpu,
        "understudy": __version__,
    }


def _calibrated(found: Floats, members: NDArray[np.bool_]) -> float:
    """Accuracy on every second row at the threshold that the other rows give."""
    first = np.arange(len(found)) % 2 == 0
    threshold = best_threshold(found[first], members[first])
    return threshold_rule(found[~first], members[~first], threshold).accuracy


def _fit(training: Training, rows: Floats, labels: Floats) -> Any:
    from understudy import learn

    panel = training.panel
    common: dict[str, Any] = {"bounds": (-1.0, 1.0)}
    if panel.classes:
        common["classes"] = list(range(panel.classes))
    else:
        common["target_bounds"] = (-1.0, 1.0)
    if training.epsilon is None:
        kind = learn.NonPrivateLogisticRegression if panel.classes else learn.NonPrivateLasso
        return kind(**common).fit(rows, labels)
    kind = learn.PrivateLogisticRegression if panel.classes else learn.PrivateLasso
    return kind(
        training.epsilon, solver=training.solver, delta=delta(panel.rows), steps=panel.steps,
        rate=1.0, neighbours="replace", **common,
    ).fit(rows, labels)  # fmt: skip


def _seed(name: str) -> int:
    return int.from_bytes(name.encode(), "big") % (1 << 62)


@dataclass(frozen=True, slots=True)
class Point:
    """All trainings of one point."""

    panel: str
    solver: str
    epsilon: float | None
    trainings: int
    attack: str
    rule: str
    mean: float
    low: float
    high: float
    ceiling: float | None
    """The largest expected accuracy of any attack, whatever it knows; none without privacy."""
    quality: float
    """Accuracy on fresh rows, or mean squared error of a regression."""

    @property
    def within(self) -> bool:
        """Whether the interval is not wholly above the ceiling."""
        return self.ceiling is None or self.low <= self.ceiling


class Results:
    """The trainings in a JSON file; each is on disk soon after it is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[dict[str, Any]] = []
        if path.exists():
            try:
                self.runs = list(json.loads(path.read_text(encoding="utf-8"))["runs"])
                self._done = {_key(one) for one in self.runs}
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{path} does not hold results of this command ({type(error).__name__}); "
                    f"give another --out, or remove it"
                ) from None
        self._done = {_key(one) for one in self.runs}

    def __contains__(self, training: Training) -> bool:
        return training.key in self._done

    def add(self, one: dict[str, Any]) -> None:
        """Keep a run; `save` writes it."""
        self.runs.append(one)
        self._done.add(_key(one))

    def save(self) -> None:
        """Replace the file at once, so that it is never half written."""
        keep(
            self.path,
            {
                "what": "python -m bench mia",
                "delta": "N^-1.5, whatever epsilon is",
                "neighbours": "replace",
                "panels": [asdict(panel) for panel in PANELS],
                "points": [asdict(point) for point in self.points()],
                "runs": self.runs,
            },
        )

    def points(self) -> list[Point]:
        """Trainings put together, for every attack and both"""
        together: dict[tuple[str, str, float | None], list[dict[str, Any]]] = {}
        for one in self.runs:
            together.setdefault((one["panel"], one["solver"], one["epsilon"]), []).append(one)
        return [
            _point(group, attack, rule)
            for group in together.values()
            for attack in group[0]["rank"]
            for rule in ("rank", "threshold")
        ]


def _key(one: dict[str, Any]) -> tuple[str, str, float | None, int]:
    return one["panel"], one["solver"], one["epsilon"], one["run"]


def _point(group: Sequence[dict[str, Any]], attack: str, rule: str) -> Point:
    first = group[0]
    found = mean_interval([one[rule][attack] for one in group])
    epsilon = first["epsilon"]
    finite = math.isfinite(found.low)
    return Point(
        panel=first["panel"],
        solver=first["solver"],
        epsilon=epsilon,
        trainings=len(group),
        attack=attack,
        rule=rule,
        mean=found.mean,
        low=found.low if finite else 0.0,
        high=found.high if finite else 1.0,
        ceiling=None if epsilon is None else ceiling.accuracy(epsilon, delta(first["rows"])),
        quality=sum(one["quality"] for one in group) / len(group),
    )

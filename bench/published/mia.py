"""Attack accuracy against ε for private linear models: a thesis's experiments, run again soundly.

Micali 2022, chapter 4, attacked LASSO, logistic and multinomial regression trained by DP-FW and DP-SGD.
Here δ = N^−1.5 whatever ε is, every point is a mean over independent trainings with an interval over
trainings, the rank rule runs over N members and N fresh rows, thresholds come from rows that they do
not judge, and beside it stands the ceiling that (ε, δ) leaves to any attack. A model is only worth
attacking if it predicts better than a constant, which every point says of itself.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.published import mia_rows
from bench.published.keeping import keep
from bench.published.mia_rows import PANELS, SOLVERS, Panel, Sample
from bench.twins import SMOOTH
from understudy._version import __version__
from understudy.audit import ceiling, scores
from understudy.audit.roc import Interval, mean_interval, rank_rule, roc
from understudy.errors import InputError
from understudy.learn.plans import Facts, rule_for
from understudy.privacy.budget import Budget
from understudy.privacy.losses import Logistic, Softmax, Squared
from understudy.privacy.questions.descent import UNIT
from understudy.privacy.relation import Relation

__all__ = [
    "EPSILONS",
    "LEAST_TRAININGS",
    "RULES",
    "Point",
    "Results",
    "Slope",
    "Training",
    "delta",
    "run",
    "trainings",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
EPSILONS = (0.3, 1.0, 3.0)
RULES = ("rank", "midpoint", "best")
LEAST_TRAININGS = 10


def delta(rows: int) -> float:
    """N^−1.5, whatever ε is."""
    return float(rows) ** -1.5


@dataclass(frozen=True, slots=True)
class Training:
    """One training that is to be done; ε is None for the model without privacy."""

    panel: Panel
    rows: int
    solver: str
    epsilon: float | None
    number: int

    @property
    def key(self) -> tuple[str, int, str, float | None, int]:
        """What tells runs apart in the results."""
        return self.panel.name, self.rows, self.solver, self.epsilon, self.number

    @property
    def steps(self) -> dict[str, Any]:
        """As settings: T = Nε unless the panel has others; descent sees 2/√T of the rows a step."""
        if self.epsilon is None:
            return {}
        steps = dict(self.panel.steps).get(self.solver, max(1, round(self.rows * self.epsilon)))
        if steps is None:
            return {}
        return {"steps": steps, "rate": min(1.0, 2 / steps**0.5) if self.solver == "sgd" else 1.0}

    def __str__(self) -> str:
        how = "without privacy" if self.epsilon is None else f"{self.solver}, ε = {self.epsilon:g}"
        return f"{self.panel.title}, N = {self.rows}, {how}"


def trainings(
    panels: Sequence[Panel],
    sizes: Sequence[int],
    epsilons: Sequence[float],
    count: int,
    alone: int = 0,
) -> Iterator[Training]:
    """Every training, first ones first, so that the picture is whole early.

    Models without privacy are quick, so there may be more of them, `alone`.
    """
    for number in range(max(count, alone)):
        for rows in sizes:
            for panel in panels:
                yield Training(panel, rows, "none", None, number)
                if number < count:
                    for solver in SOLVERS:
                        for epsilon in epsilons:
                            yield Training(panel, rows, solver, epsilon, number)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Members, as many others, and the model that nothing protects."""

    inside: Sample
    outside: Sample
    alone: Any

    @property
    def everyone(self) -> Sample:
        """Members first."""
        return Sample(
            np.vstack([self.inside.x, self.outside.x]),
            np.concatenate([self.inside.y, self.outside.y]),
        )


@lru_cache(maxsize=1)
def _scene(panel: Panel, rows: int, number: int) -> Scene:
    """The same rows for every solver and ε."""
    from bench import twins

    rng = np.random.default_rng([_seed(panel.name), rows, number])
    inside, outside = mia_rows.draw(panel, rows, rng), mia_rows.draw(panel, rows, rng)
    kind = twins.NonPrivateLogisticRegression if panel.classes else twins.NonPrivateLasso
    return Scene(inside, outside, kind(**_declared(panel)).fit(inside.x, inside.y))


def _declared(panel: Panel) -> dict[str, Any]:
    """What a learner is told of the rows."""
    told: dict[str, Any] = {"bounds": (-1.0, 1.0), "radius": panel.radius}
    if panel.classes:
        return told | {"classes": list(range(panel.classes))}
    return told | {"target_bounds": (-1.0, 1.0)}


def _fit(training: Training, members: Sample) -> Any:
    from understudy import learn

    kind: Any = learn.PrivateLasso
    if training.panel.classes:
        kind = learn.PrivateLogisticRegression
    return kind(
        epsilon=training.epsilon,
        solver=training.solver,
        delta=delta(training.rows),
        neighbours="replace",
        **training.steps,
        **_declared(training.panel),
    ).fit(members.x, members.y)


def run(training: Training) -> dict[str, Any]:
    """Train on fresh members, score them and as many fresh others."""
    panel = training.panel
    scene = _scene(panel, training.rows, training.number)
    begun = time.process_time()
    private = training.epsilon is not None
    model = _fit(training, scene.inside) if private else scene.alone
    cpu = time.process_time() - begun
    everyone, rng = scene.everyone, np.random.default_rng(training.number)
    found = _scores(panel, model, everyone)
    least = _loss(panel, scene.alone, scene)
    start = _start(panel, scene) - least
    members = np.arange(len(everyone.y)) < training.rows
    rules: dict[str, Callable[[Floats], float]] = {
        "rank": lambda each: rank_rule(each, members, rng),
        "midpoint": lambda each: _calibrated(each, members, _midpoint),
        "best": lambda each: _calibrated(each, members, best_threshold),
    }
    return {
        "panel": panel.name,
        "rows": training.rows,
        "solver": training.solver,
        "epsilon": training.epsilon,
        "run": training.number,
        "attacks": {
            rule: {name: judged(each) for name, each in found.items()}
            for rule, judged in rules.items()
        },
        **_quality(panel, model, scene),
        "excess": _loss(panel, model, scene) - least,
        "start": start,
        "bound": _bound(training, model, start) if private else 0.0,
        "distance": float(np.linalg.norm(model.weights_ - scene.alone.weights_)),
        "steps": model.n_iter_ if private else 0,
        "cpu": cpu,
        "understudy": __version__,
    }


def _scores(panel: Panel, model: Any, rows: Sample) -> dict[str, Floats]:
    if panel.classes == 0:
        return {"loss": scores.squared_loss(model.predict(rows.x), rows.y)}
    chances = np.asarray(model.predict_proba(rows.x), dtype=float)
    labels = rows.y.astype(np.int64)
    return {name: scores.SCORES[name](chances, labels) for name in ("loss", "entropy")}


def _calibrated(found: Floats, members: Bools, rule: Callable[[Floats, Bools], float]) -> float:
    """Accuracy on every second row at the threshold that the other rows give."""
    first = np.arange(len(found)) % 2 == 0
    threshold = rule(found[first], members[first])
    return threshold_rule(found[~first], members[~first], threshold)


def threshold_rule(scores: Floats, members: Bools, threshold: float) -> float:
    """The accuracy of declaring a member whoever scores at least the threshold."""
    return float(((scores >= threshold) == members).mean())


def best_threshold(scores: Floats, members: Bools) -> float:
    """The τ with the largest TPR − FPR on calibration rows; never on the rows to be judged.

    A τ between the true means of members and others would use the answer.
    """
    curve = roc(scores, members)
    levels = np.unique(scores)[::-1]
    best = int(np.argmax(curve.tpr - curve.fpr))
    return float("inf") if best == 0 else float(levels[best - 1])


def _midpoint(found: Floats, members: Bools) -> float:
    """The thesis's τ, between the mean of members and that of others."""
    return float(found[members].mean() + found[~members].mean()) / 2


def _quality(panel: Panel, model: Any, scene: Scene) -> dict[str, float]:
    """Accuracy on fresh rows beside the commonest class; of a regression, the variance explained."""
    others = scene.outside
    if panel.classes == 0:
        constant = float(np.mean(np.square(others.y - scene.inside.y.mean())))
        error = float(np.mean(np.square(model.predict(others.x) - others.y)))
        return {"quality": 1 - error / constant, "constant": 0.0}
    commonest = np.bincount(scene.inside.y.astype(np.int64)).argmax()
    return {
        "quality": float(np.mean(model.predict(others.x) == others.y)),
        "constant": float(np.mean(others.y == commonest)),
    }


def _loss(panel: Panel, model: Any, scene: Scene) -> float:
    """Mean loss of the members: what training minimises."""
    return -float(_scores(panel, model, scene.inside)["loss"].mean())


def _start(panel: Panel, scene: Scene) -> float:
    """The loss of weights 0, where training begins."""
    if panel.classes:
        return math.log(panel.classes)
    return float(np.mean(np.square(scene.inside.y))) / 2


def _bound(training: Training, model: Any, start: float) -> float:
    """What theory promises of E F(w) − F*, from the noise that the plan has; see `learn.solvers`."""
    panel, radius = training.panel, training.panel.radius
    loss = (
        Squared(min(2.0, 1 + radius))
        if panel.classes == 0
        else Logistic()
        if panel.classes == 2
        else Softmax(panel.classes - 1)
    )
    width = panel.features + 1
    budget = Budget.of(training.epsilon or 0.0, delta(training.rows))
    facts = Facts(training.rows, width, loss, radius, Relation.REPLACE, budget)
    rule = rule_for(facts, training.solver, model.n_iter_)
    event = model.plan_.charges[-1].event
    if training.solver == "frank-wolfe":
        return _picks_bound(facts, event.scale, rule.delay, rule.kept, start)
    return _descent_bound(facts, event, model.n_iter_)


def _picks_bound(facts: Facts, scale: float, delay: int, kept: range, start: float) -> float:
    """The mean over the iterates that are averaged of ν + (k(k+1)·h_0 + 2tC)/((t+k)(t+k+1)).

    ν = (2Δ/ε0)·ln K, and 2Δ/ε0 = b·r·L0/N for Gumbel noise of scale b.
    """
    noise = scale / UNIT * facts.radius * facts.loss.bound / facts.rows
    curved = SMOOTH[type(facts.loss)] * (2 * facts.radius) ** 2
    t = np.array(kept, dtype=float) + 1
    falling = (delay * (delay + 1) * start + 2 * t * curved) / ((t + delay) * (t + delay + 1))
    return noise * math.log(2 * facts.coordinates) + float(falling.mean())


def _descent_bound(facts: Facts, event: Any, steps: int) -> float:
    """2·diam·G·(2 + ln T)/√T with G² = C²·(1 + 1/(qN)) + d·σ² (Shamir-Zhang 2013).

    A theorem about the last of plain projected steps with this noise: ours, which adapt, can be held
    beside it and have no such promise.
    """
    seen = event.rate * facts.rows
    clip, sigma = (part * facts.loss.bound / UNIT for part in (event.l2, event.sigma))
    slope = math.sqrt(clip**2 * (1 + 1 / seen) + facts.coordinates * (sigma / seen) ** 2)
    return 2 * (2 * facts.radius) * slope * (2 + math.log(steps)) / math.sqrt(steps)


def _seed(name: str) -> int:
    return int.from_bytes(name.encode(), "big") % (1 << 62)


@dataclass(frozen=True, slots=True)
class Point:
    """All trainings of one point."""

    panel: str
    rows: int
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
    """Accuracy on fresh rows, or the variance explained by a regression."""
    constant: float
    better: int
    """Trainings whose model predicts fresh rows better than the constant."""
    excess: float
    start: float
    """Excess loss of weights 0: a bound above it says nothing."""
    bound: float
    distance: float
    """‖w − w*‖₂, w* without privacy in the same ball."""
    steps: int

    @property
    def attacked(self) -> bool:
        """Whether every model was worth attacking."""
        return self.better == self.trainings

    @property
    def within(self) -> bool:
        """Whether the interval is not wholly above the ceiling."""
        return self.ceiling is None or self.low <= self.ceiling


@dataclass(frozen=True, slots=True)
class Slope:
    """How fast something moves with ln ε, fitted in every training by itself."""

    panel: str
    rows: int
    solver: str
    what: str
    mean: float
    low: float
    high: float


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
                "slopes": [asdict(slope) for slope in self.slopes()],
                "runs": self.runs,
            },
        )

    def points(self) -> list[Point]:
        """Trainings put together, for every attack and rule."""
        return [
            _point(group, attack, rule)
            for group in self._groups("panel", "rows", "solver", "epsilon")
            for rule in RULES
            for attack in group[0]["attacks"][rule]
        ]

    def slopes(self) -> list[Slope]:
        """Log fits: of the attack's accuracy, and of the logarithm of the excess loss."""
        return [
            slope
            for group in self._groups("panel", "rows", "solver")
            if len({one["epsilon"] for one in group}) > 1
            for slope in _slopes(group)
        ]

    def _groups(self, *by: str) -> list[list[dict[str, Any]]]:
        together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for one in self.runs:
            together.setdefault(tuple(one[name] for name in by), []).append(one)
        return list(together.values())


def _key(one: dict[str, Any]) -> tuple[str, int, str, float | None, int]:
    return one["panel"], one["rows"], one["solver"], one["epsilon"], one["run"]


def _point(group: Sequence[dict[str, Any]], attack: str, rule: str) -> Point:
    first = group[0]
    found = _finite(mean_interval([one["attacks"][rule][attack] for one in group]))
    epsilon = first["epsilon"]

    def mean(name: str) -> float:
        return sum(one[name] for one in group) / len(group)

    return Point(
        panel=first["panel"],
        rows=first["rows"],
        solver=first["solver"],
        epsilon=epsilon,
        trainings=len(group),
        attack=attack,
        rule=rule,
        mean=found.mean,
        low=found.low,
        high=found.high,
        ceiling=None if epsilon is None else ceiling.accuracy(epsilon, delta(first["rows"])),
        quality=mean("quality"),
        constant=mean("constant"),
        better=sum(one["quality"] > one["constant"] for one in group),
        excess=mean("excess"),
        start=mean("start"),
        bound=mean("bound"),
        distance=mean("distance"),
        steps=first["steps"],
    )


def _finite(found: Interval) -> Interval:
    """One training has an interval of everything that an accuracy can be."""
    if math.isfinite(found.low):
        return found
    return Interval(found.mean, 0.0, 1.0, found.runs)


def _slopes(group: Sequence[dict[str, Any]]) -> Iterator[Slope]:
    panel = next(each for each in PANELS if each.name == group[0]["panel"])
    read: dict[str, Callable[[dict[str, Any]], float]] = {
        "accuracy": lambda one: one["attacks"]["rank"][panel.attack],
        "ln excess": lambda one: math.log(max(one["excess"], 1e-12)),
    }
    for what, of in read.items():
        fitted = mean_interval([_slope(runs, of) for runs in _by_number(group) if len(runs) > 1])
        if math.isfinite(fitted.low):
            first = group[0]
            yield Slope(
                first["panel"],
                first["rows"],
                first["solver"],
                what,
                fitted.mean,
                fitted.low,
                fitted.high,
            )


def _by_number(group: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    together: dict[int, list[dict[str, Any]]] = {}
    for one in group:
        together.setdefault(one["run"], []).append(one)
    return list(together.values())


def _slope(runs: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float]) -> float:
    logs = np.log([one["epsilon"] for one in runs])
    return float(np.polyfit(logs, [of(one) for one in runs], 1)[0])

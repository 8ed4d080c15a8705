"""Frank-Wolfe's picks: thousands of fits at once, and how many picks a fit should make.

    python -m bench picks

The first table fits one easy problem (3,000 rows, six features, two classes, ε = 2, 40 picks) 20,000
times, with the steps of the textbook and with those that `frank-wolfe` takes, and shows the worst fits.
The second has generated tables of 300 to 100,000 rows: the error with the number of picks that the
public rule chooses, with the best of several numbers in hindsight, and of a constant (the mean of the
rows, or their share of a class, without privacy).

Fits are simulated, many side by side: the same steps as `learn.solvers.frank_wolfe` on floats, with
Gumbel noise of the plan's scale from a seed. A test holds that they are the solver's own on the same
noise. Nothing here is private or speaks of anybody.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.learn.plans import PICK, START, Facts, picks_plan, radius_for, rule_for
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Gaussian, Selection
from understudy.privacy.losses import Logistic, Squared
from understudy.privacy.questions.descent import UNIT
from understudy.privacy.relation import Relation

Reals = NDArray[np.float64]
Table = tuple[Reals, Reals]
FITS, TOGETHER, HELD = 20_000, 250, 20_000


@dataclass(frozen=True, slots=True)
class Way:
    """How fits go: `scale` is the Gumbel noise of a pick, in rows of the largest residual, `level` the
    deviation of the noise on the sum that fits begin with, None where they begin at 0."""

    radius: float
    steps: int
    delay: int
    kept: range
    scale: float
    level: float | None = None


def begun(
    targets: Reals, loss: Logistic | Squared, way: Way, rng: np.random.Generator, fits: int
) -> Reals:
    """(fits,) constants that fits begin at."""
    if way.level is None:
        return np.zeros(fits)
    sums = loss.levels(targets).sum() + way.level * rng.normal(size=fits)
    return loss.constant(sums, len(targets))


def simulate(
    features: Reals,
    targets: Reals,
    loss: Logistic | Squared,
    way: Way,
    gumbel: Callable[[tuple[int, int]], Reals],
    start: Reals,
) -> Reals:
    """(width, fits) weights, one fit for each `start`; features scaled, with the constant first."""
    width, fits = features.shape[1], start.size
    weights, total = np.zeros((width, fits)), np.zeros((width, fits))
    turned, each = np.ascontiguousarray(features.T), np.arange(fits)
    for t in range(way.steps):
        residuals = loss.residuals(features @ weights + start, targets) / loss.bound
        falls = -(turned @ residuals)
        noisy = np.concatenate([falls, -falls]) + way.scale * gumbel((2 * width, fits))
        side, feature = np.divmod(noisy.argmax(axis=0), width)
        step = 2 / (t + 2 + way.delay)
        weights *= 1 - step
        weights[feature, each] += step * way.radius * (1 - 2 * side)
        if t in way.kept:
            total += weights
    found = total / len(way.kept)
    found[0] += start
    return found


def way_for(
    n: int,
    width: int,
    loss: Logistic | Squared,
    epsilon: float,
    steps: int | None = None,
    start: float | None = None,
) -> Way:
    """The public rules of `frank-wolfe`, as the estimators ask for them; add-remove, δ = 1/n²."""
    radius = radius_for("frank-wolfe", None, classes=isinstance(loss, Logistic))
    budget = Budget.of(epsilon, Fraction(1, n * n))
    facts = Facts(n, width, loss, radius, Relation.ADD_REMOVE, budget)
    rule = rule_for(facts, "frank-wolfe", steps, start=start)
    plan = picks_plan(facts, rule.steps, start=rule.start)
    level = plan.event(START, Gaussian).sigma if START in plan else None
    scale = plan.event(PICK, Selection).scale / UNIT
    return Way(radius, rule.steps, rule.delay, rule.kept, scale, level)


def with_constant(features: Reals) -> Reals:
    """A 1 before every row."""
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


# --- the worst of many fits ---------------------------------------------------------------------------


def easy(n: int = 3_000) -> Table:
    """Six features, two classes: scores with weights of 4 and Gumbel noise of 1."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (n, 6))
    scores = features @ rng.normal(0, 4, (6, 2)) + rng.gumbel(size=(n, 2))
    return with_constant(features), scores.argmax(axis=1).astype(float)


def accuracies(features: Reals, targets: Reals, way: Way, fits: int, seed: int) -> Reals:
    """How often each fit names the class of its own rows."""
    rng = np.random.default_rng(seed)
    found: list[Reals] = []
    for start in range(0, fits, TOGETHER):
        count = min(TOGETHER, fits - start)
        start = begun(targets, Logistic(), way, rng, count)
        weights = simulate(features, targets, Logistic(), way, lambda s: rng.gumbel(size=s), start)
        right = (features @ weights > 0) == (targets[:, None] > 0.5)
        found.append(right.mean(axis=0))
    return np.concatenate(found)


def worst_fits(fits: int = FITS) -> None:
    """Print the worst fits of the easy problem."""
    features, targets = easy()
    constant = max(targets.mean(), 1 - targets.mean())
    ours = way_for(len(targets), features.shape[1], Logistic(), 2, 40)
    last = range(39, 40)
    ways = {
        "textbook: radius 30, first step 1, the last iterate": replace(
            way_for(len(targets), features.shape[1], Logistic(), 2, 40, 0.0),
            radius=30.0,
            delay=0,
            kept=last,
        ),
        "`frank-wolfe`": ours,
    }
    print(f"{fits:,} fits; a constant has {constant:.3f}\n")
    print("| steps | least | 0.1 % | 1 % | median | below .80 | no better than a constant |")
    print("|---|---|---|---|---|---|---|")
    for name, way in ways.items():
        found = accuracies(features, targets, way, fits, 1)
        shown = [found.min(), *np.quantile(found, [0.001, 0.01, 0.5])]
        poor, useless = int((found < 0.8).sum()), int((found <= constant).sum())
        print(f"| {name} | {' | '.join(f'{v:.3f}' for v in shown)} | {poor} | {useless} |")


# --- how many picks -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """A law of rows: features (in [−1, 1]) and weights; `noise` and `shift` are of the score."""

    name: str
    loss: Logistic | Squared
    features: int
    matter: int
    weight: float
    shift: float
    noise: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> Table:
        """n rows, with the constant first."""
        squares = isinstance(self.loss, Squared)
        rows = rng.normal(0, 1 / 3, (n, self.features)) if squares else None
        rows = rng.uniform(-1, 1, (n, self.features)) if rows is None else np.clip(rows, -1, 1)
        signs = np.where(np.arange(self.matter) % 2, -self.weight, self.weight)
        scores = rows[:, : self.matter] @ signs + self.shift
        if squares:
            return with_constant(rows), np.clip(scores + rng.normal(0, self.noise, n), -1, 1)
        return with_constant(rows), (scores + rng.logistic(size=n) > 0).astype(float)


KINDS = (
    Kind("LASSO, 10 features", Squared(2.0), 10, 5, 0.3, 0.0, 0.1),
    Kind("LASSO, 10 features, mean ½", Squared(2.0), 10, 5, 0.25, 0.5, 0.1),
    Kind("LASSO, 100 features", Squared(2.0), 100, 5, 0.3, 0.1, 0.1),
    Kind("logistic, 6 features", Logistic(), 6, 6, 3.0, 0.0),
    Kind("logistic, 20 features, 1 in 8", Logistic(), 20, 6, 2.0, -4.0),
    Kind("logistic, 300 features", Logistic(), 300, 5, 4.0, 0.0),
)
SIZES, EPSILONS = (300, 1_000, 10_000, 100_000), (1, 4)
MOST_CELLS, MOST_WORK = 3 * 10**6, 10**9
TIMES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)


def error(kind: Kind, weights: Reals, table: Table) -> float:
    """Mean squared error, or logarithmic loss, over other rows and all fits."""
    features, targets = table
    scores = features @ weights
    if isinstance(kind.loss, Squared):
        return float(np.square(np.clip(scores, -1, 1) - targets[:, None]).mean())
    return float((np.logaddexp(0, scores) - targets[:, None] * scores).mean())


def constant(kind: Kind, table: Table, other: Table) -> float:
    """The error of the mean of the rows."""
    mean = table[1].mean()
    level = mean if isinstance(kind.loss, Squared) else math.log(mean / (1 - mean))
    weights = np.zeros((other[0].shape[1], 1))
    weights[0] = level
    return error(kind, weights, other)


def numbers(kind: Kind, n: int, epsilon: float, seed: int) -> Iterator[tuple[int, float]]:
    """(picks, error): by the rule first, then by other numbers."""
    rng = np.random.default_rng(seed)
    table, other = kind.draw(n, rng), kind.draw(HELD, rng)
    width = table[0].shape[1]
    rule = way_for(n, width, kind.loss, epsilon).steps
    yield 0, constant(kind, table, other)
    tried = dict.fromkeys([rule, *(max(1, round(rule * each)) for each in TIMES)])
    for steps in tried:
        work = n * width * steps
        if work > MOST_WORK and steps != rule:
            continue
        way = way_for(n, width, kind.loss, epsilon, steps)
        fits = max(2, min(40, MOST_WORK // work // 8))
        start = begun(table[1], kind.loss, way, rng, fits)
        weights = simulate(*table, kind.loss, way, lambda s: rng.gumbel(size=s), start)
        yield steps, error(kind, weights, other)


def how_many() -> None:
    """Print the rule against hindsight and a constant."""
    print("\n| table | n | ε | picks by rule | error | best of several | error | a constant |")
    print("|---|---|---|---|---|---|---|---|")
    for at, kind in enumerate(KINDS):
        for n in (size for size in SIZES if size * kind.features <= MOST_CELLS):
            for epsilon in EPSILONS:
                runs = [list(numbers(kind, n, epsilon, 100 * at + run)) for run in range(3)]
                errors = np.mean([[e for _, e in run] for run in runs], axis=0)
                picks = [steps for steps, _ in runs[0]]
                best = 1 + int(errors[1:].argmin())
                print(
                    f"| {kind.name} | {n:,} | {epsilon} | {picks[1]} | {errors[1]:.4f} | "
                    f"{picks[best]} | {errors[best]:.4f} | {errors[0]:.4f} |",
                    flush=True,
                )


def main() -> None:
    """Both tables."""
    begun = time.process_time()
    worst_fits()
    print(f"\n{time.process_time() - begun:.0f} CPU seconds", flush=True)
    how_many()
    print(f"\n{time.process_time() - begun:.0f} CPU seconds")

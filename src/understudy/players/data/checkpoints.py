"""How checkpoints of a generator are judged: by a task, by clusters, or by their marginals.

A checkpoint stands for the records it makes up, which are released, so what is fitted on them is
public; only the gate holds it against private rows (`privacy.questions.best_models`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Rng, Table
from understudy.models import Empirical
from understudy.players.base import Problem
from understudy.queries import cells

Records = Sequence[NDArray[Any]]
"""One array of codes per column."""

_LARGEST = 20_000  # Cells of a marginal by which checkpoints are judged
_RIDGE = 1.0
_TURNS, _STARTS = 30, 3
_CAP = 0.99  # Costs of rows are cut off at this quantile of the costs of made-up ones


@dataclass(frozen=True, eq=False)
class Candidates:
    """Checkpoints as they are judged: see `privacy.questions.best_models.Models`."""

    scorers: tuple[Callable[[NDArray[Any]], float], ...] | None = None
    sensitivity: float = 1.0
    cliques: tuple[Clique, ...] = ()
    tables: tuple[tuple[Table, ...], ...] = ()
    costs: tuple[tuple[Table, ...], ...] = ()


def by_marginals(problem: Problem, made: Sequence[Records]) -> Candidates:
    """Their marginals of the workload, to be compared by divergence."""
    judged = tuple(c for c in problem.cliques if cells(problem.shape, c) <= _LARGEST)
    judged = judged or problem.columns
    models = [Empirical.of(problem.shape, np.stack(codes, axis=1)) for codes in made]
    tables = tuple(tuple(model.marginals(judged)) for model in models)
    return Candidates(cliques=judged, tables=tables)


# -- a task --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What synthetic rows are for: predict `target` from the other columns.

    `estimator` has scikit-learn's fit(X, y) and predict(X); it is copied for every checkpoint, fitted
    on synthetic rows and judged on held-out private ones. `metric(y_true, y_predicted)` is better the
    higher it is, and `sensitivity` is how far one row moves it: declared, because nothing can check it.
    Without a metric right predictions are counted, of which one row moves one. X holds the features of
    the other columns as the critic sees them, y the codes of the target.
    """

    target: int
    estimator: Any = None
    metric: Callable[[Any, Any], float] | None = None
    sensitivity: float = 1.0


def by_task(task: Task, tables: Sequence[NDArray[Any]], made: Sequence[Records]) -> Candidates:
    """An estimator for each, fitted on its records; `tables` hold the features of every code."""
    return Candidates(tuple(_scorer(tables, task, codes) for codes in made), task.sensitivity)


def _scorer(
    tables: Sequence[NDArray[Any]], task: Task, codes: Records
) -> Callable[[NDArray[Any]], float]:
    """Fit on a checkpoint's records; what comes back is public and judges rows."""

    def features(columns: Records) -> Table:
        parts = [tables[i][c] for i, c in enumerate(columns) if i != task.target]
        return np.concatenate(parts, axis=1).astype(np.float64)

    predictor = least_squares() if task.estimator is None else copy.deepcopy(task.estimator)
    predictor.fit(features(codes), np.asarray(codes[task.target]))

    def score(rows: NDArray[Any]) -> float:
        if not len(rows):
            return 0.0
        truth = rows[:, task.target]
        guessed = predictor.predict(features([rows[:, i] for i in range(rows.shape[1])]))
        if task.metric is not None:
            return float(task.metric(truth, guessed))
        return float((np.asarray(guessed) == truth).sum())

    return score


class least_squares:  # noqa: N801 - an estimator, made by calling it
    """Ridge regression on indicators of the classes: quick, and the same every time."""

    def fit(self, features: Table, target: NDArray[Any]) -> Any:
        """One linear function per class."""
        self.classes = np.unique(target)
        wide = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        hot = (np.asarray(target)[:, None] == self.classes).astype(np.float64)
        gram = wide.T @ wide + _RIDGE * np.eye(wide.shape[1])
        self.weights = np.linalg.solve(gram, wide.T @ hot)
        return self

    def predict(self, features: Table) -> NDArray[Any]:
        """The class with the largest function."""
        wide = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        return self.classes[np.argmax(wide @ self.weights, axis=1)]


# -- clusters ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clusters:
    """k-means on rows inside a public box, in which no two are further apart than √d for d columns.

    A category of `ordered` = False is its indicator over √2; a number or a date its code from 0 to 1,
    and, where its last `apart` codes are beside the order, that and which of them it is, all over √2.
    So the squares of a column's distances are at most 1.
    """

    shape: tuple[int, ...]
    ordered: tuple[bool, ...]
    apart: tuple[int, ...]
    centres: int = 8

    @property
    def tables(self) -> list[Table]:
        """The features of every code, one table per column."""
        columns = zip(self.shape, self.ordered, self.apart, strict=True)
        return [_features(*column) for column in columns]


def _features(size: int, ordered: bool, apart: int) -> Table:
    if not ordered:
        return np.eye(size) / np.sqrt(2)
    values = max(1, size - apart)
    scaled = np.arange(values) / max(1, values - 1)
    if not apart:
        return scaled[:, None]
    both = np.zeros((values + apart, 1 + apart))
    both[:values, 0] = scaled
    both[values:, 1:] = np.eye(apart)
    return both / np.sqrt(2)


def by_clusters(clusters: Clusters, made: Sequence[Records]) -> Candidates:
    """The squared distance of every value to every centre that a checkpoint's records have.

    The cost of a row is the least sum over columns, at most d, and cut off where 99 % of the made-up
    rows cost less, so that a row moves the total by `sensitivity` at most.
    """
    tables = clusters.tables
    widths = np.cumsum([table.shape[1] for table in tables])[:-1]
    costs: list[tuple[Table, ...]] = []
    cap = 0.0
    for codes in made:
        rows = np.concatenate([t[c] for t, c in zip(tables, codes, strict=True)], axis=1)
        centres = np.split(k_means(rows, clusters.centres), widths, axis=1)
        pairs = zip(tables, centres, strict=True)
        each = tuple(((t[:, None, :] - c[None, :, :]) ** 2).sum(axis=2) for t, c in pairs)
        own = sum(table[c] for table, c in zip(each, codes, strict=True))
        cap = max(cap, float(np.quantile(np.min(own, axis=1), _CAP)))
        costs.append(each)
    return Candidates(sensitivity=min(max(cap, 1e-9), float(len(tables))), costs=tuple(costs))


def k_means(rows: Table, k: int, key: int = 0) -> Table:
    """Centres by Lloyd's steps, the best of three k-means++ starts (Arthur, Vassilvitskii 2007)."""
    rng = np.random.default_rng(key)
    found = [_lloyd(rows, _spread(rows, k, rng)) for _ in range(_STARTS)]
    return min(found, key=lambda each: each[0])[1]


def _spread(rows: Table, k: int, rng: Rng) -> Table:
    """Rows that are far from each other: each drawn by its squared distance to those before."""
    chosen = [rows[rng.integers(len(rows))]]
    nearest = np.full(len(rows), np.inf)
    for _ in range(k - 1):
        nearest = np.minimum(nearest, ((rows - chosen[-1]) ** 2).sum(axis=1))
        total = nearest.sum()
        weights = nearest / total if total > 0 else None
        chosen.append(rows[rng.choice(len(rows), p=weights)])
    return np.stack(chosen)


def _lloyd(rows: Table, centres: Table) -> tuple[float, Table]:
    """(cost, centres); a centre that nobody is nearest to stays where it is."""
    squares, cost = (rows**2).sum(axis=1), np.inf
    for _ in range(_TURNS):
        away = squares[:, None] - 2 * rows @ centres.T + (centres**2).sum(axis=1)
        nearest, before, cost = away.argmin(axis=1), cost, float(away.min(axis=1).sum())
        sizes = np.bincount(nearest, minlength=len(centres))
        sums = (nearest[:, None] == np.arange(len(centres))).T.astype(np.float64) @ rows
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
        if before - cost <= 1e-6 * abs(cost):
            break
    return cost, centres

"""Estimators with few steps, and tables that they can learn."""

import numpy as np

from understudy.learn import PrivateLasso, PrivateLogisticRegression
from understudy.privacy import Ledger

N = 3000
QUICK = {"sgd": {"steps": 60, "rate": 0.25}, "frank-wolfe": {"steps": 40}}
SOLVERS = list(QUICK)


def classes_table(seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, 6))
    scores = X @ rng.normal(0, 4, (6, classes)) + rng.gumbel(size=(N, classes))
    return X, scores.argmax(axis=1)


def numbers_table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (N, 5))
    return X, 3 + X @ np.array([2.0, -1.0, 0, 0, 0.5]) + rng.normal(0, 1, N)


def logistic(epsilon=2, solver="sgd", **settings):
    usual = {"bounds": (-1, 1), "classes": (0, 1), "rows_public": N} | QUICK[solver]
    return PrivateLogisticRegression(epsilon, solver=solver, **(usual | settings))


def lasso(epsilon=2, solver="sgd", **settings):
    usual = {"bounds": (0, 10), "target_bounds": (-10, 40), "rows_public": N} | QUICK[solver]
    return PrivateLasso(epsilon, solver=solver, **(usual | settings))


def spent(path):
    with Ledger(path) as opened:
        return opened.spent("rows")

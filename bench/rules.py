"""The public rules of `fem` on generated tables: worst errors with each constant moved by itself.

No table of anybody is read: four tables of skewed columns that hang together through hidden classes.
The first line is the rule as it is; a rule is good if no other line is much better on the whole.

The rules of `dualquery` and `dqrs` were chosen on the `uneven` tables, of which some columns are nearly
constant: `main("dualquery")` has them as they are, and with rounds and samples moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.published import Bench
from understudy.game.methods import METHODS
from understudy.releases import prepare
from understudy.releases.run import release
from understudy.schema import Integer, Schema

_NARROW = (2, 2, 4, 5, 6, 6, 8, 10, 10, 12, 16, 20, 40)
TABLES: Mapping[str, tuple[int, tuple[float, float], tuple[int, ...], float]] = {
    "narrow": (50_000, (0.4, 3.0), _NARROW, 0.5),
    "even": (20_000, (0.2, 1.5), (12,) * 24, 0.5),
    "steep": (30_000, (1.5, 8.0), (100,) * 20 + (5,) * 10, 0.5),
    "wide": (
        40_000,
        (0.4, 6.0),
        (3, 4, 5, 6, 8, 12, 16, 26, 36, 50, 60, 70) + (100,) * 28 + (140,) * 8,
        0.5,
    ),
    "uneven": (50_000, (0.4, 6.0), _NARROW, 0.1),
    "uneven wide": (
        40_000,
        (0.4, 9.0),
        (2, 3, 3, 4, 5, 6, 8, 12, 16, 26, 36, 50, 60, 70) + (100,) * 26 + (140,) * 8,
        0.1,
    ),
    "uneven few": (12_000, (0.4, 5.0), (2,) * 6 + (4,) * 6 + (9,) * 6 + (20,) * 4, 0.1),
}
"""Rows, range of powers of the columns' laws, their sizes, and how often a class has its own order."""
POINTS = (
    ("narrow", 3, "0.1"), ("narrow", 3, "1"), ("narrow", 5, "0.25"), ("even", 5, "0.1"),
    ("even", 3, "1"), ("wide", 3, "0.1"), ("wide", 3, "1"), ("wide", 5, "0.5"),
    ("steep", 3, "0.1"), ("steep", 5, "0.1"), ("steep", 5, "0.5"),
)  # fmt: skip
MOVED: tuple[Mapping[str, Any], ...] = (
    {},
    {"rounds": 0.7},
    {"rounds": 1.4},
    {"step": 0.02},
    {"step": 0.08},
    {"decay": 0.8},
    {"decay": 2.5},
    {"keep": 0.35},
    {"keep": 0.7},
    {"samples": 150},
    {"samples": 600},
)
UNEVEN = (
    ("uneven", 3, "0.1"), ("uneven", 3, "0.5"), ("uneven few", 3, "0.1"), ("uneven wide", 3, "0.1"),
    ("uneven wide", 3, "0.5"), ("uneven wide", 5, "0.1"),
)  # fmt: skip
SIZES: tuple[Mapping[str, Any], ...] = (
    {},
    {"rounds": 0.7},
    {"rounds": 1.4},
    {"samples": 2},
    {"samples": 5},
    {"records": 6},
)
CLASSES = 12


def generated(name: str, key: int = 0) -> Bench:
    """Every column is skewed; which values a hidden class of rows prefers is the class's own."""
    rows, steep, shape, apart = TABLES[name]
    rng = np.random.default_rng([len(shape), key] if name.startswith("uneven") else len(shape))
    hidden = rng.choice(CLASSES, rows, p=_skewed(CLASSES, 0.8))
    columns: dict[str, Any] = {}
    for i, size in enumerate(shape):
        law = _skewed(size, rng.uniform(*steep))
        orders = np.array(
            [np.arange(size) if rng.random() < 0.5 else rng.permutation(size)] * CLASSES
        )
        own = rng.random(CLASSES) < apart
        for each in np.flatnonzero(own):
            orders[each] = rng.permutation(size)
        columns[f"c{i}"] = orders[hidden, rng.choice(size, rows, p=law)]
    schema = Schema(tuple(Integer(f"c{i}", 0, size - 1) for i, size in enumerate(shape)))
    return Bench.of(name, schema, pa.table(columns))


def _skewed(size: int, power: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    weights = np.arange(1, size + 1) ** -power
    return weights / weights.sum()


def errors(bench: Bench, order: int, epsilon: str, method: str, **moved: Any) -> Iterator[float]:
    """Worst errors, run after run. `rounds` is a factor here."""
    settings = {
        "epsilon": epsilon,
        "delta": f"{1 / bench.rows**2:.3g}",
        "workload": f"marginals:{order}:64@0",
        "rows_public": bench.rows,
    }
    factor = moved.pop("rounds", 1)
    chosen = METHODS[method](**moved)
    if factor != 1:
        plan = prepare(bench.schema, method=chosen, **settings).plan
        rounds = sum(charge.times for charge in plan if "quer" in charge.purpose)
        chosen = METHODS[method](rounds=round(factor * rounds), **moved)
    while True:
        made = release(bench.table, bench.schema, method=chosen, **settings)
        yield bench.errors(made.rows, made.workload.cliques)[0]


def main(method: str = "fem", runs: int = 3) -> None:
    """Print the table."""
    points, lines = (POINTS, MOVED) if method in ("fem", "sepfem") else (UNEVEN, SIZES)
    benches = {name: generated(name) for name, _, _ in points}
    print(f"{method}, worst errors over 64 marginals, mean of {runs} runs\n")
    heads = [f"{name} {order}-way, ε = {epsilon}" for name, order, epsilon in points]
    print(f"| moved | {' | '.join(heads)} | geometric mean |\n|{'---|' * (len(points) + 2)}")
    for moved in lines:
        found: list[float] = []
        for name, order, epsilon in points:
            every = errors(benches[name], order, epsilon, method, **moved)
            found.append(float(np.mean([next(every) for _ in range(runs)])))
        what = ", ".join(f"{k} × {v}" if k == "rounds" else f"{k} = {v}" for k, v in moved.items())
        mean = float(np.exp(np.mean(np.log(found))))
        shown = " | ".join(f"{each:.3f}" for each in found)
        print(f"| {what or 'the rule'} | {shown} | {mean:.4f} |", flush=True)

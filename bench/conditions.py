"""Rows under a condition: how far records alone and moved ones are from the true rows of an event.

A population of the demo table is generated in parts, and of each only the rows of the events are kept.
Two models stand for it: rows of it (noiseless), and a release of the default at epsilon = 1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import understudy as us
from understudy.demo import city_health_survey
from understudy.demo import schema as facts
from understudy.models import Weighted
from understudy.queries import Predicate

EVENTS = (
    "age >= 65 and education = 'master or above'",
    "district = 'University' and employment = 'retired' and smoker",
    "sex = 'other' and chronic_conditions >= 3",
    "employment = 'unemployed' and income > 50000",
    "sex = 'other' and district = 'University' and smoker",
    "age >= 78 and alcohol_days >= 5 and district = 'University'",
)

Records = Sequence[NDArray[Any]]


def population(schema: us.Schema, parts: int, part: int) -> list[Records]:
    """The rows of every event in a large population, encoded."""
    asked = [Predicate.parse(text, schema) for text in EVENTS]
    found: list[list[Records]] = [[] for _ in EVENTS]
    for key in range(100, 100 + parts):
        table = city_health_survey(part, key)
        for kept, predicate in zip(found, asked, strict=True):
            kept.append(schema.encode(table.filter(predicate.rows(table))))
    return [[np.concatenate(c) for c in zip(*kept, strict=True)] for kept in found]


def variation(shape: tuple[int, ...], left: Records, weights: Any, right: Records) -> float:
    """The mean total variation over all pairs of columns."""

    def shares(codes: Records, weight: Any, i: int, j: int) -> NDArray[Any]:
        cells = codes[i].astype(np.int64) * shape[j] + codes[j]
        table = np.bincount(cells, weight, shape[i] * shape[j])
        return table / table.sum()

    pairs = list(combinations(range(len(shape)), 2))
    apart = [np.abs(shares(left, weights, *p) - shares(right, None, *p)).sum() / 2 for p in pairs]
    return float(np.mean(apart))


def main(parts: int = 80, part: int = 500_000, rows: int = 100_000, size: int = 50_000) -> None:
    """Print a table."""
    schema = facts()
    truth = population(schema, parts, part)
    made = us.release(city_health_survey(size, 0), schema, epsilon=1, key=1)
    codes = tuple(schema.encode(city_health_survey(4 * size, 7)))
    assert isinstance(made.model, Weighted)
    noiseless = replace(made.model, codes=codes, weights=np.ones(4 * size, np.float32))
    print("| event | share | floor | model | records | alone | moved | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for text, real in zip(EVENTS, truth, strict=True):
        half = len(real[0]) // 2
        halves = [c[:half] for c in real], [c[half:] for c in real]
        floor = variation(schema.shape, halves[0], None, halves[1])
        for name, model in (("noiseless", noiseless), ("released", made.model)):
            start = time.perf_counter()
            drawn = replace(made, model=model).sample(rows, where=text, key=1, like="arrow")
            seconds = time.perf_counter() - start
            inside = Predicate.parse(text, schema).among(model.codes)[1]
            alone = [c[inside] for c in model.codes]
            print(
                f"| `{text}` | {len(real[0]) / (parts * part):.1e} | {floor:.3f} | {name} "
                f"| {np.count_nonzero(inside):,} "
                f"| {variation(schema.shape, alone, model.weights[inside], real):.3f} "
                f"| {variation(schema.shape, schema.encode(drawn), None, real):.3f} "
                f"| {seconds:.2f} |",
                flush=True,
            )

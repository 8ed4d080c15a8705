"""Patients with visits who do not exist: two tables whose second one has an order.

Nothing in them is private. Age never falls from visit to visit, severity and drug mostly stay, the stay
follows severity, and severe patients come back more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.schema import Category, Integer
from understudy.schema.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

KEY, ORDER, LARGEST = "patient_id", "number", 5

REGIONS, SEXES = ("coast", "hills", "north", "south"), ("female", "male")
DRUGS, RESULTS = ("none", "steady", "up", "down"), ("home", "care", "return")

PATIENT_COLUMNS: tuple[Column, ...] = (Category("region", REGIONS), Category("sex", SEXES))
"""Public facts about patients, without the key."""
VISIT_COLUMNS: tuple[Column, ...] = (
    Integer("age", 0, 99, bins=10),
    Integer("severity", 0, 5),
    Integer("stay", 1, 12),
    Category("drug", DRUGS),
    Category("result", RESULTS),
)
"""Public facts about visits, without the foreign key and the order."""


@dataclass(frozen=True, eq=False)
class Visits:
    """Patients, one row each, and visits, patient after patient, in their order."""

    patients: pa.Table
    visits: pa.Table


def visits(number: int = 20_000, key: int = 0) -> Visits:
    """Generate patients; the same number and key give the same tables."""
    import pyarrow as pa

    rng = np.random.default_rng(key)
    region, sex = rng.choice(4, number, p=[0.4, 0.3, 0.2, 0.1]), rng.integers(2, size=number)
    frailty = rng.standard_normal(number) + 0.3 * (region == 2)
    shares = np.array([0.55, 0.20, 0.12, 0.08, 0.05])
    size = np.searchsorted(np.cumsum(shares), rng.random(number) ** np.exp(-0.3 * frailty)) + 1
    size = np.minimum(size, LARGEST)
    whose = np.repeat(np.arange(number), size)
    starts = np.cumsum(size) - size
    place = np.arange(whose.size) - starts[whose]
    age = np.clip(58 + 15 * rng.standard_normal(number) + 4 * frailty, 1, 95)[whose]
    years = np.where(place > 0, rng.exponential(0.7, whose.size), 0.0)
    passed = np.cumsum(years)
    age = np.minimum(age + passed - passed[starts][whose], 99).astype(np.int64)
    severity, drug = np.zeros(whose.size, np.int64), np.zeros(whose.size, np.int64)
    fresh = np.clip(np.rint(1.5 + 1.2 * (frailty[whose] + rng.standard_normal(whose.size))), 0, 5)
    other = np.where(rng.random(whose.size) < 0.5, 1, rng.integers(4, size=whose.size))
    stays, keeps = rng.random(whose.size) < 0.65, rng.random(whose.size) < 0.8
    for step in range(LARGEST):
        at = np.flatnonzero(place == step)
        before = np.maximum(at - 1, 0)
        kept = stays[at] & (step > 0)
        severity[at] = np.where(kept, severity[before], fresh[at])
        drug[at] = np.where(keeps[at] & (step > 0), drug[before], other[at])
    stay = np.clip(1 + rng.poisson(0.8 + 1.1 * severity), 1, 12)
    last = place == size[whose] - 1
    result = np.where(last, rng.choice(2, whose.size, p=[0.7, 0.3]), 2)
    result = np.where(rng.random(whose.size) < 0.15, rng.integers(3, size=whose.size), result)
    return Visits(
        pa.table(
            {
                KEY: np.arange(1, number + 1),
                "region": np.array(REGIONS)[region],
                "sex": np.array(SEXES)[sex],
            }
        ),
        pa.table(
            {
                KEY: whose + 1,
                ORDER: place + 1,
                "age": age,
                "severity": severity,
                "stay": stay,
                "drug": np.array(DRUGS)[drug],
                "result": np.array(RESULTS)[result],
            }
        ),
    )

"""Households with persons who do not exist: two tables with strong structure inside a family.

Nothing in them is private. Heads are older than their children, partners and siblings are of like age,
a household shares its origin and much of its education, and its income is what its members earn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.schema import Category, Integer
from understudy.schema.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

KEY = "household_id"
"""The key of a household and the foreign key of a person."""
LARGEST = 6

REGIONS = ("coast", "delta", "hills", "lakes", "north", "plains", "south", "valley")
TENURES = ("owned", "rented", "social")
DWELLINGS = ("flat", "terraced", "detached", "other")
ROLES = ("head", "partner", "child", "other")
SEXES = ("female", "male")
ORIGINS = ("A", "B", "C", "D", "E")
EDUCATIONS = ("none", "primary", "secondary", "bachelor", "master")
WORK = ("too young", "student", "employed", "unemployed", "at home", "retired")

HOUSEHOLD_COLUMNS: tuple[Column, ...] = (
    Category("region", REGIONS),
    Category("tenure", TENURES),
    Category("dwelling", DWELLINGS),
    Integer("income", 0, 149_999, bins=6),
    Integer("cars", 0, 3),
)
"""Public facts about households, without the key."""
PERSON_COLUMNS: tuple[Column, ...] = (
    Category("role", ROLES),
    Integer("age", 0, 99, bins=10),
    Category("sex", SEXES),
    Category("origin", ORIGINS),
    Category("education", EDUCATIONS, ordinal=True),
    Category("work", WORK),
)
"""Public facts about persons, without the foreign key."""

_SIZES = np.array([0.30, 0.31, 0.16, 0.14, 0.06, 0.03])


@dataclass(frozen=True, eq=False)
class Households:
    """Households, one row each, and persons, household after household, the head first."""

    households: pa.Table
    persons: pa.Table


def households(number: int = 20_000, key: int = 0, *, empty: float = 0.0) -> Households:
    """Generate households; the same number and key give the same tables.

    Args:
        number: How many households.
        key: A public number from which all randomness comes.
        empty: The share of households in which nobody lives.
    """
    import pyarrow as pa

    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InputError(f"number={number!r}: give a whole number from 0")
    if not 0 <= empty <= 1:
        raise InputError(f"empty={empty!r}: give a share from 0 to 1")
    rng = np.random.default_rng(key)
    size = rng.choice(LARGEST, size=number, p=_SIZES) + 1
    region = rng.choice(len(REGIONS), size=number, p=np.array([20, 8, 10, 7, 18, 15, 12, 10]) / 100)
    whose = np.repeat(np.arange(number), size)
    place = np.arange(whose.size) - np.repeat(np.cumsum(size) - size, size)
    role, age, sex = _people(size, whose, place, rng)
    origin = _origins(region, whose, rng)
    education = _educations(region, origin, whose, age, rng)
    work = _works(role, age, sex, education, rng)
    earned = np.array([0, 3, 28, 9, 4, 17])[work] * (0.55 + 0.3 * education) * 1_000
    earned *= np.exp(0.35 * rng.standard_normal(whose.size))
    income = np.minimum(np.bincount(whose, earned, number), 149_999).astype(np.int64)
    wealth = income / 40_000 + 0.02 * (age[place == 0] - 45) + 0.5 * rng.standard_normal(number)
    tenure = np.where(wealth > 1.1, 0, np.where(wealth > 0.2, 1, 2))
    roomy = 0.6 * size + 1.2 * (tenure == 0) - 0.8 * (region < 2) + rng.standard_normal(number)
    dwelling = np.where(rng.random(number) < 0.03, 3, np.digitize(roomy, [1.5, 3.0]))
    adults = np.bincount(whose, age >= 18, number)
    cars = np.clip(np.rint(0.5 * adults + income / 60_000 - 0.6 * (region == 0)), 0, 3)
    lived = rng.random(number) >= empty
    people = lived[whose]
    return Households(
        pa.table(
            {
                KEY: np.arange(1, number + 1),
                "region": _labels(REGIONS, region),
                "tenure": _labels(TENURES, tenure),
                "dwelling": _labels(DWELLINGS, dwelling),
                "income": income,
                "cars": cars.astype(np.int64),
            }
        ),
        pa.table(
            {
                KEY: whose[people] + 1,
                "role": _labels(ROLES, role[people]),
                "age": age[people],
                "sex": _labels(SEXES, sex[people]),
                "origin": _labels(ORIGINS, origin[people]),
                "education": _labels(EDUCATIONS, education[people]),
                "work": _labels(WORK, work[people]),
            }
        ),
    )


def _labels(names: tuple[str, ...], codes: NDArray[np.int64]) -> NDArray[np.str_]:
    return np.array(names)[codes]


def _people(
    size: NDArray[np.int64],
    whose: NDArray[np.int64],
    place: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(role, age, sex): a head, mostly a partner, children a few years apart, sometimes others."""
    number, many = size.size, whose.size
    alone, large = size == 1, size >= 3
    head = np.where(
        alone,
        rng.choice([27, 45, 74], size=number, p=[0.3, 0.25, 0.45])
        + 9 * rng.standard_normal(number),
        np.where(
            large, 41 + 7 * rng.standard_normal(number), 52 + 17 * rng.standard_normal(number)
        ),
    )
    head = np.clip(np.rint(head), 20, 96).astype(np.int64)
    paired = ~alone & (rng.random(number) < np.where(large, 0.85, 0.75))
    # What is neither head nor partner is a child, unless the household takes in others.
    takes_in = rng.random(number) < np.where(large, 0.06, 0.25)
    role = np.where(place == 0, 0, np.where((place == 1) & paired[whose], 1, 2))
    role = np.where((role == 2) & takes_in[whose], 3, role)
    first_child = np.minimum(head - rng.integers(21, 37, number), 30)
    apart = np.maximum(1, np.rint(2.6 + 1.2 * rng.standard_normal(many))).astype(np.int64)
    child = first_child[whose] - np.maximum(place - 1, 0) * apart
    partner = np.clip(head[whose] + np.rint(3 * rng.standard_normal(many)), 18, 97).astype(np.int64)
    elder = rng.random(number) < 0.4
    other = np.where(elder[whose], head[whose] + 26, 24 + 8 * rng.standard_normal(many))
    age = np.select([role == 0, role == 1, role == 2], [head[whose], partner, child], other)
    # A household whose next child is not born yet has somebody else.
    unborn = (role == 2) & (age < 0)
    role = np.where(unborn, 3, role)
    age = np.where(unborn, np.where(elder[whose], head[whose] + 26, 22), age)
    sex = rng.integers(2, size=many)
    against = (role == 1) & (rng.random(many) < 0.96)
    sex = np.where(against, 1 - sex[np.searchsorted(whose, whose)], sex)
    return role, np.clip(np.rint(age), 0, 99).astype(np.int64), sex


def _origins(
    region: NDArray[np.int64], whose: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """One origin for nearly all of a household, by region."""
    common = np.minimum(rng.geometric(0.35 + 0.06 * (region % 5)) - 1, 4)
    return np.where(rng.random(whose.size) < 0.93, common[whose], rng.integers(5, size=whose.size))


def _educations(
    region: NDArray[np.int64],
    origin: NDArray[np.int64],
    whose: NDArray[np.int64],
    age: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Much shared in a household, less with age, and none above what one's years allow."""
    shared = rng.standard_normal(region.size) + 0.3 * (region == 0) - 0.2 * (region == 4)
    score = shared[whose] + 0.45 * rng.standard_normal(whose.size) - 0.12 * origin
    score -= 0.012 * np.maximum(age - 40, 0)
    reached = np.digitize(score, [-1.6, -0.6, 0.5, 1.2])
    return np.minimum(reached, np.digitize(age, [6, 13, 19, 23]))


def _works(
    role: NDArray[np.int64],
    age: NDArray[np.int64],
    sex: NDArray[np.int64],
    education: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """By age first; at home more often as a partner, unemployed less often with education."""
    coin = rng.random(age.size)
    idle = 0.16 - 0.03 * education
    home = np.where(role == 1, 0.25, 0.05) * np.where(sex == 0, 1.5, 0.4)
    working = np.select([coin < idle, coin < idle + home], [3, 4], 2)
    young = np.where(coin < 0.75, 1, working)
    return np.select([age < 6, age < 18, age < 24, age >= 65], [0, 1, young, 5], working)

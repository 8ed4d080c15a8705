"""A sample table: the health survey of a city that does not exist.

Every row is generated, so nothing in it is private. It has what real tables have: categories with
and without an order, integers, numbers, dates, booleans, nulls that are not random, an identifier,
and strong dependencies (age with income, illness and blood pressure; education with income and
smoking; districts with income; income with insurance and check-ups).
"""

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.schema import Boolean, Category, Date, Identifier, Integer, Number, Schema

DISTRICTS = (
    "Harbour",
    "Old Town",
    "Riverside",
    "Mill Quarter",
    "University",
    "Garden Hill",
    "Northfield",
    "Eastgate",
    "Westpark",
    "Southbank",
)
SEXES = ("female", "male", "other")
EDUCATIONS = ("none", "lower secondary", "upper secondary", "bachelor", "master or above")
EMPLOYMENTS = ("employed", "self-employed", "unemployed", "student", "retired", "at home")
SATISFACTIONS = ("very low", "low", "medium", "high", "very high")

_FIRST_CHECKUP = date(2019, 1, 1)
_SURVEY = date(2024, 12, 31)
_AGES = (18, 95)


def schema() -> Schema:
    """Public facts about the survey; declared here, not read from rows."""
    return Schema(
        (
            Identifier("person_id"),
            Category("district", DISTRICTS),
            Category("sex", SEXES),
            Integer("age", *_AGES, bins=26),
            Category("education", EDUCATIONS, ordinal=True),
            Category("employment", EMPLOYMENTS),
            Number("income", 0, 200_000, bins=40, decimals=2, nullable=True),
            Number("bmi", 15, 50, bins=35, decimals=1),
            Boolean("smoker"),
            Integer("alcohol_days", 0, 7),
            Integer("chronic_conditions", 0, 8),
            Integer("systolic", 80, 209, bins=26, nullable=True),
            Date("last_checkup", _FIRST_CHECKUP, _SURVEY, bins=24, nullable=True),
            Category("satisfaction", SATISFACTIONS, ordinal=True),
            Boolean("insured"),
        )
    )


def city_health_survey(rows: int = 50_000, key: int = 0) -> "pa.Table":
    """Generate the survey; the same rows and key give the same table.

    Args:
        rows: How many people.
        key: A public number from which all randomness comes.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise InputError(f"rows={rows!r}: give a whole number from 0")
    rng = np.random.default_rng(key)

    district = _pick(rng, np.full((rows, 1), 1.0) * [14, 9, 11, 8, 7, 6, 15, 12, 8, 10])
    wealth = np.array([-0.2, 0.3, 0.25, -0.25, 0.0, 0.6, -0.35, -0.4, 0.4, -0.05])[district]
    sex = _pick(rng, np.full((rows, 1), 1.0) * [51, 48, 1])
    age = _ages(rng, district)
    years = age.astype(np.float64)

    education = _ladder(
        rng,
        1.1 * wealth - 0.014 * (years - 45) + 0.6 * (district == 4),
        [-2.0, -0.8, 0.35, 1.1],
        0.8,
    )
    employment = _employment(rng, years, sex, education)
    income = _income(rng, years, wealth, sex, education, employment)

    leaning = -0.2 - 0.55 * education + 0.35 * (sex == 1) - 0.035 * np.maximum(years - 55, 0)
    smoker = _chance(rng, leaning + 0.7 * (employment == 2))
    alcohol = _alcohol(rng, years, sex, smoker, income)
    usual = (
        23.0 + 0.09 * (years - 18) - 0.0011 * (years - 50) ** 2 - 0.55 * education - 1.1 * smoker
    )
    bmi = usual + 0.8 * (sex == 1) + rng.gamma(4.0, 1.35, rows) - 2.5
    bmi = bmi.clip(15.5, 49.5).round(1)
    chronic = rng.poisson(
        np.exp(-2.5 + 0.043 * (years - 18) + 0.055 * (bmi - 25) + 0.5 * smoker)
    ).clip(0, 8)
    usual = 98 + 0.48 * (years - 18) + 1.25 * (bmi - 22) + 3.5 * (sex == 1) + 3.0 * smoker
    pressure = usual + 1.2 * alcohol + rng.normal(0, 7.5, rows)
    systolic = pressure.clip(80, 209).round().astype(np.int64)
    insured = _chance(rng, -0.1 + 1.5 * np.log(income / 20_000) + 2.5 * (years >= 65))
    measured = _chance(rng, 0.4 + 0.5 * chronic + 1.6 * insured)
    gap = rng.exponential(np.exp(6.9 - 0.75 * insured - 0.013 * (years - 45) - 0.35 * chronic))
    satisfaction = _ladder(
        rng,
        0.75 * np.log(income / 25_000) - 0.45 * chronic - 0.9 * (employment == 2) + 0.4 * insured,
        [-1.7, -0.7, 0.3, 1.4],
        0.55,
    )
    told_income = _chance(rng, 2.6 - 0.9 * (income > 70_000) - 0.5 * (employment == 1))
    known_gap = (date.toordinal(_SURVEY) - date.toordinal(_FIRST_CHECKUP)) >= gap
    checkup = np.datetime64(_SURVEY, "D") - np.where(known_gap, gap, 0).astype("m8[D]")

    return pa.table(
        {
            "person_id": pa.array(
                [f"P{number:07d}" for number in rng.permutation(rows)], pa.string()
            ),
            "district": _words(DISTRICTS, district),
            "sex": _words(SEXES, sex),
            "age": age,
            "education": _words(EDUCATIONS, education),
            "employment": _words(EMPLOYMENTS, employment),
            "income": pa.array(income.round(2), mask=~told_income),
            "bmi": bmi,
            "smoker": smoker,
            "alcohol_days": alcohol,
            "chronic_conditions": chronic,
            "systolic": pa.array(systolic, mask=~measured),
            "last_checkup": pa.array(checkup, pa.date32(), mask=~known_gap),
            "satisfaction": _words(SATISFACTIONS, satisfaction),
            "insured": insured,
        }
    )


def _ages(rng: np.random.Generator, district: NDArray[np.intp]) -> NDArray[np.int64]:
    student = (district == 4) & (rng.random(district.size) < 0.5)
    adult = 18 + 77 * rng.beta(1.35, 1.9, district.size) + 6 * (district == 5)
    young = 18 + rng.gamma(2.0, 2.5, district.size)
    return np.where(student, young, adult).clip(*_AGES).astype(np.int64)


def _employment(
    rng: np.random.Generator,
    years: NDArray[np.float64],
    sex: NDArray[np.intp],
    education: NDArray[np.intp],
) -> NDArray[np.intp]:
    working = (years >= 18) & (years < 66)
    weights = np.stack(
        [
            np.where(working, 6.0 + 1.5 * education, 0.15),
            np.where(working, 1.0 + 0.02 * (years - 18), 0.15),
            np.where(working, 1.6 * np.exp(-0.5 * education), 0.0),
            np.where(years < 30, 9.0 * np.exp(-0.45 * (years - 18)) + 0.2, 0.0),
            np.where(years < 66, 2.0 * np.exp(0.55 * (years - 64)), 12.0),
            np.where(sex == 0, 1.2, 0.35),
        ],
        axis=1,
    )
    return _pick(rng, weights)


def _income(
    rng: np.random.Generator,
    years: NDArray[np.float64],
    wealth: NDArray[np.float64],
    sex: NDArray[np.intp],
    education: NDArray[np.intp],
    employment: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Of the household, a year; log-normal around what age, work, schooling and district say."""
    status = np.array([0.0, 0.12, -0.85, -1.1, -0.35, -0.5])[employment]
    career = 0.45 - 0.00065 * (years - 52) ** 2
    centre = 9.95 + 0.26 * education + status + np.maximum(career, -0.4) + 0.6 * wealth
    spread = np.where(employment == 1, 0.45, 0.24)
    drawn = np.exp(centre - 0.08 * (sex == 0) + spread * rng.normal(size=years.size))
    return drawn.clip(1_000, 199_000)


def _alcohol(
    rng: np.random.Generator,
    years: NDArray[np.float64],
    sex: NDArray[np.intp],
    smoker: NDArray[np.bool_],
    income: NDArray[np.float64],
) -> NDArray[np.int64]:
    leaning = -2.2 + 0.6 * (sex == 1) + 1.0 * smoker + 0.012 * (years - 18)
    share = 1 / (1 + np.exp(-(leaning + 0.4 * np.log(income / 25_000))))
    abstains = rng.random(years.size) < 0.22
    return np.where(abstains, 0, rng.binomial(7, share))


def _chance(rng: np.random.Generator, logit: NDArray[np.float64]) -> NDArray[np.bool_]:
    return rng.random(logit.size) < 1 / (1 + np.exp(-logit))


def _ladder(
    rng: np.random.Generator, score: NDArray[np.float64], cuts: list[float], spread: float
) -> NDArray[np.intp]:
    """An ordered category: a noisy score cut at thresholds."""
    return np.searchsorted(cuts, score + spread * rng.logistic(size=score.size) / 1.8)


def _pick(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """One column of each row of weights."""
    ladder = np.cumsum(weights, axis=1)
    return (rng.random((len(ladder), 1)) * ladder[:, -1:] >= ladder).sum(axis=1)


def _words(words: tuple[str, ...], codes: NDArray[np.intp]) -> Any:
    return pa.array(words).take(pa.array(codes))

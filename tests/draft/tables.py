"""Five raw tables as nobody should have made them, and what a draft has to decide about each column.

Every column is generated. A decision is a word, and what else must hold: bounds, values, special
values, order. `shape` is a number (or date) whose shape a release finds, `list` a category with its
values, `discover` one without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS = 4000


@dataclass(frozen=True)
class Expected:
    """What has to become of a column; `facts` are keys of its table in a schema file."""

    sort: str
    facts: dict[str, Any] = field(default_factory=dict)


def is_(sort: str, **facts: Any) -> Expected:
    """Short for a table of them."""
    return Expected(sort, facts)


Rng = np.random.Generator
Cells = list[Any]
Table = dict[str, tuple[Cells, Expected]]


def _pick(rng: Rng, values: list[Any], weights: list[float] | None = None) -> Cells:
    shares = None if weights is None else np.array(weights) / sum(weights)
    return [values[i] for i in rng.choice(len(values), ROWS, p=shares)]


def _with(rng: Rng, cells: Cells, codes: dict[Any, float]) -> Cells:
    """Some of the cells replaced by codes."""
    cells = list(cells)
    for code, share in codes.items():
        for at in rng.choice(ROWS, int(share * ROWS), replace=False):
            cells[at] = code
    return cells


def _syllables(rng: Rng, count: int) -> list[str]:
    parts = ["ba", "do", "ki", "lu", "me", "no", "ra", "si", "ta", "ve", "zo", "fi"]
    return ["".join(rng.choice(parts, 3)).capitalize() for _ in range(count)]


def clinic(rng: Rng) -> Table:
    """Visits: patients with several rows, codes of diseases, brackets, drugs that few take."""
    patients = rng.integers(10**6, 10**8, 2500)
    names = _syllables(rng, 3000)
    codes = [f"{c}{n}" for c in "ABCDEFGHIJK" for n in range(10, 100)]
    weights = [1 / (i + 1) for i in range(len(codes))]
    brackets = [f"[{a}-{a + 10})" for a in range(0, 100, 10)]
    return {
        "visit_id": (list(rng.permutation(10**6)[:ROWS]), is_("identifier")),
        "patient_nbr": (_pick(rng, list(patients)), is_("identifier")),
        "PatientName": (
            [f"{a} {b}" for a, b in zip(_pick(rng, names), _pick(rng, names), strict=True)],
            is_("identifier"),
        ),
        "e-mail": (
            [f"{name.lower()}{i % 900}@mail.example" for i, name in enumerate(_pick(rng, names))],
            is_("identifier"),
        ),
        "phone": (
            [f"0{rng.integers(100, 999)} {rng.integers(10**5, 10**6)}" for _ in range(ROWS)],
            is_("identifier"),
        ),
        "home address": (
            [f"{rng.integers(1, 300)} {name} Street" for name in _pick(rng, names)],
            is_("identifier"),
        ),
        "notes": (
            [
                f"the patient {name} was seen for {w} days and came back later"
                for name, w in zip(_pick(rng, names), rng.integers(1, 30, ROWS), strict=True)
            ],
            is_("text"),
        ),
        "age": (
            _pick(rng, brackets, [1, 1, 2, 3, 4, 5, 6, 5, 3, 0.02]),
            is_("list", ordinal=True, values=brackets[:9], other="OTHER"),
        ),
        "diag_1": (_pick(rng, codes, weights), is_("discover", prefixes=[3, 1])),
        "ward note": (_pick(rng, codes, weights), is_("discover", prefixes=[3, 1])),
        "drug A": (
            _pick(rng, ["No", "Steady", "Up"], [1, 0.001, 0.0003]),
            is_("list", values=["No"], other="OTHER"),
        ),
        "drug B": (["No"] * ROWS, is_("list", values=["No"], other=None)),
        "severity": (
            _pick(rng, ["mild", "severe", "moderate"]),
            is_("list", ordinal=True, values=["mild", "moderate", "severe"]),
        ),
        "weekday": (
            _pick(rng, ["Mon", "Tue", "Wed", "Thu", "Fri"]),
            is_(
                "list",
                ordinal=True,
                values=["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
                read_from_rows=("type", "nullable", "ordinal"),
            ),
        ),
        "stay": (list(rng.integers(1, 15, ROWS)), is_("integer", lower=1, upper=14)),
        "admission_type_id": (
            _pick(rng, [1, 2, 3, 5, 8], [5, 3, 1, 0.5, 0.0005]),
            is_("list", values=[1, 2, 3, 5]),
        ),
    }


def bank(rng: Rng) -> Table:
    """Amounts that never repeat, account numbers that look like them, codes among numbers."""
    income = np.round(np.exp(rng.normal(10, 1, ROWS)), 2)
    return {
        "": ([*range(ROWS)], is_("identifier")),
        "account": (list(rng.choice(9 * 10**7, ROWS, replace=False) + 10**7), is_("identifier")),
        "balance": (
            list(np.round(rng.normal(2000, 9000, ROWS), 2)),
            is_("shape", type="number", decimals=2),
        ),
        "salary_cents": (list((income * 100).astype(int)), is_("shape", type="integer")),
        "fnlwgt": (list(rng.gamma(4, 45_000, ROWS).astype(int)), is_("shape", type="integer")),
        "income": (
            _with(rng, list(income), {"N": 0.2, "refused": 0.05, "?": 0.1}),
            is_(
                "shape", type="number", special=["N", "refused"], dtype="string", null_values=["?"]
            ),
        ),
        "days_late": (
            _with(rng, list(rng.poisson(9, ROWS) * 7), {999: 0.3, -1: 0.04}),
            is_("shape", special=[-1, 999]),
        ),
        "pays": (
            _with(rng, list(rng.integers(0, 10, ROWS)), {99: 0.02}),
            is_("integer", lower=0, upper=9, special=[99]),
        ),
        "rating": (
            _pick(rng, ["A", "B", "C", "D", "A+"], [3, 5, 4, 1, 0.3]),
            is_("list", ordinal=True, values=["A+", "A", "B", "C", "D"]),
        ),
        "term": (
            _pick(rng, ["36 months", "60 months", "120 months"]),
            is_("list", ordinal=True, values=["36 months", "60 months", "120 months"]),
        ),
        "fee": (
            [f"${amount:,.2f}" for amount in income],
            is_("shape", type="number", format="$#,##0.00"),
        ),
        "share of debt": (list(np.round(rng.random(ROWS), 3)), is_("shape", lower=0, upper=1)),
        "dependents": (_pick(rng, ["0", "1", "2", "3+"]), is_("list", ordinal=True)),
        "zip": ([f"0{n}" for n in rng.integers(1000, 9999, ROWS)], is_("discover")),
        "iban": ([f"DE{n:020d}" for n in rng.integers(10**15, 10**18, ROWS)], is_("identifier")),
    }


def houses(rng: Rng) -> Table:
    """Places, years with zeros, dates in several forms, a header of odd names."""
    days = np.datetime64("2014-05-02") + rng.integers(0, 400, ROWS)
    built = rng.integers(1900, 2016, ROWS)
    stamps = [str(day).replace("-", "") + "T000000" for day in days]
    mixed = [
        str(d) if i % 2 else f"{str(d)[8:]}/{str(d)[5:7]}/{str(d)[:4]}" for i, d in enumerate(days)
    ]
    mixed = [f"{text} {i}" for i, text in enumerate(mixed)]
    towns = _syllables(rng, 400)
    price = (np.exp(rng.normal(13, 0.5, ROWS)) / 50).astype(int) * 50
    return {
        "id": (list(rng.integers(10**6, 10**10, 3900)) + [7] * 100, is_("identifier")),
        "date": (stamps, is_("shape", type="date", format="%Y%m%dT%H%M%S")),
        "sold": (
            [f"{str(d)[8:]}.{str(d)[5:7]}.{str(d)[:4]}" for d in days],
            is_("shape", type="date", format="%d.%m.%Y"),
        ),
        "until": (
            _with(rng, [str(d) for d in days], {"9999-12-31": 0.5}),
            is_("shape", type="date", special=["9999-12-31"]),
        ),
        "seen": (
            [f"{d} {i % 24:02d}:15:00" for i, d in enumerate(days)],
            is_("shape", type="datetime"),
        ),
        "written": (mixed, is_("text")),
        "price": (list(price), is_("shape", type="integer")),
        "yr_built": (list(built), is_("shape", lower=1900, upper=2099)),
        "yr_renovated": (
            _with(rng, list(built), {0: 0.9}),
            is_("shape", lower=1900, upper=2099, special=[0]),
        ),
        "lat": (list(np.round(rng.normal(47.5, 0.1, ROWS), 4)), is_("shape", lower=47, upper=48)),
        "long": (
            list(np.round(rng.normal(-122.2, 0.1, ROWS), 4)),
            is_("shape", lower=-123, upper=-121),
        ),
        "town": (_pick(rng, towns, [1 / (i + 1) for i in range(400)]), is_("discover")),
        "bedrooms": (
            _pick(rng, [0, 1, 2, 3, 4, 5, 6, 33], [0.002, 1, 13, 45, 32, 7, 1, 0.01]),
            is_("integer"),
        ),
        "floors": (
            _pick(rng, [1.0, 1.5, 2.0, 3.0]),
            is_("list", values=[1.0, 1.5, 2.0, 3.0], ordinal=True),
        ),
        "waterfront": (_pick(rng, [0, 1], [99, 1]), is_("list", values=[0, 1])),
        "condition": (_pick(rng, [1, 2, 3, 4, 5]), is_("integer", lower=1, upper=5)),
        "parcel number": (
            [
                f"{a:04d}-{b:05d}"
                for a, b in zip(
                    rng.integers(0, 9999, ROWS), rng.integers(0, 99999, ROWS), strict=True
                )
            ],
            is_("identifier"),
        ),
    }


def survey(rng: Rng) -> Table:
    """Numbers for names, sentinels everywhere, nearly everything coded."""
    hours = np.clip(rng.normal(38, 12, ROWS).round(), 0, 99).astype(int)
    return {
        "0": (list(rng.integers(17, 91, ROWS)), is_("shape", type="integer")),
        "HHID": (_pick(rng, list(range(50_000, 51_500))), is_("identifier")),
        "AGEP_age": (list(rng.integers(0, 99, ROWS)), is_("integer", lower=0, upper=120)),
        "hours-per-week": (list(hours), is_("shape", lower=0, upper=168)),
        "SEX": (_pick(rng, [1, 2]), is_("list", values=[1, 2])),
        "state": (
            _pick(rng, ["CA", "NY", "TX", "FL", "WA", "ME"], [9, 5, 5, 4, 3, 0.002]),
            is_("list", other=None),
        ),
        "married": (
            _pick(rng, ["Y", "N"]),
            is_("list", values=["N", "Y"], read_from_rows=("type", "nullable")),
        ),
        "happy": (
            _pick(rng, ["very low", "low", "medium", "high"]),
            is_("list", ordinal=True, values=["very low", "low", "medium", "high"]),
        ),
        "occ_code": (
            _pick(rng, list(range(10, 9999, 10)), [1 / (i + 3) for i in range(999)]),
            is_("discover"),
        ),
        "job title": (
            [
                w if i % 3 else f"{w} {v}"
                for i, (w, v) in enumerate(
                    zip(
                        _pick(rng, ["nurse", "clerk", "driver", "cook"]),
                        _syllables(rng, ROWS),
                        strict=True,
                    )
                )
            ],
            is_("discover"),
        ),
        "commute": (
            _with(rng, list(rng.integers(1, 121, ROWS)), {-9: 0.1}),
            is_("shape", special=[-9]),
        ),
        "temperature": (
            _with(rng, list(np.round(rng.normal(8, 9, ROWS), 1)), {-999.0: 0.03}),
            is_("shape", special=[-999.0]),
        ),
        "dose": (_pick(rng, [100, 250, 500]), is_("list", values=[100, 250, 500], ordinal=True)),
        "month": (list(rng.integers(1, 13, ROWS)), is_("integer", lower=1, upper=12)),
        "empty": ([""] * ROWS, is_("identifier")),
        "smoker": (_pick(rng, ["true", "false"]), is_("boolean")),
        "visits": (list(rng.negative_binomial(0.4, 0.05, ROWS)), is_("shape", type="integer")),
    }


def shop(rng: Rng) -> Table:
    """Ragged categories, names of things, tokens, addresses of machines."""
    products = _syllables(rng, 30)
    return {
        "orderId": ([f"O-{n}" for n in rng.permutation(10**5)[:ROWS]], is_("identifier")),
        "customer": ([f"C{n:06d}" for n in rng.integers(0, 1500, ROWS)], is_("identifier")),
        "session": ([rng.bytes(16).hex() for _ in range(ROWS)], is_("identifier")),
        "ip": (
            [".".join(map(str, rng.integers(1, 255, 4))) for _ in range(ROWS)],
            is_("identifier"),
        ),
        "product_name": (_pick(rng, sorted(set(products))), is_("list")),
        "surname": (_pick(rng, _syllables(rng, 500)), is_("identifier")),
        "size": (
            _pick(rng, ["S", "M", "L", "XL"]),
            is_("list", ordinal=True, values=["S", "M", "L", "XL"]),
        ),
        "spent": (
            _pick(rng, ["<$10", "$10-$49", "$50-$99", "$100+"]),
            is_("list", ordinal=True, values=["<$10", "$10-$49", "$50-$99", "$100+"]),
        ),
        "colour": (
            _with(rng, _pick(rng, ["red", "blue", "green"]), {"mauve": 0.001, "puce": 0.001}),
            is_("list", values=["blue", "green", "red"], other="OTHER"),
        ),
        "price": (
            list(np.round(rng.gamma(2, 20, ROWS), 2)),
            is_("shape", type="number", decimals=2),
        ),
        "discount percent": (list(rng.integers(0, 101, ROWS)), is_("integer", lower=0, upper=100)),
        "quantity": (list(rng.geometric(0.5, ROWS)), is_("integer", lower=1)),
        "coupon": (
            _with(rng, [""] * ROWS, {"SPRING": 0.1, "X1": 0.0005}),
            is_("list", values=["SPRING"], other="OTHER"),
        ),
        "ean": (list(rng.choice(10**12, ROWS, replace=False) + 4 * 10**12), is_("identifier")),
        "rh": (_pick(rng, ["+", "-"], [85, 15]), is_("list", values=["+", "-"])),
        "url": (
            [f"https://shop.example/{n}" for n in rng.integers(0, 10**6, ROWS)],
            is_("identifier"),
        ),
        "comment": (
            _with(rng, [""] * ROWS, {"good": 0.0005, "It broke on the second day, sadly": 0.0005}),
            is_("any"),
        ),
    }


TABLES: dict[str, Callable[[Rng], Table]] = {
    make.__name__: make for make in (clinic, bank, houses, survey, shop)
}

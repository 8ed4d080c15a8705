"""Thirteen raw tables as nobody should have made them, and what a draft has to decide about columns.

Every column is generated; the second five tables are written from memory of public ones, the last
three hold what was decided wrongly about 22 others. A decision is a word, and what else must hold:
bounds, values, special values, order. `shape` is a number (or date)
whose shape a release finds, `list` a category with its values, `discover` one without, `out` what is
left out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from understudy.schema import Column, Schema
from understudy.schema.toml import column_facts

ROWS = 4000
LEAST = 10
PUBLIC = frozenset({"weekday", "state", "Wochentag", "gesperrt"})
"""Columns with a whole list, which everybody knows."""


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
        "empty": ([""] * ROWS, is_("text")),
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


def _shares(count: int) -> list[float]:
    return [1 / (i + 1) for i in range(count)]


def _euros(amounts: Any, after: str = " €") -> Cells:
    return [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) + after for x in amounts]


def _on(rng: Rng, form: str, since: str = "2015-01-01", days: int = 1500) -> Cells:
    found = np.datetime64(since) + rng.integers(0, days, ROWS)
    return [day.strftime(form) for day in found.astype(object)]


def discharges(rng: Rng) -> Table:
    """Stays in hospitals: charges with signs, brackets of ages, codes with letters, doctors."""
    charges = np.exp(rng.normal(9.8, 1, ROWS))
    stays = np.minimum(rng.negative_binomial(1, 0.17, ROWS) + 1, 121)
    ages = ["0 to 17", "18 to 29", "30 to 49", "50 to 69", "70 or Older"]
    risks = ["Minor", "Moderate", "Major", "Extreme"]
    codes = [f"{c}{n:02d}.{k}" for c in "ABCEFIJKLMN" for n in range(0, 99, 7) for k in range(4)]
    words = [f"{a} {b}" for a in ("Acute", "Chronic", "Mild") for b in _syllables(rng, 60)]
    return {
        "Hospital County": (_pick(rng, _syllables(rng, 60), _shares(60)), is_("list")),
        "Facility Id": (_pick(rng, list(range(1, 300)), _shares(299)), is_("out")),
        "Age Group": (_pick(rng, ages), is_("list", ordinal=True, values=ages)),
        "Zip Code - 3 digits": (
            _with(rng, _pick(rng, [100, 101, 103, 112, 148]), {"OOS": 0.04}), is_("list"),
        ),
        "Gender": (_pick(rng, ["F", "M", "U"], [55, 45, 0.05]), is_("list", values=["F", "M"])),
        "Length of Stay": (
            _with(rng, list(stays), {"120 +": 0.01}), is_("any", special=["120 +"]),
        ),
        "Discharge Year": (["2015"] * ROWS, is_("list", values=[2015])),
        "Diagnosis Code": (_pick(rng, codes, _shares(len(codes))), is_("discover", prefixes=[3, 1])),
        "Diagnosis Description": (
            _pick(rng, sorted({*words}), _shares(len({*words}))), is_("discover", prefixes=None),
        ),
        "Severity": (_pick(rng, risks), is_("list", ordinal=True, values=risks)),
        "Attending Provider License Number": (
            _pick(rng, list(rng.integers(10**5, 4 * 10**5, 900))), is_("identifier"),
        ),
        "npi_name": (
            [f"DR. {a} {b}" for a, b in zip(_pick(rng, _syllables(rng, 30)), "AB" * (ROWS // 2),
                                            strict=True)],
            is_("identifier"),
        ),
        "Admitted": ([f"{rng.integers(24)}:{rng.integers(60):02d}" for _ in range(ROWS)],
                     is_("shape", type="datetime", format="%H:%M")),
        "Total Charges": ([f"${x:,.2f}" for x in charges], is_("shape", format="$#,##0.00")),
        "Total Costs": ([f"{x * 0.4:,.0f}" for x in charges], is_("shape", format="#,##0")),
        "ED Indicator": (_pick(rng, ["Y", "N"]), is_("list", values=["N", "Y"])),
    }  # fmt: skip


def payroll(rng: Rng) -> Table:
    """Names, titles, pay in several notations, dates of another century."""
    pay = np.exp(rng.normal(10.9, 0.4, ROWS))
    titles = ["POLICE OFFICER", "SERGEANT", "CLERK III", *(f"{a} II" for a in _syllables(rng, 150))]
    people = _syllables(rng, 400)
    return {
        "Name": ([f"{a}, {b}" for a, b in zip(_pick(rng, people), _pick(rng, people), strict=True)],
                 is_("identifier")),
        "First Name": (_pick(rng, _syllables(rng, 25)), is_("identifier")),
        "Manager": (_pick(rng, people), is_("identifier")),
        "Job Titles": (_pick(rng, sorted({*titles}), _shares(len({*titles}))), is_("discover")),
        "Full or Part-Time": (_pick(rng, ["F", "P"], [93, 7]), is_("list")),
        "Typical Hours": (_with(rng, _pick(rng, [40, 20, 10, 35]), {"": 0.7}),
                          is_("list", values=[10, 20, 35, 40])),
        "Annual Salary": (_with(rng, [f"${x:,.2f}" for x in pay], {"": 0.2}),
                          is_("shape", type="number", decimals=2, format="$#,##0.00")),
        "Benefits": (_with(rng, [f"{x:.2f}" for x in pay * 0.3], {"Not Provided": 0.2}),
                     is_("shape", special=["Not Provided"])),
        "Raise": ([f"{x:.2f} %" for x in rng.gamma(2, 1.2, ROWS)],
                  is_("shape", lower=0, upper=100, format="0.00 %")),
        "Pension": (_pick(rng, ["5.0%", "6.0%", "7.5%"]), is_("list", ordinal=True)),
        "Hire Date": (_on(rng, "%m/%d/%Y", "1975-01-01", 15_000),
                      is_("shape", type="date", format="%m/%d/%Y")),
        "Paid": (_on(rng, "%b-%y", "2015-01-01", 900), is_("list", ordinal=True)),
        "SSN": ([f"{a:03d}-{b:02d}-{c:04d}" for a, b, c in rng.integers(1, 99, (ROWS, 3))],
                is_("identifier")),
        "Employee Number": ([f"{n:06d}" for n in rng.permutation(10**6)[:ROWS]], is_("identifier")),
        "Union Member?": (_pick(rng, ["Yes", "No", "YES", "N"], [5, 4, 0.5, 0.3]), is_("list")),
    }  # fmt: skip


def orders(rng: Rng) -> Table:
    """A German shop: amounts with commas, postal codes with zeros in front, comments in lines."""
    paid = rng.gamma(2, 400, ROWS)
    stars = ["★" * n for n in range(1, 6)]
    days = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"]
    note = "Bitte beim Nachbarn abgeben, danke!\nDie Klingel ist leider defekt"
    return {
        "Bestellnr": ([f"DE-2021-{n:06d}" for n in rng.permutation(10**6)[:ROWS]], is_("identifier")),
        "Kundennummer": (_pick(rng, list(rng.integers(1000, 10**6, 1300))), is_("identifier")),
        "Telefon": ([f"+49 {n} {1000 * n + 7}" for n in rng.integers(1511, 1799, ROWS)],
                    is_("identifier")),
        "Bestelldatum": (_on(rng, "%d.%m.%y"), is_("shape", type="date", format="%d.%m.%y")),
        "Betrag": (_euros(paid), is_("shape", type="number", decimals=2, format="#.##0,00 €")),
        "Netto": (_euros(paid / 1.19, ""), is_("shape", type="number", format="#.##0,00")),
        "Versand": (_pick(rng, ["0,00 €", "4,90 €", "6,90 €"]), is_("list", ordinal=True)),
        "Gewicht": ([f"{x:.1f} kg".replace(".", ",") for x in rng.gamma(2, 1, ROWS)],
                    is_("shape", format="0,0 kg")),
        "Währung": (_pick(rng, ["EUR", "CHF", "GBP"], [95, 4, 0.02]),
                    is_("list", values=["CHF", "EUR"], other="OTHER")),
        "PLZ": ([f"{n:05d}" for n in _pick(rng, list(rng.integers(1067, 99_998, 700)), _shares(700))],
                is_("discover", prefixes=[3, 1])),
        "Straße": ([f"{s}straße {n}" for s, n in zip(_pick(rng, _syllables(rng, 300)),
                                                     rng.integers(1, 99, ROWS), strict=True)],
                   is_("identifier")),
        "Vorname": (_pick(rng, _syllables(rng, 20)), is_("identifier")),
        "ArtikelNr": (_pick(rng, list(rng.integers(10**5, 10**6, 70))), is_("list")),
        "Bewertung": (_with(rng, _pick(rng, stars), {"": 0.4}),
                      is_("list", ordinal=True, values=stars)),
        "Kommentar": (_with(rng, [""] * ROWS, {note: 0.01}), is_("text")),
        "Wochentag": (_pick(rng, days), is_("list", ordinal=True, values=days)),
        "Newsletter": (_pick(rng, ["ja", "nein"]), is_("list", values=["nein", "ja"])),
        "IBAN": ([f"DE{a} {b} {c} {b}" for a, b, c in rng.integers(1000, 9999, (ROWS, 3))],
                 is_("identifier")),
    }  # fmt: skip


def opinions(rng: Rng) -> Table:
    """A survey in many languages: scales of words, codes for no answer, moments, machines."""
    scales = {
        "fr": ["Pas du tout d'accord", "Plutôt pas d'accord", "D'accord", "Tout à fait d'accord"],
        "de": ["stimme gar nicht zu", "stimme eher nicht zu", "teils/teils", "stimme voll zu"],
        "es": ["Totalmente en desacuerdo", "En desacuerdo", "De acuerdo", "Totalmente de acuerdo"],
        "it": ["Per niente", "Poco", "Abbastanza", "Molto"],
        "pt": ["Nunca", "Raramente", "Às vezes", "Sempre"],
        "nl": ["helemaal mee oneens", "mee oneens", "neutraal", "helemaal mee eens"],
        "en": ["Extremely liberal", "Liberal", "Moderate", "Conservative"],
    }  # fmt: skip
    found: Table = {
        f"q_{language}": (_pick(rng, scale), is_("list", ordinal=True, values=scale))
        for language, scale in scales.items()
    }
    moments = np.datetime64("2022-02-01T08:00:00") + rng.integers(0, 3 * 10**6, ROWS)
    return found | {
        "ResponseId": ([f"R_{rng.bytes(6).hex()}x" for _ in range(ROWS)], is_("identifier")),
        "StartDate": ([str(m).replace("T", " ") for m in moments], is_("shape", type="datetime")),
        "mac": (_pick(rng, [":".join(f"{b:02X}" for b in rng.bytes(6)) for _ in range(140)]),
                is_("identifier")),
        "interviewer": (_pick(rng, [f"INT{n:03d}" for n in range(140)]), is_("identifier")),
        "Duration (in seconds)": (list(np.exp(rng.normal(6, 0.7, ROWS)).astype(int)), is_("shape")),
        "battery": ([f"{n}%" for n in rng.integers(3, 101, ROWS)],
                    is_("integer", lower=0, upper=100, format="0%")),
        "weeks": (_with(rng, list(rng.integers(20, 53, ROWS)), {-8: 0.3}), is_("any", special=[-8])),
        "children": (_with(rng, list(rng.integers(0, 7, ROWS)), {97: 0.01, 98: 0.01}),
                     is_("integer", lower=0, upper=6, special=[97, 98])),
        "days employed": (_with(rng, list(-rng.gamma(1, 2000, ROWS).astype(int)), {365243: 0.18}),
                          is_("shape", special=[365243])),
        "PSU": (_pick(rng, list(range(1, 61))), is_("list")),
        "smoke": (_pick(rng, [1, 2, 7, 9], [20, 70, 0.03, 0.03]), is_("any", other=None)),
        "win pct": (list(np.round(rng.uniform(0.2, 0.8, ROWS), 3)), is_("shape", lower=0, upper=1)),
        "shirt": (_pick(rng, ["XS", "S", "M", "2XL"]), is_("list", ordinal=True)),
    }  # fmt: skip


def clients(rng: Rng) -> Table:
    """Contacts of a shop: everything that names somebody, and what hardly does."""
    people = _syllables(rng, 300)
    both = [day if i % 3 else day.replace("-", "/") for i, day in enumerate(_on(rng, "%Y-%m-%d"))]
    return {
        "Last Name": (_pick(rng, people), is_("identifier")),
        "full address": ([f"{n} {a} Avenue, NY {z}" for a, n, z in zip(
            _pick(rng, people), rng.integers(1, 999, ROWS), rng.integers(10**4, 15**4, ROWS),
            strict=True)], is_("identifier")),
        "Phone 1": ([f"({a}) {b}-{1000 + 9 * c}" for a, b, c in rng.integers(200, 999, (ROWS, 3))],
                    is_("identifier")),
        "director_name": (_pick(rng, people), is_("identifier")),
        "Company": (_pick(rng, [f"{a} {b}" for a in people[:50] for b in ("Inc", "LLC", "Group")]),
                    is_("discover")),
        "City": (_pick(rng, people[50:]), is_("discover")),
        "Subscription Date": (both, is_("text")),
        "birthdate": (_on(rng, "%B %d, %Y", "1940-01-01", 22_000), is_("shape", type="date")),
        "last_login": (_on(rng, "%Y-%m-%dT08:00:00+02:00"), is_("shape", type="datetime")),
        "spent": ([f"{x:,.2f} USD" for x in rng.gamma(1, 900, ROWS)],
                  is_("shape", format="#,##0.00 USD")),
        "avg_order": ([f"EUR {x:.2f}" for x in rng.gamma(2, 40, ROWS)],
                      is_("shape", format="EUR 0.00")),
        "income": ([f"{x:.0f}k" for x in rng.gamma(4, 15, ROWS)], is_("shape", format="0k")),
        "followers": ([f"{x / 1000:.1f}K" if x > 1000 else str(x)
                       for x in np.exp(rng.normal(8, 2, ROWS)).astype(int)], is_("discover")),
        "credit card": ([str(n) for n in rng.integers(4 * 10**15, 5 * 10**15, ROWS)],
                        is_("identifier")),
        "PRVDR_NUM": (_pick(rng, [f"{n:02d}A{n * 7:03d}" for n in range(120)]), is_("identifier")),
        "is_active": (_pick(rng, ["1", "0", "TRUE", "FALSE", "yes"]), is_("list")),
        "verified": (_pick(rng, ["x", ""]), is_("list", values=["x"], nullable=True)),
    }  # fmt: skip


def statement(rng: Rng) -> Table:
    """A bank account: signs behind amounts, accounts with many rows each, people that pay."""
    amounts = np.where(rng.random(ROWS) < 0.7, -1, 1) * np.exp(rng.normal(4, 1.3, ROWS))
    accounts = [f"DE{a}{b}" for a, b in rng.integers(10**8, 10**9, (300, 2))]
    signed = [
        f"{text}-" if x < 0 else text
        for text, x in zip(_euros(abs(amounts), ""), amounts, strict=True)
    ]
    kinds = ["LASTSCHRIFT", "GEHALT/RENTE", "KARTENZAHLUNG", "DAUERAUFTRAG"]
    quarters = ["2022Q3", "2022Q4", "2023Q1", "2023Q2"]
    return {
        "Auftragskonto": (_pick(rng, accounts), is_("identifier")),
        "Buchungstag": (_on(rng, "%d.%m.%y"), is_("shape", type="date", format="%d.%m.%y")),
        "Quartal": (_pick(rng, quarters), is_("list", ordinal=True, values=quarters)),
        "Jahr": (_pick(rng, ["2021/22", "2022/23"]), is_("list", ordinal=True)),
        "Buchungstext": (_pick(rng, kinds), is_("list", values=sorted(kinds))),
        "Begünstigter": (_pick(rng, _syllables(rng, 300)), is_("identifier")),
        "Betrag": (signed, is_("shape", type="number", decimals=2, format="#.##0,00")),
        "net": ([f"{x:.2f}" if x > 0 else f"({-x:.2f})" for x in amounts],
                is_("shape", type="number", decimals=2, format="0.00")),
        "BIC": (_pick(rng, ["COBADEFFXXX", "DEUTDEFFXXX", "INGDDEFFXXX"]), is_("list")),
        "gesperrt": (_with(rng, ["Nein"] * ROWS, {"Ja": 0.001}),
                     is_("list", values=["Nein", "Ja"], other=None)),
    }  # fmt: skip


def laboratory(rng: Rng) -> Table:
    """Results that were too low or too high to measure, strips, moments with months by name."""
    troponin = np.exp(rng.normal(1.8, 1, ROWS)).round().astype(int)
    rates = rng.normal(82, 24, ROWS).clip(8, 150).astype(int)
    strip = ["neg", "trace", "1+", "2+", "3+"]
    pain = ["aucune", "légère", "modérée", "sévère"]
    taken = zip(_on(rng, "%d-%b-%Y"), rng.integers(0, 24, ROWS), strict=True)
    return {
        "Collected": ([f"{day} {hour:02d}:30" for day, hour in taken],
                      is_("shape", type="datetime", format="%d-%b-%Y %H:%M")),
        "hs-Troponin ng/L": (["<3" if x < 3 else x for x in troponin],
                             is_("shape", type="integer", special=["<3"])),
        "eGFR": ([">90" if x > 90 else x for x in rates], is_("any", special=[">90"])),
        "Potassium": (_with(rng, [f"{x:.1f}" for x in rng.normal(4.2, 0.5, ROWS)],
                            {"haemolysed": 0.02}), is_("shape", special=["haemolysed"])),
        "Urine protein": (_pick(rng, strip), is_("list", ordinal=True, values=strip)),
        "Douleur": (_pick(rng, pain), is_("list", ordinal=True, values=pain)),
        "blood group": (_pick(rng, ["A+", "A-", "B+", "B-"]), is_("list", ordinal=None)),
        "barcode": ([f"{n:012d}" for n in rng.integers(0, 10**12, ROWS)], is_("identifier")),
        "empty": ([""] * ROWS, is_("text")),
    }  # fmt: skip


def desk(rng: Rng) -> Table:
    """Tickets of a help desk in three countries: moments of e-mails, scales, marks, years and days."""
    moments = np.datetime64("2023-01-02T08:00:00") + rng.integers(0, 2 * 10**7, ROWS)
    marks = ["A", "A-", "B+", "B", "C", "D"]
    scales = {
        "Severity": ["Low", "Medium", "High", "Critical"],
        "inspection": ["Inadequate", "Requires improvement", "Good", "Outstanding"],
        "満足度": ["とても不満", "不満", "満足", "とても満足"],
        "同意": ["非常不同意", "不同意", "同意"],
        "predicted": marks,
    }
    days = (np.datetime64("2022-04-01") + rng.integers(0, 365, ROWS)).astype(object)
    found: Table = {
        name: (_pick(rng, scale), is_("list", ordinal=True, values=scale))
        for name, scale in scales.items()
    }
    mail = "%a, %d %b %Y %H:%M:%S +0000"
    return found | {
        "Created": ([m.strftime(mail) for m in moments.astype(object)],
                    is_("shape", type="datetime", format=mail)),
        "注文日": ([f"{day.year}年{day.month}月{day.day}日" for day in days],
                is_("shape", type="date", format="%Y年%m月%d日")),
        "会員": (_pick(rng, ["はい", "いいえ"]), is_("list", values=["いいえ", "はい"])),
        "month": (_pick(rng, ["2022-11", "2022-12", "2023-01"]), is_("list", ordinal=True)),
        "caller": ([f"0049{n}" for n in _pick(rng, list(rng.integers(10**9, 10**10, 250)))],
                   is_("identifier")),
    }  # fmt: skip


TABLES: dict[str, Callable[[Rng], Table]] = {
    make.__name__: make
    for make in (
        *(clinic, bank, houses, survey, shop),
        *(discharges, payroll, orders, opinions, clients),
        *(statement, laboratory, desk),
    )
}


def wrong(column: Column, expected: Expected) -> list[str]:
    """What is not as it should be."""
    facts, sort = column_facts(column), sort_of(column)
    out = expected.sort == "out" and sort in ("identifier", "text")
    found = [] if out or expected.sort in ("any", sort) else [f"is {sort}"]
    for key, value in expected.facts.items():
        got = facts.get(key)
        got = list(got) if isinstance(got, tuple) and key != "read_from_rows" else got
        if key == "special" and got:
            got = [v.isoformat() if isinstance(v, date) else v for v in got]
        if got != value:
            found.append(f"{key} = {got!r}")
    return found


def sort_of(column: Column) -> str:
    """The word for what was decided."""
    facts = column_facts(column)
    if "missing" in facts:
        return "incomplete"
    if facts["type"] == "category":
        return "discover" if facts["values"] == "discover" else "list"
    ordered = facts["type"] in ("integer", "number", "date", "datetime")
    cells = (
        facts["type"] == "integer" and {"lower", "upper"} <= facts.keys() and "bins" not in facts
    )
    return "shape" if ordered and not cells else facts["type"]


def rare(schema: Schema, made: Table) -> list[tuple[str, Any]]:
    """Listed values, special values and ends of integers from rows that fewer than 10 rows hold."""
    found: list[tuple[str, Any]] = []
    for column, (name, (cells, _)) in zip(schema.columns, made.items(), strict=True):
        facts = column_facts(column)
        listed = facts.get("values", ()) if facts.get("values") != "discover" else ()
        texts = [str(cell) for cell in cells]
        ends = [facts[key] for key in ("lower", "upper") if key in facts["read_from_rows"]]
        for value in (
            *listed,
            *facts.get("special", ()),
            *(ends if facts["type"] == "integer" else ()),
        ):
            shown = {str(value), str(float(value)) if isinstance(value, int) else ""}
            if sum(text in shown for text in texts) < LEAST and name not in PUBLIC:
                found.append((name, value))
    return found


def write(name: str, folder: Path) -> tuple[Path, Table]:
    """A CSV file of the table, in the manner of its country."""
    made = TABLES[name](np.random.default_rng(7))
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";" if name == "orders" else ",")
        writer.writerow([name or "unnamed" for name in made])
        writer.writerows(zip(*(cells for cells, _ in made.values()), strict=True))
    return path, made

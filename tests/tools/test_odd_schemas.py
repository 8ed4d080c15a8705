"""Odd but legal schemas: a release of each is made, and both verifiers accept it."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.releases.verify import verify
from understudy.schema import Schema

ROWS = 200
RNG = np.random.default_rng(1)
DAYS = [date(2020, 1, 1) + timedelta(days=int(x)) for x in RNG.integers(0, 300, ROWS)]
STAYS = RNG.integers(0, 30, ROWS)
MOMENTS = [datetime(2020, 6, 1, tzinfo=UTC) + timedelta(minutes=m) for m in range(1240, 1440)]
SIZES = RNG.normal(0, 1e5, (3, ROWS))
CENTS = [Decimal(int(x)) / 100 for x in RNG.integers(0, 10**5, ROWS)]
HEAD = "[understudy]\nversion = 1\n"


def column(name, kind, **facts):
    said = "".join(f"{key} = {value}\n" for key, value in facts.items())
    return f'[[column]]\nname = "{name}"\ntype = "{kind}"\n{said}'


def rule(says, more=""):
    return f'[[rule]]\nsays = "{says}"\n{more}\n'


DATED = {"dtype": '"string"', "format": '"%d/%m/%Y"', "lower": "2020-01-01"}
ZONED = {
    "dtype": '"timestamp[us, tz=Europe/Berlin]"',
    "lower": '"2020-06-01T00:00:00"',
    "upper": '"2020-06-02T00:00:00"',
}
EUROS = {"dtype": '"string"', "decimals": 2, "format": '"#.##0,00 €"'}
COMMAS = str.maketrans(",.", ".,")
FAR = {"lower": -1e8, "upper": 1e8, "bins": 2}
CASES = {
    "days as text": (
        column("on", "date", **DATED, upper="2021-01-01", bins='"shape"')
        + column("off", "date", **DATED, upper="2021-03-01", bins=12)
        + column("stay", "integer", lower=-400, upper=500)
        + rule("on <= off")
        + rule("stay = off - on"),
        {
            "on": [day.strftime("%d/%m/%Y") for day in DAYS],
            "off": ["01/03/2021"] * ROWS,
            "stay": STAYS,
        },
    ),
    "days as text, moved": (
        column("on", "date", **DATED, upper="2021-01-01", bins=6)
        + column("stay", "integer", lower=0, upper=30)
        + column("off", "date", **DATED, upper="2021-03-01", bins=12)
        + rule("off = on + stay + 1"),
        {
            "on": [day.strftime("%d/%m/%Y") for day in DAYS],
            "stay": STAYS,
            "off": ["01/03/2021"] * ROWS,
        },
    ),
    "numbers as people write them": (
        column("fee", "number", **EUROS, bins='"shape"')
        + column("tip", "number", **EUROS, lower=0, upper=1000, bins=7, special='["refused"]')
        + column("people", "integer", format='"0.00 Pers."', dtype='"string"', lower=1, upper=9)
        + column("paid", "number", **EUROS, bins='"shape"')
        + rule("paid = fee + 2")
        + column("rent", "integer", format='"₹ #,##,##0"', dtype='"string"', lower=1, upper=10**7)
        + rule("rent > 90000")
        + column("at", "datetime", resolution='"second"', bins='"shape"'),
        {
            "fee": [f"{cents:,.2f} €".translate(COMMAS) for cents in CENTS],
            "tip": ["12,50 €", "refused"] * (ROWS // 2),
            "people": ["4.00 Pers."] * ROWS,
            "rent": ["₹ 1,00,000", "₹ 12,34,567"] * (ROWS // 2),
            "paid": [f"{cents + 2:,.2f} €".translate(COMMAS) for cents in CENTS],
            "at": pa.array([moment.replace(tzinfo=None) for moment in MOMENTS]),
        },
    ),
    "a time zone": (
        column("t", "datetime", **ZONED, bins='"shape"')
        + column("u", "datetime", **ZONED, bins=4)
        + column("half", "category", values='["am", "pm"]')
        + rule("t determines half", 'cuts = ["2020-06-01T22:30:00"]\nvalues = ["am", "pm"]'),
        {
            "t": pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")),
            "u": pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")),
            "half": ["am"] * ROWS,
        },
    ),
    "sums of doubles": (
        column("a", "number", lower=-1e7, upper=1e7)
        + column("b", "number", lower=-1e7, upper=1e7, bins=8)
        + column("c", "number", lower=-1e7, upper=1e7, bins=8)
        + column("s", "number", **FAR)
        + column("text", "number", dtype='"string"', **FAR)
        + column("narrow", "number", dtype='"float32"', **FAR)
        + rule("s = a + b - c")
        + rule("text = a + b - c")
        + rule("narrow = a - c"),
        {**dict(zip("abc", SIZES, strict=True)), **dict.fromkeys(("s", "narrow"), SIZES[0]),
         "text": ["0"] * ROWS},
    ),
    "special values": (
        column("x", "number", dtype='"float32"', special="[0.1, -1]", nullable="true")
        + column("y", "number", lower=-1e9, upper=1e9, bins=4, nullable="true")
        + column("k", "integer", special='["N", 999, 0]', nullable="true", null_values='["?"]')
        + column("m", "category", values='["lo", "hi", "na"]', nullable="true")
        + rule("y = x + 1")
        + rule("x > 100 implies x = 0.1 or k = 'N' or k >= 5 or k < 5 or k is null")
        + rule("k determines m", 'cuts = [10]\nvalues = ["lo", "hi"]\ndefault = "na"'),
        {
            "x": pa.array(np.where(STAYS < 9, 0.1, SIZES[0] / 1e5), pa.float32()),
            "y": SIZES[1],
            "k": (["N", "999", " 7 ", "1e400", "?", "-0", "12", None] * ROWS)[:ROWS],
            "m": ["lo"] * ROWS,
        },
    ),
    "numbers as keys": (
        column("g", "category", values="[0.0, 0.5, 2.0]")
        + column("h", "category", values='["a", "b"]')
        + rule("g determines h", 'mapping = {"0" = "a", "0.5" = "b", "2" = "a"}\nderived = true'),
        {"g": RNG.choice([0.0, 0.5, 2.0], ROWS), "h": ["a"] * ROWS},
    ),
    "decimals": (
        column("m", "number", dtype='"decimal128(12, 2)"', special="[9999.99]")
        + column("q", "number", dtype='"decimal128(12, 2)"', lower=0, upper=1000,
                 bins="{quantiles = 4}")
        + column("z", "number", dtype='"decimal128(20, 2)"', nullable="true", **FAR)
        + column("wide", "integer", lower=-(10**18), upper=10**18)
        + rule("z = m + q"),
        {
            **dict.fromkeys(("m", "q"), pa.array(CENTS, pa.decimal128(12, 2))),
            "z": pa.nulls(ROWS, pa.decimal128(20, 2)),
            "wide": RNG.integers(-(10**18), 10**18, ROWS),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_both_verifiers_accept_it(case, tmp_path):
    schema, rows = CASES[case]
    made = us.release(
        pa.table(rows), Schema.loads(HEAD + schema), epsilon=8, delta=1e-6, method="independent"
    )
    made.save(tmp_path / "made")
    verify(tmp_path / "made").require()  # both were asked, and agree

"""A generated survey about which much is known: what is impossible, ordered, added up or determined."""

import numpy as np
import pyarrow as pa

from understudy.schema import Schema

INDUSTRIES = {f"{i:02d}": "ABCDEFGH"[i // 5] for i in range(40)}
CUTS = (12_000, 24_000, 40_000, 70_000)
BANDS = ("lowest", "low", "middle", "high", "highest")

_COLUMNS = f"""
[understudy]
version = 1

[[column]]
name = "age"
type = "integer"
edges = [0, 3, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 95]

[[column]]
name = "marital"
type = "category"
values = ["N", "never", "married", "divorced", "widowed"]

[[column]]
name = "school"
type = "category"
values = ["N", "none", "primary", "secondary", "higher"]

[[column]]
name = "industry"
type = "category"
values = {[*INDUSTRIES]}
nullable = true

[[column]]
name = "sector"
type = "category"
values = {sorted(set(INDUSTRIES.values()))}
nullable = true

[[column]]
name = "wages"
type = "integer"
edges = [0, 1, 5000, 10000, 15000, 20000, 30000, 40000, 60000, 100000, 200000]

[[column]]
name = "other"
type = "integer"
edges = [0, 1, 1000, 2000, 5000, 10000, 20000, 50000]

[[column]]
name = "income"
type = "integer"
edges = [0, 1, 5000, 10000, 15000, 20000, 30000, 40000, 60000, 100000, 250000]

[[column]]
name = "band"
type = "category"
values = {[*BANDS]}
ordinal = true

[[column]]
name = "rooms"
type = "integer"
lower = 1
upper = 12

[[column]]
name = "bedrooms"
type = "integer"
lower = 0
upper = 8

[[column]]
name = "moved_in"
type = "date"
lower = 2000-01-01
upper = 2023-12-31
bins = 24

[[column]]
name = "asked"
type = "date"
lower = 2020-01-01
upper = 2024-12-31
bins = 20
""".replace("'", '"')

_MAPPING = ", ".join(f'"{code}" = "{sector}"' for code, sector in INDUSTRIES.items())
_RULES = (
    f"""
[[rule]]
says = "age < 15 implies marital = 'N' and industry is null"

[[rule]]
says = "age < 3 implies school = 'N'"

[[rule]]
says = "age >= 15 implies marital <> 'N'"

[[rule]]
says = "industry determines sector"
mapping = {{{_MAPPING}}}
derived = true

[[rule]]
says = "income = wages + other"

[[rule]]
says = "income determines band"
cuts = {[*CUTS]}
values = {[*BANDS]}

[[rule]]
says = "bedrooms <= rooms"

[[rule]]
says = "moved_in < asked"
""".replace("'N'", "§")
    .replace("'", '"')
    .replace("§", "'N'")
)

BARE = Schema.loads(_COLUMNS)
RULED = Schema.loads(_COLUMNS + _RULES)


def survey(rows: int, seed: int = 0) -> pa.Table:
    """Rows that keep all the rules."""
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.gamma(2.2, 18, rows).astype(int), 95)
    grown = age >= 15
    married = rng.random(rows) < np.clip((age - 18) / 20, 0.02, 0.7)
    marital = np.where(married, "married", "never")
    marital = np.where(grown & (rng.random(rows) < age / 600), "divorced", marital)
    marital = np.where((age > 60) & (rng.random(rows) < 0.25), "widowed", marital)
    level = np.clip((age - 3) // 6 + rng.integers(-1, 2, rows), 0, 3)
    school = np.array(["none", "primary", "secondary", "higher"])[level]
    works = grown & (age < 68) & (rng.random(rows) < 0.75)
    industry = rng.integers(0, 40, rows) * rng.integers(0, 40, rows) % 40
    wages = np.where(works, rng.lognormal(10 + level / 6, 0.6, rows), 0).astype(int)
    other = np.where(grown & (rng.random(rows) < 0.3), rng.lognormal(8, 1, rows), 0).astype(int)
    wages, other = np.minimum(wages, 200_000), np.minimum(other, 50_000)
    income = wages + other
    rooms = np.clip(1 + rng.poisson(3, rows), 1, 12)
    asked = rng.integers(0, 5 * 365, rows)
    moved = asked + 7305 - 1 - rng.exponential(1500, rows).astype(int)
    code = np.array([*INDUSTRIES], dtype=object)[industry]
    return pa.table(
        {
            "age": age,
            "marital": np.where(grown, marital, "N"),
            "school": np.where(age < 3, "N", school),
            "industry": pa.array(np.where(works, code, None)),
            "sector": pa.array(
                [INDUSTRIES[c] if w else None for c, w in zip(code, works, strict=True)]
            ),
            "wages": wages,
            "other": other,
            "income": income,
            "band": np.array(BANDS)[np.searchsorted(CUTS, income, side="right")],
            "rooms": rooms,
            "bedrooms": np.minimum(rng.integers(0, 9, rows), rooms - rng.integers(0, 2, rows)).clip(
                0
            ),
            "moved_in": pa.array(np.clip(moved, 0, 8765) + 10957, pa.int32()).cast(pa.date32()),
            "asked": pa.array(asked + 18262, pa.int32()).cast(pa.date32()),
        }
    )

"""Numbers of real tables through whole releases: shapes found privately, against cells cut by hand.

`python -m bench realtables FOLDER [--table kc_house] [--cells shape] [--epsilon 1]`

FOLDER holds `kc_house/data.csv` and `adult_raw/data.csv`, which are public: exact errors may be shown.
The bounds below are what people know without the rows: loose ones for money and land, natural ones for
years, scores and coordinates. `shape` finds the shape between them, `open` without any bounds;
`quantiles` and `bins` cut the same columns at 16 private quantiles or into 64 equal bins. `draft` is
what `schema draft` decides, untouched, and `bounded` the same with the bounds of `DRAFTED`.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

import understudy as us
from understudy.columns import Category
from understudy.draft import draft
from understudy.queries import counts
from understudy.schema import Schema
from understudy.testing import SeededNoise

CUTS = 10
MOST_TABLES = 120
SHAPE = 'bins = "shape"'
CELLS = {"shape": SHAPE, "open": SHAPE, "quantiles": "bins = {quantiles = 16}", "bins": "bins = 64"}
"""How the columns of `NUMBERS` are cut."""
WAYS = [*CELLS, "bounded", "draft"]
DRAFTED = {
    "kc_house": dict.fromkeys(("price", "sqft_lot", "sqft_lot15"), (0, 10**7)),
    "adult_raw": {"capital-gain": (0, 99_999)},
}
"""What a draft does not know, and people do."""
LEFT_OUT = {"date", "zipcode"}
ATOM = 0.005
FEW_VALUES = 14
"""Columns of so many values are compared value by value as well."""

# Column: type, public bounds.
NUMBERS: dict[str, dict[str, tuple[str, float, float]]] = {
    "kc_house": {
        "price": ("number", 0, 10**7),
        "bathrooms": ("number", 0, 20),
        "floors": ("number", 0, 10),
        "sqft_living": ("integer", 0, 100_000),
        "sqft_lot": ("integer", 0, 10**7),
        "sqft_above": ("integer", 0, 100_000),
        "sqft_basement": ("integer", 0, 100_000),
        "yr_built": ("integer", 1850, 2015),
        "yr_renovated": ("integer", 0, 2015),
        "lat": ("number", 47, 48),
        "long": ("number", -123, -121),
        "sqft_living15": ("integer", 0, 100_000),
        "sqft_lot15": ("integer", 0, 10**7),
    },
    "adult_raw": {
        "fnlwgt": ("integer", 0, 2_000_000),
        "capital-gain": ("integer", 0, 99_999),
        "capital-loss": ("integer", 0, 9_999),
    },
}
# Columns of few values keep one cell each; others are dropped.
FEW: dict[str, dict[str, tuple[str, float, float]]] = {
    "kc_house": {
        "bedrooms": ("integer", 0, 20),
        "waterfront": ("integer", 0, 1),
        "view": ("integer", 0, 4),
        "condition": ("integer", 1, 5),
        "grade": ("integer", 1, 13),
    },
    "adult_raw": {
        "age": ("integer", 17, 90),
        "education-num": ("integer", 1, 16),
        "hours-per-week": ("integer", 1, 99),
    },
}
DECIMALS = dict.fromkeys(("bathrooms", "floors"), "decimals = 2\n") | {
    name: f"decimals = {d}\n" for name, d in (("price", 0), ("lat", 4), ("long", 3))
}
TEXTS = {
    "kc_house": [],
    "adult_raw": ["workclass", "marital-status", "occupation", "relationship", "race", "sex", "income"],
}  # fmt: skip


def main(arguments: list[str]) -> None:
    """Release, and print what was lost."""
    parser = argparse.ArgumentParser(prog="python -m bench realtables", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds kc_house/data.csv and adult_raw/data.csv")
    parser.add_argument("--table", choices=list(NUMBERS), action="append")
    parser.add_argument("--cells", choices=WAYS, action="append")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3, help="by the seeded source")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    asked = parser.parse_args(arguments)
    for name in asked.table or NUMBERS:
        file = asked.folder / name / "data.csv"
        rows = csv.read_csv(file)
        for cells in asked.cells or WAYS:
            declared = schema(name, rows, cells) if cells in CELLS else drafted(name, file, cells)
            seeds = range(asked.first, asked.first + asked.runs)
            found = [run(rows, declared, asked.epsilon, seed) for seed in seeds]
            show(f"{name}, {cells}, ε = {asked.epsilon:g}", found)


def schema(name: str, rows: pa.Table, cells: str) -> Schema:
    """The public facts of one table, its numbers cut in one of the ways of `CELLS`."""
    parts = ["[understudy]\nversion = 1\n"]
    texts = TEXTS[name]
    for column in rows.column_names:
        if column in NUMBERS[name]:
            kind, lower, upper = NUMBERS[name][column]
            bounds = "" if cells == "open" else f"lower = {lower}\nupper = {upper}\n"
            more = DECIMALS.get(column, "")
            parts.append(
                f'[[column]]\nname = "{column}"\ntype = "{kind}"\n{bounds}{more}{CELLS[cells]}\n'
            )
        elif column in FEW[name]:
            kind, lower, upper = FEW[name][column]
            cut = f"lower = {lower}\nupper = {upper}\n"
            parts.append(f'[[column]]\nname = "{column}"\ntype = "{kind}"\n{cut}')
        elif column in texts:
            values = sorted({str(v) for v in rows[column].to_pylist()})
            parts.append(f'[[column]]\nname = "{column}"\ntype = "category"\nvalues = {values}\n')
        else:
            parts.append(f'[[column]]\nname = "{column}"\ntype = "identifier"\n')
    return Schema.loads("\n".join(parts))


def drafted(name: str, file: Path, cells: str) -> Schema:
    """The draft of a file, confirmed as it is or with the bounds of `DRAFTED`."""
    text = draft(file).confirm(unit="row").dumps()
    for column, (lower, upper) in DRAFTED[name].items() if cells == "bounded" else ():
        head, rest = text.split(f'name = "{column}"\n')
        text = f'{head}name = "{column}"\nlower = {lower}\nupper = {upper}\n{rest}'
    return Schema.loads(text)


def run(rows: pa.Table, declared: Schema, epsilon: float, seed: int) -> dict[str, Any]:
    """One release, and its errors."""
    start = time.process_time()
    made = us.release(rows, declared, epsilon=epsilon, noise=SeededNoise(seed), key=seed)
    spent = time.process_time() - start
    lists = {column.name for column in declared.columns if isinstance(column, Category)}
    return {"seconds": spent, "rows": made.rows.num_rows, **errors(rows, made.rows, lists)}


def errors(real: pa.Table, made: pa.Table, lists: set[str]) -> dict[str, Any]:
    """Total variation of tables, correlations but of `lists`, and every number."""
    names = [n for n in made.column_names if n not in LEFT_OUT]
    numbers = [n for n in names if pa.types.is_floating(real[n].type) or
               pa.types.is_integer(real[n].type)]  # fmt: skip
    both = {n: (values(real, n), values(made, n)) for n in numbers}
    many = [n for n in numbers if len(np.unique(both[n][0])) > FEW_VALUES]
    found: dict[str, Any] = {}
    for name, degree, cut in (
        ("pairs", 2, numbers),
        ("triples", 3, numbers),
        ("triples by value", 3, many),
    ):
        coded = [_coded(real[n], made[n], n in cut) for n in names]
        found[name] = _apart(coded, degree)
    free = [n for n in numbers if n not in lists]
    for name, turn in (("raw", lambda x: x), ("log", lambda x: np.sign(x) * np.log1p(np.abs(x)))):
        sides = [np.corrcoef([turn(both[n][side]) for n in free]) for side in (0, 1)]
        lost = np.nan_to_num(np.abs(sides[0] - sides[1]), nan=1.0)
        found[name] = float(lost.max())
        found[f"{name}, mean"] = float(lost[np.triu_indices(len(free), 1)].mean())
        found[f"{name} at"] = tuple(free[i] for i in np.unravel_index(lost.argmax(), lost.shape))
    found["columns"] = {n: marginal(*both[n]) for n in numbers}
    return found


def _apart(coded: list[tuple[NDArray[Any], NDArray[Any], int]], degree: int) -> float:
    """The mean total variation of tables of so many columns, of some where there are many."""
    shape = tuple(size for *_, size in coded)
    cliques = list(combinations(range(len(shape)), degree))
    chosen = np.random.default_rng(0).permutation(len(cliques))[:MOST_TABLES]
    cliques = [cliques[i] for i in sorted(chosen)]
    sides = [counts([pair[side] for pair in coded], shape, cliques) for side in (0, 1)]
    shares = [[t / t.sum() for t in side] for side in sides]
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(*shares, strict=True)]))


def marginal(real: NDArray[np.float64], made: NDArray[np.float64]) -> dict[str, float]:
    """How far one column is off: mean and sd relatively, W1 in sd, the worst rank."""
    spread = float(np.std(real)) or 1.0
    points = np.unique(np.concatenate([real, made]))
    ranks = [np.searchsorted(np.sort(x), points, side="right") / len(x) for x in (real, made)]
    apart = np.abs(ranks[0] - ranks[1])
    return {
        "mean": abs(float(np.mean(made) - np.mean(real))) / (abs(float(np.mean(real))) or 1.0),
        "sd": abs(float(np.std(made)) - spread) / spread,
        "W1/sd": float(np.sum(apart[:-1] * np.diff(points))) / spread,
        "rank": float(apart.max()),
        "atoms": max((abs(held - np.mean(made == x)) for x, held in _atoms(real)), default=0.0),
    }


def _atoms(real: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Values that many rows hold, and their shares."""
    found, held = np.unique(real, return_counts=True)
    return [(x, n / len(real)) for x, n in zip(found, held, strict=True) if n >= ATOM * len(real)]


def values(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of numbers, nulls left out."""
    return table[name].drop_null().to_numpy().astype(np.float64)


def _coded(real: Any, made: Any, number: bool) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Codes of both sides: ten true quantiles of numbers, or every value."""
    if number:
        one, two = (x.to_numpy().astype(np.float64) for x in (real, made))
        inner = np.unique(np.quantile(one, np.arange(1, CUTS) / CUTS))
        return *(np.searchsorted(inner, x, side="right") for x in (one, two)), len(inner) + 1
    words = sorted({str(v) for side in (real, made) for v in side.to_pylist()})
    place = {word: at for at, word in enumerate(words)}
    return *(np.array([place[str(v)] for v in x.to_pylist()]) for x in (real, made)), len(words)


def show(title: str, found: list[dict[str, Any]]) -> None:
    """Means of the runs, and in brackets the worst of them."""

    def told(each: list[float]) -> str:
        return f"{np.mean(each):.3f} ({max(each):.3f})"

    whole = ["pairs", "triples", "triples by value", "raw", "raw, mean", "log", "log, mean"]
    spent = np.mean([each["seconds"] for each in found])
    print(f"\n### {title}: {len(found)} runs, {spent:.1f} CPU s\n")
    print("| " + " | ".join(whole) + " |\n|" + "---|" * len(whole))
    print("| " + " | ".join(told([each[key] for each in found]) for key in whole) + " |")
    where = sorted({" and ".join(each[f"{turn} at"]) for each in found for turn in ("raw", "log")})
    print(f"\nThe worst correlations are those of {'; '.join(where)}.")
    kinds = list(next(iter(found[0]["columns"].values())))
    print("\n| column | " + " | ".join(kinds) + " |\n|" + "---|" * (1 + len(kinds)))
    for name in found[0]["columns"]:
        cells = [told([each["columns"][name][key] for each in found]) for key in kinds]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)

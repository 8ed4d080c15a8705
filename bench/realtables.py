"""Numbers of real tables through whole releases: shapes found privately, against cells cut by hand.

`python -m bench realtables FOLDER [--table kc_house] [--cells shape|open|quantiles|bins] [--epsilon 1]`

FOLDER holds `kc_house/data.csv` and `adult_raw/data.csv`, which are public: exact errors may be shown.
The bounds below are what people know without the rows: loose ones for money and land, natural ones for
years, scores and coordinates. `shape` finds the shape between them, `open` without any bounds;
`quantiles` and `bins` cut the same columns at 16 private quantiles or into 64 equal bins.
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
from understudy.queries import counts
from understudy.schema import Schema
from understudy.testing import SeededNoise

CUTS = 10
MOST_TABLES = 120
SHAPE = 'bins = "shape"'
CELLS = {"shape": SHAPE, "open": SHAPE, "quantiles": "bins = {quantiles = 16}", "bins": "bins = 64"}
"""How the columns of `NUMBERS` are cut."""

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
    parser.add_argument("--cells", choices=list(CELLS), action="append")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3, help="by the seeded source 1, 2, ...")
    asked = parser.parse_args(arguments)
    for name in asked.table or NUMBERS:
        rows = csv.read_csv(asked.folder / name / "data.csv")
        for cells in asked.cells or CELLS:
            declared = schema(name, rows, cells)
            found = [run(rows, declared, asked.epsilon, seed + 1) for seed in range(asked.runs)]
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


def run(rows: pa.Table, declared: Schema, epsilon: float, seed: int) -> dict[str, Any]:
    """One release, and its errors."""
    start = time.process_time()
    made = us.release(rows, declared, epsilon=epsilon, noise=SeededNoise(seed), key=seed)
    spent = time.process_time() - start
    return {"seconds": spent, "rows": made.rows.num_rows, **errors(rows, made.rows)}


def errors(real: pa.Table, made: pa.Table) -> dict[str, Any]:
    """Total variation of pairs and triples on true quantiles, correlations, and every number."""
    numbers = [n for n in made.column_names if pa.types.is_floating(real[n].type) or
               pa.types.is_integer(real[n].type)]  # fmt: skip
    both = {n: (values(real, n), values(made, n)) for n in numbers}
    coded = [_coded(real[n], made[n], n in numbers) for n in made.column_names]
    shape = tuple(size for *_, size in coded)
    one, two = ([pair[side] for pair in coded] for side in (0, 1))
    found: dict[str, Any] = {}
    for degree, name in ((2, "pairs"), (3, "triples")):
        cliques = list(combinations(range(len(shape)), degree))
        chosen = np.random.default_rng(0).permutation(len(cliques))[:MOST_TABLES]
        cliques = [cliques[i] for i in sorted(chosen)]
        tables = (counts(codes, shape, cliques) for codes in (one, two))
        shares = [[t / t.sum() for t in side] for side in tables]
        found[name] = float(
            np.mean([np.abs(a - b).sum() / 2 for a, b in zip(*shares, strict=True)])
        )
    many = [n for n in numbers if np.std(both[n][0]) > 0]
    for name, turn in (("raw", lambda x: x), ("log", lambda x: np.sign(x) * np.log1p(np.abs(x)))):
        losses = [np.corrcoef([turn(both[n][side]) for n in many]) for side in (0, 1)]
        found[name] = float(np.nanmax(np.abs(losses[0] - losses[1])))
    found["columns"] = {n: marginal(*both[n]) for n in numbers}
    return found


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
    }


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
    """Medians of the runs."""

    def middle(key: str) -> float:
        return float(np.median([each[key] for each in found]))

    print(f"\n### {title}: {middle('rows'):.0f} rows, {middle('seconds'):.1f} CPU s\n")
    print("| TV of pairs | of triples | worst correlation loss raw | log |\n|---|---|---|---|")
    print(
        "| " + " | ".join(f"{middle(key):.4f}" for key in ("pairs", "triples", "raw", "log")), "|"
    )
    print("\n| column | mean | sd | W1/sd | worst rank |\n|---|---|---|---|---|")
    for name in found[0]["columns"]:
        cells = [
            float(np.median([each["columns"][name][key] for each in found]))
            for key in ("mean", "sd", "W1/sd", "rank")
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.4f}" for cell in cells), "|", flush=True)

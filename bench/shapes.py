"""Numbers with their shape: the ladder against private quantiles and equal bins, column by column.

`python -m bench shapes [FOLDER] [--epsilon 1] [--runs 5] [--rows 20000] [--share 0.2]`

Noise is simulated at the ρ that a release gives: a column gets 5 % of ρ of (ε, 1e-9), all columns of a
table together at most 20 %; half of the rest measures the cells of every column again, as the fit
does. Without FOLDER the columns are generated; FOLDER holds `kc_house/data.csv` and
`adult_raw/data.csv`, which are public, so that exact errors may be shown.

Errors: of the mean over the mean (over sd where it is near zero), of sd, W1 over sd, the worst rank
(Kolmogorov's distance) and the worst share of a value that 0.5 % of the real rows have, or 1 % of the
drawn ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

from understudy.columns.estimate import learned
from understudy.columns.ladder import ROUNDNESS, SHARES, Measured, Scale, finer, first, rounds
from understudy.columns.reading import DAY
from understudy.columns.shape import Shape
from understudy.privacy import planning
from understudy.privacy.budget import Budget

SHARE, MOST = 0.05, 0.20
DELTA = 1e-9
ATOM, INVENTED = 0.005, 0.01
"""Values that so many rows have: of the real ones, of the drawn ones."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column: its points, and what is publicly known of it."""

    name: str
    points: NDArray[Any]
    scale: Scale
    loose: Scale

    @property
    def open(self) -> Scale:
        """Nothing known but the kind of its values."""
        return replace(self.scale, lower=None, upper=None)


Errors = tuple[float, float, float, float, float]
Way = Callable[[Column, float, float, np.random.Generator], NDArray[Any]]


def main(arguments: Sequence[str] = ()) -> None:
    """Print a table for every ε."""
    parser = argparse.ArgumentParser(prog="python -m bench shapes", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.1, 1.0, 10.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", nargs="*", metavar="COLUMN", default=())
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--width", type=int, help="columns that share the 20 %% (all of them)")
    parser.add_argument("--share", type=float, default=MOST, help="of ρ, for all columns")
    chosen = parser.parse_args(list(arguments))
    tables = real(chosen.folder) if chosen.folder else {"generated": list(generated(chosen.rows))}
    for name, columns in tables.items():
        width = chosen.width or (len(columns) if chosen.folder else 8)
        columns = [c for c in columns if not chosen.only or c.name in chosen.only]
        if not columns:
            continue
        for epsilon in chosen.epsilon:
            print(f"\n### {name}, ε = {epsilon:g}, {width} open columns, {chosen.runs} runs\n")
            report(columns, epsilon, width, chosen)


def report(columns: Sequence[Column], epsilon: float, width: int, chosen: Any) -> None:
    """One line a column: the median of runs for each way, and the worst over columns."""
    print(
        "| column | " + " | ".join(chosen.ways) + " |\n|---" * 1 + "|---" * len(chosen.ways) + "|"
    )
    found: dict[str, list[NDArray[np.float64]]] = {way: [] for way in chosen.ways}
    for column in columns:
        cells = []
        for way in chosen.ways:
            middle = np.median(
                runs(column, WAYS[way], epsilon, width, chosen.runs, chosen.share), axis=0
            )
            found[way].append(middle)
            cells.append(show(middle))
        print(f"| {column.name} | " + " | ".join(cells) + " |", flush=True)
    for label, summary in (("worst", np.max), ("median", np.median)):
        cells = [show(summary(found[way], axis=0)) for way in chosen.ways]
        print(f"| **{label}** | " + " | ".join(cells) + " |")


def show(errors: NDArray[np.float64]) -> str:
    """Errors as people read them."""
    return "/".join(f"{e:.3f}".lstrip("0") if e < 9.995 else f"{e:.0f}" for e in errors)


def runs(
    column: Column, way: Way, epsilon: float, width: int, count: int, most: float = MOST
) -> NDArray[np.float64]:
    """Errors of some runs, with noise of fixed seeds."""
    rho = float(planning.rho_for(Budget.of(epsilon, DELTA)))
    share = min(most / MOST * SHARE, most / width)
    again = (1 - share * width) * rho / 2 / width
    seed = [ord(letter) for letter in column.name]
    drawn = (
        way(column, share * rho, again, np.random.default_rng([*seed, run])) for run in range(count)
    )
    return np.array([errors(column.points, points) for points in drawn])


def errors(real: NDArray[Any], drawn: NDArray[Any]) -> Errors:
    """How far drawn points are from the real ones."""
    a, b = np.sort(real.astype(np.float64)), np.sort(drawn.astype(np.float64))
    mean, sd = a.mean(), max(a.std(), 1e-300)
    at = np.unique(np.concatenate([a, b]))
    ranks = np.searchsorted(a, at, side="right") / len(a)
    others = np.searchsorted(b, at, side="right") / len(b)
    gap = np.abs(ranks - others)
    w1 = float(np.sum(gap[:-1] * np.diff(at)))
    shares = np.diff(ranks, prepend=0.0), np.diff(others, prepend=0.0)
    heavy = (shares[0] >= ATOM) | (shares[1] >= INVENTED)
    atom = float(np.max(np.abs(shares[0] - shares[1])[heavy], initial=0.0))
    scale = abs(mean) if abs(mean) > 0.1 * sd else sd
    return (
        float(abs(b.mean() - mean) / scale),
        float(abs(b.std() - sd) / sd),
        w1 / sd,
        float(gap.max()),
        atom,
    )


def noisy(counts: NDArray[Any], rho: float, rng: np.random.Generator) -> Measured:
    """Counts with Gaussian noise that costs so much ρ."""
    sigma = (2 * rho) ** -0.5
    return Measured((), counts + np.rint(rng.normal(0.0, sigma, len(counts))), sigma)


def ladder(scale: Scale, points: NDArray[Any], rho: float, rng: np.random.Generator) -> Shape:
    """The shape that a release would find."""
    inside = np.clip(points, scale.low, scale.high)
    history: list[Measured] = []
    for share in SHARES:
        edges = finer(scale, history) if history else first(scale)
        at = np.array([scale.point(edge) for edge in edges])
        cells = np.searchsorted(at, inside, side="right") - 1
        counts = np.bincount(cells, minlength=len(at) - 1)
        history.append(replace(noisy(counts, rho * share, rng), edges=edges))
    table, form = None, rounds(scale)
    if form is not None:
        at = np.array([scale.point(edge) for edge in form.edges])
        cells = np.searchsorted(at, inside, side="right") - 1
        classes = form.kinds.classes
        codes = cells * classes + form.kinds.of(inside)
        counts = np.bincount(codes, minlength=(len(at) - 1) * classes)
        table = noisy(counts, rho * ROUNDNESS, rng)
    return learned(scale, history, table, len(points))


def by_ladder(known: Callable[[Column], Scale]) -> Way:
    """The ladder with what is known: bounds, loose bounds or none."""

    def drawn(column: Column, rho: float, again: float, rng: np.random.Generator) -> NDArray[Any]:
        shape = ladder(known(column), column.points, rho, rng)
        lows = np.array(shape.leaves)[list(shape.starts)]
        cells = np.maximum(np.searchsorted(lows, column.points, side="right") - 1, 0)
        return shape.draw(remeasured(cells, len(lows), again, len(cells), rng), rng)

    return drawn


def remeasured(
    cells: NDArray[Any], count: int, rho: float, rows: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Cells of so many rows, by a noisy count of the real ones."""
    counts = np.maximum(noisy(np.bincount(cells, minlength=count), rho, rng).counts, 0.0)
    reached = np.cumsum(counts) / counts.sum() if counts.any() else np.linspace(0, 1, count + 1)[1:]
    return np.minimum(
        np.searchsorted(reached, (np.arange(rows) + 0.5) / rows, side="right"), count - 1
    )


def by_quantiles(
    column: Column, rho: float, again: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Sixteen private quantiles between the bounds, from 256 equal cells."""
    low, high = column.scale.low, column.scale.high
    edges = np.linspace(low, high, 257)
    if column.scale.discrete:
        edges = np.unique(np.rint(edges))
    fine = np.clip(np.searchsorted(edges, column.points, side="right") - 1, 0, len(edges) - 2)
    sums = np.cumsum(noisy(np.bincount(fine, minlength=len(edges) - 1), rho, rng).counts)
    reached = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2
    wanted = reached[-1] * np.arange(1, 16) / 16
    right = np.minimum(np.searchsorted(reached, wanted), len(reached) - 1)
    left = np.maximum(right - 1, 0)
    nearer = np.abs(reached[left] - wanted) <= np.abs(reached[right] - wanted)
    cuts = {int(i) + 1 for i in np.where(nearer, left, right)} | {0, len(edges) - 1}
    return evenly(column, edges[sorted(cuts)], again, rng)


def by_bins(column: Column, rho: float, again: float, rng: np.random.Generator) -> NDArray[Any]:
    """64 equal bins between the bounds."""
    edges = np.linspace(column.scale.low, column.scale.high, 65)
    return evenly(column, np.unique(np.rint(edges)) if column.scale.discrete else edges, again, rng)


def evenly(
    column: Column, edges: NDArray[Any], again: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Points drawn evenly inside cells, as columns without a shape are decoded."""
    cells = np.clip(np.searchsorted(edges, column.points, side="right") - 1, 0, len(edges) - 2)
    cells = remeasured(cells, len(edges) - 1, again, len(cells), rng)
    last = cells == len(edges) - 2
    width = edges[cells + 1] - edges[cells] + (last if column.scale.discrete else 0)
    drawn = edges[cells] + rng.random(len(cells)) * width
    return np.floor(drawn) if column.scale.discrete else drawn


WAYS: dict[str, Way] = {
    "bounds": by_ladder(lambda column: column.scale),
    "loose": by_ladder(lambda column: column.loose),
    "open": by_ladder(lambda column: column.open),
    "q16": by_quantiles,
    "b64": by_bins,
}


def generated(rows: int) -> Iterator[Column]:
    """Columns of many kinds, always the same."""
    rng = np.random.default_rng(20)
    whole = lambda x: np.rint(x).astype(np.int64)  # noqa: E731
    cents = Fraction(1, 100)

    def column(name: str, points: Any, low: Any, high: Any, loose: Any, **form: Any) -> Column:
        tight, wide = Scale(low, high, **form), Scale(*loose, **form)
        return Column(name, np.clip(points, tight.low, tight.high), tight, wide)

    normal, some = rng.standard_normal, rng.random
    price = whole(np.exp(13 + 0.5 * normal(rows)) / 500) * 500
    yield column("prices", price, 0, 5_000_000, (0, 10**8))
    lots = whole(np.exp(9 + 0.9 * normal(rows)) * (1 + 20 * (some(rows) < 0.01)))
    yield column("lots", lots, 0, 2_000_000, (0, 10**8))
    yield column("lognormal", whole(np.exp(8 + 1.3 * normal(rows))), 0, 10**6, (0, 10**8))
    yield column("pareto 2.5", whole(1000 * some(rows) ** (-1 / 2.5)), 0, 10**5, (0, 10**7))
    yield column("pareto 1.5", whole(1000 * some(rows) ** (-1 / 1.5)), 0, 10**6, (0, 10**8))
    income = np.where(some(rows) < 0.3, 0, np.exp(10.3 + 0.8 * normal(rows)))
    income = np.where(some(rows) < 0.6, np.rint(income / 1000) * 1000, income)
    yield column("incomes, spike at 0", whole(income), 0, 10**6, (0, 10**8))
    gain = np.where(some(rows) < 0.92, 0, np.exp(8.6 + 0.7 * normal(rows)))
    gain = np.where(some(rows) < 0.005, 99_999, gain)
    gain = np.where(some(rows) < 0.01, 7_298, np.where(some(rows) < 0.01, 15_024, gain))
    yield column("gains with atoms", whole(gain), 0, 99_999, (0, 10**7))
    balance = np.where(some(rows) < 0.3, -1, 1) * np.exp(7 + normal(rows))
    yield column("balances", whole(balance), -100_000, 500_000, (-(10**7), 10**7))
    yield column("normal", 3 * normal(rows) - 1, -20.0, 20.0, (-1e4, 1e4), grid=None)
    yield column("shares", rng.beta(2, 5, rows), 0.0, 1.0, (0.0, 100.0), grid=None)
    age = np.clip(whole(45 + 17 * normal(rows)), 18, 95)
    age = np.where(some(rows) < 0.25, age // 5 * 5, age)
    yield column("heaped ages", age, 0, 120, (0, 1000))
    hours = np.where(some(rows) < 0.5, 40, np.clip(whole(40 + 13 * normal(rows)), 1, 99))
    yield column("hours", hours, 0, 100, (0, 168))
    yield column("children", rng.poisson(1.2, rows), 0, 20, (0, 1000))
    visits = whole(rng.gamma(0.6, 8, rows))
    yield column("visits with 999", np.where(some(rows) < 0.04, 999, visits), 0, 999, (0, 10**5))
    cheap = np.floor(np.exp(2.5 + 0.9 * normal(rows))) * 100
    cheap += np.where(some(rows) < 0.6, 99, rng.integers(0, 100, rows))
    yield column("prices .99", whole(cheap), 0.0, 1000.0, (0.0, 1e6), grid=cents)
    year = 2015 - np.minimum(whole(rng.gamma(2, 22, rows)), 115)
    yield column("years", year, 1900, 2015, (1800, 2100))
    redone = np.where(some(rows) < 0.95, 0, 2015 - whole(rng.gamma(1, 20, rows)))
    yield column("years or 0", np.maximum(redone, 0), 0, 2015, (0, 10**5))
    where = np.where(some(rows) < 0.6, 47.6 + 0.05 * normal(rows), 47.35 + 0.1 * normal(rows))
    degrees = {"grid": Fraction(1, 10_000)}
    yield column("degrees", whole(where * 10_000), 47.0, 48.0, (-90.0, 90.0), **degrees)
    west = whole(-122_400 + rng.gamma(2, 100, rows))
    degrees = {"grid": Fraction(1, 1000)}
    yield column("negative degrees", west, -123.0, -121.0, (-180.0, 180.0), **degrees)
    day = 16_000 + whole(rng.beta(2, 3, rows) * 900) // 7 * 7 + rng.integers(0, 5, rows)
    days = {"calendar": DAY, "grid": Fraction(1)}
    close = (date(2013, 1, 1), date(2016, 12, 31))
    yield column("days", day, *close, (date(1950, 1, 1), date(2050, 12, 31)), **days)
    born = whole(3000 + 6500 * normal(rows))
    born = np.where(some(rows) < 0.05, -25_567, born)  # 1900-01-01
    whole_years = (date(1900, 1, 1), date(2025, 12, 31))
    yield column("births", born, *whole_years, (date(1800, 1, 1), date(2100, 1, 1)), **days)
    land = np.exp(8.9 + 0.8 * normal(rows))
    land *= np.where(some(rows) < 0.02, np.exp(1.5 + np.abs(normal(rows))), 1)
    acres = np.where(some(rows) < 0.4, 217_800, 43_560)  # five, or one
    land = np.where(some(rows) < 0.02, acres, land)
    yield column("land, acres", whole(land), 0, 3_000_000, (0, 10**8))
    few = np.unique(whole(np.exp(rng.uniform(5, 11, 70))))
    often = 1 / np.arange(1, len(few) + 1)
    gain = rng.choice(rng.permutation(few), rows, p=often / often.sum())
    gain = np.where(some(rows) < 0.9, 0, np.where(some(rows) < 0.05, 99_999, gain))
    yield column("few gains", gain, 0, 99_999, (0, 10**7))
    rooms = np.clip(whole(8.4 + 3.2 * normal(rows)), 2, 32) * 25
    yield column("quarters", rooms, 0.0, 20.0, (0.0, 1000.0), grid=cents)
    claim = whole(400 * some(rows) ** (-1 / 1.9))
    claim = np.where(some(rows) < 0.1, 500, np.where(some(rows) < 0.06, 1000, claim))
    yield column("claims", claim, 0, 500_000, (0, 10**8))


# Column: bounds that people know without the rows, decimals.
KNOWN: dict[str, dict[str, tuple[float, float, int]]] = {
    "kc_house": {
        "price": (0, 10**7, 0), "sqft_living": (0, 10**5, 0), "sqft_lot": (0, 10**7, 0),
        "sqft_above": (0, 10**5, 0), "sqft_basement": (0, 10**5, 0), "yr_built": (1900, 2015, 0),
        "yr_renovated": (0, 2015, 0), "lat": (47, 48, 4), "long": (-123, -121, 3),
        "sqft_living15": (0, 10**5, 0), "sqft_lot15": (0, 10**7, 0), "bedrooms": (0, 50, 0),
        "bathrooms": (0, 20, 2), "floors": (1, 5, 1), "zipcode": (98000, 98199, 0),
    },
    "adult_raw": {
        "age": (0, 120, 0), "fnlwgt": (0, 10**7, 0), "capital-gain": (0, 99_999, 0),
        "capital-loss": (0, 99_999, 0), "hours-per-week": (0, 99, 0),
    },
}  # fmt: skip


def real(folder: Path) -> dict[str, list[Column]]:
    """Columns of the public tables in a folder."""
    tables = {}
    for name, known in KNOWN.items():
        table = csv.read_csv(folder / name / "data.csv")
        columns = []
        for key, (low, high, decimals) in known.items():
            values = table[key].to_numpy().astype(np.float64)
            points = np.rint(values * 10**decimals).astype(np.int64)
            grid = Fraction(1, 10**decimals)
            bounds = (low, high) if decimals == 0 else (float(low), float(high))
            wide = (min(10 * bounds[0], 0), 10 * bounds[1]) if high > 0 else (10 * bounds[0], 0)
            columns.append(Column(key, points, Scale(*bounds, grid), Scale(*wide, grid)))
        tables[name] = columns
    return tables

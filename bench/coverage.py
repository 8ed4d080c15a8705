"""How often intervals of `estimate` hold the truth: whole releases of samples from known populations.

`python -m bench coverage FILE --adult CSV --processes 16 --repetitions 200 60 --into docs/estimate.md`

Every repetition draws n rows from a population, releases them with real noise, and asks for each
statistic with both targets. The truth of a population is computed on all of its rows, of which samples
are drawn with replacement, so it is exact. A line of JSON is appended to FILE for each release: a run
that was interrupted goes on where it was, with any number of processes. All combinations of
population, n and ε advance together, so that FILE can be reported at any time. The repetitions are
those of a combination at n = 2,000 and at n = 20,000. `--into` writes the tables into a page when all
is done, `--report` from FILE as it is. `--seeded` takes the noise of tests, where the real source is
not there. Releases that are kept are read again: with another FILE and `--kept-only`, what was
released is judged anew. Each release has a ledger of its own in the folder for temporary files: with
`TMPDIR=/dev/shm` processes do not wait for a disk.

Five kinds of populations of 14 columns are generated: Gaussian copulas, latent classes, Bayesian
networks with skewed tables, numbers that people round, whose bins are found privately, and `reported`,
copulas whose numbers are told round, in declared bins that are wide. Of each kind there are four, drawn
at random, which repetitions take in turn. None was used to choose a constant of
the estimator. Of latent classes and rounded numbers the number of rows is private. `--adult` adds the
rows of a CSV file of the UCI's Adult. In the generated ones `free_a` and `free_b` are
independent of everything, and of `e1`, `e2`, `e3` pairs show nothing, but all three together a strong
dependence (parity). `triples` are copulas with six of their columns and the workload `marginals:3`,
so that a certified marginal holds that dependence.

`--calibration` takes six others instead: on all of them it was chosen what is missed of pairs that were
measured, on `curved`, `heavy` and `sorts` that bounds of different kinds add up as squares; `rounded`
showed what a number in a single bin tells of its spread, `stepped` what wide bins hide where densities
jump or have a heap, and `stated` what they hide where numbers are told round.

*Naive* is what people do: the synthetic rows taken as data, with the textbook's interval.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import multiprocessing
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from scipy.stats import chi2_contingency

import understudy as us
from understudy.estimates import Estimate, Own
from understudy.schema import Schema
from understudy.testing import SeededNoise

Array = NDArray[Any]
Data = Mapping[str, Array]
ROWS = (2_000, 20_000)
EPSILONS = ("0.1", "0.5", "1")
SIZE = 200_000
DRAWS = 4
"""Populations of each kind."""
SEED = 20261137
Z = 1.959963984540054
KINDS = (
    *("share of 1", "share of 2", "share of 3", "mean", "group mean", "difference", "median"),
    *("quantile", "correlation", "odds ratio", "ols", "logit", "gini", "own function"),
    *("parity", "parity in a marginal"),
)


# -- statistics ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A statistic: what it is called, how `estimate` is asked for it, and what it is on plain rows.

    `plain` gives (value, half width of the textbook's 95 % interval), for each number that is asked
    for; in logarithms where `log` is set. `picked` says which of several estimates are meant.
    """

    kind: str
    text: str | Own
    plain: Callable[[Data], list[tuple[float, float]]]
    picked: tuple[int, ...] = (0,)
    log: bool = False


def _named(column: str) -> str:
    """A name as questions write it."""
    return column if column.isidentifier() else f'"{column}"'


def _of(values: float, influence: Array) -> tuple[float, float]:
    return float(values), float(Z * influence.std() / math.sqrt(influence.size))


def share(kind: str, text: str, *equal: tuple[str, str]) -> Asked:
    """Of rows with these values."""

    def plain(data: Data) -> list[tuple[float, float]]:
        held = np.logical_and.reduce([data[name] == value for name, value in equal])
        return [_of(held.mean(), held.astype(float))]

    return Asked(kind, text, plain)


def mean(column: str) -> Asked:
    """Of a number."""
    return Asked(
        "mean", f"mean({_named(column)})", lambda data: [_of(data[column].mean(), data[column])]
    )


def _within(x: Array, held: Array) -> tuple[float, Array]:
    part = held.mean()
    value = x[held].mean() if part else math.nan
    return value, np.where(held, x - value, 0.0) / part if part else np.full(x.size, math.nan)


def group_mean(column: str, group: str, value: str) -> Asked:
    """Of a number, where a column has a value."""
    return Asked(
        "group mean",
        f"mean({_named(column)}) where {group} = '{value}'",
        lambda data: [_of(*_within(data[column], data[group] == value))],
    )


def difference(column: str, group: str, first: str, second: str) -> Asked:
    """Of the means of two groups."""

    def plain(data: Data) -> list[tuple[float, float]]:
        one, two = (_within(data[column], data[group] == value) for value in (first, second))
        return [_of(two[0] - one[0], two[1] - one[1])]

    return Asked("difference", f"difference(mean({_named(column)}) by {group})", plain)


def quantile(column: str, at: float = 0.5) -> Asked:
    """Of a number; the interval is that of the order statistics."""

    def plain(data: Data) -> list[tuple[float, float]]:
        x = np.sort(data[column])
        off = Z * math.sqrt(x.size * at * (1 - at))
        low, high = (int(np.clip(x.size * at + way * off, 0, x.size - 1)) for way in (-1, 1))
        value = float(np.quantile(x, at))
        return [(value, max(x[high] - value, value - x[low]))]

    if at == 0.5:
        return Asked("median", f"median({_named(column)})", plain)
    return Asked("quantile", f"quantile({_named(column)}, {at})", plain)


def ratio(one: str, other: str) -> Asked:
    """Of the means of two numbers, as a function of one's own."""

    def value(frame: Mapping[str, Array], weights: Array) -> float:
        return float(weights @ frame[one] / (weights @ frame[other]))

    def plain(data: Data) -> list[tuple[float, float]]:
        x, y = data[one], data[other]
        found = x.mean() / y.mean()
        return [_of(found, (x - found * y) / y.mean())]

    return Asked("own function", us.statistic(value, columns=[one, other]), plain)


def correlation(one: str, other: str) -> Asked:
    """Of two numbers."""

    def plain(data: Data) -> list[tuple[float, float]]:
        x, y = ((data[name] - data[name].mean()) / data[name].std() for name in (one, other))
        r = (x * y).mean()
        return [_of(r, x * y - r * (x**2 + y**2) / 2)]

    return Asked("correlation", f"correlation({_named(one)}, {_named(other)})", plain)


def odds(one: tuple[str, str], other: tuple[str, str]) -> Asked:
    """The odds ratio of two conditions."""

    def plain(data: Data) -> list[tuple[float, float]]:
        a, b = data[one[0]] == one[1], data[other[0]] == other[1]
        counts = np.array([(x & y).sum() for x in (a, ~a) for y in (b, ~b)], float)
        counts = np.maximum(counts, 0.5)
        value = math.log(counts[0] * counts[3] / (counts[1] * counts[2]))
        return [(value, Z * math.sqrt((1 / counts).sum()))]

    text = f"odds({one[0]} = '{one[1]}', {other[0]} = '{other[1]}')"
    return Asked("odds ratio", text, plain, log=True)


def _design(data: Data, number: str, category: str, base: str) -> tuple[Array, int]:
    """Intercept, a number, and a column for each value but the base; one at least, if of nobody."""
    x, values = data[number], sorted(set(np.unique(data[category])) - {base}) or [None]
    parts = [np.ones(x.size), x, *((data[category] == value).astype(float) for value in values)]
    return np.column_stack(parts), len(values)


def ols(outcome: str, number: str, category: str, base: str) -> Asked:
    """The coefficients of a number and of the first value after the base."""

    def plain(data: Data) -> list[tuple[float, float]]:
        design, _ = _design(data, number, category, base)
        gram = np.linalg.pinv(design.T @ design / len(design))
        beta = gram @ (design.T @ data[outcome]) / len(design)
        influence = (design * (data[outcome] - design @ beta)[:, None]) @ gram
        return [_of(beta[k], influence[:, k]) for k in (1, 2)]

    text = f"ols({outcome} ~ {_named(number)} + C({category}, '{base}'))"
    return Asked("ols", text, plain, (1, 2))


def logit(outcome: tuple[str, str], number: str, category: str, base: str) -> Asked:
    """The same of a logistic regression."""

    def plain(data: Data) -> list[tuple[float, float]]:
        design, _ = _design(data, number, category, base)
        scale = np.maximum(np.abs(design).max(axis=0), 1e-12)
        design = design / scale
        y = (data[outcome[0]] == outcome[1]).astype(float)
        beta, inverse = np.zeros(design.shape[1]), np.eye(design.shape[1])
        for _ in range(50):
            p = 1 / (1 + np.exp(-design @ beta))
            inverse = np.linalg.pinv((design * (p * (1 - p))[:, None]).T @ design / len(y))
            step = inverse @ (design.T @ (y - p)) / len(y)
            beta += np.clip(step, -5, 5)
            if np.abs(step).max() < 1e-9:
                break
        p = 1 / (1 + np.exp(-design @ beta))
        influence = (design * (y - p)[:, None]) @ inverse / scale
        return [_of(beta[k] / scale[k], influence[:, k]) for k in (1, 2)]

    text = f"logit({outcome[0]} = '{outcome[1]}' ~ {number} + C({category}, '{base}'))"
    return Asked("logit", text, plain, (1, 2))


def gini(column: str) -> Asked:
    """Gini's coefficient."""

    def plain(data: Data) -> list[tuple[float, float]]:
        x = np.sort(data[column])
        mu, below = x.mean(), np.cumsum(x) / x.size
        apart = x * (2 * (np.arange(x.size) + 1) / x.size - 1) + mu - 2 * below
        value = apart.mean() / (2 * mu)
        return [_of(value, (apart - apart.mean()) / mu - value * (x - mu) / mu)]

    return Asked("gini", f"gini({_named(column)})", plain)


# -- populations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A column of numbers: its bounds, and its bins; None where they are found privately."""

    lower: float
    upper: float
    bins: int | None
    decimals: int | None = None

    def toml(self, name: str) -> str:
        """The column in a schema."""
        text = f'[[column]]\nname = "{name}"\ntype = "number"\nlower = {self.lower}\n'
        text += f"upper = {self.upper}\n"
        text += "" if self.decimals is None else f"decimals = {self.decimals}\n"
        return text + ("" if self.bins is None else f"bins = {self.bins}\n")


@dataclass(frozen=True, eq=False)
class Population:
    """Rows to draw from with replacement, what is public about them, and what is asked."""

    name: str
    rows: Data
    numbers: Mapping[str, Number]
    asked: tuple[Asked, ...]
    free: tuple[tuple[str, str], ...]
    bound: tuple[tuple[str, str], ...]
    rows_public: bool = True
    workload: str = "marginals:2"

    @cached_property
    def schema(self) -> Schema:
        """Of its tables."""
        parts = ["[understudy]\nversion = 1\n"]
        for name, values in self.rows.items():
            if name in self.numbers:
                parts.append(self.numbers[name].toml(name))
            else:
                listed = json.dumps([str(value) for value in np.unique(values)])
                parts.append(f'[[column]]\nname = "{name}"\ntype = "category"\nvalues = {listed}\n')
        return Schema.loads("\n".join(parts))

    @cached_property
    def truths(self) -> list[list[tuple[float, float]]]:
        """Of every statistic."""
        return [each.plain(self.rows) for each in self.asked]

    def drawn(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """A sample of n rows."""
        taken = rng.integers(0, len(next(iter(self.rows.values()))), n)
        return {name: values[taken] for name, values in self.rows.items()}


PARITY = share(
    "parity", "share(e1 = 'v1' and e2 = 'v1' and e3 = 'v1')", *((f"e{k}", "v1") for k in (1, 2, 3))
)
STANDARD = (
    share("share of 1", "share(region = 'v1')", ("region", "v1")),
    share("share of 2", "share(smoker = 'v1' and sex = 'v0')", ("smoker", "v1"), ("sex", "v0")),
    share(
        "share of 3",
        "share(education = 'v1' and smoker = 'v1' and sex = 'v0')",
        ("education", "v1"),
        ("smoker", "v1"),
        ("sex", "v0"),
    ),
    mean("income"),
    mean("age"),
    group_mean("income", "sex", "v0"),
    difference("income", "smoker", "v0", "v1"),
    quantile("age"),
    quantile("income"),
    quantile("income", 0.9),
    correlation("age", "income"),
    correlation("age", "hours"),
    odds(("smoker", "v1"), ("insured", "v1")),
    ols("income", "age", "sex", "v0"),
    logit(("insured", "v1"), "age", "smoker", "v0"),
    gini("income"),
    ratio("income", "hours"),
    PARITY,
)  # fmt: skip


FREE = (
    *(("free_a", "free_b"), ("free_a", "sex"), ("free_b", "job")),
    *(("e1", "region"), ("e2", "age"), ("e1", "e2")),
)


def _words(codes: Array) -> Array:
    return np.array([f"v{k}" for k in range(int(codes.max()) + 1)])[codes]


def _cut(x: Array, *shares: float) -> Array:
    """Values by quantiles: as many as shares, and one."""
    return _words(np.searchsorted(np.quantile(x, np.cumsum(shares)), x))


def _beside(rng: np.random.Generator) -> dict[str, Array]:
    """Columns that are independent of all others, and three bits of which the sum is mostly even."""
    bits = rng.integers(0, 2, (2, SIZE))
    third = (bits[0] ^ bits[1]) ^ (rng.random(SIZE) < 0.1)
    free = {"free_a": rng.choice(3, SIZE, p=[0.6, 0.3, 0.1]), "free_b": rng.choice(4, SIZE)}
    found = {**free, "e1": bits[0], "e2": bits[1], "e3": third.astype(np.int64)}
    return {name: _words(codes) for name, codes in found.items()}


def _generated(
    name: str, rows: dict[str, Array], numbers: Mapping[str, Number], seed: int
) -> Population:
    rng = np.random.default_rng(seed)
    order = ("income", "age", "hours", "region", "education", "sex", "smoker", "insured", "job")
    held = {key: rows[key] for key in order} | _beside(rng)
    public = name not in ("latent", "heaped")
    return Population(name, held, numbers, STANDARD, FREE, (("smoker", "insured"),), public)


BINNED = {
    "income": Number(0, 250_000, 20),
    "age": Number(15, 95, 16),
    "hours": Number(0, 80, 10),
}


def copula(draw: int = 0) -> Population:
    """A Gaussian copula with three factors, cut to categories or turned into numbers."""
    rng = np.random.default_rng([9721, draw])
    loads = rng.normal(0, 0.6, (9, 3))
    z = rng.normal(size=(SIZE, 3)) @ loads.T + rng.normal(0, 0.7, (SIZE, 9))
    z /= z.std(axis=0)
    rows = {
        "income": np.clip(np.exp(10.2 + 0.7 * z[:, 0]), 0, 249_999),
        "age": np.clip(45 + 15 * z[:, 1], 15, 94.9),
        "hours": np.clip(36 + 10 * z[:, 2], 0, 79.9),
        "region": _cut(z[:, 3], 0.35, 0.25, 0.2, 0.15),
        "education": _cut(z[:, 4], 0.2, 0.4, 0.3),
        "sex": _cut(z[:, 5], 0.52),
        "smoker": _cut(z[:, 6], 0.75),
        "insured": _cut(z[:, 7], 0.3),
        "job": _cut(z[:, 8], 0.3, 0.25, 0.2, 0.15, 0.07),
    }
    return _generated("copula", rows, BINNED, 21)


def triples(draw: int = 0) -> Population:
    """Six columns of the copula, and what three of them show only together in the workload."""
    whole = copula(draw)
    rows = {name: whole.rows[name] for name in ("region", "sex", "smoker", "e1", "e2", "e3")}
    asked = (replace(PARITY, kind="parity in a marginal"),)
    return Population("triples", rows, {}, asked, (), (), workload="marginals:3")


def latent(draw: int = 0) -> Population:
    """Six latent classes, within which columns are independent."""
    rng = np.random.default_rng([9722, draw])
    kind = rng.choice(6, SIZE, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])

    def category(size: int) -> Array:
        law = rng.dirichlet(np.full(size, 0.8), 6).cumsum(axis=1)
        return _words((rng.random(SIZE)[:, None] > law[kind][:, :-1]).sum(axis=1))

    center = rng.uniform(9.5, 11.2, 6), rng.uniform(28, 70, 6), rng.uniform(15, 50, 6)
    rows = {
        "income": np.clip(np.exp(center[0][kind] + 0.4 * rng.normal(size=SIZE)), 0, 249_999),
        "age": np.clip(center[1][kind] + 7 * rng.normal(size=SIZE), 15, 94.9),
        "hours": np.clip(center[2][kind] + 6 * rng.normal(size=SIZE), 0, 79.9),
    }
    sizes = {"region": 5, "education": 4, "sex": 2, "smoker": 2, "insured": 2, "job": 6}
    return _generated("latent", rows | {name: category(k) for name, k in sizes.items()}, BINNED, 22)


def network(draw: int = 0) -> Population:
    """A Bayesian network: each column has up to two parents, and skewed tables given them."""
    rng = np.random.default_rng([9723, draw])
    sizes = {"sex": 2, "age": 8, "region": 5, "education": 4, "job": 6, "hours": 5, "income": 10}
    sizes |= {"smoker": 2, "insured": 2}
    codes: dict[str, Array] = {}
    for name, size in sizes.items():
        parents = list(rng.permutation(list(codes))[:2])
        shape = tuple(sizes[parent] for parent in parents)
        # A shared skew, bent by each parent's value: dependence that pairs see, and some beyond.
        base = rng.normal(0, 0.9, size)
        table = np.exp(base + rng.normal(0, 0.35, (*shape, size)) + sum(
            np.expand_dims(rng.normal(0, 0.6, (sizes[parent], size)),
                           tuple(k for k in range(len(shape)) if k != axis))
            for axis, parent in enumerate(parents)
        ))  # fmt: skip
        law = (table / table.sum(axis=-1, keepdims=True)).cumsum(axis=-1)
        given = law[tuple(codes[parent] for parent in parents)] if parents else law[None]
        codes[name] = (rng.random(SIZE)[:, None] > given[:, :-1]).sum(axis=1)
    rows: dict[str, Array] = {name: _words(held) for name, held in codes.items()}
    within = rng.random((3, SIZE))
    rows["income"] = 5_000 * np.exp(0.36 * (codes["income"] + within[0] ** 1.3))
    rows["age"] = 16 + 9.5 * (codes["age"] + within[1])
    rows["hours"] = 15.5 * (codes["hours"] + within[2] ** 0.8)
    return _generated("network", rows, BINNED, 23)


def heaped(draw: int = 0) -> Population:
    """Numbers that people round, of which no bins are known, and categories that follow from them."""
    rng = np.random.default_rng([9724, draw])
    age = np.rint(np.clip(18 + 60 * rng.beta(1.6, 2.2, SIZE), 18, 90))
    tens = rng.random(SIZE) < 0.25
    age = np.where(tens, 5 * np.rint(age / 5), age)
    pay = np.exp(9.3 + 0.035 * age - 0.0003 * age**2 + 0.65 * rng.normal(size=SIZE))
    step = rng.choice([1.0, 100.0, 1000.0, 5000.0], SIZE, p=[0.2, 0.25, 0.35, 0.2])
    income = np.where(rng.random(SIZE) < 0.06, 0.0, step * np.rint(pay / step))
    hours = np.where(
        rng.random(SIZE) < 0.45, 40.0, np.clip(np.rint(30 + 12 * rng.normal(size=SIZE)), 0, 80)
    )
    level = np.log(income + 3000) - 10 + 0.5 * rng.normal(size=SIZE)
    rows = {
        "income": np.clip(income, 0, 250_000),
        "age": age,
        "hours": hours,
        "region": _cut(0.3 * level + rng.normal(size=SIZE), 0.4, 0.25, 0.2, 0.1),
        "education": _cut(level + 0.8 * rng.normal(size=SIZE), 0.25, 0.35, 0.25),
        "sex": _cut(0.5 * hours / 12 + rng.normal(size=SIZE), 0.5),
        "smoker": _cut(-0.4 * level + 0.02 * age + rng.normal(size=SIZE), 0.7),
        "insured": _cut(0.6 * level + 0.03 * age + rng.normal(size=SIZE), 0.25),
        "job": _cut(0.7 * level + rng.normal(size=SIZE), 0.3, 0.25, 0.2, 0.15, 0.07),
    }
    found = {
        "income": Number(0, 250_000, None, 0),
        "age": Number(15, 95, None, 0),
        "hours": Number(0, 80, None, 0),
    }
    return _generated("heaped", rows, found, 24)


def _told(whole: Population, name: str, strength: float, rng: np.random.Generator) -> Population:
    """The same people, who tell whole numbers, mostly round ones, and declared bins that are wide."""

    def told(column: str, *steps: int) -> Array:
        law = [1 - strength, *strength * rng.dirichlet(np.ones(len(steps)))]
        step = rng.choice([1, *steps], SIZE, p=law)
        most = whole.numbers[column].upper - 1
        return np.clip(step * np.rint(whole.rows[column] / step), whole.numbers[column].lower, most)

    usual = rng.random(SIZE) < strength / 3
    rows = {
        **whole.rows,
        "income": told("income", 100, 1_000, 5_000, 10_000),
        "age": told("age", 5, 10),
        "hours": np.where(usual, 40.0, told("hours", 5, 10)),
    }
    bins = {"income": Number(0, 250_000, 25, 0), "age": Number(15, 95, 16, 0)}
    bins["hours"] = Number(0, 80, 8, 0)
    return replace(whole, name=name, rows=rows, numbers=bins)


def reported(draw: int = 0) -> Population:
    """The copula, which tells a fifth to four fifths of its numbers rounded, in wide bins."""
    rng = np.random.default_rng([9726, draw])
    return _told(copula(draw), "reported", 0.2 * (1 + (draw - 1) % 4), rng)


def adult(path: Path) -> Population:
    """The rows of Adult: 13 columns, and one that is shuffled, so that it is independent of all."""
    table = csv.read_csv(path)
    rng = np.random.default_rng(9725)
    numbers = {
        "age": Number(15, 95, 16, 0),
        "education-num": Number(0, 20, 20, 0),
        "hours-per-week": Number(0, 100, 10, 0),
        "capital-gain": Number(0, 100_000, 20, 0),
    }
    rows: dict[str, Array] = {}
    for name in (*numbers, "workclass", "marital-status", "occupation", "relationship", "race"):
        rows[name] = table[name].to_numpy().astype(float if name in numbers else str)
    for name in ("sex", "native-country", "income", "education"):
        rows[name] = table[name].to_numpy().astype(str)
    rows["shuffled"] = rng.permutation(rows["race"])
    asked = (
        share("share of 1", "share(race = 'Black')", ("race", "Black")),
        share(
            "share of 2", "share(income = '>50K' and sex = 'Female')",
            ("income", ">50K"), ("sex", "Female"),
        ),
        share(
            "share of 3",
            "share(income = '>50K' and sex = 'Female' and race = 'White')",
            ("income", ">50K"), ("sex", "Female"), ("race", "White"),
        ),
        mean("age"),
        group_mean("age", "sex", "Female"),
        difference("age", "income", "<=50K", ">50K"),
        quantile("age"),
        quantile("age", 0.9),
        correlation("age", "education-num"),
        odds(("income", ">50K"), ("sex", "Male")),
        ols("age", "education-num", "sex", "Female"),
        logit(("income", ">50K"), "age", "sex", "Female"),
        gini("hours-per-week"),
        ratio("hours-per-week", "age"),
    )  # fmt: skip
    free = tuple(("shuffled", other) for other in ("sex", "age", "income"))
    return Population("adult", rows, numbers, asked, free, (("income", "sex"),))


# -- populations to choose constants on ----------------------------------------------------------


def curved() -> Population:
    """Numbers that rise and fall with each other, with steps and spikes: nothing is linear."""
    rng = np.random.default_rng(8101)
    t = rng.random(SIZE)
    age = 16 + 78 * np.clip(t + 0.08 * rng.normal(size=SIZE), 0, 1)
    level = 10.3 - 5.0 * (t - 0.55) ** 2 + 0.5 * rng.normal(size=SIZE)
    hours = np.where(t < 0.6, 38 + 9 * np.sin(5 * t), 22.0) + 6 * rng.normal(size=SIZE)
    rows = {
        "income": np.clip(np.exp(level), 0, 199_999),
        "age": np.clip(age, 15, 94.9),
        "hours": np.clip(hours, 0, 79.9),
        "region": _cut(np.sin(9 * t) + rng.normal(size=SIZE), 0.4, 0.3, 0.15, 0.1),
        "education": _cut(np.abs(level - 9.8) + 0.5 * rng.normal(size=SIZE), 0.3, 0.4, 0.2),
        "sex": _cut(rng.normal(size=SIZE) + 0.3 * (hours > 40), 0.5),
        "smoker": _cut(np.cos(6 * t) + rng.normal(size=SIZE), 0.7),
        "insured": _cut(level + 2 * t + rng.normal(size=SIZE), 0.35),
        "job": _cut(level * (t < 0.7) + rng.normal(size=SIZE), 0.3, 0.3, 0.2, 0.12, 0.05),
    }
    bins = {"income": Number(0, 200_000, 25), "age": Number(15, 95, 20), "hours": Number(0, 80, 16)}
    return _generated("curved", rows, bins, 11)


def heavy() -> Population:
    """A t copula: strong dependence, and more of it far out than a normal one has."""
    rng = np.random.default_rng(8202)
    loads = rng.normal(0, 0.9, (9, 2))
    z = rng.normal(size=(SIZE, 2)) @ loads.T + rng.normal(0, 0.6, (SIZE, 9))
    z *= np.sqrt(4 / rng.chisquare(4, SIZE))[:, None]
    u = (np.argsort(np.argsort(z, axis=0), axis=0) + 0.5) / SIZE
    rows = {
        "income": np.clip(22_000 * (-np.log(1 - u[:, 0])) ** 0.9, 0, 199_999),
        "age": 18 + 72 * u[:, 1] ** 1.2,
        "hours": 80 * u[:, 2],
        "region": _cut(u[:, 3], 0.3, 0.3, 0.2, 0.15),
        "education": _cut(u[:, 4], 0.25, 0.35, 0.3),
        "sex": _cut(u[:, 5], 0.45),
        "smoker": _cut(u[:, 6], 0.8),
        "insured": _cut(u[:, 7], 0.4),
        "job": _cut(u[:, 8], 0.25, 0.25, 0.2, 0.2, 0.06),
    }
    bins = {"income": Number(0, 200_000, 16), "age": Number(15, 95, 24), "hours": Number(0, 80, 20)}
    return _generated("heavy", rows, bins, 12)


def sorts() -> Population:
    """Four sorts of people, each with lines of its own between numbers."""
    rng = np.random.default_rng(8303)
    kind = rng.choice(4, SIZE, p=[0.4, 0.3, 0.2, 0.1])
    slope = rng.uniform(-0.03, 0.04, 4)[kind]
    age = np.clip(rng.uniform(25, 65, 4)[kind] + 9 * rng.normal(size=SIZE), 15, 94.9)
    level = rng.uniform(9.6, 10.8, 4)[kind] + slope * (age - 45) + 0.35 * rng.normal(size=SIZE)
    hours = rng.uniform(10, 50, 4)[kind] + 0.2 * (age - 45) + 7 * rng.normal(size=SIZE)

    def category(size: int) -> Array:
        law = rng.dirichlet(np.full(size, 1.2), 4).cumsum(axis=1)
        return _words((rng.random(SIZE)[:, None] > law[kind][:, :-1]).sum(axis=1))

    rows = {
        "income": np.clip(np.exp(level), 0, 249_999),
        "age": age,
        "hours": np.clip(hours, 0, 79.9),
    }
    sizes = {"region": 5, "education": 4, "sex": 2, "smoker": 2, "insured": 2, "job": 6}
    bins = {"income": Number(0, 250_000, 30), "age": Number(15, 95, 16), "hours": Number(0, 80, 10)}
    return _generated("sorts", rows | {n: category(k) for n, k in sizes.items()}, bins, 13)


def rounded() -> Population:
    """`sorts` with pay and hours in round numbers, whose bins are found privately."""
    whole = sorts()
    pay, hours = (500 * np.rint(whole.rows["income"] / 500), np.rint(whole.rows["hours"]))
    rows = {**whole.rows, "income": pay, "hours": hours, "age": np.rint(whole.rows["age"])}
    found = {
        "income": Number(0, 250_000, None, 0),
        "age": Number(15, 95, None, 0),
        "hours": Number(0, 80, None, 0),
    }
    return replace(whole, name="rounded", rows=rows, numbers=found, rows_public=False)


def stepped() -> Population:
    """`sorts` with pay that jumps inside wide bins, ages in blocks, and hours that are mostly 38."""
    rng, whole = np.random.default_rng(8404), sorts()

    def rank(name: str) -> Array:
        return (np.argsort(np.argsort(whole.rows[name])) + 0.5) / SIZE

    def blocks(name: str, edges: Array) -> Array:
        law = rng.dirichlet(np.full(len(edges) - 1, 2.0))
        return np.interp(rank(name), np.append(0.0, law.cumsum()), edges)

    hours = np.where(rng.random(SIZE) < 0.4, 38.0, np.rint(whole.rows["hours"]))
    rows = {
        **whole.rows,
        "income": blocks("income", 4_000 * 1.5 ** np.arange(11)),
        "age": blocks("age", np.linspace(16, 93, 8)),
        "hours": np.clip(hours, 0, 79),
    }
    bins = {"income": Number(0, 240_000, 18), "age": Number(15, 95, 16)}
    bins["hours"] = Number(0, 80, 8, 0)
    return replace(whole, name="stepped", rows=rows, numbers=bins)


def stated() -> Population:
    """`sorts`, of whose numbers most are rounded, in wide bins."""
    return _told(sorts(), "stated", 0.7, np.random.default_rng(8505))


# -- runs ----------------------------------------------------------------------------------------


def made(
    population: Population, n: int, epsilon: str, table: Data, folder: Path | None, seed: int | None
) -> us.Release:
    """A release of a table, with seeded noise if there is a seed; one that was kept is read."""
    if folder is not None and folder.exists():
        return us.Release.load(folder)
    public: dict[str, Any] = {"rows_public": n} if population.rows_public else {}
    if seed is not None:
        public |= {"noise": SeededNoise(seed), "key": seed}
    released = us.release(
        _arrow(table), population.schema, epsilon=epsilon, workload=population.workload, **public
    )
    if folder is not None:
        released.save(folder)
    return released


def judged(population: Population, released: us.Release, table: Data) -> dict[str, Any]:
    """Everything that is asked of a release, beside the truth."""
    rows = {name: _numpy(released.rows[name]) for name in population.rows}
    found = [
        number
        for asked, truth in zip(population.asked, population.truths, strict=True)
        for number in _numbers(released, asked, truth, asked.plain(table), asked.plain(rows))
    ]
    tests = {
        name: [[released.test_independence(*pair).p_value, _pearson(rows, pair)] for pair in pairs]
        for name, pairs in (("free", population.free), ("bound", population.bound))
    }
    return {"numbers": found, "tests": tests}


def _arrow(table: Data) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in table.items()})


def _numpy(column: pa.ChunkedArray) -> Array:
    values = column.to_numpy()
    return values.astype(float) if values.dtype.kind in "iuf" else values.astype(str)


def _pearson(rows: Data, pair: tuple[str, str]) -> float:
    codes = [
        np.unique(
            np.digitize(rows[name], np.quantile(rows[name], np.arange(1, 8) / 8))
            if rows[name].dtype.kind == "f" else rows[name], return_inverse=True,
        )[1]
        for name in pair
    ]  # fmt: skip
    counts = np.zeros([int(each.max()) + 1 for each in codes])
    np.add.at(counts, tuple(codes), 1)
    if min(counts.shape) <= 1:
        return 1.0
    tested: Any = chi2_contingency(counts, correction=False)
    return float(tested.pvalue)


def _numbers(
    released: us.Release,
    asked: Asked,
    truth: Sequence[tuple[float, float]],
    table: Sequence[tuple[float, float]],
    rows: Sequence[tuple[float, float]],
) -> Iterator[dict[str, Any]]:
    """For every number that is asked for: intervals, truths, and what is needed to judge them."""
    estimates: dict[str, Any] = {
        target: released.estimate(asked.text, target=target) for target in ("population", "table")
    }
    for k, pick in enumerate(asked.picked):
        line: dict[str, Any] = {
            "kind": asked.kind,
            "log": asked.log,
            "truth": [truth[k][0], table[k][0]],
        }
        line["naive"] = [rows[k][0] - rows[k][1], rows[k][0] + rows[k][1]]
        for target, found in estimates.items():
            each = found if isinstance(found, Estimate) else found[pick]
            line[target] = None
            if (parts := each.parts) is not None:
                oracle = Z * math.hypot(parts.noise, parts.rows, parts.sampling)
                line[target] = [each.value, each.low, each.high, oracle]
            line[f"{target} flagged"] = each.warning is not None
            line[f"{target} reliance"] = each.reliance
        yield line


@dataclass(frozen=True)
class Runs:
    """What is to be run: repetitions of every combination, in turn, until a time.

    `populations` are several of each kind, which repetitions take in turn. `taken` counts the
    combinations that some process has begun, so that all advance together.
    """

    file: Path
    populations: Sequence[Sequence[Population]]
    repetitions: Sequence[int]
    first: int
    until: float
    taken: Any
    keep: Path | None
    kept_only: bool
    seeded: bool

    def jobs(self) -> list[tuple[int, int, str, Population]]:
        """(repetition, n, ε, population), those that have the least of what is wanted first."""
        found = [
            (at / wanted, at + self.first, n, epsilon, kind[(at + self.first) % len(kind)])
            for n, wanted in zip(ROWS, self.repetitions, strict=True)
            for epsilon in EPSILONS
            for kind in self.populations
            for at in range(wanted)
        ]
        return [job[1:] for job in sorted(found, key=lambda job: job[0])]

    def run(self) -> None:
        """Append what FILE has not yet; one of several processes."""
        done, jobs = {_key(line) for line in _lines([self.file])}, self.jobs()
        with open(
            self.file, "ab", buffering=0
        ) as out:  # one write a line: processes do not mix them
            while time.monotonic() < self.until:
                with self.taken.get_lock():
                    turn = self.taken.value
                    self.taken.value += 1
                if turn >= len(jobs):
                    break
                line = self._line(done, *jobs[turn])
                if line is not None:
                    out.write((json.dumps(_rounded(line)) + "\n").encode())

    def _line(
        self, done: set[Any], at: int, n: int, epsilon: str, population: Population
    ) -> dict[str, Any] | None:
        names = {"population": population.name, "n": n, "epsilon": epsilon, "repetition": at}
        keep = self.keep
        folder = None if keep is None else keep / f"{population.name}-{n}-{epsilon}-{at}"
        if _key(names) in done or (self.kept_only and not (folder and folder.exists())):
            return None
        seed = [SEED, sum(population.name.encode()), n, int(1000 * float(epsilon)), at]
        table = population.drawn(n, np.random.default_rng(seed))
        began = time.process_time()
        fixed = int(np.random.default_rng(seed).integers(2**32)) if self.seeded else None
        released = made(population, n, epsilon, table, folder, fixed)
        taken = time.process_time() - began
        line = names | judged(population, released, table)
        return line | {"seconds": [taken, time.process_time() - began - taken]}


def _rounded(value: Any) -> Any:
    """With six digits: files of thousands of releases are sent about."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def mended(file: Path) -> None:
    """End a last line that was cut, so that the next one is its own."""
    if file.exists() and not file.read_bytes().endswith(b"\n"):
        with open(file, "a", encoding="utf-8") as out:
            out.write("\n")


def _key(line: Mapping[str, Any]) -> tuple[str, int, str, int]:
    return line["population"], line["n"], line["epsilon"], line["repetition"]


def _lines(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Every whole line of some files, those of one repetition once; a cut one is passed over."""
    seen: set[Any] = set()
    for file in files:
        if not file.exists():
            continue
        with lzma.open(file) if file.suffix == ".xz" else open(file, "rb") as lines:
            for text in lines:
                try:
                    line = json.loads(text)
                except json.JSONDecodeError:
                    continue
                if _key(line) not in seen:
                    seen.add(_key(line))
                    yield line


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What repetitions of a kind of statistic came to."""

    numbers: int
    covered: tuple[float, float]
    table: tuple[float, float]
    naive: float
    determined: float
    flagged: float
    width: float


def _inside(line: Mapping[str, Any], target: str) -> bool | None:
    """Whether an interval holds its truth; None where there is none."""
    if line[target] is None:
        return None
    _, low, high, _ = line[target]
    truth = line["truth"][0 if target == "population" else 1]
    truth = math.exp(truth) if line["log"] else truth
    return low <= truth <= high


def _width(line: Mapping[str, Any]) -> float | None:
    """Half of the interval over that of noise and sampling alone; parts of a quantile are of shares."""
    if line["population"] is None or line["kind"] in ("median", "quantile"):
        return None
    _, low, high, oracle = line["population"]
    half = math.log(high / low) / 2 if line["log"] and low > 0 else (high - low) / 2
    return half / oracle if oracle > 0 and math.isfinite(half) else None


def _share(releases: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Mean, and its standard error; the numbers of one release share its noise and are a cluster."""
    held = [each for each in releases if each]
    if not held:
        return math.nan, math.nan
    weights = np.array([len(each) for each in held], float)
    means = np.array([np.mean(each) for each in held])
    mean = float(np.average(means, weights=weights))
    spread = float(((weights * (means - mean)) ** 2).sum()) / weights.sum() ** 2
    least = mean * (1 - mean) / weights.sum()  # of few, all may be right by chance
    return mean, math.sqrt(max(spread, least))


def cell(lines: Sequence[Sequence[Mapping[str, Any]]]) -> Cell:
    """What the numbers of several releases came to."""
    every = [line for release in lines for line in release]

    def covered(target: str) -> tuple[float, float]:
        held = [[_inside(line, target) for line in release] for release in lines]
        return _share([[bool(each) for each in release if each is not None] for release in held])

    widths = [width for line in every if (width := _width(line)) is not None]
    naive = [line["naive"][0] <= line["truth"][0] <= line["naive"][1] for line in every]
    return Cell(
        numbers=len(every),
        covered=covered("population"),
        table=covered("table"),
        naive=float(np.mean(naive)),
        determined=float(np.mean([line["population"] is not None for line in every])),
        flagged=float(np.mean([line["population flagged"] for line in every])),
        width=float(np.median(widths)) if widths else math.nan,
    )


def report(files: Sequence[Path]) -> str:
    """The tables of docs/estimate.md, and what they show."""
    lines = list(_lines(files))
    counts = Counter((line["population"], line["n"], line["epsilon"]) for line in lines)
    many = " to ".join(map(str, sorted({min(counts.values()), max(counts.values())})))
    groups: dict[tuple[Any, ...], list[list[dict[str, Any]]]] = defaultdict(list)
    for line in lines:
        for kind in KINDS:
            held = [each for each in line["numbers"] if each["kind"] == kind]
            if held:
                size, of = (line["n"], line["epsilon"]), line["population"]
                for group in (size, of, "all", f"ε = {line['epsilon']}"):
                    groups[kind, group].append(held)
    cells = {key: cell(held) for key, held in groups.items()}
    sizes = {(n, e): f"{n:,}, {e}" for n in ROWS for e in EPSILONS}
    names = {name: name for name in dict.fromkeys(line["population"] for line in lines)}
    return "\n\n".join(
        [
            f"{len(lines):,} releases, {many} for each combination of population, n and ε.",
            "**All populations, n and ε together**: coverage of 95 % intervals in percent, ± one "
            "standard error of the simulation with each release as a cluster; what the synthetic "
            "rows taken as data with the textbook's interval would cover; how often there was an "
            "interval; and at ε = 1 its median width over that of an oracle, who has the same noise "
            "and sampling error and knows that the model misses nothing and bins hide nothing.",
            _summary(cells),
            "**Coverage of the population by n and ε.** In brackets: how often there was an interval, "
            "where that was not always.",
            _matrix("n, ε", cells, sizes, lambda c: _percent(c.covered, c)),
            "**Coverage of the population by kind of population:**",
            _matrix("population", cells, names, lambda c: _percent(c.covered, c)),
            "**Width of the interval** over the oracle's, median. An interval is cut at the ends of "
            "what is possible, so shares may be below 1; the parts of quantiles are in shares and are "
            "not compared.",
            _matrix("n, ε", cells, sizes, lambda c: f"{c.width:.2f}"),
            "**Of kinds of which more than 5 % missed**, how often that carried a warning:",
            _flagged(lines),
            "**Tests of independence at 5 %** of pairs that are independent in the population, and "
            "power for a pair that is not:",
            _tests(lines, sizes),
        ]
    )


def _summary(cells: Mapping[tuple[Any, ...], Cell]) -> str:
    """One line for each kind of statistic."""
    told = [
        "| | intervals | population | private table | rows as data | determined | width, ε = 1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        of, last = cells.get((kind, "all")), cells.get((kind, "ε = 1"))
        if of is not None and last is not None:
            both = " | ".join(f"{100 * m:.1f} ± {100 * e:.1f}" for m, e in (of.covered, of.table))
            width = "–" if math.isnan(last.width) else f"{last.width:.2f}"
            many = f"{round(of.numbers * of.determined):,}"
            rest = f"{100 * of.naive:.0f} | {100 * of.determined:.0f} % | {width}"
            told.append(f"| {kind} | {many} | {both} | {rest} |")
    return "\n".join(told)


def _flagged(lines: Sequence[Mapping[str, Any]]) -> str:
    """How many intervals that missed carry a warning."""
    told = ["| | intervals | missed | of these with a warning |", "|---|---|---|---|"]
    for kind in KINDS:
        held = [each for line in lines for each in line["numbers"] if each["kind"] == kind]
        inside = [_inside(each, "population") for each in held]
        missed = [each for each, found in zip(held, inside, strict=True) if found is False]
        warned = sum(each["population flagged"] for each in missed)
        some = len(held) - inside.count(None)
        if len(missed) > 0.05 * some:
            told.append(f"| {kind} | {some:,} | {len(missed):,} | {warned:,} |")
    return "\n".join(told)


def _tests(lines: Sequence[Mapping[str, Any]], sizes: Mapping[tuple[int, str], str]) -> str:
    told = [
        "| n, ε | tests | false positives | rows as data | power | rows as data |",
        "|---|---|---|---|---|---|",
    ]
    for (n, epsilon), shown in sizes.items():
        same = [line["tests"] for line in lines if (line["n"], line["epsilon"]) == (n, epsilon)]
        held = [tests for tests in same if tests["bound"]]
        if held:
            free = [[each[0] < 0.05 for each in tests["free"]] for tests in held]
            naive = np.mean([each[1] < 0.05 for tests in held for each in tests["free"]])
            power = (np.array([tests["bound"][0] for tests in held]) < 0.05).mean(axis=0)
            mean, error = _share(free)
            found = f"{sum(map(len, free)):,} | {mean:.3f} ± {error:.3f} | {naive:.2f}"
            told.append(f"| {shown} | {found} | {power[0]:.2f} | {power[1]:.2f} |")
    return "\n".join(told)


def written(page: Path, tables: str) -> None:
    """Put tables where a page says that they go."""
    begin, end = "<!-- python -m bench coverage FILE --report --into -->", "<!-- end -->"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for the tables: {begin} … {end}")
    page.write_text(f"{before}{begin}\n{tables}\n{end}{after}", encoding="utf-8")


def _percent(found: tuple[float, float], of: Cell) -> str:
    """Coverage and its standard error, in percent; beside it how many were determined, if not all."""
    if not of.determined:
        return "–"
    some = "" if of.determined > 0.995 else f" ({100 * of.determined:.0f} %)"
    return f"{100 * found[0]:.1f} ± {100 * found[1]:.1f}{some}"


def _matrix(
    title: str,
    cells: Mapping[tuple[Any, ...], Cell],
    columns: Mapping[Any, str],
    shown: Callable[[Cell], str],
) -> str:
    told = [f"| {title} | {' | '.join(columns.values())} |", f"|{'---|' * (1 + len(columns))}"]
    for kind in KINDS:
        held = [cells.get((kind, column)) for column in columns]
        if any(held):
            row = " | ".join("–" if each is None else shown(each) for each in held)
            told.append(f"| {kind} | {row.replace('nan', '–')} |")
    return "\n".join(told)


def main(arguments: Sequence[str] = ()) -> None:
    """Run, or report."""
    parser = argparse.ArgumentParser(prog="python -m bench coverage", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", type=Path, help="lines of JSON, which are appended to")
    parser.add_argument("more", type=Path, nargs="*", help="other files, for --report; also .xz")
    parser.add_argument("--adult", type=Path, help="a CSV file of the UCI's Adult")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long")
    parser.add_argument(
        "--repetitions",
        type=int,
        nargs=len(ROWS),
        default=(200, 60),
        help="of every combination with n = 2,000 rows and with 20,000",
    )
    parser.add_argument(
        "--first", type=int, default=0, help="the first repetition, for other files"
    )
    parser.add_argument("--processes", type=int, default=1, help="that run beside each other")
    parser.add_argument("--keep", type=Path, help="a folder that releases are kept in")
    parser.add_argument("--kept-only", action="store_true", help="make no new release")
    parser.add_argument(
        "--calibration", action="store_true", help="populations that constants were chosen on"
    )
    parser.add_argument(
        "--seeded", action="store_true", help="noise from seeds, for simulation only"
    )
    parser.add_argument("--report", action="store_true", help="make no release, show those of FILE")
    parser.add_argument("--into", type=Path, help="the page that the tables are written into")
    chosen = parser.parse_args(list(arguments))
    if not chosen.report:
        _run(chosen)
    if chosen.report or chosen.into is not None:
        tables = report([chosen.file, *chosen.more])
        print(tables) if chosen.into is None else written(chosen.into, tables)


def _run(chosen: argparse.Namespace) -> None:
    """Append releases to a file, by several processes."""
    if chosen.calibration:
        populations = [[make()] for make in (curved, heavy, sorts, rounded, stepped, stated)]
    else:
        kinds = (copula, latent, network, heaped, reported, triples)
        populations = [[kind(draw) for draw in range(1, 1 + DRAWS)] for kind in kinds]
        populations += [[adult(chosen.adult)]] if chosen.adult else []
    with ThreadPoolExecutor() as threads:  # before processes part
        list(threads.map(lambda population: population.truths, chain(*populations)))
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    mended(chosen.file)
    until = time.monotonic() + 60 * chosen.minutes
    forked = multiprocessing.get_context("fork")
    runs = Runs(
        chosen.file,
        populations,
        chosen.repetitions,
        chosen.first,
        until,
        forked.Value("q", 0),
        chosen.keep,
        chosen.kept_only,
        chosen.seeded,
    )
    workers = [forked.Process(target=runs.run) for _ in range(chosen.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    failed = [worker.exitcode for worker in workers if worker.exitcode]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(workers)} processes failed; run it again to go on")

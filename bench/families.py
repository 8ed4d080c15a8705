"""Two levels: households with persons, and patients with visits, released flat and as views.

    python -m bench families [--diabetes diabetic_data.csv.gz] [--epsilon 1 3.2 10] [--seeds 3]
        [--first 0] [--processes 1] [--seeded]

Errors are mean total variations over all tables of a kind, in families: a child of a family of s counts
1/s. Tables of siblings are those of children who have one. `flat` is one table of children with their
parent's columns and a bound of rows a family, sorted by the parent's columns and cut into families;
`independent` releases views without pairs of siblings; `rules` is `views` with what must hold inside a
family in the schema. Seeds count from `--first`, which is also the key of the generated tables: another
one is another population. `--seeded` takes the noise of tests, where the real source is not installed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

import understudy as us
from bench import households as homes
from bench import visits as stays
from understudy._types import Clique
from understudy.constraints.rule import Rule
from understudy.privacy.noise import Noise
from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.releases.families import FamilyRelease
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.source import read
from understudy.source.families import families_of
from understudy.testing import SeededNoise
from understudy.units import Unit

DELTA = "1e-6"
Errors = Mapping[str, float]


@dataclass(frozen=True)
class Case:
    """Two tables, what is known about them, and what must not be inside a family."""

    name: str
    parents: pa.Table
    children: pa.Table
    schema: FamilySchema
    ordinal: tuple[str, ...]
    wrong: str
    rules: tuple[Rule, ...]

    @property
    def truth(self) -> EncodedFamilies:
        """The families as they are."""
        return families_of(read(self.parents), read(self.children), self.schema)

    def siblings(self, which: str, rules: Sequence[Rule] = ()) -> FamilySchema:
        """The schema with other pairs of siblings, and with rules."""
        parents, children, family = self.schema.tables
        pairs = replace(family, siblings=which)
        return FamilySchema.of(parents, children, pairs, self.parents.num_rows, rules)


def generated(key: int) -> Case:
    """Households of the generator."""
    tables = homes.households(20_000, key)
    family = Family("households", homes.KEY, "persons", homes.KEY, homes.LARGEST, 1, siblings="all")
    parents = Schema((Identifier(homes.KEY, dtype="int64"), *homes.HOUSEHOLD_COLUMNS))
    children = Schema((Identifier(homes.KEY, dtype="int64"), *homes.PERSON_COLUMNS))
    schema = FamilySchema.of(parents, children, family, 20_000)
    rules = (
        Rule("role = 'child' and sibling.role = 'head' implies age <= sibling.age"),
        Rule("not (role = 'head' and sibling.role = 'head')"),
    )
    ordinal = ("age", "education")
    return Case(
        "households", tables.households, tables.persons, schema, ordinal, "child older", rules
    )


def ordered(key: int) -> Case:
    """Patients with visits of the generator."""
    tables = stays.visits(20_000, key)
    family = Family(
        "patients", stays.KEY, "visits", stays.KEY, stays.LARGEST, 1, stays.ORDER, "all"
    )
    own = Identifier(stays.KEY, dtype="int64")
    order = Identifier(stays.ORDER, dtype="int64")
    parents, children = Schema((own, *stays.PATIENT_COLUMNS)), (own, order, *stays.VISIT_COLUMNS)
    schema = FamilySchema.of(parents, Schema(children), family, 20_000)
    ordinal = ("age", "severity", "stay")
    rules = (Rule("previous.age <= age"),)
    return Case("visits", tables.patients, tables.visits, schema, ordinal, "age falls", rules)


def _among(table: pa.Table, name: str, most: int = 12) -> Category:
    """A column of few values; the public codebook lists them."""
    counts = pc.value_counts(table[name].combine_chunks()).to_pylist()
    values = sorted(counts, key=lambda c: (-c["counts"], c["values"]))[:most]
    return Category(name, tuple(sorted(v["values"] for v in values)), other="other")


def patients(path: Path) -> Case:
    """Patients and their first five visits, of the UCI table of diabetes hospital stays."""
    text = pa.csv.ConvertOptions(strings_can_be_null=False)
    table = pa.csv.read_csv(path, convert_options=text)
    table = table.sort_by([("patient_nbr", "ascending"), ("encounter_id", "ascending")])
    who = table["patient_nbr"].to_numpy()
    starts = np.flatnonzero(np.r_[True, who[1:] != who[:-1]])
    index = np.arange(who.size) - np.repeat(starts, np.diff(np.r_[starts, who.size]))
    ages = tuple(f"[{low}-{low + 10})" for low in range(0, 100, 10))
    table = table.filter(pa.array(index < 5))
    parents = table.filter(pa.array(index[index < 5] == 0)).select(
        ["patient_nbr", "race", "gender"]
    )
    columns = (
        Category("age", ages, ordinal=True),
        Integer("time_in_hospital", 1, 14),
        Integer("num_medications", 0, 39, bins=8),
        Integer("number_inpatient", 0, 5),
        _among(table, "insulin"),
        _among(table, "A1Cresult"),
        _among(table, "readmitted"),
    )
    key, order = Identifier("patient_nbr", dtype="int64"), Identifier("encounter_id", dtype="int64")
    family = Family("patients", "patient_nbr", "visits", "patient_nbr", 5, 1, "encounter_id", "all")
    schema = FamilySchema.of(
        Schema((key, _among(table, "race"), _among(table, "gender"))),
        Schema((key, order, *columns)),
        family,
        parents.num_rows,
    )
    children = table.select(["patient_nbr", "encounter_id", *(c.name for c in columns)])
    ordinal = ("age", "time_in_hospital", "num_medications", "number_inpatient")
    rules = (Rule("previous.age <= age"),)
    return Case("diabetes", parents, children, schema, ordinal, "age falls", rules)


# --- what is compared ----------------------------------------------------------------------------


def kinds(schema: FamilySchema) -> dict[str, list[Clique]]:
    """The tables of every kind of pair."""
    layout = schema.layout
    first, columns = [*layout.parent, layout.size], layout.child
    twins = [i for i in layout.sibling if i is not None]
    siblings = [
        (columns[a], twins[b])
        for a, b in itertools.product(range(len(columns)), repeat=2)
        if layout.ordered or a <= b
    ]
    return {
        "parent pairs": list(itertools.combinations(first, 2)),
        "child pairs": list(itertools.combinations(columns, 2)),
        "parent × child": list(itertools.product(first, columns)),
        "sibling": siblings,
        "same column": list(zip(columns, twins, strict=True)),
        "size × child pairs": [(layout.size, *c) for c in itertools.combinations(columns, 2)],
    }


def shares(
    schema: FamilySchema, families: EncodedFamilies, cliques: Sequence[Clique]
) -> list[NDArray[np.float64]]:
    """Tables of views that sum to one; of siblings those of children who have one."""
    views = ViewCounts(families, schema.layout, schema.weight, schema.shape)
    found = []
    for clique, table in zip(cliques, views.tables(cliques), strict=True):
        some = table[..., :-1] if clique[-1] in schema.layout.sibling else table
        found.append(some / some.sum())
    return found


def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest difference of two empirical distribution functions."""
    at = np.union1d(one, other)
    first, second = (np.searchsorted(np.sort(x), at, "right") / x.size for x in (one, other))
    return float(np.abs(first - second).max())


def per_parent(case: Case, families: EncodedFamilies) -> Iterator[tuple[NDArray[np.float64], ...]]:
    """Of every ordered column the means of families, and the deviations of those with siblings."""
    _, children, _ = case.schema.tables
    sizes = families.sizes
    owner = np.repeat(np.arange(sizes.size), sizes)
    for name in case.ordinal:
        values = families.children[children.position(name)].astype(np.float64)
        mean = np.bincount(owner, values, sizes.size) / sizes
        square = np.bincount(owner, values * values, sizes.size) / sizes
        yield mean, np.sqrt(np.maximum(square - mean * mean, 0))[sizes > 1]


def wrong(case: Case, families: EncodedFamilies) -> float:
    """Of children with a head the share who are older; of visits after another that with less age."""
    _, children, _ = case.schema.tables
    sizes = families.sizes
    owner = np.repeat(np.arange(sizes.size), sizes)
    age = families.children[children.position("age")].astype(np.int64)
    if case.schema.layout.ordered:
        later = np.flatnonzero(owner[1:] == owner[:-1]) + 1
        return float(np.mean(age[later] < age[later - 1]))
    role = families.children[children.position("role")]
    head = np.full(sizes.size, -1)
    head[owner[role == 0]] = age[role == 0]
    some = (role == 2) & (head[owner] >= 0)
    return float(np.mean(age[some] > head[owner[some]]))


def lag_two(case: Case, families: EncodedFamilies) -> float:
    """How often a visit has the age of the one before the last; NaN without an order."""
    if not case.schema.layout.ordered:
        return math.nan
    _, children, _ = case.schema.tables
    owner = np.repeat(np.arange(families.sizes.size), families.sizes)
    age = families.children[children.position("age")]
    return float(np.mean((age[2:] == age[:-2])[owner[2:] == owner[:-2]]))


def errors(case: Case, families: EncodedFamilies, truth: EncodedFamilies) -> Errors:
    """All figures of some families."""
    found: dict[str, float] = {}
    for kind, cliques in kinds(case.schema).items():
        pairs = zip(
            *(shares(case.schema, each, cliques) for each in (families, truth)), strict=True
        )
        found[kind] = float(np.mean([np.abs(a - b).sum() / 2 for a, b in pairs]))
    moments = [
        [distance(a, b) for a, b in zip(one, other, strict=True)]
        for one, other in zip(per_parent(case, families), per_parent(case, truth), strict=True)
    ]
    found["mean (KS)"], found["sd (KS)"] = np.mean(moments, axis=0)
    found[case.wrong] = wrong(case, families)
    found["lag 2"] = lag_two(case, families)
    return found


# --- ways ----------------------------------------------------------------------------------------


def flat(case: Case, epsilon: str, key: int, noise: Noise | None) -> EncodedFamilies:
    """One table with at most K rows of a family, cut into families again."""
    parents, children, family = case.schema.tables
    truth = case.truth
    owner = np.repeat(np.arange(truth.sizes.size), truth.sizes)
    codes = [c[owner] for c in truth.parents] + [truth.sizes[owner] - 1, *truth.children]
    domains = [*parents.shape, family.max_children, *children.shape]
    names = [str(i) for i in range(len(codes))]
    columns = [Integer(n, 0, size - 1) for n, size in zip(names, domains, strict=True)]
    schema = Schema((Identifier("who"), *columns), unit=Unit("who", family.max_children))
    table = pa.table({"who": owner.astype(str), **dict(zip(names, codes, strict=True))})
    made = us.release(
        table, schema, epsilon=epsilon, delta=DELTA, rows_public=owner.size, key=key, noise=noise
    )
    rows = np.stack(schema.encode(made.rows), axis=1).astype(np.int64)
    at = len(parents.shape)
    rows = rows[np.lexsort(rows[:, [*range(at), at]].T)]
    sizes, first, kept, start = [], [], [], 0
    for size in range(1, family.max_children + 1):
        many = int((rows[:, at] == size - 1).sum())
        whole = many // size
        sizes.append(np.full(whole, size))
        first.append(start + size * np.arange(whole))
        kept.append(start + np.arange(size * whole))
        start += many
    heads, members = rows[np.concatenate(first)], rows[np.concatenate(kept)]
    return EncodedFamilies(
        tuple(heads[:, :at].T), np.concatenate(sizes), tuple(members[:, at + 1 :].T)
    )


def views(
    case: Case,
    epsilon: str,
    key: int,
    noise: Noise | None,
    which: str,
    *,
    triples: bool = False,
    ruled: bool = False,
) -> FamilyRelease:
    """A release of families with these pairs of siblings."""
    schema = case.siblings(which, case.rules if ruled else ())
    workload = None
    if triples:
        layout, names = schema.layout, [column.name for column in schema.modelled]
        workload = schema.usual_workload() + [
            [names[i] for i in (layout.size, *pair)]
            for pair in itertools.combinations(layout.child, 2)
        ]
    made = us.release(
        (case.parents, case.children), schema, epsilon=epsilon, delta=DELTA, key=key,
        workload=workload, noise=noise,
    )  # fmt: skip
    assert isinstance(made, FamilyRelease)
    return made


def released(
    case: Case, epsilon: str, key: int, noise: Noise | None, which: str, **more: bool
) -> EncodedFamilies:
    """The families of `views`."""
    return views(case, epsilon, key, noise, which, **more).families.codes


WAYS: Mapping[str, Callable[[Case, str, int, Noise | None], EncodedFamilies]] = {
    "flat": flat,
    "independent": partial(released, which="none"),
    "same": partial(released, which="same"),
    "all": partial(released, which="all"),
    "rules": partial(released, which="all", ruled=True),
    "triples": partial(released, which="all", triples=True),
}
"""Flat rows regrouped; independent children; views with siblings `same` or `all`; the last with rules,
and with tables of size × two columns of a child, which are for large ε."""


@dataclass(frozen=True)
class Run:
    """One way to make synthetic families of one case."""

    case: str
    epsilon: str
    way: str
    seed: int
    population: int
    diabetes: Path | None
    seeded: bool

    @property
    def sensible(self) -> bool:
        """Tables of three columns need a large ε."""
        return self.way != "triples" or float(self.epsilon) >= 10

    def __call__(self) -> Errors:
        """Its errors and CPU seconds."""
        case = _case(self.case, self.population, self.diabetes)
        truth = case.truth
        start = time.process_time()
        drawn = crc32(f"{self.case} {self.epsilon} {self.way} {self.seed}".encode())
        noise = SeededNoise(drawn) if self.seeded else None
        families = WAYS[self.way](case, self.epsilon, self.seed, noise)
        seconds = time.process_time() - start
        return {**errors(case, families, truth), "CPU s": seconds}


@cache
def _case(name: str, population: int, diabetes: Path | None) -> Case:
    if diabetes is not None and name == "diabetes":
        return patients(diabetes)
    return {"households": generated, "visits": ordered}[name](population)


def measured(run: Run) -> tuple[Run, Errors]:
    """A run and what it gave, for other processes."""
    return run, run()


def print_case(case: Case, found: Mapping[Run, Errors]) -> None:
    """A table for every ε: means over the seeds."""
    truth = case.truth
    print(f"\n{case.name}: {truth.sizes.size:,} families, {int(truth.sizes.sum()):,} children")
    print(f"themselves: {case.wrong} {wrong(case, truth):.4f}, lag 2 {lag_two(case, truth):.3f}")
    for epsilon in dict.fromkeys(run.epsilon for run in found):
        rows: dict[str, list[Errors]] = {}
        for run, row in found.items():
            if (run.case, run.epsilon) == (case.name, epsilon):
                rows.setdefault(run.way, []).append(row)
        names = next(iter(rows.values()))[0]
        print(f"\n| ε = {epsilon} | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
        for way, each in rows.items():
            means = [float(np.mean([row[name] for row in each])) for name in names]
            print(f"| {way} | {' | '.join(f'{mean:.4f}' for mean in means)} |", flush=True)


def main(options: list[str] | None = None) -> None:
    """Print every run, then the table of every case and ε, means over the seeds."""
    parser = argparse.ArgumentParser(prog="python -m bench families")
    parser.add_argument("--diabetes", type=Path, help="the UCI table of diabetes hospital stays")
    parser.add_argument("--epsilon", nargs="+", default=["1", "3.2", "10"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="first seed; key of generated tables")
    parser.add_argument("--only", choices=["households", "visits", "diabetes"])
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--seeded", action="store_true", help="noise from seeds, no private release"
    )
    asked = parser.parse_args(options)
    names = ["households", "visits", *(["diabetes"] if asked.diabetes else [])]
    names = [name for name in names if asked.only in (None, name)]
    runs = [
        Run(name, epsilon, way, seed, asked.first, asked.diabetes, asked.seeded)
        for name, epsilon, way in itertools.product(names, asked.epsilon, asked.ways)
        for seed in range(asked.first, asked.first + asked.seeds)
    ]
    runs = [run for run in runs if run.sensible]
    found: dict[Run, Errors] = {}
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        waiting = [pool.submit(measured, run) for run in reversed(runs)]  # the longest first
        for future in as_completed(waiting):
            run, row = future.result()
            found[run] = row
            told = ", ".join(f"{name} {value:.4f}" for name, value in row.items())
            print(f"{run.case} ε = {run.epsilon} {run.way} {run.seed}: {told}", flush=True)
    for name in names:
        print_case(_case(name, asked.first, asked.diabetes), {run: found[run] for run in runs})

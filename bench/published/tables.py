"""The tables of the experiments: integer-coded CSV files with a domain, or the generated survey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy import demo
from understudy.errors import InputError
from understudy.queries import cells
from understudy.schema import Category, Integer, Schema, import_mbi

__all__ = ["WHERE", "Bench", "adult_of_15", "chains", "generated", "load", "scales"]

WHERE = {
    "ADULT": (
        "ADULT is UCI Adult (archive.ics.uci.edu/dataset/2/adult), 48 842 rows, every column an "
        "integer from 0, with a JSON file that maps each column to its number of values; the "
        "repositories of the FEM and of the dp-query-release experiments have both files"
    ),
    "LOANS": (
        "LOANS is the LendingClub table of accepted loans 2007 to 2011, 42 535 rows of 48 columns, "
        "every column an integer from 0, with a JSON file that maps each column to its number of "
        "values; the repository of the FEM experiments has both files"
    ),
    "NLTCS": (
        "NLTCS is the National Long-Term Care Survey, 21 574 rows of 16 binary columns, with a JSON "
        "file that maps each column to 2; the repositories of the private-pgm and of the NIST "
        "synthetic data experiments have both files"
    ),
}
"""Where to get what is not there."""

_MOST_PARITIES = 10**6
_SIX = {
    "ADULT": ("education", "marital-status", "occupation", "sex", "income>50K", "age"),
    "SURVEY": ("sex", "age", "education", "employment", "smoker", "insured"),
}


@dataclass(frozen=True, eq=False)
class Bench:
    """A public table, its schema and its codes."""

    name: str
    schema: Schema
    table: pa.Table
    codes: Sequence[NDArray[np.unsignedinteger[Any]]] = field(repr=False)

    @classmethod
    def of(cls, name: str, schema: Schema, table: pa.Table) -> Bench:
        """Encode once."""
        return cls(name, schema, table, schema.encode(table))

    @property
    def rows(self) -> int:
        """n, public here."""
        return self.table.num_rows

    def six(self) -> Bench | None:
        """Six columns whose universe can be enumerated, where the table is known to have them."""
        wanted = _SIX.get(self.name, ())
        have = {column.name for column in self.schema.columns}
        if not wanted or not have.issuperset(wanted):
            return None
        columns = tuple(column for column in self.schema.columns if column.name in wanted)
        narrow = self.table.select([column.name for column in columns])
        return Bench.of(self.name, Schema(columns), narrow)

    def errors(self, made: pa.Table, cliques: Sequence[tuple[int, ...]]) -> tuple[float, float]:
        """(worst cell, mean total variation) of `made` over the marginals; empty cells cost nothing."""
        return self.errors_of(self.schema.encode(made), cliques)

    def errors_of(
        self, fake: Sequence[NDArray[Any]], cliques: Sequence[tuple[int, ...]]
    ) -> tuple[float, float]:
        """The same for rows that are codes already, one array per column."""
        real_share, fake_share = 1 / self.rows, 1 / max(fake[0].size, 1)
        shape, worst, variation = self.schema.shape, 0.0, 0.0
        for clique in cliques:
            size = cells(shape, clique)
            ours, theirs = _pack(self.codes, shape, clique), _pack(fake, shape, clique)
            if size > 4 * self.rows:  # far more cells than rows: those that occur
                occupied, both = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
                ours, theirs, size = both[: ours.size], both[ours.size :], occupied.size
            gap = np.abs(
                np.bincount(ours, minlength=size) * real_share
                - np.bincount(theirs, minlength=size) * fake_share
            )
            worst = max(worst, float(gap.max()))
            variation += float(gap.sum()) / 2
        return worst, variation / max(len(cliques), 1)

    def wasserstein(self, fake: Sequence[NDArray[Any]]) -> float:
        """W1 as a share of the range, mean over the ordered columns; 0 where there are none."""
        found = [0.0] if not any(c.ordered for c in self.schema.modelled) else []
        for ours, theirs, column in zip(self.codes, fake, self.schema.modelled, strict=True):
            if column.ordered and column.size > 1:
                counts = [np.bincount(c, minlength=column.size) / c.size for c in (ours, theirs)]
                gaps = np.abs(np.cumsum(counts[0] - counts[1]))[:-1]
                found.append(float(gaps.mean()))
        return sum(found) / len(found)

    def parity(self, fake: Sequence[NDArray[Any]], cliques: Sequence[tuple[int, ...]]) -> float:
        """The worst error of a parity E Π (−1)^{1[x_i = v_i]} over the columns of a marginal."""
        shape, worst = self.schema.shape, 0.0
        for clique in cliques:
            sizes = tuple(shape[i] for i in clique)
            if np.prod(sizes) > _MOST_PARITIES:
                continue
            packed = [_pack(codes, shape, clique) for codes in (self.codes, fake)]
            tables = [np.bincount(p, minlength=int(np.prod(sizes))) / p.size for p in packed]
            apart = (tables[0] - tables[1]).reshape(sizes)
            for axis, size in enumerate(sizes):
                signs = 1 - 2 * np.eye(size)
                apart = np.moveaxis(np.tensordot(signs, apart, axes=(1, axis)), 0, axis)
            worst = max(worst, float(np.abs(apart).max()))
        return worst


def _pack(
    codes: Sequence[NDArray[Any]],
    shape: Sequence[int],
    clique: tuple[int, ...],
) -> NDArray[np.int64]:
    packed = np.zeros(codes[0].size, np.int64)
    for column in clique:
        packed *= shape[column]
        packed += codes[column]
    return packed


def load(
    name: str, data: Path | None, domain: Path | None, ordinal: Sequence[str] = ()
) -> Bench | None:
    """A table in mbi's form, columns in the order of the domain; None where neither path is given.

    The codes of the columns `ordinal` have an order that means something.

    The order decides which marginals `marginals:3:64@0` draws. The experiments number columns as the
    domain file does; ADULT's two files agree, those of LOANS do not.

    Raises:
        InputError: One path without the other, a file that is not there, or columns that do not fit.
    """
    if data is None and domain is None:
        return None
    low, where = name.lower(), WHERE.get(name, "")
    if data is None or domain is None:
        raise InputError(f"--{low} and --{low}-domain go together: give both, or neither. {where}")
    for path in (data, domain):
        if not path.is_file():
            raise InputError(f"{path} is not there. {where}")
    from pyarrow import csv

    facts = {column.name: column for column in import_mbi(domain).columns}
    facts |= {n: replace(c, ordinal=True) for n, c in facts.items() if n in ordinal}
    try:
        table = csv.read_csv(data)
    except pa.ArrowInvalid as error:
        raise InputError(f"{data} is not a CSV file of integers: {error}") from None
    missing = sorted(set(facts) - set(table.column_names))
    if missing:
        raise InputError(f"{data} lacks {', '.join(missing)}, which {domain} declares. {where}")
    for column in facts:
        if not pa.types.is_integer(table[column].type):
            raise InputError(f"{data}: column {column!r} does not hold integers. {where}")
    return Bench.of(name, Schema(tuple(facts.values())), table.select(list(facts)))


_NUMBERS = {
    "age": Integer("age", 17, 90, bins=10),
    "fnlwgt": Integer("fnlwgt", 0, 1_500_000, bins=15),
    "education-num": Integer("education-num", 1, 16),
    "capital-gain": Integer("capital-gain", 0, 99_999, bins=13),
    "capital-loss": Integer("capital-loss", 0, 4_400, bins=11),
    "hours-per-week": Integer("hours-per-week", 1, 99, bins=11),
}


def adult_of_15(path: Path | None) -> Bench | None:
    """All 15 attributes of UCI's file; None without a path.

    Numbers are cut into the public bins above; education-num keeps its 16 values. Categories are
    those of the file, which is public, and `?` is one of them.

    Raises:
        InputError: The file is not there, or lacks a column of numbers.
    """
    if path is None:
        return None
    if not path.is_file():
        raise InputError(f"{path} is not there. {WHERE['ADULT']}")
    from pyarrow import csv

    table = csv.read_csv(path)
    missing = sorted(set(_NUMBERS) - set(table.column_names))
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}: it needs UCI's names in a header")
    columns = [
        _NUMBERS.get(name) or Category(name, tuple(sorted(table[name].unique().to_pylist())))
        for name in table.column_names
    ]
    return Bench.of("ADULT-15", Schema(tuple(columns)), table)


def scales(rows: int = 50_000, key: int = 0) -> Bench:
    """Six ordered columns of 8 to 48 values and two without order, all of one hidden group."""
    rng = np.random.default_rng(key)
    groups = 5
    hidden = rng.choice(groups, rows, p=rng.dirichlet(np.full(groups, 2.0)))
    columns, arrays = [], {}
    for at, size in enumerate((48, 32, 24, 16, 12, 8)):
        middle, spread = rng.normal(size=groups), rng.uniform(0.2, 0.8, groups)
        values = rng.normal(middle[hidden], spread[hidden])
        codes = np.clip(np.floor((values + 3) / 6 * size), 0, size - 1).astype(np.int64)
        columns.append(Category(f"scale {at + 1}", tuple(range(size)), ordinal=True))
        arrays[columns[-1].name] = codes
    for at, size in enumerate((6, 3)):
        laws = rng.dirichlet(np.full(size, 0.6), groups)
        codes = (np.cumsum(laws[hidden], axis=1) < rng.random(rows)[:, None]).sum(axis=1)
        columns.append(Category(f"kind {at + 1}", tuple(range(size))))
        arrays[columns[-1].name] = np.minimum(codes, size - 1)
    return Bench.of(f"SCALES {key}", Schema(tuple(columns)), pa.table(arrays))


def chains(rows: int = 50_000, key: int = 0) -> Bench:
    """Seven columns of 2 to 16 values, each of which follows from the one before."""
    rng = np.random.default_rng(key)
    shape = (5, 16, 4, 12, 2, 7, 10)
    codes = [rng.choice(shape[0], size=rows, p=rng.dirichlet(np.ones(shape[0])))]
    for before, size in pairwise(shape):
        laws = rng.dirichlet(np.full(size, 0.35), size=before)
        drawn = (laws[codes[-1]].cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1)
        codes.append(np.minimum(drawn, size - 1))
    columns = tuple(Category(f"link {at}", tuple(range(size))) for at, size in enumerate(shape, 1))
    arrays = {column.name: each for column, each in zip(columns, codes, strict=True)}
    return Bench.of(f"CHAIN {key}", Schema(columns), pa.table(arrays))


def generated(rows: int = 50_000) -> Bench:
    """The survey of a city that does not exist."""
    schema = demo.schema()
    columns = schema.modelled
    table = demo.city_health_survey(rows).select([column.name for column in columns])
    return Bench.of("SURVEY", Schema(columns), table)

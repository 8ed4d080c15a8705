"""Which questions a release must answer well: weighted marginals over the modelled columns.

A workload is public. It is written as a short form, as a file or as a list:

    marginals:3          every marginal of 3 columns
    marginals:3:64@0     64 of them, the ones that
                         numpy.random.RandomState(0).choice(m, 64, replace=False) picks from the
                         m combinations in the schema's column order
    wanted.json          [["age", "sex"], {"columns": ["age", "income"], "weight": 2}]
    wanted.toml          marginals = [["age", "sex"], {columns = ["age", "income"], weight = 2}]
"""

import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from understudy.errors import WorkloadError
from understudy.queries.evaluate import MAX_CELLS, Clique, cells
from understudy.schema import Schema

__all__ = [
    "MAX_MARGINALS",
    "Marginal",
    "MarginalsSpec",
    "Workload",
    "WorkloadLike",
    "marginals",
    "parse",
    "resolve",
]

MAX_MARGINALS = 10**6
"""The longest workload; beyond it, sample with `marginals:K:COUNT@SEED`."""

FORMS = (
    "a workload is 'marginals:3' (every marginal of 3 columns), 'marginals:3:64@0' (64 of them, "
    "sampled with seed 0), or a .json or .toml file that lists column names"
)

_SHORT = re.compile(r"marginals:(?P<k>[0-9]+)(:(?P<count>[0-9]+)(@(?P<seed>[0-9]+))?)?")


@dataclass(frozen=True)
class Marginal:
    """One marginal of a workload: its clique, and how much its errors matter."""

    clique: Clique
    weight: float = 1.0

    def __post_init__(self) -> None:
        clique = self.clique
        if not clique:
            raise WorkloadError("a marginal of a workload needs at least one column, it has none")
        if clique[0] < 0 or any(i >= j for i, j in itertools.pairwise(clique)):
            raise WorkloadError(f"clique {clique} is not a strictly increasing tuple of positions")
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise WorkloadError(
                f"the marginal {clique} has weight {self.weight}: a weight must be above 0"
            )


@dataclass(frozen=True)
class Workload:
    """A tuple of marginals, none of them twice.

    >>> workload = Workload((Marginal((0, 1)), Marginal((1, 2), 2.0)))
    >>> workload.cliques, workload.cells((2, 3, 5)), workload.closure(1)
    (((0, 1), (1, 2)), 21, ((0,), (1,), (2,)))
    """

    marginals: tuple[Marginal, ...]

    def __post_init__(self) -> None:
        if not self.marginals:
            raise WorkloadError(f"the workload is empty: {FORMS}")
        seen: set[Clique] = set()
        for marginal in self.marginals:
            if marginal.clique in seen:
                raise WorkloadError(
                    f"the marginal {marginal.clique} is listed twice: list it once, with the sum "
                    "of the weights"
                )
            seen.add(marginal.clique)

    def __len__(self) -> int:
        return len(self.marginals)

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques, in the workload's order."""
        return tuple(marginal.clique for marginal in self.marginals)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weights, in the workload's order."""
        return tuple(marginal.weight for marginal in self.marginals)

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The number of cells of each marginal."""
        return tuple(cells(shape, clique) for clique in self.cliques)

    def cells(self, shape: Sequence[int]) -> int:
        """The number of cells of all marginals together: the queries of the workload."""
        return sum(self.sizes(shape))

    def closure(self, k: int) -> tuple[Clique, ...]:
        """Every set of exactly `k` columns inside some clique, sorted."""
        return tuple(
            sorted({part for clique in self.cliques for part in itertools.combinations(clique, k)})
        )

    def to_json(self, schema: Schema) -> list[dict[str, Any]]:
        """The workload by column names; `from_json` reads it back, in the same order."""
        return [
            {"columns": _names(marginal.clique, schema), "weight": marginal.weight}
            for marginal in self.marginals
        ]

    @classmethod
    def from_json(cls, data: Any, schema: Schema, *, max_cells: int = MAX_CELLS) -> "Workload":
        """The workload that `to_json` or a user wrote, checked against the schema.

        Args:
            data: A list of lists of column names, or of `{"columns": [...], "weight": w}`; or a
                mapping that holds such a list as `marginals`.
            schema: What the names mean.

        Raises:
            WorkloadError: Malformed, or it does not fit the schema.
        """
        if isinstance(data, Mapping):
            if set(data) != {"marginals"}:
                raise WorkloadError(
                    f"the workload has the keys {sorted(map(str, data))}: only 'marginals', a list "
                    "of lists of column names, is expected"
                )
            data = data["marginals"]
        if isinstance(data, str) or not isinstance(data, Iterable):
            raise WorkloadError(f"the workload is {data!r}, not a list of lists of column names")
        found: dict[Clique, float] = {}
        for item in data:
            clique, weight = _entry(item, schema)
            label = _label(clique, schema)
            if clique in found:
                raise WorkloadError(
                    f"the marginal {label} is listed twice: list it once, with the sum of the "
                    "weights"
                )
            if not (math.isfinite(weight) and weight > 0):
                raise WorkloadError(
                    f"the marginal {label} has weight {weight}: a weight must be above 0; leave "
                    "the marginal out if it does not matter"
                )
            found[clique] = weight
        _check_cells(found, schema, max_cells)
        return cls(tuple(Marginal(clique, weight) for clique, weight in found.items()))

    def describe(self, schema: Schema) -> str:
        """One line for people: how many marginals, of how many columns, how many cells."""
        widths = sorted({len(clique) for clique in self.cliques})
        span = f"{widths[0]}" if len(widths) == 1 else f"{widths[0]} to {widths[-1]}"
        sizes = self.sizes(schema.shape)
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        return (
            f"{_plural(len(self), 'marginal')} of {span} {'column' if span == '1' else 'columns'}, "
            f"{_plural(sum(sizes), 'cell')}; "
            f"the largest is {_label(self.cliques[largest], schema)} with {sizes[largest]:,}"
        )


@dataclass(frozen=True)
class MarginalsSpec:
    """All marginals of `k` columns, or `count` of them; what `marginals:K:COUNT@SEED` means."""

    k: int
    count: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, low in (
            ("k", self.k, 1),
            ("count", self.count, 1),
            ("seed", self.seed, 0),
        ):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise WorkloadError(
                    f"marginals({name}={value!r}): {name} must be a whole number from {low}; "
                    f"{FORMS}"
                )
        if self.seed >= 2**32:
            raise WorkloadError(f"marginals(seed={self.seed}): seed must be below 2^32")

    def __str__(self) -> str:
        sample = "" if self.count is None else f":{self.count}@{self.seed}"
        return f"marginals:{self.k}{sample}"

    def resolve(self, schema: Schema, *, max_cells: int = MAX_CELLS) -> Workload:
        """The workload for the modelled columns of `schema`.

        Raises:
            WorkloadError: More columns, or more marginals, than there are; or one is too large.
        """
        columns = len(schema.modelled)
        if self.k > columns:
            raise WorkloadError(
                f"'{self}' asks for marginals of {self.k} columns, the schema models {columns}: "
                f"take a number up to {columns}"
            )
        total = math.comb(columns, self.k)
        if self.count is None:
            if total > MAX_MARGINALS:
                raise WorkloadError(
                    f"'{self}' has {total:,} marginals, more than {MAX_MARGINALS:,}: sample some, "
                    f"for instance 'marginals:{self.k}:1000@0'"
                )
            cliques = list(itertools.combinations(range(columns), self.k))
        else:
            if self.count > min(total, MAX_MARGINALS):
                raise WorkloadError(
                    f"'{self}' asks for {self.count:,} marginals: there are {total:,} of {self.k} "
                    f"columns, and at most {MAX_MARGINALS:,} are allowed"
                )
            if total > MAX_CELLS:
                raise WorkloadError(
                    f"'{self}' samples from {total:,} marginals, more than {MAX_CELLS:,}: take "
                    "fewer columns, or list the marginals in a file"
                )
            # RandomState, because its stream is frozen: the short form means the same forever.
            picks = np.random.RandomState(self.seed).choice(total, self.count, replace=False)
            cliques = [_combination(int(rank), columns, self.k) for rank in picks]
        _check_cells(cliques, schema, max_cells)
        return Workload(tuple(Marginal(clique) for clique in cliques))


WorkloadLike: TypeAlias = (
    "Workload | MarginalsSpec | str | Path | Iterable[Sequence[str] | Mapping[str, Any]]"
)


def marginals(k: int, count: int | None = None, seed: int = 0) -> MarginalsSpec:
    """Every marginal of `k` columns, or `count` of them sampled with a public `seed`.

    >>> print(marginals(3), marginals(3, 64))
    marginals:3 marginals:3:64@0
    """
    return MarginalsSpec(k, count, seed)


def parse(text: str | Path, schema: Schema, *, max_cells: int = MAX_CELLS) -> Workload:
    """The workload that a short form or a JSON or TOML file states.

    Raises:
        WorkloadError: Malformed, no such file, or it does not fit the schema.
    """
    if isinstance(text, str) and re.match(r"\s*marginals\b(?!\.)", text):
        match = _SHORT.fullmatch(text.strip())
        if match is None:
            raise WorkloadError(f"the workload {text!r} is malformed: {FORMS}")
        count, seed = match["count"], match["seed"]
        return MarginalsSpec(
            int(match["k"]), None if count is None else int(count), int(seed or 0)
        ).resolve(schema, max_cells=max_cells)
    path = Path(text)
    if path.suffix not in (".json", ".toml"):
        raise WorkloadError(f"the workload {str(text)!r} is not understood: {FORMS}")
    try:
        content = path.read_text(encoding="utf-8")
        data = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except OSError as error:
        raise WorkloadError(
            f"the workload file {str(path)!r} cannot be read ({error.strerror}): {FORMS}"
        ) from None
    except ValueError as error:  # JSON, TOML and UTF-8 errors alike; a workload is public
        raise WorkloadError(f"the workload file {str(path)!r} is malformed: {error}") from None
    return Workload.from_json(data, schema, max_cells=max_cells)


def resolve(workload: WorkloadLike, schema: Schema, *, max_cells: int = MAX_CELLS) -> Workload:
    """The workload that any accepted form means under `schema`.

    Args:
        workload: A `Workload`, a spec such as `marginals(3)`, a short form, a path, or a list of
            tuples of column names (or of `{"columns": ..., "weight": ...}`).
        schema: What the names mean.
        max_cells: The largest marginal that the method at hand can serve.

    Raises:
        WorkloadError: Malformed, or it does not fit the schema.
    """
    if isinstance(workload, Workload):
        outside = [c for c in workload.cliques if c[-1] >= len(schema.modelled)]
        if outside:
            raise WorkloadError(
                f"the clique {outside[0]} points past the {len(schema.modelled)} modelled columns "
                "of the schema"
            )
        _check_cells(workload.cliques, schema, max_cells)
        return workload
    if isinstance(workload, MarginalsSpec):
        return workload.resolve(schema, max_cells=max_cells)
    if isinstance(workload, (str, Path)):
        return parse(workload, schema, max_cells=max_cells)
    return Workload.from_json(workload, schema, max_cells=max_cells)


def _entry(item: Any, schema: Schema) -> tuple[Clique, float]:
    weight: Any = 1.0
    if isinstance(item, Mapping):
        unknown = set(item) - {"columns", "weight"}
        if unknown or "columns" not in item:
            raise WorkloadError(
                f"the marginal {dict(item)!r} is malformed: it takes 'columns' and 'weight'"
            )
        weight = item.get("weight", 1.0)
        item = item["columns"]
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise WorkloadError(f"the marginal {item!r} has weight {weight!r}, not a number")
    if isinstance(item, str) or not isinstance(item, Sequence):
        raise WorkloadError(
            f"the marginal {item!r} is malformed: write a list of column names, such as "
            '["age", "sex"]'
        )
    if not all(isinstance(name, str) for name in item):
        raise WorkloadError(f"the marginal {list(item)!r} does not consist of column names")
    if not item:
        raise WorkloadError("a marginal of the workload is empty: name at least one column")
    if len(set(item)) < len(item):
        raise WorkloadError(f"the marginal {list(item)!r} names a column twice")
    return tuple(sorted(schema.position(name) for name in item)), float(weight)


def _check_cells(cliques: Iterable[Clique], schema: Schema, max_cells: int) -> None:
    for clique in cliques:
        size = cells(schema.shape, clique)
        if size > max_cells:
            widest = max(clique, key=lambda i: schema.shape[i])
            raise WorkloadError(
                f"the marginal {_label(clique, schema)} has {size:,} cells, more than "
                f"{max_cells:,}: leave it out, or give its columns coarser bins or fewer "
                f"categories ({schema.modelled[widest].name!r} alone has {schema.shape[widest]:,})"
            )


def _combination(rank: int, columns: int, k: int) -> Clique:
    """The `rank`-th of `itertools.combinations(range(columns), k)`, without listing them."""
    clique: list[int] = []
    column = 0
    while len(clique) < k:
        following = math.comb(columns - column - 1, k - len(clique) - 1)
        if rank < following:
            clique.append(column)
        else:
            rank -= following
        column += 1
    return tuple(clique)


def _names(clique: Clique, schema: Schema) -> list[str]:
    return [schema.modelled[i].name for i in clique]


def _label(clique: Clique, schema: Schema) -> str:
    return " × ".join(_names(clique, schema))


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""Which questions a release must answer well: weighted families of queries on the modelled columns.

The usual family is a marginal, all of its cells; `understudy.queries.classes` says which others there
are. A workload is public. It is written as a short form (`FORMS`, docs/workload.md), as a file or as a
list, or in Python as `workload.marginals(2) + workload.prefixes(["age"])`:

    wanted.json          [["age", "sex"], {"kind": "prefixes", "columns": ["age"], "weight": 2}]
    wanted.toml          marginals = [["age", "sex"], {columns = ["age", "income"], weight = 2}]
                         prefixes = [["age"], ["age", "income"]]

The sample `marginals:3:64@0` is what numpy.random.RandomState(0).choice(m, 64, replace=False) picks
from the m combinations in the schema's column order.
"""

import itertools
import json
import math
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from understudy._types import Clique
from understudy.errors import WorkloadError
from understudy.queries.classes import KINDS, MARGINALS, Family, check_size
from understudy.queries.evaluate import MAX_CELLS, cells
from understudy.schema import Schema

MAX_MARGINALS = 10**6
"""The longest workload; beyond it, sample with `marginals:K:COUNT@SEED`."""

FORMS = (
    "a workload is 'marginals:3' (every marginal of 3 columns), 'marginals:3:64@0' (64 of them, "
    "sampled with seed 0), 'marginals:3:with=COLUMN' (those that hold the column; several are "
    "joined by ','), or a .json or .toml file that lists column names; likewise "
    "'conjunctions:2', 'disjunctions:2', 'parities:3', 'halfspaces:3' and 'prefixes:1', joined by '+'"
)

_KIND = "|".join(KINDS)
_SHORT = re.compile(
    rf"(?P<kind>{_KIND}):(?P<k>[0-9]+)(:(?P<count>[0-9]+)(@(?P<seed>[0-9]+))?)?"
    r"(:with=(?P<holding>.+))?"
)


@dataclass(frozen=True)
class Workload:
    """A tuple of families, none of them twice.

    >>> workload = Workload((Family((0, 1)), Family((1, 2), 2.0)))
    >>> workload.cliques, workload.cells((2, 3, 5))
    (((0, 1), (1, 2)), 21)
    """

    families: tuple[Family, ...]

    def __post_init__(self) -> None:
        if not self.families:
            raise WorkloadError(f"the workload is empty: {FORMS}")
        seen: set[tuple[str, Clique]] = set()
        for family in self.families:
            if (family.kind, family.clique) in seen:
                raise WorkloadError(
                    f"{_family(family.kind, str(family.clique))} is listed twice: list it once, "
                    "with the sum of the weights"
                )
            seen.add((family.kind, family.clique))

    def __len__(self) -> int:
        return len(self.families)

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques, in the workload's order."""
        return tuple(family.clique for family in self.families)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weights, in the workload's order."""
        return tuple(family.weight for family in self.families)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of queries that occur, each once."""
        return tuple(dict.fromkeys(family.kind for family in self.families))

    @property
    def plain(self) -> bool:
        """Whether it is marginals alone."""
        return self.kinds == (MARGINALS,)

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The number of queries of each family: for a marginal, its cells."""
        return tuple(family.size(shape) for family in self.families)

    def cells(self, shape: Sequence[int]) -> int:
        """The number of queries of all families together: for marginals, their cells."""
        return sum(self.sizes(shape))

    def to_json(self, schema: Schema) -> list[dict[str, Any]]:
        """The workload by column names; `from_json` reads it back, in the same order."""
        return [
            {
                **({} if family.kind == MARGINALS else {"kind": family.kind}),
                "columns": _names(family.clique, schema),
                "weight": family.weight,
            }
            for family in self.families
        ]

    @classmethod
    def from_json(cls, data: Any, schema: Schema, *, max_cells: int = MAX_CELLS) -> "Workload":
        """The workload that `to_json` or a user wrote, checked against the schema.

        Args:
            data: A list of lists of column names, or of `{"columns": [...], "weight": w}`, with a
                `"kind"` where it is not a marginal; or a mapping that holds such lists by kind.
            schema: What the names mean.

        Raises:
            WorkloadError: Malformed, or it does not fit the schema.
        """
        return _checked(cls(_read(data, schema)), schema, max_cells)


class _Part(ABC):
    """What may be joined with `+` to one workload."""

    @abstractmethod
    def families(self, schema: Schema) -> tuple[Family, ...]:
        """What is asked for of the modelled columns; `WorkloadError` where they do not have it."""

    def resolve(self, schema: Schema, *, max_cells: int = MAX_CELLS) -> Workload:
        """The workload for the modelled columns of `schema`.

        Raises:
            WorkloadError: It does not fit the columns, or asks for too much, or twice for the same.
        """
        return _checked(Workload(self.families(schema)), schema, max_cells)

    def __add__(self, other: "Spec") -> "Together":
        if not isinstance(other, _Part):
            return NotImplemented
        return Together((*_parts(self), *_parts(other)))


@dataclass(frozen=True)
class Every(_Part):
    """All families of a kind on `k` columns, or `count` of them; what `marginals:K:COUNT@SEED` means.

    Kinds that need ordered columns are taken over those. With `holding`, only families that hold all
    of these columns.
    """

    k: int
    count: int | None = None
    seed: int = 0
    kind: str = MARGINALS
    holding: tuple[str, ...] = ()

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
                    f"{self.kind}({name}={value!r}): {name} must be a whole number from {low}; "
                    f"{FORMS}"
                )
        if self.seed >= 2**32:
            raise WorkloadError(f"{self.kind}(seed={self.seed}): seed must be below 2^32")

    def __str__(self) -> str:
        sample = "" if self.count is None else f":{self.count}@{self.seed}"
        holding = f":with={','.join(self.holding)}" if self.holding else ""
        return f"{self.kind}:{self.k}{sample}{holding}"

    def families(self, schema: Schema) -> tuple[Family, ...]:
        """See `_Part.families`."""
        ordered = KINDS[self.kind].ordered
        usable = [i for i, c in enumerate(schema.modelled) if not ordered or c.ordered]
        columns = len(usable)
        if self.k > columns:
            has = f"has {columns} ordered ones" if ordered else f"models {columns}"
            remedy = f"take a number up to {columns}" if columns else "declare some as ordinal"
            raise WorkloadError(
                f"'{self}' asks for {self.kind} of {self.k} columns, the schema {has}: {remedy}"
            )
        held = self._held(schema, usable)
        usable = [i for i in usable if i not in held]
        columns, free = len(usable), self.k - len(held)
        total = math.comb(columns, free)
        if self.count is None:
            if total > MAX_MARGINALS:
                raise WorkloadError(
                    f"'{self}' has {total:,} {self.kind}, more than {MAX_MARGINALS:,}: sample "
                    f"some, for instance '{self.kind}:{self.k}:1000@0'"
                )
            cliques = list(itertools.combinations(range(columns), free))
        else:
            if self.count > min(total, MAX_MARGINALS):
                raise WorkloadError(
                    f"'{self}' asks for {self.count:,} {self.kind}: there are {total:,} of "
                    f"{self.k} columns, and at most {MAX_MARGINALS:,} are allowed"
                )
            if total > MAX_CELLS:
                raise WorkloadError(
                    f"'{self}' samples from {total:,} {self.kind}, more than {MAX_CELLS:,}: take "
                    "fewer columns, or list them in a file"
                )
            # RandomState, because its stream is frozen: the short form means the same forever.
            picks = np.random.RandomState(self.seed).choice(total, self.count, replace=False)
            cliques = [_combination(int(rank), columns, free) for rank in picks]
        return tuple(
            Family(tuple(sorted((*held, *(usable[i] for i in clique)))), kind=self.kind)
            for clique in cliques
        )

    def _held(self, schema: Schema, usable: Sequence[int]) -> frozenset[int]:
        """The positions of `holding`; refused where they are too many, or have no such queries."""
        held = frozenset(i for name in self.holding for i in schema.positions(name))
        for i in sorted(held.difference(usable)):
            raise WorkloadError(
                f"'{self}': column {schema.modelled[i].name!r} is not ordered, and {self.kind} are "
                "of ordered columns: leave it out, or declare it as ordinal"
            )
        if len(held) > self.k:
            raise WorkloadError(
                f"'{self}' asks for {self.kind} of {self.k} columns that hold {len(held)}: ask for "
                f"at least {len(held)} columns, '{self.kind}:{len(held)}…'"
            )
        return held


@dataclass(frozen=True)
class Named(_Part):
    """The family of a kind on the named columns, all of them together."""

    columns: tuple[str, ...]
    kind: str = MARGINALS
    weight: float = 1.0

    def families(self, schema: Schema) -> tuple[Family, ...]:
        """See `_Part.families`."""
        entry = {"kind": self.kind, "columns": self.columns, "weight": self.weight}
        return _read([entry], schema)


@dataclass(frozen=True)
class Together(_Part):
    """Several specs as one workload, in their order."""

    joined: "tuple[Spec, ...]"

    def families(self, schema: Schema) -> tuple[Family, ...]:
        """See `_Part.families`; what different parts ask for alike has the sum of their weights."""
        families = tuple(family for part in self.joined for family in part.families(schema))
        return families if len(set(self.joined)) < len(self.joined) else summed(families)


Spec: TypeAlias = "Every | Named | Together"

WorkloadLike: TypeAlias = (
    "Workload | Spec | str | Path | Iterable[Sequence[str] | Mapping[str, Any]]"
)


def summed(families: Iterable[Family]) -> tuple[Family, ...]:
    """Every family once, where it first stood, with the sum of its weights."""
    found: dict[tuple[str, Clique], Family] = {}
    for family in families:
        before = found.get((family.kind, family.clique))
        weight = family.weight + (before.weight if before else 0.0)
        found[family.kind, family.clique] = replace(family, weight=weight)
    return tuple(found.values())


def _spec(
    kind: str,
    columns: int | Sequence[str],
    count: int | None = None,
    seed: int = 0,
    holding: Sequence[str] = (),
) -> Every | Named:
    if isinstance(columns, str):
        raise WorkloadError(f"{kind}({columns!r}): write a list of names, [{columns!r}]")
    if isinstance(holding, str):
        holding = (holding,)
    if isinstance(columns, Sequence):
        if count is not None or holding:
            name = "count" if count is not None else "holding"
            raise WorkloadError(f"{kind}: {name} is for a number of columns, not for named ones")
        return Named(tuple(columns), kind)
    return Every(columns, count, seed, kind, tuple(holding))


def marginals(
    columns: int | Sequence[str],
    count: int | None = None,
    seed: int = 0,
    holding: Sequence[str] = (),
) -> Every | Named:
    """Every marginal of so many columns, or `count` of them sampled with a public `seed`.

    Named columns instead of a number give one marginal, of all of them. With `holding`, the marginals
    that hold these columns.

    >>> print(marginals(3), marginals(3, 64), marginals(3, holding=["sex"]))
    marginals:3 marginals:3:64@0 marginals:3:with=sex
    >>> print(prefixes(1) + prefixes(["age", "income"]))  # doctest: +ELLIPSIS
    Together(joined=(Every(k=1, ...), Named(columns=('age', 'income'), ...)))
    """
    return _spec(MARGINALS, columns, count, seed, holding)


conjunctions = partial(_spec, "conjunctions")
"""Conjunctions of `x = v` and `x ≠ v`, one literal a column; arguments are those of `marginals`."""
disjunctions = partial(_spec, "disjunctions")
"""Disjunctions of `x = v` and `x ≠ v`, one literal a column."""
parities = partial(_spec, "parities")
"""Whether an odd number of `x = v` holds, one literal a column."""
halfspaces = partial(_spec, "halfspaces")
"""Whether at least m of `x = v` and `x ≠ v` hold, one literal a column, for every m."""
prefixes = partial(_spec, "prefixes")
"""The distribution function of ordered columns: products of thresholds `x ≤ v`."""


def parse(text: str | Path, schema: Schema, *, max_cells: int = MAX_CELLS) -> Workload:
    """The workload that a short form or a JSON or TOML file states.

    Raises:
        WorkloadError: Malformed, no such file, or it does not fit the schema.
    """
    if isinstance(text, str) and re.match(rf"\s*({_KIND})\b(?!\.)", text):
        specs: list[Every] = []
        for part in text.split("+"):
            match = _SHORT.fullmatch(part.strip())
            if match is None:
                raise WorkloadError(f"the workload {text!r} is malformed: {FORMS}")
            count, seed = match["count"], match["seed"]
            number = None if count is None else int(count)
            held = _columns(match["holding"] or "", schema)
            specs.append(Every(int(match["k"]), number, int(seed or 0), match["kind"], held))
        spec = specs[0] if len(specs) == 1 else Together(tuple(specs))
        return spec.resolve(schema, max_cells=max_cells)
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
        return _checked(workload, schema, max_cells)
    if isinstance(workload, _Part):
        return workload.resolve(schema, max_cells=max_cells)
    if isinstance(workload, str | Path):
        return parse(workload, schema, max_cells=max_cells)
    return Workload.from_json(workload, schema, max_cells=max_cells)


def _columns(text: str, schema: Schema) -> tuple[str, ...]:
    """The columns of `with=`: one whose name holds a comma stands alone."""
    if any(column.name == text for column in schema.columns):
        return (text,)
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _parts(spec: Any) -> "tuple[Spec, ...]":
    return spec.joined if isinstance(spec, Together) else (spec,)


def _read(data: Any, schema: Schema) -> tuple[Family, ...]:
    """The families of a list of entries, or of a mapping of such lists by kind."""
    if not isinstance(data, Mapping):
        items = [(MARGINALS, item) for item in _listed(data)]
    elif data and set(data) <= set(KINDS):
        items = [(kind, item) for kind, listed in data.items() for item in _listed(listed)]
    else:
        raise WorkloadError(
            f"the workload has the keys {sorted(map(str, data))}: only "
            f"{', '.join(map(repr, KINDS))}, each a list of lists of column names, are "
            "expected"
        )
    found: dict[tuple[str, Clique], float] = {}
    for default, item in items:
        kind, clique, weight = _entry(item, schema, default)
        label = _family(kind, _label(clique, schema))
        if (kind, clique) in found:
            raise WorkloadError(
                f"{label} is listed twice: list it once, with the sum of the weights"
            )
        if not (math.isfinite(weight) and weight > 0):
            raise WorkloadError(
                f"{label} has weight {weight}: a weight must be above 0; leave it out if it "
                "does not matter"
            )
        found[kind, clique] = weight
    return tuple(Family(clique, weight, kind) for (kind, clique), weight in found.items())


def _listed(data: Any) -> Iterable[Any]:
    if isinstance(data, (str, Mapping)) or not isinstance(data, Iterable):
        raise WorkloadError(f"the workload is {data!r}, not a list of lists of column names")
    return data


def _entry(item: Any, schema: Schema, kind: str) -> tuple[str, Clique, float]:
    weight: Any = 1.0
    if isinstance(item, Mapping):
        unknown = set(item) - {"columns", "weight", "kind"}
        if unknown or "columns" not in item:
            raise WorkloadError(
                f"the entry {dict(item)!r} is malformed: it takes 'columns' and 'weight', and "
                "'kind' if it is not a marginal"
            )
        weight = item.get("weight", 1.0)
        kind = item.get("kind", kind)
        item = item["columns"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise WorkloadError(f"the kind {kind!r} is not known: queries are {', '.join(KINDS)}")
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise WorkloadError(f"{_family(kind, repr(item))} has weight {weight!r}, not a number")
    if isinstance(item, str) or not isinstance(item, Sequence):
        raise WorkloadError(
            f"{_family(kind, repr(item))} is malformed: write a list of column names, such as "
            '["age", "sex"]'
        )
    if not all(isinstance(name, str) for name in item):
        raise WorkloadError(f"{_family(kind, repr(list(item)))} does not consist of column names")
    if not item:
        raise WorkloadError("a family of the workload is empty: name at least one column")
    if len(set(item)) < len(item):
        raise WorkloadError(f"{_family(kind, repr(list(item)))} names a column twice")
    # A column that is computed from others is asked for by those.
    clique = {i for name in item for i in schema.positions(name)}
    return kind, tuple(sorted(clique)), float(weight)


def _checked(workload: Workload, schema: Schema, max_cells: int) -> Workload:
    """The workload, whose families fit the schema and are not too large."""
    families = workload.families
    for family in families:
        size = cells(schema.shape, family.clique)
        if size > max_cells:
            widest = max(family.clique, key=lambda i: schema.shape[i])
            raise WorkloadError(
                f"the marginal {_label(family.clique, schema)} has {size:,} cells, more than "
                f"{max_cells:,}: leave it out, or give its columns coarser bins or fewer "
                f"categories ({schema.modelled[widest].name!r} alone has {schema.shape[widest]:,})"
            )
        family.check(schema)
    total = sum(cells(schema.shape, family.clique) for family in families)
    if total >= 2**63:
        raise WorkloadError(
            f"the workload has {total:.1e} cells in all, more than can be numbered with 64 bits: leave "
            f"out some of its {len(families)} marginals, or give their columns coarser bins"
        )
    if any(family.kind != MARGINALS for family in families):
        check_size(families, schema.shape)
    return workload


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


def _family(kind: str, label: str) -> str:
    return f"the marginal {label}" if kind == MARGINALS else f"the family of {kind} {label}"

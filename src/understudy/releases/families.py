"""A release of two tables: synthetic parents with their children, and keys that hold by construction.

The model is one of views (`understudy.schema.family`); families are made from it
(`understudy.models.families`), and the certificate speaks of their views. `rows` of such a release is
one view of every family, picked at random. Shares are of families: every family counts once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from understudy._types import Clique, Rng, Whole
from understudy.columns import Column, Identifier
from understudy.columns.reading import pc
from understudy.errors import InputError, VerificationError
from understudy.models import Weighted
from understudy.models.families import copied, generate
from understudy.players.base import Model
from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.releases.answer import Answer, answer
from understudy.releases.conditions import Match
from understudy.releases.members import breaking, in_order
from understudy.releases.release import Release
from understudy.schema import Schema
from understudy.schema.family import FamilySchema

if TYPE_CHECKING:
    from understudy.estimates import Known


@dataclass(frozen=True, eq=False)
class MadeFamilies:
    """Synthetic families, as tables and as codes."""

    schema: FamilySchema
    codes: EncodedFamilies
    parents: pa.Table
    children: pa.Table

    @property
    def views(self) -> ViewCounts:
        """Their exact tables."""
        schema = self.schema
        return ViewCounts(self.codes, schema.layout, schema.weight, schema.shape)

    def one_view_each(self, key: int) -> pa.Table:
        """One view of every family, picked at random, as a table."""
        rng = np.random.default_rng(np.random.SeedSequence(key, spawn_key=(1,)))
        return self.schema.decode(self.views.one_each(rng), rng)


def made_families(
    schema: FamilySchema, model: Model, families: int, key: int, cliques: Sequence[Clique]
) -> MadeFamilies:
    """What a model of views gives for a key; the same key, the same families."""
    rng = np.random.default_rng(np.random.SeedSequence(key, spawn_key=(0,)))
    if not isinstance(model, Weighted):
        raise InputError("families are made from weighted records; use method = maxent")
    forbidden = {}
    if schema.rules:
        model = replace(model, codes=tuple(schema.project(model.codes)))
        forbidden = schema.between.forbidden()
    codes = generate(model, schema.layout, families, cliques, rng, forbidden=forbidden)
    codes, parents, children = _decoded(schema, codes, rng)
    _, _, family = schema.tables
    names = parents.column(family.key).take(np.repeat(np.arange(codes.sizes.size), codes.sizes))
    at = children.schema.get_field_index(family.foreign_key)
    stored = children.schema.field(at)
    return MadeFamilies(
        schema, codes, parents, children.set_column(at, stored, names.cast(stored.type))
    )


def _decoded(
    schema: FamilySchema, codes: EncodedFamilies, rng: Rng
) -> tuple[EncodedFamilies, pa.Table, pa.Table]:
    """(codes, parents, children) that keep all rules, but for the foreign key."""
    own = written(schema)
    codes = EncodedFamilies(
        tuple(own[0].project(codes.parents)), codes.sizes, tuple(own[1].project(codes.children))
    )
    tables = own[0].decode(codes.parents, rng), own[1].decode(codes.children, rng)
    if not schema.rules:
        return codes, *tables
    rng = rng.spawn(1)[0]
    tables, wrong = in_order(schema, codes, tables, rng)
    for broken in breaking(schema, codes.sizes, *tables).values():
        wrong |= broken
    if not wrong.any():
        return codes, *tables
    if wrong.all():  # one child has no sibling to break a rule with
        if codes.sizes.max() < 2:
            raise InputError("no family that the model gives keeps the rules between its members")
        first = np.cumsum(codes.sizes) - codes.sizes
        only = tuple(column[first[codes.sizes > 0]] for column in codes.children)
        return _decoded(
            schema, EncodedFamilies(codes.parents, np.minimum(codes.sizes, 1), only), rng
        )
    homes, at = copied(codes.sizes, wrong, rng)
    codes = EncodedFamilies(
        tuple(column[homes] for column in codes.parents),
        codes.sizes[homes],
        tuple(column[at] for column in codes.children),
    )
    return codes, _taken(own[0], tables[0], homes), _taken(own[1], tables[1], at)


def _taken(schema: Schema, table: pa.Table, at: Whole) -> pa.Table:
    """Rows of a table under fresh numbers."""
    taken = table.take(pa.array(at))
    for i, column in enumerate(schema.written):
        if isinstance(column, Identifier):
            taken = taken.set_column(i, table.schema.field(i), column.generate(len(at)))
    return taken


def written(schema: FamilySchema) -> tuple[Schema, Schema]:
    """The schemas of the two tables as they are written: with fresh keys, and numbers for an order."""
    parents, children, family = schema.tables
    ordered = [] if family.order is None else [family.order]
    return (
        replace(parents, columns=tuple(_numbered(c, [family.key]) for c in parents.columns)),
        replace(
            children,
            columns=tuple(_numbered(c, [family.foreign_key, *ordered]) for c in children.columns),
        ),
    )


def _numbered(column: Column, names: Sequence[str]) -> Column:
    if column.name in names and isinstance(column, Identifier) and column.dropped:
        return replace(column, action="{}")
    return column


def read_families(schema: FamilySchema, parents: pa.Table, children: pa.Table) -> MadeFamilies:
    """Families that were written, as codes again.

    Raises:
        VerificationError: Keys repeat, children have no parent or stand apart from their siblings, a
            family has fewer or more children than declared, a value is not legal, or a rule is
            broken.
    """
    own, other = written(schema)
    _, _, family = schema.tables
    rest = tuple(column for column in other.columns if column.name != family.foreign_key)
    other, bare = replace(other, columns=rest), children.drop_columns([family.foreign_key])
    for name, table, each in ((family.parent, parents, own), (family.child, bare, other)):
        if problems := each.illegal(table):
            raise VerificationError(f"table {name!r} is not legal: " + "; ".join(problems[:3]))
    keys = parents.column(family.key).combine_chunks()
    home = pc.index_in(
        children.column(family.foreign_key),
        keys.cast(children.schema.field(family.foreign_key).type),
    )
    if home.null_count:
        raise VerificationError(
            f"table {family.child!r}: {home.null_count} rows name no {family.parent!r}"
        )
    index = home.to_numpy().astype(np.int64)
    if (np.diff(index) < 0).any():
        raise VerificationError(f"table {family.child!r} is not in the order of {family.parent!r}")
    sizes = np.bincount(index, minlength=parents.num_rows).astype(np.int64)
    if sizes.size and not family.min_children <= sizes.min() <= sizes.max() <= family.max_children:
        raise VerificationError(
            f"a family has {sizes.min()} to {sizes.max()} children; declared are "
            f"{family.min_children} to {family.max_children}"
        )
    first, second, _ = schema.tables
    codes = EncodedFamilies(tuple(first.encode(parents)), sizes, tuple(second.encode(children)))
    for says, broken in breaking(schema, sizes, parents, children).items():
        if broken.any():
            raise VerificationError(f"{int(broken.sum())} families break the rule {says!r}")
    return MadeFamilies(schema, codes, parents, children)


@dataclass(frozen=True, eq=False)
class FamilyRelease(Release):
    """A release of parents and children; see `Release` for what both have.

    `rows` is one view of every family; `parents` and `children` are the two certified tables.
    """

    made: MadeFamilies | None = field(default=None, repr=False)

    @property
    def families(self) -> MadeFamilies:
        """The families that are certified."""
        assert self.made is not None
        return self.made

    @property
    def parents(self) -> pa.Table:
        """One row for every synthetic family."""
        return self.families.parents

    @property
    def children(self) -> pa.Table:
        """The children, family after family, in their order."""
        return self.families.children

    @property
    def names(self) -> tuple[str, str]:
        """What the two tables are called."""
        _, _, family = self.families.schema.tables
        return family.parent, family.child

    @property
    def size_in_words(self) -> str:
        """How many families there are."""
        parent, child = self.names
        return (
            f"{self.parents.num_rows:,} synthetic {parent} with {self.children.num_rows:,} {child}"
        )

    def sample_name(self, stem: str) -> str:
        """A folder: fresh families are two files."""
        return f"{stem}.sample"

    def stream(self, rows: int, **_: Any) -> Iterator[pa.Table]:
        """Refused: families are two tables; `sample` gives both."""
        raise InputError(f"rows = {rows}: families are two tables; use sample, which gives both")

    def sample_to(self, folder: str | Path, rows: int, **_: Any) -> Path:
        """Refused: families are drawn at once."""
        raise InputError(
            f"{folder}: families are not written in parts; use sample, for at most some millions"
        )

    @cached_property
    def _known(self) -> Known:
        from understudy.releases.estimating import known_of_families

        return known_of_families(self)

    def sample(
        self,
        rows: int | None = None,
        *,
        where: str | None = None,
        match: Match | Sequence[str] | None = None,
        key: int | None = None,
        like: str | None = None,
    ) -> Any:
        """(parents, children) of `rows` fresh families. Free; the certificate is not about them."""
        if where is not None or match is not None:
            raise InputError("where and match are for releases of one table, and this has two")
        from understudy.source import to_frame

        count = self.parents.num_rows if rows is None else rows
        if count < 1:
            raise InputError(f"rows = {count}: ask for at least 1 family")
        key = secrets.randbits(63) if key is None else key
        schema = self.families.schema
        made = made_families(schema, self.model, count, key, self.workload.cliques)
        return tuple(to_frame(table, like or "arrow") for table in (made.parents, made.children))  # type: ignore[arg-type]

    def answer(self, predicate: str) -> Answer:
        """The share of families, every child of a family counted equally; see `Release.answer`."""
        return answer(
            self.schema, self.workload, self.rows, self.certificate, predicate, self.families.views
        )

    def __repr__(self) -> str:
        return (
            f"<Release of {self.parents.num_rows:,} families with {self.children.num_rows:,} children "
            f"by {self.method.get('name')}: {self.promise}; {self.certificate}>"
        )

"""Fresh rows under a condition, or with other shares: what people ask of `sample`.

    where   a predicate that every row satisfies, such as "age >= 65 and sex = 'F'"
    match   shares that the rows have: {"sex": {"F": 0.5}} or {"age >= 65": 0.3}

The released model is conditioned and reweighted (`models.conditioning`). Where a bound of the
predicate falls inside a cell, rows are drawn from the whole cell and those outside are rejected, so
that every row satisfies it. Free, as all rows of a released model are. The certificate speaks of the
rows in the release and does not cover these: `NOT_CERTIFIED`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from understudy._types import Bools, Codes, Rng, Whole
from understudy.columns.base import near
from understudy.constraints import tokens
from understudy.errors import InputError, WorkloadError
from understudy.models import Weighted
from understudy.models.conditioning import Part, Shares, as_records, conditioned, matched
from understudy.players.base import Model
from understudy.queries import Predicate
from understudy.releases.rows import fresh_rows
from understudy.schema import Identifier, Schema

NOT_CERTIFIED = "these rows are conditioned: the certificate does not cover them"

Match = Mapping[str, Mapping[Any, float] | float]
"""Wanted shares: of values by column, or of a predicate."""

_OFF = 1e-4
_MOST_TRIES = 200
"""So many rows are drawn for one that satisfies the predicate, before it is given up."""
_AT_ONCE = 1_000_000
_ITEM = re.compile(r"(.+?):\s*([-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?)\s*(,|$)", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """What rows are asked for, as it was written: public, and part of what is said of them."""

    where: str | None = None
    match: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    """(column, ((value, share), …)), or ("", ((predicate, share), …))."""

    def __bool__(self) -> bool:
        return self.where is not None or bool(self.match)

    def __str__(self) -> str:
        said = [] if self.where is None else [f"where {self.where}"]
        for column, shares in self.match:
            for value, share in shares:
                said.append(f"share of {f'{column} = {value}' if column else value}: {share:g}")
        return "; ".join(said)

    def to_json(self) -> dict[str, Any]:
        """For what is written beside or into the rows."""
        return {"where": self.where, "match": [[c, [list(p) for p in s]] for c, s in self.match]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Condition:
        """Read what `to_json` wrote."""
        match = ((str(c), tuple((str(v), float(p)) for v, p in s)) for c, s in body["match"])
        return cls(body["where"], tuple(match))

    @property
    def metadata(self) -> dict[str, str]:
        """For the schema of an Arrow table or a Parquet file."""
        if not self:
            return {}
        said = {"condition": self.to_json(), "certified": False, "note": NOT_CERTIFIED}
        return {"understudy": json.dumps(said)}


def condition(where: str | None, match: Match | Sequence[str] | None) -> Condition:
    """What somebody asked for; `match` as a mapping, or as the texts that `parse_match` reads."""
    if where is not None and not isinstance(where, str):
        raise InputError(f"where = {where!r} must be a text such as \"age >= 65 and sex = 'F'\"")
    if match is None:
        return Condition(where)
    if isinstance(match, str) or not isinstance(match, Mapping):
        texts = [match] if isinstance(match, str) else list(match)
        return Condition(where, tuple(parse_match(text) for text in texts))
    shares: list[tuple[str, tuple[tuple[str, float], ...]]] = []
    for name, wanted in match.items():
        if isinstance(wanted, Mapping):
            pairs = tuple((_text(v), _share(f"{name} = {v}", p)) for v, p in wanted.items())
            shares.append((str(name), pairs))
        else:
            shares.append(("", ((str(name), _share(str(name), wanted)),)))
    return Condition(where, tuple(shares))


def parse_match(text: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Read `sex=F:0.5`, `sex=F:0.5,M:0.4` or `age >= 65:0.3`."""
    items: list[tuple[str, float]] = []
    at = 0
    while at < len(text) and (found := _ITEM.match(text, at)):
        items.append((found[1].strip(), _share(found[1].strip(), float(found[2]))))
        at = found.end()
    if at < len(text) or not items:
        raise InputError(
            f"match = {text!r} is not understood: write COLUMN=VALUE:SHARE, such as sex=F:0.5, "
            "several values as sex=F:0.5,M:0.4, or a condition as 'age >= 65:0.3'"
        )
    simple = re.fullmatch(r"\s*(\"[^\"]+\"|`[^`]+`|[^=<>!]+?)\s*=\s*([^=].*)", items[0][0])
    if simple is None:
        if len(items) > 1:
            raise InputError(
                f"match = {text!r} lists shares after a condition; give each condition its own match"
            )
        return "", tuple(items)
    column = simple[1].strip('"`')
    values = [(simple[2], items[0][1]), *items[1:]]
    return column, tuple((value.strip().strip("'"), share) for value, share in values)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"match: the share of {name} is {value!r} and must be from 0 to 1")
    return float(value)


@dataclass(frozen=True, eq=False)
class Subject:
    """What fresh rows are drawn from: a released model, or one that was made from it as asked."""

    schema: Schema
    model: Model
    asked: Condition = Condition()

    @classmethod
    def of(cls, schema: Schema, model: Model, asked: Condition) -> Subject:
        """From the released model. InputError where it has no such rows."""
        return cls(schema, _applied(schema, model, asked) if asked else model, asked)

    def tables(
        self, rows: int, seeds: np.random.SeedSequence, most: int, first: int = 1
    ) -> Iterator[pa.Table]:
        """Fresh rows in tables of at most `most`, each from a child of `seeds`; at least one table.

        `first` is the number of the first row.
        """
        where = None if self.asked.where is None else Predicate.parse(self.asked.where, self.schema)
        for done in range(0, max(rows, 1), most):
            rng = np.random.default_rng(seeds.spawn(1)[0])
            many = min(most, rows - done)
            if where is None:
                _, table = fresh_rows(self.schema, self.model, many, rng, first + done)
            else:
                table = self._accepted(many, rng, where, first + done)
            yield table.replace_schema_metadata(self.asked.metadata) if self.asked else table

    def _accepted(self, rows: int, rng: Rng, where: Predicate, first: int) -> pa.Table:
        """So many rows that all satisfy a predicate: drawn, and rejected where they do not."""
        kept: list[pa.Table] = []
        have, drawn, many = 0, 0, rows
        while have < rows or not kept:
            _, table = fresh_rows(self.schema, self.model, many, rng)
            fits = table.filter(pa.array(where.rows(table)))
            kept.append(fits.slice(0, rows - have))
            drawn, have = drawn + many, have + kept[-1].num_rows
            if have < rows and drawn > _MOST_TRIES * (have + 500):
                raise InputError(
                    f"where = {where.text!r}: only {have:,} of {drawn:,} rows drawn from its cells "
                    "satisfy it. It names values finer than the release knows; ask for a wider "
                    "condition"
                )
            many = min(_AT_ONCE, math.ceil(1.05 * (rows - have) * drawn / max(have, 1)) + 16)
        table = pa.concat_tables(kept)
        for at, column in enumerate(self.schema.written):
            if isinstance(column, Identifier):
                fresh = column.generate(rows, first)
                table = table.set_column(at, table.schema.field(at), fresh)
        return table


# --- the model --------------------------------------------------------------------------------------


def _applied(schema: Schema, model: Model, asked: Condition) -> Weighted:
    """The model of the rows that are asked for. InputError where the released model has none."""
    inside = None if asked.where is None else Predicate.parse(asked.where, schema)
    records = as_records(model)
    if schema.constrained:
        records = replace(records, codes=tuple(schema.project(records.codes)))

    def legal(codes: Sequence[Codes]) -> Bools:
        fits = np.ones(len(codes[0]), np.bool_) if inside is None else inside.among(codes)[1]
        for before, after in zip(codes, schema.project(codes), strict=True):
            fits &= np.asarray(before) == np.asarray(after)
        return fits

    if inside is not None:
        parts = [
            Part(part.clique, lambda codes, part=part: part.among(codes)[1])
            for part in inside.conjuncts
        ]
        _require_weight(schema, records, inside.text, parts)
        records = conditioned(records, parts, legal)
    if asked.match:
        targets = [_target(schema, records, column, s) for column, s in asked.match]
        records, off = matched(records, targets, legal)
        if off > _OFF:
            raise InputError(
                f"match: these shares cannot hold together ({Condition(None, asked.match)}); the "
                f"nearest model is off by {off:.3g}. Leave one out, or change it"
            )
    return records


def _require_weight(schema: Schema, records: Weighted, where: str, parts: Sequence[Part]) -> None:
    shares, together = [], records.weights > 0
    for part in parts:
        holds = part.holds(records.codes)
        together &= holds
        shares.append(float(records.weights[holds].sum() / records.weights.sum()))
    if together.any():
        return
    names = [", ".join(schema.modelled[i].name for i in part.columns) for part in parts]
    if 0 in shares or len(parts) == 1:
        bad = names[shares.index(0)] if 0 in shares else names[0]
        said = f"the released model gives the condition on {bad} no weight"
    else:
        each = ", ".join(f"{name}: {share:.2g}" for name, share in zip(names, shares, strict=True))
        said = f"its parts occur in the released model ({each}), but never together"
    raise InputError(f"where = {where!r} has no rows: {said}. Ask for a wider condition")


def _target(
    schema: Schema, records: Weighted, column: str, shares: Sequence[tuple[str, float]]
) -> Shares:
    """Label 0 is everything that no share was given for."""
    predicates = [_predicate(schema, column, value) for value, _ in shares]
    for (value, _), predicate in zip(shares, predicates, strict=True):
        inner, outer = predicate.among(records.codes)
        if (inner != outer).any():
            raise InputError(
                f"match: {_named(column, value)} falls inside a cell of the release, so that its share "
                "is not known there; choose the edge of a cell (schema.toml in the release has them), "
                "or select rows with where"
            )

    def label(codes: Sequence[Codes]) -> Whole:
        found = np.zeros(len(codes[0]), np.int64)
        for number, predicate in enumerate(predicates, 1):
            found[predicate.among(codes)[1]] = number
        return found

    wanted = np.array([0.0, *(share for _, share in shares)])
    total = math.fsum(wanted)
    if total > 1 + 1e-9:
        raise InputError(
            f"match: the shares of {column or 'the condition'} add up to {total:g}, more than 1"
        )
    wanted[0] = max(0.0, 1 - total)
    now = np.bincount(label(records.codes), records.weights, wanted.size)
    for number, (value, share) in enumerate(shares, 1):
        if share > 0 and now[number] == 0:
            raise InputError(
                f"match: {_named(column, value)} has no rows in the released model"
                f"{' under this condition' if now.sum() and column else ''}, so it cannot have the "
                f"share {share:g}"
            )
    if wanted[0] > 1e-9 and now[0] == 0:
        raise InputError(
            f"match: the shares of {column or shares[0][0]} add up to {total:g}, and no other rows are "
            "left for the rest; they have to add up to 1"
        )
    columns = tuple(sorted({i for predicate in predicates for i in predicate.clique}))
    return Shares(columns, label, wanted)


def _named(column: str, value: str) -> str:
    return f"{column} = {value}" if column else value


def _predicate(schema: Schema, column: str, value: str) -> Predicate:
    if not column:
        return Predicate.parse(value, schema)
    known = {each.name: each for each in schema.columns}
    if column not in known:
        raise InputError(f"match: {column!r} is not a column{near(column, list(known))}")
    name = tokens.named(column)
    if value == "null":
        return Predicate.parse(f"{name} is null", schema)
    try:
        return Predicate.parse(f"{name} = {tokens.literal(value)}", schema)
    except WorkloadError as error:
        try:
            return Predicate.parse(f"{name} = {value}", schema)
        except WorkloadError:
            raise InputError(f"match: {error}") from None

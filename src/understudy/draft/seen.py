"""The columns of a table as small integers and as numbers, to look for rules in: NOT PRIVATE."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Whole
from understudy.columns import Category, Column, Date, Datetime, Integer, Number
from understudy.columns.base import Modelled
from understudy.columns.binned import Binned
from understudy.columns.reading import DAY, floats, nulled, pc, ticks
from understudy.columns.temporal import RESOLUTIONS
from understudy.columns.unmodelled import Undeclared, UndeclaredBins, UndeclaredShape
from understudy.constraints.tokens import literal, named
from understudy.schema.schema import Schema

_SAMPLE = 2_000
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def sampled(rows: int) -> Whole:
    """Some rows, evenly spread; all, where they are few."""
    return np.arange(rows) if rows <= _SAMPLE else np.arange(_SAMPLE) * (rows - 1) // (_SAMPLE - 1)


@dataclass(frozen=True, eq=False)
class Seen:
    """One column. `codes` number its values, `len(texts)` stands for null; NOT PRIVATE."""

    column: Column
    texts: tuple[str, ...]
    codes: Whole

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name

    @property
    def word(self) -> str:
        """The column as a rule names it."""
        return named(self.column.name)

    @cached_property
    def closed(self) -> Column:
        """The column, or, of one whose bounds are found, one with its type and facts."""
        column = self.column
        return column.largest() if isinstance(column, UndeclaredBins | UndeclaredShape) else column

    @property
    def kind(self) -> str:
        """Its type, or the type that it will have."""
        return self.closed.kind

    @cached_property
    def counts(self) -> Whole:
        """Rows of every value, and of null."""
        return np.bincount(self.codes, minlength=len(self.texts) + 1)

    @property
    def size(self) -> int:
        """How many values occur."""
        return len(self.texts)

    @cached_property
    def null(self) -> Bools:
        """Which rows have no value."""
        return self.codes == len(self.texts)

    @cached_property
    def few(self) -> Whole:
        """The codes of some rows, the same in every column: what does not hold there does not hold."""
        return self.codes[sampled(len(self.codes))]

    @cached_property
    def unit(self) -> str | None:
        """What its numbers can be compared with: None if it has none."""
        column = self.column
        if isinstance(column, Category):
            return "number" if isinstance(column.values[0], int | float) else None
        if self.kind in ("integer", "number"):
            return "number"
        return self.kind if self.kind in ("date", "datetime") else None

    @cached_property
    def values(self) -> Floats:
        """Every different value as a number, in the order of the texts; NaN for what is none."""
        texts = pa.array(self.texts, pa.string())
        if self.unit == "number":
            read, valid = floats(texts)
        else:
            form = self.closed.format if isinstance(self.closed, Date | Datetime) else None
            tick = DAY if self.unit == "date" else RESOLUTIONS["second"]
            read, valid = ticks(texts, tick=tick, form=form)
        beside = self.closed.special if isinstance(self.closed, Binned) else ()
        special = pc.is_in(texts, pa.array(list(map(str, beside)), pa.string())).to_numpy(False)
        return np.where(valid & np.isfinite(read) & ~special, read, np.nan).astype(np.float64)

    @cached_property
    def numbers(self) -> Floats:
        """Every row as a number; NaN where it has none."""
        return np.append(self.values, np.nan)[self.codes]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Its different values by size."""
        return np.argsort(self.values, kind="stable")

    @cached_property
    def ranked(self) -> tuple[Floats, NDArray[np.intp]]:
        """The numbers by size, and the rows that have them."""
        rows = np.argsort(self.numbers, kind="stable")
        rows = rows[: len(rows) - int(np.isnan(self.numbers).sum())]
        return self.numbers[rows], rows

    def literal(self, text: str) -> str:
        """A value as a rule writes it."""
        number = self.unit == "number" and _NUMBER.fullmatch(text) is not None
        plain = number or self.kind == "boolean"
        return text if plain else literal(text)


def looked_at(table: pa.Table, schema: Schema) -> list[Seen]:
    """The columns of a table that rules can speak of, in order."""
    found: list[Seen] = []
    for column in schema.columns:
        if not isinstance(column, Modelled | Undeclared) or column.name not in table.column_names:
            continue
        texts = nulled(table.column(column.name), (*schema.null_values, *column.null_values))
        if not (isinstance(column, Category) and isinstance(column.values[0], str)):
            texts = pc.utf8_trim_whitespace(texts)
        closed = Seen(column, (), np.zeros(0, np.int64)).closed
        if isinstance(closed, Integer | Number) and closed._notation is not None:
            plain = closed._notation.plain(texts)
            texts = pc.if_else(plain.is_valid(), plain, texts)
        coded = texts.dictionary_encode()
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy().astype(np.int64)
        found.append(Seen(column, tuple(coded.dictionary.to_pylist()), codes))
    return found

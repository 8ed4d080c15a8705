"""What every column shares: its facts, the life of a code, and how a comparison reads.

A modelled column cuts its domain into cells. Its codes are the cells in order, then OTHER where a
category has one and the special values of an ordered column, then null where the column is nullable.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, ClassVar, NoReturn, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Rng
from understudy.columns.reading import (
    Read,
    arrow_type,
    flat,
    numpy_of,
    pc,
    present,
    same_stored,
    type_name,
    valid_of,
)
from understudy.errors import SchemaError, WorkloadError

MOST_CELLS = 10_000
"""The most cells one column may have."""

Masks = tuple[Bools, Bools]
"""`(inner, outer)`: cells all of whose points satisfy a predicate; cells some of whose do."""

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null")
_SPELLINGS = {"==": "=", "<>": "!="}
_FEW = 9
_ALIKE = 0.2  # How much less like a word than the nearest one others are that are named beside it


def near(word: str, known: Iterable[str]) -> str:
    """A remark on the nearest known words, or ""."""
    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    like = [difflib.SequenceMatcher(None, each, word).ratio() for each in close]
    close = [each for each, ratio in zip(close, like, strict=True) if ratio > like[0] - _ALIKE]
    return f" (did you mean {' or '.join(repr(c) for c in close)}?)" if close else ""


def some(items: Sequence[str], most: int = 12) -> str:
    """The first items, and how many more there are."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def require_known(found: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a key that a schema file may not have there, with the nearest that it may."""
    known = list(dict.fromkeys(known))
    for key in found:
        if key not in known:
            hint = near(str(key), known)
            if not hint or len(known) <= _FEW:
                hint += f"; known are {', '.join(known)}"
            raise SchemaError(f"{where}: unknown key {key!r}{hint}")


def is_whole(value: object, least: int, most: float = inf) -> TypeGuard[int]:
    """Whether it is a whole number from `least` to `most`; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def are_texts(value: object) -> TypeGuard[Sequence[str]]:
    """Whether it is a list of texts."""
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


@dataclass(frozen=True)
class Column:
    """Public facts about one column of a table.

    `dtype` names the Arrow type the column has on output; "" means the usual one for the type.
    `null_values` are texts that stand for null where the column arrives as text.
    `read_from_rows` names the facts a draft took from private rows and nobody has confirmed.
    """

    kind: ClassVar[str]
    """The word for this type of column in a schema file."""
    usual: ClassVar[str] = "string"
    """The name of the Arrow type that it has unless another is declared."""
    held_by: ClassVar[tuple[Callable[[pa.DataType], bool], ...]] = ()
    """Tests of Arrow types, one of which a type that can hold it passes; none: any can."""

    name: str
    dtype: str = field(default="", kw_only=True)
    nullable: bool = field(default=False, kw_only=True)
    null_values: tuple[str, ...] = field(default=(), kw_only=True)
    read_from_rows: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(
                f"a column's name must be a text that is not empty, not {self.name!r}"
            )
        if not isinstance(self.nullable, bool):
            self._refuse(f"nullable = {self.nullable!r} must be true or false")
        self._set("null_values", self._texts("null_values", self.null_values))
        self._set("read_from_rows", self._texts("read_from_rows", self.read_from_rows))
        try:
            self._set("dtype", type_name(arrow_type(self.dtype or self._usual_dtype())))
        except (ValueError, TypeError):
            self._refuse(
                f"dtype = {self.dtype!r} is not the name of an Arrow type; "
                f'write for instance dtype = "{self._usual_dtype()}", or leave it out'
            )
        if not self._accepts(self.arrow_type):
            self._refuse(
                f"dtype = {self.dtype!r} cannot hold a column of type {self.kind!r}; "
                f'write for instance dtype = "{self._usual_dtype()}", or change the type'
            )

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type that `dtype` names."""
        return arrow_type(self.dtype)

    def _usual_dtype(self) -> str:
        return self.usual

    def _accepts(self, type_: pa.DataType) -> bool:
        return not self.held_by or any(test(type_) for test in self.held_by)

    def _texts(self, key: str, found: object) -> tuple[str, ...]:
        if not are_texts(found):
            self._refuse(f'{key} = {found!r} must be a list of texts, such as {key} = ["?"]')
        return tuple(found)

    def _set(self, key: str, value: object) -> None:
        object.__setattr__(self, key, value)

    def _refuse(self, why: str) -> NoReturn:
        raise SchemaError(f"column {self.name!r}: {why}")


@dataclass(frozen=True)
class Modelled(Column, ABC):
    """A column with codes: the part of a table that a release models.

    Guarantees, for every code c and every legal value x:
    `encode(decode([c])) == [c]`, and `decode(encode([x]))` lies in the same cell as x.
    `encode` depends on the schema and the array alone, accepts any Arrow type and never fails on
    a value: what lies outside the domain goes to the nearest legal value or to OTHER, what cannot
    be read is null, and a null where none is allowed becomes OTHER or the first legal value.

    A type of column says how a value is read as a point, which points are legal, which cell a point
    lies in, and how a point of a cell is drawn and written.
    """

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many codes stand for values; null comes on top."""

    @property
    def ordered(self) -> bool:
        """Whether neighbouring codes are neighbouring values."""
        return False

    @property
    def apart(self) -> int:
        """How many codes, the last ones, have no place in the order of the others: null."""
        return int(self.nullable)

    @property
    def size(self) -> int:
        """How many codes there are, null included."""
        return self.cells + self.nullable

    @cached_property
    def code_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned integer type that holds every code."""
        return np.min_scalar_type(max(self.size - 1, 0))

    @abstractmethod
    def _cell_labels(self) -> list[str]: ...

    @abstractmethod
    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        """The point of each entry of a flat array, legal or not, and whether there is one."""

    @abstractmethod
    def _nearest(self, points: NDArray) -> NDArray:
        """The nearest legal points."""

    def _cell(self, points: NDArray) -> NDArray:
        """The cells of points, of the nearest legal ones where they are not; by default one each."""
        return self._nearest(points)

    def _draw(self, cells: NDArray[np.intp], rng: Rng) -> NDArray:
        """One point of each cell, uniformly."""
        return cells

    @abstractmethod
    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        """The points as an array of the declared type."""

    @abstractmethod
    def _literal(self, literal: Any) -> Any:
        """The literal in the column's own terms; WorkloadError if it has none."""

    @abstractmethod
    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        """Masks over the cells; `op` is "in" or one of < <= > >= with a single literal."""

    def _satisfied(self, op: str, literals: Sequence[Any], array: pa.Array) -> Bools:
        """Whether each entry of a flat array satisfies it; unspecified at nulls."""
        return self._compare(op, literals)[0][self._cell(self._read(array, self.null_values)[0])]

    def _stand_in(self) -> int:
        """The cell that takes a null where none is allowed."""
        return 0

    def labels(self) -> list[str]:
        """One readable name per code."""
        return self._cell_labels() + (["NULL"] if self.nullable else [])

    def encode(
        self, array: pa.Array | pa.ChunkedArray, null_values: Sequence[str] = ()
    ) -> NDArray[np.unsignedinteger]:
        """The code of every entry; never fails on a value (see the class).

        `null_values` are taken as null in addition to the column's own.
        """
        tokens = (*self.null_values, *null_values)
        return np.concatenate([self._encode(chunk, tokens) for chunk in flat(array)])

    def _encode(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.unsignedinteger]:
        points, valid = self._read(array, tokens)
        missing = self.cells if self.nullable else self._stand_in()
        return np.where(valid, self._cell(points), missing).astype(self.code_dtype)

    def decode(self, codes: NDArray[np.integer], rng: Rng) -> pa.Array:
        """One value for each code, uniform within its cell, as an array of the declared type."""
        codes = np.asarray(codes)
        if len(codes) and (int(codes.min()) < 0 or int(codes.max()) >= self.size):
            self._refuse(f"codes must lie in 0..{self.size - 1}, not {codes.min()}..{codes.max()}")
        null = codes == self.cells
        cells = np.where(null, 0, codes).astype(np.intp)
        return self._emit(self._draw(cells, rng), null)

    def compare(self, op: str, literal: Any = None) -> Masks:
        """`(inner, outer)` over the codes: cells wholly inside the predicate; cells touching it.

        `op` is one of `OPERATORS`. Null satisfies "is null" and nothing else.
        """
        op, literals = self._predicate(op, literal)
        null = np.arange(self.size) >= self.cells
        if op in ("is null", "is not null"):
            holds = null if op == "is null" else ~null
            return holds, holds.copy()
        inner, outer = self._compare("in" if op == "not in" else op, literals)
        if op == "not in":
            inner, outer = ~outer, ~inner
        never = np.zeros(self.size - self.cells, np.bool_)
        return np.append(inner, never), np.append(outer, never)

    def evaluate(self, op: str, literal: Any, array: pa.Array | pa.ChunkedArray) -> Bools:
        """Whether each value satisfies the predicate.

        Consistent with `compare`: true wherever the value's code is in `inner`, and only where it
        is in `outer`. A value outside the domain counts as the one `encode` would map it to.
        """
        op, literals = self._predicate(op, literal)
        return np.concatenate([self._evaluate(op, literals, chunk) for chunk in flat(array)])

    def _evaluate(self, op: str, literals: Sequence[Any], array: pa.Array) -> Bools:
        null = self._encode(array, self.null_values) == self.cells
        if op in ("is null", "is not null"):
            return null if op == "is null" else ~null
        if op == "not in":
            return ~self._satisfied("in", literals, array) & ~null
        return self._satisfied(op, literals, array) & ~null

    def legal(self, array: pa.Array | pa.ChunkedArray) -> Bools:
        """Whether each entry is exactly a value that `decode` can return."""
        return np.concatenate([self._legal(chunk) for chunk in flat(array)])

    def _legal(self, array: pa.Array) -> Bools:
        if not same_stored(self.arrow_type, array.type):
            return np.zeros(len(array), np.bool_)
        points, valid = self._read(array, ())
        back = self._emit(self._nearest(points), ~valid)
        return identical(array, back) & (valid | (self.nullable & ~valid_of(array)))

    def misfits(
        self, array: pa.Array | pa.ChunkedArray, null_values: Sequence[str] = ()
    ) -> dict[str, Bools]:
        """What `encode` would quietly mend, as one mask per trouble: NOT PRIVATE.

        "null": a null where none is allowed; "unreadable": not of the column's type;
        "outside": a value beyond the bounds, or one that is not declared.
        """
        tokens = (*self.null_values, *null_values)
        found = [self._misfits(chunk, tokens) for chunk in flat(array)]
        return {key: np.concatenate([masks[key] for masks in found]) for key in found[0]}

    def _misfits(self, array: pa.Array, tokens: Sequence[str]) -> dict[str, Bools]:
        there = present(array, tokens)
        points, readable = self._read(array, tokens)
        return {
            "null": ~there & (not self.nullable),
            "unreadable": there & ~readable,
            "outside": there & readable & (points != self._nearest(points)),
        }

    def _predicate(self, op: str, literal: Any) -> tuple[str, list[Any]]:
        """The operator reduced to in, not in, is null, is not null or an inequality."""
        spelt = " ".join(op.lower().split())
        spelt = _SPELLINGS.get(spelt, spelt)
        if spelt not in OPERATORS:
            self._misuse(f"unknown operator {op!r}; use one of {', '.join(OPERATORS)}")
        if spelt in ("is null", "is not null"):
            return spelt, []
        if spelt in ("in", "not in"):
            if isinstance(literal, str) or not isinstance(literal, Iterable):
                self._misuse(f"{op!r} needs a list of values, not {literal!r}")
            return spelt, [self._literal(item) for item in literal]
        reduced = {"=": "in", "!=": "not in"}.get(spelt, spelt)
        return reduced, [self._literal(literal)]

    def _misuse(self, why: str) -> NoReturn:
        raise WorkloadError(f"column {self.name!r}: {why}")


def encoded(
    columns: Sequence[Modelled], table: pa.RecordBatch | pa.Table, null_values: Sequence[str] = ()
) -> list[NDArray[np.unsignedinteger]]:
    """The codes of columns that are found by name; see `Modelled.encode`.

    A header that lacks a column, or has it twice, is a SchemaError, since headers are public.
    """
    names = table.schema.names
    for column in columns:
        if (count := names.count(column.name)) != 1:
            raise SchemaError(
                f"column {column.name!r} of the schema is in the table {count} times"
                f"{near(column.name, names) if count == 0 else ''}; "
                "each column must be there once: correct the schema or the table's header"
            )
    return [column.encode(table.column(column.name), null_values) for column in columns]


def identical(left: pa.Array, right: pa.Array) -> Bools:
    """Entry by entry the same value; a null only equals a null."""
    if pa.types.is_dictionary(left.type):
        left = left.dictionary_decode()
    if pa.types.is_dictionary(right.type):
        right = right.dictionary_decode()
    if pa.types.is_float16(left.type):  # which Arrow does not compare
        left, right = left.cast(pa.float32()), right.cast(pa.float32())
    same = numpy_of(pc.equal(left, right.cast(left.type)))
    return same | ~(valid_of(left) | valid_of(right))

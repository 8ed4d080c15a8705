"""What questions share: checks of their requests, and the plainest needs and answers.

All of a request is public, so messages may say everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Table, Whole
from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_NUMBERS, MOST_ROWS
from understudy.privacy.coarsened import Coarsened, clique_of
from understudy.privacy.cost import Gaussian, Selection
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added, top
from understudy.privacy.products import ProductQueries

Codes = NDArray[np.integer[Any]]

GRID = 16
"""Where a public real number is compared with counts it is rounded to 1/16 of a row first, so that
exact values stay integers and sensitivities exact."""

# Rows that a reference may speak of: far above any table, far below what int64 holds on the grid.
_LARGEST = 2.0**50
MOST_SYNTHETIC = 2**38
"""Synthetic rows, or what families weigh, that a certificate compares without passing 64 bits."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One query: a cell of a marginal, and the side of the error that was selected (0: either)."""

    marginal: int
    index: tuple[int, ...]
    sign: int = 0


class Noised:
    """Numbers with noise on each, answered as drawn."""

    __slots__ = ()
    mechanism = staticmethod(added)

    def decode(self, drawn: Whole, facts: Facts) -> Whole:
        """As drawn."""
        return drawn


class NoisedOne:
    """One number with noise, answered as drawn."""

    __slots__ = ()
    mechanism = staticmethod(added)

    def decode(self, drawn: Whole, facts: Facts) -> int:
        """As drawn."""
        return int(drawn[0])


class Positions:
    """The positions of the k largest scores, in order."""

    __slots__ = ()
    mechanism = staticmethod(top)

    def decode(self, drawn: Whole, facts: Facts) -> tuple[int, ...]:
        """Positions."""
        return tuple(int(i) for i in drawn)


def gaussian(step: int, changes: int, words: str, size: int) -> Need:
    """A `Gaussian` for `size` numbers, of which a neighbour moves `changes` by `step` each."""
    return Need((Gaussian,), lambda e: e.step >= step and e.changes >= changes, words, (size,))


def selection(moves: int, most: int, words: str, size: int) -> Need:
    """A `Selection` of at most `most` among `size` scores, each of which moves by `moves`."""
    return Need((Selection,), lambda e: e.sensitivity >= moves and e.k <= most, words, (size,))


def shape_of(table: Clique | Coarsened, facts: Facts) -> tuple[int, ...]:
    """The cells of a table, whole or merged."""
    return table.shape if isinstance(table, Coarsened) else tuple(facts.shape[i] for i in table)


def tables_of(
    flat: NDArray[Any], tables: Sequence[Clique | Coarsened], facts: Facts
) -> tuple[NDArray[Any], ...]:
    """Tables from all their cells, one after the other."""
    shapes = [shape_of(each, facts) for each in tables]
    parts = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def on_grid(reference: Table) -> Whole:
    """A reference in sixteenths of a row."""
    return np.rint(GRID * np.asarray(reference, dtype=np.float64)).astype(np.int64)


def require_plain(*parts: object) -> None:
    """What is read twice, when it is checked and when it is used, must say the same twice."""
    for part in parts:
        if type(part) not in (list, tuple, np.ndarray):
            kind = type(part).__name__
            raise PrivacyError(f"a request must come as a list or a tuple or an array, got {kind}")


def whole(number: object) -> bool:
    """Whether it is an integer that compares as one."""
    return type(number) is int or isinstance(number, np.integer)


def require_cliques(cliques: Sequence[Clique], facts: Facts) -> None:
    """Increasing positions of columns that are there, one marginal at least."""
    require_plain(cliques)
    if not len(cliques):
        raise PrivacyError("a request needs at least one marginal")
    width = len(facts.shape)
    for clique in cliques:
        columns = type(clique) is tuple and all(type(i) is int for i in clique)
        if not columns or list(clique) != sorted({*clique} & {*range(width)}):
            raise PrivacyError(f"clique {clique} must be increasing positions below {width}")


def require_numbered(cliques: Sequence[Clique], facts: Facts) -> None:
    """As `require_cliques`, for cells of all marginals in one numbering of 64 bits.

    A number that wrapped would make counts of other cells depend on a row: no sensitivity holds then.
    """
    require_cliques(cliques, facts)
    cells = sum(math.prod(facts.shape[i] for i in clique) for clique in cliques)
    if cells >= MOST_NUMBERS:
        raise PrivacyError(f"{len(cliques)} marginals have {cells:.1e} cells, 2^63 or more in all")


def require_tables(tables: Sequence[Clique | Coarsened], facts: Facts) -> None:
    """That a row lies in one cell is what `Coarsened` holds; here, that labels fit the table."""
    require_plain(tables)
    for each in tables:
        if isinstance(each, Coarsened) and type(each) is not Coarsened:
            raise PrivacyError(f"merged tables must be Coarsened, got {type(each).__name__}")
    require_cliques([clique_of(each) for each in tables], facts)
    _require_domain("labels", [each for each in tables if isinstance(each, Coarsened)], facts)


def require_classes(classes: Sequence[ProductQueries], facts: Facts) -> None:
    """That queries are 0/1 functions is what `ProductQueries` holds; here, that they fit the table."""
    require_plain(classes)
    for each in classes:
        if type(each) is not ProductQueries:  # a subclass might count otherwise
            raise PrivacyError(f"queries must come as ProductQueries, got {type(each).__name__}")
    require_cliques([each.clique for each in classes], facts)
    _require_domain("literals", classes, facts)


def _require_domain(what: str, tables: Sequence[Coarsened | ProductQueries], facts: Facts) -> None:
    for each in tables:
        domain = tuple(facts.shape[i] for i in each.clique)
        if each.domain != domain:
            raise PrivacyError(
                f"the {what} of {each.clique} speak of {each.domain} values, not {domain}"
            )


def require_rows(rows: int) -> None:
    """Rounding is proved up to so many rows."""
    if not whole(rows) or not 1 <= rows <= MOST_ROWS:
        raise PrivacyError(f"rows = {rows} must be between 1 and 2^33")


def require_rows_at_hand(facts: Facts) -> None:
    """Gradients and tasks need rows, which some sources keep to themselves."""
    if not facts.by_row:
        raise PrivacyError(
            "this source hands out counts and no rows, which gradients need; nothing was charged or "
            "drawn"
        )


def require_cells(cliques: Sequence[Clique], cells: Sequence[Cell], facts: Facts) -> None:
    """Whole numbers that name one cell of one clique each; a list of them would name many."""
    require_cliques(cliques, facts)
    require_plain(cells)
    for cell in cells:
        index = cell.index if type(cell) is Cell else None
        listed = type(index) in (list, tuple) or (type(index) is np.ndarray and index.ndim == 1)
        if (
            not listed
            or not all(map(whole, (cell.marginal, *cell.index)))
            or not 0 <= cell.marginal < len(cliques)
            or len(cell.index) != len(cliques[cell.marginal])
        ):
            raise PrivacyError(f"{cell} is not a cell of the cliques")
        shape = shape_of(cliques[cell.marginal], facts)
        if not all(0 <= v < size for v, size in zip(cell.index, shape, strict=True)):
            raise PrivacyError(f"{cell} leaves the domain of {cliques[cell.marginal]}")


def require_sides(cells: Sequence[Cell]) -> None:
    """Every cell with its side."""
    for cell in cells:
        if not whole(cell.sign) or cell.sign not in (-1, 1):
            raise PrivacyError(f"{cell} is not a cell of the cliques, with its side")


def require_records(records: Sequence[Codes], facts: Facts) -> Codes:
    """Public records must be codes: one array per column, all of one length, in range."""
    require_plain(records)
    if len(records) != len(facts.shape):
        raise PrivacyError(f"records need {len(facts.shape)} columns, got {len(records)}")
    require_plain(*records)
    arrays = [np.asarray(codes) for codes in records]
    size = arrays[0].size
    if not 1 <= size <= 2**31:
        raise PrivacyError(f"1 to 2^31 records are needed, got {size}")
    for column, array in enumerate(arrays):
        if array.dtype.kind not in "iu" or array.shape != (size,):
            raise PrivacyError(f"column {column} of the records must be {size} integers")
    kind = np.result_type(*arrays, np.int8)  # signed, so that codes can be added up
    codes = np.stack(arrays, dtype=kind if kind.kind == "i" else np.int64, casting="unsafe")
    outside = (codes.min(axis=1) < 0) | (codes.max(axis=1) >= np.array(facts.shape))
    if outside.any():
        raise PrivacyError(f"column {int(outside.argmax())} of the records leaves its domain")
    return codes


def require_references(
    tables: Sequence[Clique | Coarsened],
    references: Sequence[Table],
    numbers: Sequence[float],
    facts: Facts,
    heaviest: int = 1,
) -> None:
    """Public references and one number for each must fit the integer grid, or a sum could wrap."""
    largest = _LARGEST / heaviest
    require_plain(references, numbers, *references)
    if len(references) != len(tables) or len(numbers) != len(tables):
        raise PrivacyError(f"{len(tables)} marginals need as many references and penalties")
    for each, reference in zip(tables, references, strict=True):
        array, shape = np.asarray(reference, dtype=np.float64), shape_of(each, facts)
        if array.shape != shape:
            raise PrivacyError(
                f"the reference of {clique_of(each)} has shape {array.shape}, not {shape}"
            )
        if not np.isfinite(array).all() or np.abs(array).sum() > largest:
            raise PrivacyError(f"the reference of {clique_of(each)} is not finite or too large")
    if not all(math.isfinite(p) and abs(p) <= largest for p in numbers):
        raise PrivacyError("a penalty is not finite or too large")


def require_synthetic(
    cliques: Sequence[Clique], synthetic: Sequence[Whole], size: int, facts: Facts
) -> None:
    """The sensitivity M holds for counts of M rows and for nothing else."""
    if type(size) is not int or not 1 <= size <= MOST_SYNTHETIC:
        raise PrivacyError(f"a certificate needs 1 to 2^38 synthetic rows, got {size}")
    require_plain(synthetic, *synthetic)
    if len(synthetic) != len(cliques):
        raise PrivacyError(f"{len(cliques)} marginals need as many tables, got {len(synthetic)}")
    for clique, table in zip(cliques, synthetic, strict=True):
        array, shape = np.asarray(table), shape_of(clique, facts)
        if not np.issubdtype(array.dtype, np.integer) or array.shape != shape:
            raise PrivacyError(
                f"the synthetic table of {clique} must hold integers of shape {shape}, "
                f"got {array.dtype} of shape {array.shape}"
            )
        if (array < 0).any() or int(array.sum(dtype=np.int64)) != size:
            raise PrivacyError(f"the synthetic table of {clique} is not a count of {size} rows")

"""Exact facts about private rows, opened. Only the gate makes these, and only questions read them.

A source hands over counts, a learner rows of features, sealed as `Sensitive`; here, and nowhere else,
they are opened, after the charge. What is opened is sealed again where it is kept, so that nothing in
the gate can be printed or copied by accident.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Clique, Floats, Whole
from understudy.errors import InputError
from understudy.privacy.buckets import DataSupport, RecordSupport
from understudy.privacy.coarsened import Coarsened, clique_of
from understudy.privacy.features import GRID, Box
from understudy.privacy.losses import Loss
from understudy.privacy.noise import Noise, poisson
from understudy.privacy.products import ProductQueries
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive, reveal
from understudy.units import Unit

Codes = NDArray[np.integer[Any]]
Counts = Whole
Reals = Floats
T = TypeVar("T")

_CACHE_CELLS = 32_000_000
# Exact cells beyond the cache that are held at once.
_CHUNK_CELLS = 8_000_000
_HELD_CELLS = 32_000_000  # A table beyond it that is to be merged is never held whole


@dataclass(frozen=True, slots=True)
class Facts:
    """What everybody may know of the table behind a gate.

    `shape` holds domain sizes (or the number of features); `rows_public` is None where the number of
    rows is private; `by_row` says whether rows can be looked at one by one, and not only counted.
    """

    shape: tuple[int, ...]
    relation: Relation
    rows_public: int | None = None
    unit: Unit | None = None
    by_row: bool = False


class ExactCounts(Protocol):
    """A table bound to a schema: exact counts, sealed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Domain sizes of the modelled columns; public."""
        ...

    @property
    def unit(self) -> Unit | None:
        """Whose rows were bounded, and to how many; None where every row counts for itself."""
        ...

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Counts, ...]]:
        """One exact table of counts per clique, from one pass over the rows; of (), their number."""
        ...

    def sparse(self, cliques: Sequence[Clique]) -> Sensitive[tuple[tuple[Counts, Counts], ...]]:
        """(packed occupied cells in order, their counts) per clique, for marginals of any size."""
        ...


@runtime_checkable
class ExactRows(ExactCounts, Protocol):
    """Counts of rows that can be handed over themselves, for gradients."""

    def records(self) -> Sensitive[list[Codes]]:
        """Every row as codes, one array per column."""
        ...


class HeldValues(Protocol):
    """The values of columns whose domain is not known."""

    @property
    def unit(self) -> Unit | None:
        """Who holds values; a row where there is no unit."""
        ...

    def holders(self, column: str) -> Sensitive[tuple[Sequence[str], Counts]]:
        """Every value that occurs and how many units hold it, k values of a unit at most."""
        ...


class Tables:
    """Opened counts of one table, asked of the source once as long as they fit a bounded cache.

    Those `ahead` are counted with the first that are asked for, and kept sealed: in one pass.
    """

    def __init__(
        self, counts: ExactCounts, noise: Noise, facts: Facts, ahead: Sequence[Clique] = ()
    ) -> None:
        self._counts = counts
        cells = sum(math.prod(facts.shape[i] for i in clique) for clique in ahead)
        self._ahead = tuple(ahead) if cells <= _CACHE_CELLS else ()
        self._noise = noise
        self.facts = facts
        self._cache: dict[Clique, Sensitive[Counts]] = {}
        self._cached_cells = 0
        self._last: dict[str, tuple[object, Sensitive[Any]]] = {}
        self._records: tuple[tuple[Clique, ...], Codes, Sensitive[RecordSupport]] | None = None
        self._split: Sensitive[tuple[Codes, Bools]] | None = None
        self.shape = facts.shape

    def rows(self) -> int:
        """The exact number of rows."""
        return int(self.marginals([()])[0])

    def total(self) -> int:
        """What shares are taken of: the public number of rows, or the exact one."""
        return self.rows() if self.facts.rows_public is None else self.facts.rows_public

    def sparse(self, cliques: Sequence[Clique]) -> tuple[tuple[Counts, Counts], ...]:
        """Occupied cells and their counts."""
        return reveal(self._counts.sparse(cliques))

    def holders(self, held: HeldValues, column: str) -> tuple[Sequence[str], Counts]:
        """The values of a column and how many hold them."""
        return reveal(held.holders(column))

    def marginals(self, cliques: Sequence[Clique]) -> list[Counts]:
        """Exact tables, all at once."""
        wanted, self._ahead = dict.fromkeys([*cliques, *self._ahead]), ()
        missing = [clique for clique in wanted if clique not in self._cache]
        fresh: dict[Clique, Counts] = {}
        if missing:
            tables = reveal(self._counts.marginals(missing))
            fresh = dict(zip(missing, tables, strict=True))
            cells = sum(table.size for table in tables)
            if self._cached_cells + cells <= _CACHE_CELLS:
                self._cache.update({clique: Sensitive(table) for clique, table in fresh.items()})
                self._cached_cells += cells
        return [
            fresh[clique] if clique in fresh else reveal(self._cache[clique]) for clique in cliques
        ]

    def tables(self, tables: Sequence[Clique | Coarsened]) -> Iterator[Counts]:
        """Exact tables, whole or merged, one after the other; few are held beyond the cache."""
        for part in self._parts([clique_of(each) for each in tables]):
            held = [clique_of(each) for each in tables[part] if not _beyond(each)]
            whole = iter(self.marginals(held))
            for each in tables[part]:
                if isinstance(each, Coarsened) and _beyond(each):
                    ((cells, counts),) = self.sparse([each.clique])
                    yield Coarsened.summed(each, cells, counts)
                else:
                    table = next(whole)
                    yield Coarsened.table(each, table) if isinstance(each, Coarsened) else table

    def _parts(self, cliques: Sequence[Clique]) -> list[slice]:
        """All at once where the cache takes them, otherwise runs of at most `_CHUNK_CELLS` cells.

        Every run is a pass over the rows. A table that is larger by itself is a run.
        """
        missing = [clique for clique in dict.fromkeys(cliques) if clique not in self._cache]
        sizes = {clique: math.prod(self.shape[i] for i in clique) for clique in missing}
        if self._cached_cells + sum(sizes.values()) <= _CACHE_CELLS:
            return [slice(0, len(cliques))]
        parts: list[slice] = []
        held: set[Clique] = set()
        start = cells = 0
        for at, clique in enumerate(cliques):
            more = 0 if clique in held else sizes.get(clique, 0)
            if at > start and cells + more > _CHUNK_CELLS:
                parts.append(slice(start, at))
                held, start, cells, more = set(), at, 0, sizes.get(clique, 0)
            held.add(clique)
            cells += more
        return [*parts, slice(start, len(cliques))]

    def occupied(self, cliques: Sequence[Clique]) -> DataSupport:
        """The occupied cells of a workload."""
        key = tuple(cliques)
        sizes = [math.prod(self.shape[i] for i in clique) for clique in key]
        return self._kept("occupied", key, lambda: DataSupport(sizes, self.sparse(key)))

    def touched(self, cliques: Sequence[Clique], codes: Codes) -> RecordSupport:
        """The cells that records occupy. To the records of the last call only new ones are added."""
        occupied, key, before = self.occupied(cliques), tuple(cliques), None
        if self._records is not None and self._records[0] == key:
            earlier, touched = self._records[1:]
            if np.array_equal(earlier, codes[:, : earlier.shape[1]]):
                before = reveal(touched)
        fresh = codes[:, before.records :] if before is not None else codes
        found = occupied.touched(occupied.numbers(self.packed(cliques, fresh)), before)
        self._records = (key, codes, Sensitive(found))
        return found

    def answers(self, classes: Sequence[ProductQueries]) -> Counts:
        """The exact counts of all queries, class after class.

        Classes are compared by identity: their matrices cannot be written to.
        """
        key, cliques = tuple(classes), [each.clique for each in classes]
        return self._kept("answers", key, lambda: answers(key, self.marginals(cliques)))

    def _kept(self, what: str, key: object, compute: Callable[[], T]) -> T:
        """What was computed last, sealed, if it was for the same request."""
        if what not in self._last or self._last[what][0] != key:
            self._last[what] = (key, Sensitive(compute()))
        return reveal(self._last[what][1])

    def packed(self, cliques: Sequence[Clique], codes: Codes) -> Counts:
        """The cell of every public record (rows) in every clique (columns), packed in C order."""
        # A clique shorter than others is padded with a column of one value.
        columns = np.full((len(cliques), max(map(len, cliques), default=0)), len(codes))
        for row, clique in zip(columns, cliques, strict=True):
            row[: len(clique)] = clique
        padded = np.concatenate([codes, np.zeros((1, codes.shape[1]), codes.dtype)])
        sizes = np.array([*self.shape, 1], dtype=np.int64)
        packed = np.zeros((len(cliques), codes.shape[1]), np.int64)
        for slot in columns.T:
            packed *= sizes[slot, None]
            packed += padded[slot]
        return packed.T

    def records(self, held_out: float, *, inside: bool) -> Codes:
        """Rows of codes (n, d), or those (not) held out; which ones is decided once, by coins."""
        if self._split is None:
            assert isinstance(self._counts, ExactRows)
            matrix = np.stack(reveal(self._counts.records()), axis=1)
            held = np.zeros(len(matrix), bool)
            if held_out > 0:
                held[poisson(self._noise, len(matrix), held_out)] = True
            self._split = Sensitive((matrix, held))
        matrix, held = reveal(self._split)
        return matrix[held if inside else ~held] if held_out > 0 else matrix

    def sample(self, rows: int, rate: float) -> Counts:
        """Which of some rows are in a Poisson sample."""
        return poisson(self._noise, rows, rate)


class Examples:
    """A learner's private rows, sealed: features on the grid of a public box, and targets."""

    unit: Unit | None = None

    def __init__(
        self, features: Sensitive[NDArray[np.int16]], targets: Sensitive[Reals], width: int
    ) -> None:
        self.features = features
        self.targets = targets
        self.shape = (width,)

    @classmethod
    def seal(cls, features: NDArray[Any], targets: Reals, box: Box) -> Examples:
        """Clip and scale every row by itself, and seal."""
        if len(features) != len(targets):
            raise InputError(f"{len(features)} rows of features and {len(targets)} of targets")
        sealed = Sensitive(box.on_grid(features))
        return cls(sealed, Sensitive(np.asarray(targets, np.float64).copy()), box.width)


class Learned:
    """Opened rows of a learner: scores and residuals at public weights, exact or row by row."""

    def __init__(self, examples: Examples, noise: Noise) -> None:
        self._examples = examples
        self._noise = noise
        self._scored: tuple[Counts, Sensitive[Counts]] | None = None

    @property
    def features(self) -> NDArray[np.int16]:
        """(n, width), multiples of 1/`GRID`."""
        return reveal(self._examples.features)

    def sample(self, rate: float) -> Counts:
        """Which rows are in a Poisson sample."""
        return poisson(self._noise, len(self.features), rate)

    def scores(self, whole: Counts) -> Counts:
        """Σ_j x_ij·w_kj of every row; where few weights have changed, only these are added."""
        features = self.features
        if self._scored is not None:
            before, sealed = self._scored
            changed = np.argwhere(whole != before)
            if len(changed) <= max(8, features.shape[1] // 16):
                scores = reveal(sealed)
                for k, j in changed:
                    moved = int(whole[k, j] - before[k, j])
                    scores[:, k] += moved * features[:, j].astype(np.int64)
                self._scored = whole.copy(), sealed
                return scores
        scores = kernels().scores(features, whole)
        self._scored = whole.copy(), Sensitive(scores)
        return scores

    def levels(self, loss: Loss) -> Counts:
        """Sums of what all targets say of their scores (outputs,)."""
        return loss.levels(reveal(self._examples.targets)).sum(axis=0)

    def residuals(
        self, loss: Loss, scores: Counts, rows: Counts, unit: float, start: Reals
    ) -> Reals:
        """Residuals of some rows in units of L0, in [−1, 1]; every score has `start` added to it."""
        targets = reveal(self._examples.targets)[rows]
        scaled = scores.astype(np.float64) * (unit / GRID) + start
        return np.clip(loss.residuals(scaled, targets) / loss.bound, -1.0, 1.0)


def answers(classes: Sequence[ProductQueries], tables: Sequence[Counts]) -> Counts:
    """Counts of all queries from tables of counts, in whole numbers (`ProductQueries.answers`)."""
    parts = [each.answers(table) for each, table in zip(classes, tables, strict=True)]
    return np.rint(np.concatenate([part.reshape(-1) for part in parts])).astype(np.int64)


def kernels() -> Any:
    """Compiled sums over rows."""
    from understudy.privacy import _rows

    return _rows


def _beyond(table: Clique | Coarsened) -> bool:
    """Whether a table that is merged to a few cells is itself too large to be held."""
    return isinstance(table, Coarsened) and math.prod(table.domain) > _HELD_CELLS

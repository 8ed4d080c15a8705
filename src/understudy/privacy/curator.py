"""The curator: the only holder of exact answers.

Players and certificates ask; the curator (1) checks that the planned event covers the sensitivity of
what is asked, (2) has the ledger make the charge durable, (3) draws with the scale that the ledger's
entry states, and returns the noisy answer. There is no other way out for a count, so a draw without
a charge, or with less noise than was charged for, cannot be written.

All exact values are integers. Where a public real number is compared with counts it is first rounded
to the grid 1/`GRID`, which is post-processing of public values, so sensitivities stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.errors import PrivacyError, UnderstudyError
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT, Occupied, Touched, pick
from understudy.privacy.coins import covered, halves
from understudy.privacy.cost import (
    Discovery,
    Event,
    Gaussian,
    Laplace,
    Perturbation,
    Plan,
    SampledGaussian,
    Selection,
    Zcdp,
)
from understudy.privacy.maps import GRID as MAP_GRID
from understudy.privacy.maps import Maps, summed
from understudy.privacy.maps import covers as covers_maps
from understudy.privacy.merged import Merged
from understudy.privacy.noise import Noise
from understudy.privacy.objective import Looks, covers, perturbed
from understudy.privacy.products import Products
from understudy.privacy.relation import Relation
from understudy.privacy.rowwise import RowQuestions
from understudy.privacy.sensitive import Sensitive, reveal
from understudy.units import Unit, group

__all__ = [
    "GRID",
    "LARGEST_WEIGHT",
    "VARIATION_GRID",
    "Cell",
    "Charges",
    "Clique",
    "Curator",
    "ExactCounts",
    "HeldValues",
    "Picked",
    "variation_step",
]

Clique = tuple[int, ...]
Codes = NDArray[np.integer[Any]]
Counts = NDArray[np.int64]
Table = NDArray[np.float64]
E = TypeVar("E", Discovery, Gaussian, Laplace, Perturbation, SampledGaussian, Selection)
T = TypeVar("T")

GRID = 16
"""Scores are multiples of 1/16 of a row."""

LARGEST_WEIGHT = 4096
"""Weights of marginals in a selection are whole numbers up to this."""

VARIATION_GRID = 2
"""Sums of absolute errors are multiples of half a row: coarse enough to be accounted exactly."""

_CACHE_CELLS = 32_000_000
# Exact cells beyond the cache, or cells of records, that are held at once.
_CHUNK_CELLS = 8_000_000
_HELD_CELLS = 32_000_000
"""A table beyond it that is to be merged is never held whole."""
# Rows that a reference may speak of: far above any table, far below what int64 holds on the grid.
_LARGEST = 2.0**50


class ExactCounts(Protocol):
    """A table bound to a schema, as the curator sees it: exact counts, sealed.

    Where at most k rows of a privacy unit are counted, an attribute `unit` (a `Unit`) says so.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Domain sizes of the modelled columns; public."""
        ...

    def rows(self) -> Sensitive[int]:
        """The exact number of rows."""
        ...

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Counts, ...]]:
        """One exact table of counts per clique, from one pass over the rows."""
        ...

    def sparse(self, cliques: Sequence[Clique]) -> Sensitive[tuple[tuple[Counts, Counts], ...]]:
        """(packed occupied cells in order, their counts) per clique, for marginals of any size."""
        ...


class HeldValues(Protocol):
    """The values of columns whose domain is not known, as the curator sees them."""

    @property
    def unit(self) -> Unit | None:
        """Who holds values; a row where there is no unit."""
        ...

    def holders(self, column: str) -> Sensitive[tuple[Sequence[str], Counts]]:
        """Every value that occurs and how many units hold it, k values of a unit at most."""
        ...


class Charges(Protocol):
    """A reservation in the ledger, as the curator sees it."""

    @property
    def plan(self) -> Plan:
        """What may be drawn."""
        ...

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """Make the next draw durable; return the event to draw with."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One query: a cell of a marginal, and the side of the error that was selected (0: either)."""

    marginal: int
    index: tuple[int, ...]
    sign: int = 0


@dataclass(frozen=True, slots=True)
class Picked:
    """One query of a class: which class, the number of a literal per column, and the side."""

    products: int
    index: tuple[int, ...]
    sign: int = 0


class Curator(RowQuestions):
    """Answers questions about private rows, each after its durable charge.

    Guarantee: what leaves is covered by the events charged, under `relation`, for one row. Where the
    charges are made for a `Unit`, the source must have bounded its rows in the same way (`unit` of
    `ExactCounts`); the account then multiplies, see `understudy.units`.
    `rows_public` is the public number of rows, or None where it is private.
    """

    def __init__(
        self,
        counts: ExactCounts,
        charges: Charges,
        relation: Relation,
        noise: Noise,
        rows_public: int | None = None,
    ) -> None:
        if getattr(charges, "private_noise", False) and not noise.private:
            raise PrivacyError("the ledger was promised private noise; this noise is seeded")
        promised, bounded = _unit(charges), _unit(counts)
        if promised != bounded:
            raise PrivacyError(
                f"the account is kept for one {promised or 'row'}, the counts are of one "
                f"{bounded or 'row'}; nothing was charged or drawn"
            )
        self._counts = counts
        self._charges = charges
        self._noise = noise
        self._cache: dict[Clique, Sensitive[Counts]] = {}
        self._cached_cells = 0
        self._sparse: tuple[tuple[Clique, ...], Sensitive[Occupied]] | None = None
        self._records: tuple[tuple[Clique, ...], Codes, Sensitive[Touched]] | None = None
        self._answers: tuple[tuple[Products, ...], Sensitive[Counts]] | None = None
        self.relation = relation
        self.rows_public = rows_public
        self.shape = tuple(counts.shape)

    def charge_to(self, charges: Charges) -> None:
        """Charge to the same reservation through something that keeps count: a journal."""
        self._charges = charges

    # -- what may be asked -----------------------------------------------------------------------

    def measure(
        self, purpose: str, tables: Sequence[Clique | Merged], event: Gaussian | None = None
    ) -> tuple[Counts, ...]:
        """Marginal tables, whole or merged, with discrete Gaussian noise on every cell.

        J tables move by one in J (add-remove) or 2J (replace) cells. A table that is named again is
        one more table, with noise of its own.
        """
        self._check_tables(tables)
        changes = self.relation.marginal_l2_squared(len(tables))
        drawn = self._draw(
            purpose,
            Gaussian,
            event,
            lambda e: e.step >= 1 and e.changes >= changes,
            f"{len(tables)} marginal tables, which move {changes} cells by 1",
        )
        shapes = [self._shape(each) for each in tables]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        flat = np.empty(int(ends[-1]), np.int64)
        for end, table in zip(ends, self._exact_tables(tables), strict=True):
            flat[end - table.size : end] = table.reshape(-1)
        noisy = self._guarded(lambda: self._noise.gaussian(flat, drawn.sigma))
        return tuple(
            part.reshape(shape)
            for part, shape in zip(np.split(noisy, ends[:-1]), shapes, strict=True)
        )

    def excesses(
        self,
        purpose: str,
        tables: Sequence[Clique | Merged],
        references: Sequence[Table],
        thresholds: Sequence[float],
        event: Gaussian | None = None,
    ) -> Counts:
        """How far tables are from public references beyond a threshold, with discrete Gaussian noise.

        Excess of a table: ⌊Σ_cells (|c − ref| − θ)₊⌋ rows, ref and θ on the grid 1/16. A neighbour
        moves one or two cells by one and (·)₊ and |·| move no two values apart, so every excess
        moves by at most 1 (add-remove) or 2 (replace), rounded down or not.
        """
        self._check_tables(tables)
        self._check_references(tables, references, thresholds)
        if min(thresholds) < 0:
            raise PrivacyError("a threshold is below 0")
        step = self.relation.marginal_l1()
        drawn = self._draw(
            purpose,
            Gaussian,
            event,
            lambda e: e.step >= step and e.changes >= len(tables),
            f"{len(tables)} excesses, each of which moves by {step}",
        )
        sums = [
            int(
                np.maximum(
                    np.abs(GRID * table - _on_grid(reference)) - round(GRID * threshold), 0
                ).sum()
            )
            for table, reference, threshold in zip(
                self._exact_tables(tables), references, thresholds, strict=True
            )
        ]
        exact = np.array([s // GRID for s in sums], dtype=np.int64)
        return self._guarded(lambda: self._noise.gaussian(exact, drawn.sigma))

    def measure_cells(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        cells: Sequence[Cell],
        event: Gaussian | None = None,
    ) -> Counts:
        """Single cells with discrete Gaussian noise; each moves by at most one."""
        self._check_cliques(cliques)
        drawn = self._draw(
            purpose,
            Gaussian,
            event,
            lambda e: e.step >= 1 and e.changes >= len(cells),
            f"{len(cells)} cells, each of which moves by 1",
        )
        wanted = sorted({cell.marginal for cell in cells})
        tables = dict(zip(wanted, self._exact([cliques[i] for i in wanted]), strict=True))
        exact = np.array([tables[cell.marginal][cell.index] for cell in cells], dtype=np.int64)
        return self._guarded(lambda: self._noise.gaussian(exact, drawn.sigma))

    def rows(self, purpose: str, event: Gaussian | None = None) -> int:
        """The number of rows with discrete Gaussian noise; it moves by one."""
        drawn = self._draw(
            purpose, Gaussian, event, lambda e: e.step >= 1, "the number of rows, which moves by 1"
        )
        exact = np.array([reveal(self._counts.rows())], dtype=np.int64)
        return int(self._guarded(lambda: self._noise.gaussian(exact, drawn.sigma))[0])

    def degrees(
        self, purpose: str, pair: Clique, groups: Counts, event: Gaussian | None = None
    ) -> Counts:
        """How often every value stands at either end of a pair of columns, with discrete Gaussian
        noise; sorted within public groups, smallest first, group after group.

        A row (u, v) counts once for u and once for v, a row (u, u) for nobody: a neighbour moves two
        counts by one (four under replace). Sorting keeps that: one count of a group that grows by one
        moves one entry of the sorted group by one, its last among equals, and a second count moves
        another entry.
        """
        self._check_cliques([pair])
        sizes = [self.shape[column] for column in pair]
        if len(sizes) != 2 or sizes[0] != sizes[1] or len(groups) != sizes[0]:
            raise PrivacyError(f"the ends {pair} must be two columns of {len(groups)} values each")
        changes = self.relation.marginal_l2_squared(2)
        drawn = self._draw(
            purpose,
            Gaussian,
            event,
            lambda e: e.step >= 1 and e.changes >= changes,
            f"sorted degrees, of which a neighbour moves {changes} by 1",
        )
        ((cells, counts),) = reveal(self._counts.sparse([pair]))
        u, v = np.divmod(cells, sizes[1])
        counts = np.where(u == v, 0, counts)
        exact = np.zeros(sizes[0], np.int64)
        np.add.at(exact, u, counts)
        np.add.at(exact, v, counts)
        ordered = exact[np.lexsort((exact, groups))]
        return self._guarded(lambda: self._noise.gaussian(ordered, drawn.sigma))

    def triangles(self, purpose: str, pair: Clique, event: Gaussian | None = None) -> int:
        """How many three values are all linked, with discrete Gaussian noise.

        Two of n values are linked by any row that names both, in either order and however often. A
        row that comes adds one link at most, which closes at most one triangle with each of the other
        n − 2 values; one that goes opens as many. So the number moves by n − 2 at most, under replace
        too, where one of these is taken from the other.
        """
        self._check_cliques([pair])
        sizes = [self.shape[column] for column in pair]
        if len(sizes) != 2 or sizes[0] != sizes[1]:
            raise PrivacyError(f"the ends {pair} must be two columns of as many values")
        most = max(1, sizes[0] - 2)
        drawn = self._draw(
            purpose,
            Gaussian,
            event,
            lambda e: e.step >= most,
            f"triangles, of which a neighbour moves {most}",
        )
        from scipy.sparse import csr_array

        def draw() -> Counts:  # guarded: what cannot be allocated would be told with its exact size
            ((cells, _),) = reveal(self._counts.sparse([pair]))
            u, v = np.divmod(cells, sizes[1])
            u, v = u[u != v], v[u != v]
            links = csr_array(
                (np.ones(2 * u.size, np.int64), (np.r_[u, v], np.r_[v, u])), (sizes[0],) * 2
            )
            links.data[:] = 1  # a pair in both orders is one link
            exact = np.array([(links @ links * links).sum() // 6], np.int64)
            return self._noise.gaussian(exact, drawn.sigma)

        return int(self._guarded(draw)[0])

    def discover(
        self, purpose: str, held: HeldValues, column: str, most: int
    ) -> tuple[str, ...]:  # fmt: skip
        """The values of an open column that enough units hold, at most `most`, the commonest first.

        Count of a value: the units (rows, where there are none) that hold it, each of which counts
        for at most k of its values. A neighbour moves k counts by one (2k under replace). See
        `Discovery` for why values of one unit alone stay hidden; which of the shown ones come first
        and how many are kept is post-processing of the noisy counts.
        """
        if _unit(held) != _unit(self._charges):
            raise PrivacyError("the values are held by other units than the account is kept for")
        if most < 1:
            raise PrivacyError(f"most = {most} must be at least 1")
        values, sides = group(_unit(held)), self.relation.changed_cells
        drawn = self._draw(
            purpose,
            Discovery,
            None,
            lambda e: e.values >= values and e.sides >= sides,
            f"the values of {column!r}, of which a neighbour holds {values} on {sides} sides",
        )
        texts, counts = reveal(held.holders(column))
        if not len(texts):
            return ()
        noisy = self._guarded(lambda: self._noise.gaussian(counts, drawn.sigma))
        shown = [(-int(n), t) for n, t in zip(noisy, texts, strict=True) if n >= drawn.threshold]
        return tuple(text for _, text in sorted(shown)[:most])

    def select_marginals(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        references: Sequence[Table],
        penalties: Sequence[float],
        event: Selection | None = None,
        *,
        weights: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """The k marginals farthest from public reference tables of counts.

        Score of marginal j: w_j·(Σ_cells |c − ref| − penalty), on the grid 1/16, w_j = 1 without
        `weights`. A neighbour moves one or two cells by one, so the sensitivity in grid units is
        16·max w (add-remove) or 32·max w (replace). Scores may rise and fall: ε0 = 2·Δ/scale.
        """
        self._check_cliques(cliques)
        weights = self._check_weights(cliques, weights)
        self._check_references(cliques, references, penalties, weights)
        sensitivity = GRID * self.relation.marginal_l1() * max(weights)
        drawn = self._draw(
            purpose,
            Selection,
            event,
            lambda e: e.sensitivity >= sensitivity and e.k <= len(cliques),
            f"{len(cliques)} L1 scores, which move by {sensitivity}/{GRID}",
        )
        scores = np.array(
            [
                w * (int(np.abs(GRID * table - _on_grid(ref)).sum()) - round(GRID * penalty))
                for table, ref, penalty, w in zip(
                    self._exact_tables(cliques), references, penalties, weights, strict=True
                )
            ],
            dtype=np.int64,
        )
        return self._guarded(lambda: self._noise.top_k(scores, drawn.scale, drawn.k))

    def select_cell(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        references: Sequence[Table],
        signed: bool = False,
        event: Selection | None = None,
    ) -> Cell:
        """The cell farthest from public reference tables of counts.

        Unsigned score |c − ref|. Signed: every cell is two candidates, with scores c − ref and
        ref − c, so that the side is selected together with the cell. Each score moves by 1, which
        is 16 on the grid, under both relations.
        """
        self._check_cliques(cliques)
        self._check_references(cliques, references, [0.0] * len(cliques))
        drawn = self._draw(
            purpose,
            Selection,
            event,
            lambda e: e.sensitivity >= GRID and e.k == 1,
            f"cell scores, which move by {GRID}/{GRID}, one at a time",
        )
        tables = self._exact(cliques)
        difference = np.concatenate(
            [
                (GRID * table - _on_grid(reference)).reshape(-1)
                for table, reference in zip(tables, references, strict=True)
            ]
        )
        scores = np.concatenate([difference, -difference]) if signed else np.abs(difference)
        (picked,) = self._guarded(lambda: self._noise.top_k(scores, drawn.scale, 1))
        sign = (1 if picked < difference.size else -1) if signed else 0
        flat = picked % difference.size
        starts = np.cumsum([0] + [table.size for table in tables])
        marginal = int(np.searchsorted(starts, flat, side="right")) - 1
        index = np.unravel_index(flat - starts[marginal], tables[marginal].shape)
        return Cell(marginal, tuple(int(i) for i in index), sign)

    def pick_cells(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        records: Sequence[Codes],
        rows: int,
        event: Selection | None = None,
        *,
        every_complement: bool = True,
    ) -> tuple[Cell, ...]:
        """k independent picks by the exponential mechanism over all cells and their complements.

        Score of a cell: c − n·ĉ/m, where ĉ counts the m public `records` (one code array per
        column) in it and n is the public number `rows`; of its complement: the negative. Every
        score moves by 1. Marginals may have any number of cells: see `understudy.privacy.buckets`.
        `Cell.sign` is +1 for the cell, −1 for its complement. Without `every_complement` only
        cells that hold a record offer theirs, a public choice: no other can have a score above 0.
        """
        self._check_cliques(cliques)
        codes = self._check_records(records)
        if not 1 <= rows <= 2**40:
            raise PrivacyError(f"rows = {rows} must be between 1 and 2^40")
        drawn = self._draw(
            purpose,
            Selection,
            event,
            lambda e: e.sensitivity >= SCORE_SENSITIVITY,
            f"cell scores, which move by {SCORE_SENSITIVITY} units",
        )
        occupied = self._occupied(cliques)
        candidates = occupied.candidates(self._touched(cliques, codes), rows)
        offered = slice(None) if every_complement else slice(candidates.touched.size)
        scores = np.concatenate([candidates.scores, -candidates.scores[offered]])
        sizes = np.concatenate([candidates.sizes, candidates.sizes[offered]])
        picked = self._guarded(lambda: pick(self._noise, scores, sizes, drawn.scale, drawn.k))
        half = candidates.scores.size
        cells: list[Cell] = []
        for bucket in picked:
            marginal, packed = occupied.split(
                occupied.resolve(candidates, bucket % half, self._noise)
            )
            shape = tuple(self.shape[i] for i in cliques[marginal])
            index = tuple(int(i) for i in np.unravel_index(packed, shape))
            cells.append(Cell(marginal, index, 1 if bucket < half else -1))
        return tuple(cells)

    def pick_queries(
        self,
        purpose: str,
        classes: Sequence[Products],
        references: Sequence[Table],
        signed: bool = True,
        event: Selection | None = None,
    ) -> tuple[Picked, ...]:
        """k independent picks by the exponential mechanism over all queries of some classes.

        Score of a query: c − ref, where c counts the rows that satisfy it and ref is a public real
        number, rounded to the grid 1/65536; of its complement the negative; unsigned |c − ref|. A
        query is a 0/1 function of a row, so every score moves by at most 1 under both relations.
        """
        self._check_classes(classes)
        expected = self._check_expected(classes, references)
        drawn = self._draw(
            purpose,
            Selection,
            event,
            lambda e: e.sensitivity >= SCORE_SENSITIVITY,
            f"query scores, which move by {SCORE_SENSITIVITY} units",
        )
        difference = UNIT * self._exact_answers(classes) - expected
        scores = np.concatenate([difference, -difference]) if signed else np.abs(difference)
        ones = np.ones(scores.size)
        picked = self._guarded(lambda: pick(self._noise, scores, ones, drawn.scale, drawn.k))
        starts = np.cumsum([0] + [each.size for each in classes])
        found: list[Picked] = []
        for number in picked:
            sign = (1 if number < difference.size else -1) if signed else 0
            flat = number % difference.size
            position = int(np.searchsorted(starts, flat, side="right")) - 1
            index = np.unravel_index(flat - starts[position], classes[position].shape)
            found.append(Picked(position, tuple(int(i) for i in index), sign))
        return tuple(found)

    def toss(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        cells: Sequence[Cell],
        records: Sequence[Codes],
        rows: int,
        *,
        scale: float,
        gamma: float,
        event: Selection | None = None,
    ) -> tuple[bool, ...]:
        """One coin per query: P(True) = exp(−γ − (n − s)₊/B), B = `scale` in rows, n = `rows`.

        s is the query's score as in `pick_cells`, against these `records`; it moves by 1. A coin is a
        selection between two candidates: see `understudy.privacy.coins`.
        """
        self._check_cliques(cliques)
        codes = self._check_records(records)
        if not 1 <= rows <= 2**40:
            raise PrivacyError(f"rows = {rows} must be between 1 and 2^40")
        if not (0 < gamma < math.inf and 0 < scale < math.inf):
            raise PrivacyError(f"scale = {scale} and gamma = {gamma} must be finite and above 0")
        for cell in cells:
            self._check_query(cliques, cell)
        drawn = self._draw(
            purpose,
            Selection,
            event,
            lambda e: len(cells) <= e.k and covered(e.sensitivity, e.scale, scale, gamma),
            f"{len(cells)} coins with scale = {scale:g} rows and gamma = {gamma:g}",
        )
        occupied = self._occupied(cliques)
        packed = self._packed(cliques, codes)
        numbers = np.array([self._place(cliques, cell) for cell in cells], dtype=np.int64)
        of = np.array([cell.marginal for cell in cells], dtype=np.int64)
        inside = (packed[:, of] == numbers).sum(axis=0)
        exact = occupied.at(numbers + np.array(occupied.offsets, dtype=np.int64)[of])
        score = UNIT * exact - np.rint(UNIT * rows * (inside / codes.shape[1])).astype(np.int64)
        sides = np.array([cell.sign for cell in cells], dtype=np.int64)
        tossed = halves(sides * score, rows, scale, gamma, drawn.scale)
        # Kept inside the integers by clipping, which moves no two values apart; an error here would
        # depend on private counts.
        clipped = np.clip(tossed, -(2.0**61), 2.0**61).astype(np.int64)
        pairs = [np.array([h, -h]) for h in clipped]
        return tuple(
            self._guarded(lambda two=two: self._noise.top_k(two, drawn.scale, 1)) == (0,)
            for two in pairs
        )

    def critic(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        records: Sequence[NDArray[np.integer[Any]]],
        weight: float,
    ) -> tuple[Table, ...]:
        """A logistic critic that tells the rows from public `records` of a total `weight`.

        Its weights, one table per clique: positive where the table has rows and the records have
        none. Objective perturbation; guarantee and proof are in `understudy.privacy.objective`.
        """
        self._check_cliques(cliques)
        codes = self._check_records(records)
        if not (math.isfinite(weight) and weight > 0):
            raise PrivacyError(f"weight = {weight} must be a finite number above 0")
        looks = Looks(self.shape, tuple(cliques))
        domain = self._shape(looks.columns)
        if math.prod(domain) > 2**62:
            raise PrivacyError(
                f"a critic of {len(looks.columns)} columns together has too many cells"
            )
        drawn = self._draw(
            purpose,
            Perturbation,
            None,
            lambda e: covers(e, looks, self.relation),
            f"a critic of {len(cliques)} tables with {looks.size} cells",
        )
        ((cells, counts),) = reveal(self._counts.sparse([looks.columns]))
        public = np.ravel_multi_index(tuple(codes[i] for i in looks.columns), domain)
        kept, times = np.unique(public, return_counts=True)
        shares = np.asarray(times * (weight / public.size), np.float64)
        theta = self._guarded(
            lambda: perturbed(
                looks,
                (np.unravel_index(cells, domain), counts),
                (np.unravel_index(kept, domain), shares),
                drawn,
                self._noise,
            )
        )
        parts = np.split(theta, np.cumsum(looks.sizes)[:-1])
        return tuple(
            part.reshape(self._shape(clique)) for part, clique in zip(parts, cliques, strict=True)
        )

    def moments(self, purpose: str, maps: Maps) -> Table:
        """Sums over the rows of public random features, in rows, with discrete Gaussian noise.

        A row adds an integer vector of bounded L2 norm: see `understudy.privacy.maps`.
        """
        if type(maps) is not Maps:  # a subclass might compute longer vectors
            raise PrivacyError(f"features must come as Maps, got {type(maps).__name__}")
        self._check_cliques(maps.cliques)
        if maps.shape != self.shape:
            raise PrivacyError(f"the features speak of {maps.shape} values, not {self.shape}")
        drawn = self._draw(
            purpose,
            SampledGaussian,
            None,
            lambda e: covers_maps(e, maps, self.relation),
            f"{maps.size} sums of {maps.kind} features on {len(maps.cliques)} marginals",
        )
        exact = summed(maps, reveal(self._counts.sparse(maps.cliques)))
        return self._guarded(lambda: self._noise.gaussian(exact, drawn.sigma)) / MAP_GRID

    def payoff(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        cells: Sequence[Cell],
        expected: Sequence[float],
        event: Laplace | None = None,
    ) -> float:
        """Σ_t s_t·(c_t − ref_t) over T cells and their sides s_t, in rows, plus discrete Laplace noise.

        References are public and rounded to 1/65536 row. A row that comes, goes or is replaced moves
        every count by at most 1, so the sum moves by at most T rows: l1 = 65536·T.
        """
        self._check_cliques(cliques)
        for cell in cells:
            self._check_query(cliques, cell)
        references = np.asarray(expected, np.float64)
        if references.shape != (len(cells),) or not len(cells):
            raise PrivacyError(f"{len(cells)} cells need as many expected counts, and one at least")
        if not np.isfinite(references).all() or np.abs(references).max() > 2**40:
            raise PrivacyError("an expected count is not finite or too large")
        drawn = self._draw(
            purpose,
            Laplace,
            event,
            lambda e: e.l1 >= UNIT * len(cells),
            f"the payoff of {len(cells)} cells, which moves by {len(cells)} rows",
        )
        occupied = self._occupied(cliques)
        places = [
            self._place(cliques, cell) + int(occupied.offsets[cell.marginal]) for cell in cells
        ]
        counts = occupied.at(np.array(places, dtype=np.int64))
        sides = np.array([cell.sign for cell in cells], dtype=np.int64)
        gaps = UNIT * counts - np.rint(UNIT * references).astype(np.int64)
        exact = np.array([int((sides * gaps).sum())], dtype=np.int64)
        return float(self._guarded(lambda: self._noise.laplace(exact, drawn.scale))[0]) / UNIT

    def worst_query_error(
        self, purpose: str, classes: Sequence[Products], synthetic: Sequence[Counts], size: int
    ) -> int:
        """`worst_error` over all queries of some classes: the same lattice, the same sensitivity.

        With K = max |M·c − n·ĉ| over all queries, c and ĉ the numbers of private and of the M
        synthetic rows that satisfy it (`synthetic` holds one marginal table per class), the answer
        is ⌈L·K/M⌉ + Z. A query is a 0/1 function of a row, so 0 ≤ ĉ ≤ M and a neighbour moves
        M·c − n·ĉ by at most M (by M·q(x) − ĉ where n moves too), hence the answer by L.
        """
        self._check_classes(classes)
        self._check_synthetic([each.clique for each in classes], synthetic, size)
        drawn = self._draw(purpose, Laplace, None, lambda e: True, "the worst error")
        fixed = _answers(classes, synthetic)
        difference = size * self._exact_answers(classes) - self._n() * fixed
        worst = int(np.abs(difference).max(initial=0))
        exact = np.array([-(-drawn.l1 * worst // size)], dtype=np.int64)
        return int(self._guarded(lambda: self._noise.laplace(exact, drawn.scale))[0])

    def worst_error_of_rows(
        self,
        purpose: str,
        cliques: Sequence[Clique],
        records: Sequence[Codes],
    ) -> int:
        """`worst_error` of synthetic rows themselves, for marginals too large to tabulate."""
        self._check_cliques(cliques)
        codes = self._check_records(records)
        drawn = self._draw(purpose, Laplace, None, lambda e: True, "the worst error")
        occupied = self._occupied(cliques)
        worst, n = 0, self._n()
        step = max(1, _CHUNK_CELLS // codes.shape[1])
        for first in range(0, len(cliques), step):
            packed = self._packed(cliques[first : first + step], codes)
            worst = max(worst, occupied.worst(occupied.numbers(packed, first), n, first))
        exact = np.array([-(-drawn.l1 * worst // codes.shape[1])], dtype=np.int64)
        return int(self._guarded(lambda: self._noise.laplace(exact, drawn.scale))[0])

    def worst_error(
        self, purpose: str, cliques: Sequence[Clique], synthetic: Sequence[Counts], size: int
    ) -> int:
        """The worst error over all cells, in rows and on a lattice, with discrete Laplace noise.

        With K = max |M·c − n·ĉ| over all cells, ĉ the counts of the M synthetic rows (fixed and
        public), the answer is ⌈L·K/M⌉ + Z, where L is the `l1` of the planned event: errors in
        units of 1/L row. n is the public number of rows where there is one, otherwise the exact
        one. A neighbour moves M·c − n·ĉ by at most M (by M·1[x in cell] − ĉ where n moves too),
        hence K by M and the answer by L.
        """
        self._check_cliques(cliques)
        self._check_synthetic(cliques, synthetic, size)
        drawn = self._draw(purpose, Laplace, None, lambda e: True, "the worst error")
        n = self._n()
        worst = 0
        for table, fixed in zip(self._exact_tables(cliques), synthetic, strict=True):
            worst = max(worst, int(np.abs(size * table - n * fixed).max(initial=0)))
        exact = np.array([-(-drawn.l1 * worst // size)], dtype=np.int64)
        return int(self._guarded(lambda: self._noise.laplace(exact, drawn.scale))[0])

    def total_variations(
        self, purpose: str, cliques: Sequence[Clique], synthetic: Sequence[Counts], size: int
    ) -> Counts:
        """⌈2·Σ_cells |M·c − n·ĉ| / M⌉ for every marginal, with discrete Gaussian noise.

        Before rounding that is 4·n·TV. A neighbour moves each by at most `variation_step`.
        """
        self._check_cliques(cliques)
        self._check_synthetic(cliques, synthetic, size)
        step = variation_step(self.relation, rows_public=self.rows_public is not None)
        drawn = self._draw(
            purpose,
            Gaussian,
            None,
            lambda e: e.step >= step and e.changes >= len(cliques),
            f"{len(cliques)} total variations, each of which moves by {step}",
        )
        n = self._n()
        sums = [
            int(np.abs(size * table - n * fixed).sum())
            for table, fixed in zip(self._exact_tables(cliques), synthetic, strict=True)
        ]
        exact = np.array([-(-VARIATION_GRID * s // size) for s in sums], dtype=np.int64)
        return self._guarded(lambda: self._noise.gaussian(exact, drawn.sigma))

    # -- how it is kept --------------------------------------------------------------------------

    def _draw(
        self,
        purpose: str,
        kind: type[E],
        event: E | None,
        covers: Callable[[E], bool],
        request: str,
    ) -> E:
        """Check that the planned event covers the request, charge it durably, return it."""
        planned = self._charges.plan[purpose].event
        candidate = event if isinstance(planned, Zcdp) else planned
        if not isinstance(candidate, kind) or not covers(candidate):
            raise PrivacyError(
                f"charge {purpose!r} plans {candidate}, which does not cover {request}; "
                f"nothing was charged or drawn"
            )
        charged = self._charges.charge(purpose, event)
        if charged != candidate:
            raise PrivacyError(f"charge {purpose!r}: the ledger holds another event than the plan")
        return candidate

    def _n(self) -> int:
        return self.rows_public if self.rows_public is not None else reveal(self._counts.rows())

    def _exact(self, cliques: Sequence[Clique]) -> list[Counts]:
        """Exact tables; asked of the source once as long as they fit a bounded cache."""
        missing = [clique for clique in dict.fromkeys(cliques) if clique not in self._cache]
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

    def _exact_tables(self, tables: Sequence[Clique | Merged]) -> Iterator[Counts]:
        """Exact tables, whole or merged, one after the other; few are held beyond the cache."""
        for part in self._parts([_clique(each) for each in tables]):
            held = [_clique(each) for each in tables[part] if not _beyond(each)]
            whole = iter(self._exact(held))
            for each in tables[part]:
                if isinstance(each, Merged) and _beyond(each):
                    ((cells, counts),) = reveal(self._counts.sparse([each.clique]))
                    yield Merged.summed(each, cells, counts)
                else:
                    table = next(whole)
                    yield Merged.table(each, table) if isinstance(each, Merged) else table

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

    def _occupied(self, cliques: Sequence[Clique]) -> Occupied:
        """The occupied cells of a workload; asked of the source once."""
        key = tuple(cliques)
        if self._sparse is None or self._sparse[0] != key:
            tables = reveal(self._counts.sparse(key))
            sizes = [math.prod(self.shape[i] for i in clique) for clique in key]
            self._sparse = (key, Sensitive(Occupied(sizes, tables)))
        return reveal(self._sparse[1])

    def _touched(self, cliques: Sequence[Clique], codes: Codes) -> Touched:
        """The cells that records occupy. To the records of the last call only new ones are added."""
        occupied, key, before = self._occupied(cliques), tuple(cliques), None
        if self._records is not None and self._records[0] == key:
            earlier, touched = self._records[1:]
            if np.array_equal(earlier, codes[:, : earlier.shape[1]]):
                before = reveal(touched)
        fresh = codes[:, before.records :] if before is not None else codes
        found = occupied.touched(occupied.numbers(self._packed(cliques, fresh)), before)
        self._records = (key, codes, Sensitive(found))
        return found

    def _exact_answers(self, classes: Sequence[Products]) -> Counts:
        """The exact counts of all queries, class after class; asked of the source once.

        Classes are compared by identity: their matrices cannot be written to.
        """
        key = tuple(classes)
        if self._answers is None or self._answers[0] != key:
            tables = self._exact([each.clique for each in key])
            self._answers = (key, Sensitive(_answers(key, tables)))
        return reveal(self._answers[1])

    def _packed(self, cliques: Sequence[Clique], codes: Codes) -> Counts:
        """The cell of every record (rows) in every clique (columns), packed in C order."""
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

    def _check_records(self, records: Sequence[Codes]) -> Codes:
        """Records must be codes: one array per column, all of one length, in range. One row each."""
        if len(records) != len(self.shape):
            raise PrivacyError(f"records need {len(self.shape)} columns, got {len(records)}")
        arrays = [np.asarray(codes) for codes in records]
        size = arrays[0].size
        if not 1 <= size <= 2**31:
            raise PrivacyError(f"1 to 2^31 records are needed, got {size}")
        for column, array in enumerate(arrays):
            if array.dtype.kind not in "iu" or array.shape != (size,):
                raise PrivacyError(f"column {column} of the records must be {size} integers")
        kind = np.result_type(*arrays)
        codes = np.stack(arrays) if kind.kind in "iu" else np.stack(arrays, dtype=np.int64)
        outside = (codes.min(axis=1) < 0) | (codes.max(axis=1) >= np.array(self.shape))
        if outside.any():
            raise PrivacyError(f"column {int(outside.argmax())} of the records leaves its domain")
        return codes

    def _check_cliques(self, cliques: Sequence[Clique]) -> None:
        for clique in cliques:
            inside = all(0 <= i < len(self.shape) for i in clique)
            if not inside or list(clique) != sorted(set(clique)):
                raise PrivacyError(
                    f"clique {clique} must be increasing positions below {len(self.shape)}"
                )
        if not cliques:
            raise PrivacyError("a request needs at least one marginal")

    def _check_tables(self, tables: Sequence[Clique | Merged]) -> None:
        """That a row lies in one cell is what `Merged` holds; here, that labels fit the table."""
        for each in tables:
            if isinstance(each, Merged) and type(each) is not Merged:
                raise PrivacyError(f"merged tables must be Merged, got {type(each).__name__}")
        self._check_cliques([_clique(each) for each in tables])
        for each in tables:
            if isinstance(each, Merged) and each.domain != self._shape(each.clique):
                raise PrivacyError(
                    f"the labels of {each.clique} speak of {each.domain} values, "
                    f"not {self._shape(each.clique)}"
                )

    def _shape(self, table: Clique | Merged) -> tuple[int, ...]:
        return table.shape if isinstance(table, Merged) else tuple(self.shape[i] for i in table)

    def _check_classes(self, classes: Sequence[Products]) -> None:
        """That queries are 0/1 functions is what `Products` holds; here, that they fit the table."""
        for each in classes:
            if type(each) is not Products:  # a subclass might count otherwise
                raise PrivacyError(f"queries must come as Products, got {type(each).__name__}")
        self._check_cliques([each.clique for each in classes])
        for each in classes:
            shape = tuple(self.shape[i] for i in each.clique)
            if each.domain != shape:
                raise PrivacyError(
                    f"the literals of {each.clique} speak of {each.domain} values, not {shape}"
                )

    def _check_expected(self, classes: Sequence[Products], references: Sequence[Table]) -> Counts:
        """Public expectations of every query, in units of 1/65536 row."""
        if len(references) != len(classes):
            raise PrivacyError(f"{len(classes)} classes need as many references")
        parts: list[Table] = []
        for each, reference in zip(classes, references, strict=True):
            array = np.asarray(reference, dtype=np.float64)
            if array.shape != each.shape:
                raise PrivacyError(
                    f"the reference of the queries on {each.clique} has shape {array.shape}, "
                    f"not {each.shape}"
                )
            if not np.isfinite(array).all() or np.abs(array).max() > 2**40:
                raise PrivacyError(
                    f"the reference of the queries on {each.clique} is not finite or too large"
                )
            parts.append(array.reshape(-1))
        return np.rint(UNIT * np.concatenate(parts)).astype(np.int64)

    def _check_query(self, cliques: Sequence[Clique], cell: Cell) -> None:
        fits = 0 <= cell.marginal < len(cliques) and cell.sign in (-1, 1)
        clique = cliques[cell.marginal] if fits else ()
        if not clique or len(cell.index) != len(clique):
            raise PrivacyError(f"{cell} is not a cell of the cliques, with its side")
        if not all(0 <= v < self.shape[i] for i, v in zip(clique, cell.index, strict=True)):
            raise PrivacyError(f"{cell} leaves the domain of {clique}")

    def _place(self, cliques: Sequence[Clique], cell: Cell) -> int:
        place = 0
        for column, code in zip(cliques[cell.marginal], cell.index, strict=True):
            place = place * self.shape[column] + code
        return place

    def _check_synthetic(
        self, cliques: Sequence[Clique], synthetic: Sequence[Counts], size: int
    ) -> None:
        """The sensitivity M holds for counts of M rows and for nothing else."""
        if not 1 <= size <= 2**31:
            raise PrivacyError(f"a certificate needs 1 to 2^31 synthetic rows, got {size}")
        if len(synthetic) != len(cliques):
            raise PrivacyError(
                f"{len(cliques)} marginals need as many tables, got {len(synthetic)}"
            )
        for clique, table in zip(cliques, synthetic, strict=True):
            shape = tuple(self.shape[i] for i in clique)
            array = np.asarray(table)
            if not np.issubdtype(array.dtype, np.integer) or array.shape != shape:
                raise PrivacyError(
                    f"the synthetic table of {clique} must hold integers of shape {shape}, "
                    f"got {array.dtype} of shape {array.shape}"
                )
            if (array < 0).any() or int(array.sum(dtype=np.int64)) != size:
                raise PrivacyError(f"the synthetic table of {clique} is not a count of {size} rows")

    def _check_weights(
        self, cliques: Sequence[Clique], weights: Sequence[int] | None
    ) -> tuple[int, ...]:
        """Whole numbers from 1 to `LARGEST_WEIGHT`, so that sensitivities stay exact."""
        if weights is None:
            return (1,) * len(cliques)
        if len(weights) != len(cliques):
            raise PrivacyError(f"{len(cliques)} marginals need as many weights")
        if not all(type(w) is int and 1 <= w <= LARGEST_WEIGHT for w in weights):
            raise PrivacyError(f"weights must be whole numbers from 1 to {LARGEST_WEIGHT}")
        return tuple(weights)

    def _check_references(
        self,
        cliques: Sequence[Clique | Merged],
        references: Sequence[Table],
        penalties: Sequence[float],
        weights: Sequence[int] = (1,),
    ) -> None:
        """Public numbers must fit the integer grid, or a sum could wrap around."""
        largest = _LARGEST / max(weights)
        if len(references) != len(cliques) or len(penalties) != len(cliques):
            raise PrivacyError(f"{len(cliques)} marginals need as many references and penalties")
        for each, reference in zip(cliques, references, strict=True):
            clique, shape = _clique(each), self._shape(each)
            array = np.asarray(reference, dtype=np.float64)
            if array.shape != shape:
                raise PrivacyError(
                    f"the reference of {clique} has shape {array.shape}, not {shape}"
                )
            if not np.isfinite(array).all() or np.abs(array).sum() > largest:
                raise PrivacyError(f"the reference of {clique} is not finite or too large")
        if not all(np.isfinite(p) and abs(p) <= largest for p in penalties):
            raise PrivacyError("a penalty is not finite or too large")

    def _guarded(self, draw: Callable[[], T]) -> T:
        """No message of a sampler may carry an exact value outside."""
        try:
            return draw()
        except UnderstudyError:
            raise
        except Exception as error:  # noqa: BLE001 - its message is withheld, whatever it is
            kind = type(error).__name__
        raise PrivacyError(f"the noise could not be drawn ({kind}); the charge stands")


def _unit(part: object) -> Unit | None:
    """The unit that a ledger's charges or a source's counts are for; without one, a row."""
    return getattr(part, "unit", None)


def variation_step(relation: Relation, *, rows_public: bool) -> int:
    """How far a neighbour moves one entry of `Curator.total_variations`."""
    return VARIATION_GRID * relation.total_variation_steps(rows_public=rows_public)


def _answers(classes: Sequence[Products], tables: Sequence[Counts]) -> Counts:
    """Whole numbers all along: `Products.answers` is exact for tables of counts."""
    parts = [each.answers(table) for each, table in zip(classes, tables, strict=True)]
    return np.rint(np.concatenate([part.reshape(-1) for part in parts])).astype(np.int64)


def _beyond(table: Clique | Merged) -> bool:
    """Whether a table that is merged to a few cells is itself too large to be held."""
    return isinstance(table, Merged) and math.prod(table.domain) > _HELD_CELLS


def _clique(table: Clique | Merged) -> Clique:
    return table.clique if isinstance(table, Merged) else table


def _on_grid(reference: Table) -> Counts:
    return np.rint(GRID * np.asarray(reference, dtype=np.float64)).astype(np.int64)

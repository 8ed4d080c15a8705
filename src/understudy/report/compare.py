"""The synthetic rows against the real ones, for a custodian who may look. NOT PRIVATE.

Everything here is an exact fact about private rows: no noise, no charge, no ledger. It never goes into
a release, and nothing in a release depends on it. Rows are compared as the schema encodes them, cell
by cell, since that is what a release speaks of; docs/report.md says what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Clique, Rng
from understudy.errors import InputError, require_extra
from understudy.progress import Progress, Watch, silent
from understudy.queries import Family, counts
from understudy.queries.evaluate import cells
from understudy.releases import Release
from understudy.report.classify import area, fit
from understudy.report.page import fill
from understudy.schema import Modelled, Schema
from understudy.source import Source, read
from understudy.source.base import rows_that_count
from understudy.wording import percent

LOUD = (
    "NOT PRIVATE: these are exact facts about the private rows. They are for the eyes of a custodian "
    "who may see the table. Do not publish them, and do not choose between releases by them: choosing "
    "leaks, too."
)

_LEARNT_ROWS = 10_000
_TARGETS = 6
_TARGET_SIZES = (2, 12)
_QUERIES = 300
_TRIPLES = 64
_MOST_PAIRS = 3_000
_TABULATED = 5_000_000
_BANDS = ((0.0, 0.01), (0.01, 0.1), (0.1, 1.0))
_SHOWN = 300  # Rows of a table of the page

Codes = list[NDArray[np.unsignedinteger]]


@dataclass(frozen=True, slots=True)
class MarginalError:
    """One family of the workload: its total variation, and the error of its worst query."""

    columns: tuple[str, ...]
    kind: str
    total_variation: float
    worst: float


@dataclass(frozen=True, slots=True)
class Association:
    """How strongly two columns hang together (Cramér's V), in both tables."""

    columns: tuple[str, str]
    real: float
    synthetic: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """Accuracy on real rows that nobody was trained on."""

    target: str
    trained_on_synthetic: float
    trained_on_real: float
    constant: float


@dataclass(frozen=True, slots=True)
class Band:
    """Random questions whose true share lies in [low, high)."""

    low: float
    high: float
    questions: int
    mean_error: float | None
    worst_error: float | None
    median_relative: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that was compared. NOT PRIVATE."""

    rows_real: int
    rows_synthetic: int
    workload: tuple[MarginalError, ...]
    bound: float
    k_marginal: dict[int, float]
    propensity_mse: float
    propensity_area: float
    learnt: tuple[Learnt, ...]
    associations: tuple[Association, ...]
    queries: tuple[Band, ...]
    unique_matches: float
    """Share of the real rows that nobody shares, which also occur among the synthetic ones."""

    @property
    def worst(self) -> float:
        """The worst error over the workload; the certificate bounds it."""
        return max(error.worst for error in self.workload)

    @property
    def mean(self) -> float:
        """The mean total variation over the workload."""
        return float(np.mean([error.total_variation for error in self.workload]))

    @property
    def covered(self) -> bool:
        """Whether the certificate holds; it fails with probability β at most."""
        return self.worst <= self.bound

    def to_json(self) -> dict[str, Any]:
        """For machines, and as loud."""
        body = {**asdict(self), "worst": self.worst, "mean": self.mean, "covered": self.covered}
        body["k_marginal"] = {str(k): score for k, score in self.k_marginal.items()}
        return {"not_private": LOUD, **body}


def compare(
    real: Any,
    release: Release,
    *,
    targets: Sequence[str] | None = None,
    key: int = 0,
    progress: Watch = silent,
) -> Comparison:
    """Compare a release with the table that it stands in for. NOT PRIVATE; see the module.

    real     the private table: a path, a pandas, Polars or Arrow table, or what `read` returned
    targets  columns to predict from the others; by default the categories among the columns
    key      of the random questions and the splits, public

    Raises:
        InputError: The table does not fit the release's schema, has no rows, a target is unknown, or
            scikit-learn is not installed.
    """
    require_extra("a comparison", "learn")
    schema = release.schema
    chosen = _targets(schema, targets)
    if schema.weight > 1:
        shared = (
            "is of two tables" if schema.unit and schema.unit.family else 'has weight = "equal"'
        )
        raise InputError(f"a comparison counts every row once, and the schema {shared}")
    source: Source = real if isinstance(real, Source) else read(real)
    source.bind(schema)  # checks the header
    progress(Progress("reading", 0, 1))
    truth = rows_that_count(source, schema)
    if not truth[0].size:
        raise InputError("the real table has no rows; there is nothing to compare")
    made = [np.asarray(code) for code in schema.encode(release.rows)]
    shape = schema.shape
    names = [column.name for column in schema.modelled]
    rng = np.random.default_rng(key)
    steps = 5 + len(chosen)

    def step(done: int) -> None:
        progress(Progress("comparing", done, steps))

    step(0)
    workload = tuple(
        _family_error(release, family, truth, made, names) for family in release.workload.families
    )
    step(1)
    widths = range(1, min(3, len(shape)) + 1)
    scores = {k: _k_marginal(truth, made, shape, k, rng) for k in widths}
    step(2)
    mse, roc = _propensity(truth, made, shape, rng)
    step(3)
    learnt = []
    for done, target in enumerate(chosen):
        learnt.append(_learnt(truth, made, schema, target, rng))
        step(4 + done)
    associations = tuple(
        Association((names[i], names[j]), *(_cramer(each, shape, (i, j)) for each in (truth, made)))
        for i, j in islice(combinations(range(len(shape)), 2), _MOST_PAIRS)
        if cells(shape, (i, j)) <= _TABULATED
    )
    queries = _queries(truth, made, schema, rng)
    step(steps - 1)
    matches = _unique_matches(truth, made)
    step(steps)
    return Comparison(
        int(truth[0].size),
        int(made[0].size),
        workload,
        release.certificate.bound,
        scores,
        mse,
        roc,
        tuple(learnt),
        associations,
        queries,
        matches,
    )


def _targets(schema: Schema, asked: Sequence[str] | None) -> list[int]:
    low, high = _TARGET_SIZES
    if asked is None:
        kinds = ("category", "boolean")
        fit_for = [
            i
            for i, column in enumerate(schema.modelled)
            if column.kind in kinds and low <= column.size <= high
        ]
        return fit_for[:_TARGETS] if len(schema.modelled) > 1 else []
    found = [schema.position(name) for name in asked]
    for name, i in zip(asked, found, strict=True):
        if schema.modelled[i].size < low or schema.modelled[i].size > 100:
            raise InputError(
                f"target = {name}: it has {schema.modelled[i].size} values, and from 2 to 100 can be "
                f"predicted; choose another column"
            )
    return found


# Marginals


def _gap(truth: Codes, made: Codes, shape: Sequence[int], clique: Clique) -> tuple[float, float]:
    """(total variation, worst cell) of one marginal, of any size."""
    if cells(shape, clique) <= _TABULATED:
        (one,), (other,) = counts(truth, shape, [clique]), counts(made, shape, [clique])
    else:
        both = [_rows([codes[i] for i in clique]) for codes in (truth, made)]
        _, inverse = np.unique(np.concatenate(both), return_inverse=True)
        split, size = both[0].size, int(inverse.max()) + 1
        one, other = (np.bincount(part, minlength=size) for part in np.split(inverse, [split]))
    off = np.abs(one / max(truth[0].size, 1) - other / max(made[0].size, 1))
    return float(off.sum()) / 2, float(off.max())


def _family_error(
    release: Release, family: Family, truth: Codes, made: Codes, names: Sequence[str]
) -> MarginalError:
    shape, clique = release.schema.shape, family.clique
    variation, worst = _gap(truth, made, shape, clique)
    if family.kind != "marginals":
        queries = family.products(shape)
        (one,), (other,) = counts(truth, shape, [clique]), counts(made, shape, [clique])
        off = queries.answers(one) / max(truth[0].size, 1)
        off = off - queries.answers(other) / max(made[0].size, 1)
        worst = float(np.abs(off).max())
    return MarginalError(tuple(names[i] for i in clique), family.kind, variation, worst)


def _k_marginal(truth: Codes, made: Codes, shape: Sequence[int], k: int, rng: Rng) -> float:
    """1000·(1 − mean total variation) over all marginals of k columns, or a sample of them."""
    every = math.comb(len(shape), k)
    if every <= (_MOST_PAIRS if k <= 2 else _TRIPLES):
        cliques = list(combinations(range(len(shape)), k))
    else:
        cliques = [
            tuple(sorted(rng.choice(len(shape), k, replace=False).tolist()))
            for _ in range(_TRIPLES)
        ]
    gaps = [_gap(truth, made, shape, clique)[0] for clique in cliques]
    return 1000 * (1 - float(np.mean(gaps)))


def _cramer(codes: Codes, shape: Sequence[int], pair: tuple[int, int]) -> float:
    """Cramér's V: √(χ²/(n·(min(r, c) − 1))), with empty rows and columns left out."""
    from scipy.stats.contingency import association

    (table,) = counts(codes, shape, [pair])
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(association(table)) if min(table.shape) > 1 else 0.0


# Models


def _some(codes: Codes, rng: Rng, most: int) -> Codes:
    size = codes[0].size
    chosen = rng.permutation(size)[:most]
    return [code[chosen] for code in codes]


def _halves(codes: Codes) -> tuple[Codes, Codes]:
    """Of rows in random order."""
    half = codes[0].size // 2
    return [code[:half] for code in codes], [code[half:] for code in codes]


def _propensity(truth: Codes, made: Codes, shape: Sequence[int], rng: Rng) -> tuple[float, float]:
    """(pMSE, area under the ROC) on held-out rows, half of them real."""
    size = min(_LEARNT_ROWS, truth[0].size, made[0].size)
    if size < 4:
        return 0.0, 0.5
    real, synthetic = _halves(_some(truth, rng, size)), _halves(_some(made, rng, size))
    train, test = (
        (
            [np.concatenate(pair) for pair in zip(real[part], synthetic[part], strict=True)],
            np.repeat([0, 1], [real[part][0].size, synthetic[part][0].size]),
        )
        for part in (0, 1)
    )
    # Columns alone are hardly overfitted, so their probabilities mean something; pairs tell more
    # rows apart, in the right order, with probabilities that are too sure of themselves.
    columns = fit(*train, shape).probabilities(test[0])[:, 1]
    pairs = fit(*train, shape, interactions=True, ridge=1e-3).probabilities(test[0])[:, 1]
    return float(((columns - 0.5) ** 2).mean()), area(pairs, test[1] == 1)


def _learnt(truth: Codes, made: Codes, schema: Schema, target: int, rng: Rng) -> Learnt:
    shape = schema.shape
    others = [i for i in range(len(shape)) if i != target]
    rest = [shape[i] for i in others]
    train, test = _halves(_some(truth, rng, _LEARNT_ROWS))
    synthetic = _some(made, rng, max(train[0].size, 1))
    labels = test[target].astype(np.int64)

    def right(rows: Codes) -> float:
        model = fit([rows[i] for i in others], rows[target].astype(np.int64), rest)
        return float((model.predict([test[i] for i in others]) == labels).mean())

    seen = np.bincount(train[target].astype(np.int64), minlength=shape[target])
    constant = float((labels == int(np.argmax(seen))).mean()) if labels.size else 0.0
    if not train[0].size or not labels.size:
        return Learnt(schema.modelled[target].name, 0.0, 0.0, constant)
    return Learnt(schema.modelled[target].name, right(synthetic), right(train), constant)


# Questions


def _queries(truth: Codes, made: Codes, schema: Schema, rng: Rng) -> tuple[Band, ...]:
    """Random conjunctions of one to three conditions, by how many rows they hold for."""
    pairs: list[tuple[float, float]] = []
    for _ in range(_QUERIES):
        width = int(rng.integers(1, min(3, len(schema.shape)) + 1))
        held = [np.ones(codes[0].size, dtype=bool) for codes in (truth, made)]
        for i in rng.choice(len(schema.shape), width, replace=False):
            allowed = _condition(schema.modelled[i], rng)
            held[0] &= allowed[truth[i]]
            held[1] &= allowed[made[i]]
        pairs.append((float(held[0].mean()), float(held[1].mean())))
    return tuple(_band(low, high, pairs) for low, high in _BANDS)


def _condition(column: Modelled, rng: Rng) -> Bools:
    """Which values satisfy: a range of an ordered column, a set of another."""
    size = column.size
    allowed = np.zeros(size, dtype=bool)
    if column.ordered:
        low, high = np.sort(rng.integers(0, size - column.apart, 2))
        allowed[low : high + 1] = True
    else:
        allowed[rng.choice(size, int(rng.integers(1, max(size, 2))), replace=False)] = True
    return allowed


def _band(low: float, high: float, pairs: Sequence[tuple[float, float]]) -> Band:
    inside = [(r, s) for r, s in pairs if low <= r < high or (high == 1.0 and r == 1.0)]
    if not inside:
        return Band(low, high, 0, None, None, None)
    errors = [abs(r - s) for r, s in inside]
    relative = [abs(r - s) / r for r, s in inside if r > 0]
    median = float(np.median(relative)) if relative else None
    return Band(low, high, len(inside), float(np.mean(errors)), float(np.max(errors)), median)


def _rows(codes: Codes) -> NDArray[np.void]:
    """Every row as one value, to be compared."""
    stacked = np.ascontiguousarray(np.stack([code.astype(np.uint32) for code in codes], axis=1))
    return stacked.view(np.dtype((np.void, stacked.dtype.itemsize * stacked.shape[1]))).ravel()


def _unique_matches(truth: Codes, made: Codes) -> float:
    rows, times = np.unique(_rows(truth), return_counts=True)
    alone = rows[times == 1]
    return float(np.isin(alone, _rows(made)).mean()) if alone.size else 0.0


# The page


def page(found: Comparison, name: str) -> str:
    """All of it, with the warning first."""
    errors = sorted(found.workload, key=lambda e: -e.total_variation)
    changed = sorted(found.associations, key=lambda a: -abs(a.real - a.synthetic))
    scores = found.k_marginal.items()
    return fill(
        "compare.html",
        name=name,
        loud=LOUD,
        found=found,
        scores=[(f"k-marginal score, k = {k}", f"{s:.0f} of 1000") for k, s in scores],
        learnt=[
            (e.target, *(f"{100 * share:.1f} %" for share in right))
            for e in found.learnt
            for right in [(e.trained_on_synthetic, e.trained_on_real, e.constant)]
        ],
        questions=[
            (
                f"{percent(band.low)} to {percent(band.high)}",
                band.questions,
                *map(_known, (band.mean_error, band.worst_error, band.median_relative)),
            )
            for band in found.queries
        ],
        workload=[
            (
                ("" if e.kind == "marginals" else f"{e.kind} of ") + " × ".join(e.columns),
                *(percent(error).removesuffix(" %") for error in (e.total_variation, e.worst)),
            )
            for e in errors[:_SHOWN]
        ],
        associations=[
            (" × ".join(a.columns), f"{a.real:.3f}", f"{a.synthetic:.3f}") for a in changed[:_SHOWN]
        ],
    )


def _known(share: float | None) -> str:
    return "–" if share is None else percent(share)

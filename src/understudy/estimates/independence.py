"""Whether two columns depend on each other: a test on noisy counts, not on synthetic rows.

Let y be the noisy table of two columns, p and q their shares, n the rows. Let L be an orthonormal
basis of the contrasts with L·p = 0, and R one of those with R·q = 0. Where columns are independent,
Z = L·y·Rᵀ has mean 0, whatever the number of rows is. Noise of deviation σ in every cell gives it the
covariance σ²·I, and n rows that are drawn independently n·(L·D_p·Lᵀ)⊗(R·D_q·Rᵀ), which is diagonal in
the right basis. So Σ Z²/(σ² + n·c·d) is about χ² with (r − 1)(c − 1) degrees of freedom. A private n
matters for the variance alone, and an error in p matters only times one in q.

Without noise it is Pearson's test. On synthetic rows that test takes for data what is noise: at ε = 0.1
it finds a dependence in every second pair that has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from understudy._types import Floats, Whole
from understudy.errors import WorkloadError
from understudy.estimates.reduced import Reduced, reduced
from understudy.models import Measured

_FEW = 5.0
"""Cells whose variance is below this make the χ² rough, by Cochran's rule, where they are"""
_MANY = 0.2  # more than this share of all


@dataclass(frozen=True, slots=True)
class Independence:
    """What a test of independence found.

    p_value    how often columns that are independent would look at least this dependent, by the noise
               and by which rows were drawn
    statistic  χ², with `degrees` degrees of freedom
    cells      rows and columns of the noisy table; `merged` if values were counted together
    sigma      its noise, in rows
    rough      the table has many cells with few rows and little noise: p is approximate
    """

    columns: tuple[str, str]
    p_value: float
    statistic: float
    degrees: int
    cells: tuple[int, int]
    sigma: float
    merged: bool
    rough: bool

    @property
    def words(self) -> str:
        """The result in one or two sentences."""
        one, other = self.columns
        told = f"p = {self.p_value:.2g}" if self.p_value >= 1e-9 else "p < 1e-9"
        test = f"(χ² = {self.statistic:.1f}, {self.degrees} degrees of freedom"
        test += f", noise of ±{1.96 * self.sigma:,.0f} in every cell)"
        if self.p_value < 0.05:
            found = f"{one} and {other} depend on each other: {told} {test}."
        else:
            found = (
                f"No dependence of {one} and {other} can be seen: {told} {test}. That does not "
                f"show that they are independent."
            )
        if self.merged:
            found += " Values were counted together, and what is inside a group is not seen."
        if self.rough:
            found += " Many cells hold few, so p is approximate."
        return found

    def __str__(self) -> str:
        return self.words

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "words": self.words}


def independence(
    tables: Sequence[Measured],
    pair: tuple[int, int],
    shape: tuple[int, ...],
    rows: float,
    margins: tuple[Floats, Floats],
    names: tuple[str, str],
    alike: int = 1,
) -> Independence:
    """Test two columns on the tables that hold both; `margins` are the shares of their values.

    Tables at least as fine as another are summed onto it and pooled with it. Of what comes out that
    table is tested whose cells show most for their number: which, follows from noise, labels and
    shares, not from the counts that are tested. Where `alike` rows of one person may be copies of each
    other, rows vary up to that many times as much.

    Raises:
        WorkloadError: No table holds both columns.
    """
    turned = pair[0] > pair[1]
    if turned:
        pair, margins = (pair[1], pair[0]), (margins[1], margins[0])
    both = reduced([each for each in tables if {*pair} <= {*each.clique}], pair, shape)
    if not both:
        raise WorkloadError(
            f"no table with both {names[0]} and {names[1]} was measured: whether they depend on each "
            f"other follows from the model alone, and cannot be tested; a workload that asks for them "
            f"together has the pair measured, wide tables only at a larger ε"
        )
    found = max((_tested(each, both, margins, rows, alike) for each in both), key=_promise)
    degrees = found.contrasts.size
    statistic = float((found.contrasts**2 / (found.sigma**2 + found.sampling)).sum())
    cells = found.variance.shape
    return Independence(
        columns=names,
        p_value=_exceeded(statistic, degrees) if degrees else 1.0,
        statistic=statistic,
        degrees=degrees,
        cells=(cells[1], cells[0]) if turned else (cells[0], cells[1]),
        sigma=found.sigma,
        merged=cells != tuple(each.size for each in margins),
        rough=float((found.variance < _FEW).mean()) > _MANY,
    )


@dataclass(frozen=True, eq=False)
class _Tested:
    """Contrasts of a table, what sampling gives each to vary by, and the variance of every cell."""

    contrasts: Floats
    sampling: Floats
    variance: Floats
    sigma: float


def _promise(tested: _Tested) -> float:
    """How much a table would show of a dependence as large everywhere, for its degrees of freedom."""
    seen = tested.sampling / (tested.sigma**2 + tested.sampling)
    return float(seen.sum()) / math.sqrt(max(seen.size, 1))


def _exceeded(statistic: float, degrees: int) -> float:
    """The chance that a χ² of so many degrees exceeds this: Γ(k/2, x/2)/Γ(k/2), term by term."""
    half = max(statistic / 2, 1e-300)
    odd = degrees % 2
    powers = (odd / 2 + i for i in range(degrees // 2))
    terms = (math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers)
    return min(math.fsum(terms) + (math.erfc(math.sqrt(half)) if odd else 0.0), 1.0)


def _tested(
    onto: Reduced,
    tables: Sequence[Reduced],
    margins: tuple[Floats, Floats],
    rows: float,
    alike: int,
) -> _Tested:
    values, sigma = _pooled(onto, tables)
    p = np.bincount(onto.labels[0], margins[0]).astype(np.float64)
    q = np.bincount(onto.labels[1], margins[1]).astype(np.float64)
    (left, c), (right, d) = _basis(p), _basis(q)
    return _Tested(
        left @ values @ right.T,
        alike * rows * np.outer(c, d),
        alike * rows * np.outer(p, q) + sigma**2,
        sigma,
    )


def _pooled(onto: Reduced, tables: Sequence[Reduced]) -> tuple[Floats, float]:
    """Every table that is at least as fine, summed onto this one and averaged by precision."""
    total, precision = np.zeros(onto.values.shape), 0.0
    for table in tables:
        maps = [_coarser(mine, its) for mine, its in zip(onto.labels, table.labels, strict=True)]
        if maps[0] is None or maps[1] is None:
            continue
        summed = np.zeros(onto.values.shape)
        np.add.at(summed, np.ix_(maps[0], maps[1]), table.values)
        # Cells hold sums of different numbers of cells: the noisiest stands for all, on the safe side.
        most = int(np.bincount(maps[0]).max() * np.bincount(maps[1]).max())
        weight = 1 / (table.sigma**2 * most)
        total, precision = total + weight * summed, precision + weight
    return total / precision, precision**-0.5


def _coarser(coarse: Whole, fine: Whole) -> Whole | None:
    """Where each label of `fine` lies in `coarse`; None where one lies in two places."""
    found = np.zeros(int(fine.max()) + 1, np.int64)
    found[fine] = coarse
    return found if np.array_equal(found[fine], coarse) else None


def _basis(p: Floats) -> tuple[Floats, Floats]:
    """(contrasts that take p out, the variance that one row gives each), uncorrelated by both parts."""
    free = np.linalg.svd(p[None])[2][1:]
    variances, turned = np.linalg.eigh((free * p) @ free.T)
    return turned.T @ free, np.maximum(variances, 0.0)

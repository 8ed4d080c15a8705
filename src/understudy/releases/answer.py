"""Questions to a release, with error bars that are certified where that is possible.

A predicate picks cells of a clique that the certificate covers: `inner` cells satisfy it wholly,
`outer` cells touch it. The truth lies between the shares of the two in the private table, and each of
these is within

    b(S) = min( m(S)·U, TV_j )

of the synthetic share: U bounds every certified query, m(S) is how many of them, added and subtracted,
make S or its complement, and TV_j bounds every set of cells of clique j. m(S) is

    0                      if S is no cell or all of them
    1                      if S or its complement is a certified query
    min(|S|, cells − |S|)  where cells are certified queries: marginals, conjunctions, disjunctions
    Σ_v |∂S(v)|            for prefixes, ∂ the differences along every axis: 2 for an interval

and there is no m(S)·U for other sets of parities. Hence the truth is in
[q̂(inner) − b(inner), q̂(outer) + b(outer)], simultaneously for every question, with the certificate's
confidence. It speaks of the table as encoded: values outside the schema count as the legal value they
were mapped to; and it takes a declared number of rows at its word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from understudy._types import Bools
from understudy.markup import notebook
from understudy.queries import MAX_CELLS, Family, Predicate, Workload, cells, count
from understudy.queries.families import ViewCounts
from understudy.releases.certificate import Certificate
from understudy.schema import Schema
from understudy.wording import between, nothing


@dataclass(frozen=True, slots=True)
class Answer:
    """An estimate and, where `certified`, an interval that holds the truth with `confidence`."""

    predicate: str
    estimate: float
    low: float | None
    high: float | None
    confidence: float
    by: tuple[str, ...] | None
    """The columns of the certified family of queries behind the interval."""
    cells: int = 0
    """Of how many certified queries the larger bound is the sum; 0 where it is a total variation."""

    @property
    def certified(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None

    def __str__(self) -> str:
        share = f"{100 * self.estimate:.2f} %"
        if self.low is None or self.high is None:
            return f"{share} (not certified: no certified marginal holds its columns)"
        sure = f"{100 * self.confidence:g} % confidence"
        told = f"certified {between(self.low, self.high)}, {sure}{nothing(self.high - self.low)}"
        return f"{share} ({told})"

    def _repr_html_(self) -> str:
        facts = [("asked", self.predicate), ("share of the rows", str(self))]
        if self.by is not None:
            facts.append(("certified by", " × ".join(self.by)))
        return notebook("Answer", facts)


def answer(
    schema: Schema,
    workload: Workload,
    rows: pa.Table,
    certificate: Certificate,
    text: str,
    views: ViewCounts | None = None,
) -> Answer:
    """Ask the certified synthetic rows. Post-processing: costs nothing.

    `views` are those of families, of which `rows` is then a sample; all of them answer where the
    condition is one on whole cells.
    """
    predicate = Predicate.parse(text, schema)
    size = max(rows.num_rows, 1) if views is None else views.total
    estimate = float(np.count_nonzero(predicate.rows(rows))) / max(rows.num_rows, 1)
    if views is not None and cells(schema.shape, predicate.clique) <= MAX_CELLS:
        inner, outer = predicate.cells(predicate.clique)
        if np.array_equal(inner, outer):  # all views can tell, no sample is needed
            estimate = int(views.tables([predicate.clique])[0][inner].sum()) / size
    confidence = 1 - certificate.beta
    best: tuple[float, float, tuple[int, ...], int] | None = None
    codes = schema.encode(rows)
    variations = certificate.variations or (math.inf,) * len(workload.families)
    for family, variation in zip(workload.families, variations, strict=True):
        clique = family.clique
        if not set(predicate.clique) <= set(clique) or cells(schema.shape, clique) > MAX_CELLS:
            continue
        inner, outer = predicate.cells(clique)
        if views is None:
            table = count(codes, schema.shape, clique)
        else:
            (table,) = views.tables([clique])
        numbers = [_pieces(family, schema.shape, mask) for mask in (inner, outer)]
        below, above = (
            min(number * certificate.bound if number else 0.0, variation) for number in numbers
        )
        # Whole rows are added up before they become a share, so that all of them are exactly 1.
        low = max(0.0, int(table[inner].sum()) / size - below)
        high = min(1.0, int(table[outer].sum()) / size + above)
        if math.isinf(max(below, above)) and (low, high) == (0.0, 1.0):
            continue  # nothing is known from this family
        if best is None or high - low < best[1] - best[0]:
            added = max(numbers)
            summed = math.isfinite(added) and added * certificate.bound <= variation
            best = (low, high, clique, int(added) if summed else 0)
    if best is None:
        return Answer(text, estimate, None, None, confidence, None)
    if views is not None:  # a sample of views may leave what is certified of all
        estimate = min(max(estimate, best[0]), best[1])
    names = tuple(schema.modelled[i].name for i in best[2])
    return Answer(text, estimate, best[0], best[1], confidence, names, best[3])


def _pieces(family: Family, shape: tuple[int, ...], mask: Bools) -> float:
    """m(S): how many queries of the family make a set of cells; see above."""
    inside = int(mask.sum())
    if inside in (0, mask.size):
        return 0
    found = math.inf
    if family.kind in ("marginals", "conjunctions", "disjunctions", "halfspaces"):
        found = min(inside, mask.size - inside)
    elif family.kind == "prefixes":
        steps = mask.astype(np.int64)
        for axis in range(mask.ndim):
            steps = -np.diff(steps, axis=axis, append=0)
        found = int(np.abs(steps).sum() - abs(steps.flat[-1]))  # the last prefix is every row
    if found > 1 and family.kind != "marginals":
        products = family.products(shape)
        shared, sizes = products.answers(mask), products.answers(np.ones(mask.shape))
        same = (shared == inside) & (sizes == inside)
        opposite = (shared == 0) & (sizes == mask.size - inside)
        found = 1 if (same | opposite).any() else found
    return found

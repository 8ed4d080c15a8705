"""Questions to a release, with error bars that are certified where that is possible.

A predicate picks cells of a marginal that the certificate covers: `inner` cells satisfy it wholly,
`outer` cells touch it. The truth lies between the shares of the two in the private table, and each of
these is within

    b(S) = min( |S|·U, TV_j )

of the synthetic share (U bounds every cell, TV_j every set of cells of marginal j). Hence the truth is
in [q̂(inner) − b(inner), q̂(outer) + b(outer)], simultaneously for every question, with the
certificate's confidence. It speaks of the table as encoded: values outside the schema count as the
legal value they were mapped to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.queries import MAX_CELLS, Predicate, Workload, cells, count
from understudy.releases.certificate import Certificate
from understudy.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An estimate and, where `certified`, an interval that holds the truth with `confidence`."""

    predicate: str
    estimate: float
    low: float | None
    high: float | None
    confidence: float
    by: tuple[str, ...] | None
    """The columns of the certified marginal behind the interval."""

    @property
    def certified(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.estimate:.4f} (not certified: no certified marginal holds its columns)"
        below, above = self.estimate - self.low, self.high - self.estimate
        if abs(below - above) < 1e-12:
            bars = f"± {above:.4f}"
        else:
            bars = f"in [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.estimate:.4f} {bars} (certified, {100 * self.confidence:g} %)"


def answer(
    schema: Schema, workload: Workload, rows: pa.Table, certificate: Certificate, text: str
) -> Answer:
    """Ask the certified synthetic rows. Post-processing: costs nothing."""
    predicate = Predicate.parse(text, schema)
    size = max(rows.num_rows, 1)
    estimate = float(np.count_nonzero(predicate.rows(rows))) / size
    confidence = 1 - certificate.beta
    best: tuple[float, float, tuple[int, ...]] | None = None
    codes = schema.encode(rows)
    for position, clique in enumerate(workload.cliques):
        if not set(predicate.clique) <= set(clique) or cells(schema.shape, clique) > MAX_CELLS:
            continue
        inner, outer = predicate.cells(clique)
        table = count(codes, schema.shape, clique) / size

        def reach(number: int, position: int = position) -> float:
            bound = number * certificate.bound
            if certificate.variations is not None:
                bound = min(bound, certificate.variations[position])
            return bound

        low = max(0.0, float(table[inner].sum()) - reach(int(inner.sum())))
        high = min(1.0, float(table[outer].sum()) + reach(int(outer.sum())))
        if best is None or high - low < best[1] - best[0]:
            best = (low, high, clique)
    if best is None:
        return Answer(text, estimate, None, None, confidence, None)
    names = tuple(schema.modelled[i].name for i in best[2])
    return Answer(text, estimate, best[0], best[1], confidence, names)

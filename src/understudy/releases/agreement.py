"""Whether the rows of a release agree with what it measured: released numbers alone, no charge.

A table y with noise of deviation σ that the rows miss by z·σ, z far beyond what the noise of all tables
together would do, shows that the model failed there. The limit is the z whose probability is that of
4.5 deviations divided by the number of cells compared (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from understudy._types import Clique, Codes
from understudy.models import Measured, Weighted
from understudy.models.measured import merge_all
from understudy.players.base import Model
from understudy.queries.evaluate import counts
from understudy.queries.families import ViewCounts
from understudy.wording import points

_BEYOND = 4.5
SMALL = 0.02
"""A share of the rows that does not matter to most analyses."""


def agreement(
    model: Model,
    codes: Sequence[Codes],
    rounds: Sequence[Sequence[object]],
    rows: float,
    names: Sequence[str],
    views: ViewCounts | None = None,
) -> dict[str, Any]:
    """Effective records of the model, and the measured table that the rows miss most, in deviations.

    `views` are those of synthetic families, in place of rows.
    """
    found: dict[str, Any] = {}
    if isinstance(model, Weighted):
        weights = model.weights.astype(np.float64)
        found["records"] = int(weights.size)
        found["effective_records"] = round(float(weights.sum() ** 2 / (weights**2).sum()))
    tables = _pooled(rounds)
    if not tables:
        return found
    scale = rows / max(len(codes[0]) if views is None else views.total, 1)
    cells, most, share = 0, 0.0, 0.0
    where: Clique = ()
    cliques = [clique for clique, _ in tables]
    made = counts(codes, model.shape, cliques) if views is None else views.tables(cliques)
    seen = merge_all(made, [labels for labels, _, _ in tables.values()])
    for (clique, _), (_, values, sigma), table in zip(tables, tables.values(), seen, strict=True):
        if values.size < 2:
            continue
        off = scale * table - values
        off = off - off.mean()  # the number of rows is measured elsewhere, with noise of its own
        rows_off = float(np.abs(off).max())
        largest = rows_off / (sigma * math.sqrt(1 - 1 / values.size))
        cells += values.size
        if largest > most:
            most, where, share = largest, clique, rows_off / max(rows, 1)
    return found | {
        "largest_residual": round(most, 2),
        "largest_residual_share": round(share, 6),
        "largest_residual_in": " × ".join(names[i] for i in where),
        "residual_limit": round(_limit(cells), 2),
    }


@dataclass(frozen=True)
class Miss:
    """The table that the rows miss most, beyond what noise would do."""

    where: str
    deviations: float
    limit: float
    share: float | None
    """In rows, of all; None where an older release does not say it."""

    @property
    def small(self) -> bool:
        """Whether most analyses may overlook it."""
        return self.share is not None and self.share <= SMALL

    def __str__(self) -> str:
        size = "the rows miss what was measured of it"
        size += ", " if self.share is None else f" by up to {points(self.share)}, "
        use = "Do not use " + self.unusable
        if self.small:
            use = "Differences of that size in it may be the model's"
        return (
            f"The model could not fit {self.where}: {size}which noise does not explain "
            f"({self.deviations:.2g} standard deviations of it; up to {self.limit:.2g} are plausible). "
            f"{use}. The certificate holds for it too, so the release may be published with this note; "
            "another release costs budget again, and may not fit better."
        )

    @property
    def unusable(self) -> str:
        """What not to use a release for, where that is more than small."""
        return f"{self.where}{' together' if ' × ' in self.where else ''}"


def contradiction(diagnostics: Mapping[str, Any]) -> Miss | None:
    """Where the rows of a release contradict its own measurements most; None where they do not."""
    most = diagnostics.get("largest_residual", 0)
    limit = diagnostics.get("residual_limit", math.inf)
    if most <= limit:
        return None
    where = str(diagnostics["largest_residual_in"])
    return Miss(where, most, limit, diagnostics.get("largest_residual_share"))


def _limit(cells: int) -> float:
    """The deviations that all cells together pass as seldom as one passes 4.5."""
    return -NormalDist().inv_cdf(math.erfc(_BEYOND / math.sqrt(2)) / 2 / max(cells, 1))


def _pooled(rounds: Sequence[Sequence[object]]) -> dict[Any, tuple[Any, Any, float]]:
    """Every table that was measured, repeated measurements averaged by precision."""
    sums: dict[tuple[Clique, bytes], tuple[Any, Any, float]] = {}
    for answer in (answer for answers in rounds for answer in answers):
        if not isinstance(answer, Measured):
            continue
        labels = answer.labels
        key = (
            answer.clique,
            b"" if labels is None else b"|".join(np.asarray(x).tobytes() for x in labels),
        )
        _, total, weight = sums.get(key, (labels, 0.0, 0.0))
        precision = answer.sigma**-2
        sums[key] = (labels, total + precision * np.asarray(answer.values), weight + precision)
    return {key: (labels, total / w, w**-0.5) for key, (labels, total, w) in sums.items()}

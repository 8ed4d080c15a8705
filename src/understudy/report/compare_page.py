"""A comparison as a page. NOT PRIVATE, and it says so wherever it is opened."""

from __future__ import annotations

from understudy.report.compare import LOUD, Comparison
from understudy.report.page import fill
from understudy.wording import percent

__all__ = ["page"]

_MOST = 300


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
            (e.target, *map(_tenth, (e.trained_on_synthetic, e.trained_on_real, e.constant)))
            for e in found.learnt
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
            (" × ".join(e.columns), e.kind, percent(e.total_variation), percent(e.worst))
            for e in errors[:_MOST]
        ],
        associations=[
            (" × ".join(a.columns), f"{a.real:.3f}", f"{a.synthetic:.3f}") for a in changed[:_MOST]
        ],
    )


def _known(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _tenth(share: float) -> str:
    return f"{100 * share:.1f} %"

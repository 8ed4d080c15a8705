"""A comparison as a page. NOT PRIVATE, and it says so wherever it is opened."""

from __future__ import annotations

from understudy.markup import Html, table, tag
from understudy.report.compare import LOUD, Comparison
from understudy.report.page import document
from understudy.wording import percent

__all__ = ["page"]

_MOST = 300


def page(found: Comparison, name: str) -> str:
    """All of it, with the warning first."""
    errors = sorted(found.workload, key=lambda e: -e.total_variation)
    changed = sorted(found.associations, key=lambda a: -abs(a.real - a.synthetic))
    body = [
        tag("p", LOUD, class_="alarm", role="alert"),
        tag("h1", f"{name} against the private table"),
        table(
            ("", "value"),
            [
                ("rows, real", f"{found.rows_real:,}"),
                ("rows, synthetic", f"{found.rows_synthetic:,}"),
                ("worst error over the workload", f"{found.worst:.4f}"),
                ("certified", f"at most {found.bound:.4f}: {'holds' if found.covered else 'FAILED'}"),
                ("mean total variation", percent(found.mean)),
                *((f"k-marginal score, k = {k}", f"{s:.0f} of 1000")
                  for k, s in found.k_marginal.items()),
                ("propensity, pMSE", f"{found.propensity_mse:.4f} of 0.25"),
                ("propensity, area under the ROC", f"{found.propensity_area:.3f}; a coin 0.5"),
                ("unique rows met again", percent(found.unique_matches)),
            ],
        ),
        _part(
            "Trained on synthetic, tested on real rows: accuracy",
            table(
                ("target", "trained on synthetic", "trained on real", "a constant"),
                [
                    (each.target, *(f"{100 * value:.1f} %" for value in (
                        each.trained_on_synthetic, each.trained_on_real, each.constant)))
                    for each in found.learnt
                ],
                right=(1, 2, 3),
            ),
        ),
        _part(
            "Random questions, by their true share",
            table(
                ("share", "number", "mean error", "worst", "median relative"),
                [
                    (
                        f"{percent(band.low)} to {percent(band.high)}",
                        str(band.questions),
                        *("–" if value is None else percent(value) for value in (
                            band.mean_error, band.worst_error, band.median_relative)),
                    )
                    for band in found.queries
                ],
                right=(1, 2, 3, 4),
            ),
        ),
        _part(
            "The workload, worst first",
            table(
                ("columns", "kind", "total variation", "worst query"),
                [
                    (" × ".join(e.columns), e.kind, percent(e.total_variation), percent(e.worst))
                    for e in errors[:_MOST]
                ],
                right=(2, 3),
            ),
        ),
        _part(
            "Associations between columns (Cramér's V), most changed first",
            table(
                ("columns", "real", "synthetic"),
                [
                    (" × ".join(a.columns), f"{a.real:.3f}", f"{a.synthetic:.3f}")
                    for a in changed[:_MOST]
                ],
                right=(1, 2),
            ),
        ),
    ]  # fmt: skip
    return document(f"NOT PRIVATE: {name} against the private table", tag("main", body))


def _part(heading: str, content: Html) -> Html:
    return tag("section", tag("h2", heading), tag("div", content, class_="scroll"))

"""Statistics of a release with estimated intervals: from the released model and noisy tables alone.

Everything here is post-processing: it costs no privacy and reads no private row. `Known` is what a
release tells; `estimate` answers a question about it. See docs/estimate.md for what intervals promise.
"""

from __future__ import annotations

from understudy.errors import InputError
from understudy.estimates.advice import advice, remarks
from understudy.estimates.estimate import Estimate, Estimates, Parts
from understudy.estimates.independence import Independence, independence
from understudy.estimates.language import Independent, Own, bound, logit, ols, parsed, statistic
from understudy.estimates.solve import Known, estimated

__all__ = [
    "Estimate",
    "Estimates",
    "Independence",
    "Known",
    "Own",
    "Parts",
    "advice",
    "estimate",
    "independent",
    "logit",
    "ols",
    "remarks",
    "statistic",
]

TARGETS = ("population", "table")


def estimate(
    known: Known, asked: str | Own, target: str = "population", level: float = 0.95
) -> Estimate | Estimates | Independence:
    """Answer a question such as "mean(income) by sex"; see `understudy.estimates.language`.

    One estimate, or several for groups and regressions; a test for `independence(a, b)`.
    """
    if target not in TARGETS:
        raise InputError(f"target = {target!r} must be one of {', '.join(TARGETS)}")
    if isinstance(level, bool) or not 0.5 <= level < 1:
        raise InputError(f"level = {level!r} must be from 0.5 to below 1, such as 0.95")
    if isinstance(asked, Own):
        statistics = (bound(asked, known.schema),)
    else:
        found = parsed(asked, known.schema)
        if isinstance(found, Independent):
            return independent(known, found.pair)
        statistics = found
    made = estimated(statistics, known, target, level)
    return made[0] if len(made) == 1 else Estimates(made)


def independent(known: Known, pair: tuple[int, int]) -> Independence:
    """The test of independence of two modelled columns, by position."""
    i, j = pair
    names = known.schema.modelled[i].name, known.schema.modelled[j].name
    margins = known.model.marginal((i,)), known.model.marginal((j,))
    return independence(
        known.tables, pair, known.schema.shape, known.rows, margins, names, known.alike
    )

"""Which oracle the data player asks: a public choice that methods share.

`annealed` (the default) is a local search without promises; `exact` is CP-SAT, which begins where that
ends and proves its records within a time limit; the release counts the rounds in which it ran out. All
is post-processing of released queries. With a time limit the same key need not give the same rows.
"""

from __future__ import annotations

from understudy.game.methods.base import Limit
from understudy.oracles import Annealed
from understudy.oracles.exact import Exact

ORACLE = Limit(("annealed", "exact").__contains__, "is not known; choose annealed or exact")
SECONDS = Limit(
    lambda seconds: 0 < seconds < float("inf"),
    "must be a number above 0: the time limit of one search by oracle = exact",
)
# What a search by CP-SAT takes that is not cut short, on tables of tens of columns.
_USUAL_SECONDS = 0.05


def exact(seconds: float, first: Annealed) -> Exact:
    """CP-SAT with a grid fine enough for the weights of these games."""
    return Exact(seconds, grid=1e-7, first=first)


def seconds_of_search(oracle: str, seconds: float) -> float:
    """About what one search adds to a forecast; 0 where the method reckons with `annealed` itself."""
    return min(seconds, _USUAL_SECONDS) if oracle == "exact" else 0.0

"""Headline figures of a release with their intervals, and tests of its pairs of columns.

All from the model and the noisy tables (`Release.estimate`), none from the synthetic rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from understudy._types import Clique
from understudy.constraints.tokens import literal, named
from understudy.errors import WorkloadError
from understudy.estimates import Estimate
from understudy.estimates.inner import inner
from understudy.releases import Release
from understudy.schema import Boolean, Category

MOST = 12


def possible(release: Release) -> bool:
    """Whether it has intervals: it has noisy tables, and its rows count one each, or families do."""
    unit = release.schema.unit
    return bool(release.tables) and not (unit is not None and unit.equal)


def headlines(release: Release) -> Iterator[str]:
    """For each column the mean of its numbers, or the share of the commonest of its values."""
    for i, column in enumerate(release.schema.modelled):
        name = named(column.name)
        if isinstance(column, Boolean):
            yield f"share({name} = true)"
        elif isinstance(column, Category):
            shares = release.model.marginal((i,))[: len(column.values)]
            yield f"share({name} = {literal(column.values[int(shares.argmax())])})"
        else:
            try:
                inner(column)
            except WorkloadError:  # dates have no mean
                continue
            yield f"mean({name})"


def estimates(release: Release) -> tuple[Estimate, ...]:
    """The headline figures of the first columns; none where there are no intervals."""
    if not possible(release):
        return ()
    found = (release.estimate(asked) for asked in islice(headlines(release), MOST))
    return tuple(each for each in found if isinstance(each, Estimate))


def dependent(release: Release, pair: Clique) -> str:
    """The p-value of a test of independence, in words; – where the pair cannot be tested."""
    names = [release.schema.modelled[i].name for i in pair]
    testable = release.tables and release.schema.weight == 1
    try:
        p = release.test_independence(*names).p_value if testable else None
    except WorkloadError:  # no table holds both
        p = None
    return "–" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.4f}"

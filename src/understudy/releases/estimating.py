"""What a release tells for estimates with intervals; see `understudy.estimates`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from understudy._types import Clique, Floats, Whole
from understudy.columns.ladder import edge_points, first
from understudy.columns.shape import Search
from understudy.errors import InputError
from understudy.estimates import Known
from understudy.privacy.cost import Gaussian, Plan
from understudy.queries import cells, count
from understudy.releases.certificate import ROWS
from understudy.releases.facts import LEVELS
from understudy.schema import UndeclaredShape
from understudy.units import group

if TYPE_CHECKING:
    from understudy.releases.families import FamilyRelease
    from understudy.releases.release import Release

NO_TABLES = (
    "the release has no noisy tables; it was made by a method that measures none, or written before "
    "tables were kept, or they are too large; release again with the default method"
)


def known(release: Release) -> Known:
    """The model, the noisy tables and their noise, as estimates need them.

    Raises:
        InputError: The release has no noisy tables: its method measures none, or it is too old.
    """
    if release.schema.unit is not None and release.schema.unit.equal:
        raise InputError(
            'estimates are of rows that count one each, and this release has weight = "equal"; use '
            "answer, which is certified"
        )
    if not release.tables:
        raise InputError(f"nothing can be estimated or tested: {NO_TABLES}")

    def certified(columns: Clique, rest: Floats) -> float | None:
        schema = release.schema
        return _certified(
            release,
            columns,
            rest,
            lambda: count(schema.encode(release.rows), schema.shape, columns),
        )

    return Known(
        release.schema,
        release.model,
        release.tables,
        float(release.rows_estimate),
        _sigma(release.plan, ROWS) if release.rows_public is None else 0.0,
        group(release.schema.unit),
        certified,
        release.method.get("name") == "maxent" and release.schema.weight == 1,
        _searches(release),
    )


def known_of_families(release: FamilyRelease) -> Known:
    """The same in families: their views weigh one together, in every table and its noise.

    A family is one draw from a population of families. What it adds to a statistic is the mean of its
    views, whose variance is at most that of a view; so sampling errors are those of views or less.
    """
    own, weight, views = known(release), release.families.schema.weight, release.families.views

    def certified(columns: Clique, rest: Floats) -> float | None:
        return _certified(release, columns, rest, lambda: views.tables([columns])[0])

    return replace(
        own,
        tables=[replace(t, values=t.values / weight, sigma=t.sigma / weight) for t in own.tables],
        rows=own.rows / weight,
        rows_sigma=own.rows_sigma / weight,
        alike=1,
        certified=certified,
        smooth=False,
    )


def _searches(release: Release) -> dict[int, Search]:
    """How the release found the shapes of its columns."""
    sigmas = [_sigma(release.plan, level) for level in LEVELS]
    if not all(sigmas):
        return {}
    whole, part = sum(sigma**-2 for sigma in sigmas) ** -0.5, max(sigmas)
    found: dict[int, Search] = {}
    for column in release.declared.undeclared:
        if isinstance(column, UndeclaredShape):
            coarse = edge_points(column.scale, first(column.scale))
            search = Search(coarse, whole, part, *column.open_ends)
            found[release.schema.position(column.name)] = search
    return found


def _sigma(plan: Plan, purpose: str) -> float:
    """The noise of a charge; 0 where there is none."""
    event = plan[purpose].event if purpose in plan else None
    return event.sigma if isinstance(event, Gaussian) else 0.0


def _certified(
    release: Release, columns: Clique, rest: Floats, counted: Callable[[], Whole]
) -> float | None:
    """b + |Σ (ŝ − m)·r|, ŝ the certified rows and b ≥ |Σ (P − ŝ)·r|, P the private table.

    b is the least of range(r)·TV and U·(cells of the marginal per cell)·Σ |r − median r|: TV bounds
    the total variation of a certified marginal that holds the columns, U the error of each of its
    cells. With the certificate's confidence. `rest` is r over all cells of the columns; None where it
    is not, and where no certified marginal holds them; `counted` counts the certified rows.
    """
    shape, certificate = release.schema.shape, release.certificate
    families = release.workload.families
    variations = certificate.variations or (math.inf,) * len(families)
    wide, spread = float(np.ptp(rest)), float(np.abs(rest - np.median(rest)).sum())
    bounds = [
        min(
            wide * min(variation, 1.0),
            spread * certificate.bound * cells(shape, family.clique) / cells(shape, columns),
        )
        for family, variation in zip(families, variations, strict=True)
        if set(columns) <= set(family.clique) and family.kind == "marginals"
    ]
    if not bounds or rest.size != cells(shape, columns):
        return None
    rows = counted()
    shares = rows.reshape(-1) / max(int(rows.sum()), 1)
    gap = shares - release.model.marginal(columns).reshape(-1)
    return min(bounds) + abs(float(gap @ rest))

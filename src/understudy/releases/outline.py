"""A plan, an account and a question, as every shell shows them: public facts alone."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from understudy.game.forecast import Errors
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Discovery, Gaussian, Laplace, Perturbation, Selection
from understudy.privacy.questions import GRID, VARIATION_GRID
from understudy.releases import certificate, facts
from understudy.releases.plan import Prepared
from understudy.schema import Category, Integer, Schema
from understudy.source.pushed import engine_costs
from understudy.units import group

if TYPE_CHECKING:
    from understudy.privacy.ledger import Books, Ledger

__all__ = [
    "ACCOUNTING",
    "ASSUMED_ROWS",
    "assumed_rows",
    "buys",
    "example",
    "history",
    "noise_in_rows",
    "outline",
    "shares",
]

ASSUMED_ROWS = 10_000
"""What a forecast assumes of a table whose number of rows is private."""

ACCOUNTING = {
    "pure": "adding up pure ε",
    "zcdp": "zCDP with the tight conversion",
    "pld": "privacy loss distributions (PLD)",
}
"""How a total was recomputed, in words."""


def assumed_rows(prepared: Prepared, rows: int | None) -> int:
    """How many rows a forecast speaks of: as assumed, as declared, or a guess."""
    declared = (prepared.design.rows or 0) // prepared.schema.weight
    return rows or declared or prepared.options.rows or ASSUMED_ROWS


def noise_in_rows(charge: Charge, weight: int = 1) -> float | None:
    """The standard deviation of a charge's noise, in rows; None for a zCDP filter.

    `weight` is what one of those counted weighs: families weigh more than 1.
    """
    noise = _noise(charge)
    return None if noise is None else noise / weight


def _noise(charge: Charge) -> float | None:
    match charge.event:
        case Gaussian(sigma) if charge.purpose == certificate.VARIATION:
            return sigma / (2 * VARIATION_GRID)
        case Gaussian(sigma) | Discovery(sigma):
            return sigma
        case Laplace(scale, l1):
            return math.sqrt(2) * scale / l1
        case Selection(scale):
            return math.pi / math.sqrt(6) * scale / GRID
        case _:
            return None


def shares(prepared: Prepared) -> list[float]:
    """Of ρ of the protected unit, the part of every charge; a discovery's own ρ is that already."""
    size = group(prepared.schema.unit)
    total = accounting.total_rho(prepared.plan, size)
    return [float(accounting.rho(c.event, size) * c.times / total) for c in prepared.plan]


def buys(charge: Charge) -> str:
    """What a charge is for, in words."""
    known = {
        certificate.ROWS: "how many rows there are",
        certificate.WORST: "the bound on the worst error",
        certificate.VARIATION: "a bound for every marginal",
        facts.QUANTILES: "where to cut columns",
        **dict.fromkeys(facts.LEVELS, "where the values of columns lie"),
        facts.ROUND: "how round these values are",
        facts.REST: "all that follows, planned once the domains are known",
    }
    match charge.event:
        case _ if charge.purpose in known:
            return known[charge.purpose]
        case Discovery(_, threshold):
            return f"the values that about {threshold} or more hold"
        case Gaussian():
            return "counts with noise, for the model"
        case Selection():
            return "choosing what to measure"
        case Perturbation():
            return "a critic that tells rows from records, with noise"
        case _:
            return ""


def _errors_json(errors: Errors | None, schema: Schema) -> dict[str, Any] | None:
    if errors is None:
        return None
    names = [column.name for column in schema.modelled]
    columns = [[names[i] for i in each.clique] for each in errors.marginals]
    return {**errors.to_json(), "columns": columns, "noise": errors.noise}


def outline(prepared: Prepared, rows: int | None = None) -> dict[str, Any]:
    """The plan and what to expect of it for about `rows` rows, in JSON."""
    design, cost = prepared.design, prepared.cost()
    size = assumed_rows(prepared, rows)
    forecast, theorem = prepared.forecast(size), prepared.theorem(size)
    return {
        "budget": prepared.budget.to_json(),
        "neighbours": str(design.relation),
        "rows_public": design.rows,
        "method": prepared.method.describe(),
        "workload": {
            "marginals": len(prepared.workload),
            "cells": prepared.workload.cells(design.shape),
            "kinds": list(prepared.workload.kinds),
        },
        "charges": [
            {
                **charge.to_json(),
                "noise_rows": noise_in_rows(charge, prepared.schema.weight),
                "share_of_rho": share,
                "buys": buys(charge),
            }
            for charge, share in zip(prepared.plan, shares(prepared), strict=True)
        ],
        "cost": {"epsilon": cost.epsilon, "delta": cost.delta, "by": cost.by},
        "forecast": {
            "rows": size,
            "rows_assumed": rows is not None or design.rows is None,
            "noise_rows": forecast.noise,
            "certificate_margin": prepared.margin(size),
            "confidence": 1 - prepared.beta,
            "measured": forecast.measured,
            "memory_bytes": forecast.memory_bytes,
            "seconds": forecast.seconds,
            "errors": _errors_json(forecast.errors, prepared.schema),
            "theorem": None if theorem is None else {**asdict(theorem), "words": str(theorem)},
        },
        "engines": [
            each.to_json() for each in engine_costs(design.shape, prepared.workload.cliques, size)
        ],
    }


def history(ledger: Ledger, name: str) -> list[dict[str, Any]]:
    """Every release of a dataset: its state, what it asked for, what it drew."""
    return [
        {
            "release": made.id,
            "time": made.reserved["time"],
            "state": made.outcome or "open",
            **made.budget.to_json(),
            "method": (made.reserved.get("facts") or {}).get("method", {}).get("name"),
            "planned": made.planned,
            "charges": [charge.purpose for charge in made.charges],
            "bundle": made.bundles[-1] if made.bundles else None,
        }
        for made in ledger.releases(name)
    ]


def more_like_last(books: Books) -> int | None:
    """How many releases like the newest one still fit; None where there is none."""
    made = list(books.releases.values())
    return books.more_like(made[-1].budget, made[-1].plan, made[-1].unit) if made else None


def example(schema: Schema) -> str:
    """A question that fits the schema."""
    plain = [column for column in schema.modelled if column.name.isidentifier()]
    parts: list[str] = []
    for kind in (Integer, Category):
        for column in plain:
            if isinstance(column, Integer) and kind is Integer and column.lower is not None:
                assert column.upper is not None
                parts.append(f"{column.name} >= {(column.lower + column.upper + 1) // 2}")
                break
            if isinstance(column, Category) and kind is Category:
                value = column.values[0]
                if isinstance(value, str) and value.isprintable() and not set(value) & set("'\"`$"):
                    parts.append(f"{column.name} = '{value}'")
                    break
    name = schema.modelled[0].name.replace('"', '""')
    return " and ".join(parts) or f"`{name}` is not null"

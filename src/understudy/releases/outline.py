"""A plan and an account, as every shell shows them: public facts alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from understudy.game.forecast import Errors
from understudy.game.methods import Forecast
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import (
    Charge,
    Discovery,
    Gaussian,
    Laplace,
    Perturbation,
    Plan,
    Selection,
)
from understudy.privacy.ledger import Account, Books, Dataset, Ledger
from understudy.privacy.questions import GRID, VARIATION_GRID
from understudy.queries.purpose import MOST_CELLS, left_out, read
from understudy.releases import certificate, facts
from understudy.releases.ends import sought_in_words
from understudy.releases.plan import Prepared
from understudy.releases.verdict import foreseen
from understudy.schema import Schema
from understudy.source.pushed import engine_costs
from understudy.units import Unit, group, things
from understudy.wording import duration

ASSUMED_ROWS = 10_000
"""What a forecast assumes of a table whose number of rows is private."""

_NAMED = 3

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


def _guessed(prepared: Prepared, rows: int | None) -> bool:
    """Whether nobody has said how many rows there are."""
    return not (rows or prepared.design.rows or prepared.options.rows)


def seconds(prepared: Prepared) -> float | None:
    """About how long a release takes; None where that hangs on a number of rows that nobody stated."""
    guessed = _guessed(prepared, None)
    return None if guessed else prepared.seconds(assumed_rows(prepared, None))


def time_in_words(prepared: Prepared, rows: int | None = None) -> str:
    """About how long a release takes, for the size that is known or assumed, or for two sizes."""
    size = assumed_rows(prepared, rows)
    sizes = (size, 10 * size) if _guessed(prepared, rows) else (size,)
    of = things(prepared.schema.unit)
    said = [f"{duration(prepared.seconds(n))} for {n:,} {of}" for n in sizes]
    machine = "on an idle core; up to three times as long on a busy machine"
    return f"about {', '.join(said)} {machine}"


def noise_in_rows(charge: Charge, weight: int = 1) -> float | None:
    """The standard deviation of a charge's noise, in rows; None for a zCDP filter.

    `weight` is what one of those counted weighs: families weigh more than 1.
    """
    match charge.event:
        case Gaussian(sigma) if charge.purpose == certificate.VARIATION:
            return sigma / (2 * VARIATION_GRID) / weight
        case Gaussian(sigma) | Discovery(sigma):
            return sigma / weight
        case Laplace(scale, l1):
            return math.sqrt(2) * scale / l1 / weight
        case Selection(scale):
            return math.pi / math.sqrt(6) * scale / GRID / weight
        case _:
            return None


def noises(prepared: Prepared, rows: int) -> dict[str, float]:
    """The standard deviation of the noise of every count that is measured, in rows, by its charge."""
    measured = [c for c in prepared.usual(rows).game_plan if isinstance(c.event, Gaussian)]
    found = {c.purpose: noise_in_rows(c, prepared.schema.weight) for c in measured}
    return {purpose: noise for purpose, noise in found.items() if noise is not None}


def shares(prepared: Prepared) -> list[float]:
    """Of ρ of the protected unit, the part of every charge; a discovery's own ρ is that already."""
    size = group(prepared.schema.unit)
    total = accounting.total_rho(prepared.plan, size)
    return [float(accounting.rho(c.event, size) * c.times / total) for c in prepared.plan]


def shown(purpose: str) -> str:
    """The purpose of a charge as people read it; a ledger keeps the name that it was charged under."""
    return purpose.replace("look for excess", "find poorly fitting tables")


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
        case _ if charge.purpose.startswith("look for excess"):
            return "which tables the model fits poorly"
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
    judged, traded = foreseen(prepared, size, forecast.errors), tradeoff(prepared, size)
    purpose: dict[str, Any] = {}
    if traded is not None:
        texts = list(prepared.options.purposes)
        purpose = {"purpose": {"texts": texts, **asdict(traded), "words": str(traded)}}
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
        **purpose,
        "charges": [
            {
                **charge.to_json(),
                "shown": shown(charge.purpose),
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
            "rows_guessed": _guessed(prepared, rows),
            "noise_rows": noises(prepared, size),
            "certificate_margin": prepared.margin(size),
            "confidence": 1 - prepared.beta,
            "measured": forecast.measured,
            "by_group": by_group(prepared, forecast),
            "ends": sought_in_words(prepared.declared or prepared.schema),
            "memory_bytes": forecast.memory_bytes,
            "seconds": forecast.seconds,
            "time": time_in_words(prepared, rows),
            "errors": _errors_json(forecast.errors, prepared.schema),
            "verdict": None if judged is None else judged.to_json(),
            "theorem": None if theorem is None else {**asdict(theorem), "words": str(theorem)},
        },
        "engines": [
            each.to_json() for each in engine_costs(design.shape, prepared.workload.cliques, size)
        ],
    }


def by_group(prepared: Prepared, forecast: Forecast) -> str | None:
    """What pairs that are not measured mean for groups, while a purpose can still be given."""
    if not forecast.inferred:
        return None
    which = "other " if prepared.options.purposes else ""
    return (
        f"means by group will mostly be very wide or “not determined” for these {forecast.inferred:,} "
        f"pairs. If you will compare {which}groups, add --purpose subgroups:COLUMN now; afterwards it "
        f"costs a second release"
    )


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Mean expected total variation with the purposes and without them; None if it is unknown."""

    of: str
    """What the tables of the purposes are, in words."""
    wanted: tuple[float, float] | None
    """Of the tables of the purposes that would have been in the workload anyway."""
    others: tuple[float, float] | None
    """Of all other tables."""
    left_out: tuple[str, ...]
    """Tables of three columns that the purposes do not add, for they have too many cells."""

    def __str__(self) -> str:
        named = ((self.of, self.wanted), ("all other tables", self.others))
        said = [f"{of}: {_change(*both)}" for of, both in named if both is not None]
        if self.left_out:
            many = len(self.left_out)
            most = ", ".join(self.left_out[:_NAMED]) + (" and others" if many > _NAMED else "")
            tables = "1 table is" if many == 1 else f"{many:,} tables are"
            said.append(f"{tables} not added, with more than {MOST_CELLS:,} cells: {most}")
        return "; ".join(said)


def _change(now: float, before: float) -> str:
    return f"expected error {100 * now:.2g} instead of {100 * before:.2g} percentage points"


def tradeoff(prepared: Prepared, rows: int) -> Tradeoff | None:
    """What the purposes cost the rest, for about `rows` rows; None without purposes."""
    texts, schema = prepared.options.purposes, prepared.schema
    if not texts:
        return None
    purposes = [read(text) for text in texts]
    now, before = prepared.forecast(rows).errors, prepared.without_purpose(rows)
    wanted: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    if now is not None and before is not None:
        asked = {family.clique for purpose in purposes for family in purpose.families(schema)}
        known = {each.clique: each.total_variation for each in now.marginals}
        for each in before.marginals:
            both = (known[each.clique], each.total_variation)
            (wanted if each.clique in asked else others).append(both)
    names = [column.name for column in schema.modelled]
    left = left_out(texts, schema)
    labels = (" × ".join(names[i] for i in clique) for clique in left)
    said = (f"tables {'of the regression of' if p.others else 'with'} {p.column}" for p in purposes)
    of = " and ".join(dict.fromkeys(said))
    return Tradeoff(of, _means(wanted), _means(others), tuple(labels))


def _means(pairs: list[tuple[float, float]]) -> tuple[float, float] | None:
    if not pairs:
        return None
    now, before = zip(*pairs, strict=True)
    return sum(now) / len(now), sum(before) / len(before)


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


@dataclass(frozen=True, slots=True)
class Room:
    """What a release takes of an account, and what it leaves; shares of what adds up there."""

    takes: float
    before: float
    """What is left without it."""
    left: float
    """What is left with it."""
    fit: int
    """How many like it fit, itself included."""

    @classmethod
    def of(cls, books: Books, budget: Budget, plan: Plan, unit: Unit | None) -> Room:
        """Of a release that is not reserved yet."""
        own = books.facts
        before, after = gone(books.spent(), own), gone(books.after(budget, plan, unit), own)
        fit, takes = books.more_like(budget, plan, unit), after - before
        if not fit and takes <= 1 - before:  # it is more than what adds up that does not fit
            takes = max(
                takes, gone(Account(budget.epsilon, budget.delta, Fraction(), Fraction()), own)
            )
        return cls(takes, max(0.0, 1 - before), max(0.0, 1 - after), fit)


def gone(spent: Account, dataset: Dataset) -> float:
    """The share of a budget that is spent; above 1 for what does not fit.

    Of ρ, which grows with about the square of ε, where releases add up by zCDP; otherwise of ε or δ,
    whichever has more of it spent.
    """
    total = dataset.budget
    if dataset.composition == "zcdp" and spent.epsilon:
        own = Budget(spent.epsilon, total.delta)
        return float(planning.rho_for(own) / planning.rho_for(total))
    delta = spent.delta / total.delta if total.delta else 0
    return float(max(spent.epsilon / total.epsilon, delta))


def more_like_last(books: Books) -> int | None:
    """How many releases like the newest one still fit; None where there is none."""
    made = list(books.releases.values())
    return books.more_like(made[-1].budget, made[-1].plan, made[-1].unit) if made else None

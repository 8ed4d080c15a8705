"""`understudy plan`: what a release would charge and how good it would be, from public facts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from understudy.cli import options, shell, words
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.game.forecast import Errors
    from understudy.privacy.cost import Charge
    from understudy.queries import Workload
    from understudy.releases import Prepared
    from understudy.schema import Schema

__all__ = ["ASSUMED_ROWS", "errors_in_words", "found_in_words", "plan"]

ASSUMED_ROWS = 10_000
"""What a forecast assumes of a table whose number of rows is private."""

_WORST_MARGINALS = 3


@shell.guarded
def plan(
    schema: options.SchemaFile,
    epsilon: options.MaybeEpsilon = None,
    target_error: options.TargetError = None,
    target_of: options.TargetOf = options.Targets.WORST,
    delta: options.Delta = "1e-9",
    neighbours: options.Neighbours = None,
    rows_public: options.RowsPublic = None,
    workload: options.WorkloadText = None,
    method: options.MethodName = "auto",
    settings: options.Settings = None,
    variations: options.Variations = False,
    beta: options.Beta = 0.05,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="N",
            help="About how many rows the table has: an assumption for the forecast alone.",
            rich_help_panel="Forecast",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a release would charge, and how good it would be.

    Reads the schema and nothing else, spends nothing.

    \b
    [bold]Example[/bold]
      understudy plan --schema patients.schema.toml --epsilon 1 --rows 50000
      understudy plan --schema patients.schema.toml --target-error 0.01 --rows 50000
    """
    if rows is not None and rows < 1:
        raise InputError(f"rows = {rows} must be at least 1")
    from understudy.releases import prepare
    from understudy.schema import Schema

    prepared = prepare(
        Schema.load(schema),
        epsilon=epsilon,
        target_error=target_error,
        target_of=target_of.value,
        rows=rows,
        delta=delta,
        workload=workload,
        method=method,
        parameters=options.parameters(method, settings),
        neighbours=neighbours or "add-remove",
        rows_public=rows_public,
        beta=beta,
        variations=variations,
    )
    if as_json:
        words.as_json(shell.out(), _to_json(prepared, rows))
    else:
        if target_error is not None:
            found = found_in_words(prepared, target_error, target_of)
            shell.out().print(Text(found, style="bold"), soft_wrap=True)
        _show(prepared, rows)


def found_in_words(prepared: Prepared, target: float, of: options.Targets) -> str:
    """Which ε a target error needs, and what it speaks of."""
    from understudy.privacy.budget import decimal
    from understudy.releases.targets import OF

    return (
        f"A forecast error of {target:g} ({OF[of.value]}) needs "
        f"--epsilon {decimal(prepared.budget.epsilon)}"
    )


def _assumed(prepared: Prepared, rows: int | None) -> int:
    return rows or prepared.design.rows or ASSUMED_ROWS


def _show(prepared: Prepared, rows: int | None) -> None:
    from understudy.privacy import accounting

    console = shell.out()
    design, plan, workload = prepared.design, prepared.plan, prepared.workload
    words.facts(
        console,
        [
            ("promise", f"{prepared.budget}-differential privacy per row"),
            ("neighbours", design.relation.describe(rows_public=design.rows)),
            ("method", prepared.method.name),
            ("workload", _workload_words(workload, design.shape)),
        ],
    )
    charges = words.table(
        "charge", "draws", "noise in rows", "budget", "buys",
        right=("draws", "noise in rows", "budget"),
    )  # fmt: skip
    total = float(accounting.total_rho(plan))
    for charge in plan:
        share = float(accounting.rho(charge.event)) * charge.times / total
        spread = noise_in_rows(charge)
        charges.add_row(
            charge.purpose,
            f"{charge.times:,}",
            "–" if spread is None else f"± {words.number(spread)}",
            words.percent(share),
            _buys(charge),
        )
    console.print(charges)
    cost = prepared.cost()
    console.print(
        f"  All of it costs ε = {cost.epsilon:.6g} at δ = {cost.delta:g}, recomputed by "
        f"{_ACCOUNTING[cost.by]}.",
        soft_wrap=True,
    )
    console.print(
        Text("  Budget shares are shares of ρ, in which the charges add up (zCDP).", style="dim")
    )
    console.print()
    _show_forecast(console, prepared, rows)


def _workload_words(workload: Workload, shape: tuple[int, ...]) -> str:
    number = f"{workload.cells(shape):,}"
    if workload.plain:
        return f"{len(workload):,} marginals, {number} cells"
    return f"{len(workload):,} families of {', '.join(workload.kinds)}, {number} queries"


_ACCOUNTING = {
    "pure": "adding up pure ε",
    "zcdp": "zCDP with the tight conversion",
    "pld": "privacy loss distributions (PLD)",
}


def _show_forecast(console: shell.Console, prepared: Prepared, rows: int | None) -> None:
    size = _assumed(prepared, rows)
    forecast = prepared.forecast(size)
    source = (
        "assumed" if rows is not None
        else "public" if prepared.design.rows is not None
        else "assumed; say more with --rows N"
    )  # fmt: skip
    console.print(Text(f"What to expect of a table of {size:,} rows ({source})", style="bold"))
    pairs: list[tuple[str, str | Text]] = [
        (
            f"a cell of {purpose}",
            f"± {words.number(sigma)} rows, {words.percent(sigma / size)} of the table",
        )
        for purpose, sigma in forecast.noise.items()
    ]
    margin = prepared.margin(size)
    pairs += [
        (
            "certificate",
            f"true worst error + {words.percent(margin)} ({words.number(margin * size)} rows), "
            f"{100 * (1 - prepared.beta):g} % confidence",
        ),
        *errors_in_words(forecast.errors, prepared.schema),
        ("what is measured", forecast.measured),
        ("memory", f"about {words.byte_size(forecast.memory_bytes)}"),
        ("time", f"about {words.duration(forecast.seconds)}"),
    ]
    words.facts(console, pairs)


def errors_in_words(errors: Errors | None, schema: Schema) -> list[tuple[str, str | Text]]:
    """What a forecast says of the workload, and of the marginals that fare worst; may be nothing."""
    if errors is None or not errors.marginals:
        return []
    lines: list[tuple[str, str | Text]] = [("expected error", str(errors))]
    if len(errors.marginals) > 1:
        names = [column.name for column in schema.modelled]
        worst = sorted(errors.marginals, key=lambda e: -e.total_variation)[:_WORST_MARGINALS]
        shown = "; ".join(
            f"{' × '.join(names[i] for i in each.clique)} {words.percent(each.total_variation)}"
            for each in worst
        )
        lines.append(("worst expected", f"{shown} (total variation; all of them with --json)"))
    return lines


def noise_in_rows(charge: Charge) -> float | None:
    """The standard deviation of a charge's noise, in rows; None for an allowance."""
    from understudy.privacy.cost import Gaussian, Laplace, Selection
    from understudy.privacy.curator import GRID, VARIATION_GRID
    from understudy.releases.certificate import VARIATION

    match charge.event:
        case Gaussian(sigma) if charge.purpose == VARIATION:
            return sigma / (2 * VARIATION_GRID)
        case Gaussian(sigma):
            return sigma
        case Laplace(scale, l1):
            return math.sqrt(2) * scale / l1
        case Selection(scale):
            return math.pi / math.sqrt(6) * scale / GRID
        case _:
            return None


def _buys(charge: Charge) -> str:
    """What a charge is for, in words."""
    from understudy.privacy.cost import Gaussian, Perturbation, Selection
    from understudy.releases import certificate

    known = {
        certificate.ROWS: "how many rows there are",
        certificate.WORST: "the bound on the worst error",
        certificate.VARIATION: "a bound for every marginal",
    }
    match charge.event:
        case _ if charge.purpose in known:
            return known[charge.purpose]
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


def _to_json(prepared: Prepared, rows: int | None) -> dict[str, Any]:
    from understudy.privacy import accounting

    design, cost = prepared.design, prepared.cost()
    size = _assumed(prepared, rows)
    forecast = prepared.forecast(size)
    total = float(accounting.total_rho(prepared.plan))
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
                "noise_rows": noise_in_rows(charge),
                "share_of_rho": float(accounting.rho(charge.event)) * charge.times / total,
                "buys": _buys(charge),
            }
            for charge in prepared.plan
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
        },
    }

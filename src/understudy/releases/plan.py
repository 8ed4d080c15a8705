"""A plan for a release: everything is checked, and every charge is known, before a row is read.

A pure function of public facts: the schema and `Options`. Nothing is spent. A plan divides ρ so:

number of rows                    1 %, where n is private
the method's own charges          the rest
certificate                       its share, 2 % by default
certificate of total variation    twice that share, on request

For a target error the least ε is found by bisection over forecasts. Planning exactly costs seconds
(privacy loss distributions), a plan by zCDP alone costs nothing: so ε is sought by zCDP, planned
exactly once, which tells how much more ρ exact accounting allows, sought again with that, planned
again and checked.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from understudy._version import __version__
from understudy.columns.base import some
from understudy.columns.binned import Binned
from understudy.columns.estimate import usual_cells
from understudy.errors import InputError
from understudy.game.forecast import Errors
from understudy.game.methods import Design, Forecast, Method, Theorem
from understudy.game.methods import method as named_method
from understudy.game.methods.maxent import MaxEntMethod
from understudy.models.families import expected_seconds
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget, decimal, exact
from understudy.privacy.cost import Gaussian, Plan, Zcdp
from understudy.privacy.ledger import refined
from understudy.privacy.planning import Draws
from understudy.privacy.questions import MOST_SYNTHETIC
from understudy.privacy.relation import Relation
from understudy.queries import Workload, resolve
from understudy.queries.purpose import widened
from understudy.releases import certificate as certificates
from understudy.releases import facts as private_facts
from understudy.releases.notebook import plan_card
from understudy.releases.options import Options, relation_of, takes_options
from understudy.schema import Schema
from understudy.schema.family import FamilySchema
from understudy.units import group
from understudy.wording import points, small

LEAST, MOST = 0.001, 20.0
"""Below, everything is noise; above, ε is no promise any more."""
OF = {"worst": "worst cell", "mean": "mean total variation"}
"""What a target error may speak of."""

_ROWS_SHARE = Fraction(1, 100)
_MOST_NOISE = 10**7  # Rows that the measured number of rows may be off by, as a standard deviation
_STEPS = 14
_NOISELESS = 10**4
_ONE_MORE = 1.02


def design_of(
    schema: Schema, workload: Workload, relation: Relation, rows_public: int | None
) -> Design:
    """What a method may know of the problem."""
    modelled = schema.modelled
    return Design(
        schema.shape,
        workload.cliques,
        workload.weights,
        relation,
        rows_public,
        () if workload.plain else workload.families,
        tuple(column.name for column in modelled),
        tuple(column.kind for column in modelled),
        schema.apart,
        schema.ordered,
        schema.weight,
        schema.twins,
        project=schema.project if schema.constrained else None,
    )


def _told(schema: Schema, found: Collection[str]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """What this release counted in the cells of columns while it found them; families not tried."""
    if schema.weight > 1:
        return ()
    return tuple(
        column.shape.told
        if column.name in found and isinstance(column, Binned) and column.shape is not None
        else ()
        for column in schema.modelled
    )


@dataclass(frozen=True, eq=False)
class Blueprint:
    """What a plan follows from but ρ; `release` and `verify` plan by it. `share`: the certificate's."""

    method: Method
    design: Design
    share: Fraction
    variations: bool = False

    @cached_property
    def _shares(self) -> dict[str, Fraction]:
        """Of ρ; they add up to 1."""
        shares = {"certificate": self.share}
        if self.variations:
            shares["variation"] = 2 * self.share
        if self.design.rows is None:
            shares["rows"] = _ROWS_SHARE
        game = 1 - sum(shares.values(), Fraction(0))
        if game <= 0:
            said = "total variations take twice as much again; give less than 0.33"
            raise InputError(f"certificate_share = {float(self.share):g} is too large: {said}")
        return shares | {"game": game}

    def plan(self, rho: Fraction) -> Plan:
        """The charges of a whole release. They cost at most ρ, nominally where rows are sampled."""
        part = {name: rho * share for name, share in self._shares.items()}
        relation, tables = self.design.relation, len(self.design.cliques)
        worst = part["certificate"]
        own = [Draws(certificates.WORST, planning.lattice, worst, certificates.LATTICE)]
        if "rows" in part:
            own.append(Draws(certificates.ROWS, planning.tables, part["rows"], 1))
        bound, *rows = planning.charges(relation, own)
        charges = [*rows, *self.method.charges(self.design, part["game"]), bound]
        if self.variations:
            rho, public = part["variation"], "rows" not in part
            charges.append(certificates.variation_charge(rho, relation, tables, public))
        return Plan(tuple(charges))


@dataclass(frozen=True, eq=False)
class Draft:
    """All of a release but ε and the plan that follows from it."""

    schema: Schema
    workload: Workload
    blueprint: Blueprint
    options: Options

    @property
    def method(self) -> Method:
        """What makes the rows."""
        return self.blueprint.method

    @property
    def design(self) -> Design:
        """What the method may know."""
        return self.blueprint.design


@dataclass(frozen=True, eq=False)
class Prepared(Draft):
    """A release that has been checked and planned from public facts alone. Nothing is spent."""

    budget: Budget
    rho: Fraction
    """What the plan was made of: `blueprint` and ρ."""
    plan: Plan
    declared: Schema | None = None
    """The schema with open columns, where `schema` is only the largest that may come of it."""
    inner: Plan | None = None
    """What the zCDP filter of `plan` is spent on, where the plan is made in two steps."""

    @property
    def beta(self) -> float:
        """The probability with which the certificate may fail."""
        return self.options.beta

    @property
    def game_plan(self) -> Plan:
        """Every charge of the game and the certificate, as far as it is known."""
        return (
            self.plan if self.inner is None else refined(self.plan, private_facts.REST, self.inner)
        )

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The public inputs that the plan follows from, as the ledger keeps them."""
        facts = {
            "schema": (self.declared or self.schema).digest(),
            "workload": self.workload.to_json(self.schema),
            "method": self.method.describe(),
            "rows_public": self.design.rows,
            "rho": float(self.rho),
            "certificate_share": decimal(self.blueprint.share),
            "understudy": __version__,
        }
        if self.options.purposes:
            facts["purposes"] = list(self.options.purposes)
        if self.declared is not None:
            facts["declared"] = self.declared.dumps(comments=False)
        return facts

    def refined(self, schema: Schema) -> Prepared:
        """The same release for the schema that was found, planned within the zCDP filter."""
        draft = _draft(schema, self.options, self.budget, self.workload)
        opened = () if self.declared is None else [c.name for c in self.declared.undeclared]
        design = replace(draft.design, told=_told(schema, opened))  # never of an earlier release
        draft = replace(draft, blueprint=replace(draft.blueprint, design=design))
        rest = self.plan[private_facts.REST].event
        inner = draft.blueprint.plan(accounting.rho(rest))
        if not isinstance(rest, Zcdp) or not accounting.fits(inner, rest):
            raise InputError(
                f"method = {draft.method.name} counts its cost by samples of rows, which a zCDP filter "
                f"that is filled later cannot: declare the values, or the bounds and bins, of "
                f"{_named(self.declared or schema)}, or use another method"
            )
        draft.method.confirm(draft.design, inner)
        return replace(self, **vars(draft), inner=inner)

    def cost(self) -> accounting.Spent:
        """What the plan costs; at most the budget."""
        return accounting.epsilon(self.plan, self.budget.delta, group(self.schema.unit))

    def forecast(self, rows: int) -> Forecast:
        """What to expect for a table of about `rows` rows, whose shapes have the usual cells.

        Seconds are those of a whole release: CPU time, by one process that does nothing else.
        """
        usual = self.usual(rows)
        planned = usual.design, usual.game_plan, rows * self.schema.weight
        return replace(self._forecast(usual, rows), errors=usual.method.errors(*planned))

    def seconds(self, rows: int) -> float:
        """Those of `forecast`, which are known sooner than errors."""
        return self._forecast(self.usual(rows), rows).seconds

    def _forecast(self, usual: Prepared, rows: int) -> Forecast:
        schema = self.schema
        found = usual.method.forecast(usual.design, usual.game_plan, rows * schema.weight)
        if isinstance(schema, FamilySchema):
            most, cliques = schema.tables[2].max_children, usual.design.cliques
            more = expected_seconds(schema.layout, cliques, self.options.rows or rows, most)
            found = replace(found, seconds=found.seconds + more)
        return replace(found, seconds=found.seconds + self._around(usual.design, rows))

    def _around(self, design: Design, rows: int) -> float:
        """CPU seconds beside the method's: find open domains, read, draw, certify, write a report."""
        tables = len(design.cliques)
        found = (
            0.0 if self.declared is None else private_facts.expected_seconds(self.declared, rows)
        )
        return 1.5 + found + 5e-7 * rows * len(design.shape) + 2.4e-4 * tables

    def without_purpose(self, rows: int) -> Errors | None:
        """The expected errors, had the same ρ been spent without the purposes; None if unknown."""
        usual, rho = self.usual(rows), self.rho
        draft = _draft(usual.schema, replace(self.options, purpose=None), self.budget)
        if self.inner is not None:
            rho = accounting.rho(self.plan[private_facts.REST].event)
        plan = draft.blueprint.plan(rho)
        return draft.method.errors(draft.design, plan, rows * self.schema.weight)

    def usual(self, rows: int) -> Prepared:
        """The same for shapes of as many cells as so many rows usually give, not for the most."""
        if self.declared is None or self.inner is None or private_facts.LEVELS[0] not in self.plan:
            return self
        event = self.plan.event(private_facts.LEVELS[0], Gaussian)
        return self.refined(self.declared.largest(usual_cells(rows, event.sigma)))

    def margin(self, rows: int) -> float:
        """What the certificate will add to the true worst error."""
        private = self.design.rows is None
        rows *= self.schema.weight
        return certificates.forecast_margin(self.game_plan, self.beta, rows, private)

    def theorem(self, rows: int) -> Theorem | None:
        """What is proved of the method for a table of about `rows` rows; most say nothing."""
        rows *= self.schema.weight
        return self.method.theorem(self.design, self.game_plan, rows, self.beta)

    def _repr_html_(self) -> str:
        return plan_card(self)

    def __repr__(self) -> str:
        width, tables = len(self.schema.modelled), len(self.workload.cliques)
        return (
            f"<Prepared: {self.budget} by {self.method.name} for {width} columns and {tables:,} "
            f"tables, {len(tuple(self.plan))} charges; nothing is spent>"
        )


@takes_options
def prepare(schema: Schema, options: Options | None = None, /, **choices: Any) -> Prepared:
    """Check the input and plan the charges. A pure function of public facts.

    Give `epsilon`, or `target_error`: then the least ε is taken whose forecast for a table of about
    `rows` rows (`rows_public` if left out) has this error, see `epsilon_for`. `choices` are `Options`.
    """
    options = Options.of(choices) if options is None else options
    if (options.epsilon is None) == (options.target_error is None):
        raise InputError(
            "give epsilon, the privacy budget, or target_error, for which it is found; one of the two"
        )
    budget = Budget.of("1" if options.epsilon is None else options.epsilon, options.delta)
    schema.require_confirmed()
    if schema.undeclared:
        return _staged(schema, options, budget)
    draft = _draft(schema, options, budget)
    if options.target_error is not None:
        epsilon = _least_epsilon(draft, options.target_error)
        draft = replace(draft, options=replace(options, epsilon=epsilon, target_error=None))
        budget = Budget.of(epsilon, options.delta)
    rho, plan = planning.calibrated(draft.blueprint.plan, budget, group(schema.unit))
    draft.method.confirm(draft.design, plan)
    if options.rows is None:
        _require_countable(plan, budget)
    return Prepared(**vars(draft), budget=budget, rho=rho, plan=plan)


def _require_countable(plan: Plan, budget: Budget) -> None:
    """As many rows are made as there seem to be: that must not be noise by the million."""
    noise = certificates.Events.of(plan).rows
    if noise is not None and noise.sigma > _MOST_NOISE:
        raise InputError(
            f"epsilon = {float(budget.epsilon):g} is so small that the number of rows would be noise, "
            f"of a standard deviation of {noise.sigma:.2g} rows: say how many to make with rows "
            f"(--rows N), declare rows_public (--rows-public N), or take a larger epsilon"
        )


def _staged(schema: Schema, options: Options, budget: Budget) -> Prepared:
    """A release that first finds the domains of its open columns; checked for the largest of them."""
    if options.target_error is not None:
        raise InputError(
            f"target_error = {options.target_error} cannot be planned for while the domain of column "
            f"{schema.undeclared[0].name!r} is to be found privately; give epsilon"
        )
    draft = _draft(schema.largest(), options, budget)
    rho = private_facts.outer_rho(schema, budget)
    plan = private_facts.outer_plan(schema, rho, budget.delta, draft.design.relation)
    return Prepared(**vars(draft), budget=budget, rho=rho, plan=plan, declared=schema).refined(
        draft.schema
    )


@takes_options
def epsilon_for(schema: Schema, target_error: float, **choices: Any) -> float:
    """The least ε, to three digits, whose forecast error is at most `target_error`.

    `choices` are `Options`: `target_of` says which error, `rows` about how many rows the table has
    (the declared number if it is left out).

    A pure function of public facts: the forecast is an expectation over tables like those it was
    calibrated on, the certificate of the release says what came out.

    Raises:
        InputError: The target is not between 0 and 1, or no ε reaches it.
    """
    options = Options.of({**choices, "target_error": target_error})
    return float(prepare(schema, options).budget.epsilon)


def _least_epsilon(draft: Draft, target: float) -> str:
    """The least ε, to three digits, for which the forecast of the exact plan is at most `target`."""
    options, build, unit = draft.options, draft.blueprint.plan, group(draft.schema.unit)
    delta, of = options.delta, options.target_of
    weight = draft.schema.weight
    rows = draft.design.rows if options.rows is None else options.rows * weight
    if rows is None:
        raise InputError(
            f"target_error = {target} needs to know about how many rows there are: give rows "
            f"(--rows N), an assumption, or declare rows_public (--rows-public N)"
        )
    if of not in OF:
        raise InputError(f"target_of = {of!r} must be {' or '.join(map(repr, OF))}")
    if not 0 < target < 1:
        raise InputError(
            f"target_error = {target:g} must be above 0 and below 1: it is a share of the rows, such "
            f"as 0.01 for 1 percentage point (1pp on the command line)"
        )

    def error(plan: Plan) -> float:
        errors = None if draft.design.families else draft.method.errors(draft.design, plan, rows)
        if errors is None:
            raise InputError(
                f"target_error = {target}: method {draft.method.name} does not forecast the error of "
                f"this workload; give epsilon, or use method = maxent with marginals"
            )
        return errors.worst if of == "worst" else errors.mean

    def allowed(epsilon: float) -> Fraction:
        return planning.rho_for(Budget.of(epsilon, delta)) / unit**2

    def quick(epsilon: float, gain: Fraction) -> float:
        return error(build(allowed(epsilon) * gain))

    def least(gain: Fraction) -> float:
        low, high = math.log(LEAST), math.log(MOST)
        if quick(LEAST, gain) <= target:
            return LEAST
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if quick(math.exp(middle), gain) <= target:
                high = middle
            else:
                low = middle
        return math.exp(high)

    def planned(epsilon: str) -> Plan:
        return planning.calibrate(build, Budget.of(epsilon, delta), unit)

    reached = quick(MOST, Fraction(1))
    if reached > target:
        floor = error(build(allowed(MOST) * _NOISELESS))
        raise InputError(
            f"target_error = {target:g}, {points(target)} ({OF[of]}), cannot be reached: for {rows:,} "
            f"rows the forecast is {points(reached)} at epsilon = {MOST:g}, and {points(floor)} "
            f"without any noise, by what the model leaves out and by drawing rows. Allow "
            f"more than that, or give coarser columns, a smaller workload or more rows"
        )
    epsilon = _three(least(Fraction(1)))
    plan = planned(epsilon)
    gain = accounting.total_rho(plan) * unit**2 / planning.rho_for(Budget.of(epsilon, delta))
    if gain > 1:
        epsilon = _three(least(gain))
        plan = planned(epsilon)
    while error(plan) > target and float(epsilon) < MOST:
        epsilon = _three(float(epsilon) * _ONE_MORE)
        plan = planned(epsilon)
    return epsilon


def _three(value: float) -> str:
    """Three digits, rounded up."""
    return str(Context(prec=3, rounding=ROUND_UP).create_decimal(Decimal(f"{value:.6g}")))


def _draft(
    schema: Schema, options: Options, budget: Budget, workload: Workload | None = None
) -> Draft:
    """Everything that is checked whatever ε will be; `workload` where it is known already."""
    relation = relation_of(options.neighbours or Relation.ADD_REMOVE)
    rows_public = _rows_public(options.rows_public, schema, relation, budget)
    if not 0 < options.beta <= 0.5:
        raise InputError(
            f"beta = {options.beta} must be above 0 and at most 0.5, for instance 0.05"
        )
    share = exact(options.certificate_share, "certificate_share")
    if not 0 < share <= Fraction(1, 2):
        raise InputError(
            f"certificate_share = {options.certificate_share} must be above 0 and at most 0.5; 0.02 "
            f"is usual"
        )
    if not schema.modelled:
        raise InputError("the schema has no column to synthesise; every one is an identifier")
    method, parameters = options.method, options.parameters or {}
    chosen = named_method(method, **parameters) if isinstance(method, str) else method
    if workload is None:
        wanted = options.workload if options.workload is not None else schema.usual_workload()
        workload = resolve(wanted, schema, max_cells=chosen.max_cells)
        if options.purposes:
            wider = widened(workload, options.purposes, schema)
            workload = resolve(wider, schema, max_cells=chosen.max_cells)
    else:
        resolve(workload, schema, max_cells=chosen.max_cells)
    if options.variations:
        resolve(workload, schema)  # total variations are taken over whole tables
    design = design_of(schema, workload, relation, rows_public)
    if method == "auto" and design.families:
        chosen = named_method("fem", **parameters)
    if isinstance(schema, FamilySchema):
        chosen = _for_families(chosen, schema, rows_public, options)
    elif not isinstance(chosen, MaxEntMethod) and schema.weight > 1:
        raise InputError(
            f'method = {chosen.name}: with weight = "equal" rows are released by maxent, for '
            f"marginals; leave the method out"
        )
    chosen.accept(design)
    return Draft(schema, workload, Blueprint(chosen, design, share, options.variations), options)


def _for_families(
    method: Method, schema: FamilySchema, rows_public: int | None, options: Options
) -> Method:
    """The method, held to the tables of the workload; refuses what families cannot be made of."""
    if not isinstance(method, MaxEntMethod):
        raise InputError(
            f"method = {method.name}: families are made from the weighted records of maxent, for "
            f"marginals; leave the method out"
        )
    for name, rows in (
        ("rows_public", rows_public or 0),
        ("rows", (options.rows or 0) * schema.weight),
    ):
        if rows > MOST_SYNTHETIC:
            raise InputError(
                f"{name} = {rows // schema.weight:,}: with max_children = "
                f"{schema.tables[2].max_children} a certificate is for at most "
                f"{MOST_SYNTHETIC // schema.weight:,} families"
            )
    return replace(method, interactions=False)


def _rows_public(
    declared: int | None, schema: Schema, relation: Relation, budget: Budget
) -> int | None:
    rows = schema.number_public if declared is None else declared
    if rows is None and relation is Relation.REPLACE:
        raise InputError(
            "neighbours = replace makes the number of rows public: declare it with rows_public "
            "(--rows-public N), or use neighbours = add-remove, which keeps it private"
        )
    if rows is not None and rows < 1:
        raise InputError(f"rows_public = {rows} must be at least 1")
    if rows is not None and budget.delta >= Fraction(1, rows):
        raise InputError(
            f"delta = {small(budget.delta)} must be below 1/n = {1 / rows:.3g} for the declared "
            f"n = {rows}: larger would allow publishing somebody's row; 1/n² = {1 / rows**2:.3g} "
            f"or smaller is usual"
        )
    if rows is None and budget.delta > Fraction(1, 10_000):
        raise InputError(
            f"delta = {small(budget.delta)} is too large for a table of unknown size; it must be "
            f"far below 1/(number of rows): give 1e-9"
        )
    return None if rows is None else rows * schema.weight


def _named(schema: Schema) -> str:
    """The columns whose domain is open."""
    return some([repr(column.name) for column in schema.undeclared], 5)

"""From a table to a release: check everything, plan, reserve, play, sample, certify.

The order is the promise. Everything that can be wrong with the input is found before the ledger is
touched; the whole plan is in the ledger before a private row is counted; every draw is charged before
it is made; an exception or Ctrl-C settles the account and leaves nothing behind, or, with a checkpoint,
leaves what was released, to go on from.
"""

from __future__ import annotations

import math
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from understudy._version import __version__
from understudy.errors import InputError, WorkError
from understudy.game import Progress, last_state, remarks, silent
from understudy.game.forecast import Errors
from understudy.game.methods import Design, Forecast, Method, Theorem
from understudy.game.methods import method as named_method
from understudy.game.methods.base import largest_marginal, require_classes
from understudy.players.base import Model
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget, Exact, decimal, exact
from understudy.privacy.cost import Gaussian, Plan, Zcdp
from understudy.privacy.exact import ExactRows
from understudy.privacy.gate import Gate
from understudy.privacy.journal import Journal
from understudy.privacy.ledger import Ledger, Reservation, refined
from understudy.privacy.noise import Noise, OpenDPNoise
from understudy.privacy.questions import RowCount
from understudy.privacy.relation import Relation
from understudy.privacy.stores import Place
from understudy.queries import Workload, WorkloadLike, resolve
from understudy.releases import certificate as certificates
from understudy.releases import facts as private_facts
from understudy.releases import targets
from understudy.releases.blueprint import Blueprint, design_of
from understudy.releases.measurements import Heard
from understudy.releases.notebook import plan_card, progress_here
from understudy.releases.release import Release, drawn_rows
from understudy.releases.room import require_room
from understudy.releases.warm import warmed
from understudy.schema import Schema
from understudy.source import Source, read
from understudy.units import group

__all__ = ["Prepared", "epsilon_for", "prepare", "release"]

_ONE_OFF = "this table"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A release that has been checked and planned from public facts alone. Nothing is spent."""

    schema: Schema
    workload: Workload
    method: Method
    budget: Budget
    design: Design
    plan: Plan
    beta: float
    rho: Fraction
    """What the plan was made of: `blueprint` and ρ."""
    share: Fraction
    """Of ρ, what the certificate gets."""
    declared: Schema | None = None
    """The schema with open columns, where `schema` is only the largest that may come of it."""
    inner: Plan | None = None
    """What the allowance of `plan` is spent on, where the plan is made in two steps."""
    again: Callable[[Schema], _Draft] | None = None
    rows: int | None = None
    """About how many rows there are, as somebody assumes; for forecasts alone."""

    @property
    def game_plan(self) -> Plan:
        """Every charge of the game and the certificate, as far as it is known."""
        return (
            self.plan if self.inner is None else refined(self.plan, private_facts.REST, self.inner)
        )

    def refined(self, schema: Schema) -> Prepared:
        """The same release for the schema that was found, planned within the allowance."""
        assert self.again is not None
        draft, rest = self.again(schema), self.plan[private_facts.REST].event
        inner = draft.blueprint.plan(accounting.rho(rest))
        if not isinstance(rest, Zcdp) or not accounting.fits(inner, rest):
            raise InputError(
                f"method = {draft.blueprint.method.name} counts its cost by samples of rows, which an "
                f"allowance that is filled later cannot: declare the values and bounds of every "
                f"column in the schema, or use another method"
            )
        own = draft.blueprint
        confirm = getattr(own.method, "confirm", None)
        if confirm is not None:
            confirm(own.design, inner)
        return replace(
            self,
            schema=schema,
            workload=draft.workload,
            method=own.method,
            design=own.design,
            inner=inner,
        )

    def cost(self) -> accounting.Spent:
        """What the plan costs; at most the budget."""
        return accounting.epsilon(self.plan, self.budget.delta, group(self.schema.unit))

    def forecast(self, rows: int) -> Forecast:
        """What to expect for a table of about `rows` rows."""
        return self.method.forecast(self.design, self.game_plan, rows)

    def margin(self, rows: int) -> float:
        """What the certificate will add to the true worst error."""
        private = self.design.rows is None
        return certificates.forecast_margin(self.game_plan, self.beta, rows, private)

    def _repr_html_(self) -> str:
        return plan_card(self)


@dataclass(frozen=True, eq=False)
class _Draft:
    """All of a release but ε and the plan that follows from it."""

    schema: Schema
    workload: Workload
    beta: float
    blueprint: Blueprint


def prepare(
    schema: Schema,
    *,
    epsilon: Exact | None = None,
    target_error: float | None = None,
    target_of: str = "worst",
    rows: int | None = None,
    delta: Exact = "1e-9",
    workload: WorkloadLike | None = None,
    method: str | Method = "auto",
    parameters: Mapping[str, Any] | None = None,
    neighbours: str | Relation = Relation.ADD_REMOVE,
    rows_public: int | None = None,
    beta: float = 0.05,
    certificate_share: Exact = "0.02",
    variations: bool = False,
) -> Prepared:
    """Check the input and plan the charges. A pure function of public facts.

    Give `epsilon`, or `target_error`: then the least ε is taken whose forecast for a table of about
    `rows` rows (`rows_public` if left out) has this error, see `epsilon_for`.
    """
    targets.require_one(epsilon, target_error)
    if rows is not None and rows < 1:
        raise InputError(f"rows = {rows} must be at least 1")
    given = "1" if epsilon is None else epsilon

    def again(known: Schema) -> _Draft:
        return _draft(
            known, Budget.of(given, delta), workload, method, parameters, neighbours, rows_public,
            beta, certificate_share, variations,
        )  # fmt: skip

    schema.require_confirmed()
    if schema.opened:
        staged = _staged(schema, Budget.of(given, delta), target_error, again)
        return replace(staged, rows=rows)
    draft = again(schema)
    if target_error is not None:
        given = _solve(draft, target_error, target_of, rows, delta)
    budget = Budget.of(given, delta)
    own = draft.blueprint
    rho, plan = planning.calibrated(own.plan, budget, group(schema.unit))
    confirm = getattr(own.method, "confirm", None)  # what can be judged once the noise is known
    if confirm is not None:
        confirm(own.design, plan)
    return Prepared(
        schema, draft.workload, own.method, budget, own.design, plan, draft.beta, rho, own.share,
        rows=rows,
    )  # fmt: skip


def _staged(
    schema: Schema, budget: Budget, target: float | None, again: Callable[[Schema], _Draft]
) -> Prepared:
    """A release that first finds the domains of its open columns; checked for the largest of them."""
    if target is not None:
        raise InputError(
            f"target_error = {target} cannot be planned for while the domain of column "
            f"{schema.opened[0].name!r} is to be found privately; give epsilon"
        )
    draft = again(schema.provisional())
    own, rho = draft.blueprint, private_facts.outer_rho(schema, budget)
    plan = private_facts.outer_plan(schema, rho, budget.delta, own.design.relation)
    staged = Prepared(
        draft.schema, draft.workload, own.method, budget, own.design, plan, draft.beta, rho,
        own.share, declared=schema, again=again,
    )  # fmt: skip
    return replace(staged, inner=staged.refined(draft.schema).inner)


def epsilon_for(
    schema: Schema,
    target_error: float,
    *,
    target_of: str = "worst",
    rows: int | None = None,
    **choices: Any,
) -> float:
    """The least ε, to three digits, whose forecast error is at most `target_error`.

    target_of  "worst": the error of the worst cell of the workload, which the certificate bounds;
               "mean": the mean total variation of its marginals
    rows       about how many rows the table has; the declared number if it is left out
    choices    as for `prepare`

    A pure function of public facts: the forecast is an expectation over tables like those it was
    calibrated on, the certificate of the release says what came out.

    Raises:
        InputError: The target is not between 0 and 1, or no ε reaches it.
    """
    prepared = prepare(
        schema, target_error=target_error, target_of=target_of, rows=rows, **choices
    )  # fmt: skip
    return float(prepared.budget.epsilon)


def _solve(
    draft: _Draft, target: float, of: str, rows: int | None, delta: Exact
) -> str:  # fmt: skip
    own = draft.blueprint
    foresee = getattr(own.method, "errors", None)
    if foresee is None or own.design.families:
        raise InputError(
            f"target_error = {target}: method {own.method.name} does not forecast the error of "
            f"this workload; give epsilon, or use method = maxent with marginals"
        )
    if rows is None:
        rows = own.design.rows
    if rows is None:
        raise InputError(
            f"target_error = {target} needs to know about how many rows there are: give rows "
            f"(--rows N), an assumption, or declare rows_public (--rows-public N)"
        )

    def errors(plan: Plan) -> Errors:
        return foresee(own.design, plan, rows)

    return targets.solve(own.plan, errors, delta, target, of, group(draft.schema.unit))


def _draft(
    schema: Schema,
    budget: Budget,
    workload: WorkloadLike | None,
    method: str | Method,
    parameters: Mapping[str, Any] | None,
    neighbours: str | Relation,
    rows_public: int | None,
    beta: float,
    certificate_share: Exact,
    variations: bool,
) -> _Draft:
    """Everything that is checked whatever ε will be."""
    relation = _relation(neighbours)
    rows_public = _rows_public(rows_public, schema, relation, budget)
    if not 0 < beta <= 0.5:
        raise InputError(f"beta = {beta} must be above 0 and at most 0.5, for instance 0.05")
    share = exact(certificate_share, "certificate_share")
    if not 0 < share <= Fraction(1, 2):
        raise InputError(
            f"certificate_share = {certificate_share} must be above 0 and at most 0.5; 0.02 is usual"
        )
    schema.require_confirmed()
    if not schema.modelled:
        raise InputError("the schema has no column to synthesise; every one is an identifier")
    chosen = named_method(method, **(parameters or {})) if isinstance(method, str) else method
    wanted = workload if workload is not None else _default_workload(schema)
    resolved = resolve(wanted, schema, max_cells=largest_marginal(chosen))
    if variations:
        resolve(resolved, schema)  # total variations are taken over whole tables
    if method == "auto" and not resolved.plain:
        chosen = named_method("fem", **(parameters or {}))
    design = design_of(schema, resolved, relation, rows_public)
    require_classes(chosen, design)
    chosen.check(design)
    return _Draft(schema, resolved, beta, Blueprint(chosen, design, share, variations))


def release(
    table: Any,
    schema: Schema | str | Path,
    *,
    epsilon: Exact | None = None,
    target_error: float | None = None,
    target_of: str = "worst",
    delta: Exact = "1e-9",
    workload: WorkloadLike | None = None,
    method: str | Method = "auto",
    parameters: Mapping[str, Any] | None = None,
    neighbours: str | Relation = Relation.ADD_REMOVE,
    rows_public: int | None = None,
    rows: int | None = None,
    ledger: Ledger | str | Place | None = None,
    dataset: str | None = None,
    expect_head: str | None = None,
    beta: float = 0.05,
    certificate_share: Exact = "0.02",
    variations: bool = False,
    key: int | None = None,
    public: Any = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    noise: Noise | None = None,
    before_spending: Callable[[Prepared], None] | None = None,
) -> Release:
    """Release a synthetic stand-in for `table` with (ε, δ)-differential privacy per row or unit.

    Guarantee: the returned object, all of it, is (ε, δ)-DP under `neighbours` ("add-remove" or
    "replace" of one row, or of one unit with all its rows where the schema declares a unit); the
    certificate and, where it is private, the number of rows are inside that ε. Everything charged is
    in the ledger before it is drawn.

    table        a path (CSV, Parquet), a pandas, Polars, Arrow, Spark or Ibis table, or what `read`
                 returned, such as a table of a database
    schema       a `Schema` or the path of its TOML file, confirmed
    epsilon      the budget; or `target_error`, a forecast error for which the least ε is taken, see
                 `epsilon_for`: `before_spending` gets to know it before anything is read
    workload     what must come out well and is certified: "marginals:3", `marginals(3)`, a list of
                 column tuples, a file; all pairs by default; other classes of queries are in
                 `understudy.workload`
    method       "auto" (`maxent`) or another of `understudy methods`; `parameters` are its public
                 settings
    rows_public  the number of rows, if it may be known; otherwise it is measured and charged
    rows         how many synthetic rows to make; by default as many as there seem to be
    ledger       a ledger (a file, or `postgresql://user@host/database`) and `dataset`, a name in it,
                 to count against a total budget; without, the release keeps an account of its own
    expect_head  a head of the dataset (`Ledger.head`) that was kept elsewhere: the release is refused
                 unless the account contains it
    variations   also certify the total variation of every marginal, for answers with error bars
    key          makes the public randomness (sampling) repeatable; privacy noise takes no seed
    public       rows that anybody may know, in the same schema, for methods that start from such
    checkpoint   a folder for what is released on the way: the same call with the same folder goes on
                 after a crash, without spending again
    progress     called as progress(stage, done, total); by default a notebook shows it in its cell,
                 and nothing is shown elsewhere. "counting" is a part of any other stage: how many
                 percent of the rows an engine that keeps them has counted
    """
    if not isinstance(schema, Schema):
        schema = Schema.load(schema)
    progress = progress_here() if progress is None else progress
    if public is not None:
        method, parameters = warmed(method, parameters, public, schema, table), None
    if rows is not None and rows < 1:
        raise InputError(f"rows = {rows} must be at least 1")
    if (ledger is None) != (dataset is None):
        raise InputError("ledger and dataset go together: give both, or neither")
    if expect_head is not None and ledger is None:
        raise InputError("expect_head is of a dataset in a ledger; give ledger and dataset too")
    source: Source = table if _is_source(table) else read(table)
    with ExitStack() as stack:
        account: Ledger | None = None
        if ledger is not None and dataset is not None:
            account = ledger if isinstance(ledger, Ledger) else stack.enter_context(Ledger(ledger))
            if expect_head is not None:
                account.require_head(dataset, expect_head)
            if rows_public is None:
                rows_public = account.dataset(dataset).rows_public
        prepared = prepare(
            schema,
            epsilon=epsilon,
            target_error=target_error,
            target_of=target_of,
            rows=rows if target_error is not None else None,
            delta=delta,
            workload=workload,
            method=method,
            parameters=parameters,
            neighbours=neighbours,
            rows_public=rows_public,
            beta=beta,
            certificate_share=certificate_share,
            variations=variations,
        )
        journal = Journal(Path(checkpoint)) if checkpoint is not None else None
        if journal is not None:
            stack.callback(journal.let_go)
        facts = _facts(prepared)
        require_room(prepared.schema, _reserved(prepared, facts), prepared.game_plan, beta, key)
        given = {name: fact for name, fact in facts.items() if name != "rho"}  # which follows
        if journal is not None and journal.header is not None:
            journal.require_same(given)
        elif account is not None and dataset is not None:
            # Refuse what cannot be paid before the table is read; reserving checks again.
            account.require_room(dataset, prepared.budget, prepared.plan, schema.unit)
        if before_spending is not None:
            before_spending(prepared)
        noise = noise if noise is not None else OpenDPNoise()
        key = secrets.randbits(63) if key is None else key
        if journal is not None and journal.header is not None:
            key = int(journal.header["key"])

        def watched(counts: Any) -> Any:
            """Counts of rows that stay where they are take long: they say how far they are."""
            watch = getattr(counts, "watch", None)
            if watch is not None and progress is not silent:
                watch(lambda percent: progress("counting", percent, 100))
            return counts

        progress("reading", 0, 1)
        looked = private_facts.look(source, schema) if schema.opened else None
        bound = watched(source.bind(schema) if looked is None else looked.fine)
        if getattr(prepared.method, "rowwise", False) and not isinstance(bound, ExactRows):
            raise InputError(
                f"method = {prepared.method.name} needs the rows and not only counts of them, which "
                f"{source.describe()} keeps to itself; export the table to Parquet, or use another "
                f"method"
            )
        progress("reading", 1, 1)
        if account is None or dataset is None:
            account, dataset = _one_off(stack, prepared, journal), _ONE_OFF
        if journal is not None and journal.header is not None:
            resumed = journal.header["reservation"]
            reservation = account.resume(dataset, resumed, prepared.budget, prepared.plan)
            journal.resume(reservation)
        else:
            reservation = account.reserve(
                dataset,
                prepared.budget,
                prepared.plan,
                relation=prepared.design.relation,
                private_noise=noise.private,
                facts=facts,
                unit=schema.unit,
            )
            if journal is not None:
                try:
                    journal.begin(reservation.id, key, given)
                except WorkError:
                    with reservation:  # settles: nothing was drawn
                        raise
        if journal is None:
            stack.enter_context(reservation)  # settles, whatever happens

        def open_gate(counts: Any) -> Gate:
            design = prepared.design
            return Gate(counts, reservation, design.relation, noise, design.rows, journal)

        if looked is not None:
            progress("finding domains", 0, 1)
            prepared = prepared.refined(private_facts.found(schema, looked, open_gate))
            assert prepared.inner is not None
            found = {"schema": prepared.schema.digest()}
            reservation = reservation.refine(private_facts.REST, prepared.inner, found)
            prepared = replace(prepared, plan=reservation.plan, inner=None)
            bound = watched(source.bind(prepared.schema))
            progress("finding domains", 1, 1)
        gate = open_gate(bound)
        # What an interrupted release drew with test noise stays what it is.
        private = noise.private and reservation.private_noise
        made = _draw(prepared, source, gate, reservation, rows, key, private, progress)
        if journal is not None:
            journal.close()
        if ledger is None:
            return made
        where = account.path.absolute() if isinstance(account.path, Path) else account.path
        return replace(made, _account=(where, dataset))


def _draw(
    prepared: Prepared,
    source: Source,
    gate: Gate,
    reservation: Reservation,
    rows: int | None,
    key: int,
    private: bool,
    progress: Progress,
) -> Release:
    """Everything after the reservation: measure, play, sample, certify, settle."""
    design, plan, schema = prepared.design, prepared.plan, prepared.schema
    rng = np.random.default_rng(key)
    measured = gate.ask(certificates.ROWS, RowCount()) if design.rows is None else None
    estimate = max(1, design.rows or measured or 1)
    query, data = prepared.method.players(design, plan)
    problem = design.problem(estimate)
    heard = Heard(query)
    state = last_state(problem, heard, data, gate, rng, progress)
    model = data.finish(problem, state)
    size = rows if rows is not None else estimate
    if getattr(prepared.method, "whole", False):
        size = int(getattr(model, "size", size))
    progress("sampling", 0, 1)
    codes, synthetic = drawn_rows(schema, model, size, key)
    progress("sampling", 1, 1)
    progress("certifying", 0, 1)
    certificate = certificates.certify(
        gate,
        plan,
        prepared.workload.cliques,
        codes,
        beta=prepared.beta,
        rows_measured=measured,
        population=bool(getattr(prepared.method, "population", False)),
        classes=[family.products(design.shape) for family in design.families],
    )
    reservation.settle("finished")
    progress("certifying", 1, 1)
    return Release(
        schema=schema,
        workload=prepared.workload,
        model=model,
        rows=synthetic,
        certificate=certificate,
        budget=prepared.budget,
        relation=design.relation,
        rows_public=design.rows,
        rows_estimate=estimate,
        plan=plan,
        entries=tuple(reservation.entries()),
        method=prepared.method.describe(),
        private=private,
        theorem=_theorem(prepared, estimate, model, size),
        forecast=_forecast(prepared, measured, model),
        facts={"key": str(key), "understudy": __version__, "reservation": reservation.id},
        remarks=remarks(data, state),
        measurements=heard.measurements,
        native=source.native,
        _frame=source.frame,
    )


def _theorem(prepared: Prepared, rows: int, model: Model, size: int) -> Theorem | None:
    """What the method proved before the run, or of its own released numbers after it."""
    method, design, plan, beta = prepared.method, prepared.design, prepared.plan, prepared.beta
    judged = getattr(method, "judged", None)
    after = None if judged is None else judged(design, plan, rows, beta, model, size)
    return after or method.theorem(design, plan, rows, beta)


def _forecast(prepared: Prepared, measured: int | None, model: Model) -> Errors | None:
    """What the method expects of its own release, by released numbers alone.

    A measured n is taken for 1.64σ less than it seems: where n itself is noise, so is all else.
    """
    foresee = getattr(prepared.method, "errors", None)
    if foresee is None:
        return None
    rows = prepared.design.rows
    if rows is None:
        event = prepared.plan[certificates.ROWS].event
        assert isinstance(event, Gaussian)
        rows = max(1, (measured or 1) - math.ceil(1.64 * event.sigma))
    return foresee(prepared.design, prepared.plan, rows, model)


def _is_source(table: Any) -> bool:
    return hasattr(table, "bind") and hasattr(table, "columns") and hasattr(table, "native")


def _relation(neighbours: str | Relation) -> Relation:
    try:
        return Relation(neighbours)
    except ValueError:
        raise InputError(f"neighbours = {neighbours!r} must be 'add-remove' or 'replace'") from None


def _rows_public(
    declared: int | None, schema: Schema, relation: Relation, budget: Budget
) -> int | None:
    rows = declared if declared is not None else schema.rows_public
    if rows is None and relation is Relation.REPLACE:
        raise InputError(
            "neighbours = replace makes the number of rows public: declare it with rows_public "
            "(--rows-public N), or use neighbours = add-remove, which keeps it private"
        )
    if rows is not None and rows < 1:
        raise InputError(f"rows_public = {rows} must be at least 1")
    if rows is not None and budget.delta >= Fraction(1, rows):
        raise InputError(
            f"delta = {float(budget.delta):g} must be below 1/n = {1 / rows:.3g} for the declared "
            f"n = {rows}: larger would allow publishing somebody's row; 1/n² = {1 / rows**2:.3g} "
            f"or smaller is usual"
        )
    if rows is None and budget.delta > Fraction(1, 10_000):
        raise InputError(
            f"delta = {float(budget.delta):g} is too large for a table of unknown size; it must be "
            f"far below 1/(number of rows): give 1e-9"
        )
    return rows


def _default_workload(schema: Schema) -> str:
    return f"marginals:{min(2, len(schema.modelled))}"


def _facts(prepared: Prepared) -> dict[str, Any]:
    """The public inputs that the plan followed from."""
    facts = {
        "schema": (prepared.declared or prepared.schema).digest(),
        "workload": prepared.workload.to_json(prepared.schema),
        "method": prepared.method.describe(),
        "rows_public": prepared.design.rows,
        "rho": float(prepared.rho),
        "certificate_share": decimal(prepared.share),
        "understudy": __version__,
    }
    if prepared.declared is not None:
        facts["declared"] = prepared.declared.dumps(comments=False)
    return facts


def _reserved(prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger will say of the reservation, but for who made it and when."""
    unit = prepared.schema.unit
    return {
        "reservation": "-",
        "budget": prepared.budget.to_json(),
        "relation": str(prepared.design.relation),
        "noise": "opendp",
        "plan": prepared.plan.to_json(),
        "facts": dict(facts),
        **({} if unit is None else {"unit": unit.to_json()}),
    }


def _one_off(stack: ExitStack, prepared: Prepared, journal: Journal | None) -> Ledger:
    """A ledger of the release's own, on disk while it runs; its entries end up in the bundle.

    With a journal it lies beside it, and is there again when the release goes on.
    """
    if journal is not None:
        place = journal.own_ledger()
        stack.callback(journal.forget_ledger)
        own = stack.enter_context(Ledger(place))
        if own.datasets():
            return own
    else:
        folder = Path(tempfile.mkdtemp(prefix="understudy-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        own = stack.enter_context(Ledger(folder / "ledger.db"))
    unit = prepared.schema.unit
    own.open_dataset(
        _ONE_OFF,
        prepared.budget,
        prepared.design.relation,
        "basic",  # one release, which is planned to use all of it
        rows_public=prepared.design.rows,
        unit=None if unit is None else unit.column,
    )
    return own

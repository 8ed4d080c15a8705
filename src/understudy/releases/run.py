"""From a plan to a release: reserve, play, sample, certify.

The order is the promise. Everything that can be wrong with the input is found before the ledger is
touched; the whole plan is in the ledger before a private row is counted; every draw is charged before
it is made; an exception or Ctrl-C settles the account and leaves nothing behind, or, with a checkpoint,
leaves what was released, to go on from.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy._types import Clique
from understudy._version import __version__
from understudy.errors import InputError, WorkError
from understudy.game.forecast import Errors, shown, updated
from understudy.models import Empirical, Measured, Weighted
from understudy.models.measured import total
from understudy.models.weighted import swaps_for
from understudy.players.base import Played, play
from understudy.privacy.exact import ExactRows
from understudy.privacy.gate import Gate
from understudy.privacy.journal import Journal
from understudy.privacy.ledger import Ledger, Reservation, own_ledger
from understudy.privacy.noise import Noise, OpenDPNoise
from understudy.privacy.questions import MOST_SYNTHETIC, RowCount
from understudy.privacy.stores import Place
from understudy.progress import COUNTING, Progress, Watch, silent
from understudy.releases import certificate as certificates
from understudy.releases import facts as private_facts
from understudy.releases.agreement import agreement
from understudy.releases.bundle import require_room
from understudy.releases.families import FamilyRelease, made_families
from understudy.releases.measurements import measurements
from understudy.releases.notebook import progress_here
from understudy.releases.options import Options, takes_options
from understudy.releases.plan import Prepared, prepare
from understudy.releases.release import Release
from understudy.releases.rows import drawn_rows, together
from understudy.releases.warm import warmed
from understudy.schema import Schema
from understudy.schema.family import FamilySchema
from understudy.source import bindable, read
from understudy.source.base import Bindable, Watchable
from understudy.source.families import FamilySource

_ONE_OFF = "this table"
_NO_SCHEMA = (
    "a schema is missing: what is public about the columns. schema = understudy.Schema.draft(table) "
    "proposes one; that reads the rows and is not private. Look at it (print(schema)), replace what "
    "is not public knowledge, and go on with schema.confirm(), or schema.confirm(unit=COLUMN, "
    "max_rows=K) where people have several rows. Nothing was spent"
)
_LOOKED_UP = 100_000_000  # Cells of records that a forecast looks up: about a second


@takes_options
def release(
    table: Any,
    schema: Schema | str | Path | None = None,
    options: Options | None = None,
    /,
    *,
    progress: Watch | None = None,
    noise: Noise | None = None,
    **choices: Any,
) -> Release:
    """Release a synthetic stand-in for `table` with (ε, δ)-differential privacy per row or unit.

    Guarantee: the returned object, all of it, is (ε, δ)-DP under `neighbours` ("add-remove" or
    "replace" of one row, or of one unit with all its rows where the schema declares a unit); the
    certificate and, where it is private, the number of rows are inside that ε. Everything charged is
    in the ledger before it is drawn.

    table     a path (CSV, Parquet), a pandas, Polars, Arrow, Spark or Ibis table, or what `read`
              returned, such as a table of a database; a pair (parents, children) of such where the
              schema is of two tables
    schema    a `Schema` or the path of its TOML file, confirmed; without one, an error says how to
              draft it
    choices   see `Options`: epsilon, delta, workload, method, ledger, dataset, rows, key, …
    progress  called with a `Progress` (stage, done, total, note); by default a notebook shows it in
              its cell, and nothing is shown elsewhere
    """
    options = Options.of(choices) if options is None else options
    if schema is None:
        raise InputError(_NO_SCHEMA)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    progress = progress_here() if progress is None else progress
    options = options if options.public is None else warmed(options, schema, table)
    prepared = prepare(schema, options.resolved())
    with reserve(prepared, table, noise=noise, progress=progress) as reserved:
        return reserved.run(progress)


@dataclass(frozen=True, eq=False)
class Reserved:
    """A release whose whole plan is in the ledger: it may draw that, and nothing else."""

    prepared: Prepared
    source: Bindable
    looked: private_facts.Look | None
    """What is asked about before the schema is closed; None where every domain is declared."""
    bound: Any
    """The rows, sealed, as the schema encodes them; without those columns where `looked` is there."""
    reservation: Reservation
    noise: Noise
    key: int
    journal: Journal | None = None
    charged_to: tuple[Place, str] | None = None
    """The ledger and dataset that somebody named."""

    def run(self, progress: Watch = silent) -> Release:
        """Everything after the reservation: find domains, measure, play, sample, certify, settle."""
        closed = self if self.looked is None else self._closed(self.looked, progress)
        ahead = closed.prepared.method.counted(closed.prepared.design)
        made = closed._play(closed._gate(closed.bound, ahead), progress)
        if self.journal is not None:
            self.journal.close()
        return replace(made, _account=self.charged_to)

    def _gate(self, counts: Any, ahead: Sequence[Clique] = ()) -> Gate:
        relation, rows = self.prepared.design.relation, self.prepared.design.rows
        return Gate(counts, self.reservation, relation, self.noise, rows, self.journal, ahead)

    def _closed(self, looked: private_facts.Look, progress: Watch) -> Reserved:
        """The same with every domain found, and the zCDP filter filled by a plan for these."""
        declared = self.prepared.declared
        assert declared is not None
        prepared = self.prepared.refined(
            private_facts.found(declared, looked, self._gate, progress)
        )
        assert prepared.inner is not None
        found = {"schema": prepared.schema.digest()}
        reservation = self.reservation.refine(private_facts.REST, prepared.inner, found)
        bound = _watched(self.source.bind(prepared.schema), progress)
        prepared = replace(prepared, plan=reservation.plan, inner=None)
        return replace(self, prepared=prepared, reservation=reservation, bound=bound, looked=None)

    def _play(self, gate: Gate, progress: Watch) -> Release:
        prepared, design, plan = self.prepared, self.prepared.design, self.prepared.plan
        schema, method = prepared.schema, prepared.method
        rng = np.random.default_rng(self.key)
        measured = gate.ask(certificates.ROWS, RowCount()) if design.rows is None else None
        estimate = max(1, design.rows or measured or 1)
        count = max(1, round(estimate / design.weight))
        if measured is not None and progress is not silent:
            progress(Progress("playing", 0, 1, seconds=prepared.seconds(count)))
        query, data = method.players(design, plan)
        noise = certificates.Events.of(plan).rows
        # Families are counted otherwise.
        sigma = 0.0 if noise is None or design.weight > 1 else noise.sigma
        played = play(design.problem(estimate, sigma), query, data, gate, rng, progress)
        model = played.model
        tables = [t for answers in played.answers for t in answers if isinstance(t, Measured)]
        rows = total(tables, estimate, sigma)
        size = prepared.options.rows or count
        if method.whole and isinstance(model, Empirical):
            size = model.size
        progress(Progress("sampling", 0, 1))
        families = None
        if isinstance(schema, FamilySchema):
            size = min(size, MOST_SYNTHETIC // schema.weight)
            if isinstance(model, Weighted):  # as many swaps as families need, not their weights
                model = replace(model, swaps=swaps_for(size))
            cliques = prepared.workload.cliques
            families = made_families(schema, model, size, self.key, cliques)
            synthetic = families.one_view_each(self.key)
            codes = schema.encode(synthetic)
        else:
            model = together(schema, model)
            codes, synthetic = drawn_rows(schema, model, size, self.key)
        views = None if families is None else families.views
        progress(Progress("certifying", 0, 1))
        certificate = certificates.certify(
            gate,
            plan,
            prepared.workload.cliques,
            codes,
            beta=prepared.beta,
            rows_measured=measured,
            population=method.population,
            classes=[family.products(design.shape) for family in design.families],
            views=views,
        )
        self.reservation.settle("finished")
        progress(Progress("certifying", 1, 1))
        made: dict[str, Any] = {
            "schema": schema,
            "workload": prepared.workload,
            "model": model,
            "rows": synthetic,
            "certificate": certificate,
            "budget": prepared.budget,
            "relation": design.relation,
            "rows_public": design.rows,
            "rows_estimate": estimate,
            "plan": plan,
            "entries": tuple(self.reservation.entries()),
            "method": prepared.facts["method"],
            # What an interrupted release drew with test noise stays what it is.
            "private": self.noise.private and self.reservation.private_noise,
            "theorem": method.judged(design, plan, estimate, prepared.beta, model, size),
            "forecast": _forecast(prepared, measured, played, certificate),
            "facts": {
                "key": str(self.key),
                "understudy": __version__,
                "reservation": self.reservation.id,
            },
            "diagnostics": {
                **played.diagnostics,
                **agreement(model, codes, played.answers, rows, design.names, views),
            },
            "measurements": measurements(played.answers),
            "native": self.source.native,
            "_frame": self.source.frame,
        }
        return Release(**made) if families is None else FamilyRelease(**made, made=families)


@contextmanager
def reserve(
    prepared: Prepared, table: Any, *, noise: Noise | None = None, progress: Watch = silent
) -> Iterator[Reserved]:
    """Set the whole plan aside and bind the rows; settled when left, unless a checkpoint keeps it.

    What cannot be paid is refused before the table is read, and what cannot be read before anything
    is reserved.
    """
    options, schema = prepared.options, prepared.declared or prepared.schema
    source = bindable(table)
    if isinstance(schema, FamilySchema) and not isinstance(source, FamilySource):
        source = FamilySource(read(table))  # one flat table
    noise = OpenDPNoise() if noise is None else noise
    with ExitStack() as stack:
        account = stack.enter_context(options.account())
        journal = None if options.checkpoint is None else Journal(Path(options.checkpoint))
        if journal is not None:
            stack.callback(journal.let_go)
        require_room(prepared)
        facts = prepared.facts
        given = {name: fact for name, fact in facts.items() if name != "rho"}  # which follows
        header = None if journal is None else journal.header
        if journal is not None and header is not None:
            journal.require_same(given)
        elif account is not None and options.dataset is not None:
            # Reserving checks again.
            account.require_room(options.dataset, prepared.budget, prepared.plan, schema.unit)
        progress(Progress("reading", 0, 1))
        looked = private_facts.look(source, schema) if schema.undeclared else None
        bound = _watched(source.bind(schema) if looked is None else looked.fine, progress)
        _require_rows(prepared, bound, source)
        charged_to = _named(account, options)
        if account is None:
            account = _one_off(stack, prepared, journal)
        dataset = options.dataset or _ONE_OFF
        if journal is not None and header is not None:
            key = int(header["key"])
            reservation = account.resume(
                dataset, header["reservation"], prepared.budget, prepared.plan
            )
            journal.resume(reservation)
        else:
            key = secrets.randbits(63) if options.key is None else options.key
            reservation = account.reserve(
                dataset,
                prepared.budget,
                prepared.plan,
                relation=prepared.design.relation,
                private_noise=noise.private,
                facts=facts,
                unit=schema.unit,
                identity=options.reservation,
            )
            if journal is not None:
                try:
                    journal.begin(reservation.id, key, given)
                except WorkError:
                    with reservation:  # settles: nothing was drawn
                        raise
        if journal is None:
            stack.enter_context(reservation)  # settles, whatever happens
        yield Reserved(
            prepared, source, looked, bound, reservation, noise, key, journal, charged_to
        )


def _watched(counts: Any, progress: Watch) -> Any:
    """Counts of rows that stay where they are take long: they say how far they are."""
    if isinstance(counts, Watchable) and progress is not silent:
        counts.watch(lambda percent: progress(Progress(COUNTING, percent, 100)))
    return counts


def _require_rows(prepared: Prepared, bound: Any, source: Bindable) -> None:
    if prepared.method.rowwise and not isinstance(bound, ExactRows):
        raise InputError(
            f"method = {prepared.method.name} needs the rows and not only counts of them, which "
            f"{source.describe()} keeps to itself; export the table to Parquet, or use another method"
        )


def _named(account: Ledger | None, options: Options) -> tuple[Place, str] | None:
    if account is None or options.dataset is None:
        return None
    path = account.path.absolute() if isinstance(account.path, Path) else account.path
    return path, options.dataset


def _forecast(
    prepared: Prepared, measured: int | None, played: Played, certificate: certificates.Certificate
) -> Errors | None:
    """What is to be expected of a release, by released numbers alone; None if the method cannot say.

    A measured n is taken for 1.64σ less than it seems: where n itself is noise, so is all else.
    """
    design, rows = prepared.design, prepared.design.rows
    noise = certificates.Events.of(prepared.plan).rows
    if rows is None:
        assert noise is not None
        rows = max(1, (measured or 1) - math.ceil(1.64 * noise.sigma))
    before = prepared.method.errors(design, prepared.plan, rows)
    if before is None:
        return None
    model, answers = played.model, [answer for each in played.answers for answer in each]
    if isinstance(model, Weighted):
        model = model.thinned(_LOOKED_UP // len(design.cliques))
    after = shown(before, design.weights, model, design.shape, answers)
    if design.families:
        return after
    return updated(after, *certificate.seen(prepared.plan, rows), certificate.bound)


def _one_off(stack: ExitStack, prepared: Prepared, journal: Journal | None) -> Ledger:
    """A ledger of the release's own, on disk while it runs; its entries end up in the bundle.

    With a journal it lies beside it, and is there again when the release goes on.
    """
    place = None
    if journal is not None:
        place = journal.own_ledger()
        stack.callback(journal.forget_ledger)
    unit, design = prepared.schema.unit, prepared.design
    column = None if unit is None else unit.column
    return stack.enter_context(
        own_ledger(_ONE_OFF, prepared.budget, design.relation, design.rows, column, place)
    )

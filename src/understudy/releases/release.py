"""A release: synthetic rows, the model they came from, the certificate and the account.
And what the game measured (`measurements`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from understudy.errors import InputError, WorkError
from understudy.game.forecast import Errors
from understudy.game.methods import Theorem
from understudy.players.base import Measured, Model
from understudy.privacy.budget import Budget
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Plan
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation
from understudy.privacy.stores import Place
from understudy.queries import Workload
from understudy.releases.answer import Answer, answer
from understudy.releases.certificate import Certificate
from understudy.releases.conditions import Match, Subject, condition
from understudy.releases.measurements import Measurement
from understudy.schema import Category, Schema
from understudy.units import Unit

if TYPE_CHECKING:
    from understudy.estimates import Estimate, Estimates, Independence, Known, Own

CHUNK_ROWS = 1_000_000
"""Rows of a fresh sample that are drawn at once."""


def promise_words(
    budget: str, relation: Relation, rows_public: int | None, unit: Unit | None = None
) -> str:
    """A guarantee in one sentence; `budget` is an (ε, δ) as it is to be written."""
    words = relation.describe(rows_public=rows_public, unit=unit)
    who = "row" if unit is None else unit.column
    return f"{budget}-differential privacy per {who} ({words})"


@dataclass(frozen=True, eq=False)
class Release:
    """What came out. Everything here is released; using it costs nothing and reads no private row.

    `rows` are the certified synthetic rows. `sample` draws further ones from the model: as private,
    but not covered by the certificate, which speaks of the bundled rows alone.
    """

    schema: Schema
    workload: Workload
    model: Model
    rows: pa.Table
    certificate: Certificate
    budget: Budget
    relation: Relation
    rows_public: int | None
    rows_estimate: int
    plan: Plan
    entries: tuple[Entry, ...]
    method: Mapping[str, Any]
    private: bool
    theorem: Theorem | None
    facts: Mapping[str, Any]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    """What the data player says of the game, such as rounds in which its oracle ran out of time."""
    native: str = "arrow"
    forecast: Errors | None = None
    """What the method expects of every marginal, from released numbers; the certificate binds."""
    measurements: tuple[Measurement, ...] = ()
    """What was measured on the way; empty for older releases and for methods that measure no table."""
    _frame: Any = field(default=None, repr=False)
    _account: tuple[Place, str] | None = field(default=None, repr=False)
    """The ledger and dataset that it was charged to, where the digest of what is saved is noted."""

    @property
    def tables(self) -> tuple[Measured, ...]:
        """Every noisy table of the game, in the order of the draws; empty unless all are kept.

        Methods that measure no table have none, nor have bundles that were written before tables were
        kept, or whose tables are too large.
        """
        kept = [made.table for made in self.measurements if made.kind == "table"]
        return tuple(each for each in kept if each is not None) if all(kept) else ()

    @property
    def epsilon(self) -> float:
        """The ε that was promised."""
        return float(self.budget.epsilon)

    @property
    def delta(self) -> float:
        """The δ that was promised."""
        return float(self.budget.delta)

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return self.promised(str(self.budget))

    def promised(self, budget: str) -> str:
        """The same with its (ε, δ) as they are to be written."""
        text = promise_words(budget, self.relation, self.rows_public, self.schema.unit)
        return text if self.private else "NOT PRIVATE (made with seeded test noise): " + text

    @property
    def purposes(self) -> tuple[str, ...]:
        """What the rows were said to be for when they were planned; often nothing."""
        return tuple(self.planned_from.get("purposes", ()))

    @property
    def planned_from(self) -> Mapping[str, Any]:
        """The public facts that its plan followed from, as the ledger keeps them."""
        bodies = (e.body for e in self.entries if e.kind == "reserve" and e.body is not None)
        return next(bodies, {}).get("facts") or {}

    @cached_property
    def declared(self) -> Schema:
        """The schema as it was declared, before open columns were found."""
        text = self.planned_from.get("declared")
        return self.schema if text is None else Schema.loads(text)

    @property
    def number(self) -> int:
        """How many rows, or families, the private table has, as far as is released."""
        return max(1, self.rows_estimate // self.schema.weight)

    @property
    def size_in_words(self) -> str:
        """How many rows and columns there are."""
        return f"{self.rows.num_rows:,} synthetic rows × {self.rows.num_columns} columns"

    def sample_name(self, stem: str) -> str:
        """A name for a fresh sample of a release that is called so."""
        return f"{stem}.sample.csv"

    @property
    def others(self) -> dict[str, float]:
        """By column: the share of synthetic rows whose value was not listed and is OTHER.

        An estimate from released rows, as everything that is told of a release.
        """
        shares: dict[str, float] = {}
        for column in self.schema.modelled:
            if isinstance(column, Category) and column.other is not None and self.rows.num_rows:
                codes = column.encode(self.rows[column.name])
                shares[column.name] = float((codes == len(column.values)).mean())
        return shares

    def hidden(self, column: str, times: float = 3) -> float:
        """A share of a value of the column that noise may well have made: so many of its deviations.

        By the tables of the column that were measured; the certified bound where none was.
        """
        at = self.schema.position(column)
        own = [table.sigma for table in self.tables if table.clique == (at,)]
        return times * min(own) / self.rows_estimate if own else self.certificate.bound

    @property
    def head(self) -> str:
        """`seq:hash` of its last entry in the ledger: kept elsewhere, it shows if entries are lost."""
        return f"{self.entries[-1].seq}:{self.entries[-1].hash}"

    def sample(
        self,
        rows: int | None = None,
        *,
        where: str | None = None,
        match: Match | Sequence[str] | None = None,
        key: int | None = None,
        like: str | None = None,
    ) -> Any:
        """Fresh synthetic rows from the released model. Free, as often as you like.

        where  a predicate that every row satisfies, such as "age >= 65 and sex = 'F'"
        match  shares that the rows have, {"sex": {"F": 0.5}} or {"age >= 65": 0.3}
        key    makes it repeatable: the same key gives the same rows, here and by `sample_to` with one
               partition
        like   "arrow", "pandas" or "polars"; by default the kind of table that the release was made
               from, and Arrow for a release read from disk

        The certificate speaks of the bundled rows. Rows with `where` or `match` are further from
        them: the schema of an Arrow table says so in its metadata.
        """
        many = self.rows.num_rows if rows is None else rows
        table = pa.concat_tables(self.stream(many, where=where, match=match, key=key))
        if like is None and self._frame is not None:
            return self._frame(table)
        from understudy.source import to_frame

        return to_frame(table, like or "arrow")  # type: ignore[arg-type]

    def stream(
        self,
        rows: int,
        *,
        where: str | None = None,
        match: Match | Sequence[str] | None = None,
        key: int | None = None,
    ) -> Iterator[pa.Table]:
        """The same in tables of at most a million rows, for more rows than fit memory."""
        if rows < 0 or rows != int(rows):
            raise InputError(f"rows = {rows} must be a whole number, at least 0")
        seeds = np.random.SeedSequence(secrets.randbits(128) if key is None else key)
        subject = Subject.of(self.schema, self.model, condition(where, match))
        yield from subject.tables(int(rows), seeds, CHUNK_ROWS)

    def sample_to(
        self,
        folder: str | Path,
        rows: int,
        *,
        where: str | None = None,
        match: Match | Sequence[str] | None = None,
        partitions: int | None = None,
        key: int | None = None,
        workers: int | None = None,
        spark: Any = None,
        progress: Callable[[int], object] | None = None,
    ) -> Path:
        """Write fresh synthetic rows into a folder of Parquet files, in parallel. Free.

        where, match  as for `sample`
        partitions  how many files; by default one for every five million rows
        key         the same key and partitions give the same rows; one partition those of `sample`
        workers     processes on this machine; by default one a core
        spark       a Spark session, or a master such as "spark://host:7077", to write on a cluster
                    instead; its Python needs understudy
        progress    is called with the number of rows that have been written since the last call

        Memory holds one batch a process. A folder that is half written, after Ctrl-C for instance,
        is gone on with by the same call; one that is whole is never overwritten.
        """
        from understudy.releases.sample_to import sample_to

        subject = Subject.of(self.schema, self.model, condition(where, match))
        how: dict[str, Any] = {"partitions": partitions, "key": key, "workers": workers}
        return sample_to(subject, folder, rows, spark=spark, progress=progress, **how)

    def answer(self, predicate: str) -> Answer:
        """The share of rows that satisfy a predicate, with a certified interval where there is one."""
        return answer(self.schema, self.workload, self.rows, self.certificate, predicate)

    def test_independence(self, one: str, other: str) -> Independence:
        """Test whether two columns depend on each other, on the noisy tables; read `words`.

        The null hypothesis is about the population that rows, or people, were drawn from. Do not run
        such tests on the synthetic rows: they take noise for data. Free, as all use of a release.

        Raises:
            InputError: The release has no tables, or the columns are one.
            WorkloadError: A column is not known, or no table holds both.
        """
        from understudy.estimates import independent

        i, j = self.schema.position(one), self.schema.position(other)
        if i == j:
            raise InputError(f"columns = {one}, {other}: two different columns can be independent")
        return independent(self._known, (i, j))

    def estimate(
        self, asked: str | Own, *, target: str = "population", level: float = 0.95
    ) -> Estimate | Estimates | Independence:
        """A statistic with an estimated interval, such as `estimate("mean(income) by sex")`. Free.

        From the model and every noisy table of the release, not from its rows: do not compute
        intervals or tests on synthetic rows as if they were data. The interval is estimated, and holds
        under stated assumptions; `answer` has certified bounds, for shares alone.

        asked   a text (see `understudy estimate --help`), or what `us.logit`, `us.ols` and
                `us.statistic` give
        target  "population": the parameter of what the rows were drawn from; "table": the private
                table's own value
        """
        from understudy.estimates import estimate

        return estimate(self._known, asked, target, level)

    def advice(self, asked: str) -> tuple[str, str | None]:
        """Why an interval of `estimate` is wide, and the purpose of a new release that would help."""
        from understudy.estimates import advice

        return advice(self._known, asked, self.purposes)

    @cached_property
    def _known(self) -> Known:
        from understudy.releases.estimating import known

        return known(self)

    def save(self, path: str | Path, *, report: str | None = None) -> Path:
        """Write the bundle folder. The folder must not exist yet; it appears whole or not at all.

        `report` is a page for people that goes with it, covered by its digest; `understudy.report`
        makes one, and `report.save` writes both.

        A release that was charged to a ledger notes the bundle's digest there before the folder
        appears, so that `verify --ledger` refuses every other bundle that claims to be of it.
        """
        from understudy.releases.bundle import save

        return save(self, Path(path), report=report)

    def publish(self, digest: str) -> None:
        """Note the digest of a bundle of this release in the ledger that it was charged to, if any."""
        if self._account is not None:
            place, dataset = self._account
            if isinstance(place, Path) and not place.is_file():
                raise WorkError(
                    f"ledger {place} is gone, and the digest of the release belongs into it; put it "
                    f"back and save again"
                )
            with Ledger(place) as ledger:
                ledger.publish(self.facts["reservation"], digest, dataset=dataset)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a bundle folder. Run `verify` on one that you did not make.

        Raises `BundleError` on one that is damaged or of another version.
        """
        from understudy.releases.bundle import Bundle

        return Bundle.open(Path(path)).release

    @property
    def proofs(self) -> str | None:
        """In how many rounds an oracle that proves its records ran out of time; None for others."""
        late = self.diagnostics.get("oracle_rounds_without_proof")
        if late is None:
            return None
        told = f"{late} of {self.diagnostics['oracle_rounds']} rounds ended without a proof"
        if late:
            told += ": time was up, and the best records found were played; privacy is untouched"
        return told

    def _repr_html_(self) -> str:
        from understudy.releases.notebook import release_card

        return release_card(self)

    def __repr__(self) -> str:
        proofs = "" if self.proofs is None else f"; oracle: {self.proofs}"
        return (
            f"<Release of {self.rows.num_rows:,} rows × {self.rows.num_columns} columns by "
            f"{self.method.get('name')}: {self.promise}; {self.certificate}{proofs}>"
        )

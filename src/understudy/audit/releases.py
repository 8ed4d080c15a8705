"""The audit of a synthesis: whole releases of tables with and without planted records.

No protected row is read. The background is a table that may be known (rows that the custodian names,
or the synthetic rows of a release), the canaries are planted records, and everything that a release
shows is looked at: rows, model, certificate, number of rows. Under `add-remove` a canary is in or out;
under `replace` it takes the place of a fixed other record, so that the number of rows never moves.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Whole
from understudy.audit import judge
from understudy.audit import rows as scores
from understudy.audit.runs import fingerprint
from understudy.audit.shadows import fit_discriminant
from understudy.errors import InputError
from understudy.game.methods import METHODS
from understudy.players.base import Model
from understudy.privacy.cost import Laplace
from understudy.privacy.relation import Relation
from understudy.queries import count
from understudy.releases import Release, prepare
from understudy.releases.certificate import WORST
from understudy.releases.run import release
from understudy.schema import Schema

_TRIED = 20  # Records drawn for each that is planted; the farthest from the background are taken


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """All that came out of one release."""

    rows: Whole
    model: Model | None
    sides: Floats
    """Side outputs: numbers that stand in the release beside its rows."""
    worst: float | None = None
    """The published worst error, in rows, before its margin."""


class Pipeline(Protocol):
    """From a table, as codes, to everything that is published about it."""

    def describe(self) -> dict[str, Any]:
        """What it is, in JSON."""
        ...

    def __call__(self, table: Whole) -> Seen:
        """Publish."""
        ...


@dataclass(frozen=True, eq=False)
class Releasing:
    """`understudy.release` with fixed public choices."""

    schema: Schema
    choices: Mapping[str, Any]
    """Of `prepare`: epsilon, delta, workload, method, parameters, neighbours, rows_public, …"""

    def describe(self) -> dict[str, Any]:
        """The schema's digest and every choice."""
        chosen = prepare(self.schema, **self.choices)
        return {
            "release": "understudy",
            "schema": self.schema.digest(),
            "method": chosen.method.describe(),
            "workload": chosen.workload.to_json(self.schema),
            "budget": chosen.budget.to_json(),
            "relation": str(chosen.design.relation),
            "rows_public": chosen.design.rows,
            "plan": chosen.plan.to_json(),
        }

    def __call__(self, table: Whole) -> Seen:
        """Release, and take everything down."""
        columns = [np.ascontiguousarray(column) for column in table.T]
        private = self.schema.decode(columns, np.random.default_rng(0))  # any value of each cell
        made = release(private, self.schema, **self.choices)
        stated = made.certificate
        sides = [made.rows.num_rows, made.rows_estimate, stated.worst, stated.rows_measured or 0]
        sides += stated.variations_measured or ()
        charged = made.plan[WORST].event
        assert isinstance(charged, Laplace)
        return Seen(
            encoded(self.schema, made.rows),
            made.model,
            np.array(sides, dtype=float),
            stated.worst / charged.l1,
        )


def encoded(schema: Schema, table: Any) -> Whole:
    """Rows as codes, one column for each modelled one."""
    return np.column_stack([np.asarray(c, dtype=np.int64) for c in schema.encode(table)])


def releasing_like(made: Release) -> Releasing:
    """The pipeline that a release came from, as far as its own bundle tells."""
    name = str(made.method["name"])
    accepted = inspect.signature(METHODS[name]).parameters if name in METHODS else {}
    if not accepted:
        raise InputError(
            f"the release was made by method = {name}, which this understudy does not have; "
            f"it has {', '.join(METHODS)}"
        )
    if made.schema.unit is not None:
        raise InputError(
            f"the release protects every {made.schema.unit.column}; an audit plants single rows and "
            "would say nothing about that. Audit a release with the same choices and without a unit"
        )
    if any(entry.kind == "refine" for entry in made.entries):
        raise InputError(
            "the release found domains of its columns privately; an audit runs it again on tables of "
            "its own, on which it would find others. Audit a release of the schema that was found"
        )
    choices: dict[str, Any] = {
        "epsilon": made.budget.epsilon,
        "delta": made.budget.delta,
        "workload": made.workload,
        "method": name,
        "parameters": {k: v for k, v in made.method.items() if k in accepted and k != "name"},
        "neighbours": made.relation,
        "rows_public": made.rows_public,
        "beta": made.certificate.beta,
        "variations": made.certificate.variations_measured is not None,
    }
    if "certificate_share" in made.planned_from:
        choices["certificate_share"] = made.planned_from["certificate_share"]
    if prepare(made.schema, **choices).plan != made.plan:
        raise InputError(
            "the plan in the release's ledger is not one that this understudy makes of its method, "
            "budget, workload and schema: it comes from another version, and an audit of today's code "
            "would say nothing about it"
        )
    return Releasing(made.schema, choices)


@dataclass(frozen=True, eq=False)
class Planted:
    """One design: a pipeline, a background and canaries. A run flips the coins and releases."""

    pipeline: Pipeline
    shape: tuple[int, ...]
    ordered: tuple[bool, ...]
    cliques: tuple[Clique, ...]
    background: Whole
    canaries: Whole
    instead: Whole | None
    """Under `replace`, the record in the place of each canary that is out."""
    key: int

    what = "release"

    def describe(self) -> dict[str, Any]:
        """The pipeline, the rows by their digest, and the key of the coins."""
        instead = self.canaries[:0] if self.instead is None else self.instead
        return {
            "pipeline": self.pipeline.describe(),
            "rows": fingerprint(self.background, self.canaries, instead),
            "cliques": [list(clique) for clique in self.cliques],
            "key": self.key,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Flip, release, score every canary."""
        rng = np.random.default_rng([self.key, number])
        inside = rng.random(len(self.canaries)) < 0.5
        records = [self.background, self.canaries[inside]]
        if self.instead is not None:
            records.append(self.instead[~inside])
        seen = self.pipeline(rng.permutation(np.vstack(records)))
        found: dict[str, NDArray[Any]] = {"inside": inside}
        found["score distance"] = scores.distance(
            self.canaries, seen.rows, self.shape, self.ordered
        )
        found["score density"] = scores.density(
            self.canaries, seen.rows, self.background, self.shape
        )
        if seen.model is not None:
            found["score likelihood"] = scores.likelihood(self.canaries, seen.model, self.cliques)
        if seen.worst is not None:
            found["score certificate"] = self._fits_with(seen.rows, seen.worst)
        found["features"] = self._features(seen)
        return found

    def attacks(self, found: Mapping[str, NDArray[Any]], parts: judge.Parts) -> dict[str, Floats]:
        """A discriminant per canary, learnt on the fitting runs: what a release with it looks like,
        and what one without. A canary that was always in, or never, is scored 0."""
        features, inside = found["features"], found["inside"]
        scored = np.zeros(inside.shape)
        for canary in range(inside.shape[1]):
            learnt = inside[parts.fit, canary]
            if min(int(learnt.sum()), int((~learnt).sum())) >= 2:
                made = fit_discriminant(features[parts.fit, canary], learnt)
                scored[:, canary] = made(features[:, canary])
        return {"shadow release": scored}

    def _features(self, seen: Seen) -> Floats:
        """For every canary: rows in its cell of each marginal, drawn and modelled; side outputs."""
        columns: list[Floats] = []
        for clique in self.cliques:
            same = np.ones((len(self.canaries), len(seen.rows)), dtype=bool)
            for c in clique:
                same &= self.canaries[:, c, None] == seen.rows[None, :, c]
            columns.append(same.sum(axis=1).astype(float))
            if seen.model is not None:
                table = seen.model.marginal(clique)
                columns.append(len(seen.rows) * table[tuple(self.canaries[:, c] for c in clique)])
        sides = np.broadcast_to(seen.sides, (len(self.canaries), len(seen.sides)))
        return np.column_stack([*columns, sides])

    def _fits_with(self, rows: Whole, worst: float) -> Floats:
        """(w − w₀)² − (w − w₁)²: whether the published worst error w is rather that of the background
        with the canary, w₁, than that of the background alone, w₀."""
        found = np.empty(len(self.canaries))
        alone = self._worst(self.background, rows)
        for at, canary in enumerate(self.canaries):
            with_ = self._worst(np.vstack([self.background, canary]), rows)
            found[at] = (worst - alone) ** 2 - (worst - with_) ** 2
        return found

    def _worst(self, table: Whole, rows: Whole) -> float:
        share = len(table) / len(rows)
        return max(
            float(
                np.abs(
                    count(list(table.T), self.shape, clique)
                    - share * count(list(rows.T), self.shape, clique)
                ).max()
            )
            for clique in self.cliques
        )


def outliers(
    background: Whole, shape: tuple[int, ...], ordered: tuple[bool, ...], count: int, key: int
) -> Whole:
    """Legal records far from every row of the background, which any leak shows first.

    Raises:
        InputError: More are asked for than the background has rows, or the domain has records.
    """
    if count < 1:
        raise InputError(f"canaries = {count} must be at least 1")
    if count > len(background):
        raise InputError(
            f"canaries = {count} are more than the rows to hide them in, {len(background)}; give "
            f"at most {len(background)}, or more rows"
        )
    rng = np.random.default_rng([key, 1 << 32])
    drawn = np.column_stack([rng.integers(0, size, _TRIED * count) for size in shape])
    drawn = rng.permutation(np.unique(drawn, axis=0))
    if len(drawn) < count:
        raise InputError(
            f"canaries = {count}: only {len(drawn)} different records were found in the domain; "
            f"give fewer"
        )
    far = np.argsort(scores.distance(drawn, background, shape, ordered), kind="stable")
    return drawn[far[:count]]


def plant(pipeline: Releasing, background: Whole, *, canaries: int | Whole, key: int) -> Planted:
    """Canaries for a release pipeline: so many outliers, or these records."""
    chosen = prepare(pipeline.schema, **pipeline.choices)
    shape = chosen.design.shape
    # A column with special values is compared value by value.
    ordered = tuple(c.ordered and c.apart == c.nullable for c in pipeline.schema.modelled)
    if len(background) == 0:
        raise InputError("the background has no rows; give a table with rows that may be known")
    if isinstance(canaries, int):
        canaries = outliers(background, shape, ordered, canaries, key)
    elif len(canaries) > len(background):
        raise InputError(
            f"canaries = {len(canaries)} are more than the rows to hide them in, {len(background)}"
        )
    instead = None
    if chosen.design.relation is Relation.REPLACE:
        rng = np.random.default_rng([key, 1 << 33])
        instead = background[rng.integers(0, len(background), len(canaries))]
        background = background[: max(0, len(background) - len(canaries))]
        if len(background) == 0:
            raise InputError(
                f"canaries = {len(canaries)} replace all rows; give fewer, or more rows"
            )
    return Planted(
        pipeline, shape, ordered, chosen.workload.cliques, background, canaries, instead, key
    )


def plant_like(made: Release, rows: Any, canaries: int | Any, key: int = 0) -> Planted:
    """Canaries for the pipeline that a release came from, in a table `rows` that may be known.

    `canaries` are so many outliers, or a table of records.
    """
    pipeline, known = releasing_like(made), encoded(made.schema, rows)
    if made.rows_public is not None:
        pipeline = Releasing(made.schema, {**pipeline.choices, "rows_public": len(known)})
    named = canaries if isinstance(canaries, int) else encoded(made.schema, canaries)
    return plant(pipeline, known, canaries=named, key=key)

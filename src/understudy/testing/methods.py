"""The conformance kit for methods.

check_method(MyMethod())
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from understudy.errors import InputError
from understudy.game.methods import Design, Method
from understudy.players.base import Model, play
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Charges, Gate
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation
from understudy.testing.checks import Check, all_of, require
from understudy.testing.distributions import cliques_of, fingerprint, require_model
from understudy.testing.players import tiny_tables
from understudy.testing.stand_ins import Front, Rows, SeededNoise, StrictCharges, Tape, TinyCounts

_SIZES = (2, 3, 1, 4, 2, 5)
_RHOS = (
    Fraction(1, 10**15),
    Fraction(1, 7_000_003),
    Fraction(1, 3),
    Fraction(0.1),
    Fraction(1),
    Fraction(10**6),
)
_PLAYED = Fraction(1, 16)
_DELTA = Fraction(1, 10**6)


def tiny_design(
    shape: tuple[int, ...],
    relation: Relation = Relation.ADD_REMOVE,
    rows: int | None = None,
    order: int = 2,
) -> Design:
    """All marginals of up to `order` columns over `shape`."""
    cliques = tuple(cliques_of(len(shape), order))
    return Design(shape, cliques, (1.0,) * len(cliques), relation, rows)


def _designs() -> Iterator[Design]:
    for columns, rows in product(range(1, 7), (None, 1, 1_000, 10**9)):
        yield tiny_design(_SIZES[:columns], Relation.ADD_REMOVE, rows)
        if rows is not None:
            yield tiny_design(_SIZES[:columns], Relation.REPLACE, rows)


def method_checks(
    method: Method, *, shapes: tuple[tuple[int, ...], ...] = ((3,), (2, 3, 2))
) -> Iterator[Check]:
    """Everything a method owes. `shapes` are the domains of the tables that it is played on.

    * name, description and forecast are public and can be written down
    * its charges cost at most ρ, exactly (where rows are sampled nominally, see
      `planning.nominal`), for one to six columns, both relations, public and private
      rows, tiny and huge ρ; each purpose once; the same design gives the same plan
    * it refuses a design by `InputError` in `check`, before anything is planned
    * played through the real gate and a real ledger it stays within its plan, whatever the rows,
      and gives a model of the right shape
    * the model is post-processing: the same released numbers give the same model, bit by bit,
      whatever the private table
    """
    yield Check("method: the plan costs at most rho, exactly", partial(_plan_fits, method))
    yield Check("method: the plan is a public function", partial(_plan_is_public, method))
    yield Check("method: says what it is", partial(_says_what_it_is, method))
    for shape in shapes:
        for relation, rows in (
            (Relation.ADD_REMOVE, None),
            (Relation.ADD_REMOVE, 30),
            (Relation.REPLACE, 30),
        ):
            design = tiny_design(shape, relation, rows)
            if not _serves(method, design):
                continue
            of = f"{shape}, {relation}, {'private' if rows is None else 'public'} rows"
            yield Check(f"method: plays within its plan: {of}", partial(_plays, method, design))
            yield Check(
                f"method: the same released numbers, the same model: {of}",
                partial(_post_processes, method, design),
            )
            if rows is not None and relation is Relation.ADD_REMOVE:
                yield Check(
                    f"method: plays on a real ledger: {of}",
                    partial(_plays_on_ledger, method, design),
                )


check_method = all_of(method_checks)


def _serves(method: Method, design: Design) -> bool:
    try:
        method.check(design)
    except InputError:
        return False
    return True


def _says_what_it_is(method: Method) -> None:
    require(
        isinstance(method.name, str) and method.name.isprintable() and bool(method.name),
        f"name = {method.name!r} is not a name",
    )
    described = method.describe()
    json.dumps(described)
    require(described == method.describe(), "describe() says something else when asked again")
    require(described.get("name") == method.name, "describe() does not hold the method's name")
    design = tiny_design((2, 3), rows=100)
    if _serves(method, design):
        plan = Plan(method.charges(design, Fraction(1)))
        forecast = method.forecast(design, plan, 100)
        require(
            all(math.isfinite(x) and x >= 0 for x in (forecast.memory_bytes, forecast.seconds)),
            f"forecast {forecast} holds a number that is no expectation",
        )


def _plan_fits(method: Method) -> None:
    served = 0
    for design, rho in product(_designs(), _RHOS):
        if not _serves(method, design):
            continue
        served += 1
        charges = method.charges(design, rho)
        purposes = [charge.purpose for charge in charges]
        require(
            len(set(purposes)) == len(purposes) > 0,
            f"the plan for {design} names {purposes}; expected each purpose once, at least one",
        )
        cost = sum((planning.nominal(c.event) * c.times for c in charges), Fraction(0))
        require(
            cost <= rho,
            f"the plan for {len(design.shape)} columns, {design.relation}, rows = {design.rows} "
            f"costs rho = {float(cost):.12g} of {float(rho):.12g}, {float(cost / rho):.6g} times "
            f"what was given",
        )
    require(served > 0, "check() refuses every design with one to six small columns")


def _plan_is_public(method: Method) -> None:
    for design, rho in product(_designs(), _RHOS[1:4]):
        if not _serves(method, design):
            continue
        first, again = (Plan(method.charges(design, rho)) for _ in range(2))
        require(
            first.to_json() == again.to_json(),
            f"the same design and rho gave another plan the second time: {first} and {again}",
        )
        rounds = {method.players(design, first)[0].rounds for _ in range(2)}
        require(
            len(rounds) == 1 and all(type(r) is int and r >= 0 for r in rounds),
            f"the query player's rounds are {rounds}; expected one whole number that follows "
            f"from design and plan",
        )


def _game(
    method: Method,
    design: Design,
    plan: Plan,
    charges: Charges,
    table: Rows,
    noise: Noise,
    tape: Tape | None = None,
) -> Model:
    gate, trespasses = Front.around(
        Gate(TinyCounts(design.shape, table), charges, design.relation, noise, design.rows), tape
    )
    query, data = method.players(design, plan)
    problem = design.problem(30 if design.rows is None else design.rows)
    model = play(problem, query, data, gate, np.random.default_rng(1)).model
    require(not trespasses, f"reached for {', '.join(map(repr, trespasses))} of the gate")
    return model


def _tables(design: Design) -> dict[str, Rows]:
    tables = tiny_tables(design.shape)
    if design.relation is Relation.REPLACE:
        return {name: rows for name, rows in tables.items() if len(rows) == design.rows}
    return tables


def _plays(method: Method, design: Design) -> None:
    plan = Plan(method.charges(design, _PLAYED))
    for table in _tables(design).values():
        charges = StrictCharges(plan, design.relation)
        model = _game(method, design, plan, charges, table, SeededNoise(5))
        require_model(model, design.shape)
        spent = sum((planning.nominal(event) for _, event in charges.charged), Fraction(0))
        require(spent <= _PLAYED, f"the players drew rho = {float(spent)} of {float(_PLAYED)}")


def _plays_on_ledger(method: Method, design: Design) -> None:
    plan = Plan(method.charges(design, _PLAYED))
    ceiling = Fraction(accounting.epsilon_from_rho(accounting.total_rho(plan), _DELTA))
    budget = Budget(ceiling, _DELTA)
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.db") as ledger:
        ledger.open_dataset("kit", budget, design.relation, "basic", design.rows)
        reservation = ledger.reserve(
            "kit", budget, plan, relation=design.relation, private_noise=False
        )
        with reservation:
            table = _tables(design)["random rows"]
            model = _game(method, design, plan, reservation, table, SeededNoise(6))
        require_model(model, design.shape)
        ledger.verify("kit")


def _post_processes(method: Method, design: Design) -> None:
    plan = Plan(method.charges(design, _PLAYED))
    tables = _tables(design)
    tape, charges = Tape(), StrictCharges(plan, design.relation)
    first = _game(method, design, plan, charges, tables["random rows"], SeededNoise(7), tape)
    for name, table in tables.items():
        replay, again = tape.again(), StrictCharges(plan, design.relation)
        model = _game(method, design, plan, again, table, SeededNoise(8), replay)
        require(
            replay.faithful and again.charged == charges.charged,
            f"asked other questions of a table with {name} after the same answers",
        )
        require(
            fingerprint(model) == fingerprint(first),
            f"gave another model for a table with {name} though the gate released the same "
            f"numbers; after the gate everything is post-processing",
        )

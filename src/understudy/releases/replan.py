"""The plan of a release again, from what its bundle states, and whether it is the one in the ledger.

Everything that a plan follows from is public and in the bundle: schema, workload, method with its
parameters, neighbours, unit, the declared number of rows, ρ and the certificate's share. So whoever has
the bundle can plan as `release` did (`blueprint`), and a charge that is missing, relabelled, drawn less
often or paid for with too small a sensitivity shows. ρ itself need not be believed: that the plan costs
at most (ε, δ) is another check.

Purposes, kinds, integers and `times` are compared exactly, ρ and scales to a relative 1e-9, because
machines differ in the last digit of a logarithm. Of a zCDP filter it is known beforehand only which
events may be charged against it. Nothing is trained, and no optional library is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from understudy._version import __version__
from understudy.errors import VerificationError
from understudy.game.methods import METHODS, Method
from understudy.game.methods.aim import AIMMethod
from understudy.game.methods.graph import GraphMethod
from understudy.privacy import accounting
from understudy.privacy.budget import exact_text
from understudy.privacy.chain import canonical
from understudy.privacy.cost import Charge, Event, Plan, Zcdp
from understudy.releases import facts as private_facts
from understudy.releases.bundle import Bundle
from understudy.releases.certificate import VARIATION
from understudy.releases.plan import Blueprint, design_of
from understudy.releases.release import Release
from understudy.schema import Schema

CLOSE = 1e-9
"""How far ρ and scales may be apart, relatively."""

# What a stranger may ask planning to do, beyond what the format itself limits.
_LARGEST_PARAMETER = 10**9
_MOST_PAIRS, _MOST_PARTS = 2**22, 2**20


def require_plan(bundle: Bundle) -> str:
    """Raise `VerificationError` unless the plan is the one that the stated facts make."""
    facts, schema = bundle.facts, bundle.synthetic.schema
    own = blueprint(bundle.synthetic)
    _require_bearable(own, bundle)
    try:
        rho = Fraction(facts["rho"])
        if "declared" in facts:
            rho = _require_found(bundle, schema, rho)
            filled = bundle.refinement
            if filled is None or filled["purpose"] != private_facts.REST:
                raise VerificationError(f"{private_facts.REST!r} was not filled")
            _require_same(own.plan(rho), Plan.from_json(filled["plan"]))
        else:
            if bundle.refinement is not None:
                raise VerificationError("a zCDP filter was filled where no column was open")
            _require_same(own.plan(rho), bundle.reserved)
        for charge in bundle.plan:
            if isinstance(charge.event, Zcdp):
                _require_allowed(charge.purpose, own, bundle)
    except VerificationError as error:
        if facts["understudy"] == __version__:
            raise
        raise VerificationError(
            f"{error} (understudy {facts['understudy']} planned it and this is {__version__}, which "
            f"may plan otherwise: verify it with that version)"
        ) from None
    number = len(bundle.plan.charges)
    return f"recomputed: its {number} kinds of charges are those that {own.method.name} plans"


def blueprint(release: Release) -> Blueprint:
    """What the plan of a release followed from.

    Raises:
        VerificationError: An older version made it and did not write that down, or its method is not
            known.
    """
    facts = release.planned_from
    if "rho" not in facts or "certificate_share" not in facts:
        raise VerificationError(
            f"its plan cannot be made again: understudy {facts.get('understudy')}, an older version, "
            f"made the release and did not write down what the plan followed from; verify it with "
            f"that version"
        )
    share = exact_text(facts["certificate_share"])
    if not 0 < share <= Fraction(1, 2):
        raise VerificationError(f"certificate_share = {facts['certificate_share']} is out of range")
    design = design_of(release.schema, release.workload, release.relation, release.rows_public)
    return Blueprint(method_of(release.method), design, share, VARIATION in release.plan)


def method_of(described: Mapping[str, Any]) -> Method:
    """The method that describes itself so; public rows that it started from are not needed to plan."""
    parameters = {name: value for name, value in described.items() if name != "name"}
    warm = parameters.pop("public", None)
    name = described["name"]
    if name == "graph":
        sizes = tuple(parameters.pop("sizes", ()))
        made: Method = GraphMethod(sizes, **parameters)
    elif name in METHODS:
        for option, value in parameters.items():
            if type(value) is int and abs(value) > _LARGEST_PARAMETER:
                raise VerificationError(f"method = {name}: {option} = {value} is out of range")
        if name == "maxent":
            parameters.setdefault("interactions", False)
        try:
            made = METHODS[name](**parameters)
        except TypeError as error:
            raise VerificationError(
                f"method = {name} does not take the stated settings: {error}"
            ) from None
    else:
        raise VerificationError(f"method = {str(name)[:80]!r} is not known; its plan is not either")
    again = made.describe()
    if warm is not None and name in ("dpgan", "gem"):
        again = {**again, "public": warm}
    if canonical(again) != canonical(described):
        raise VerificationError(f"method = {name} does not describe itself as it is stated")
    return made


def _require_bearable(own: Blueprint, bundle: Bundle) -> None:
    """Refuse parameters with which planning would take long or much memory, before it does."""
    method, asked = own.method, bundle.manifest["method"]
    by_round = method.name in ("dualquery", "dqrs") or asked.get("oracle") == "weights"
    if by_round and (asked["rounds"] or 0) > len(bundle.plan.charges) + 1:
        raise VerificationError(
            f"method = {method.name} draws in {asked['rounds']} rounds; the plan has fewer"
        )
    order = {"hdmm": 64, "aim": 64, "querygan": max(2, asked.get("degree", 2))}.get(method.name, 2)
    parts, most = 0, _MOST_PAIRS if order == 2 else _MOST_PARTS
    for clique in own.design.cliques:
        parts += sum(math.comb(len(clique), k) for k in range(1, min(order, len(clique)) + 1))
        if parts > most:
            raise VerificationError(
                f"method = {method.name}: the workload's marginals have more than {most:,} "
                f"parts, too many to plan for"
            )


def _require_found(bundle: Bundle, schema: Schema, rho: Fraction) -> Fraction:
    """Check the outer plan, and the schema that came of it; the ρ that was left."""
    declared = Schema.loads(bundle.facts["declared"])
    found = {column.name: schema.column(column.name) for column in declared.undeclared}
    for column in declared.undeclared:
        if not column.admits(found[column.name]):
            raise VerificationError(f"column {column.name!r} was found as another than declared")
    if not declared.undeclared or declared.resolved(found).digest() != schema.digest():
        raise VerificationError("schema.toml does not follow from the declared schema")
    outer = private_facts.outer_plan(declared, rho, bundle.budget.delta, bundle.relation)
    _require_same(outer, bundle.reserved)
    return accounting.rho(bundle.reserved[private_facts.REST].event)


def _require_same(made: Plan, stated: Plan) -> None:
    ours = [charge.purpose for charge in made]
    theirs = [charge.purpose for charge in stated]
    if ours != theirs:
        missing = [p for p in ours if p not in theirs] or [p for p in theirs if p not in ours]
        words = f": {', '.join(missing[:3])}" if missing else ", in another order"
        raise VerificationError(f"the plan has other purposes than the method plans{words}")
    for mine, yours in zip(made, stated, strict=True):
        if mine.times != yours.times or not _alike(mine.event, yours.event):
            raise VerificationError(
                f"{mine.purpose!r} is stated as {_words(yours)}; the method plans {_words(mine)}"
            )


def _words(charge: Charge) -> str:
    return f"{charge.times} × {str(charge.event)[:300]}"


def _alike(one: Event, other: Event) -> bool:
    if type(one) is not type(other):
        return False
    mine, yours = asdict(one), asdict(other)
    return all(_equal(value, yours[name]) for name, value in mine.items())


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=CLOSE)
    return type(one) is type(other) and one == other


def _require_allowed(purpose: str, own: Blueprint, bundle: Bundle) -> None:
    """What was charged against a zCDP filter is what the method charges there."""
    method, design = own.method, own.design
    if not isinstance(method, AIMMethod):
        raise VerificationError(f"{purpose!r} is a zCDP filter, and {method.name} has none")
    events = [drawn.event for drawn in bundle.drawn if drawn.purpose == purpose]
    query, _ = method.players(design, bundle.plan)
    if (problem := query.unlike(events, design.relation)) is not None:
        raise VerificationError(f"{purpose!r}: {problem}")

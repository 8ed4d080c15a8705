"""What a plan follows from: method, problem, shares, and ρ. `release` and `verify` plan by this alone.

number of rows                    1 % of ρ, where n is private
the method's own charges          the rest
certificate                       its share, 2 % by default
certificate of total variation    twice that share, on request
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Method
from understudy.privacy.budget import Exact, exact, split
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.relation import Relation
from understudy.queries import Workload
from understudy.releases import certificate as certificates
from understudy.schema import Schema

__all__ = ["Blueprint", "design_of"]

_ROWS_SHARE = Fraction(1, 100)


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
        tuple(column.nullable for column in modelled),
        schema.settled if schema.rules or schema.geography else None,
    )


@dataclass(frozen=True, eq=False)
class Blueprint:
    """Everything that a plan follows from but ρ; `share` is the certificate's."""

    method: Method
    design: Design
    share: Fraction
    variations: bool = False

    def plan(self, rho: Fraction) -> Plan:
        """The charges of a whole release. They cost at most ρ, nominally where rows are sampled."""
        private = self.design.rows is None
        shares: dict[str, Exact] = {"certificate": self.share}
        if self.variations:
            shares["variation"] = 2 * self.share
        if private:
            shares["rows"] = _ROWS_SHARE
        shares["game"] = 1 - sum((exact(each) for each in shares.values()), Fraction(0))
        part = split(rho, shares)
        charges: list[Charge] = []
        if private:
            charges.append(Charge(certificates.ROWS, Gaussian.within(part["rows"])))
        charges += self.method.charges(self.design, part["game"])
        charges.append(certificates.worst_charge(part["certificate"]))
        if self.variations:
            charges.append(
                certificates.variation_charge(
                    part["variation"], self.design.relation, len(self.design.cliques), not private
                )
            )
        return Plan(tuple(charges))

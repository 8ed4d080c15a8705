"""What a method is: a pairing of players and a public plan of charges."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from understudy.errors import InputError
from understudy.game.forecast import Errors
from understudy.players.base import Clique, DataPlayer, Mend, Problem, QueryPlayer
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.relation import Relation
from understudy.queries import MAX_CELLS, Family, cells

__all__ = ["Design", "Forecast", "Method", "Theorem", "largest_marginal", "require_classes"]


@dataclass(frozen=True, slots=True)
class Design:
    """What a plan may depend on; all of it public. `rows` is None where n is private.

    `families` is empty where every cell of every clique is asked for, and no other query.
    """

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    weights: tuple[float, ...]
    relation: Relation
    rows: int | None
    families: tuple[Family, ...] = ()
    names: tuple[str, ...] = ()
    """Names of the columns, for messages; may be left out."""
    kinds: tuple[str, ...] = ()
    """Types of the columns as the schema has them ("category", "integer", …); may be left out."""
    nullable: tuple[bool, ...] = ()
    """Whether a column's last code is null; may be left out."""
    mend: Mend | None = field(default=None, compare=False, repr=False)
    """Moves records that public rules forbid to the nearest that they allow; None without rules."""

    def column(self, position: int) -> str:
        """How a message calls a column: by name, otherwise by position."""
        return repr(self.names[position]) if self.names else f"at position {position}"

    def problem(self, rows: int) -> Problem:
        """The problem once a public number of rows is known."""
        return Problem(self.shape, self.cliques, self.weights, rows, self.families, self.mend)

    @property
    def asked(self) -> tuple[Family, ...]:
        """The families of the workload, marginals or others."""
        if self.families:
            return self.families
        pairs = zip(self.cliques, self.weights, strict=True)
        return tuple(Family(clique, weight) for clique, weight in pairs)

    @property
    def queries(self) -> int:
        """The number of queries, complements not counted."""
        if self.families:
            return sum(family.size(self.shape) for family in self.families)
        return sum(cells(self.shape, clique) for clique in self.cliques)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect, from public facts alone."""

    noise: dict[str, float]
    """Per charge: the standard deviation of its noise, in rows."""
    measured: str
    """Which tables carry that noise only, and which are model."""
    memory_bytes: float
    seconds: float
    errors: Errors | None = None
    """Expected error of every marginal of the workload, where the method can say."""


def largest_marginal(method: Method) -> int:
    """The most cells that a marginal may have; methods that never tabulate one say `max_cells`."""
    return getattr(method, "max_cells", MAX_CELLS)


def require_classes(method: Method, design: Design) -> None:
    """Refuse other queries than cells of marginals for methods that do not say `classes = True`."""
    if design.families and not getattr(method, "classes", False):
        kinds = ", ".join(dict.fromkeys(family.kind for family in design.families))
        raise InputError(
            f"method = {method.name} serves marginals only, the workload has {kinds}; use fem"
        )


@dataclass(frozen=True, slots=True)
class Theorem:
    """What was proved about a method before it ran, in numbers; the certificate is measured after."""

    bound: float
    """The worst error is at most this with probability 1 − beta; 1 says nothing."""
    beta: float
    statement: str
    """The formula and what it takes for granted."""


class Method(Protocol):
    """A named algorithm. Everything here is a public function of public facts."""

    @property
    def name(self) -> str:
        """How it is called on the command line."""
        ...

    def check(self, design: Design) -> None:
        """Raise `InputError`, with the remedy, if the method cannot serve this problem."""
        ...

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """What the players will draw at most; costs at most ρ in zCDP."""
        ...

    def players(self, design: Design, plan: Plan) -> tuple[QueryPlayer, DataPlayer[Any]]:
        """The pairing, with scales taken from the plan."""
        ...

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Noise, memory and time before anything is read."""
        ...

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """The method's accuracy theorem evaluated for this plan, or None if it has none."""
        ...

    def describe(self) -> dict[str, Any]:
        """Name and public parameters, for the ledger and the release."""
        ...

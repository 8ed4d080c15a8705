"""What a method is: a pairing of players and a public plan of charges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.game.forecast import Errors
from understudy.game.pairing import require_pair
from understudy.players.base import Clique, DataPlayer, Mend, Model, Problem, QueryPlayer
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.relation import Relation
from understudy.queries import MAX_CELLS, Family, cells

__all__ = ["Design", "Forecast", "Method", "Theorem"]


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


@dataclass(frozen=True, slots=True)
class Theorem:
    """What was proved about a method before it ran, in numbers; the certificate is measured after."""

    bound: float
    """The worst error is at most this with probability 1 − beta; 1 says nothing."""
    beta: float
    statement: str
    """The formula and what it takes for granted."""


class Method(ABC):
    """A named algorithm: a pairing of players and a public plan of charges.

    Everything here is a public function of public facts. A method is a frozen dataclass of its public
    settings that defines `charges`, `players` and `forecast`; the rest has defaults, which fit a method
    that measures marginals.
    """

    __slots__ = ()

    name: str
    """How it is called on the command line."""
    max_cells: ClassVar[int] = MAX_CELLS
    """The most cells that a marginal of the workload may have."""
    classes: ClassVar[bool] = False
    """Whether other queries than cells of marginals are served."""
    rowwise: ClassVar[bool] = False
    """Whether it asks about rows, not counts of them: sources must then hand them out."""
    whole: ClassVar[bool] = False
    """Whether the model's records are the rows of the release, however many were asked for."""
    population: ClassVar[bool] = False
    """Whether the certificate also speaks of the population that the rows were drawn from."""

    @abstractmethod
    def check(self, design: Design) -> None:
        """Raise `InputError`, with the remedy, if the method cannot serve this problem."""

    @abstractmethod
    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """What the players will draw at most; costs at most ρ in zCDP."""

    @abstractmethod
    def players(self, design: Design, plan: Plan) -> tuple[QueryPlayer, DataPlayer[Any]]:
        """The pairing, with scales taken from the plan."""

    @abstractmethod
    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Noise, memory and time before anything is read."""

    def confirm(self, design: Design, plan: Plan) -> None:
        """Raise `InputError` for what can only be judged once the noise is known; players must fit."""
        require_pair(*self.players(design, plan))

    def errors(
        self, design: Design, plan: Plan, rows: int, model: Model | None = None
    ) -> Errors | None:
        """Expected errors from the plan's noise, and from a released model; None if it cannot say."""
        return None

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """The method's accuracy theorem evaluated for this plan, or None if it has none."""
        return None

    def judged(
        self, design: Design, plan: Plan, rows: int, beta: float, model: Model, size: int
    ) -> Theorem | None:
        """What is proved after the run, of `size` rows of a released model; by default `theorem`."""
        return self.theorem(design, plan, rows, beta)

    def warm(self, codes: tuple[NDArray[np.unsignedinteger[Any]], ...]) -> Method:
        """The same method, starting from rows that anybody may know, one code array per column."""
        raise InputError(
            f"public: method = {self.name} does not start from public rows; use method = gem or "
            f"dpgan, or leave public out"
        )

    def require_classes(self, design: Design) -> None:
        """Refuse other queries than cells of marginals where the method does not serve them."""
        if design.families and not self.classes:
            kinds = ", ".join(dict.fromkeys(family.kind for family in design.families))
            raise InputError(
                f"method = {self.name} serves marginals only, the workload has {kinds}; use fem"
            )

    def describe(self) -> dict[str, Any]:
        """Name and public parameters, for the ledger and the release."""
        return asdict(cast(Any, self))

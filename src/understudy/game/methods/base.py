"""What a method is: a pairing of players and a public plan of charges.

Its settings are the fields of a frozen dataclass, whose annotations have types and limits:

    rounds: Annotated[int | None, least(1)] = None

`Method.check` holds every setting to its annotation; None is left to the public rule.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from numbers import Integral, Real
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    NoReturn,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from understudy import wording
from understudy._types import Clique, Codes, Projection
from understudy.errors import InputError
from understudy.game.forecast import Errors
from understudy.players.base import DataPlayer, Model, Problem, QueryPlayer, require_pair
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.relation import Relation
from understudy.queries import MAX_CELLS, Family

_ASSUMED_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """Which values a setting may have, and what is said of others."""

    allows: Callable[[Any], bool]
    words: str


def least(low: float, remedy: str = "") -> Limit:
    """At least so much, and finite."""
    return Limit(lambda value: low <= value < math.inf, f"must be at least {low}{remedy}")


def whole(low: int, high: int, remedy: str = "") -> Limit:
    """A whole number within bounds."""
    return Limit(
        lambda value: isinstance(value, int) and low <= value <= high,
        f"must be a whole number from {low:,} to {high:,}{remedy}",
    )


def between(low: float, high: float, remedy: str = "") -> Limit:
    """Above `low` and below `high`."""
    return Limit(lambda value: low < value < high, f"must lie between {low} and {high}{remedy}")


def one_of(*known: str) -> Limit:
    """A choice."""
    return Limit(lambda value: value in known, f"is not one of {', '.join(known)}")


POSITIVE = Limit(lambda value: 0 < value < math.inf, "must be above 0")
SHARE = Limit(lambda value: 0 < value <= 1, "must be in (0, 1]")

_NO_SETTINGS = ("name", "public")
_KINDS: dict[Any, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def settings(maker: Any) -> dict[str, tuple[Any, ...]]:
    """The settings of a method and the types that each may have. Public rows are none."""
    hints = get_type_hints(maker)
    return {f.name: _members(hints[f.name]) for f in fields(maker) if f.name not in _NO_SETTINGS}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def typed(what: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """The value as one of the types; NumPy's numbers become Python's, and whole ones may be floats."""
    if Any in allowed or type(value) in allowed:
        return value
    if isinstance(value, Integral) and not isinstance(value, bool) and int in allowed:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool) and float in allowed:
        return float(value)
    kinds = " or ".join(_KINDS.get(kind, str(kind)) for kind in allowed)
    raise InputError(f"{what} must be {kinds}")


@dataclass(frozen=True)
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
    apart: tuple[int, ...] = ()
    """How many codes of a column, the last, are no values in order: special ones, null; optional."""
    ordered: tuple[bool, ...] = ()
    """Whether neighbouring codes of a column are neighbouring values; may be left out."""
    weight: int = 1
    """What one whom the promise speaks of weighs among the rows; above 1 for families."""
    twins: tuple[Clique, ...] = ()
    """Columns of a child with the same of a sibling, whose last code says that there is none."""
    project: Projection | None = field(default=None, compare=False, repr=False)
    """Moves records that public rules forbid to the nearest that they allow; None without rules."""
    told: tuple[tuple[tuple[float, float], ...], ...] = field(default=(), compare=False, repr=False)
    """Of each column's first codes, what this release counted before, and the variance of its noise.

    Only released numbers; no plan depends on them. Empty where there is none.
    """

    def column(self, position: int) -> str:
        """How a message calls a column: by name, otherwise by position."""
        return repr(self.names[position]) if self.names else f"at position {position}"

    def problem(self, rows: int, sigma: float = 0.0) -> Problem:
        """The problem once a public number of rows is known, or one with noise of this deviation."""
        told = self.shape, self.cliques, self.weights, rows, self.families, self.project
        return Problem(*told, rows_sigma=sigma)

    @property
    def asked(self) -> tuple[Family, ...]:
        """The families of the workload, marginals or others."""
        if self.families:
            return self.families
        pairs = zip(self.cliques, self.weights, strict=True)
        return tuple(Family(clique, weight) for clique, weight in pairs)

    @property
    def queries(self) -> int:
        """|Q|: the number of queries, complements not counted."""
        if self.families:
            return sum(family.size(self.shape) for family in self.families)
        return sum(self.sizes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The cells of every clique of the workload."""
        return tuple(math.prod(self.shape[i] for i in clique) for clique in self.cliques)

    def cells(self, cliques: Iterable[Clique]) -> int:
        """The cells of some marginals, all together."""
        return sum(math.prod(self.shape[i] for i in clique) for clique in cliques)

    @property
    def universe(self) -> int:
        """|X|: the number of possible rows."""
        return math.prod(self.shape)

    @property
    def columns(self) -> tuple[Clique, ...]:
        """Every column, as a clique of its own."""
        return tuple((i,) for i in range(len(self.shape)))

    @cached_property
    def pair_weights(self) -> dict[Clique, float]:
        """The pairs inside marginals of the workload, sorted, and how much of it holds each."""
        weights: dict[Clique, float] = {}
        for clique, weight in zip(self.cliques, self.weights, strict=True):
            for pair in combinations(clique, 2):
                weights[pair] = weights.get(pair, 0.0) + weight
        return {pair: weights[pair] for pair in sorted(weights)}

    @cached_property
    def pair_sizes(self) -> dict[Clique, int]:
        """The cells of these pairs."""
        return {(i, j): self.shape[i] * self.shape[j] for i, j in self.pair_weights}

    @property
    def assumed_rows(self) -> int:
        """The declared number of rows, or the one that rules assume where it is private."""
        return self.rows or _ASSUMED_ROWS * self.weight

    def kappa(self, rho: Fraction) -> float:
        """κ = n·√(2ρ), by which public rules choose a number of rounds."""
        return self.assumed_rows * math.sqrt(2 * float(rho))

    @cached_property
    def moved(self) -> int:
        """Cells of one marginal that a neighbour moves, each by one."""
        return self.relation.multiplicity

    def sigma(self, rho: Fraction, tables: int) -> float:
        """The noise of so many whole marginals at ρ, by which public rules divide it."""
        return math.sqrt(tables * self.moved / (2 * float(rho)))

    def gaussian(self, rho: Fraction, tables: int = 1) -> Gaussian:
        """The least noise for so many whole marginals that costs at most ρ."""
        return planning.tables(rho, self.relation, tables)

    def worst_marginals(self, rho: Fraction, picks: int = 1) -> Selection:
        """The least noise for selecting so many of the worst marginals that costs at most ρ."""
        return planning.worst(rho, self.relation, picks)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect, from public facts alone."""

    measured: str
    """Which tables carry the noise of their charge only, and which are model."""
    memory_bytes: float
    seconds: float
    errors: Errors | None = None
    """Of every marginal of the workload, as `Method.errors` says."""
    inferred: int = 0
    """Pairs of columns of the workload of which no table is measured, where most are such."""


@dataclass(frozen=True, slots=True)
class Theorem:
    """What was proved about a method before it ran, in numbers; the certificate is measured after."""

    bound: float
    """The worst error is at most this with probability 1 − beta; 1 says nothing."""
    beta: float
    statement: str
    """The formula and what it takes for granted."""

    def __str__(self) -> str:
        sure = f"{100 * (1 - self.beta):g} % confidence"
        return f"worst error {wording.bound(self.bound)} ({sure}): {self.statement}"


class Method(ABC):
    """A named algorithm: a pairing of players and a public plan of charges.

    Everything here is a public function of public facts. A method is a frozen dataclass of its public
    settings that defines `charges`, `players` and `forecast`; the rest has defaults, which fit a method
    that measures marginals. A setting's annotation has its limits: `Annotated[int, least(1)]`.
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

    def check(self, design: Design) -> None:
        """Raise `InputError`, with the remedy, if the method cannot serve this problem.

        Here: every setting has its type, and is within the limits of its annotation.
        """
        hints = get_type_hints(type(self), include_extras=True)
        for name, allowed in settings(type(self)).items():
            value = getattr(self, name)
            typed(f"method = {self.name}: {name} = {value!r}", value, allowed)
            if get_origin(hints[name]) is Annotated:
                for limit in get_args(hints[name])[1:]:
                    self.require(limit, **{name: value})

    def accept(self, design: Design) -> None:
        """`check`, and refuse other queries than cells of marginals where none are served."""
        if design.families and not self.classes:
            kinds = ", ".join(dict.fromkeys(family.kind for family in design.families))
            raise InputError(
                f"method = {self.name} serves marginals only, the workload has {kinds}; use fem"
            )
        self.check(design)

    @abstractmethod
    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """What the players will draw at most; costs at most ρ in zCDP."""

    @abstractmethod
    def players(self, design: Design, plan: Plan) -> tuple[QueryPlayer, DataPlayer[Any]]:
        """The pairing, with scales taken from the plan."""

    def counted(self, design: Design) -> tuple[Clique, ...]:
        """Marginals that will be asked about, counted in one pass: the certificate's, and columns."""
        return (*design.columns, *design.cliques)

    def query_player(self, design: Design, plan: Plan) -> QueryPlayer:
        """The one that draws, or one that draws as much: enough to see what the plan paid for."""
        return self.players(design, plan)[0]

    @abstractmethod
    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Noise, memory and time before anything is read."""

    def confirm(self, design: Design, plan: Plan) -> None:
        """Raise `InputError` for what can only be judged once the noise is known; players must fit."""
        require_pair(*self.players(design, plan))

    def errors(self, design: Design, plan: Plan, rows: int) -> Errors | None:
        """Expected errors from the plan's noise; None if it cannot say."""
        return None

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """The method's accuracy theorem evaluated for this plan, or None if it has none."""
        return None

    def judged(
        self, design: Design, plan: Plan, rows: int, beta: float, model: Model, size: int
    ) -> Theorem | None:
        """What is proved after the run, of `size` rows of a released model; by default `theorem`."""
        return self.theorem(design, plan, rows, beta)

    def warm(self, codes: tuple[Codes, ...]) -> Method:
        """The same method, starting from rows that anybody may know, one code array per column."""
        raise InputError(
            f"public: method = {self.name} does not start from public rows; use method = gem or "
            f"dpgan, or leave public out"
        )

    def require_universe(self, design: Design, limit: int) -> None:
        """Refuse more possible rows than are listed one by one."""
        if design.universe > limit:
            raise InputError(
                f"method = {self.name} keeps one number for each of the {design.universe:.3g} "
                f"possible rows, above its limit of {limit:.3g}; use method = auto, or fewer columns "
                f"or bins"
            )

    def describe(self) -> dict[str, Any]:
        """Name and public parameters, for the ledger and the release."""
        return asdict(cast(Any, self))

    # -- what `check` is made of -----------------------------------------------------------------

    def refuse(self, message: str) -> NoReturn:
        """Raise `InputError` in the name of the method."""
        raise InputError(f"method = {self.name}: {message}")

    def require(self, limit: Limit, **settings: Any) -> None:
        """Refuse settings beyond a limit; None is left to the public rule."""
        for name, value in settings.items():
            if value is not None and not limit.allows(value):
                self.refuse(f"{name} = {value!r} {limit.words}")


NO_SETTING = (
    "public is no setting; give a table of the same schema by the option --public "
    "(public= in Python)"
)


@dataclass(frozen=True)
class WarmMethod(Method):
    """A method that can start from rows that anybody may know, `public`: they must not be private."""

    public: tuple[Codes, ...] | None = field(default=None, repr=False, kw_only=True)

    def warm(self, codes: tuple[Codes, ...]) -> Self:
        """The same, starting from public rows."""
        return replace(self, public=codes)

    def require_public(self, shape: tuple[int, ...]) -> None:
        """Refuse public rows that are not one array of codes inside the domain per column."""
        public: Any = self.public
        if public is None:
            return
        fits = isinstance(public, tuple) and len(public) == len(shape)
        if not fits or not all(
            isinstance(codes, np.ndarray) and codes.size and 0 <= codes.min() <= codes.max() < size
            for codes, size in zip(public, shape, strict=True)
        ):
            self.refuse(NO_SETTING)

    def describe(self) -> dict[str, Any]:
        """Name and parameters; of public rows their number and a digest."""
        described = {each.name: vars(self)[each.name] for each in fields(self)}
        public = described.pop("public")
        if public is not None:
            digest = hashlib.sha256()
            for column in public:
                digest.update(np.ascontiguousarray(column, np.int64).tobytes())
            described["public"] = {"rows": int(public[0].size), "digest": digest.hexdigest()}
        return described

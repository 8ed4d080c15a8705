"""The query-release game: its two protocols, the answers that pass between them, and the one loop.

A *query player* looks at the data player's current distribution and, through the gate, picks where it
is wrong. A *data player* answers with a better distribution; it sees released answers only, so all it
does is post-processing. Neither holds private data. `play` is where they meet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Projection, Rng, Table, Whole
from understudy.errors import InputError, WorkError
from understudy.models import Measured, View
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell, Marginals
from understudy.privacy.questions.moments import RandomFeatures
from understudy.progress import Progress, Watch, silent
from understudy.queries import Family, Query

S = TypeVar("S")


class Kind(StrEnum):
    """Kinds of answers, in the words of a message."""

    TABLE = "noisy marginals"
    COARSENED = "noisy coarsened marginals"
    CELL = "noisy counts of cells"
    PICKED_CELL = "picked cells"
    PICKED_QUERY = "picked queries"
    CRITIC = "linear critics"
    MOMENTS = "sums of random features"
    PAYOFF = "payoffs of picked cells"
    DEGREES = "degrees of nodes"
    TRIANGLES = "numbers of triangles"
    GRADIENT = "gradients of a critic"
    CHOICE = "choices among checkpoints"


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A released cell: which query was selected and, where it was measured, its noisy count."""

    clique: Clique
    cell: Cell
    value: float | None = None
    sigma: float | None = None


@dataclass(frozen=True, slots=True)
class PickedQuery:
    """A released choice of a query of any class: on which side (±1) the data player is wrong."""

    clique: Clique
    query: Query
    sign: int


@dataclass(frozen=True, slots=True, eq=False)
class LinearCritic:
    """A released critic D(x) = Σ_c table_c[x_c]: high where the data player has too few records."""

    cliques: tuple[Clique, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMoments:
    """Released sums of public random features over the rows; `values` and `sigma` are in rows."""

    maps: RandomFeatures
    values: Table
    sigma: float


@dataclass(frozen=True, slots=True)
class PaidOff:
    """A released sum of payoffs q(D) − q(D^t) over some rounds, in rows, with its noise's scale."""

    value: float
    scale: float
    rounds: int


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredDegrees:
    """Released degrees of a graph's nodes, with noise of deviation sigma.

    Sorted within blocks before the noise came, or `named`: every node's own, in their order.
    """

    values: Whole
    sigma: float
    named: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredTriangles:
    """The released number of a graph's triangles, with noise of deviation sigma."""

    value: int
    sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class CriticGradient:
    """A noisy mean gradient of the critic's loss on the rows, layer after layer, biases last.

    `below` is, for every group of weights that was watched, the noisy share of rows whose gradient was
    not clipped.
    """

    gradient: NDArray[np.float32]
    below: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Checkpoints that were picked, best first, as far as the noise lets one see."""

    checkpoints: tuple[int, ...]


_KINDS: dict[type, Kind] = {
    MeasuredDegrees: Kind.DEGREES,
    MeasuredTriangles: Kind.TRIANGLES,
    PickedQuery: Kind.PICKED_QUERY,
    LinearCritic: Kind.CRITIC,
    MeasuredMoments: Kind.MOMENTS,
    PaidOff: Kind.PAYOFF,
    CriticGradient: Kind.GRADIENT,
    Chosen: Kind.CHOICE,
}
Answer = (
    Measured
    | MeasuredCell
    | MeasuredDegrees
    | MeasuredTriangles
    | PickedQuery
    | LinearCritic
    | MeasuredMoments
    | PaidOff
    | CriticGradient
    | Chosen
)
Answers = tuple[Answer, ...]


def kind_of(answer: Answer) -> Kind:
    """The kind of a released answer."""
    match answer:
        case Measured(labels=labels):
            return Kind.TABLE if labels is None else Kind.COARSENED
        case MeasuredCell(value=value):
            return Kind.PICKED_CELL if value is None else Kind.CELL
        case _:
            return _KINDS[type(answer)]


def kinds_of(answers: Iterable[Answer]) -> frozenset[Kind]:
    """The kinds that are among released answers."""
    return frozenset(map(kind_of, answers))


@dataclass(frozen=True, slots=True)
class Problem:
    """What everybody may know: domain sizes, the workload, and a public number of rows.

    `families` is empty where every cell of every clique is asked for, and no other query.
    """

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    weights: tuple[float, ...]
    rows: int
    families: tuple[Family, ...] = ()
    project: Projection | None = field(default=None, compare=False, repr=False)
    """Moves records that public rules forbid to the nearest that they allow; None without rules."""
    rows_sigma: float = 0.0
    """The deviation of the noise in `rows`; 0 where the number is public."""
    watch: Watch = field(default=silent, compare=False, repr=False)
    """Told how far work that takes long is."""

    @property
    def columns(self) -> tuple[Clique, ...]:
        """Every column, as a clique of its own."""
        return tuple((i,) for i in range(len(self.shape)))

    @property
    def uniform(self) -> list[Table]:
        """Equal shares for the values of every column."""
        return [np.full(size, 1.0 / size) for size in self.shape]


@runtime_checkable
class Model(View, Protocol):
    """A distribution that can be sampled and saved."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Domain sizes."""
        ...

    def sample(self, rows: int, rng: Rng) -> list[Codes]:
        """Encoded rows."""
        ...

    def to_arrays(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """(JSON description, arrays)."""
        ...


class QueryPlayer(Protocol):
    """Finds, privately, where the data player is wrong. The only player who meets the gate."""

    @property
    def rounds(self) -> int:
        """How many rounds it plays; public and fixed in advance."""
        ...

    @property
    def gives(self) -> frozenset[Kind]:
        """The kinds of answers that it may hand on; public and fixed in advance."""
        ...

    @property
    def needs(self) -> tuple[type | UnionType, ...]:
        """Views that it plays against, each one needed; empty if marginals are enough."""
        ...

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """Released answers of this round. Every look at the data is a charge of the gate's."""
        ...


def measure(
    gate: Gate, purpose: str, cliques: tuple[Clique, ...], sigma: float
) -> tuple[Measured, ...]:
    """Measure whole marginals through the gate; `sigma` is what the plan says."""
    tables = gate.ask(purpose, Marginals(cliques))
    return tuple(Measured(c, t, sigma) for c, t in zip(cliques, tables, strict=True))


class DataPlayer(ABC, Generic[S]):
    """Keeps a distribution. Sees released answers only; `S` is its explicit state."""

    __slots__ = ()

    accepts: frozenset[Kind]
    """The kinds of answers that it learns from; a player who gives others is refused."""
    requires: frozenset[Kind] = frozenset()
    """Those of them that it cannot do without."""
    shows: type
    """The type of its view."""

    @abstractmethod
    def start(self, problem: Problem) -> S:
        """The state before any answer."""

    @abstractmethod
    def view(self, problem: Problem, state: S) -> View:
        """The current distribution, for the query player to attack."""

    @abstractmethod
    def respond(self, problem: Problem, state: S, answers: Answers, rng: Rng) -> S:
        """The state after a round's answers. Randomness here is public: it is not privacy noise.

        What takes long is told to `problem.watch`.
        """

    @abstractmethod
    def finish(self, problem: Problem, state: S) -> Model:
        """The model that the game was played for."""

    def most_rounds(self) -> int | None:
        """The longest game that it learns from; None for any."""
        return None

    def over(self, state: S) -> bool:
        """Whether it can learn no more: then nothing more is asked. A fact about released numbers."""
        return False

    def diagnostics(self, state: S) -> Mapping[str, Any]:
        """What it has to say of a game, for the record: released numbers and public randomness."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """The transcript of a game, all of it released: every noisy table with its noise, as inference
    needs it.

    `answers` holds those of every round in the order in which they were drawn, but for gradients, which
    are large and of use to the networks alone.
    """

    model: Model
    answers: tuple[Answers, ...]
    diagnostics: Mapping[str, Any]
    """What the data player has to say of the game."""


def play(
    problem: Problem,
    query: QueryPlayer,
    data: DataPlayer[Any],
    gate: Gate,
    rng: Rng,
    watch: Watch = silent,
) -> Played:
    """Let the two players take turns; the model and all that was released on the way.

    The number of rounds is public and fixed; a game ends early only where the data player can learn no
    more, which follows from released answers. So nothing depends on private data but by charged
    answers.

    Raises:
        InputError: The players do not fit (`require_pair`); nothing has been asked.
    """
    require_pair(query, data)
    problem = replace(problem, watch=watch)
    state = data.start(problem)
    answered: list[Answers] = []
    rounds = query.rounds
    for round in range(rounds):
        if data.over(state):
            break
        watch(Progress("playing", round, rounds))
        answers = query.play(problem, gate, data.view(problem, state), round)
        for kind in kinds_of(answers) - query.gives:
            raise WorkError(
                f"{type(query).__name__} gives {kind}, which it does not declare in `gives`"
            )
        answered.append(tuple(each for each in answers if not isinstance(each, CriticGradient)))
        state = data.respond(problem, state, answers, rng)
    watch(Progress("playing", rounds, rounds))
    return Played(data.finish(problem, state), tuple(answered), data.diagnostics(state))


def require_pair(query: QueryPlayer, data: DataPlayer[Any]) -> None:
    """Refuse players that do not fit, before anything is spent. A fact about public settings.

    They fit if the data player learns from every kind of answer that the query player may give and gets
    those that it requires, shows what the query player looks at, and lasts as long as the game.

    Raises:
        InputError: They do not fit; names what would be lost or is missing.
    """
    pair = f"{type(query).__name__} cannot play against {type(data).__name__}"
    lost = sorted(query.gives - data.accepts)
    if lost:
        raise InputError(
            f"{pair}: it gives {', '.join(lost)}, which would be paid for and not used; take a data "
            f"player that accepts them, this one accepts {', '.join(sorted(data.accepts))}"
        )
    missing = sorted(data.requires - query.gives)
    if missing:
        raise InputError(
            f"{pair}: it does not give {', '.join(missing)}, without which this data player learns "
            f"nothing; take another query player"
        )
    for needed in query.needs:
        if not issubclass(data.shows, needed):
            name = needed.__name__ if isinstance(needed, type) else str(needed)
            raise InputError(
                f"{pair}: it looks at {name}, and is shown {data.shows.__name__}; take a "
                f"data player that shows it"
            )
    most = data.most_rounds()
    if most is not None and query.rounds > most:
        raise InputError(
            f"{pair}: it plays {query.rounds} rounds, of which the data player learns from {most}; "
            f"give both the same number"
        )

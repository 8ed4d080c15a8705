"""A generator network that follows the leader of all critics: the data player of QueryGAN.

Critics come as released answers, and what is done with them depends on their kind alone:

    columns measured     the generator starts at their shares
    tables measured      T rounds are played at once against the exact critic of the noisy tables
                         (`understudy.nets.leader.duel`); rounds cost nothing, all is post-processing
    queries picked       each is a critic ±q, and the generator answers to the leader of them
    a linear critic      the same

The result is the mixture over the rounds of the last part of the game: hard records of each, equally
weighted, and, where a tilt is given, thinned out by the average critic (rejection sampling).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import WorkError
from understudy.models import Empirical, Measured
from understudy.models.measured import simplex
from understudy.players.base import Answer, Clique, LinearCritic, MeasuredCell, Problem

if TYPE_CHECKING:
    from understudy.nets.leader import Past, Player, Trained

__all__ = ["Judged", "NetLeader"]

Records = NDArray[np.integer[Any]]
# Of the rate, what is left in the last round.
_LAST_RATE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """Everything that a round needs; nothing in it is ever changed."""

    records: Records
    kept: tuple[Records, ...] = ()
    round: int = 0
    columns: tuple[Measured, ...] = ()
    trained: Trained | None = None
    past: Past | None = None
    literals: tuple[tuple[int, ...], ...] = ()
    cliques: tuple[Clique, ...] = ()
    tables: tuple[Measured, ...] = ()


@dataclass(frozen=True, eq=False)
class Judged(Empirical):
    """Records, and how far the noisy tables that critics were made of are from them.

    `gaps` holds, for each table, max over its cells of |m̃ − share of the records|; released numbers.
    """

    gaps: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class NetLeader:
    """`rounds` critics are answered in all; the last share `keep` of the rounds is the result.

    `features` are the tables that critics look at, empty where they are picked queries. `whole` shows
    the query player all records so far, otherwise those of the round. `kernel` is w of the weighted
    all-subsets kernel. `tilt` is λ of rejection sampling, 0 for none.
    """

    rounds: int
    features: tuple[Clique, ...] = ()
    objective: str = "tv"
    play: str = "last"
    batch: int = 512
    steps: int = 1
    rate: float = 1e-3
    anchor: float = 0.0
    scale: float = 0.0
    history: int = 32
    kernel: float = 1.0
    tilt: float = 0.0
    keep: float = 0.25
    records: int = 100_000
    whole: bool = False
    latent: int = 64
    width: int = 256
    blocks: int = 1

    def start(self, problem: Problem) -> Played:
        """Nothing is known: uniform records, from a fixed public key."""
        rng = np.random.default_rng(0)
        columns = [rng.integers(0, size, self._each) for size in problem.shape]
        return Played(np.stack(columns, axis=1))

    def view(self, problem: Problem, state: Played) -> Empirical:
        """The records of this round, or of all."""
        shown = np.concatenate(state.kept) if self.whole and state.kept else state.records
        return Empirical.of(problem.shape, shown)

    def respond(
        self, problem: Problem, state: Played, answers: tuple[Answer, ...], rng: np.random.Generator
    ) -> Played:
        """Answer to this round's critics."""
        tables = tuple(answer for answer in answers if isinstance(answer, Measured))
        if tables and all(len(table.clique) == 1 for table in tables) and not state.round:
            return self._opened(problem, replace(state, columns=state.columns + tables), rng)
        if not answers:
            return state
        if state.trained is None:
            state = self._opened(problem, state, rng)
        if tables:
            return self._dueled(problem, state, state.columns + tables, rng)
        return self._answered(problem, state, answers, rng)

    def finish(self, problem: Problem, state: Played) -> Empirical:
        """The mixture of the kept rounds."""
        from understudy.nets import critics

        kept = [records for records in state.kept if len(records)]
        if self.whole:
            kept = kept[math.floor(len(kept) * (1 - self.keep)) :]
        pool = np.concatenate(kept) if kept else state.records
        if self.tilt and state.past is not None:
            scores = self._scores(problem, state, pool)
            accepted = critics.reject(scores, self.tilt, np.random.default_rng(len(pool)))
            pool = pool[accepted]
        model = Empirical.of(problem.shape, pool)
        apart = [
            np.abs(table.values / max(problem.rows, 1) - model.marginal(table.clique)).max()
            for table in state.tables
        ]
        return Judged(model.shape, model.codes, tuple(float(gap) for gap in apart))

    # -- the three kinds of answers --------------------------------------------------------------

    def _opened(self, problem: Problem, state: Played, rng: np.random.Generator) -> Played:
        """A generator at the measured shares of the columns, at uniform ones where there are none."""
        player = self._player(problem)
        shares = [np.full(size, 1 / size) for size in problem.shape]
        for table in state.columns:
            # A quarter of the noise's share keeps what was drowned from being ruled out.
            floor = table.sigma / problem.rows / 4
            share = simplex(table.values, problem.rows) + floor
            shares[table.clique[0]] = share / share.sum()
        trained = player.start(shares, _key(rng))
        return replace(
            state, trained=trained, records=player.records(trained, self._each, _key(rng))
        )

    def _dueled(
        self,
        problem: Problem,
        state: Played,
        tables: tuple[Measured, ...],
        rng: np.random.Generator,
    ) -> Played:
        from understudy.nets.critics import Cells, Objective
        from understudy.nets.leader import Past, Play, Truth, duel

        assert state.trained is not None
        cells = Cells(problem.shape, tuple(table.clique for table in tables))
        rows = max(problem.rows, 1)
        truth = Truth(
            cells,
            cells.flat([table.values for table in tables]) / rows,
            cells.spread([table.sigma / rows for table in tables]),
            cells.spread([self.kernel ** len(table.clique) for table in tables]),
        )
        player, kept = self._player(problem), list(state.kept)
        first = math.floor(self.rounds * (1 - self.keep))

        def after(round: int, trained: Trained) -> None:
            if round > first:
                kept.append(player.records(trained, self._each, _key(rng)))

        trained, past = duel(
            player, state.trained, truth, Objective(self.objective),
            Past(Play(self.play), self.history), self.rounds, self._rate, rng, after,
        )  # fmt: skip
        return replace(
            state, trained=trained, past=past, kept=tuple(kept), round=self.rounds,
            records=kept[-1], cliques=cells.cliques, tables=tables,
        )  # fmt: skip

    def _answered(
        self, problem: Problem, state: Played, answers: tuple[Answer, ...], rng: np.random.Generator
    ) -> Played:
        from understudy.nets.critics import Cells
        from understudy.nets.leader import Conjunctions, Past, Play

        assert state.trained is not None
        past = state.past or Past(Play(self.play), self.history)
        literals, round = state.literals, state.round + 1
        if self.features:
            features = Cells(problem.shape, self.features)
            # Clipped: the weight of a cell with few rows is mostly noise.
            past = past.plus(np.clip(_joined(features, answers), -1, 1))
            critic: Any = past.leader(rng)
        else:
            literals, theta = _picked(problem, answers, state.literals, self._capacity(answers))
            past = past.plus(theta)
            padded = _padded(problem, literals, theta.size)
            features = Conjunctions(theta.size, padded.shape[1])
            critic = (padded, past.leader(rng))
        player = self._player(problem)
        trained = player.improve(
            state.trained, features, critic, self._rate(round), round, _key(rng)
        )
        records = player.records(trained, self._each, _key(rng))
        first = 0 if self.whole else math.floor(self.rounds * (1 - self.keep))
        kept = (*state.kept, records) if round > first else state.kept
        return replace(
            state, trained=trained, past=past, literals=literals, round=round, records=records,
            kept=kept, cliques=self.features,
        )  # fmt: skip

    # -- what they share -------------------------------------------------------------------------

    @property
    def _each(self) -> int:
        """Records of one round, so that those of the kept rounds are about `records`."""
        return max(1, math.ceil(self.records / max(1, math.ceil(self.rounds * self.keep))))

    def _rate(self, round: int) -> float:
        """Falls along a cosine."""
        wave = (1 + math.cos(math.pi * min(1.0, round / self.rounds))) / 2
        return self.rate * (_LAST_RATE + (1 - _LAST_RATE) * wave)

    def _player(self, problem: Problem) -> Player:
        from understudy.nets.generator import Generator
        from understudy.nets.leader import Play, Player

        generator = Generator(problem.shape, self.latent, self.width, self.blocks)
        scale = self.scale if Play(self.play).perturbed else 0.0
        return Player(generator, self.steps, self.batch, self.anchor, scale)

    def _capacity(self, answers: tuple[Answer, ...]) -> int:
        return self.rounds * max(1, len(answers))

    def _scores(self, problem: Problem, state: Played, pool: Records) -> NDArray[np.float64]:
        """D̄ of every record of the pool."""
        from understudy.nets.critics import Cells

        assert state.past is not None
        mean = state.past.mean()
        if state.literals:
            hot = np.zeros((len(pool), sum(problem.shape) + 1), bool)
            offsets = np.cumsum([0, *problem.shape])[:-1]
            hot[np.arange(len(pool))[:, None], offsets + pool] = hot[:, -1] = True
            padded = _padded(problem, state.literals, len(state.literals))
            return hot[:, padded].all(axis=-1) @ mean[: len(padded)].astype(np.float64)
        return Cells(problem.shape, state.cliques).scores(mean, pool)


def _key(rng: np.random.Generator) -> Any:
    from understudy.nets.leader import key_of

    return key_of(rng)


def _joined(features: Any, answers: tuple[Answer, ...]) -> NDArray[np.float64]:
    """One vector over all tables for the linear critics of a round."""
    tables = {clique: np.zeros(()) for clique in features.cliques}
    for answer in answers:
        if not isinstance(answer, LinearCritic):
            raise WorkError(f"a critic over tables was expected, not {type(answer).__name__}")
        for clique, table in zip(answer.cliques, answer.tables, strict=True):
            tables[clique] = tables[clique] + table
    shapes = [tuple(features.shape[i] for i in clique) for clique in features.cliques]
    return features.flat(
        [np.broadcast_to(tables[c], s) for c, s in zip(features.cliques, shapes, strict=True)]
    )


def _picked(
    problem: Problem,
    answers: tuple[Answer, ...],
    before: tuple[tuple[int, ...], ...],
    capacity: int,
) -> tuple[tuple[tuple[int, ...], ...], NDArray[np.float64]]:
    """(all conjunctions so far, the critic of this round over them)."""
    offsets = np.cumsum([0, *problem.shape])
    literals, theta = list(before), np.zeros(max(capacity, len(before) + len(answers)))
    for answer in answers:
        if not isinstance(answer, MeasuredCell) or not answer.cell.sign:
            raise WorkError(f"a picked cell and its side were expected, not {answer}")
        theta[len(literals)] = answer.cell.sign / len(answers)
        index = zip(answer.clique, answer.cell.index, strict=True)
        literals.append(tuple(int(offsets[column]) + code for column, code in index))
    return tuple(literals), theta


def _padded(
    problem: Problem, literals: tuple[tuple[int, ...], ...], capacity: int
) -> NDArray[np.int32]:
    """(capacity, most literals); the position after the last one-hot column stands for 1."""
    width = max(len(clique) for clique in problem.cliques)
    padded = np.full((capacity, width), sum(problem.shape), np.int32)
    for row, literal in zip(padded, literals, strict=False):
        row[: len(literal)] = literal
    return padded

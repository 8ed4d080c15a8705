"""A generator network that follows the leader of all critics: the data player of QueryGAN.

Critics come as released answers, and what is done with them depends on their kind alone:

    columns measured     the generator starts at their shares
    tables measured,     T rounds are played at once against critics of the noisy means
    moments measured     (`understudy.nets.duel`); rounds cost nothing, all is post-processing
    queries picked       each is a critic ±q, and the generator follows the leader of them
    a linear critic      the same
    a payoff             is kept for who judges the game

The result is the mixture over the last part of the rounds: hard records of each, equally weighted.
After matching as many of them are chosen as there are rows: records are weighed until their columns are
those that all tables together state, and those are kept whose tables are nearest to the weighted ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Rng
from understudy.errors import WorkError
from understudy.models import Empirical, Measured, Weighted
from understudy.models.blocks import beliefs
from understudy.models.fitting import independent
from understudy.models.margins import one_ways
from understudy.models.weighted import swaps_for
from understudy.players.base import (
    Answer,
    Answers,
    DataPlayer,
    Kind,
    LinearCritic,
    MeasuredCell,
    MeasuredMoments,
    PaidOff,
    Problem,
    kinds_of,
)
from understudy.progress import Progress
from understudy.wording import NOTHING

if TYPE_CHECKING:
    from understudy.nets.critics import Units
    from understudy.nets.duel import Critics, Truth
    from understudy.nets.leader import Features, Past, Player, Trained

MATCHING = "matching"
"""The play without a past: a gradient step against the last critic of noisy means."""
Records = NDArray[np.integer[Any]]
Pick = tuple[MeasuredCell, float]
# Of the rate, what is left in the last round.
_LAST_RATE = 0.01
_NONE = 1e-6  # Counts below this are none
_OFTEN = 10  # Rounds between two words on how training goes
_MOST = 5_000  # Records of one round, where critics are not regressions against them
_SEEN = 8
"""Batches that critics of noisy means see of a generator that follows the leader, or of one whose
critics add up many cells."""
_SCALED = 10  # How often a table, or a list of records, is scaled to its columns
_FEWEST = 10_000
"""Records of a result, where a table has fewer rows: its noise is above the error of such a sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """Everything that a round needs; nothing in it is ever changed."""

    records: Records
    kept: tuple[Records, ...] = ()
    round: int = 0
    columns: tuple[Measured, ...] = ()
    trained: Trained | None = None
    past: Past | None = None
    literals: tuple[tuple[int, ...], ...] = ()
    tables: tuple[Measured, ...] = ()
    critics: Critics | None = None
    picks: tuple[Pick, ...] = ()
    paid: PaidOff | None = None
    diverged: bool = False


@dataclass(frozen=True, eq=False)
class Shown(Empirical):
    """Records, and the queries that were picked against those of the rounds that are kept."""

    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True, eq=False)
class Judged(Empirical):
    """Records, and what the game says of them: released numbers.

    `gaps` holds, for each noisy table that critics were made of, max over its cells of
    |m̃ − share of the records|. `paid` is the payoff of the critics against exactly these records.
    """

    gaps: tuple[float, ...] = ()
    paid: PaidOff | None = None


@dataclass(frozen=True, slots=True)
class FTPLGenerator(DataPlayer[Game]):
    """`rounds` critics are answered in all; the last share `keep` of the rounds is the result.

    `features` are the tables that critics look at, empty where they are picked queries. `whole` shows
    the query player all records so far, otherwise those of the round. `play` is one of
    `understudy.nets.leader`, or "matching". `eta` is η for critics of range 1. `history` is the size
    of a sample of past critics, None for one coin each. `regularised` is η of critics that follow the
    regularised leader, None for best responses. `kernel` is w of the weighted all-subsets kernel.
    `questions` are what critics ask of each column where the objective is not about cells.
    """

    rounds: int
    features: tuple[Clique, ...] = ()
    objective: str = "max"
    questions: tuple[str, ...] = ()
    play: str = "ftl"
    batch: int = 512
    steps: int = 10
    rate: float = 0.005
    eta: float = 0.1
    scale: float = 0.0
    history: int | None = None
    regularised: float | None = None
    kernel: float = 1.0
    keep: float = 0.5
    records: int = 500_000
    whole: bool = False
    latent: int = 32
    width: int = 128
    blocks: int = 2
    accepts: frozenset[Kind] = field(init=False, repr=False)

    shows = Shown

    def __post_init__(self) -> None:
        accepts = {Kind.TABLE, Kind.MOMENTS, Kind.CRITIC if self.features else Kind.PICKED_CELL}
        if not (self.features or self.whole):  # what was picked against each round is remembered
            accepts.add(Kind.PAYOFF)
        object.__setattr__(self, "accepts", frozenset(accepts))

    def start(self, problem: Problem) -> Game:
        """Nothing is known: uniform records, from a fixed public key."""
        rng = np.random.default_rng(0)
        columns = [rng.integers(0, size, self._each) for size in problem.shape]
        return Game(np.stack(columns, axis=1))

    def view(self, problem: Problem, state: Game) -> Shown:
        """The records of this round, or of all."""
        shown = np.concatenate(state.kept) if self.whole and state.kept else state.records
        model = Empirical.of(problem.shape, shown)
        return Shown(model.shape, model.codes, state.picks)

    def respond(self, problem: Problem, state: Game, answers: Answers, rng: Rng) -> Game:
        """Answer to this round's critics."""
        if len(kinds_of(answers)) > 1:
            raise WorkError("a round with several kinds of answers has no critic")
        tables = tuple(answer for answer in answers if isinstance(answer, Measured))
        if tables and all(len(table.clique) == 1 for table in tables) and not state.round:
            return self._opened(problem, replace(state, columns=state.columns + tables), rng)
        if not answers or state.diverged:
            return state
        first = answers[0]
        if isinstance(first, PaidOff):
            return replace(state, paid=first)
        if state.trained is None:
            state = self._opened(problem, state, rng)
        if isinstance(first, MeasuredMoments):
            if len(answers) > 1:
                raise WorkError("sums of several families of random features in one round")
            return self._waved(problem, state, first, rng)
        if tables:
            return self._dueled(problem, state, state.columns + tables, rng)
        return self._answered(problem, state, answers, rng)

    def over(self, state: Game) -> bool:
        """Once training has diverged."""
        return state.diverged

    def diagnostics(self, state: Game) -> dict[str, Any]:
        """The regret of regularised critics, and what its theorem says of it."""
        from understudy.nets.duel import Regularised

        if not isinstance(state.critics, Regularised):
            return {}
        bound = state.critics.bound
        return {
            "regret_of_the_critics": state.critics.regret,
            "bound_on_their_regret": bound if bound < 1 else NOTHING,
        }

    def finish(self, problem: Problem, state: Game) -> Empirical:
        """The mixture of the kept rounds."""
        kept = [records for records in state.kept if len(records)]
        if self.whole:
            kept = kept[math.floor(len(kept) * (1 - self.keep)) :]
        pool = np.concatenate(kept) if kept else state.records
        model = Empirical.of(problem.shape, pool)
        if self.play == MATCHING and (said := state.tables or state.columns):
            model = _chosen(problem, model, one_ways(problem.shape, said, max(problem.rows, 1))[0])
        apart = [
            np.abs(table.values / max(problem.rows, 1) - model.marginal(table.clique)).max()
            for table in state.tables
        ]
        gaps = tuple(float(gap) for gap in apart)
        return Judged(model.shape, model.codes, gaps, state.paid)

    # -- the three kinds of answers --------------------------------------------------------------

    def _opened(self, problem: Problem, state: Game, rng: Rng) -> Game:
        """A generator at the measured shares of the columns, at uniform ones where there are none."""
        player = self._player(problem)
        start = independent(problem.shape, state.columns, problem.rows)
        shares = [start.marginal((i,)) for i in range(len(problem.shape))]
        trained = player.start(shares, _key(rng))
        return replace(
            state, trained=trained, records=player.records(trained, self._each, _key(rng))
        )

    def _dueled(
        self, problem: Problem, state: Game, tables: tuple[Measured, ...], rng: Rng
    ) -> Game:
        from understudy.nets.critics import Cells, Question
        from understudy.nets.duel import Truth

        questions = tuple(Question(each) for each in self.questions)
        cells = Cells(problem.shape, tuple(table.clique for table in tables), questions)
        rows = max(problem.rows, 1)
        means, noise = _believed(problem, tables)
        if questions:
            means = _consistent(cells.cliques, means)
        truth = Truth(
            cells,
            cells.flat(means) / rows,
            cells.flat(noise) / rows,
            cells.spread([self.kernel ** len(table.clique) for table in tables]),
        )
        return replace(self._played(problem, state, truth, rng), tables=tables)

    def _waved(self, problem: Problem, state: Game, moments: MeasuredMoments, rng: Rng) -> Game:
        """The same against critics over random features. Columns stay where the generator began."""
        from understudy.nets.duel import Truth

        rows, units = max(problem.rows, 1), _units(moments)
        means = _arranged(moments) / rows
        noise = np.full(units.size, moments.sigma / rows)
        return self._played(problem, state, Truth(units, means, noise, np.ones(units.size)), rng)

    def _played(self, problem: Problem, state: Game, truth: Truth, rng: Rng) -> Game:
        """All rounds against critics of noisy means."""
        from understudy.nets.critics import Objective, reach
        from understudy.nets.duel import Best, Regularised, duel, match
        from understudy.nets.leader import Diverged

        assert state.trained is not None
        objective, past, kept = Objective(self.objective), self._past, list(state.kept)
        critics: Critics = Best(objective, truth)
        most = reach(objective, truth.features, truth.weights)
        if self.regularised is not None:
            critics, most = Regularised(self.rounds, self.regularised), 1.0
        player = self._player(problem, most)

        def answer(trained: Trained, critic: Any, round: int, key: Any) -> Trained:
            nonlocal past
            past = past.plus(np.asarray(critic))
            if self.play == MATCHING:
                wave = (1 + math.cos(math.pi * min(1.0, round / self.rounds))) / 2
                rate = self.rate * (_LAST_RATE + (1 - _LAST_RATE) * wave)  # falls along a cosine
                return match(player, trained, truth.features, critic, rate, round, key)
            return player.follow(trained, truth.features, past.leader(rng), round, key)[0]

        game = duel(player, state.trained, truth, critics, answer, self.rounds, rng)
        try:
            for round, trained, after, worst in game:
                state, critics = replace(state, trained=trained), after
                if round > self._first:
                    kept.append(self._drawn(player, trained, rng))
                note = f"worst error about {worst:.4f} on what was measured"
                self._say(problem, "training", round, note)
        except Diverged as error:
            return self._stopped(problem, replace(state, kept=tuple(kept)), error, rng)
        done = replace(state, past=past, kept=tuple(kept), records=kept[-1])
        return replace(done, round=self.rounds, critics=critics)

    def _answered(self, problem: Problem, state: Game, answers: Answers, rng: Rng) -> Game:
        """One round against critics that were paid for."""
        from understudy.nets.critics import Cells, Conjunctions
        from understudy.nets.leader import Diverged

        assert state.trained is not None
        past = state.past or self._past
        literals, round = state.literals, state.round + 1
        if self.features:
            features: Features = Cells(problem.shape, self.features)
            past = past.plus(_joined(features, answers))
            critic: Any = past.leader(rng)
        else:
            literals, theta = _picked(problem, answers, literals, self.rounds * len(answers))
            past = past.plus(theta)
            padded = _padded(problem, literals, theta.size)
            features = Conjunctions(theta.size, padded.shape[1])
            critic = (padded, past.leader(rng))
        player = self._player(problem)
        try:
            trained, loss = player.follow(state.trained, features, critic, round, _key(rng))
        except Diverged as error:
            return self._stopped(problem, state, error, rng)
        records = self._drawn(player, trained, rng)
        kept, picks = state.kept, state.picks
        if self.whole or round > self._first:
            # Whoever picks one query a round is judged by the records that it was picked against.
            alone = not self.features and not self.whole and len(answers) == 1
            kept = (*kept, state.records if alone else records)
            picks = (*picks, _pick(problem, state.records, answers[0])) if alone else ()
        self._say(problem, "playing", round, f"loss {loss:.4g}")
        done = replace(state, trained=trained, past=past, literals=literals)
        return replace(done, round=round, records=records, kept=kept, picks=picks)

    def _stopped(self, problem: Problem, state: Game, error: Exception, rng: Rng) -> Game:
        """The last good round is the result, where no round is kept yet; nothing more is learned."""
        assert state.trained is not None
        warnings.warn(
            f"{error}. The last good round is kept, and nothing more is asked of the data",
            RuntimeWarning,
            stacklevel=2,
        )
        kept = state.kept or (
            self._player(problem).records(state.trained, self.records, _key(rng)),
        )
        return replace(state, kept=kept, records=kept[-1], picks=(), diverged=True)

    # -- what they share -------------------------------------------------------------------------

    def _say(self, problem: Problem, stage: str, round: int, note: str) -> None:
        if round % _OFTEN == 0 or round == self.rounds:
            problem.watch(Progress(stage, round - 1, self.rounds, note))

    @property
    def _first(self) -> int:
        """The rounds after this one are kept."""
        return math.floor(self.rounds * (1 - self.keep))

    @property
    def _past(self) -> Past:
        """No critics yet."""
        from understudy.nets.leader import Past, Play

        return Past(Play.FTL if self.play == MATCHING else Play(self.play), self.history)

    @property
    def _each(self) -> int:
        """Records of one round, so that those of the kept rounds are about `records`."""
        each = math.ceil(self.records / max(1, math.ceil(self.rounds * self.keep)))
        return max(1, each if self.features else min(_MOST, each))

    def _drawn(self, player: Player, trained: Trained, rng: Rng) -> Records:
        """A round's records, in as few bytes as their codes need."""
        codes = player.records(trained, self._each, _key(rng))
        return codes.astype(np.min_scalar_type(max(player.generator.shape)))

    def _player(self, problem: Problem, reach: float = 1.0) -> Player:
        from understudy.nets.generator import Generator
        from understudy.nets.leader import Player

        generator = Generator(problem.shape, self.latent, self.width, self.blocks)
        matching = self.play == MATCHING
        return Player(
            generator,
            self.steps,
            self.batch,
            self.batch if matching and not self.questions else _SEEN * self.batch,
            self.rate,
            self.eta / reach,
            self.scale if self._past.play.perturbed else 0.0,
        )


def _key(rng: Rng) -> Any:
    from understudy.nets.leader import key_of

    return key_of(rng)


def _pick(problem: Problem, records: Records, answer: Answer) -> Pick:
    """A picked cell and the rows that the records, scaled to the table's number, have in it."""
    assert isinstance(answer, MeasuredCell)
    inside = (records[:, answer.clique] == answer.cell.index).all(axis=1).mean()
    return answer, float(problem.rows * inside)


def _believed(problem: Problem, tables: tuple[Measured, ...]) -> tuple[list[Floats], list[Floats]]:
    """(counts, their standard deviations) of every table, shrunk to what independence expects.

    A cell with noisy count y, expected count b and ratio e (`understudy.models.blocks`) is believed to
    hold the m with m + e·ln(m/b) = y, that is m = e·ω(y/e + ln(b/e)), ω Wright's function, with
    the standard deviation σ·√(m/(m + e)) that is left. Critics of noisy means would make the generator
    learn the noise of tables that have more cells than rows.
    """
    from scipy.special import wrightomega

    columns, found = beliefs(problem.shape, tables, problem.rows)
    whole = {belief.clique: belief for belief in found if belief.labels is None}
    means, noise = [], []
    for table in tables:
        shape = tuple(problem.shape[i] for i in table.clique)
        if len(table.clique) == 1:
            means.append(np.asarray(columns[table.clique[0]], np.float64))
            noise.append(np.full(shape, table.sigma))
            continue
        belief = whole[table.clique]
        expected = np.maximum(belief.expected, _NONE)
        ratio = np.maximum(np.broadcast_to(belief.ratio, expected.shape), _NONE)
        counts = ratio * wrightomega(belief.values / ratio + np.log(expected / ratio))
        means.append(counts.reshape(shape))
        noise.append((table.sigma * np.sqrt(counts / (counts + ratio)) + _NONE).reshape(shape))
    return means, noise


def _consistent(cliques: Sequence[Clique], means: Sequence[Floats]) -> list[Floats]:
    """Tables scaled in turn along their axes to the columns' own counts.

    Sums over many cells add up the noise of all; what is known of a column, all tables together, is far
    better than what one of them says of it.
    """
    columns = {
        clique[0]: mean for clique, mean in zip(cliques, means, strict=True) if len(clique) == 1
    }
    found: list[Floats] = []
    for clique, mean in zip(cliques, means, strict=True):
        table = np.asarray(mean, np.float64)
        for _ in range(_SCALED if len(clique) > 1 else 0):
            for axis, column in enumerate(clique):
                others = tuple(k for k in range(table.ndim) if k != axis)
                have = table.sum(axis=others, keepdims=True)
                want = columns[column].reshape(have.shape)
                table = table * np.where(have > _NONE, want / np.maximum(have, _NONE), 1.0)
        found.append(table)
    return found


def _chosen(problem: Problem, model: Empirical, columns: Sequence[Floats]) -> Empirical:
    """As many records as there are rows, with these columns; see the module."""
    weights = np.ones(model.size)
    for _ in range(_SCALED):
        for codes, column in zip(model.codes, columns, strict=True):
            have = np.bincount(codes, weights, column.size)
            want = column * (weights.sum() / column.sum())
            weights *= np.where(have > 0, want / np.maximum(have, _NONE), 1.0)[codes]
    size = min(model.size, max(problem.rows, _FEWEST))
    weighed = Weighted(
        problem.shape, model.codes, weights.astype(np.float32), problem.cliques, swaps_for(size)
    )
    return Empirical(problem.shape, tuple(weighed.sample(size, np.random.default_rng(0))))


def _units(moments: MeasuredMoments) -> Units:
    """The public features as a layer over the whole one-hot code, marginal by marginal."""
    from understudy.nets.critics import Units

    maps = moments.maps
    offsets = np.cumsum([0, *maps.shape])
    weights = np.zeros((int(offsets[-1]), maps.units * len(maps.cliques)))
    bias = np.zeros(maps.units * len(maps.cliques))
    for at, (clique, own) in enumerate(zip(maps.cliques, maps.weights, strict=True)):
        part = slice(at * maps.units, (at + 1) * maps.units)
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in clique])
        weights[rows, part] = own
        bias[part] = 0 if maps.kind == "fourier" else 1 - len(clique)
    return Units(maps.kind, weights, bias, maps.over, maps.kappa)


def _arranged(moments: MeasuredMoments) -> Floats:
    """From marginal by marginal to the order of a layer, in which all cosines come first."""
    parts = moments.values.reshape(len(moments.maps.cliques), -1, moments.maps.units)
    return np.moveaxis(parts, 1, 0).reshape(-1)


def _joined(features: Any, answers: Answers) -> Floats:
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
    problem: Problem, answers: Answers, before: tuple[tuple[int, ...], ...], capacity: int
) -> tuple[tuple[tuple[int, ...], ...], Floats]:
    """(all conjunctions so far, the critic of this round over them)."""
    offsets = np.cumsum([0, *problem.shape])
    literals, theta = list(before), np.zeros(capacity)
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

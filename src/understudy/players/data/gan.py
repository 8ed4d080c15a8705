"""A data player that is a generator network trained against a critic: DP-GAN.

It sees released numbers only: noisy columns, noisy gradients of the critic on the rows, and which
checkpoints were picked. Of the rows it knows nothing else, so both networks, the thresholds that
gradients are clipped to and all records are post-processing. After the last round hard records of the
chosen generators are listed and weighted so that their columns are the released ones.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Table
from understudy.errors import WorkError
from understudy.models import Measured, View, Weighted
from understudy.models.fitting import independent
from understudy.players.answers import Answer, Chosen, CriticGradient, kind_of
from understudy.players.base import Clique, DataPlayer, Kind, Problem
from understudy.progress import Progress

if TYPE_CHECKING:
    from understudy.nets.gan import Gan, Pace, Playing, Rows

__all__ = ["GanPlayer", "Grouping", "Task", "least_squares"]

Codes = NDArray[np.integer[Any]]

_LEAST, _MOST, _PER_ROW = 20_000, 200_000, 4
"""Records of the final model: so many for a row, within bounds."""
_SWEEPS = 10
_JUDGED = 10_000
"""Records of a checkpoint that is judged."""
_LARGEST = 20_000
"""Cells of a marginal by which checkpoints are judged."""
_LOOKED_AT = 512
"""Public rows, or made-up ones, whose gradients tell groups and thresholds."""
_RIDGE = 1.0
_POINTS = 200


@dataclass(frozen=True)
class Task:
    """What synthetic rows are for: predict `target` from the other columns.

    `estimator` has scikit-learn's fit(X, y) and predict(X); it is copied for every checkpoint, fitted
    on synthetic rows and judged on held-out private ones. `metric(y_true, y_predicted)` is better the
    higher it is, and `sensitivity` is how far one row moves it: declared, because nothing can check it.
    Without a metric right predictions are counted, of which one row moves one. X holds the features of
    the other columns as the critic sees them, y the codes of the target.
    """

    target: int
    estimator: Any = None
    metric: Callable[[Any, Any], float] | None = None
    sensitivity: float = 1.0


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of weights from public gradients: who belongs where, thresholds, sizes."""

    members: tuple[NDArray[np.int32], ...] | None
    thresholds: tuple[float, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class State:
    """Both networks and what was released; `history` holds (step, loss of fakes, thresholds)."""

    measured: tuple[Measured, ...] = ()
    shares: tuple[Table, ...] = ()
    gan: Gan | None = None
    playing: Playing | None = None
    tables: tuple[Any, ...] = ()
    biases: Any = None
    grouping: Grouping | None = None
    step: int = 0
    history: tuple[tuple[int, float, float, tuple[float, ...]], ...] = ()
    checkpoints: tuple[Any, ...] = ()
    chosen: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class GanView(View):
    """What the query player is shown: the critic, the groups, and at the end the candidates."""

    network: Rows | None
    thresholds: tuple[float, ...]
    members: tuple[NDArray[np.int32], ...] | None
    shares: tuple[Table, ...]
    scorers: tuple[Callable[[NDArray[Any]], float], ...] | None = None
    sensitivity: float = 1.0
    cliques: tuple[Clique, ...] = ()
    tables: tuple[tuple[Table, ...], ...] = ()

    def marginal(self, clique: Clique) -> Table:
        """Independent columns: training is judged by the critic, not by tables."""
        table = np.ones(())
        for i in clique:
            table = np.multiply.outer(table, self.shares[i])
        return table


@dataclass(frozen=True)
class GanPlayer(DataPlayer[State]):
    """Trains for `steps` critic steps, a generator step after every `critic_steps` of them.

    `kinds` and `nullable` say how columns are encoded (`understudy.nets.coding`); the generator that is
    kept is a running average. `public` rows, if any, are trained on first, without privacy.
    """

    steps: int
    kinds: tuple[str, ...]
    nullable: tuple[bool, ...]
    pace: Pace
    width: int = 128
    blocks: int = 1
    latent: int = 64
    critic_width: int = 128
    critic_layers: int = 2
    loss: str = "non-saturating"
    conditioned: bool = True
    critic_steps: int = 1
    grouping: Grouping | None = None
    groups: int = 1
    adapt: float = 0.0
    quantile: float = 0.5
    checkpoints: int = 0
    task: Task | None = None
    public: tuple[Codes, ...] | None = field(default=None, repr=False)
    public_steps: int = 500
    slots: int = 256

    accepts = frozenset({Kind.TABLE, Kind.GRADIENT, Kind.CHOICE})
    requires = frozenset({Kind.GRADIENT})
    shows = GanView

    def start(self, problem: Problem) -> State:
        """Nothing measured and nothing trained; the critic's rows are known to stay apart."""
        from understudy.nets.gan import Rows, require_apart

        gan = self.architecture(problem.shape)
        shares = [np.full(size, 1 / size) for size in problem.shape]
        tables = tuple(gan.coding.tables(shares))
        require_apart(Rows(gan, gan.start(0, shares).critic, tables, self.slots))
        return State()

    def view(self, problem: Problem, state: State) -> GanView:
        """The critic as it stands; after the last step the checkpoints, for a choice."""
        shares = state.shares or tuple(np.full(size, 1 / size) for size in problem.shape)
        if state.gan is None or state.playing is None or state.grouping is None:
            return GanView(None, (1.0,), None, shares)
        grouping = state.grouping
        shown = GanView(self._network(state), grouping.thresholds, grouping.members, shares)
        if state.step < self.steps or not state.checkpoints:
            return shown
        made = [self._records(state, each, _JUDGED) for each in state.checkpoints]
        if self.task is not None:
            scorers = tuple(self._scorer(state, self.task, codes) for codes in made)
            return replace(shown, scorers=scorers, sensitivity=self.task.sensitivity)
        judged = tuple(c for c in problem.cliques if _cells(problem, c) <= _LARGEST)
        judged = judged or tuple((i,) for i in range(len(problem.shape)))
        tables = tuple(tuple(_table(problem, codes, c) for c in judged) for codes in made)
        return replace(shown, cliques=judged, tables=tables)

    def respond(
        self, problem: Problem, state: State, answers: tuple[Answer, ...], rng: np.random.Generator
    ) -> State:
        """Columns start the networks; a gradient is a step of both; a choice is remembered."""
        key = int(rng.integers(2**31))
        for answer in answers:
            match answer:
                case CriticGradient():
                    state = self._step(state, answer, key)
                case Chosen(checkpoints):
                    state = replace(state, chosen=checkpoints)
                case Measured() if state.gan is None:
                    state = replace(state, measured=(*state.measured, answer))
                case _:
                    raise WorkError(f"training has begun; it learns nothing from {kind_of(answer)}")
        return state if state.gan is not None else self._begin(problem, state, key)

    def finish(self, problem: Problem, state: State) -> Weighted:
        """Records of the chosen generators in equal parts, weighted to the released columns."""
        assert state.playing is not None
        wanted = min(_MOST, max(_LEAST, _PER_ROW * problem.rows))
        chosen = [state.checkpoints[i] for i in state.chosen] or [state.playing.average]
        each = max(1, wanted // len(chosen))
        parts = [self._records(state, params, each, k) for k, params in enumerate(chosen)]
        codes = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        unsigned = tuple(
            column.astype(np.min_scalar_type(max(size - 1, 1)))
            for column, size in zip(codes, problem.shape, strict=True)
        )
        return Weighted(problem.shape, unsigned, _raked(codes, state.shares), problem.cliques)

    def diagnostics(self, state: State) -> Mapping[str, Any]:
        """How training went, at up to 200 steps: losses and thresholds are released numbers."""
        every = max(1, len(state.history) // _POINTS)
        kept = state.history[::every]
        if not kept:
            return {}
        return {
            "training": {
                "step": [point[0] for point in kept],
                "critic_loss_on_made_up_rows": [_plain(point[1]) for point in kept],
                "generator_loss": [_plain(point[2]) for point in kept],
                "thresholds": [[_plain(c) for c in point[3]] for point in kept],
            },
            **({"chosen_checkpoints": list(state.chosen)} if state.chosen else {}),
        }

    # -- how it is done --------------------------------------------------------------------------

    def architecture(self, shape: tuple[int, ...]) -> Gan:
        """Both networks, before anything is known of the rows."""
        from understudy.nets.coding import Coding
        from understudy.nets.gan import Gan, Loss

        coding = Coding(shape, self.kinds, self.nullable)
        return Gan(
            coding, self.latent, self.width, self.blocks, self.critic_width, self.critic_layers,
            Loss(self.loss), self.conditioned,
        )  # fmt: skip

    def grouping_of(self, shape: tuple[int, ...], public: Sequence[Codes]) -> Grouping:
        """Groups as public rows show them at the start, before anything is released."""
        from understudy.nets.gan import Rows

        gan = self.architecture(shape)
        pairs = zip(public, shape, strict=True)
        shares = [np.bincount(c, minlength=size).astype(np.float64) + 1.0 for c, size in pairs]
        playing = gan.start(0, [s / s.sum() for s in shares])
        tables = tuple(gan.coding.tables(shares))
        rows = Rows(gan, playing.critic, tables, self.slots)
        return grouped(rows, [np.asarray(c)[:_LOOKED_AT] for c in public], self.groups)

    def _begin(self, problem: Problem, state: State, key: int) -> State:
        rows = max(problem.rows, 1)
        known = independent(problem.shape, state.measured, rows).one_ways
        shares = tuple(np.maximum(t, 1e-9) / np.maximum(t, 1e-9).sum() for t in known)
        gan = self.architecture(problem.shape)
        playing = gan.start(key, shares)
        if self.public is not None:
            playing = self._warm(problem, gan, playing, shares, key)
        begun = replace(
            state,
            shares=shares,
            gan=gan,
            playing=playing,
            tables=tuple(gan.coding.tables(shares)),
            biases=gan.coding.start(shares),
        )
        return replace(begun, grouping=self.grouping or self._group(begun))

    def _warm(
        self, problem: Problem, gan: Gan, playing: Playing, shares: tuple[Table, ...], key: int
    ) -> Playing:
        from understudy.nets.gan import Playing, train_without_privacy

        assert self.public is not None
        trained = train_without_privacy(
            gan, self.pace, playing, self.public, shares,
            steps=self.public_steps, key=key, critic_steps=self.critic_steps,
            report=lambda done, total: problem.watch(
                Progress("training on public rows", done, total)
            ),
        )  # fmt: skip
        return Playing.fresh(trained.generator, trained.critic)  # optimisers start anew

    def _group(self, state: State) -> Grouping:
        """Groups and thresholds from gradients of records that the generator makes up itself."""
        assert state.playing is not None
        made = self.public or self._records(state, state.playing.average, _LOOKED_AT)
        return grouped(
            self._network(state), [np.asarray(c)[:_LOOKED_AT] for c in made], self.groups
        )

    def _network(self, state: State) -> Rows:
        from understudy.nets.gan import Rows

        assert state.gan is not None
        assert state.playing is not None
        return Rows(state.gan, state.playing.critic, state.tables, self.slots)

    def _step(self, state: State, answer: CriticGradient, key: int) -> State:
        from understudy.nets.clipping import adapted
        from understudy.nets.gan import critic_step, generator_step, temperature

        gan, playing, grouping = state.gan, state.playing, state.grouping
        assert gan is not None
        assert playing is not None
        assert grouping is not None
        heat, number = np.float32(temperature(state.step, self.steps)), np.uint32(key)
        real = answer.gradient
        playing, fake = critic_step(gan, self.pace, playing, real, number, state.biases, heat)
        step, loss = state.step + 1, math.nan
        if step % self.critic_steps == 0:
            playing, value = generator_step(
                gan, self.pace, playing, number, state.biases, heat
            )  # fmt: skip
            loss = float(value)
        limits = grouping.thresholds
        if self.adapt and answer.below:
            limits = adapted(limits, answer.below, self.quantile, self.adapt)
        kept = state.checkpoints
        if step in self._stops():
            kept = (*kept, playing.average)
        return replace(
            state,
            playing=playing,
            step=step,
            grouping=replace(grouping, thresholds=limits),
            history=(*state.history, (step, float(fake), loss, limits)),
            checkpoints=kept,
        )

    def _stops(self) -> frozenset[int]:
        """The steps whose generators are kept: evenly over the second half."""
        points = np.linspace(self.steps // 2, self.steps, self.checkpoints + 1)[1:]
        return frozenset(round(float(p)) for p in points)

    def _records(self, state: State, params: Any, count: int, key: int = 0) -> tuple[Codes, ...]:
        from understudy.nets.gan import records

        assert state.gan is not None
        # A fixed key: which records stand for a generator is of no consequence, but repeatable.
        return records(state.gan, params, count, key, state.shares)

    def _scorer(
        self, state: State, task: Task, codes: tuple[Codes, ...]
    ) -> Callable[[NDArray[Any]], float]:
        """Fit on a checkpoint's records; what comes back is public and judges rows."""

        def features(columns: Sequence[Codes]) -> Table:
            parts = [state.tables[i][c] for i, c in enumerate(columns) if i != task.target]
            return np.concatenate(parts, axis=1).astype(np.float64)

        predictor = least_squares() if task.estimator is None else copy.deepcopy(task.estimator)
        predictor.fit(features(codes), np.asarray(codes[task.target]))

        def score(rows: NDArray[Any]) -> float:
            if not len(rows):
                return 0.0
            truth = rows[:, task.target]
            found = predictor.predict(features([rows[:, i] for i in range(rows.shape[1])]))
            if task.metric is not None:
                return float(task.metric(truth, found))
            return float((np.asarray(found) == truth).sum())

        return score


class least_squares:  # noqa: N801 - an estimator, made by calling it
    """Ridge regression on indicators of the classes: quick, and the same every time."""

    def fit(self, features: Table, target: NDArray[Any]) -> Any:
        """One linear function per class."""
        self.classes = np.unique(target)
        wide = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        hot = (np.asarray(target)[:, None] == self.classes).astype(np.float64)
        gram = wide.T @ wide + _RIDGE * np.eye(wide.shape[1])
        self.weights = np.linalg.solve(gram, wide.T @ hot)
        return self

    def predict(self, features: Table) -> NDArray[Any]:
        """The class with the largest function."""
        wide = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        return self.classes[np.argmax(wide @ self.weights, axis=1)]


def grouped(network: Rows, codes: Sequence[Codes], groups: int) -> Grouping:
    """Groups by weight clustering on public rows, thresholds their median norms."""
    from understudy.nets.clipping import clusters, norms, thresholds
    from understudy.nets.gan import public_gradient

    layers = network.layers
    count = len(codes[0])
    members = None
    if groups > 1:
        flat = clusters(public_gradient(network, codes), groups)
        members, at = [], 0
        for inputs, outputs in layers:
            size = (inputs + 1) * outputs
            members.append(flat[at : at + size].reshape(inputs + 1, outputs))
            at += size
        members = tuple(members)
    matrix = np.stack([np.asarray(c) for c in codes], axis=1)
    rows = np.resize(matrix, (-(-count // network.slots) * network.slots, matrix.shape[1]))
    found = [
        norms(network.factors(rows[i : i + network.slots]), members, groups)
        for i in range(0, len(rows), network.slots)
    ]
    sizes = (
        (sum((i + 1) * o for i, o in layers),)
        if members is None
        else tuple(int(sum((m == j).sum() for m in members)) for j in range(groups))
    )
    return Grouping(members, thresholds(np.concatenate(found)[:count]), sizes)


def _raked(codes: Sequence[Codes], shares: Sequence[Table]) -> NDArray[np.float32]:
    """Weights under which every column has the released shares, by proportional fitting."""
    weights = np.full(codes[0].size, 1.0 / codes[0].size)
    for _ in range(_SWEEPS):
        for column, wanted in zip(codes, shares, strict=True):
            have = np.bincount(column, weights, wanted.size)
            factors = np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)
            weights *= factors[column]
            weights /= weights.sum()
    return weights.astype(np.float32)


def _cells(problem: Problem, clique: Clique) -> int:
    return math.prod(problem.shape[i] for i in clique)


def _table(problem: Problem, codes: Sequence[Codes], clique: Clique) -> Table:
    shape = tuple(problem.shape[i] for i in clique)
    packed = np.ravel_multi_index(tuple(codes[i] for i in clique), shape)
    return np.bincount(packed, minlength=math.prod(shape)).reshape(shape) / codes[0].size


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None

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

from understudy._types import Codes, Table
from understudy.errors import WorkError
from understudy.models import Empirical, Measured, View, Weighted
from understudy.models.fitting import independent
from understudy.players.base import (
    Answers,
    Chosen,
    Clique,
    CriticGradient,
    DataPlayer,
    Kind,
    Problem,
    kind_of,
)
from understudy.progress import Progress
from understudy.queries import cells

if TYPE_CHECKING:
    from understudy.nets.gan import Gan, Pace, Playing, Rows

__all__ = ["GanPlayer", "Grouping", "Task", "grouping_of", "least_squares"]

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
class Networks:
    """Both networks, what they were started from, and how rows' gradients are clipped."""

    gan: Gan
    shares: tuple[Table, ...]
    tables: tuple[Any, ...]
    biases: Any
    playing: Playing
    grouping: Grouping | None = None

    @classmethod
    def begun(cls, gan: Gan, key: int, shares: Sequence[Table]) -> Networks:
        """At the released shares of the columns."""
        return cls(
            gan,
            tuple(shares),
            tuple(gan.coding.tables(shares)),
            gan.coding.start(shares),
            gan.start(key, shares),
        )

    @property
    def rows(self) -> Rows:
        """The critic as rows meet it."""
        from understudy.nets.gan import Rows

        return Rows(self.gan, self.playing.critic, self.tables)

    def records(self, params: Any, number: int, key: int = 0) -> tuple[NDArray[np.int64], ...]:
        """Of a generator. A fixed key: which records stand for it is of no consequence."""
        from understudy.nets.gan import records

        return records(self.gan, params, number, key, self.shares)


@dataclass(frozen=True, eq=False)
class State:
    """What was released; `history` holds (step, loss of fakes, of the generator, thresholds)."""

    measured: tuple[Measured, ...] = ()
    networks: Networks | None = None
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

    The generator that is kept is a running average. `public` rows, if any, are trained on first,
    without privacy.
    """

    steps: int
    gan: Gan
    pace: Pace
    critic_steps: int = 1
    grouping: Grouping | None = None
    groups: int = 1
    adapt: float = 0.0
    quantile: float = 0.5
    checkpoints: int = 0
    task: Task | None = None
    public: tuple[Codes, ...] | None = field(default=None, repr=False)
    public_steps: int = 500

    accepts = frozenset({Kind.TABLE, Kind.GRADIENT, Kind.CHOICE})
    requires = frozenset({Kind.GRADIENT})
    shows = GanView

    def start(self, problem: Problem) -> State:
        """Nothing measured and nothing trained; the critic's rows are known to stay apart."""
        from understudy.nets.gan import require_apart

        require_apart(Networks.begun(self.gan, 0, problem.uniform).rows)
        return State()

    def view(self, problem: Problem, state: State) -> GanView:
        """The critic as it stands; after the last step the checkpoints, for a choice."""
        networks = state.networks
        grouping = networks.grouping if networks is not None else None
        if networks is None or grouping is None:
            return GanView(None, (1.0,), None, tuple(problem.uniform))
        shown = GanView(networks.rows, grouping.thresholds, grouping.members, networks.shares)
        if state.step < self.steps or not state.checkpoints:
            return shown
        made = [networks.records(each, _JUDGED) for each in state.checkpoints]
        if self.task is not None:
            scorers = tuple(_scorer(networks.tables, self.task, codes) for codes in made)
            return replace(shown, scorers=scorers, sensitivity=self.task.sensitivity)
        judged = tuple(c for c in problem.cliques if cells(problem.shape, c) <= _LARGEST)
        judged = judged or problem.columns
        records = [Empirical.of(problem.shape, np.stack(codes, axis=1)) for codes in made]
        tables = tuple(tuple(model.marginals(judged)) for model in records)
        return replace(shown, cliques=judged, tables=tables)

    def respond(
        self, problem: Problem, state: State, answers: Answers, rng: np.random.Generator
    ) -> State:
        """Columns start the networks; a gradient is a step of both; a choice is remembered."""
        key = int(rng.integers(2**31))
        for answer in answers:
            match answer:
                case CriticGradient() if state.networks is not None:
                    state = self._step(state, state.networks, answer, key)
                case Chosen(checkpoints):
                    state = replace(state, chosen=checkpoints)
                case Measured() if state.networks is None:
                    state = replace(state, measured=(*state.measured, answer))
                case _:
                    raise WorkError(f"training has begun; it learns nothing from {kind_of(answer)}")
        if state.networks is not None:
            return state
        return replace(state, networks=self._begin(problem, state.measured, key))

    def finish(self, problem: Problem, state: State) -> Weighted:
        """Records of the chosen generators in equal parts, weighted to the released columns."""
        networks = state.networks
        assert networks is not None
        wanted = min(_MOST, max(_LEAST, _PER_ROW * problem.rows))
        chosen = [state.checkpoints[i] for i in state.chosen] or [networks.playing.average]
        each = max(1, wanted // len(chosen))
        parts = [networks.records(params, each, k) for k, params in enumerate(chosen)]
        codes = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        unsigned = tuple(
            column.astype(np.min_scalar_type(max(size - 1, 1)))
            for column, size in zip(codes, problem.shape, strict=True)
        )
        return Weighted(problem.shape, unsigned, _raked(codes, networks.shares), problem.cliques)

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

    def _begin(self, problem: Problem, measured: tuple[Measured, ...], key: int) -> Networks:
        known = independent(problem.shape, measured, max(problem.rows, 1)).one_ways
        shares = tuple(np.maximum(t, 1e-9) / np.maximum(t, 1e-9).sum() for t in known)
        begun = Networks.begun(self.gan, key, shares)
        if self.public is not None:
            begun = replace(begun, playing=self._warm(problem, begun, self.public, key))
        if self.grouping is not None:
            return replace(begun, grouping=self.grouping)
        # From gradients of public rows, or of records that the generator makes up itself.
        looked_at = self.public or begun.records(begun.playing.average, _LOOKED_AT)
        return replace(begun, grouping=_grouped(begun.rows, looked_at, self.groups))

    def _warm(
        self, problem: Problem, begun: Networks, public: tuple[Codes, ...], key: int
    ) -> Playing:
        from understudy.nets.gan import Playing, train_without_privacy

        trained = train_without_privacy(
            self.gan,
            self.pace,
            begun.playing,
            public,
            begun.shares,
            steps=self.public_steps,
            key=key,
            critic_steps=self.critic_steps,
            report=lambda done, total: problem.watch(
                Progress("training on public rows", done, total)
            ),
        )
        return Playing.fresh(trained.generator, trained.critic)  # optimisers start anew

    def _step(self, state: State, networks: Networks, answer: CriticGradient, key: int) -> State:
        from understudy.nets.clipping import adapted
        from understudy.nets.gan import critic_step, generator_step, temperature

        gan, biases, grouping = networks.gan, networks.biases, networks.grouping
        assert grouping is not None
        heat, number = np.float32(temperature(state.step, self.steps)), np.uint32(key)
        playing, fake = critic_step(
            gan, self.pace, networks.playing, answer.gradient, number, biases, heat
        )
        step, loss = state.step + 1, math.nan
        if step % self.critic_steps == 0:
            playing, value = generator_step(gan, self.pace, playing, number, biases, heat)
            loss = float(value)
        limits = grouping.thresholds
        if self.adapt and answer.below:
            limits = adapted(limits, answer.below, self.quantile, self.adapt)
        kept = (*state.checkpoints, playing.average) if step in self._stops() else state.checkpoints
        grouping = replace(grouping, thresholds=limits)
        return replace(
            state,
            networks=replace(networks, playing=playing, grouping=grouping),
            step=step,
            history=(*state.history, (step, float(fake), loss, limits)),
            checkpoints=kept,
        )

    def _stops(self) -> frozenset[int]:
        """The steps whose generators are kept: evenly over the second half."""
        points = np.linspace(self.steps // 2, self.steps, self.checkpoints + 1)[1:]
        return frozenset(round(float(p)) for p in points)


# -- judging checkpoints by a task ---------------------------------------------------------------


def _scorer(
    tables: Sequence[NDArray[Any]], task: Task, codes: Sequence[NDArray[Any]]
) -> Callable[[NDArray[Any]], float]:
    """Fit on a checkpoint's records; what comes back is public and judges rows."""

    def features(columns: Sequence[NDArray[Any]]) -> Table:
        parts = [tables[i][c] for i, c in enumerate(columns) if i != task.target]
        return np.concatenate(parts, axis=1).astype(np.float64)

    predictor = least_squares() if task.estimator is None else copy.deepcopy(task.estimator)
    predictor.fit(features(codes), np.asarray(codes[task.target]))

    def score(rows: NDArray[Any]) -> float:
        if not len(rows):
            return 0.0
        truth = rows[:, task.target]
        guessed = predictor.predict(features([rows[:, i] for i in range(rows.shape[1])]))
        if task.metric is not None:
            return float(task.metric(truth, guessed))
        return float((np.asarray(guessed) == truth).sum())

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


# -- groups of weights ---------------------------------------------------------------------------


def grouping_of(gan: Gan, public: Sequence[Codes], groups: int) -> Grouping:
    """Groups as public rows show them at the start, before anything is released."""
    pairs = zip(public, gan.coding.shape, strict=True)
    counts = [np.bincount(c, minlength=size).astype(np.float64) + 1.0 for c, size in pairs]
    begun = Networks.begun(gan, 0, [table / table.sum() for table in counts])
    return _grouped(begun.rows, public, groups)


def _grouped(network: Rows, codes: Sequence[NDArray[Any]], groups: int) -> Grouping:
    """Groups by weight clustering on public rows, thresholds their median norms."""
    from understudy.nets.clipping import clusters, norms, thresholds
    from understudy.nets.gan import public_gradient

    codes = [np.asarray(column)[:_LOOKED_AT] for column in codes]
    sizes = [(inputs + 1) * outputs for inputs, outputs in network.layers]
    members = None
    if groups > 1:
        flat = np.split(clusters(public_gradient(network, codes), groups), np.cumsum(sizes)[:-1])
        members = tuple(
            part.reshape(inputs + 1, outputs)
            for part, (inputs, outputs) in zip(flat, network.layers, strict=True)
        )
    matrix = np.stack(codes, axis=1)
    rows = np.resize(matrix, (-(-len(matrix) // network.slots) * network.slots, matrix.shape[1]))
    found = [
        norms(network.factors(rows[i : i + network.slots]), members, groups)
        for i in range(0, len(rows), network.slots)
    ]
    limits = thresholds(np.concatenate(found)[: len(matrix)])
    if members is None:
        return Grouping(None, limits, (sum(sizes),))
    own = tuple(int(sum((m == j).sum() for m in members)) for j in range(groups))
    return Grouping(members, limits, own)


# -- records -------------------------------------------------------------------------------------


def _raked(codes: Sequence[NDArray[Any]], shares: Sequence[Table]) -> NDArray[np.float32]:
    """Weights under which every column has the released shares, by proportional fitting."""
    weights = np.full(codes[0].size, 1.0 / codes[0].size)
    for _ in range(_SWEEPS):
        for column, wanted in zip(codes, shares, strict=True):
            have = np.bincount(column, weights, wanted.size)
            factors = np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)
            weights *= factors[column]
            weights /= weights.sum()
    return weights.astype(np.float32)


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None

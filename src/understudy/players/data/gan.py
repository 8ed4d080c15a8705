"""A data player that is a generator network trained against a critic: DP-GAN.

It sees released numbers only: noisy columns, noisy gradients of the critic on the rows, and which
checkpoints were picked; so all of it is post-processing. After the last round hard records of the
chosen generators are listed and weighted so that their columns are the released ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Rng, Table, Whole
from understudy.errors import WorkError
from understudy.models import Measured, View, Weighted
from understudy.models.fitting import independent
from understudy.players.base import (
    Answers,
    Chosen,
    CriticGradient,
    DataPlayer,
    Kind,
    Problem,
    kind_of,
)
from understudy.players.data.checkpoints import (
    Candidates,
    Clusters,
    Task,
    by_clusters,
    by_marginals,
    by_task,
)
from understudy.players.data.grouping import LOOKED_AT, Grouping, grouped, parted, regrouped
from understudy.progress import Progress

if TYPE_CHECKING:
    from understudy.nets.gan import Gan, Pace, Playing, Rows

_LEAST, _MOST, _PER_ROW = 20_000, 200_000, 4
"""Records of the final model: so many for a row, within bounds."""
_SWEEPS = 10
_JUDGED = 10_000  # Records of a checkpoint that is judged
_POINTS = 200


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

    def records(self, params: Any, number: int, key: int = 0) -> tuple[Whole, ...]:
        """Of a generator. A fixed key: which records stand for it is of no consequence."""
        from understudy.nets.gan import records

        return records(self.gan, params, number, key, self.shares)


@dataclass(frozen=True, eq=False)
class State:
    """What was released; `history` holds (step, loss of fakes, of the generator, groups)."""

    measured: tuple[Measured, ...] = ()
    networks: Networks | None = None
    step: int = 0
    history: tuple[tuple[int, float, float, Grouping], ...] = ()
    checkpoints: tuple[Any, ...] = ()
    chosen: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class GanView(View):
    """What the query player is shown: the critic, the groups, and at the end the candidates."""

    network: Rows | None
    grouping: Grouping | None
    columns: tuple[Table, ...]
    candidates: Candidates | None = None

    def marginal(self, clique: Clique) -> Table:
        """Independent columns: training is judged by the critic, not by tables."""
        table = np.ones(())
        for i in clique:
            table = np.multiply.outer(table, self.columns[i])
        return table


@dataclass(frozen=True)
class GanPlayer(DataPlayer[State]):
    """Trains for `steps` critic steps, a generator step after every `critic_steps` of them.

    The generator that is kept is a running average. `public` rows, if any, are trained on first,
    without privacy. Weights are clipped in `groups`, found after that and again every `regroup` steps.
    """

    steps: int
    gan: Gan
    pace: Pace
    critic_steps: int = 1
    groups: int = 1
    regroup: int = 100
    adapt: float = 0.0
    quantile: float = 0.5
    checkpoints: int = 0
    judge: Task | Clusters | None = None
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
        if networks is None:
            return GanView(None, None, tuple(problem.uniform))
        shown = GanView(networks.rows, networks.grouping, networks.shares)
        if state.step < self.steps or not state.checkpoints:
            return shown
        made = [networks.records(each, _JUDGED) for each in state.checkpoints]
        match self.judge:
            case Task():
                candidates = by_task(self.judge, networks.tables, made)
            case Clusters():
                candidates = by_clusters(self.judge, made)
            case None:
                candidates = by_marginals(problem, made)
        return replace(shown, candidates=candidates)

    def respond(self, problem: Problem, state: State, answers: Answers, rng: Rng) -> State:
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
                "thresholds": [[_plain(c) for c in point[3].thresholds] for point in kept],
                "scales": [[_plain(c) for c in point[3].scales] for point in kept],
            },
            **({"chosen_checkpoints": list(state.chosen)} if state.chosen else {}),
        }

    # -- how it is done --------------------------------------------------------------------------

    def _begin(self, problem: Problem, measured: tuple[Measured, ...], key: int) -> Networks:
        known = independent(problem.shape, measured, max(problem.rows, 1)).one_ways
        shares = tuple(np.maximum(t, 1e-9) / np.maximum(t, 1e-9).sum() for t in known)
        begun = Networks.begun(self.gan, key, shares)
        if self.public is not None:
            _, trained = parted(self.public)
            begun = replace(begun, playing=self._warm(problem, begun, trained, key))
        return replace(
            begun, grouping=grouped(begun.rows, self._looked_at(begun, key), self.groups)
        )

    def _looked_at(self, networks: Networks, key: int) -> tuple[NDArray[Any], ...]:
        """A batch of public rows that the critic was not warmed with, or of the generator's own."""
        if self.public is None:
            return networks.records(networks.playing.generator, LOOKED_AT, key)
        kept, _ = parted(self.public)
        drawn = np.random.default_rng(key).integers(len(kept[0]), size=LOOKED_AT)
        return tuple(column[drawn] for column in kept)

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
        if self.adapt and answer.below:
            limits = adapted(grouping.thresholds, answer.below, self.quantile, self.adapt)
            grouping = replace(grouping, thresholds=limits)
        history = (*state.history, (step, float(fake), loss, grouping))
        moved = replace(networks, playing=playing)
        if self.groups > 1 and step % self.regroup == 0 and step < self.steps:
            codes = self._looked_at(moved, key)
            grouping = regrouped(grouping, moved.rows, codes, self.groups)
        # Generators are kept at steps that lie evenly over the second half.
        stops = np.linspace(self.steps // 2, self.steps, self.checkpoints + 1)[1:].round()
        kept = (*state.checkpoints, playing.average) if step in stops else state.checkpoints
        return replace(
            state,
            networks=replace(moved, grouping=grouping),
            step=step,
            history=history,
            checkpoints=kept,
        )


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

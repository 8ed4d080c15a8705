"""`dpgan`: a generator network against a critic that is trained privately on the rows.

After Boob, Cummings, Kimpara, Tantipongpipat, Waites and Zimmerman (2018): rows are clipped one by one,
batches are Poisson samples over a public denominator, groups of weights are charged together, and the
number of steps is fixed before training by privacy loss distributions. Columns are measured first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from understudy.errors import require_extra
from understudy.game.methods.base import Design, Forecast, Limit, WarmMethod, between, one_of, whole
from understudy.players.data.checkpoints import Clusters, Task
from understudy.players.data.gan import GanPlayer
from understudy.players.query.critic import CriticSteps
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan, SampledGroups, Selection
from understudy.privacy.questions.best_models import Models, jensen_shannon_step

if TYPE_CHECKING:
    from understudy.nets.gan import Gan


_SIGMA = Limit(lambda s: 0.1 <= s <= 1000, "must lie between 0.1 and 1000; 1 to 4 is usual")
_RATE = Limit(lambda q: 0 < q <= 1, "must be above 0 and at most 1; 0.02 is usual")
_ADAPT = Limit(lambda a: 0 <= a <= 1, "must lie between 0 (off) and 1; 0.2 is usual")
_MOST_BITS = 15  # Whole numbers with up to so many values are written in bits
_ROWS = 20_000
_WATCH = 0.05  # Of a step's cost, what watching thresholds may take at most
_WORDS = 2**32


@dataclass(frozen=True)
class DPGANMethod(WarmMethod):
    """Public settings.

    steps          critic steps; with `sigma` (a noise multiplier) instead, as many as ε allows
    batch, rate    rows a step on average (needs a public number of rows), or the sampling rate; by
                   default 1024 rows, of an assumed 20 000 where their number is private
    loss           "non-saturating", or "wasserstein" with weights clipped to ±`box`
    critic_steps   critic steps for every step of the generator; each meets `fakes` made-up rows
    groups         groups of weights that are clipped by themselves, at most: found by clustering of
                   gradients on public rows, or on the generator's own, and again every `regroup` steps
    adapt          above 0 it moves thresholds towards the `quantile` of row norms, privately
    numbers        "real": numbers and dates are a tanh, small integers bits; "bins": one choice of
                   the schema's cells
    conditional    the generator is asked for values as often as their released shares
    columns        the share of the budget that goes to columns
    pick           that many of `checkpoints` are chosen privately, with a share `choice` of the budget;
                   0 takes the running average at the end
    selection      by what: "divergence" (Jensen-Shannon, of the workload's marginals); "clustering",
                   the cost on a `holdout` share of rows of as many `centres` by k-means; or "task", if
                   there is a `task`: the name of a column to be predicted (or a `Task`, in Python), on
                   held-out rows as well
    """

    steps: Annotated[int, whole(1, 10**6)] = 1000
    sigma: Annotated[float | None, _SIGMA] = None
    batch: Annotated[int | None, whole(1, 10**9)] = None
    rate: Annotated[float | None, _RATE] = None
    loss: Annotated[str, one_of("non-saturating", "wasserstein")] = "non-saturating"
    critic_steps: Annotated[int, whole(1, 1000)] = 1
    fakes: Annotated[int, whole(1, 65_536)] = 512
    box: Annotated[float, between(0, 100)] = 0.05
    groups: Annotated[int, whole(1, 64)] = 1
    regroup: Annotated[int, whole(1, 10**6)] = 100
    adapt: Annotated[float, _ADAPT] = 0.0
    quantile: Annotated[float, between(0, 1)] = 0.5
    numbers: Annotated[str, one_of("bins", "real")] = "bins"
    conditional: bool = True
    width: Annotated[int, whole(1, 4096)] = 128
    blocks: Annotated[int, whole(0, 16)] = 1
    latent: Annotated[int, whole(1, 4096)] = 64
    critic_width: Annotated[int, whole(1, 4096)] = 64
    critic_layers: Annotated[int, whole(1, 8)] = 2
    learning: Annotated[float, between(0, 1)] = 1e-3
    critic_learning: Annotated[float, between(0, 1)] = 2e-3
    columns: Annotated[float, between(1e-6, 0.9)] = 0.1
    pick: Annotated[int, whole(0, 1000)] = 0
    checkpoints: Annotated[int, whole(1, 1000)] = 8
    choice: Annotated[float, between(1e-6, 0.9)] = 0.05
    holdout: Annotated[float, between(0, 0.9)] = 0.1
    selection: Annotated[str | None, one_of("divergence", "clustering", "task")] = None
    centres: Annotated[int, whole(1, 1000)] = 8
    task: Any = None
    public_steps: Annotated[int, whole(1, 10**6)] = 500
    name: str = "dpgan"

    rowwise: ClassVar[bool] = True

    def check(self, design: Design) -> None:
        """Settings in range, the libraries there, a batch that the rows can fill."""
        super().check(design)
        if self.pick and self.columns + self.choice > 1 - 1e-6:
            self.refuse(
                f"columns = {self.columns} and choice = {self.choice} leave no share of the budget for "
                f"the steps; together they must stay below 1"
            )
        if self.pick > self.checkpoints:
            self.refuse(
                f"pick = {self.pick} is more than checkpoints = {self.checkpoints}; keep more"
            )
        if self.pick and self.checkpoints > max(1, self.steps // 2):
            self.refuse(
                f"checkpoints = {self.checkpoints} need at least twice as many steps as "
                f"steps = {self.steps}; keep fewer"
            )
        self._check_selection()
        self._check_sampling(design)
        self._task(design)
        self.require_public(design.shape)
        require_extra(f"method = {self.name}", "nets")

    def _check_selection(self) -> None:
        for name, value in (("task", self.task), ("selection", self.selection)):
            if value is not None and not self.pick:
                self.refuse(
                    f"{name} needs pick: how many checkpoints are chosen by it, for instance 1"
                )
        if (self.selection or "task") != "task" and self.task is not None:
            self.refuse(f"selection = {self.selection} uses no task; give one of them")
        if self.selection == "task" and self.task is None:
            self.refuse("selection = task needs task, the name of the column to be predicted")

    def _check_sampling(self, design: Design) -> None:
        if self.batch is not None and self.rate is not None:
            self.refuse("batch and rate say the same thing; give one of them")
        if self.batch is None:
            return
        if design.rows is None:
            self.refuse(
                f"batch = {self.batch} is a share of a number of rows that is private; give rate, "
                f"for instance 0.02, or declare rows_public (--rows-public N)"
            )
        elif self.batch > design.rows * (1 - self._held_out):
            self.refuse(
                f"batch = {self.batch} is more than the "
                f"{design.rows * (1 - self._held_out):,.0f} rows there are to train on; take at most "
                f"a tenth of them"
            )

    def confirm(self, design: Design, plan: Plan) -> None:
        """Once the noise is known: a choice that the noise decides alone is refused."""
        super().confirm(design, plan)
        if not self.pick:
            return
        event = plan.event(CriticSteps.CHOICE, Selection)
        rows = design.rows or _ROWS
        # The best is passed over by no more than this, but for one time in twenty.
        off = event.scale / Models.SENSITIVITY * math.log(20 * self.checkpoints)
        if not self._held_out:
            off *= jensen_shannon_step(rows, design.relation)
            if off > 0.5:
                self.refuse(
                    f"the choice among {self.checkpoints} checkpoints would be off by {off:.2g} in "
                    f"Jensen-Shannon divergence, which is at most 0.69; set pick = 0, or raise choice"
                )
            return
        task, held = self._task(design), rows * self.holdout
        if (task is None or task.metric is None) and off > held / 4:
            unit = "right answers" if task else "rows' largest costs"
            self.refuse(
                f"holdout = {self.holdout:g} keeps about {held:,.0f} rows, and the choice among "
                f"{self.checkpoints} checkpoints would be off by {off:,.0f} {unit}: that means "
                f"nothing. Raise holdout or choice, or set pick = 0 (and no task)"
            )
        if (
            task is not None
            and task.metric is not None
            and task.sensitivity * held < 1 - 1e-9
            and design.rows
        ):
            self.refuse(
                f"task: sensitivity = {task.sensitivity:g} is below 1/h for the about {held:,.0f} rows "
                f"held out; no metric of rows moves by less. Declare at least {1 / held:.3g}"
            )

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Columns, steps, and the choice; nominally ρ (see `planning.nominal`)."""
        shares = {"columns": self.columns, "steps": 1 - self.columns}
        if self.pick:
            shares = {"columns": self.columns, "choice": self.choice}
            shares["steps"] = 1 - self.columns - self.choice
        part = planning.split(rho, {name: str(round(share, 6)) for name, share in shares.items()})
        columns = design.gaussian(part["columns"], len(design.shape))
        charges = [Charge(CriticSteps.COLUMNS, columns)]
        event, steps = self._steps(design, part["steps"])
        charges.append(Charge(CriticSteps.STEP, event, steps))
        if self.pick:
            pick = planning.selection(part["choice"], sensitivity=Models.SENSITIVITY, k=self.pick)
            charges.append(Charge(CriticSteps.CHOICE, pick))
        return tuple(charges)

    def players(self, design: Design, plan: Plan) -> tuple[CriticSteps, GanPlayer]:
        """The critic's steps against the generator."""
        query = self.query_player(design, plan)
        return query, self._player(design, query.steps)

    def query_player(self, design: Design, plan: Plan) -> CriticSteps:
        """The critic's steps; the other player needs a library to be made."""
        event = plan.event(CriticSteps.STEP, SampledGroups)
        return CriticSteps(
            plan[CriticSteps.STEP].times,
            plan.event(CriticSteps.COLUMNS, Gaussian).sigma,
            event.multipliers,
            event.rate,
            watch=self.adapt > 0,
            held_out=self._held_out,
            choose=self.pick > 0,
        )

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Steps dominate: factors, an exact product in float64, noise, and the two networks."""
        event = plan.event(CriticSteps.STEP, SampledGroups)
        steps, batch = plan[CriticSteps.STEP].times, event.rate * rows
        work = event.coordinates * (batch * (2 + self.groups) + self.fakes * 3)
        work += self.fakes * 6.0 * self.width * (sum(design.shape) + 2 * self.width)
        return Forecast(
            f"all columns are measured; {steps} critic steps at noise multiplier "
            f"{event.multiplier:.3g} and rate {event.rate:.3g} teach the rest; no theorem says how "
            f"well, the certificate does",
            9e8 + 60.0 * rows * len(design.shape) + 40.0 * event.coordinates,
            25.0 + steps * (work / 2e10 + event.coordinates * 1.2e-7 + 4e-3),
        )

    def describe(self) -> dict[str, Any]:
        """Name and parameters; of public rows their number and a digest, of a task its words."""
        described = super().describe()
        if self.task is not None and not isinstance(self.task, str):
            described["task"] = repr(self.task)
        return described

    # -- public rules ----------------------------------------------------------------------------

    @property
    def _held_out(self) -> float:
        """The share of rows that is held out, on the grid that coins can be tossed at."""
        if not self.pick or (self.task is None and self.selection != "clustering"):
            return 0.0
        return round(self.holdout * _WORDS) / _WORDS

    def _rate(self, design: Design) -> float:
        rows = (design.rows or _ROWS) * (1 - self._held_out)
        rate = self.rate
        if rate is None:
            rate = (self.batch or min(1024, max(1, rows // 10))) / max(1.0, rows)
        return min(1.0, max(1.0, float(round(rate * _WORDS))) / _WORDS)

    def _steps(self, design: Design, rho: Fraction) -> tuple[SampledGroups, int]:
        """The event and how often: for `steps` the least noise, for `sigma` the most steps."""
        rate, sides = self._rate(design), design.relation.marginal_l1()
        if self.sigma is not None:
            event = self._event(design, float(self.sigma))
            return event, max(1, min(10**6, math.floor(rho / planning.nominal(event))))
        joint = planning.sampled_multiplier(float(rho) / self.steps, rate, sides)
        event = self._event(design, joint)
        while planning.nominal(event) * self.steps > rho:
            joint *= 1 + 1e-9
            event = self._event(design, joint)
        return event, self.steps

    def _event(self, design: Design, joint: float) -> SampledGroups:
        """One step at a joint multiplier: one for all weights and, watched, one for the groups' bits.

        Which groups there are plays no part: see `privacy.questions.gradient`.
        """
        rate, sides = self._rate(design), design.relation.marginal_l1()
        numbers = self._parameters(design)
        if not self.adapt:
            return SampledGroups((joint,), numbers, rate, sides)
        rows = (design.rows or _ROWS) * (1 - self._held_out)
        bits = max(rate * rows / 10 / math.sqrt(self.groups), joint / math.sqrt(_WATCH))
        left = (joint**-2 - bits**-2) ** -0.5
        return SampledGroups((left, bits), numbers + self.groups, rate, sides)

    def _parameters(self, design: Design) -> int:
        kinds, nullable = self._kinds(design)
        width = 0
        for size, kind, null in zip(design.shape, kinds, nullable, strict=True):
            values = size - (null and kind != "choice")
            width += {"choice": 1 if size == 2 else size, "real": 1}.get(
                kind, max(1, math.ceil(math.log2(max(2, values))))
            ) + (null and kind != "choice")
        sizes = (width, *(self.critic_width,) * self.critic_layers, 1)
        return sum((i + 1) * o for i, o in pairwise(sizes))

    def _kinds(self, design: Design) -> tuple[tuple[str, ...], tuple[bool, ...]]:
        """How columns are encoded, and which have one value beside the order, such as null.

        Without a schema all are choices; so is a column with more values beside the order.
        """
        types = design.kinds or ("category",) * len(design.shape)
        apart = design.apart or (0,) * len(design.shape)
        kinds: list[str] = []
        for size, type_, beside in zip(design.shape, types, apart, strict=True):
            values = size - beside
            listed = type_ in ("category", "boolean") or beside > 1
            if listed or self.numbers == "bins" or values <= 2:
                kinds.append("choice")
            elif type_ == "integer" and values <= _MOST_BITS:
                kinds.append("bits")
            else:
                kinds.append("real")
        return tuple(kinds), tuple(beside == 1 for beside in apart)

    def _task(self, design: Design) -> Task | None:
        if self.task is None:
            return None
        target = self.task.target if isinstance(self.task, Task) else self.task
        if isinstance(target, str):
            if target not in design.names:
                self.refuse(
                    f"task = {target!r} is not a modelled column; the columns are "
                    f"{', '.join(design.names)}"
                )
            target = design.names.index(target)
        if not isinstance(target, int) or not 0 <= target < len(design.shape):
            self.refuse(f"task: target = {target!r} is not a column")
        if len(design.shape) < 2:
            self.refuse("task: there is no other column to predict from")
        task = self.task if isinstance(self.task, Task) else Task(target)
        if not (math.isfinite(task.sensitivity) and task.sensitivity > 0):
            self.refuse(
                f"task: sensitivity = {task.sensitivity} must be a number above 0: how far one row "
                f"moves the metric"
            )
        if task.metric is None and task.sensitivity != 1.0:
            self.refuse("task: right answers are counted, one row moves one; give no sensitivity")
        return replace(task, target=target)

    def _judge(self, design: Design) -> Task | Clusters | None:
        """What checkpoints are judged by; None for their marginals."""
        if self.selection != "clustering":
            return self._task(design)
        types = design.kinds or ("category",) * len(design.shape)
        ordered = tuple(kind not in ("category", "boolean") for kind in types)
        apart = design.apart or (0,) * len(design.shape)
        return Clusters(design.shape, ordered, apart, self.centres)

    def _player(self, design: Design, steps: int) -> GanPlayer:
        from understudy.nets.gan import Pace

        return GanPlayer(
            steps,
            self._gan(design),
            Pace(self.fakes, float(self.learning), float(self.critic_learning), float(self.box)),
            self.critic_steps,
            self.groups,
            self.regroup,
            float(self.adapt),
            float(self.quantile),
            self.checkpoints if self.pick else 0,
            self._judge(design),
            self.public,
            self.public_steps,
        )

    def _gan(self, design: Design) -> Gan:
        """Both networks, before anything is known of the rows."""
        from understudy.nets.coding import Coding
        from understudy.nets.gan import Gan, Loss

        return Gan(
            Coding(design.shape, *self._kinds(design)),
            self.latent,
            self.width,
            self.blocks,
            self.critic_width,
            self.critic_layers,
            Loss(self.loss),
            self.conditional,
        )

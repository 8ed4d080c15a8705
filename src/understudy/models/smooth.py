"""Pairs of ordered columns that were measured in runs of neighbouring values, fitted smoothly.

A factor that is constant on a run says that columns are independent inside it; where many values make
one run, as in the tails of an amount, that loses what is left of a dependence. Here the logarithm of
the factor is known at the middle of every run and linear in between, in normal scores: of a normal
copula it is bilinear in these. Beyond the middles of the outermost runs it goes on linearly, at most as
far as to the next run. Values beside the order (special ones, null) keep factors of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from understudy._types import Table
from understudy.models.blocks import Block, normal_scores
from understudy.models.measured import Labels, merge

_ROUNDS = 2
"""So often is one refinement made: what is linear between runs changes the sums of those beside it."""
_MOST = 40.0


@dataclass(eq=False)
class Smooth(Block):
    """A block over all values, whose factor follows that of `inner`, over runs of them."""

    inner: Block = field(kw_only=True)
    along: tuple[Table, Table] = field(kw_only=True)
    """For each column, how far every value (rows) goes along with every run."""
    runs: tuple[Table, Table] = field(kw_only=True)
    """What sums a table over the runs of its first column, from the left, and of its second."""

    def refine(self, current: Table, rows: float, part: float = 1.0) -> Table:
        """As of `Block`; the sums of runs come near their solution, and nearer when it is repeated."""
        first, second = self.along
        rows_in, columns_in = self.runs
        shape, factors = (len(first), len(second)), np.ones_like(current)
        for _ in range(_ROUNDS):
            now = current * factors
            before = now * np.exp(-self.theta)
            sums = (rows_in @ now.reshape(shape) @ columns_in).reshape(-1)
            base = (rows_in @ before.reshape(shape) @ columns_in).reshape(-1)
            held = (sums > 0) & (base > 0)
            ratio = np.divide(sums, base, out=np.ones_like(sums), where=held)
            self.inner.theta = np.log(ratio)
            step = np.log(np.maximum(self.inner.refine(sums, rows, part), 1e-300))
            step = (first @ step.reshape(first.shape[1], -1) @ second.T).reshape(-1)
            step = np.clip(self.theta + step, -_MOST, _MOST) - self.theta
            self.theta = self.theta + step
            factors *= np.exp(step)
        return factors


def smooth(block: Block, estimates: tuple[Table, Table], ordered: tuple[int, int]) -> Block:
    """The block of a pair in runs, made smooth; `ordered` values of each column are in order."""
    if block.labels is None or block.margins is None:
        return block
    if not all(in_runs(each, size) for each, size in zip(block.labels, ordered, strict=True)):
        return block
    along = tuple(
        between(label, estimate, size)
        for label, estimate, size in zip(block.labels, estimates, ordered, strict=True)
    )
    expected = np.outer(*estimates) / max(float(estimates[0].sum()), 1e-300)
    runs = np.maximum(merge(expected, block.labels), 1e-300)
    factor = block.y.reshape(runs.shape) / runs
    values = (expected * factor[np.ix_(*block.labels)]).reshape(-1)
    unused = np.ones(values.size)  # what is believed of the table, `inner` says
    told = block.clique, None, values, unused, unused, None
    one, other = (np.eye(int(label.max()) + 1)[label] for label in block.labels)
    return Smooth(*told, inner=block, along=(along[0], along[1]), runs=(one.T, other))


def in_runs(labels: Labels, ordered: int) -> bool:
    """Whether labels are runs of the values in order, and every other value is by itself."""
    steps = np.diff(labels)
    return bool(labels[0] == 0 and np.isin(steps, (0, 1)).all() and steps[ordered - 1 :].all())


def between(labels: Labels, estimate: Table, ordered: int) -> Table:
    """A row for every value: the shares of the runs on either side of it, which sum to one."""
    share, scores = normal_scores(estimate, ordered)
    runs = labels[:ordered]
    count = int(runs.max()) + 1
    found = np.eye(int(labels.max()) + 1)[labels]
    if count < 2:
        return found
    middles = np.bincount(runs, share * scores) / np.bincount(runs, share)
    left = np.clip(np.searchsorted(middles, scores) - 1, 0, count - 2)
    way = np.clip((scores - middles[left]) / (middles[left + 1] - middles[left]), -1.0, 2.0)
    found[:ordered] = 0.0
    found[np.arange(ordered), left] = 1.0 - way
    found[np.arange(ordered), left + 1] = way
    return found

"""The curator's questions that need rows and not counts of them: gradients, and the choice of models.

A part of `understudy.privacy.curator.Curator`, with the same order: check that the planned event covers
what is asked, charge it durably, draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import PrivacyError
from understudy.privacy.cost import SampledGroups, Selection
from understudy.privacy.gradients import UNIT, Groups, Network, clipped_sums
from understudy.privacy.models import Models, divergence_scores, task_scores
from understudy.privacy.noise import Noise, rounded
from understudy.privacy.relation import Relation
from understudy.privacy.sampling import poisson
from understudy.privacy.sensitive import Sensitive, reveal

__all__ = ["RowQuestions"]

Codes = NDArray[np.integer[Any]]
Steps = NDArray[np.int32]
Split = tuple[Codes, NDArray[np.bool_]]


class RowQuestions:
    """Questions about rows. Unit: one row; guarantee: what leaves is covered by the events charged."""

    relation: Relation
    _counts: Any
    _noise: Noise
    _draw: Callable[..., Any]
    _guarded: Callable[..., Any]
    _exact: Callable[[Sequence[tuple[int, ...]]], list[NDArray[np.int64]]]
    _check_cliques: Callable[[Sequence[tuple[int, ...]]], None]
    _split: Sensitive[Split] | None = None

    def gradient(
        self,
        purpose: str,
        network: Network,
        groups: Groups,
        *,
        watch: bool = False,
        held_out: float = 0.0,
    ) -> tuple[Steps, Steps]:
        """Σ over a Poisson sample of a public network's gradients, clipped row by row and group by
        group, with Gaussian noise on every weight; an empty sample is noise alone, and charged.

        Planned as `SampledGroups` with one multiplier per group and, with `watch`, one more per group
        for whether rows were below its threshold (Andrew et al. 2021). `held_out` is the share of
        rows, each by a coin of its own, that never take part: see `best_models`. Sensitivities are
        shown in `understudy.privacy.gradients`.

        Returns one number per weight, layer after layer and a layer's biases last, in multiples of
        σ_j/`GRAIN`, σ_j = m_j·c_j; and for every group that is watched the rows below its threshold
        less half of all, in multiples of m/(2·`GRAIN`).
        """
        self._require_rows()
        flat = groups.flat(network.layers)
        size = len(groups.thresholds)
        wanted = 2 * size if watch else size
        numbers = flat.size + wanted - size
        sides = self.relation.marginal_l1()
        drawn = self._draw(
            purpose,
            SampledGroups,
            None,
            lambda e: (
                len(e.multipliers) == wanted and e.coordinates >= numbers and e.sides >= sides
            ),
            f"a gradient of {numbers} coordinates in {wanted} groups under {self.relation}",
        )

        def draw() -> tuple[Steps, Steps]:
            records = self._rows_of(held_out, inside=False)
            sample = poisson(self._noise, len(records), drawn.rate)
            sums, below = clipped_sums(network, records[sample], groups)
            noisy = np.empty(sums.size, np.int64)
            for j, multiplier in enumerate(drawn.multipliers[:size]):
                where = flat == j if size > 1 else slice(None)
                noisy[where] = rounded(self._noise, sums[where], UNIT * multiplier)
            seen = [
                rounded(self._noise, UNIT * below[j : j + 1], UNIT * multiplier)
                for j, multiplier in enumerate(drawn.multipliers[size:])
            ]
            within = np.concatenate(seen) if seen else np.zeros(0, np.int64)
            return _int32(noisy), _int32(within)

        return self._guarded(draw)

    def best_models(
        self, purpose: str, models: Models, rows: int, *, held_out: float = 0.0
    ) -> tuple[int, ...]:
        """The k of some public models that fit best, by one-shot Gumbel top-k, in order.

        Scores are those of a task on rows that were held out, with a declared sensitivity, or minus
        the mean Jensen-Shannon divergence of marginals over all rows: see `understudy.privacy.models`.
        `rows` is the public number of rows. A row is held out by a coin that belongs to it alone, so
        a neighbour changes one row of one of the two parts, whichever way rows are numbered; training
        and selection are charged one after the other all the same.
        """
        if models.scorers is None:
            self._check_cliques(models.cliques)
        else:
            self._require_rows()
        drawn = self._draw(
            purpose,
            Selection,
            None,
            lambda e: e.sensitivity >= Models.SENSITIVITY and e.k <= models.size,
            f"{models.size} models, whose scores move by {Models.SENSITIVITY} units",
        )

        def draw() -> tuple[int, ...]:
            if models.scorers is not None:
                scores = task_scores(models, self._rows_of(held_out, inside=True))
            else:
                exact = self._exact(models.cliques)
                scores = divergence_scores(models, exact, rows, self.relation)
            return self._noise.top_k(scores, drawn.scale, drawn.k)

        return self._guarded(draw)

    def _require_rows(self) -> None:
        if not hasattr(self._counts, "records"):
            raise PrivacyError(
                "this source hands out counts and no rows, which gradients need; nothing was charged "
                "or drawn"
            )

    def _rows_of(self, held_out: float, *, inside: bool) -> Codes:
        """Rows of codes (n, d), or those (not) held out; which ones is decided once, by coins."""
        if self._split is None:
            matrix = np.stack(reveal(self._counts.records()), axis=1)
            held = np.zeros(len(matrix), bool)
            if held_out > 0:
                held[poisson(self._noise, len(matrix), held_out)] = True
            self._split = Sensitive((matrix, held))
        matrix, held = reveal(self._split)
        return matrix[held if inside else ~held] if held_out > 0 else matrix


def _int32(values: NDArray[np.int64]) -> NDArray[np.int32]:
    limits = np.iinfo(np.int32)
    return np.clip(values, limits.min, limits.max).astype(np.int32)

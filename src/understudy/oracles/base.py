"""What an oracle does: the best response to a history, for many perturbations at once.

    x_j = argmax over records x of  Σ_i w_i q_i(x) + <σ_j, onehot(x)>,    j = 1..s

An oracle sees released queries and public noise only. Whatever it returns, however far from optimal, is
post-processing: a weak oracle costs accuracy, never privacy.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.oracles.history import History, Literal, Records, offsets
from understudy.oracles.noise import Law, LazyNoise, Noise

__all__ = ["History", "Law", "LazyNoise", "Literal", "Noise", "Oracle", "Records", "objective"]


class Oracle(Protocol):
    """Solves for the best record of every perturbation."""

    def solve(
        self,
        history: History,
        noise: Noise,
        *,
        warm: Records | None = None,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """One legal record per perturbation, (s, d). `warm` holds good first guesses, (s, d)."""
        ...


def objective(
    history: History, noise: NDArray[np.float64], records: Records
) -> NDArray[np.float64]:
    """What row j of `records` is worth under row j of the drawn `noise`."""
    rows = np.asarray(records)
    values = history.evaluate(rows)
    drawn = np.asarray(noise, np.float64)
    begin = offsets(history.shape)
    if drawn.shape != (len(rows), int(begin[-1])):
        raise InputError(f"noise has shape {drawn.shape}; expected {(len(rows), int(begin[-1]))}")
    return values + np.take_along_axis(drawn, rows + begin[:-1], axis=1).sum(axis=1)

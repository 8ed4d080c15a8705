"""What an oracle does: the best response to a history, for many perturbations at once.

    x_j = argmax over records x of  Σ_i w_i q_i(x) + <σ_j, onehot(x)>,    j = 1..s

An oracle sees released queries and public noise only. Whatever it returns, however far from optimal, is
post-processing: a weak oracle costs accuracy, never privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.oracles.history import History, Literal, Records, offsets
from understudy.oracles.noise import Law, LazyNoise, Noise

__all__ = [
    "History", "Law", "LazyNoise", "Literal", "Noise", "Oracle", "Proofs", "Records", "best",
    "objective",
]  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class Proofs:
    """How many rounds an oracle was asked in, and in how many it ran out of time for a record."""

    rounds: int = 0
    late: int = 0

    def after(self, late: bool) -> Proofs:
        """One round later."""
        return Proofs(self.rounds + 1, self.late + late)

    def remarks(self, oracle: Oracle) -> dict[str, int]:
        """What a release says of it; nothing where the oracle proves nothing."""
        if not hasattr(oracle, "search"):
            return {}
        return {"oracle_rounds": self.rounds, "oracle_rounds_without_proof": self.late}


def best(
    oracle: Oracle,
    history: History,
    noise: Noise,
    *,
    warm: Records | None = None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], bool]:
    """(records, whether the oracle ran out of time): the best records found, proven or not.

    An oracle that proves what it returns has a method `search` that says so; others are never late.
    """
    search: Any = getattr(oracle, "search", None)
    if search is None:
        return oracle.solve(history, noise, warm=warm, rng=rng), False
    solved = search(history, noise, warm=warm, rng=rng)
    return solved.records, not bool(solved.proven.all())


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

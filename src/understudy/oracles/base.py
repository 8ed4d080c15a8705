"""What an oracle does: the best response to a history, for many perturbations at once.

    x_j = argmax over records x of  Σ_i w_i q_i(x) + <σ_j, onehot(x)>,    j = 1..s

An oracle sees released queries and public noise only. Whatever it returns, however far from optimal, is
post-processing: a weak oracle costs accuracy, never privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.oracles.history import History, Literal, Records, objective
from understudy.oracles.noise import Law, LazyNoise, Noise
from understudy.oracles.split import Split, into, weights

__all__ = [
    "History", "Law", "LazyNoise", "Literal", "Noise", "Oracle", "Proofs", "Records", "Split",
    "objective",
]  # fmt: skip


class Oracle(ABC):
    """Solves for the best record of every perturbation."""

    proves: ClassVar[bool] = False
    """Whether it proves its records to be the best, as long as there is time."""

    @abstractmethod
    def solve(
        self,
        history: History,
        noise: Noise,
        *,
        warm: Records | None = None,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """One legal record per perturbation, (s, d). `warm` holds good first guesses, (s, d)."""

    def best(
        self,
        history: History,
        noise: Noise,
        *,
        warm: Records | None = None,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.int64], bool]:
        """(records, whether it ran out of time): the best records found, proven or not.

        An oracle that proves nothing is never late.
        """
        return self.solve(history, noise, warm=warm, rng=rng), False

    def split(
        self,
        history: History,
        query: History,
        noise: LazyNoise,
        *,
        warm: Records,
        rng: np.random.Generator,
    ) -> Split:
        """Both records of `Split` for every perturbation; `query` is 0 or 1 on every record."""
        drawn = noise.draw(history.shape, rng)
        _, large = weights(history, query, float(np.abs(drawn).max()))
        free, late = self.best(history, drawn, warm=warm, rng=rng)
        heavy = history.plus(query, large)
        held, later = self.best(heavy, drawn, warm=into(query, free), rng=rng)
        gap = objective(history, drawn, free) - objective(history, drawn, held)
        return Split.of(query, free, held, gap, late or later)


@dataclass(frozen=True, slots=True)
class Proofs:
    """How many rounds an oracle was asked in, and in how many it ran out of time for a record."""

    rounds: int = 0
    late: int = 0

    def after(self, late: bool) -> Proofs:
        """One round later."""
        return Proofs(self.rounds + 1, self.late + late)

    def diagnostics(self, oracle: Oracle) -> dict[str, int]:
        """What a release says of it; nothing where the oracle proves nothing."""
        if not oracle.proves:
            return {}
        return {"oracle_rounds": self.rounds, "oracle_rounds_without_proof": self.late}

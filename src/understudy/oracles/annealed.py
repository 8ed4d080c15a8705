"""A batched local search: exact moves of single attributes, jumps into whole conjunctions, restarts.

Every perturbation is solved on its own. From each start, ascend until no single attribute can be
improved (all its values are compared at once); then try to make one past query of positive weight true
as a whole, by Metropolis' rule with a falling temperature, and ascend again. Without these jumps the
search is stuck where three attributes must change together to gain anything.

The search keeps, for every atom (value of an attribute), what the terms would pay for it if all other
attributes stay. A move touches only the terms whose literals it turns, so time is near linear in the
number of terms and of attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.oracles.atoms import Atoms
from understudy.oracles.history import History, Records, check_records
from understudy.oracles.noise import LazyNoise, Noise, draws

__all__ = ["Annealed"]

_ENTRIES = 2**22  # perturbation values held at a time: 32 MiB


@dataclass(frozen=True)
class Annealed:
    """The default oracle. Never worse than its warm start; no promise of being optimal.

    `starts` searches per perturbation: from its warm record, from the best record for the noise alone,
    then from other rows' warm records and random ones. Each makes `blocks` jumps at a temperature that
    falls linearly from `temperature` to 0, and every ascent makes at most `sweeps` passes over the
    attributes. A jump is priced in full if a first guess of its gain, which overlooks other terms that
    share two of its columns, lacks less than `margin`. Temperature and margin are in units of the mean
    absolute weight. By default only gains are taken: with few starts, more jumps pay better than heat;
    with many (8 and more), a temperature of 1 finds a little more.
    """

    starts: int = 2
    blocks: int = 32
    sweeps: int = 8
    temperature: float = 0.0
    margin: float = 2.0

    def __post_init__(self) -> None:
        if self.starts < 1 or self.sweeps < 1 or self.blocks < 0:
            raise InputError("the annealed oracle needs starts >= 1, sweeps >= 1 and blocks >= 0")
        if not (np.isfinite(self.temperature) and self.temperature >= 0 and self.margin >= 0):
            raise InputError(
                "temperature and margin must be numbers >= 0, "
                f"not {self.temperature} and {self.margin}"
            )

    def solve(
        self,
        history: History,
        noise: Noise,
        *,
        warm: Records | None = None,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """One record per perturbation, (s, d)."""
        rows = noise.rows if isinstance(noise, LazyNoise) else len(noise)
        atoms = Atoms.of_history(history)
        guesses = np.empty((0, len(history.shape)), np.int64)
        if warm is not None:
            guesses = atoms.fold(check_records(warm, history.shape))
            if len(guesses) != rows:
                raise InputError(f"{len(guesses)} warm records for {rows} perturbations")
        step = max(1, _ENTRIES // max(1, atoms.positions))
        parts: list[NDArray[np.int64]] = []
        for begin in range(0, rows, step):
            end = min(begin + step, rows)
            if isinstance(noise, LazyNoise):
                drawn = draws(noise.part(end - begin), atoms, rng)
            else:
                drawn = draws(noise[begin:end], atoms, rng)
            codes = self._search(atoms, drawn.values, guesses, begin, rng)
            parts.append(drawn.unfold(codes))
        return np.concatenate(parts)

    def _search(
        self,
        atoms: Atoms,
        noise: NDArray[np.float64],
        warm: NDArray[np.int64],
        begin: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Codes of atoms for the perturbations that belong to warm[begin:]."""
        from understudy.oracles import _kernel

        problem = _kernel.problem(atoms)
        unit = float(np.abs(problem.weight).mean()) if len(problem.weight) else 0.0
        return _kernel.search(
            problem,
            noise,
            warm,
            begin,
            self.starts,
            self.blocks,
            self.sweeps,
            self.temperature * unit,
            self.margin * unit,
            np.uint64(rng.integers(2**63)),
        )

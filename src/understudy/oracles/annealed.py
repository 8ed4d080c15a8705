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

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.oracles.atoms import Atoms
from understudy.oracles.base import Oracle, Split, into, weights
from understudy.oracles.history import History, Records
from understudy.oracles.noise import Draws, LazyNoise, Noise, draws

_ENTRIES = 2**22  # perturbation values held at a time: 32 MiB
_TAIL = 60.0  # a perturbation of scale 1 is never so large


@dataclass(frozen=True)
class Annealed(Oracle):
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

    def best(
        self,
        history: History,
        noise: Noise,
        *,
        warm: Records | None = None,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.int64], bool]:
        """See `Oracle.best`; never late."""
        rows = noise.rows if isinstance(noise, LazyNoise) else len(noise)
        atoms = Atoms.of_history(history)
        guesses = atoms.guesses(warm)
        parts: list[NDArray[np.int64]] = []
        for begin, drawn in self._drawn(noise, rows, atoms, rng):
            codes, _ = self.search_atoms(atoms, drawn.values, guesses, begin, rng)
            parts.append(drawn.unfold(codes))
        return np.concatenate(parts), False

    def split(
        self,
        history: History,
        query: History,
        noise: LazyNoise,
        *,
        warm: Records,
        rng: np.random.Generator,
    ) -> Split:
        """See `Split`. Noise is drawn once, over values that history and query tell apart."""
        small, large = weights(history, query, _TAIL * float(noise.scales(history.shape).max()))
        atoms, bound = (Atoms.of_history(history.plus(query, each)) for each in (small, large))
        guesses = atoms.guesses(warm)
        # Records can be put into a cell, and out of it by one value; other queries need a search.
        plain = query.terms == 1
        few = replace(self, starts=1, blocks=self.blocks // 4) if plain else self
        free: list[NDArray[np.int64]] = []
        held: list[NDArray[np.int64]] = []
        gaps: list[NDArray[np.float64]] = []
        for begin, drawn in self._drawn(noise, noise.rows, atoms, rng):
            values = drawn.values
            codes, worth = self.search_atoms(atoms, values, guesses, begin, rng)
            free.append(drawn.unfold(codes))
            inside = atoms.fold(into(query, free[-1]))
            forced, heavy = few.search_atoms(bound, values, inside, 0, rng)
            held.append(drawn.unfold(forced))
            bonus = (large - small) * (query.evaluate(held[-1]) - query.constant)
            gaps.append(worth - (heavy - bonus))
        records = np.concatenate(held)
        return Split.of(query, np.concatenate(free), records, np.concatenate(gaps))

    def _drawn(
        self, noise: Noise, rows: int, atoms: Atoms, rng: np.random.Generator
    ) -> Iterator[tuple[int, Draws]]:
        """Perturbations over atoms, as many rows at a time as fit."""
        step = max(1, _ENTRIES // max(1, atoms.positions))
        for begin in range(0, rows, step):
            end = min(begin + step, rows)
            part = noise.part(end - begin) if isinstance(noise, LazyNoise) else noise[begin:end]
            yield begin, draws(part, atoms, rng)

    def search_atoms(
        self,
        atoms: Atoms,
        noise: NDArray[np.float64],
        warm: NDArray[np.int64],
        begin: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Codes of atoms for the perturbations that belong to warm[begin:], and their worth.

        `warm` holds codes of atoms too, or no row at all.
        """
        from understudy.oracles import _kernel

        problem = _kernel.problem(atoms)
        unit = float(np.abs(problem.weight).mean()) if len(problem.weight) else 0.0
        schedule = _kernel.Schedule(
            self.starts,
            self.blocks,
            self.sweeps,
            self.temperature * unit,
            self.margin * unit,
            np.uint64(rng.integers(2**63)),
        )
        return _kernel.search(problem, noise, warm, begin, schedule)

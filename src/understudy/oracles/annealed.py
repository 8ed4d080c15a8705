"""A batched local search: exact moves of single attributes, jumps into whole conjunctions, restarts.

From each start, ascend until no single attribute can be improved; then try to make one past query of
positive weight true as a whole, where that gains something, and ascend again. The search keeps, for
every atom (value of an attribute), what the terms would pay for it if all other attributes stay, so
time is near linear in the number of terms and of attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from understudy.oracles.base import Found, Oracle, Sought

_SWEEPS = 8  # passes over the attributes in an ascent, at most
_MARGIN = 2.0  # mean absolute weights that a guess of a gain may lack


@dataclass(frozen=True)
class Annealed(Oracle):
    """The default oracle. Never worse than its warm start; no promise of being optimal.

    `starts` searches per perturbation: from its warm record, from the best record for the noise alone,
    then from other rows' warm records and random ones. Each tries `blocks` jumps. A jump is priced in
    full if a first guess of its gain, which overlooks other terms that share two of its columns, lacks
    less than two mean absolute weights.
    """

    starts: int = 2
    blocks: int = 32

    def brief(self) -> Annealed:
        """One start, and a quarter of the jumps."""
        return replace(self, starts=1, blocks=self.blocks // 4)

    def search(self, sought: Sought) -> Found:
        """See `Oracle.search`; never late."""
        from understudy.oracles import _kernel

        problem = _kernel.problem(sought.atoms)
        unit = float(np.abs(problem.weight).mean()) if len(problem.weight) else 0.0
        seed = np.uint64(sought.rng.integers(2**63))
        schedule = _kernel.Schedule(self.starts, self.blocks, _SWEEPS, _MARGIN * unit, seed)
        noise, warm, begin = sought.noise, sought.warm, sought.begin
        return Found(*_kernel.search(problem, noise, warm, begin, schedule))

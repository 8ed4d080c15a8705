"""An exact oracle: the best response as a mixed-integer program for CP-SAT (extra `exact`).

    max  Σ_i u_i c_i + <σ, x>
    s.t. Σ_{q in attribute a} x_q = 1                      for every attribute
         c_i <= [literal l holds]                          for all its literals, if w_i > 0
         c_i <= Σ_l (1 - [literal l holds])                if w_i < 0: c_i is the complement
         x, c binary

with u_i = |w_i|: a term of negative weight is -|w| + |w| times its complement. [literal holds] is the
sum of x over the atoms it allows. CP-SAT reckons in integers, so u and σ are rounded to a public grid.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from understudy._types import Floats, Whole
from understudy.errors import InputError, WorkError
from understudy.oracles.annealed import Annealed
from understudy.oracles.atoms import Atoms
from understudy.oracles.base import Found, Oracle, Sought
from understudy.oracles.history import objective

_LARGEST = 2**53  # of an objective in grid steps


@dataclass(frozen=True)
class Exact(Oracle):
    """CP-SAT, at most `seconds` for each perturbation; the best record found if time runs out.

    The search begins with what `first` finds, and is never worse than that. `grid` is the step to which
    weights and noise are rounded, and the proof is for these: a proven record is within
    grid·(terms + attributes) of the best. A search that ends in time gives the same record every time.
    """

    seconds: float = 10.0
    grid: float = 1e-6
    first: Annealed = field(default_factory=Annealed)

    proves: ClassVar[bool] = True

    def search(self, sought: Sought) -> Found:
        """See `Oracle.search`: late where one record is not proven."""
        cp_model, atoms, noise = require_solver(), sought.atoms, sought.noise
        guesses = self.first.search(sought).codes
        weights = self._on_grid(atoms.terms.weights, "weights")
        scores = self._on_grid(noise, "noise")
        most = int(np.abs(weights).sum()) + len(atoms.shape) * int(np.abs(scores).max(initial=0))
        if most >= _LARGEST:
            raise InputError(f"the grid step {self.grid} is too fine for these weights and noise")
        program = _Program(cp_model, atoms, weights)
        seed = int(sought.rng.integers(2**31))
        codes, proven = guesses.copy(), np.zeros(len(noise), np.bool_)
        for j, row in enumerate(scores):
            found, proven[j] = program.solve(row, guesses[j], self.seconds, seed)
            if found is not None:
                codes[j] = found
        # Out of time, the first guess may still be better than what was found.
        worth, guessed = (objective(atoms.terms, noise, each) for each in (codes, guesses))
        worse = (worth < guessed) & ~proven
        codes[worse] = guesses[worse]
        return Found(codes, np.where(worse, guessed, worth), not bool(proven.all()))

    def _on_grid(self, numbers: Floats, what: str) -> Whole:
        steps = numbers / self.grid
        if np.abs(steps).max(initial=0.0) >= _LARGEST:
            raise InputError(f"the grid step {self.grid} is too fine for these {what}")
        return np.rint(steps).astype(np.int64)


class _Program:
    """The constraints, which all perturbations share; only the objective changes."""

    def __init__(self, cp_model: Any, atoms: Atoms, weights: Whole) -> None:
        self._cp = cp_model
        self._start = atoms.start
        self._model = cp_model.CpModel()
        self._x = [self._model.new_bool_var("") for _ in range(atoms.positions)]
        for begin, end in itertools.pairwise(atoms.start):
            self._model.add_exactly_one(self._x[begin:end])
        self._gains: list[tuple[int, Any]] = []
        for i, weight in enumerate(weights.tolist()):
            if weight:
                self._add(atoms, i, weight)

    def _add(self, atoms: Atoms, term: int, weight: int) -> None:
        part = self._model.new_bool_var("")
        literals: list[Any] = []
        for column, low, high, negated in atoms.terms.literals[term].tolist():
            if column >= 0:
                begin = int(atoms.start[column])
                inside = sum(self._x[begin + low : begin + high + 1])
                literals.append(1 - inside if negated else inside)
        if weight > 0:
            for each in literals:
                self._model.add(part <= each)
        else:
            self._model.add(part <= sum(1 - each for each in literals))
        self._gains.append((abs(weight), part))

    def solve(
        self, scores: Whole, guess: Whole, seconds: float, seed: int
    ) -> tuple[Whole | None, bool]:
        """(codes of atoms or None, whether they are proven optimal)."""
        own = [score * x for score, x in zip(scores.tolist(), self._x, strict=True)]
        self._model.maximize(sum(own) + sum(weight * part for weight, part in self._gains))
        self._model.clear_hints()
        first = set((guess + self._start[:-1]).tolist())
        for position, x in enumerate(self._x):
            self._model.add_hint(x, position in first)
        solver = self._cp.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed
        status = solver.solve(self._model)
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return None, False
        chosen = np.array([solver.boolean_value(x) for x in self._x])
        return np.flatnonzero(chosen) - self._start[:-1], status == self._cp.OPTIMAL


def require_solver() -> Any:
    """CP-SAT; methods call this before anything is planned.

    Raises:
        WorkError: OR-Tools is not installed, or cannot be loaded here.
    """
    # Both bring their own copy of HiGHS, and a process that loads the two crashes.
    if "highspy" in sys.modules:
        raise WorkError("OR-Tools cannot be loaded beside highspy; use a process without highspy")
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError as error:
        raise WorkError("the exact oracle needs OR-Tools: pip install '.[exact]'") from error

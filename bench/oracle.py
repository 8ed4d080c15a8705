"""The annealed oracle: time per perturbation, and how far its records are from the best ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.oracles import Annealed, History, Law, LazyNoise, objective
from understudy.oracles.atoms import Atoms
from understudy.oracles.exact import Exact
from understudy.oracles.history import offsets
from understudy.oracles.noise import Draws

ADULT = (9, 16, 7, 15, 6, 5, 2, 42, 2, 10, 13, 6, 10)
BATCH, PROVED, SECONDS = 300, 3, 2.0


def past(shape: tuple[int, ...], rounds: int, rng: np.random.Generator) -> History:
    """A history like FEM's: cells of 64 three-way marginals, mostly small codes, falling weights."""
    cliques = [np.sort(rng.choice(len(shape), 3, replace=False)) for _ in range(64)]
    columns = np.array([cliques[i] for i in rng.integers(64, size=rounds)])
    codes = np.minimum(rng.geometric(0.45, columns.shape) - 1, np.asarray(shape)[columns] - 1)
    weights = (np.arange(1, rounds + 1) / rounds) ** -0.5
    return History.empty(shape).add_many(columns, codes, weights, rng.random(rounds) < 0.4)


@dataclass(frozen=True, eq=False)
class Given(LazyNoise):
    """Perturbations that were drawn over all one-hot positions, (rows, positions)."""

    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Given:
        """These."""
        return cls(Law.EXPONENTIAL, float(np.abs(values).max(initial=0.0)), len(values), values)

    def fold(self, atoms: Atoms, rng: np.random.Generator) -> Draws:
        """The best value of every atom."""
        values = np.take(self.values, atoms.members, axis=1)
        return _Folded(atoms, np.maximum.reduceat(values, atoms.first, axis=1), rng, self.values)

    def part(self, rows: range) -> Given:
        """Some of the rows."""
        return Given.of(self.values[rows.start : rows.stop])


@dataclass(frozen=True, eq=False)
class _Folded(Draws):
    full: NDArray[np.float64]

    def unfold(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Records: in each chosen atom the value of best perturbation."""
        chosen = codes + self.atoms.start[:-1]
        sizes, first = self.atoms.sizes, self.atoms.first
        positions = self.atoms.members[first[chosen]]
        for atom in np.flatnonzero(sizes > 1):
            members = self.atoms.members[first[atom] : first[atom] + sizes[atom]]
            column = np.searchsorted(self.atoms.start, atom, side="right") - 1
            rows = np.flatnonzero(chosen[:, column] == atom)
            positions[rows, column] = members[self.full[np.ix_(rows, members)].argmax(axis=1)]
        return positions - offsets(self.atoms.shape)[:-1]


def full(law: LazyNoise, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """All of a perturbation, drawn: (rows, number of one-hot positions)."""
    scale = np.repeat(law.scales(shape), shape)
    return law.law.draw((law.rows, len(scale)), rng) * scale


def scales(shape: tuple[int, ...], rounds: int) -> NDArray[np.float64]:
    """FEM's noise scales."""
    return 0.5 * np.sqrt(rounds) / (0.58 + np.log(np.asarray(shape)))


def microseconds(history: History, noise: LazyNoise, oracle: Annealed) -> float:
    """CPU time per perturbation, everything included, the best of five."""
    rng = np.random.default_rng(1)
    warm, _ = oracle.best(history, noise, rng=rng)
    spent: list[float] = []
    for _ in range(5):
        begun = time.process_time()
        warm, _ = oracle.best(history, noise, warm=warm, rng=rng)
        spent.append(time.process_time() - begun)
    return 1e6 * min(spent) / noise.rows


def gap(history: History, law: LazyNoise, oracles: list[Annealed]) -> tuple[list[float], int]:
    """Mean relative distance to CP-SAT's optimum, and how many perturbations it proved in time."""
    rng = np.random.default_rng(2)
    noise = full(law.part(range(PROVED)), history.shape, rng)
    records = [oracle.best(history, Given.of(noise), rng=rng)[0] for oracle in oracles]
    values = [objective(history, noise, each) for each in records]
    exact, pairs = Exact(seconds=SECONDS), zip(noise[:, None], records[-1][:, None], strict=True)
    best = [exact.best(history, Given.of(row), warm=first, rng=rng) for row, first in pairs]
    proven = np.array([not late for _, late in best])
    if not proven.any():
        return [float("nan")] * len(oracles), 0
    optimum = objective(history, noise, np.concatenate([found for found, _ in best]))
    gaps = [float(((optimum - each) / np.abs(optimum))[proven].mean()) for each in values]
    return gaps, int(proven.sum())


def row(name: str, shape: tuple[int, ...], rounds: int) -> None:
    """Print one line of the table."""
    history = past(shape, rounds, np.random.default_rng(0))
    law = LazyNoise(Law.EXPONENTIAL, scales(shape, rounds), BATCH)
    quick, thorough = Annealed(), Annealed(starts=8)
    spent = [microseconds(history, law, oracle) for oracle in (quick, thorough)]
    gaps, proven = gap(history, law, [quick, thorough])
    shown = [f"{100 * each:.2f} %" if proven else "–" for each in gaps]
    print(
        f"| {name} | {len(shape)} | {history.terms} | {spent[0]:.1f} | {shown[0]} "
        f"| {spent[1]:.1f} | {shown[1]} | {proven} of {PROVED} |"
    )


def main() -> None:
    """Print the table."""
    print(f"{BATCH} perturbations a call, three-way queries; CP-SAT has {SECONDS:.0f} s for each\n")
    print(
        "| domain | attributes | distinct queries | 2 starts, µs each | gap | 8 starts, µs each | gap "
        "| proven by CP-SAT |\n|---|---|---|---|---|---|---|---|"
    )
    for rounds in (10, 30, 100, 200, 500, 1000):
        row("ADULT", ADULT, rounds)
    for attributes in (10, 20, 50, 100, 200):
        row("10 values each", (10,) * attributes, 200)


if __name__ == "__main__":
    main()

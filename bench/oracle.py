"""The annealed oracle: time per perturbation, and how far its records are from the best ones."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from understudy.oracles import Annealed, History, Law, LazyNoise, objective
from understudy.oracles.exact import Exact

ADULT = (9, 16, 7, 15, 6, 5, 2, 42, 2, 10, 13, 6, 10)
BATCH, PROVED, SECONDS = 300, 3, 2.0


def past(shape: tuple[int, ...], rounds: int, rng: np.random.Generator) -> History:
    """A history like FEM's: cells of 64 three-way marginals, mostly small codes, falling weights."""
    cliques = [np.sort(rng.choice(len(shape), 3, replace=False)) for _ in range(64)]
    columns = np.array([cliques[i] for i in rng.integers(64, size=rounds)])
    codes = np.minimum(rng.geometric(0.45, columns.shape) - 1, np.asarray(shape)[columns] - 1)
    weights = (np.arange(1, rounds + 1) / rounds) ** -0.5
    return History.empty(shape).add_many(columns, codes, weights, rng.random(rounds) < 0.4)


def scales(shape: tuple[int, ...], rounds: int) -> NDArray[np.float64]:
    """FEM's noise scales."""
    return 0.5 * np.sqrt(rounds) / (0.58 + np.log(np.asarray(shape)))


def microseconds(history: History, noise: LazyNoise, oracle: Annealed) -> float:
    """CPU time per perturbation, everything included, the best of five."""
    rng = np.random.default_rng(1)
    warm = oracle.solve(history, noise, rng=rng)
    spent: list[float] = []
    for _ in range(5):
        begun = time.process_time()
        warm = oracle.solve(history, noise, warm=warm, rng=rng)
        spent.append(time.process_time() - begun)
    return 1e6 * min(spent) / noise.rows


def gap(history: History, law: LazyNoise, oracles: list[Annealed]) -> tuple[list[float], int]:
    """Mean relative distance to CP-SAT's optimum, and how many perturbations it proved in time."""
    rng = np.random.default_rng(2)
    noise = law.part(PROVED).draw(history.shape, rng)
    records = [oracle.solve(history, noise, rng=rng) for oracle in oracles]
    values = [objective(history, noise, each) for each in records]
    best = Exact(seconds=SECONDS).search(history, noise, warm=records[-1], rng=rng)
    proven = best.proven
    if not proven.any():
        return [float("nan")] * len(oracles), 0
    optimum = objective(history, noise, best.records)
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

"""Error against the number of steps, with and without the rule that stops training. NOT PRIVATE.

    PYTHONPATH=src python bench/gem_steps.py --steps 400,1200,2500,5000

Generated tables, all three-way marginals measured, noise seeded and errors exact. Like `bench/gpu.py`
it needs JAX, optax and NumPy alone, and takes minutes on a GPU and hours without. "All steps" is one
cosine over them, on everything that was measured. Prints a line of JSON for both trainings.
"""

from __future__ import annotations

import argparse
import json
import math
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from understudy.nets import training
from understudy.nets.generator import Generator
from understudy.nets.tables import Table
from understudy.nets.training import Effort, Evidence, Mixture, start, train

SHAPE = (4, 12, 8, 20, 6, 3, 2, 30, 2, 10, 16, 5, 9)
CLIQUES = list(combinations(range(len(SHAPE)), 3))
TABLES = [
    (kind, rows, epsilon)
    for epsilon, rows in ((1.0, 48_000), (0.3, 48_000), (1.0, 5_000), (3.0, 48_000))
    for kind in ("chain", "mixture", "weak")
]
SEED, AGAIN = 4, 77

Codes = list[NDArray[np.int64]]
Float = NDArray[np.float64]


def made(kind: str, rows: int, seed: int) -> Codes:
    """A mixture of 30 products, or columns that depend, wholly or weakly, on one before them."""
    rng = np.random.default_rng(seed)
    skew = [rng.dirichlet(np.full(size, 0.5)) for size in SHAPE]

    def drawn(laws: Float, given: NDArray[np.int64]) -> NDArray[np.int64]:
        below = laws.cumsum(1)[given] < rng.random(rows)[:, None]
        return below.sum(1).clip(0, laws.shape[1] - 1)

    if kind == "mixture":
        part = rng.choice(30, rows, p=rng.dirichlet(np.ones(30)))
        return [
            drawn(np.stack([rng.dirichlet(base * base.size + 0.02) for _ in range(30)]), part)
            for base in skew
        ]
    codes = [rng.choice(SHAPE[0], rows, p=skew[0])]
    for i in range(1, len(SHAPE)):
        parent = codes[rng.integers(max(0, i - 3), i)]
        concentration = skew[i] * SHAPE[i] * 0.7 + 0.02
        laws = np.stack([rng.dirichlet(concentration) for _ in range(parent.max() + 1)])
        codes.append(drawn(0.3 * laws + 0.7 * skew[i] if kind == "weak" else laws, parent))
    return codes


def counted(codes: Codes, clique: tuple[int, ...]) -> Float:
    """Exact counts."""
    sizes = tuple(SHAPE[i] for i in clique)
    packed = np.ravel_multi_index(tuple(codes[i] for i in clique), sizes)
    return np.bincount(packed, minlength=math.prod(sizes)).reshape(sizes).astype(np.float64)


def measured(codes: Codes, epsilon: float, seed: int) -> tuple[list[Float], list[Evidence]]:
    """Shares of the columns and all marginals, with noise for (ε, 1/n²), half of it each."""
    rows, rng, again = codes[0].size, np.random.default_rng(seed), np.random.default_rng(AGAIN)
    log = math.log(rows**2)
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    one, sigma = (math.sqrt(k / rho) for k in (len(SHAPE), len(CLIQUES)))
    columns: list[Float] = []
    for i, size in enumerate(SHAPE):
        noisy = np.maximum(counted(codes, (i,)) + np.rint(rng.normal(0, one, size)), 0.5)
        columns.append(noisy / noisy.sum())
    evidence: list[Evidence] = []
    for clique in CLIQUES:
        exact = counted(codes, clique)
        noisy = exact + np.rint(rng.normal(0, sigma, exact.shape))
        a, b, c = (columns[i] for i in clique)
        expected = rows * np.multiply.outer(np.multiply.outer(a, b), c)
        beyond = float(((noisy - expected) ** 2).sum()) - sigma**2 * exact.size
        ratio = np.full(exact.shape, sigma**2 / max(beyond / rows, sigma / 5))
        noise, redrawn = np.full(exact.shape, sigma**2), again.normal(0, sigma, exact.shape)
        shares = [each / rows for each in (noisy, expected, ratio, noise / rows, redrawn)]
        evidence.append(Evidence(Table(clique), *shares))
    return columns, evidence


def all_steps(mixture: Mixture, columns: list[Float], seen: list[Evidence], effort: Any) -> Mixture:
    """One cosine over all steps, nothing held out."""
    told = training._told(mixture.generator, seen, effort)
    stretches = max(1, round(effort.steps / training._STRETCH))
    number = np.arange(stretches * training._STRETCH)
    rise = number.size / 20
    share = np.clip((number - rise) / (number.size - rise), 0, 1)
    rates = effort.rate * np.minimum((number + 1) / rise, 0.505 + 0.495 * np.cos(np.pi * share))
    state: Any = {"params": mixture.params, "latents": mixture.latents}
    moments, flat = training._moments(state), np.float32(np.concatenate(columns))
    for each in np.float32(rates).reshape(stretches, -1):
        state, moments, *_ = training._stretch(
            mixture.generator, state, moments, told, flat, each, jnp.float32(effort.spread)
        )
    return Mixture(mixture.generator, state["params"], state["latents"])


def variation(mixture: Mixture, codes: Codes) -> float:
    """Mean total variation of every eighth marginal."""
    heads, found = mixture.heads(), []
    for clique in CLIQUES[::8]:
        a, b, c = (heads[i] for i in clique)
        lead = (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
        exact = counted(codes, clique).reshape(-1) / codes[0].size
        found.append(np.abs((lead.T @ c / len(a)).reshape(-1) - exact).sum() / 2)
    return float(np.mean(found))


def main() -> None:
    """Both ways of training, every table and number of steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="400,1200,2500,5000")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--tables", type=int, default=len(TABLES))
    given = parser.parse_args()
    for kind, rows, epsilon in TABLES[: given.tables]:
        codes = made(kind, rows, SEED)
        columns, evidence = measured(codes, epsilon, SEED)
        for steps in map(int, given.steps.split(",")):
            effort = Effort(steps, 0.03)
            begin = start(Generator(SHAPE, width=128, blocks=1), given.batch, 0, columns)
            done = train(begin, columns, evidence, effort)
            line = {"table": kind, "rows": rows, "epsilon": epsilon, "steps": steps}
            line |= {"rule": variation(done.mixture, codes), "stopped": done.steps}
            whole = all_steps(begin, columns, evidence, effort)
            print(json.dumps(line | {"all_steps": variation(whole, codes)}), flush=True)


if __name__ == "__main__":
    main()

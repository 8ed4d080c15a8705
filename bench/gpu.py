"""Train one generator on all three-way marginals of a table, on whatever device JAX finds. NOT PRIVATE.

    PYTHONPATH=src python bench/gpu.py data.csv domain.json --width 1024 --steps 500
    PYTHONPATH=src JAX_PLATFORMS=cpu taskset -c 0,1 python bench/gpu.py data.csv domain.json ...

It stands alone: JAX, optax and NumPy, and of understudy only `nets`, so that it runs on a machine where
the rest is not installed. The noise is NumPy's and seeded, the errors are exact: a measurement of speed
on a public table, never a release. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


def read(data: Path, domain: Path) -> tuple[tuple[int, ...], list[NDArray[np.int64]]]:
    """(values per column, codes per column) of a table of integer codes."""
    sizes: dict[str, int] = json.loads(domain.read_text(encoding="utf-8"))
    with data.open(encoding="utf-8") as lines:
        header = lines.readline().strip().split(",")
        rows = np.loadtxt(lines, np.int64, delimiter=",", ndmin=2)
    return tuple(sizes.values()), [rows[:, header.index(name)] for name in sizes]


def counted(
    shape: tuple[int, ...], codes: list[NDArray[np.int64]], clique: tuple[int, ...]
) -> Table:
    """Exact counts."""
    sizes = tuple(shape[i] for i in clique)
    packed = np.ravel_multi_index(tuple(codes[i] for i in clique), sizes)
    return np.bincount(packed, minlength=math.prod(sizes)).reshape(sizes).astype(np.float64)


def main() -> None:
    """Measure, train, compare; one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("domain", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--all-steps", action="store_true", help="hold nothing out, take all steps")
    given = parser.parse_args()

    begun, cpu = time.perf_counter(), time.process_time()
    import jax
    import optax

    from understudy.nets.generator import Generator
    from understudy.nets.tables import Table as Which
    from understudy.nets.training import Effort, Evidence, start, train

    jax.devices()
    imported = time.perf_counter()
    shape, codes = read(given.data, given.domain)
    rows = codes[0].size
    cliques = list(combinations(range(len(shape)), 3))
    # ρ of (ε, 1/n²) by the quick conversion, half for columns and half for the marginals.
    log = math.log(rows**2)
    rho = (math.sqrt(log + given.epsilon) - math.sqrt(log)) ** 2
    rng = np.random.default_rng(0)
    sigma_one, sigma = (math.sqrt(k / rho) for k in (len(shape), len(cliques)))
    columns: list[Table] = []
    for i in range(len(shape)):
        exact = counted(shape, codes, (i,))
        noisy = np.maximum(exact + np.rint(rng.normal(0, sigma_one, exact.shape)), 0.5)
        columns.append(noisy / noisy.sum())
    exacts = [counted(shape, codes, clique) for clique in cliques]
    evidence: list[Evidence] = []
    for clique, exact in zip(cliques, exacts, strict=True):
        noisy = exact + np.rint(rng.normal(0, sigma, exact.shape))
        expected = np.ones(())
        for i in clique:
            expected = np.multiply.outer(expected, columns[i])
        expected = rows * expected
        beyond = float(((noisy - expected) ** 2).sum()) - sigma**2 * exact.size
        ratio = np.full(exact.shape, sigma**2 / max(beyond / rows, sigma / 5))
        noise, again = np.full(exact.shape, sigma**2), rng.normal(0, sigma, exact.shape)
        again *= not given.all_steps
        shares = [each / rows for each in (noisy, expected, ratio, noise / rows, again)]
        evidence.append(Evidence(Which(clique), *shares))
    prepared = time.perf_counter()
    net = Generator(shape, width=given.width, blocks=given.blocks)
    mixture = start(net, given.batch, 0, columns)
    effort = Effort(given.steps, given.rate)
    marks: list[tuple[int, float]] = []
    done = train(
        mixture,
        columns,
        evidence,
        effort,
        lambda step, *_: marks.append((step, time.perf_counter())),
    )
    heads = done.mixture.heads()
    trained = time.perf_counter()
    variations: list[float] = []
    for clique, exact in zip(cliques, exacts, strict=True):
        a, b, c = (heads[i] for i in clique)
        lead = (a[:, :, None] * b[:, None, :]).reshape(given.batch, -1)
        table = (lead.T @ c / given.batch).reshape(exact.shape)
        variations.append(float(np.abs(table - exact / rows).sum() / 2))
    device = jax.devices()[0]
    (first, early), (taken, late) = marks[0], marks[-1]
    print(
        json.dumps(
            {
                "private": "NOT PRIVATE: seeded float noise, exact errors",
                "device": device.device_kind,
                "platform": device.platform,
                "python": platform.python_version(),
                "jax": jax.__version__,
                "optax": optax.__version__,
                "marginals": len(cliques),
                "cells": int(sum(e.size for e in exacts)),
                "width": given.width,
                "blocks": given.blocks,
                "batch": given.batch,
                "steps": done.steps,
                "steps_taken": taken,
                "loss": done.loss,
                "diverged": done.diverged,
                "tv": float(np.mean(variations)),
                "import_s": round(imported - begun, 2),
                "prepare_s": round(prepared - imported, 2),
                "first_stretch_s": round(early - prepared, 2),
                "train_s": round(trained - prepared, 2),
                "ms_per_step": round(1e3 * (late - early) / max(1, taken - first), 3),
                "end_to_end_s": round(trained - begun, 2),
                "cpu_s": round(time.process_time() - cpu, 2),
            }
        )
    )


if __name__ == "__main__":
    main()

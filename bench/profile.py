"""Where the default's time goes, and how far its parts are from the bare NumPy loop that must be run.

A generated table of ADULT's size (48 842 rows, 14 columns, 64 triples), ε = 1. CPU seconds by part come
from one profiled release after a first one that fills the caches of compiled code; profiling itself
makes everything a few percent slower. The bare loops do, in plain NumPy, what no method of this kind
can leave out: count every table once, go over the records' weights for every table and sweep, look up
the cells of every proposed swap.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable

import numpy as np

import understudy as us
from bench.published.tables import Bench
from bench.published.wide import wide
from understudy.models import Weighted
from understudy.players.data.particles import Particles

ROWS, COLUMNS, WORKLOAD = 48_842, 14, "marginals:3:64@0"

PARTS = {
    "calibrating the plan": ("planning.py", "calibrate"),
    "reading and encoding": ("memory.py", "bind"),
    "counting": ("evaluate.py", "add"),
    "drawing noise": ("noise.py", "gaussian"),
    "fitting between rounds": ("particles.py", "view"),
    "fitting at the end": ("particles.py", "finish"),
    "drawing rows": ("weighted.py", "sample"),
}


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def release(bench: Bench) -> us.Release:
    """One release of the table."""
    return us.release(
        bench.table, bench.schema, epsilon=1, rows_public=ROWS, delta=f"{1 / ROWS**2:.3e}",
        workload=WORKLOAD,
    )  # fmt: skip


def parts(profile: cProfile.Profile) -> dict[str, float]:
    """CPU seconds of each part, with everything it calls."""
    found = dict.fromkeys(PARTS, 0.0)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (file, _, name), (_, _, _, cumulative, _) in stats.items():
        for part, (module, function) in PARTS.items():
            if name == function and file.replace("\\", "/").endswith("/" + module):
                found[part] += cumulative
    return found


def counting(bench: Bench, cliques: list[tuple[int, ...]]) -> None:
    """Count every table once."""
    shape = bench.schema.shape
    for clique in cliques:
        packed = np.zeros(ROWS, np.int64)
        for i in clique:
            packed = packed * shape[i] + bench.codes[i]
        np.bincount(packed, minlength=int(np.prod([shape[i] for i in clique])))


def fitting(model: Weighted, cliques: list[tuple[int, ...]], sweeps: int) -> None:
    """Sum the weights by cell and multiply them by a factor, table by table."""
    weights = model.weights.astype(np.float64)
    for clique in cliques:
        packed = np.zeros(model.size, np.int64)
        for i in clique:
            packed = packed * model.shape[i] + model.codes[i]
        size = int(np.prod([model.shape[i] for i in clique]))
        for _ in range(sweeps):
            table = np.bincount(packed, weights, size)
            weights *= np.ones_like(table)[packed]


def sampling(model: Weighted, rng: np.random.Generator) -> None:
    """Choose rows systematically; look up both cells of every proposal in every table."""
    cumulative = np.cumsum(model.weights, dtype=np.float64)
    points = (np.arange(ROWS) + 0.5) * (cumulative[-1] / ROWS)
    chosen = np.searchsorted(cumulative, points)
    proposals = rng.integers(model.size, size=model.swaps * ROWS)
    places = chosen[rng.integers(ROWS, size=proposals.size)]
    for clique in model.cliques:
        packed = np.zeros(model.size, np.int64)
        for i in clique:
            packed = packed * model.shape[i] + model.codes[i]
        table = np.bincount(packed, model.weights)
        np.subtract(table[packed[proposals]], table[packed[places]])


def main() -> None:
    """Print the tables."""
    bench = wide(ROWS, COLUMNS)
    release(bench)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    begun = time.process_time()
    made = release(bench)
    whole = time.process_time() - begun
    profile.disable()
    spent = parts(profile)
    print(f"{ROWS:,} rows × {COLUMNS} columns, {len(made.workload.cliques)} triples\n")
    print("| part | CPU s | share |\n|---|---|---|")
    for part, seconds in spent.items():
        print(f"| {part} | {seconds:.2f} | {seconds / whole:.0%} |")
    rest = whole - sum(spent.values())
    print(f"| the rest | {rest:.2f} | {rest / whole:.0%} |\n| all | {whole:.2f} | |\n")

    model = made.model
    assert isinstance(model, Weighted)
    triples = [tuple(clique) for clique in made.workload.cliques]
    pairs = sorted({(c[a], c[b]) for c in triples for a, b in ((0, 1), (0, 2), (1, 2))})
    columns = [(i,) for i in range(COLUMNS)]
    again = pairs[:30]
    bare = {
        "counting": cpu(lambda: counting(bench, [*columns, *pairs, *pairs, *again, *triples])),
        "fitting at the end": cpu(lambda: fitting(model, [*columns, *pairs], Particles().sweeps)),
        "drawing rows": cpu(lambda: sampling(model, np.random.default_rng(0))),
    }
    print("| part | CPU s | bare NumPy loop | ratio |\n|---|---|---|---|")
    for part, seconds in bare.items():
        print(f"| {part} | {spent[part]:.2f} | {seconds:.2f} | {spent[part] / seconds:.1f} |")

"""Counting files larger than memory: cost per row, against the leanest loop that reads the same files.

    python -m bench outofcore                     10⁶ and 10⁷ rows
    UNDERSTUDY_ROWS=100000000 python -m bench outofcore

Every size is generated into a temporary folder and deleted after. Both loops run in processes of
their own, so that CPU time (of all threads) and the largest resident set are theirs alone; before the
clock starts each counts a small table, so that imports and first allocations are no cost of rows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.releases.run import release
from understudy.schema import Integer, Schema
from understudy.source import read

COLUMNS, VALUES, MARGINALS = 15, 20, 64
FILE_ROWS, DIFFERENT = 2_000_000, 5
LIMIT = "2GB"
SIZES = (10**6, 10**7)
SMALL = 10_000
BATCH = 1 << 16
NAMES = [f"c{i}" for i in range(COLUMNS)]


def schema() -> Schema:
    """Fifteen columns of twenty values."""
    return Schema(tuple(Integer(name, 0, VALUES - 1) for name in NAMES))


def cliques() -> list[tuple[int, ...]]:
    """64 of the three-way marginals."""
    every = list(combinations(range(COLUMNS), 3))
    chosen = np.random.default_rng(0).choice(len(every), MARGINALS, replace=False)
    return [every[i] for i in chosen]


def generate(folder: Path, rows: int) -> int:
    """Write the table; correlated columns, so that a release has something to find. Its bytes.

    From the sixth file on, files are copies of the first five: they cost as much to count.
    """
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"{number:05}.parquet"
        size = min(FILE_ROWS, rows - start)
        if number >= DIFFERENT and size == FILE_ROWS:
            shutil.copy(folder / f"{number % DIFFERENT:05}.parquet", path)
            continue
        rng = np.random.default_rng([1, number])
        base = rng.integers(0, VALUES, size)
        columns = {
            name: (base * (i % 3) + rng.integers(0, VALUES, size)) % VALUES
            for i, name in enumerate(NAMES)
        }
        pq.write_table(pa.table(columns), path)
    return sum(path.stat().st_size for path in folder.iterdir())


def lean(folder: Path) -> int:
    """The loop that must be run in any case: read a batch, pack three columns, bincount.

    The leanest that was found: batches that stay in the cache, the packed pair that marginals begin
    with computed once, no copy that can be spared.
    """
    wanted = sorted(cliques())
    tables = [np.zeros(VALUES**3, np.int64) for _ in wanted]
    for path in sorted(folder.iterdir()):
        for rows in pq.ParquetFile(path).iter_batches(BATCH):
            codes = [column.to_numpy() for column in rows.columns]
            packed, before, pair = np.empty_like(codes[0]), None, codes[0]
            for table, (a, b, c) in zip(tables, wanted, strict=True):
                if before != (a, b):
                    pair, before = (codes[a] * VALUES + codes[b]) * VALUES, (a, b)
                np.add(pair, codes[c], out=packed)
                table += np.bincount(packed, minlength=VALUES**3)
    return int(tables[0].sum())


def ours(folder: Path) -> None:
    """The same marginals by the source, within the memory limit; they stay sealed."""
    read(folder, engine="duckdb", memory_limit=LIMIT).bind(schema()).marginals(cliques())


def released(folder: Path) -> str:
    """A whole release, certificate included."""
    made = release(
        read(folder, engine="duckdb", memory_limit=LIMIT),
        schema(),
        epsilon=1,
        workload=[tuple(NAMES[i] for i in clique) for clique in cliques()],
        rows=100_000,
    )
    return str(made.certificate)


def peak() -> int:
    """The largest resident set since this program began; getrusage would count its parent's too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s*([0-9]+) kB", status)[0]) * 1024


def measured(work: Callable[[], object]) -> dict[str, object]:
    """CPU seconds of all threads, wall seconds and the largest resident set of this process."""
    cpu, wall = time.process_time(), time.perf_counter()
    said = work()
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "peak": peak(),
        "said": said,
    }


def apart(what: str, folder: Path) -> dict[str, float]:
    """Measure in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.outofcore", what, str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Print the table."""
    given = os.environ.get("UNDERSTUDY_ROWS")
    sizes = SIZES if given is None else tuple(int(float(size)) for size in given.split(","))
    print(f"{COLUMNS} columns, {MARGINALS} marginals of {VALUES**3} cells, limit {LIMIT}\n")
    print(
        "| rows | files | leanest loop, CPU s | ours, CPU s | ratio | ours, ns a row | "
        "peak memory | a release, CPU s | its peak |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for rows in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            size = generate(folder, rows)
            base = apart("lean", folder)["cpu"]
            count = apart("ours", folder)
            print(f"{rows:,} rows: {base:.1f} and {count['cpu']:.1f} CPU s", file=sys.stderr)
            whole = apart("released", folder)
        print(
            f"| {rows:,} | {size / 1e6:,.0f} MB | {base:.1f} | {count['cpu']:.1f} | "
            f"{count['cpu'] / base:.2f} | {1e9 * count['cpu'] / rows:,.0f} | "
            f"{count['peak'] / 1e9:.2f} GB | {whole['cpu']:.1f} | {whole['peak'] / 1e9:.2f} GB |",
            flush=True,
        )
        print(whole["said"], file=sys.stderr)


if __name__ == "__main__":
    kind, where = sys.argv[1], Path(sys.argv[2])
    jobs: dict[str, Callable[[Path], object]] = {"lean": lean, "ours": ours, "released": released}
    if kind != "released":
        with tempfile.TemporaryDirectory() as small:
            generate(Path(small), SMALL)
            jobs[kind](Path(small))
    print(json.dumps(measured(lambda: jobs[kind](where))))

"""Counting marginals: how far the sources are from the loop that must be run in any case."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from understudy.queries import counts
from understudy.schema import Integer, Schema
from understudy.source import read

ROWS, COLUMNS, VALUES = 1_000_000, 15, 20


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(COLUMNS)]
    schema = Schema(tuple(Integer(name, 0, VALUES - 1) for name in names))
    codes = [rng.integers(0, VALUES, ROWS).astype(np.uint8) for _ in names]
    every = list(combinations(range(COLUMNS), 3))
    cliques = [every[i] for i in rng.choice(len(every), 64, replace=False)]
    shape = schema.shape

    def bare() -> None:
        for a, b, c in cliques:
            packed = (codes[a].astype(np.int64) * VALUES + codes[b]) * VALUES + codes[c]
            np.bincount(packed, minlength=VALUES**3)

    base = cpu(bare)
    print(f"{ROWS:,} rows × {COLUMNS} columns, {len(cliques)} marginals of {VALUES**3} cells\n")
    print("| what | CPU s | against the bare loop |\n|---|---|---|")
    print(f"| bare NumPy bincount loop on codes | {base:.2f} | 1.00 |")
    encoded = cpu(lambda: counts(codes, shape, cliques))
    print(f"| `queries.counts` on codes | {encoded:.2f} | {encoded / base:.2f} |")
    table = pa.table(dict(zip(names, [c.astype(np.int64) for c in codes], strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        csv, parquet = Path(folder) / "t.csv", Path(folder) / "t.parquet"
        pa.csv.write_csv(table, csv)
        pa.parquet.write_table(table, parquet)
        for what, source in {
            "Arrow table": lambda: read(table),
            "CSV in memory": lambda: read(csv, engine="memory"),
            "Parquet in memory": lambda: read(parquet, engine="memory"),
            "CSV by DuckDB, streamed": lambda: read(csv, engine="duckdb"),
            "Parquet by DuckDB, streamed": lambda: read(parquet, engine="duckdb"),
        }.items():
            spent = cpu(lambda source=source: source().bind(schema).marginals(cliques))
            print(f"| {what}, read and encode included | {spent:.2f} | {spent / base:.2f} |")

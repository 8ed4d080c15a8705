"""The default method on tables at both ends: 100 columns × 100 000 rows, and 10 columns × 10 rows.

`python -m bench wide`; UNDERSTUDY_WIDE=COLUMNSxROWS for another size. Each release is a process of its
own; CPU seconds and peak memory are the whole process's, imports and generating the table included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

ONE = """
import json, resource, sys, time
import understudy as us
from bench.published.wide import wide

rows, columns, epsilon = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
bench = wide(rows, columns)
before = time.process_time()
prepared = us.prepare(bench.schema, epsilon=epsilon, rows_public=rows, delta=min(1e-9, 1 / rows**2))
forecast = prepared.forecast(rows)
planned = time.process_time() - before
stages, last = {}, [time.process_time(), "checking"]

def progress(now_at):
    now = time.process_time()
    stages[last[1]] = stages.get(last[1], 0.0) + now - last[0]
    last[:] = [now, now_at.stage]

made = us.release(
    bench.table, bench.schema, epsilon=epsilon, rows_public=rows, delta=min(1e-9, 1 / rows**2),
    progress=progress,
)
progress(us.progress.Progress("", 0, 1))
usage = resource.getrusage(resource.RUSAGE_SELF)
worst, variation = bench.errors(made.rows, made.workload.cliques)
print(json.dumps({
    "pairs": len(made.workload.cliques),
    "cells": made.workload.cells(bench.schema.shape),
    "cpu": usage.ru_utime + usage.ru_stime,
    "mb": usage.ru_maxrss / 1000,
    "stages": {name: round(seconds, 1) for name, seconds in stages.items()},
    "worst": worst, "tv": variation,
    "forecast_mb": forecast.memory_bytes / 1e6, "forecast_s": forecast.seconds,
    "forecast_worst": forecast.errors.worst, "forecast_tv": forecast.errors.mean,
    "noise": forecast.errors.noise,
    "legal": not bench.schema.illegal(made.rows),
}))
"""

RUNS = ((100_000, 100, "1"), (10, 10, "0.01"))


def one(rows: int, columns: int, epsilon: str) -> dict[str, object]:
    """A release in a process of its own, one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", ONE, str(rows), str(columns), epsilon],
        capture_output=True, text=True, check=True, env={**os.environ, **threads},
    )  # fmt: skip
    return json.loads(done.stdout)


def main() -> None:
    """Print the table."""
    runs = RUNS
    if chosen := os.environ.get("UNDERSTUDY_WIDE"):
        columns, rows = (int(part) for part in chosen.split("x"))
        runs = ((rows, columns, "1"),)
    print(
        "| table | ε | pairs | cells | CPU s | MB | expected s, MB | TV | expected | worst cell "
        "| expected |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    notes: list[str] = []
    for rows, columns, epsilon in runs:
        r = one(rows, columns, epsilon)
        print(
            f"| {columns} × {rows:,} | {epsilon} | {r['pairs']:,} | {r['cells']:,} | {r['cpu']:.1f} "
            f"| {r['mb']:.0f} | {r['forecast_s']:.0f}, {r['forecast_mb']:.0f} | {r['tv']:.4f} "
            f"| {r['forecast_tv']:.4f} | {r['worst']:.4f} | {r['forecast_worst']:.4f} |",
            flush=True,
        )
        notes.append(
            f"{columns} × {rows:,}: CPU seconds by stage {r['stages']}; rows legal: {r['legal']}; "
            f"called noise by the forecast: {r['noise']}"
        )
    print("\n" + "\n".join(notes))

"""Does the error of the default method fall with every step of ε, from 0.01 to 10?

`python -m bench monotone`; with UNDERSTUDY_ADULT=CSV and UNDERSTUDY_ADULT_DOMAIN=JSON on ADULT too.
All pairs, n public, δ = 1/n², the certificate inside the ε; means of three runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

import understudy as us
from bench.published.tables import Bench, generated, load
from bench.published.wide import wide

EPSILONS = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10")
RUNS = 3


def tables() -> Iterator[tuple[str, Bench]]:
    """The demo survey, two generated tables, and ADULT where it is given."""
    yield "survey, 50 000 × 14", generated()
    yield "generated, 20 000 × 12", wide(20_000, 12)
    yield "generated, 5 000 × 20", wide(5_000, 20, key=7)
    data, domain = (
        os.environ.get(name) for name in ("UNDERSTUDY_ADULT", "UNDERSTUDY_ADULT_DOMAIN")
    )
    adult = load("ADULT", Path(data) if data else None, Path(domain) if domain else None)
    if adult is not None:
        yield "ADULT", adult


def main() -> None:
    """Print the table and every step that did not fall."""
    print(
        "| table | error |" + "".join(f" {e} |" for e in EPSILONS) + " falls |\n"
        "|---|---|" + "---|" * (len(EPSILONS) + 1)
    )
    for name, bench in tables():
        means: list[tuple[float, float]] = []
        for epsilon in EPSILONS:
            runs: list[tuple[float, float]] = []
            for _ in range(RUNS):
                made = us.release(
                    bench.table, bench.schema, epsilon=epsilon, delta=min(1e-9, bench.rows**-2.0),
                    rows_public=bench.rows, rows=bench.rows,
                )  # fmt: skip
                worst, variation = bench.errors(made.rows, made.workload.cliques)
                runs.append((variation, worst))
            means.append(
                (float(np.mean([r[0] for r in runs])), float(np.mean([r[1] for r in runs])))
            )
        for at, what in enumerate(("TV", "max")):
            row = [mean[at] for mean in means]
            falls = all(b < a for a, b in pairwise(row))
            print(
                f"| {name if at == 0 else ''} | {what} |"
                + "".join(f" {value:.4f} |" for value in row)
                + f" {'yes' if falls else 'NO'} |",
                flush=True,
            )

"""Private learning on ADULT against diffprivlib, and Frank-Wolfe on a wide generated table.

    python -m bench.learn adult.csv --out learn

`adult.csv` is UCI Adult with a header, its values as text. Indicators of seven columns and five
numbers, each with the bounds of its codebook; income above 50K is the target; a fifth of the rows is
held out, another fifth in every run. Everybody gets the same scaled features in [0, 1] and the same
split. diffprivlib runs in an environment of its own, made here once, and is told the bound √12 on the
norm of a row: five numbers and seven indicators. It promises pure ε for a row that is replaced; ours
promise (ε, 1/n²), and are run for rows that are replaced and for rows that are added or removed. Runs
take no seed and none is thrown away.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from bench.published.peers import Measures, environment
from bench.twins import NonPrivateLogisticRegression
from understudy.learn import PrivateLogisticRegression

NUMBERS = {
    "age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356), "hours-per-week": (1, 99),
}  # fmt: skip
LABELS = (
    "workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
NORM = (len(NUMBERS) + len(LABELS)) ** 0.5
EPSILONS = (1, 3)
# Newer versions of scikit-learn lack what diffprivlib 0.6.6 imports.
PINNED = "scikit-learn<1.6"
RIVAL = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
path, out, norm, epsilon = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
data = np.load(path)
model = LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000)
model.fit(data["rows"], data["labels"])
json.dump([int(p) for p in model.predict(data["held"])], open(out, "w"))
"""


def read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features scaled to [0, 1], and whether income is above 50K."""
    table = pyarrow.csv.read_csv(path)
    columns: list[Any] = []
    for name, (low, high) in NUMBERS.items():
        values = np.clip(table[name].to_numpy().astype(float), low, high)
        columns.append(((values - low) / (high - low))[:, None])
    for name in LABELS:
        values = table[name].to_numpy(zero_copy_only=False).astype(str)
        columns.append((values[:, None] == np.unique(values)).astype(float))
    income = table["income"].to_numpy(zero_copy_only=False).astype(str)
    return np.concatenate(columns, axis=1), (income == ">50K").astype(np.int64)


def rival(python: Path, folder: Path, epsilon: float, split: Any) -> NDArray[np.int64]:
    """diffprivlib's labels of the held-out rows."""
    rows, labels, held = split
    np.savez(folder / "split.npz", rows=rows, labels=labels, held=held)
    out = folder / "labels.json"
    subprocess.run(
        [str(python), "-c", RIVAL, str(folder / "split.npz"), str(out), str(NORM), str(epsilon)],
        check=True,
    )
    (folder / "split.npz").unlink()
    return np.array(json.loads(out.read_text(encoding="utf-8")))


def accuracies(path: Path, folder: Path, runs: int) -> Iterator[tuple[str, Any, float, float]]:
    """(system, ε, accuracy on the held-out rows, seconds) of every run."""
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder / "environments", "diffprivlib", print)
    pinned = folder / "environments" / ".pinned"
    if python is not None and not pinned.exists():
        subprocess.run([str(python), "-m", "pip", "install", "-q", PINNED], check=True)
        pinned.touch()
    X, y = read(path)
    for number in range(runs):
        order = np.random.default_rng(number).permutation(len(X))
        held, kept = order[: len(X) // 5], order[len(X) // 5 :]
        facts: dict[str, Any] = {"bounds": (0, 1), "classes": (0, 1)}

        def timed(work: Any, held: Any = held) -> tuple[float, float]:
            begun = time.perf_counter()
            found = work()
            return float((found == y[held]).mean()), time.perf_counter() - begun

        def ours(model: Any, held: Any = held, kept: Any = kept) -> Any:
            return lambda: model.fit(X[kept], y[kept]).predict(X[held])

        yield "not private", "", *timed(ours(NonPrivateLogisticRegression(**facts)))
        for epsilon in EPSILONS:
            for solver in ("sgd", "frank-wolfe"):
                for neighbours in ("add-remove", "replace"):
                    model = PrivateLogisticRegression(
                        epsilon, solver=solver, neighbours=neighbours, rows_public=len(kept),
                        **facts,
                    )  # fmt: skip
                    yield f"`{solver}`, {neighbours}", epsilon, *timed(ours(model))
            if python is not None:
                split = X[kept], y[kept], X[held]
                yield (
                    "diffprivlib, replace", epsilon,
                    *timed(lambda e=epsilon, s=split: rival(python, folder, e, s)),
                )  # fmt: skip


def wide(rows: int = 10_000, columns: int = 10_000) -> tuple[float, float, int]:
    """(CPU seconds, accuracy on other rows, steps) of Frank-Wolfe; ten features of all matter."""
    rng = np.random.default_rng(0)
    true = np.zeros(columns)
    true[:10] = 4.0

    def drawn(n: int) -> tuple[Any, Any]:
        X = rng.uniform(-1, 1, (n, columns)).astype(np.float32)
        return X, (X @ true + rng.logistic(size=n) > 0).astype(int)

    X, y = drawn(rows)
    model = PrivateLogisticRegression(
        3, bounds=(-1, 1), classes=(0, 1), rows_public=rows, solver="frank-wolfe", radius=20
    )
    begun = time.process_time()
    model.fit(X, y)
    spent = time.process_time() - begun
    return spent, model.score(*drawn(1000)), model.n_iter_


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.learn", description=__doc__)
    parser.add_argument("adult", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    found: dict[tuple[str, Any], list[tuple[float, float]]] = {}
    for system, epsilon, accuracy, seconds in accuracies(given.adult, given.out, given.runs):
        found.setdefault((system, epsilon), []).append((accuracy, seconds))
    print(f"\n| ε | model | accuracy, mean of {given.runs} | seconds |\n|---|---|---|---|")
    for (system, epsilon), runs in found.items():
        accuracy = Measures.of([a for a, _ in runs]).text("{:.4f}")
        seconds = Measures.of([s for _, s in runs]).mean
        print(f"| {epsilon} | {system} | {accuracy} | {seconds:.1f} |")
    spent, accuracy, steps = wide()
    print(
        f"\n10 000 rows × 10 000 features, ε = 3, `frank-wolfe`: {spent:.1f} CPU seconds, {steps} "
        f"steps, accuracy {accuracy:.3f}"
    )


if __name__ == "__main__":
    main()

"""`dpgan` on ADULT as it comes, and what a private step costs.

    python -m bench.dpgan adult.csv --out dpgan
    python -m bench.dpgan --steps

`adult.csv` is UCI Adult with a header, its values as text, the 32 561 rows of `adult.data` first and
the 16 281 of `adult.test` after them. The first part is the private table. Scores are exact and of
public rows:

    k-marginal   1000·(1 − mean total variation) over all pairs of columns, as SDNist's score, and over
                 100 triples, on the cells of the schema
    AUC          a logistic regression trained on as many synthetic rows, tested on `adult.test`

Everybody gets the same rows, δ = 1/n² and a public n. smartnoise's DP-CTGAN and PATE-CTGAN run in an
environment of their own, which is made here unless `--rivals PYTHON` names one, on the same public
cells; they spend nothing on preprocessing. Each run is a process with one thread and `--limit` seconds;
what stops it, and how far it came, is what the table says. Settings follow a name,
`smartnoise-dpctgan:epochs=6`, for ours and for theirs. Runs take no seed and none is thrown away: what
is in the results file is not run again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

import understudy as us
from bench.published.keeping import keep
from bench.published.peers import environment, measured, said
from understudy.schema import Schema

TRAIN = 32_561
EPSILONS = ("1", "3", "10")
RUNS = 3
TRIPLES = 100
LIMIT = 1500.0

SCHEMA = """[understudy]
version = 1
null_values = ["?"]
[[column]]
name = "age"
type = "integer"
lower = 17
upper = 90
bins = 25
[[column]]
name = "workclass"
type = "category"
nullable = true
values = ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
  "Without-pay", "Never-worked"]
[[column]]
name = "fnlwgt"
type = "integer"
lower = 0
upper = 1500000
bins = 30
[[column]]
name = "education"
type = "category"
values = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
  "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"]
[[column]]
name = "education-num"
type = "integer"
lower = 1
upper = 16
[[column]]
name = "marital-status"
type = "category"
values = ["Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
  "Married-spouse-absent", "Married-AF-spouse"]
[[column]]
name = "occupation"
type = "category"
nullable = true
values = ["Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
  "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing",
  "Transport-moving", "Priv-house-serv", "Protective-serv", "Armed-Forces"]
[[column]]
name = "relationship"
type = "category"
values = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
[[column]]
name = "race"
type = "category"
values = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
[[column]]
name = "sex"
type = "category"
values = ["Female", "Male"]
[[column]]
name = "capital-gain"
type = "integer"
edges = [0, 1, 2000, 3500, 5000, 7000, 10000, 20000, 99999]
[[column]]
name = "capital-loss"
type = "integer"
edges = [0, 1, 1500, 1800, 2000, 2500, 4356]
[[column]]
name = "hours-per-week"
type = "integer"
lower = 1
upper = 99
bins = 20
[[column]]
name = "native-country"
type = "category"
nullable = true
values = ["United-States", "Mexico", "Philippines", "Germany", "Canada", "Puerto-Rico",
  "El-Salvador", "India", "Cuba", "England", "China"]
other = "Other"
[[column]]
name = "income"
type = "category"
values = ["<=50K", ">50K"]
"""

Codes = list[NDArray[np.unsignedinteger[Any]]]


def read(path: Path) -> tuple[Schema, pa.Table, pa.Table]:
    """The schema, the private rows and those to be tested on."""
    schema = Schema.loads(SCHEMA)
    table = pyarrow.csv.read_csv(path)
    return schema, table.slice(0, TRAIN), table.slice(TRAIN)


def marginal_score(shape: Sequence[int], real: Codes, made: Codes, order: int) -> float:
    """1000·(1 − mean total variation) over all pairs, or over 100 triples that a key fixes."""
    from itertools import combinations

    cliques = list(combinations(range(len(shape)), order))
    if order > 2:
        chosen = np.random.default_rng(0).choice(len(cliques), TRIPLES, replace=False)
        cliques = [cliques[i] for i in chosen]
    away: list[float] = []
    for clique in cliques:
        sizes = tuple(shape[i] for i in clique)
        tables = []
        for codes in (real, made):
            packed = np.ravel_multi_index(tuple(codes[i].astype(np.int64) for i in clique), sizes)
            tables.append(np.bincount(packed, minlength=int(np.prod(sizes))) / packed.size)
        away.append(float(np.abs(tables[0] - tables[1]).sum()) / 2)
    return 1000 * (1 - float(np.mean(away)))


def task_auc(schema: Schema, made: Codes, test: Codes) -> float:
    """Of a logistic regression for income, trained on `made` rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    target = schema.position("income")

    def features(codes: Codes) -> NDArray[np.float32]:
        parts = [
            np.eye(size, dtype=np.float32)[codes[i]]
            for i, size in enumerate(schema.shape)
            if i != target
        ]
        return np.concatenate(parts, axis=1)

    if len(np.unique(made[target])) < 2:
        return 0.5
    model = LogisticRegression(max_iter=300, C=0.1).fit(features(made), made[target])
    return float(roc_auc_score(test[target], model.predict_proba(features(test))[:, 1]))


def ours(method: str, options: dict[str, Any]) -> Callable[[Schema, pa.Table, str], Codes]:
    """A method of understudy on the rows."""

    def make(schema: Schema, table: pa.Table, epsilon: str) -> Codes:
        made = us.release(
            table, schema, epsilon=epsilon, delta=1 / table.num_rows**2, method=method,
            parameters=options, workload="marginals:2", rows_public=table.num_rows,
        )  # fmt: skip
        return schema.encode(made.rows)

    return make


class Stopped(RuntimeError):
    """A rival that made no rows: why, and the last that it said."""


def rival(
    method: str, options: dict[str, Any], python: Path, limit: float
) -> Callable[[Schema, pa.Table, str], Codes]:
    """smartnoise's method, in a process of its own."""

    def make(schema: Schema, table: pa.Table, epsilon: str) -> Codes:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            where = Path(folder)
            np.save(where / "codes.npy", np.stack(schema.encode(table), axis=1).astype(np.int64))
            job = {
                "method": method, "epsilon": float(epsilon), "delta": 1 / table.num_rows**2,
                "shape": list(schema.shape), "options": options, "cliques": [],
                "codes": str(where / "codes.npy"), "out": str(where / "out.npy"),
            }  # fmt: skip
            (where / "job.json").write_text(json.dumps(job), encoding="utf-8")
            script = Path(us.__file__).parent / "bench" / "rivals" / "run_smartnoise.py"
            used = measured([str(python), "-u", str(script), str(where / "job.json")], where, limit)
            if used["why"] is not None:
                lines = (
                    (where / "out.txt").read_text(encoding="utf-8", errors="replace").split("\n")
                )
                last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
                raise Stopped(f"{used['why']}, {used['cpu']:.0f} CPU s; it last said: {last[:120]}")
            codes = np.load(where / "out.npy")
            _say(f"{used['cpu']:.0f} CPU s, {said(where / 'out.txt')}")
        limits = np.array(schema.shape) - 1
        return [np.clip(codes[:, i], 0, limits[i]).astype(np.uint8) for i in range(codes.shape[1])]

    return make


def compare(
    path: Path, out: Path, systems: Sequence[str], epsilons: Sequence[str], runs: int,
    rivals: Path | None = None, limit: float = LIMIT,
) -> None:  # fmt: skip
    """Run what is missing, and write the table."""
    schema, private, test = read(path)
    out.mkdir(exist_ok=True, parents=True)
    results = out / "dpgan.json"
    kept: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    real, held = schema.encode(private), schema.encode(test)
    kept["rows themselves"] = {
        "k2": marginal_score(schema.shape, real, held, 2),
        "k3": marginal_score(schema.shape, real, held, 3),
        "auc": task_auc(schema, real, held),
    }
    makers = _makers(systems, out, rivals, limit)
    for name, make in makers.items():
        for epsilon in epsilons:
            for run in range(runs):
                key = f"{name} | {epsilon} | {run}"
                if key in kept:
                    continue
                start = _processor(), time.perf_counter()
                try:
                    made = make(schema, private, epsilon)
                except Exception as error:  # noqa: BLE001 - what failed is what the table says
                    kept[key] = {"failed": f"{type(error).__name__}: {error}"}
                else:
                    kept[key] = {
                        "k2": marginal_score(schema.shape, real, made, 2),
                        "k3": marginal_score(schema.shape, real, made, 3),
                        "auc": task_auc(schema, made, held),
                        "seconds": time.perf_counter() - start[1],
                        "cpu": _processor() - start[0],
                    }
                sys.stderr.write(f"{key}: {kept[key]}\n")
                keep(results, kept)
    sys.stdout.write(table(kept))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _processor() -> float:
    """Processor seconds of this process and of those it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _makers(systems: Sequence[str], out: Path, rivals: Path | None, limit: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in systems:
        method, _, setting = name.partition(":")
        pairs = [each.split("=") for each in setting.split("+") if each]
        options = {key: json.loads(value) for key, value in pairs}
        if not method.startswith("smartnoise-"):
            found[name] = ours(method, options)
            continue
        python = rivals
        if python is None:
            python = environment(out / "environments", "smartnoise-synth", _say)
            if python is not None:
                # Its networks import this without asking for it.
                subprocess.run([python, "-m", "pip", "install", "-q", "packaging"], check=False)
        if python is not None:
            found[name] = rival(method.removeprefix("smartnoise-"), options, python, limit)
    return found


def table(kept: dict[str, Any]) -> str:
    """Means over the runs, as Markdown."""
    rows = [
        "| system | ε | k-marginal, pairs | triples | AUC | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    whole = kept["rows themselves"]
    rows.append(
        f"| other real rows | – | {whole['k2']:.0f} | {whole['k3']:.0f} | {whole['auc']:.3f} | |"
    )
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, value in kept.items():
        if key != "rows themselves":
            name, epsilon, _ = key.split(" | ")
            groups.setdefault((name, epsilon), []).append(value)
    for (name, epsilon), found in groups.items():
        good = [each for each in found if "failed" not in each]
        if not good:
            rows.append(f"| {name} | {epsilon} | {found[0]['failed'][:300]} | | | |")
            continue
        means = {key: float(np.mean([each[key] for each in good])) for key in good[0]}
        rows.append(
            f"| {name} | {epsilon} | {means['k2']:.0f} | {means['k3']:.0f} | {means['auc']:.3f} | "
            f"{means['cpu']:.0f} |"
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.dpgan", description=__doc__)
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("dpgan"))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--systems", default="dpgan,auto,smartnoise-dpctgan,smartnoise-patectgan")
    parser.add_argument(
        "--rivals", type=Path, metavar="PYTHON", help="an interpreter that has smartnoise-synth"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        help="seconds for a run of a rival (default %(default)g)",
    )
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    parser.add_argument("--steps", action="store_true", help="what a private step costs, instead")
    given = parser.parse_args()
    if given.steps:
        from bench.dpgan_steps import measure

        sys.stdout.write(measure())
    elif given.table is None:
        parser.error("the path of adult.csv is missing")
    else:
        compare(
            given.table, given.out, given.systems.split(","), given.epsilons.split(","), given.runs,
            given.rivals, given.limit,
        )  # fmt: skip


if __name__ == "__main__":
    main()

"""What the devices of DP-GAN are worth: groups, adaptive clipping, warm start, choice of checkpoints.

    python -m bench.dpgan_devices --out devices
    python -m bench.dpgan_devices adult.csv loans.csv --out devices

Every table is cut to `--rows` private rows, a fiftieth as many public ones and 5000 to test on, drawn
anew for each run; all settings of a run get the same rows, so that differences are paired. Training
starts from a fresh network with fresh noise each time; n and δ = 1/n² are public. A device is switched
on alone, and off from all of them together; a cell says the mean over runs and, for every setting but
the first, how it differs from `none` with a 95 % interval (Student's t of the runs). `columns alone`
is the method `independent`.

    generated    a mixture of eight classes over twelve columns: what constants were chosen on
    adult.csv    as for `bench.dpgan`: UCI Adult, all fifteen columns
    loans.csv    LOANS, integer codes as Vietri et al. (2020) used it, eleven of its columns

    pairs        1000·(1 − mean total variation) over all pairs of columns, against the private rows
    AUC          a logistic regression for a binary column, fitted on synthetic rows, on test rows
    k-means      the mean squared distance of test rows to the nearest of eight centres of the synthetic
                 rows; columns scaled as in `players.data.checkpoints`. Less is better

Runs take no seed, and none is thrown away: what is in the results file is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from scipy.stats import t as student

import understudy as us
from bench.dpgan import SCHEMA as ADULT
from bench.dpgan import Codes, marginal_score
from bench.published.keeping import keep
from understudy.players.data.checkpoints import Clusters, k_means
from understudy.schema import Schema

TESTED = 5000
GROUPS = {"groups": 5}
ADAPTIVE = {"adapt": 0.2}
WARM = {"public": True}
CHOICE = {"pick": 1, "checkpoints": 8}
CLUSTERING = {**CHOICE, "selection": "clustering"}
ALL = {**GROUPS, **ADAPTIVE, **WARM, **CHOICE}
ALONE = "columns alone"
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {},
    ALONE: {},
    "groups": GROUPS,
    "adaptive clipping": ADAPTIVE,
    "warm start": WARM,
    "selection": CHOICE,
    "selection by clustering": CLUSTERING,
    "all": ALL,
    "all but groups": {**ADAPTIVE, **WARM, **CHOICE},
    "all but adaptive clipping": {**GROUPS, **WARM, **CHOICE},
    "all but warm start": {**GROUPS, **ADAPTIVE, **CHOICE},
    "all but selection": {**GROUPS, **ADAPTIVE, **WARM},
}
SCORES = ("pairs", "auc", "kmeans")


@dataclass(frozen=True)
class Given:
    """A public table: its schema, its rows and the binary column that is predicted."""

    schema: Schema
    rows: pa.Table
    target: str


def generated(count: int = 30_000, key: int = 0) -> Given:
    """A mixture of eight classes: skewed categories, ordered numbers, and a label of both."""
    rng = np.random.default_rng(key)
    classes = rng.choice(8, size=count, p=rng.dirichlet(np.full(8, 3.0)))
    columns: dict[str, Any] = {}
    text = ["[understudy]\nversion = 1\n"]
    for i, size in enumerate((3, 4, 5, 6, 8, 10, 14, 2)):
        law = rng.dirichlet(np.full(size, 0.4), size=8).cumsum(axis=1)
        codes = (rng.random((count, 1)) > law[classes]).sum(axis=1).clip(max=size - 1)
        columns[f"c{i}"] = pa.array([str(c) for c in codes])
        values = ", ".join(f'"{v}"' for v in range(size))
        text.append(f'[[column]]\nname = "c{i}"\ntype = "category"\nvalues = [{values}]\n')
    hidden = rng.normal(size=(8, 3))[classes]
    for i in range(3):
        drawn = 50 + 15 * hidden[:, i] + 6 * rng.normal(size=count)
        columns[f"n{i}"] = pa.array(np.clip(np.rint(drawn), 0, 99).astype(np.int64))
        text.append(
            f'[[column]]\nname = "n{i}"\ntype = "integer"\nlower = 0\nupper = 99\nbins = 20\n'
        )
    chance = 1 / (1 + np.exp(-3 * hidden[:, 0] - rng.normal(size=8)[classes]))
    columns["label"] = pa.array([str(int(x)) for x in rng.random(count) < chance])
    text.append('[[column]]\nname = "label"\ntype = "category"\nvalues = ["0", "1"]\n')
    return Given(Schema.loads("".join(text)), pa.table(columns), "label")


def adult(path: Path) -> Given:
    """UCI Adult."""
    return Given(Schema.loads(ADULT), pyarrow.csv.read_csv(path), "income")


def loans(path: Path) -> Given:
    """Eleven columns of LOANS: categories as they are, amounts in twenty cells."""
    numbers = ("loan_amnt", "int_rate", "annual_inc", "dti")
    names = {
        "term": 3, "grade": 8, "emp_length": 12, "home_ownership": 6, "verification_status": 4,
        "loan_status": 5, "purpose": 15,
    }  # fmt: skip
    table = pyarrow.csv.read_csv(path).select([*numbers, *names])
    text = ["[understudy]\nversion = 1\n"]
    for name in numbers:
        text.append(f'[[column]]\nname = "{name}"\ntype = "integer"\nlower = 0\nupper = 100\n')
        text.append("bins = 20\n")
    for name, size in names.items():
        table = table.set_column(
            table.column_names.index(name), name, table[name].cast(pa.string())
        )
        size = 2 if name == "term" else size
        values = ", ".join(f'"{v}"' for v in range(size))
        text.append(f'[[column]]\nname = "{name}"\ntype = "category"\nvalues = [{values}]\n')
    return Given(Schema.loads("".join(text)), table, "term")


@dataclass(frozen=True)
class Parts:
    """Rows of one run."""

    private: pa.Table
    public: pa.Table
    tested: pa.Table


def parted(given: Given, rows: int, run: int) -> Parts:
    """Disjoint rows, drawn anew for each run."""
    order = np.random.default_rng(run).permutation(given.rows.num_rows)
    ends = np.cumsum([rows, rows // 50, TESTED])
    if ends[-1] > len(order):
        raise ValueError(f"{len(order)} rows are fewer than {ends[-1]}; lower --rows")
    private, public, tested = (given.rows.take(part) for part in np.split(order, ends)[:3])
    # Public rows must have values of the schema, where private ones go to its `other`.
    legal = given.schema.decode(given.schema.encode(public), np.random.default_rng(run))
    return Parts(private, legal, tested)


def scores(given: Given, parts: Parts, made: pa.Table) -> dict[str, float]:
    """Of synthetic rows."""
    schema = given.schema
    real, tested, codes = (schema.encode(rows) for rows in (parts.private, parts.tested, made))
    return {
        "pairs": marginal_score(schema.shape, real, codes, 2),
        "auc": auc(schema, given.target, codes, tested),
        "kmeans": clustered(schema, codes, tested),
    }


def auc(schema: Schema, target: str, made: Codes, tested: Codes) -> float:
    """Of a logistic regression that is fitted on `made` rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    at = schema.position(target)

    def features(codes: Codes) -> NDArray[np.float32]:
        pairs = [
            (c, n) for i, (c, n) in enumerate(zip(codes, schema.shape, strict=True)) if i != at
        ]
        return np.concatenate([np.eye(n, dtype=np.float32)[c] for c, n in pairs], axis=1)

    if len(np.unique(made[at])) < 2:
        return 0.5
    model = LogisticRegression(max_iter=200, C=0.1).fit(features(made), made[at])
    return float(roc_auc_score(tested[at], model.predict_proba(features(tested))[:, 1]))


def clustered(schema: Schema, made: Codes, tested: Codes) -> float:
    """The cost on test rows of centres fitted on `made` rows."""
    columns = schema.modelled
    ordered = tuple(c.kind not in ("category", "boolean") for c in columns)
    tables = Clusters(schema.shape, ordered, tuple(c.nullable for c in columns)).tables
    own, other = (
        np.concatenate([t[c] for t, c in zip(tables, codes, strict=True)], axis=1)
        for codes in (made, tested)
    )
    centres = k_means(own, 8, key=1)
    away = (other**2).sum(axis=1)[:, None] - 2 * other @ centres.T + (centres**2).sum(axis=1)
    return float(away.min(axis=1).mean())


def released(
    given: Given, parts: Parts, setting: str, epsilon: str, options: dict[str, Any]
) -> Any:
    """A release by `dpgan` with the devices of a setting."""
    devices = {**options, **SETTINGS[setting]} if setting != ALONE else {}
    warm = {"public": parts.public} if devices.pop("public", False) else {}
    rows = parts.private.num_rows
    return us.release(
        parts.private,
        given.schema,
        epsilon=epsilon,
        delta=1 / rows**2,
        method="dpgan" if setting != ALONE else "independent",
        parameters=devices,
        workload="marginals:2",
        rows_public=rows,
        **warm,
    )


def measure(
    name: str,
    given: Given,
    asked: argparse.Namespace,
    options: dict[str, Any],
    kept: dict[str, Any],
) -> None:
    """Run what is missing, and keep it."""
    results = asked.out / "devices.json"
    for run in range(asked.runs):
        parts = parted(given, asked.rows, run)
        kept.setdefault(f"{name} | rows | {run}", scores(given, parts, parts.tested))
        for setting in asked.settings.split(","):
            key = f"{name} | {setting} | {run}"
            if key in kept:
                continue
            start = time.process_time()
            made = released(given, parts, setting, asked.epsilon, options)
            kept[key] = {
                **scores(given, parts, made.rows),
                "cpu": time.process_time() - start,
                "chosen": made.diagnostics.get("chosen_checkpoints"),
                "thresholds": made.diagnostics.get("training", {}).get("thresholds", [[]])[-1],
            }
            sys.stderr.write(f"{key}: {kept[key]}\n")
            keep(results, kept)


def table(kept: dict[str, Any]) -> str:
    """One row for each table and setting, as Markdown."""
    lines = [
        "| table | devices | pairs | AUC | k-means | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for key, value in kept.items():
        name, setting, run = key.split(" | ")
        found.setdefault((name, setting), {})[run] = value
    for (name, setting), runs in found.items():
        base = found[name, "none"] if setting not in ("none", "rows") else None
        cells = [_cell(score, runs, base) for score in SCORES]
        cpu = [value["cpu"] for value in runs.values() if "cpu" in value]
        shown = "test rows themselves" if setting == "rows" else setting
        spent = f"{np.mean(cpu):.0f}" if cpu else ""
        lines.append(f"| {name} | {shown} | {' | '.join(cells)} | {spent} |")
    return "\n".join(lines) + "\n"


def _cell(score: str, runs: dict[str, Any], base: dict[str, Any] | None) -> str:
    """The mean and, against a base, the paired difference with its interval."""
    digits = 0 if score == "pairs" else 3
    text = f"{np.mean([value[score] for value in runs.values()]):.{digits}f}"
    both = [run for run in runs if base is not None and run in base]
    if base is None or len(both) < 2:
        return text
    apart = np.array([runs[run][score] - base[run][score] for run in both])
    half = student.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / math.sqrt(len(apart))
    digits += score == "pairs"
    return f"{text} ({apart.mean():+.{digits}f} ± {half:.{digits}f})"


def main(given: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.dpgan_devices", description=__doc__)
    parser.add_argument("adult", nargs="?", type=Path)
    parser.add_argument("loans", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("devices"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", default="3")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--set", action="append", default=[], help="option=value, for all settings")
    asked = parser.parse_args(given)
    options = {name: json.loads(value) for name, value in (each.split("=") for each in asked.set)}
    asked.out.mkdir(exist_ok=True, parents=True)
    results = asked.out / "devices.json"
    kept: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    if asked.adult is None:
        measure("generated", generated(), asked, options, kept)
    else:
        measure("ADULT", adult(asked.adult), asked, options, kept)
    if asked.loans is not None:
        measure("LOANS", loans(asked.loans), asked, options, kept)
    sys.stdout.write(table(kept))


if __name__ == "__main__":
    main()

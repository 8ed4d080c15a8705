"""`python -m bench tables FOLDER`: the default and its rivals on every table of a folder.

A table is NAME.csv, NAME.csv.gz or NAME.parquet. What is public about it stands in NAME.toml (a schema)
or in NAME-domain.json (a number of values for every column, whose codes begin at 0); where neither is
there, the draft of a schema is confirmed as it is, which reads facts from the rows. So these tables
must be public: exact errors are printed. `--generated KIND:KEY` or `KIND:KEY:ROWSxCOLUMNS` adds a table
of `bench.kinds`.

Every release is a process of its own, with n public and δ = 1/n²; CPU seconds and peak memory are the
whole process's up to the end of the release, imports and reading included. What was measured is kept in
OUT/results.json and not measured again.

total variation   mean over all pairs, and over at most 300 random triples, of cells of the schema
k-marginal        NIST's score, 1000·(2 − d)/2 with d the mean L1 distance of the same tables;
                  with --by COLUMN inside every group of that column, averaged over groups
worst cell        over the workload; before and after: what the plan and the release expected of it
AUC               gradient boosting learns a target from rows, tested on a fifth of the real rows, which
                  was left out of the release; beside it from the real rows themselves
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Job", "jobs", "main", "measured"]

ENDINGS = (".csv", ".csv.gz", ".parquet")
DOMAINS = ("-domain.json", ".domain.json")
MOST_SETS = {2: 10_000, 3: 300}
"""Tables of so many columns that are compared, at most."""
ONE = """
import json, sys
from bench.tables import Job, measured
measured(Job(**json.loads(sys.argv[1])))
"""
HELD_OUT = 5
"""One row in so many tests what was learned."""


@dataclass(frozen=True)
class Job:
    """One release. `at` is the file of the table; empty for a generated one, which `name` draws."""

    name: str
    at: str
    method: str
    epsilon: str
    workload: str
    seed: int
    target: str | None = None
    by: str | None = None
    purpose: str | None = None


def main(arguments: list[str]) -> None:
    """Release every table, and write results.md, results.json and a figure."""
    parser = argparse.ArgumentParser(
        prog="python -m bench tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, nargs="?", help="holds tables, schemas and domains")
    parser.add_argument("--only", action="append", metavar="NAME", help="of the folder's tables")
    parser.add_argument("--generated", action="append", default=[], metavar="KIND:KEY[:SIZE]")
    parser.add_argument("--methods", default="maxent,mst,aim")
    parser.add_argument("--epsilon", action="append", metavar="E", help="1 where left out")
    parser.add_argument("--workload", default="marginals:2")
    parser.add_argument("--purpose", metavar="P", help="such as model:TARGET")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--target", action="append", default=[], metavar="NAME=COLUMN")
    parser.add_argument("--by", metavar="COLUMN", help="k-marginal inside its groups")
    parser.add_argument("--out", type=Path, default=Path("tables"))
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "results.json"
    runs: list[dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else []
    for job in jobs(asked):
        if any(run["job"] == asdict(job) for run in runs):
            continue
        told = f"{job.name}: {job.method}, ε = {job.epsilon}"
        if job.at and _stated(job) is None:
            beside = f"{job.name}{DOMAINS[0]} or {job.name}.toml"
            told += f"; all columns that a draft finds are released: {beside} would state others"
        print(told, file=sys.stderr, flush=True)  # before the wait, of which a wide table has much
        runs.append({"job": asdict(job), **_apart(job)})
        kept.write_text(json.dumps(runs, indent=1), encoding="utf-8")
        print("\n".join(shown(runs[-1:])[2 if len(runs) > 1 else 0 :]), flush=True)
    (asked.out / "results.md").write_text("\n".join(shown(runs)) + "\n", encoding="utf-8")
    draw(runs, asked.out)


def jobs(asked: argparse.Namespace) -> Iterable[Job]:
    """Every run that was asked for, tables first."""
    found = {} if asked.folder is None else tables(asked.folder)
    unknown = [name for name in asked.only or () if name not in found]
    if unknown or not (found or asked.generated):
        sys.exit(f"{asked.folder}: no table {', '.join(unknown)}; it has {', '.join(found)}")
    targets = dict(each.rsplit("=", 1) for each in asked.target)
    where = {name: str(found[name]) for name in asked.only or found}
    for name, at in (where | dict.fromkeys(asked.generated, "")).items():
        for epsilon in asked.epsilon or ["1"]:
            for method in asked.methods.split(","):
                for seed in range(asked.runs):
                    how = (name, at, method, epsilon, asked.workload, seed)
                    yield Job(*how, targets.get(name), asked.by, asked.purpose)


def tables(folder: Path) -> dict[str, Path]:
    """The tables of a folder by name."""
    return {
        file.name[: -len(ending)]: file
        for file in sorted(folder.iterdir())
        for ending in ENDINGS
        if file.name.endswith(ending)
    }


def _apart(job: Job) -> dict[str, Any]:
    """Measured in a process of its own, one thread; what it refused to do is kept in its words."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **threads}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ONE, json.dumps(asdict(job))],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        return {"refused": (done.stderr.strip().splitlines() or ["?"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def measured(job: Job) -> None:
    """Release one table, and print what it cost and how far it is off."""
    import resource

    import understudy as us
    from understudy.testing import SeededNoise

    table, schema = _read(job)
    held = None
    if job.target is not None:
        out = np.random.default_rng(job.seed).random(table.num_rows) < 1 / HELD_OUT
        table, held = table.filter(~out), table.filter(out)
    n = table.num_rows
    choices: dict[str, Any] = {
        "epsilon": job.epsilon, "delta": f"{1 / n**2:.3e}", "workload": job.workload,
        "method": job.method, "rows_public": n, "purpose": job.purpose,
    }  # fmt: skip
    made = us.release(table, schema, noise=SeededNoise(job.seed), key=job.seed, **choices)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    plan = us.prepare(schema, **choices).forecast(n)
    shape, cliques = made.schema.shape, made.workload.cliques
    real, fake = made.schema.encode(table), made.schema.encode(made.rows)
    off = _distances(real, fake, shape, cliques)
    found: dict[str, Any] = {
        "rows": n,
        "columns": len(shape),
        "cpu": usage.ru_utime + usage.ru_stime,
        "mb": usage.ru_maxrss / 1000,
        "cpu_expected": plan.seconds,
        "mb_expected": plan.memory_bytes / 1e6,
        "worst": float(off[:, 1].max()),
        "worst_variation": float(off[:, 0].max()),
        "mean_variation": float(np.average(off[:, 0], weights=made.workload.weights)),
        "certified": made.certificate.bound,
        "diagnostics": dict(made.diagnostics),
    }
    for when, errors in (("before", plan.errors), ("after", made.forecast)):
        found[when] = None if errors is None else _expected(errors)
    inside = None
    if job.by is not None:
        inside = made.schema.position(job.by)
    for k in MOST_SETS:
        found[f"tv{k}"], found[f"score{k}"] = _scores(real, fake, shape, k, inside)
    if held is not None and job.target is not None:
        at = made.schema.position(job.target)
        test = made.schema.encode(held)
        found["auc"], found["auc_real"] = (_auc(train, test, at) for train in (fake, real))
    print(json.dumps(found))


def _read(job: Job) -> tuple[Any, Any]:
    """A table and its schema."""
    if not job.at:
        from bench.kinds import drawn

        kind, key, *size = job.name.split(":")
        rows, columns = map(int, size[0].split("x")) if size else (None, None)
        bench = drawn(kind, int(key), rows, columns)
        return bench.table, bench.schema
    from pyarrow import csv, parquet

    from understudy.draft import confirm, draft
    from understudy.schema import Schema, import_mbi

    file = Path(job.at)
    table = parquet.read_table(file) if file.suffix == ".parquet" else csv.read_csv(file)
    stated = _stated(job)
    if stated is None:
        return table, confirm(draft(table), unit="row")
    if stated.suffix == ".toml":
        return table, Schema.load(stated)
    schema = import_mbi(stated)
    return table.select([column.name for column in schema.columns]), schema


def _stated(job: Job) -> Path | None:
    """The file that says what is public of a table."""
    files = (Path(job.at).with_name(job.name + ending) for ending in (".toml", *DOMAINS))
    return next((file for file in files if file.exists()), None)


def _expected(errors: Any) -> dict[str, float]:
    """What a forecast says of the workload in numbers."""
    (low, high), (least, most) = errors.worst_between, errors.variation_between
    return {
        "mean": errors.mean,
        "worst": errors.worst,
        "worst_low": low,
        "worst_high": high,
        "variation": errors.variation,
        "variation_low": least,
        "variation_high": most,
    }


def _distances(
    real: Sequence[NDArray[Any]],
    fake: Sequence[NDArray[Any]],
    shape: Sequence[int],
    cliques: Iterable[tuple[int, ...]],
) -> NDArray[np.float64]:
    """Total variation and worst cell of every table; a side without rows is as far off as can be."""
    found: list[tuple[float, float]] = []
    for clique in cliques:
        if not (real[0].size and fake[0].size):
            found.append((1.0, 1.0))
            continue
        sizes = [shape[i] for i in clique]
        packed = [np.ravel_multi_index([s[i] for i in clique], sizes) for s in (real, fake)]
        size = int(np.prod(sizes))
        if size > 4 * packed[0].size:  # far more cells than rows: those that occur
            cells, both = np.unique(np.concatenate(packed), return_inverse=True)
            packed, size = np.split(both, [packed[0].size]), cells.size
        shares = [np.bincount(p, minlength=size) / p.size for p in packed]
        gap = np.abs(shares[0] - shares[1])
        found.append((float(gap.sum()) / 2, float(gap.max())))
    return np.array(found).reshape(-1, 2)


def _scores(
    real: Sequence[NDArray[Any]],
    fake: Sequence[NDArray[Any]],
    shape: Sequence[int],
    k: int,
    by: int | None,
) -> tuple[float, float]:
    """Mean total variation of tables of k columns, and NIST's score of them."""
    columns = [i for i in range(len(shape)) if i != by]
    sets = list(combinations(columns, k))
    chosen = np.random.default_rng(0).permutation(len(sets))[: MOST_SETS[k]]
    sets = [sets[i] for i in sorted(chosen)] or [tuple(columns)]
    whole = float(_distances(real, fake, shape, sets)[:, 0].mean())
    if by is None:
        return whole, 1000 * (1 - whole)
    inside: list[float] = []
    for value in np.unique(real[by]):
        ours, theirs = ([c[side[by] == value] for c in side] for side in (real, fake))
        inside.append(float(_distances(ours, theirs, shape, sets)[:, 0].mean()))
    return whole, 1000 * (1 - float(np.mean(inside)))


def _auc(train: Sequence[NDArray[Any]], test: Sequence[NDArray[Any]], target: int) -> float:
    """One value against the rest, averaged over the values that both have, by their rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    learned, asked = (
        np.column_stack([c for i, c in enumerate(s) if i != target]) for s in (train, test)
    )
    model = HistGradientBoostingClassifier(random_state=0).fit(learned, train[target])
    given = model.predict_proba(asked)
    found = [
        (roc_auc_score(own, given[:, at]), own.sum())
        for at, value in enumerate(model.classes_)
        if 0 < (own := test[target] == value).sum() < own.size
    ]
    values, weights = zip(*found, strict=True)
    return float(np.average(values, weights=weights))


def shown(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A Markdown table, runs of a kind averaged."""
    lines = [
        "| table | ε | method | TV of pairs | of triples | k-marginal 2, 3 | worst cell | certified "
        "| expected before | after | AUC (real) | CPU s (expected) | MB (expected) |",
        f"|{'---|' * 13}",
    ]
    alike: dict[Any, list[Mapping[str, Any]]] = {}
    for run in runs:
        job = run["job"]
        alike.setdefault((job["name"], job["epsilon"], job["method"]), []).append(run)
    for (name, epsilon, method), group in alike.items():
        done = [run for run in group if "refused" not in run]
        if not done:
            lines.append(f"| {name} | {epsilon} | {method} | {group[0]['refused']} {'|' * 10}")
            continue

        def mean(key: str, done: list[Mapping[str, Any]] = done) -> float:
            return float(np.mean([run[key] for run in done]))

        size = f"{done[0]['rows']:,} × {done[0]['columns']}"
        cells = [f"{name}, {size}", epsilon, method, f"{mean('tv2'):.4f}", f"{mean('tv3'):.4f}"]
        cells.append(f"{mean('score2'):.0f}, {mean('score3'):.0f}")
        cells += [f"{mean('worst'):.4f}", f"{mean('certified'):.4f}"]
        cells += [_interval(done[0][when]) for when in ("before", "after")]
        auc = f"{mean('auc'):.3f} ({mean('auc_real'):.3f})" if "auc" in done[0] else ""
        cells += [auc, f"{mean('cpu'):.1f} ({mean('cpu_expected'):.1f})"]
        lines.append(f"| {' | '.join(cells)} | {mean('mb'):.0f} ({mean('mb_expected'):.0f}) |")
    return lines


def _interval(expected: Mapping[str, float] | None) -> str:
    if expected is None:
        return ""
    text = f"{expected['worst']:.4f}"
    if "worst_low" in expected:
        text += f" ({expected['worst_low']:.4f}–{expected['worst_high']:.4f})"
    return text


def draw(runs: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Total variation by method, and worst cells beside what was expected and certified."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return []
    from understudy.figures import COLOURS, STYLE, plain, save

    done = [run for run in runs if "refused" not in run]
    names = list(dict.fromkeys(f"{r['job']['name']}, ε = {r['job']['epsilon']}" for r in done))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8, 1.2 + 0.3 * len(names)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        colours = dict(zip(dict.fromkeys(r["job"]["method"] for r in done), COLOURS, strict=False))
        for run in done:
            at = names.index(f"{run['job']['name']}, ε = {run['job']['epsilon']}")
            colour = colours[run["job"]["method"]]
            left.plot(run["tv2"], at, "o", color=colour)
            left.plot(run["tv3"], at, "o", color=colour, fillstyle="none")
            after = run["after"] or {}
            if "worst_low" in after:
                right.hlines(
                    at, after["worst_low"], after["worst_high"], color=colour, alpha=0.4, lw=4
                )
            right.plot(run["worst"], at, "o", color=colour)
            right.plot(run["certified"], at, "|", color=colour, markersize=9)
        for method, colour in colours.items():
            left.plot([], [], "o", color=colour, label=method)
        left.set_yticks(range(len(names)), names)
        left.set_xlabel("total variation: pairs (full), triples (hollow)")
        right.set_xlabel("worst cell, what the release expected (bar), certificate (|)")
        left.invert_yaxis()
        for spot in (left, right):
            plain(spot)
            spot.set_xscale("log")
        figure.legend(loc="outside upper right", ncols=len(colours))
        return save(figure, folder)

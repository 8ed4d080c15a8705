"""A million parents with five million children: one count on every engine, and a release from files.

Families are generated, up to ten children each, about five on average, with two parent and four child
columns that follow a trait of the family; two Parquet files. Every engine is asked for all tables of
the usual workload and prints one digest of their integers for each, which must be the same. Every line
is measured in a process of its own: seconds, CPU seconds of the process and its children, the largest
resident set of any of them; Spark's virtual machine is such a child, of which /proc tells (on Linux).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema

WAYS = ("memory", "files", "duckdb", "spark", "release")
LARGEST = 10


def schema_of(families: int) -> FamilySchema:
    """The two tables; the number of families is public."""
    parents = (Identifier("k"), Category("region", tuple("NESWC")), Integer("rooms", 1, 8))
    children = (
        Identifier("k"),
        Integer("age", 0, 99, bins=10),
        Category("sex", ("F", "M")),
        Category("school", ("none", "some", "high", "college")),
        Category("work", ("no", "part", "full")),
    )
    family = Family("homes", "k", "people", "k", LARGEST, 1, siblings="all")
    return FamilySchema.of(Schema(parents), Schema(children), family, families)


def write(folder: Path, families: int) -> None:
    """Both tables, in a random order of rows."""
    rng = np.random.default_rng(7)
    trait = rng.random(families)
    sizes = 1 + rng.binomial(LARGEST - 1, 4 / (LARGEST - 1), families)
    region = np.minimum((5 * (trait + rng.random(families)) / 2).astype(int), 4)
    parents = pa.table(
        {
            "k": np.arange(families),
            "region": pa.array(list("NESWC")).take(pa.array(region)),
            "rooms": np.clip((9 * trait + rng.normal(0, 1, families)).astype(int), 1, 8),
        }
    )
    home = rng.permutation(np.repeat(np.arange(families), sizes))
    near = np.clip(trait[home] + rng.normal(0, 0.15, home.size), 0, 0.999)

    def named(values: tuple[str, ...], at: Any) -> pa.Array:
        return pa.array(values).take(pa.array((len(values) * at).astype(int)))

    children = pa.table(
        {
            "k": home,
            "age": (100 * near).astype(int),
            "sex": named(("F", "M"), rng.random(home.size)),
            "school": named(("none", "some", "high", "college"), near**0.5),
            "work": named(
                ("no", "part", "full"), np.clip(near + rng.normal(0, 0.1, home.size), 0, 0.999)
            ),
        }
    )
    pq.write_table(parents, folder / "homes.parquet")
    pq.write_table(children, folder / "people.parquet")


def source(folder: Path, way: str) -> Any:
    """The two tables as this engine has them."""
    from understudy.source import read
    from understudy.source.families import FamilySource

    paths = [folder / "homes.parquet", folder / "people.parquet"]
    if way == "duckdb":
        import ibis

        connection = ibis.duckdb.connect()
        return FamilySource(*(read(connection.read_parquet(path)) for path in paths))
    if way == "spark":
        return FamilySource(*(read("local[2]", path=path) for path in paths))
    engine = {"memory": "memory", "files": "duckdb"}[way]
    limit = "1GB" if way == "files" else None
    return FamilySource(*(read(path, engine=engine, memory_limit=limit) for path in paths))


def run(folder: Path, way: str, families: int, epsilon: str) -> dict[str, Any]:
    """One measurement, in this process."""
    import understudy as us
    from understudy.privacy.sensitive import reveal
    from understudy.queries import resolve

    schema, start = schema_of(families), time.perf_counter()
    if way == "release":
        paths = (folder / "homes.parquet", folder / "people.parquet")
        made: Any = us.release(paths, schema, epsilon=epsilon, delta="1e-9", key=1)
        said = f"{made.size_in_words}; {made.certificate}"
    else:
        bound = source(folder, way).bind(schema)
        tables = reveal(bound.marginals(resolve(schema.usual_workload(), schema).cliques))
        said = hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()[:16]
    seconds = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found = [(each.ru_utime + each.ru_stime, each.ru_maxrss) for each in used] + running()
    cpu, kilobytes = (list(each) for each in zip(*found, strict=True))
    return {"said": said, "s": seconds, "cpu": sum(cpu), "gb": max(kilobytes) / 1e6}


def running() -> list[tuple[float, int]]:
    """(CPU seconds, largest resident set in kB) of every child that has not ended, on Linux."""
    me, found = os.getpid(), []
    children = Path(f"/proc/{me}/task/{me}/children")
    for pid in children.read_text().split() if children.is_file() else ():
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        status = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()
        found.append((sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(status[0])))
    return found


def main(options: list[str] | None = None) -> None:
    """Write the tables, then measure every way in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench large_families")
    parser.add_argument("folder", type=Path, help="where the tables are written")
    parser.add_argument("--families", type=int, default=1_000_000)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args(options)
    if asked.one:
        print(json.dumps(run(asked.folder, asked.one, asked.families, asked.epsilon)))
        return
    if not (asked.folder / "people.parquet").is_file():
        write(asked.folder, asked.families)
    print("| | s | CPU s | peak GB | |\n|---|---|---|---|---|", flush=True)
    for way in asked.ways:
        command = [sys.executable, "-m", "bench", "large_families", str(asked.folder), "--one", way]
        command += ["--families", str(asked.families), "--epsilon", asked.epsilon]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(out.splitlines()[-1])
        print(
            f"| {way} | {found['s']:.0f} | {found['cpu']:.0f} | {found['gb']:.2f} | {found['said']} |",
            flush=True,
        )

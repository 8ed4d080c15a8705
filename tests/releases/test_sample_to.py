"""Folders of synthetic rows: independent parts, whole files, and going on after an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.tools import servers
from understudy.errors import InputError, WorkError
from understudy.models import Decomposable, Empirical, Weighted
from understudy.queries.evaluate import counts
from understudy.releases import sample_to as module
from understudy.releases.bundle import model_files


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def read(folder: Path) -> pa.Table:
    return pa.concat_tables(pq.ParquetFile(path).read() for path in parts(folder))


def follows_the_model(made: us.Release, rows: pa.Table) -> None:
    """Every pair's counts lie within seven standard deviations of what the model says."""
    codes = made.schema.encode(rows)
    cliques = list(combinations(range(len(made.schema.shape)), 2))
    for clique, found in zip(cliques, counts(codes, made.schema.shape, cliques), strict=True):
        p = made.model.marginal(clique)
        spread = np.sqrt(rows.num_rows * p * (1 - p)) + 1
        assert np.all(np.abs(found - rows.num_rows * p) <= 7 * spread)


def test_the_parts_are_one_sample_whatever_the_workers(made, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH_ROWS", 700)  # of this process; workers have their own
    one = made.sample_to(tmp_path / "one", 5003, partitions=4, key=7, workers=1)
    assert [pq.read_metadata(path).num_rows for path in parts(one)] == [1251, 1251, 1251, 1250]
    rows = read(one)
    assert made.schema.illegal(rows) == []
    follows_the_model(made, rows)
    digests = {tuple(part.column("age").to_pylist()) for part in map(pq.read_table, parts(one))}
    assert len(digests) == 4
    again = made.sample_to(tmp_path / "again", 5003, partitions=4, key=7, workers=1)
    assert read(again).equals(rows)
    other = made.sample_to(tmp_path / "other", 5003, partitions=4, key=8, workers=1)
    assert not read(other).equals(rows)
    fresh = made.sample_to(tmp_path / "fresh", 5003, partitions=4, workers=1)
    assert not read(fresh).equals(rows)


def test_processes_write_what_one_process_writes(made, tmp_path):
    seen: list[int] = []
    many = made.sample_to(
        tmp_path / "many", 3000, partitions=3, key=7, workers=2, progress=seen.append
    )
    one = made.sample_to(tmp_path / "one", 3000, partitions=3, key=7, workers=1)
    assert read(many).equals(read(one))
    assert sum(seen) == 3000
    assert sorted(path.name for path in many.iterdir()) == [
        "_understudy", "part-00000.parquet", "part-00001.parquet", "part-00002.parquet",
    ]  # fmt: skip
    assert [path.name for path in (many / "_understudy").iterdir()] == ["job.json"]
    assert us.read(many).columns == tuple(made.rows.column_names)


MODELS = {
    "decomposable": Decomposable.joint(np.random.default_rng(1).random((3, 2, 4))),
    "empirical": Empirical.of((3, 2, 4), np.random.default_rng(2).integers(0, 2, (50, 3))),
    "weighted": Weighted(
        (3, 2, 4),
        tuple(np.random.default_rng(3).integers(0, 2, (3, 60)).astype(np.uint8)),
        np.random.default_rng(4).random(60).astype(np.float32),
        ((0, 1), (1, 2)),
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_same_key_gives_the_same_rows(kind, made, tmp_path, monkeypatch):
    """`sample`, `stream`, `sample_to` with one partition, and the same from a release on disk."""
    schema = us.Schema.loads(
        "[understudy]\nversion = 1\n"
        + "".join(
            f'[[column]]\nname = "{name}"\ntype = "integer"\nlower = 0\nupper = {size - 1}\n'
            for name, size in zip("abc", (3, 2, 4), strict=True)
        )
    )
    release = replace(made, schema=schema, model=MODELS[kind], _frame=None)
    monkeypatch.setattr(sys.modules["understudy.releases.release"], "CHUNK_ROWS", 90)
    monkeypatch.setattr(module, "CHUNK_ROWS", 90)
    monkeypatch.setattr(module, "BATCH_ROWS", 40)
    for rows in (0, 1, 200):
        sampled = release.sample(rows, key=1)
        folder = release.sample_to(tmp_path / f"{rows}", rows, partitions=1, key=1, workers=1)
        assert read(folder).equals(sampled)
    assert not release.sample(200, key=2).equals(sampled)
    split = release.sample_to(tmp_path / "split", 200, partitions=2, key=1, workers=1)
    assert not read(split).equals(sampled)


def test_ids_go_on_from_part_to_part(table, tmp_path):
    schema = us.Schema.loads(
        '[understudy]\nversion = 1\n[[column]]\nname = "id"\ntype = "identifier"\naction = "P{}"\n'
        '[[column]]\nname = "visits"\ntype = "integer"\nlower = 0\nupper = 4\n'
    )
    ids = pa.array(map(str, range(table.num_rows)))
    given = table.select(["visits"]).append_column("id", ids)
    made = us.release(given, schema, epsilon=1, method="independent")
    folder = made.sample_to(tmp_path / "ids", 100, partitions=7, workers=1)
    assert read(folder).column("id").to_pylist() == [f"P{i}" for i in range(1, 101)]


def test_an_interrupted_folder_is_gone_on_with(made, tmp_path, monkeypatch):
    whole = made.sample_to(tmp_path / "whole", 900, partitions=3, key=1, workers=1)
    folder = tmp_path / "cut"
    write, written = module._write, []

    def cut(*given):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(given)
        write(*given)

    monkeypatch.setattr(module, "_write", cut)
    with pytest.raises(KeyboardInterrupt):
        made.sample_to(folder, 900, partitions=3, key=1, workers=1)
    monkeypatch.setattr(module, "_write", write)
    assert len(parts(folder)) == 2
    kept = [path.stat().st_mtime_ns for path in parts(folder)]
    for change in ({"rows": 901}, {"partitions": 4}, {"key": 2}):
        (name,) = change
        with pytest.raises(InputError, match=f"half written with another {name}"):
            made.sample_to(folder, **{"rows": 900, "partitions": 3, "key": 1, **change})
    seen: list[int] = []
    made.sample_to(folder, 900, partitions=3, workers=1, progress=seen.append)  # the key is kept
    assert seen == [600, 300]
    assert read(folder).equals(read(whole))
    assert [path.stat().st_mtime_ns for path in parts(folder)][:2] == kept
    with pytest.raises(InputError, match=r"holds 900 rows already"):
        made.sample_to(folder, 900, partitions=3, key=1)


def test_another_release_does_not_go_on_with_it(made, table, schema, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_write", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        made.sample_to(tmp_path / "x", 90, workers=1)
    other = us.release(table, schema, epsilon=1, method="independent")
    with pytest.raises(InputError, match="another release"):
        other.sample_to(tmp_path / "x", 90, workers=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": -1}, "rows = -1"),
        ({"rows": 1.5}, "rows = 1.5"),
        ({"partitions": 0}, "partitions = 0"),
        ({"partitions": 10**6}, "at most 100,000"),
        ({"workers": 0}, "workers = 0"),
        ({"key": -1}, "key = -1"),
    ],
)
def test_options_that_are_wrong(made, tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        made.sample_to(tmp_path / "x", **{"rows": 10, **options})
    assert not (tmp_path / "x").exists()


def test_folders_that_are_in_the_way(made, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").touch()
    (tmp_path / "file").touch()
    for name in ("full", "file"):
        with pytest.raises((InputError, WorkError), match=r"exists already|could not be written"):
            made.sample_to(tmp_path / name, 10)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["precious"]
    (tmp_path / "hurt" / "_understudy").mkdir(parents=True)
    (tmp_path / "hurt" / "_understudy" / "job.json").write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        made.sample_to(tmp_path / "hurt", 10)


def test_no_rows_are_a_table_too(made, tmp_path):
    folder = made.sample_to(tmp_path / "none", 0)
    assert read(folder).num_rows == 0
    assert read(folder).schema.equals(made.schema.arrow_schema)


def test_a_worker_that_fails_is_told_of(made, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkError, match=r"a process died.*the same call goes on"):
        made.sample_to(tmp_path / "x", 20, partitions=2, workers=2)


@pytest.mark.slow
def test_ctrl_c_in_the_middle_loses_nothing(made, tmp_path):
    made.save(tmp_path / "release")
    command = [
        sys.executable, "-m", "understudy", "sample", str(tmp_path / "release"), "--rows",
        "12000000", "--partitions", "12", "--key", "3", "--out", str(tmp_path / "rows"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "rows").glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"goes on" in said
    before = len(parts(tmp_path / "rows"))
    assert 1 <= before < 12
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert len(parts(tmp_path / "rows")) == 12
    assert sum(pq.read_metadata(path).num_rows for path in parts(tmp_path / "rows")) == 12_000_000


@pytest.mark.slow
@pytest.mark.parametrize("on", ["processes", "Spark"])
def test_ten_million_rows_follow_the_model(made, tmp_path, on):
    """Written in parallel, by two processes of this machine or two executors of a cluster."""
    spark = servers.spark() if on == "Spark" else None
    folder = made.sample_to(
        tmp_path / "rows", 10**7, partitions=8, key=11, workers=None if spark else 2, spark=spark
    )
    assert len(parts(folder)) == 8
    total = {}
    cliques = list(combinations(range(len(made.schema.shape)), 2))
    for path in parts(folder):
        for batch in pq.ParquetFile(path).iter_batches(10**6):
            found = counts(made.schema.encode(batch), made.schema.shape, cliques)
            for clique, one in zip(cliques, found, strict=True):
                total[clique] = total.get(clique, 0) + one
    for clique, found in total.items():
        assert found.sum() == 10**7
        p = made.model.marginal(clique)
        assert np.all(np.abs(found - 1e7 * p) <= 7 * np.sqrt(1e7 * p * (1 - p)) + 7)


@pytest.mark.slow
def test_spark_writes_what_one_machine_writes(made, tmp_path):
    here = made.sample_to(tmp_path / "here", 4001, partitions=5, key=7, workers=1)
    there = made.sample_to(
        str(tmp_path / "there"), 4001, partitions=5, key=7, spark=servers.spark()
    )
    assert len(parts(there)) == 5
    one, other = (sorted(map(json.dumps, read(folder).to_pylist())) for folder in (here, there))
    assert one == other
    with pytest.raises(InputError, match="exists already"):
        made.sample_to(str(tmp_path / "there"), 10, spark=servers.spark())


def test_a_worker_by_itself(made, tmp_path):
    folder = tmp_path / "x"
    files = model_files(made)
    job = module._begin(folder, module.Job(10, 2, "1", "m"), files, keyed=True)
    done = subprocess.run(
        [sys.executable, "-m", "understudy.releases.sample_to", str(folder)],
        input="1\n0\n", capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    assert done.stdout.split() == ["5", "5"]
    assert read(folder).num_rows == job.rows

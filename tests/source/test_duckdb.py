"""Files that DuckDB scans: when, how far, in how much memory, and no others."""

import gzip
import os
import tracemalloc

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy.source
from tests.source.test_files import SCHEMA, write
from tests.thorough import slow
from understudy.privacy.sensitive import reveal
from understudy.schema import Boolean, Identifier, Integer, Schema
from understudy.source import read
from understudy.source.base import StreamedCounts
from understudy.source.duckdb import DuckDBSource
from understudy.source.files import FileSource, find
from understudy.units import Unit


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", slow("t.csv.gz")])
@pytest.mark.parametrize("unit", [None, Unit("id", 3)])
def test_scans_say_how_far_they_are(tmp_path, monkeypatch, name, unit):
    monkeypatch.setattr("understudy.source.duckdb.BATCH_ROWS", 2048)
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "id": np.arange(40_000) // 2,
            "age": rng.integers(0, 10, 40_000),
            "sex": rng.choice(["F", "M"], 40_000),
        }
    )
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(table, path, row_group_size=4096)
    else:
        table.to_pandas().to_csv(path, index=False)
    source = read(path, engine="duckdb")
    schema = Schema((Identifier("id"), *SCHEMA.columns), unit=unit)
    for turns in (1, 3) if unit is not None else (1,):
        bound = StreamedCounts(source, schema, turns, find(path).length)
        told: list[int] = []
        bound.watch(told.append)
        assert reveal(bound.marginals([(0, 1)]))[0].sum() == 40_000
        assert told == list(range(1, 101))  # whatever the rows are
        reveal(bound.marginals([()]))[0]
        assert told == 2 * list(range(1, 101))


def test_the_share_of_a_text_is_about_right(tmp_path):
    """Half of the rows is about half of the file, compressed or not."""
    lines = [f"{a},{'FM'[a % 2]}\n" for a in np.random.default_rng(0).integers(0, 10**6, 400_000)]
    text = ("age,sex\n" + "".join(lines)).encode()
    write(tmp_path, text)
    write(tmp_path, gzip.compress(text), "t.csv.gz")
    for name in ("t.csv", "t.csv.gz"):
        assert 0.95 < find(tmp_path / name).length() / 400_000 < 1.05
    assert find(write(tmp_path, b"age,sex\n")).length() <= 1


def test_the_engine_follows_size_and_memory(tmp_path, monkeypatch):
    path = write(tmp_path, b"age,sex\n" + b"3,F\n" * 50_000)
    assert type(read(path)) is FileSource
    assert type(read(path, memory_limit="1GB")) is FileSource
    assert isinstance(read(path, engine="duckdb"), DuckDBSource)
    monkeypatch.setattr(understudy.source, "_free_memory", lambda: 300_000)
    assert isinstance(read(path), DuckDBSource)
    assert type(read(path, engine="memory")) is FileSource
    pq.write_table(pa.table({"age": [3] * 50_000, "sex": ["F"] * 50_000}), tmp_path / "t.parquet")
    assert isinstance(read(tmp_path / "t.parquet"), DuckDBSource)  # tiny on disk, not in memory


def test_the_engine_is_not_described(tmp_path):
    """It follows from the size of the file, which follows from the rows."""
    path = write(tmp_path, b"age,sex\n3,F\n")
    assert read(path).describe() == read(path, engine="duckdb").describe()


def test_scanning_takes_memory_for_a_batch_not_for_the_file(tmp_path):
    rows = 1_500_000
    path = tmp_path / "t.parquet"
    codes = np.random.default_rng(0).integers(0, 10, rows)
    pq.write_table(pa.table({"age": codes, "flag": codes > 4}), path)
    schema = Schema((Integer("age", 0, 9), Boolean("flag")))
    bound = read(path, engine="duckdb", memory_limit="200MB").bind(schema)
    arrow, before = pa.default_memory_pool(), pa.total_allocated_bytes()
    tracemalloc.start()
    sealed = bound.marginals([(0, 1)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reveal(sealed)[0].sum() == rows
    assert peak < 8 * rows / 2  # one column of the file as int64 is twice that
    assert arrow.bytes_allocated() - before < 8 * rows / 4


def test_duckdb_opens_the_files_that_it_was_given_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    (tmp_path / "other.csv").write_text("a,b\n3,4\n")
    monkeypatch.chdir(tmp_path)
    os.symlink("rows.csv", "link.csv")
    up = f"../{tmp_path.name}/rows.*"
    for given in (tmp_path / "rows.csv", "rows.csv", "./rows.csv", "link.csv", up):
        source = DuckDBSource(find(given), memory_limit=10**9)
        (batches,) = list(source.scans(["a"]))[:1]
        assert sum(batch.num_rows for batch in batches) == 1
    connection = source._connect()
    for statement in (
        f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
        "SELECT * FROM read_text('/etc/passwd')",
        f"ATTACH '{tmp_path}/x.duckdb'",
        "ATTACH 'https://elsewhere.example/x.duckdb'",
        "SELECT * FROM read_csv('https://elsewhere.example/x.csv')",
        "INSTALL httpfs",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "SET enable_external_access = true",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "other.csv", "rows.csv"]

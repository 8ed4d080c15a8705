"""More synthetic rows than fit anywhere at once: a folder of Parquet files, written in parallel.

Part i of P draws from the key (key, i), the i-th child of one seed sequence, so the same key and
partitions give the same rows, on one machine and on Spark. A single part draws from the key itself, as
`Release.sample` does. A part is written under another name and renamed when it is whole, so the same
call goes on where an interrupted one stopped. Post-processing of a released model: costs nothing.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import InputError, WorkError
from understudy.files import staged, write
from understudy.models import from_arrays
from understudy.releases.bundle import model_files
from understudy.releases.conditions import Condition, Subject
from understudy.releases.release import CHUNK_ROWS
from understudy.schema import Schema

BATCH_ROWS = 250_000
"""Rows that a process holds at once."""

PART_ROWS = 5_000_000
"""Rows of a file, unless somebody says how many files there are to be."""

_HIDDEN = "_understudy"  # readers of Parquet folders leave out what begins so
_JOB = "job.json"
_MOST_PARTS = 100_000
Written = Callable[[int], object]
"""Is told how many more rows have been written."""


@dataclass(frozen=True)
class Job:
    """What a folder is to hold: a public fact about every one of its rows."""

    rows: int
    partitions: int
    key: str
    model: str
    """sha256 of model and schema."""
    asked: str = "{}"
    """The condition that rows were asked for under, as JSON; part of what the model is made by."""

    def size(self, part: int) -> int:
        """Rows of a part; parts differ by one at most."""
        return self.rows // self.partitions + (part < self.rows % self.partitions)

    def first(self, part: int) -> int:
        """The number of a part's first row, from 1."""
        return 1 + part * (self.rows // self.partitions) + min(part, self.rows % self.partitions)

    def batches(self, part: int, subject: Subject) -> Iterator[pa.Table]:
        """The rows of a part, a batch at a time; one table without rows if it has none.

        A single part holds the rows that `Release.sample` gives for the same key.
        """
        alone = self.partitions == 1
        seeds = np.random.SeedSequence(int(self.key), spawn_key=() if alone else (part,))
        most = CHUNK_ROWS if alone else BATCH_ROWS
        return subject.tables(self.size(part), seeds, most, self.first(part))


def sample_to(
    subject: Subject,
    folder: str | Path,
    rows: int,
    *,
    partitions: int | None = None,
    key: int | None = None,
    workers: int | None = None,
    spark: Any = None,
    progress: Written | None = None,
) -> Path:
    """Write `rows` fresh synthetic rows into a folder of Parquet files; see `Release.sample_to`."""
    progress = progress or (lambda _: None)
    rows = _whole("rows", rows, 0, None)
    parts = max(1, -(-rows // PART_ROWS)) if partitions is None else partitions
    parts = _whole("partitions", parts, 1, _MOST_PARTS)
    cores = os.cpu_count() or 1
    workers = _whole("workers", cores if workers is None else workers, 1, 4096)
    if key is not None:
        key = _whole("key", key, 0, None)
    files = model_files(subject)
    digest = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()
    asked = json.dumps(subject.asked.to_json() if subject.asked else {})
    job = Job(rows, parts, str(secrets.randbits(128) if key is None else key), digest, asked)
    if spark is not None:
        return _on_spark(spark, str(folder), job, files, progress)
    target = Path(folder)
    job = _begin(target, job, files, keyed=key is not None)
    todo = [part for part in range(parts) if not _path(target, part, parts).exists()]
    progress(rows - sum(job.size(part) for part in todo))
    try:
        if min(workers, len(todo)) <= 1:
            for part in todo:
                _write(target, job, part, subject, progress)
        else:
            _in_processes(target, todo, min(workers, len(todo)), progress)
        if not all(_path(target, part, parts).exists() for part in todo):
            raise OSError("a part is missing")
    except OSError as error:
        raise _failed(target, error) from None
    _finish(target, job)
    return target


def _whole(name: str, value: Any, least: int, most: int | None) -> int:
    if isinstance(value, bool) or value != int(value) or value < least:
        raise InputError(f"{name} = {value!r} must be a whole number, at least {least}")
    if most is not None and value > most:
        raise InputError(f"{name} = {value!r} must be at most {most:,}")
    return int(value)


# --- the folder -----------------------------------------------------------------------------------


def _path(folder: Path, part: int, partitions: int) -> Path:
    return folder / f"part-{part:0{max(5, len(str(partitions - 1)))}}.parquet"


def _begin(folder: Path, job: Job, files: Mapping[str, bytes], *, keyed: bool) -> Job:
    """Make the folder, or go on with the job it was made for."""
    hidden = folder / _HIDDEN
    try:
        if (hidden / _JOB).exists():
            return _resumed(folder, job, keyed=keyed)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                f"{str(folder)!r} exists already and is not overwritten; choose another folder"
            )
        hidden.mkdir(parents=True)
        for name, data in files.items():
            (hidden / name).write_bytes(data)
        _write_job(folder, job, finished=False)
    except OSError as error:
        raise _failed(folder, error) from None
    return job


def _resumed(folder: Path, job: Job, *, keyed: bool) -> Job:
    try:
        before, finished = _stated(folder)
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{str(folder)!r} is damaged; choose another folder") from None
    if finished:
        raise InputError(
            f"{str(folder)!r} holds {before.rows:,} rows already and is not overwritten; choose "
            "another folder"
        )
    for name, was, now in (
        ("rows", before.rows, job.rows),
        ("partitions", before.partitions, job.partitions),
        ("key", before.key, job.key if keyed else before.key),
        ("condition", before.asked, job.asked),
        ("release", before.model, job.model),
    ):
        if was != now:
            told = f"{name} = {now}, and was begun with {was}"
            raise InputError(
                f"{str(folder)!r} is half written with another {name}"
                f"{'' if name == 'release' else f' ({told})'}: give what was given then, or another "
                "folder"
            )
    return before


def _stated(folder: Path) -> tuple[Job, bool]:
    """The job of a folder, and whether it is finished."""
    stated = json.loads((folder / _HIDDEN / _JOB).read_bytes())
    finished = bool(stated.pop("finished"))
    return Job(**stated), finished


def _write_job(folder: Path, job: Job, *, finished: bool) -> None:
    text = json.dumps({**asdict(job), "finished": finished})
    write(folder / _HIDDEN / _JOB, text)


def _finish(folder: Path, job: Job) -> None:
    _write_job(folder, job, finished=True)
    for name in (folder / _HIDDEN).iterdir():
        if name.name != _JOB:
            name.unlink()


def _failed(folder: Path, error: OSError) -> WorkError:
    full = "; free some space" if error.errno == errno.ENOSPC else ""
    return WorkError(
        f"{str(folder)!r} could not be written ({error.strerror or error}){full}. Parts that are "
        "whole stay there, and the same call goes on"
    )


def _write(folder: Path, job: Job, part: int, subject: Subject, written: Written) -> None:
    import pyarrow.parquet as pq

    path = _path(folder, part, job.partitions)
    form = subject.schema.arrow_schema.with_metadata(subject.asked.metadata)
    with (
        staged(path, beside=folder / _HIDDEN) as staging,
        pq.ParquetWriter(staging, form, compression="zstd") as writer,
    ):
        for batch in job.batches(part, subject):
            writer.write_table(batch)
            written(batch.num_rows)


def _subject(job: Job, files: Mapping[str, bytes]) -> Subject:
    schema = Schema.loads(files["schema.toml"].decode("utf-8"))
    with np.load(io.BytesIO(files["model.npz"]), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    stated = json.loads(job.asked)
    asked = Condition.from_json(stated) if stated else Condition()
    return Subject(schema, from_arrays(json.loads(files["model.json"]), arrays), asked)


# --- processes ------------------------------------------------------------------------------------


def _in_processes(folder: Path, todo: list[int], workers: int, progress: Written) -> None:
    """Interpreters of their own, each with its share of the parts; all of them say into one pipe.

    Not `multiprocessing`: that would run a script without a main guard again in every worker.
    """
    told, say = os.pipe()
    started: list[subprocess.Popen[str]] = []
    command = [sys.executable, "-m", "understudy.releases.sample_to", str(folder)]
    with open(told, encoding="utf-8") as lines:
        try:
            with open(say, "w", encoding="utf-8") as said:
                for at in range(workers):
                    worker = subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=said, text=True
                    )
                    started.append(worker)
                    assert worker.stdin is not None
                    with contextlib.suppress(BrokenPipeError), worker.stdin as parts:
                        parts.writelines(f"{part}\n" for part in todo[at::workers])
            for line in lines:
                if not line.strip().isdecimal():
                    raise OSError(line.strip())
                progress(int(line))
            if any(worker.wait() for worker in started):
                raise OSError("a process died")
        finally:
            for worker in started:
                worker.terminate()
            for worker in started:
                worker.wait()


def work(folder: Path) -> int:
    """A worker: numbers of parts come in on stdin, numbers of rows written go out on stdout."""
    job, _ = _stated(folder)
    files = {name: (folder / _HIDDEN / name).read_bytes() for name in _FILES}
    subject = _subject(job, files)
    for part in list(sys.stdin):
        try:
            _write(folder, job, int(part), subject, _say)
        except OSError as error:
            _say(error.strerror or "the disk failed")
            return 1
    return 0


_FILES = ("model.json", "model.npz", "schema.toml")


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


# --- Spark ----------------------------------------------------------------------------------------


def _on_spark(
    spark: Any, folder: str, job: Job, files: Mapping[str, bytes], progress: Written
) -> Path:
    """One task a part; Spark retries tasks, and commits all parts or none."""
    from understudy.source.pushed import quietly
    from understudy.source.spark import session

    if isinstance(spark, str):
        spark = session(spark)
    schema = Schema.loads(files["schema.toml"].decode("utf-8"))
    plain = _plain(schema.arrow_schema)
    held = dict(files)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        subject = _subject(job, held)
        for batch in batches:
            for part in batch.column(0).to_pylist():
                for table in job.batches(part, subject):
                    yield from table.cast(plain).to_batches()

    with quietly():
        from pyspark.errors import AnalysisException
        from pyspark.sql.pandas.types import from_arrow_schema

        numbers = spark.range(0, job.partitions, 1, job.partitions)
        made = numbers.mapInArrow(rows, from_arrow_schema(plain))
        try:
            made.write.mode("errorifexists").option("compression", "zstd").parquet(folder)
        except AnalysisException:
            raise InputError(
                f"{folder!r} exists already and is not overwritten; choose another folder"
            ) from None
        except Exception as error:  # noqa: BLE001  (what Java says would fill a page)
            lacks = "ModuleNotFoundError" in str(error)
            raise WorkError(
                f"{folder!r} was not written: "
                + (
                    "the executors' Python lacks understudy; install it there, or set PYSPARK_PYTHON"
                    if lacks
                    else "Spark failed; its own log says why"
                )
            ) from None
    progress(job.rows)
    return Path(folder)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The same columns in types that Spark has."""
    plain = {pa.large_string(): pa.string(), pa.string_view(): pa.string()}
    plain |= {pa.large_binary(): pa.binary(), pa.uint8(): pa.int16(), pa.uint16(): pa.int32()}
    plain |= {pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}
    plain |= {pa.float16(): pa.float32(), pa.date64(): pa.date32()}

    def type_of(given: pa.DataType) -> pa.DataType:
        if pa.types.is_dictionary(given):
            return type_of(given.value_type)
        if pa.types.is_timestamp(given):
            return pa.timestamp("us", given.tz)
        return plain.get(given, given)

    return pa.schema([field.with_type(type_of(field.type)) for field in schema])


if __name__ == "__main__":
    sys.exit(work(Path(sys.argv[1])))

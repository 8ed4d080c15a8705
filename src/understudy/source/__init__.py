"""The source room: where private rows live, and how they are counted there.

`read` points at a table; `Source.bind` checks its header against a schema; what comes back answers
the gate with exact counts, sealed in `Sensitive`.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.source.base import Bindable, Native, Source, is_bindable, read_table
from understudy.source.frames import frame_source, to_frame
from understudy.source.spark import SparkSource, is_master, spark_table

__all__ = ["Native", "Source", "bindable", "read", "read_table", "shown", "to_frame"]

_ENGINES = (None, "memory", "duckdb")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
_LEAST_MEMORY = 10**8


def read(
    data: Any,
    *,
    table: str | Sequence[str] | None = None,
    path: str | Path | None = None,
    null_values: Sequence[str] | None = None,
    memory_limit: int | str | None = None,
    engine: str | None = None,
) -> Source:
    """Point at a table. Nothing is read yet but its header.

    Args:
        data: A pandas or Polars (also lazy) frame, an Arrow table or batch; the path of a CSV or
            Parquet file, of a folder of Parquet files, or a glob; the URL of a database, such as
            "postgresql://user@host/db"; an Ibis table; a Spark DataFrame, or the master of a
            cluster, such as "spark://host:7077" or "local[*]". A `Source` is handed back.
        table: Which table of the database or of Spark's catalogue: "table" or "schema.table".
        path: On Spark, a folder of Parquet files instead of a table.
        null_values: Texts that stand for null, such as `["?"]`, beside those that the schema names.
            An empty cell of a CSV file is always null.
        memory_limit: Bytes, or a text such as "2GB", that reading a file may take; by default half
            of what is free.
        engine: "memory" encodes a file once and keeps the codes; "duckdb" scans it for each
            question and keeps nothing. By default the first if the codes fit the memory.

    Raises:
        SourceError: No such file, an unknown format, or a header that cannot be one.
        InputError: An option that is malformed.
    """
    if engine not in _ENGINES:
        raise InputError(f"engine={engine!r}: it is 'memory' or 'duckdb'")
    if isinstance(null_values, str):
        raise InputError(f"null_values={null_values!r}: give a list, such as [{null_values!r}]")
    nulls = tuple(null_values or ())
    limit = None if memory_limit is None else _bytes(memory_limit)
    if isinstance(data, str) and is_master(data) and not Path(data).exists():
        _not_for(engine, memory_limit, "Spark")
        return spark_table(data, table, path, nulls)
    if path is not None:
        raise InputError(f"path={str(path)!r} goes with Spark, such as 'local[*]'; give it first")
    if isinstance(data, str) and _URL.match(data):
        _not_for(engine, memory_limit, "a database")
        from understudy.source.sql import connect

        return connect(data, table, nulls)
    if table is not None:
        raise InputError(f"table={table!r} goes with a database, such as 'postgresql://host/db'")
    if not isinstance(data, (str, Path)):
        if is_bindable(data) and isinstance(data, Source):
            return data
        if type(data).__module__.split(".")[0] == "ibis":
            _not_for(engine, memory_limit, "a database")
            from understudy.source.sql import SQLSource

            return SQLSource(data, nulls)
        if type(data).__module__.startswith("pyspark.sql"):
            _not_for(engine, memory_limit, "Spark")
            return SparkSource(data, nulls)
        if engine == "duckdb":
            raise InputError("engine='duckdb' reads files; this table is in memory already")
        return frame_source(data, nulls)

    from understudy.source.files import FileSource, find

    files = find(data)
    room = limit or _free_memory() // 2
    if engine == "memory" or (engine is None and files.footprint() <= room):
        return FileSource(files, nulls)
    from understudy.source.duckdb import DuckDBSource

    return DuckDBSource(files, nulls, memory_limit=room)


def bindable(table: Any) -> Bindable:
    """What a release can count: a table that counts for itself, or is read; a pair is a family."""
    if is_bindable(table):
        return table
    if isinstance(table, tuple) and len(table) == 2:
        from understudy.source.families import FamilySource

        return FamilySource(read(table[0]), read(table[1]))
    return read(table)


def shown(data: str) -> str:
    """A path, or the address of a database without the password that it may hold."""
    if not _URL.match(data):
        return data
    scheme, _, rest = data.partition("://")
    user, at, place = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{place}"


def _not_for(engine: str | None, memory_limit: object, where: str) -> None:
    for name, value in (("engine", engine), ("memory_limit", memory_limit)):
        if value is not None:
            raise InputError(f"{name}={value!r} is for files; {where} counts by itself")


def _bytes(size: int | str) -> int:
    """A number of bytes from 2_000_000_000, "2GB" or "1.5 GiB"."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size.strip())
        if match is None:
            raise InputError(f"memory_limit={size!r}: write for instance '2GB' or '512MB'")
        base = 1024 if match[3] else 1000
        found = int(float(match[1]) * base ** " KMGT".index(match[2].upper() or " "))
    else:
        found = size
    if found < _LEAST_MEMORY:
        raise InputError(f"memory_limit={size!r}: reading takes at least 100MB")
    return found


def _free_memory() -> int:
    """Bytes that are free for use: of the machine, or of the container if that has fewer."""
    free = _LEAST_MEMORY
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        free = int(re.findall(r"MemAvailable:\s*([0-9]+)", meminfo)[0]) * 1024
    except (OSError, IndexError):
        with suppress(AttributeError, OSError, ValueError):  # systems that have no sysconf
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        free = min(free, limit - int((group / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        pass
    return max(free, 2 * _LEAST_MEMORY)

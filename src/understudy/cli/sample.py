"""`understudy sample`: more synthetic rows from a released model, free of charge."""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from understudy import files
from understudy.cli import options, shell
from understudy.cli.options import option
from understudy.cli.progress import Rows
from understudy.errors import InputError, WorkError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.releases import Release
    from understudy.releases.conditions import Condition
    from understudy.releases.families import FamilyRelease

_SOME = "Some rows only"
_MANY = "Many rows"
_SUFFIXES = (".csv", ".parquet", ".pq")


@shell.guarded
def sample(
    folder: options.Folder,
    out: Annotated[
        Path,
        option(
            "--out FILE|DIR",
            "The file to write, X.csv or X.parquet; or, with --partitions, a folder.",
        ),
    ],
    rows: Annotated[
        int | None,
        option("--rows N", "How many rows; by default as many as the release has.", min=0),
    ] = None,
    key: Annotated[
        int | None, option("--key K", "The same key gives the same rows.", min=0)
    ] = None,
    where: Annotated[
        str | None,
        option("--where CONDITION", "Only rows that satisfy it, as in SQL's WHERE.", _SOME),
    ] = None,
    match: Annotated[
        list[str] | None,
        option(
            "--match SHARE",
            "A share that the rows are to have: sex=F:0.5, or sex=F:0.5,M:0.4, or 'age >= 65:0.3'. "
            "May be given several times.",
            _SOME,
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        option("--partitions P", "Write a folder of P Parquet files, in parallel.", _MANY, min=1),
    ] = None,
    workers: Annotated[
        int | None,
        option("--workers W", "Processes that write; by default one a core.", _MANY, min=1),
    ] = None,
    spark: Annotated[
        str | None,
        option(
            "--spark MASTER",
            "Write on Spark, such as spark://host:7077, whose Python needs understudy.",
            _MANY,
        ),
    ] = None,
) -> None:
    """Draw synthetic rows from a release, as many and as often as you like.

    Costs nothing and reads no private row. The certificate speaks of the rows in the release
    (synthetic.parquet), not of these.

    --where and --match condition the released model: its records are reweighted and, where few
    satisfy the condition, moved. Such rows are NOT CERTIFIED: what a release says of small groups is
    mostly its model.

    \b
    [bold]Example[/bold]
      understudy sample patients.release --rows 1000000 --out rows.parquet
      understudy sample patients.release --where "age >= 65 and sex = 'F'" --out women.parquet
      understudy sample patients.release --match sex=F:0.5 --match smoker=true:0.3 --out rows.csv
      understudy sample patients.release --rows 1000000000 --partitions 200 --out rows/
    """
    from understudy.releases import Release
    from understudy.releases.conditions import condition
    from understudy.releases.families import FamilyRelease

    release = Release.load(folder)
    if partitions is None and isinstance(release, FamilyRelease):
        if condition(where, match):
            raise InputError("--where and --match are for one table, and this release has two")
        _sample_families(release, out, rows, key)
        return
    if partitions is None:
        for name, value in (("--workers", workers), ("--spark", spark)):
            if value is not None:
                raise InputError(f"{name} {value} goes with --partitions P, a folder of P files")
        require_output(out, " A folder of files needs --partitions P")
    asked = condition(where, match)
    wanted = release.rows.num_rows if rows is None else rows
    with Rows(wanted, slow=bool(asked)) as progress:
        if partitions is None:
            with _writing(out) as write:
                for part in release.stream(wanted, where=where, match=match, key=key):
                    write(part)
                    progress.add(part.num_rows)
            _say(release, folder, f"{wanted:,} rows", f"to {out}", asked)
            return
        many = {"where": where, "match": match, "partitions": partitions, "workers": workers}
        many |= {"spark": spark}
        try:
            release.sample_to(out, wanted, key=key, progress=progress.add, **many)
        except KeyboardInterrupt as error:
            if spark is None:
                error.add_note("Files that are whole stay there; the same command goes on.")
            raise
    _say(release, folder, f"{wanted:,} rows", f"to {partitions:,} files in {out}", asked)


def _sample_families(release: FamilyRelease, out: Path, rows: int | None, key: int | None) -> None:
    """Two files in a new folder."""
    from understudy.releases.form import FAMILY_FILES

    options.require_new(out)
    tables = release.sample(rows, key=key)
    staging = out.with_name(f".{out.name}.{secrets.token_hex(8)}")
    try:
        staging.mkdir()
        for name, table in zip(FAMILY_FILES, tables, strict=True):
            write_whole(table, staging / name)
        staging.rename(out)
    except OSError as error:
        raise WorkError(f"out = {out} could not be written: {error.strerror}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    made = [f"{table.num_rows:,} {name}" for table, name in zip(tables, release.names, strict=True)]
    shell.say(("wrote ", "bold"), f"{' and '.join(made)} to {out}")
    shell.note(
        f"As private as the release itself, {release.budget}. "
        "The certificate speaks of the families in the release, not of these."
    )


def _say(release: Release, folder: Path, rows: str, target: str, asked: Condition) -> None:
    from understudy.releases.conditions import NOT_CERTIFIED

    shell.say(("wrote ", "bold"), f"{rows} × {release.rows.num_columns} columns {target}")
    shell.note(f"As private as the release itself, {release.budget}.")
    if asked:
        shell.note(f"NOT CERTIFIED: {NOT_CERTIFIED} ({asked}).")
    else:
        whole = folder / "synthetic.parquet"
        shell.note(f"The certificate speaks of the rows in {whole}, not of these.")


def require_output(path: Path, remark: str = "") -> None:
    """Refuse a name that chooses no format, or that is taken, before anything is done for it."""
    if path.suffix.lower() not in _SUFFIXES:
        said = f"out = {path} must end in .csv or .parquet; that chooses the format"
        raise InputError(f"{said}.{remark}" if remark else said)
    options.require_new(path)


def write_whole(table: pa.Table, path: Path) -> None:
    """Write a table as the name says; the file appears whole or not at all."""
    with _writing(path) as write:
        write(table)


@contextmanager
def _writing(path: Path) -> Iterator[Callable[[pa.Table], None]]:
    """A function that appends a table to a file, which appears when the block ends well."""
    opened: list[Any] = []

    def write(part: pa.Table) -> None:
        if not opened:
            opened.append(_opened(staging, path.suffix.lower(), part.schema))
        opened[0].write_table(part)

    try:
        with files.staged(path, new=True) as staging:
            try:
                yield write
            finally:
                for each in opened:
                    each.close()
    except FileExistsError:
        raise InputError(f"out = {path} exists already and is not overwritten") from None
    except OSError as error:
        full = ". Free some space" if error.errno == errno.ENOSPC else ""
        raise WorkError(
            f"out = {path} could not be written ({error.strerror or error}); nothing was left "
            f"behind{full}"
        ) from None


def _opened(path: Path, suffix: str, schema: pa.Schema) -> Any:
    from pyarrow import csv, parquet

    if suffix == ".csv":
        return csv.CSVWriter(path, schema)
    return parquet.ParquetWriter(path, schema, compression="zstd")

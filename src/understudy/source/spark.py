"""Tables on Spark: the executors encode, group and count; the driver gets counts.

Everything is an expression of Spark's own, so the executors need neither Python nor understudy.
Where it pays, several marginals share one pass over the rows: every row is turned into the cells it
falls into, one for each marginal, and those are counted.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from understudy._types import Clique
from understudy.columns.forms import BLANKS, Form, Pieces
from understudy.errors import InputError, SourceError
from understudy.schema import Schema
from understudy.source.addresses import permitted
from understudy.source.pushed import (
    Asked,
    Counted,
    Engine,
    PushedSource,
    Related,
    encoded,
    in_one_pass,
    packed,
    places,
    quietly,
    told,
)
from understudy.units import Unit

_EXTRA = "pip install '.[spark]', and a Java runtime"
_MASTERS = ("local[", "local-cluster[", "spark://", "k8s://")
_CASTS = {
    "str": "string",
    **dict.fromkeys(("integer", "int"), "bigint"),
    **dict.fromkeys(("number", "float"), "double"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    "date": "date",
    "datetime": "timestamp_ntz",
}


def is_master(text: str) -> bool:
    """Whether a text names a cluster: "local[*]", "spark://host:7077", "yarn"."""
    return text in ("local", "yarn") or text.startswith(_MASTERS)


def session(master: str | None = None) -> Any:
    """The running Spark session, or a new one on this master."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(f"Spark is not installed: {_EXTRA}") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with quietly():
        builder = SparkSession.builder.appName("understudy")
        if master is not None:
            builder = builder.master(master)
        if SparkSession.getActiveSession() is None:  # its bar would be drawn over ours
            builder = builder.config("spark.ui.showConsoleProgress", "false")
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            if "JAVA_GATEWAY" in (error.getCondition() or ""):
                raise SourceError(
                    "Spark needs a Java runtime, and finds none: install Java 17 or newer "
                    "(Debian: apt-get install default-jre-headless), or set JAVA_HOME"
                ) from None
            raise SourceError(f"Spark at {master!r} does not start") from None
        except Exception:  # noqa: BLE001  (what Java says would fill a page)
            raise SourceError(
                f"Spark at {master!r} does not start: is the master's address right?"
            ) from None


def spark_table(
    master: str, table: str | Sequence[str] | None, path: Any, nulls: Sequence[str] = ()
) -> "SparkSource":
    """A table of the catalogue, or a folder of Parquet files, on a cluster."""
    if (table is None) == (path is None):
        raise InputError(
            f"Spark at {master!r}: which table? Give table='database.table', or path= of a folder "
            "of Parquet files"
        )
    running = session(permitted(master))
    named = table if table is None or isinstance(table, str) else ".".join(map(_quoted, table))
    what = f"table {named!r}" if named is not None else f"Parquet {str(path)!r}"
    try:
        with quietly():
            frame = running.table(named) if named is not None else running.read.parquet(str(path))
            return SparkSource(frame, nulls, f"Spark {what}")
    except SourceError:
        raise
    except Exception:  # noqa: BLE001
        raise SourceError(f"Spark at {master!r}: there is no {what}, or it is no table") from None


class SparkSource(PushedSource):
    """A DataFrame of Spark; it is never collected."""

    def __init__(
        self, frame: Any, nulls: Sequence[str] = (), where: str = "Spark DataFrame"
    ) -> None:
        super().__init__(frame.columns, nulls, where)
        self._frame = frame

    def _holders(self, asked: Asked) -> pa.Table:
        sf, Window = _sql()
        level, unit, x = asked.level, asked.unit, _text(asked.column)
        rows = self._frame.where(told(x, asked.nulls, _Operations()))
        for length, taken in level.taken:
            rows = rows.where(~(sf.substring(x, 1, length) if length else x).isin(list(taken)))
        if level.length:
            rows = rows.where(sf.length(x) >= level.length)
            x = sf.substring(x, 1, level.length)
        if unit is None:
            pairs = rows.select(x.alias("v"))
        else:
            who = _text(unit.column)
            pairs = rows.where(told(who, asked.no_units, _Operations())).select(
                sf.btrim(who, sf.lit(BLANKS)).alias("u"), x.alias("v")
            )
            text = sf.concat(sf.lit(f"{unit.salt}|"), sf.col("v"), sf.lit("|"), sf.col("u"))
            order = Window.partitionBy("u").orderBy(sf.md5(text))
            pairs = pairs.distinct().withColumn("place", sf.row_number().over(order))
            pairs = pairs.where(sf.col("place") <= unit.max_rows)
        return _fetched(pairs.groupBy("v").agg(sf.count("*")), self._where)

    def _engine(self, schema: Schema) -> "_Cluster":
        sf, _ = _sql()
        operations = _Operations()
        codes: dict[str, Any] = {}
        for name, found in self._forms(schema).items():
            x = sf.col(_quoted(name))
            zoned = pa.types.is_timestamp(found.type) and found.type.tz is not None
            if self._stored(name) == "timestamp" and not zoned:
                x = x.cast("timestamp_ntz")  # what the clock of the session shows
            codes[name] = encoded(x, found, operations)
        return _Cluster(self._frame, self._where, codes, schema.shape)

    def _fetched(self, names: Sequence[str]) -> pa.Table:
        return self._frame.select(*(_quoted(name) for name in names)).toArrow()

    def _type(self, name: str, zoned: bool = False) -> pa.DataType | None:
        return _arrow(self._frame.schema[name].dataType, zoned)

    def _stored(self, name: str) -> str:
        return self._frame.schema[name].dataType.simpleString()

    def _remedy(self, name: str, wanted: str = "str") -> str:
        cast = f"frame[{name!r}].try_cast({_CASTS[wanted]!r})"
        return f"cast it first, for instance frame.withColumn({name!r}, {cast})"


class _Cluster:
    """Counts by Spark's own aggregation."""

    dialect = "spark"

    def __init__(
        self, frame: Any, where: str, codes: Mapping[str, Any], shape: Sequence[int]
    ) -> None:
        names = [f"c{i}" for i in range(len(codes))]
        self._given = frame
        self._frame = frame.select(
            *(code.alias(name) for code, name in zip(codes.values(), names, strict=True))
        )
        self._coded = tuple(zip(names, codes.values(), strict=True))
        self._weight: Any = None
        self._where = where
        self._shape = tuple(shape)

    def keep(self, unit: Unit, null_values: Sequence[str]) -> None:
        sf, Window = _sql()
        names = [name for name, _ in self._coded]
        x = _text(unit.column)
        rows = self._given.where(told(x, null_values, _Operations())).select(
            sf.btrim(x, sf.lit(BLANKS)).alias("u"),
            *(code.alias(name) for name, code in self._coded),
        )
        alike = Window.partitionBy("u", *names).orderBy(*names)
        rows = rows.withColumn("n", sf.row_number().over(alike))
        text = sf.concat(
            sf.lit(f"{unit.salt}|"),
            sf.concat_ws(",", *(sf.col(name).cast("string") for name in names)),
            sf.lit("|"),
            sf.col("n").cast("string"),
            sf.lit("|"),
            sf.col("u"),
        )
        order = Window.partitionBy("u").orderBy(sf.md5(text), *names, "n")
        kept = rows.withColumn("place", sf.row_number().over(order))
        kept = kept.where(sf.col("place") <= unit.kept)
        if unit.equal:
            number = sf.count("*").over(Window.partitionBy("u"))
            kept = kept.withColumn("w", sf.floor(sf.lit(unit.max_rows) / number).cast("bigint"))
            self._weight, names = sf.sum("w").cast("bigint"), [*names, "w"]
        self._frame = kept.select(*names)

    def beside(self, other: Engine) -> bool:
        """Whether both are of one session."""
        return isinstance(other, _Cluster) and self._given.sparkSession is other._given.sparkSession

    def related(
        self, key: tuple[str, Sequence[str]], order: tuple[str, Sequence[str], pa.DataType] | None
    ) -> Related:
        sf, _ = _sql()
        (name, nulls), by = key, []
        if order is not None:
            by = places(sf.col(_quoted(order[0])), order[2], order[1], _Operations())
        x = _text(name)
        rows = self._given.where(told(x, nulls, _Operations())).select(
            sf.btrim(x, sf.lit(BLANKS)).alias("u"),
            *(place.alias(f"o{i}") for i, place in enumerate(by)),
            *(code.alias(name) for name, code in self._coded),
        )
        return Related(rows, tuple(i == 2 for i in range(len(by))))

    def asking(
        self, parents: Related, children: Related
    ) -> tuple[str, str, Callable[[str], pa.Table]]:
        """The two as names that the session puts the frames in for."""
        session, where = self._given.sparkSession, self._where
        given = {"parents": parents.rows, "children": children.rows}

        def ask(query: str) -> pa.Table:
            try:
                with quietly():
                    asked = session.sql(query, **given)
            except Exception:  # noqa: BLE001
                raise SourceError(f"{where}: Spark does not understand the query") from None
            return _fetched(asked, where)

        return "SELECT * FROM {parents}", "SELECT * FROM {children}", ask

    def count(self, cliques: Sequence[Clique]) -> Iterator[Counted]:
        """As many marginals at once as one pass counts well."""
        return in_one_pass(self._shape, cliques, self._count)

    def _count(self, tables: Sequence[tuple[Clique, int]]) -> pa.Table:
        sf, _ = _sql()
        operations = _Operations()
        codes = [sf.col(name) for name, _ in self._coded]
        within = [
            packed(codes, self._shape, clique, operations) + operations.whole(start)
            for clique, start in tables
        ]
        cell = within[0] if len(within) == 1 else sf.explode(sf.array(*within))
        number = sf.count("*") if self._weight is None else self._weight
        kept = [] if self._weight is None else ["w"]
        asked = self._frame.select(cell.alias("cell"), *kept).groupBy("cell").agg(number)
        return _fetched(asked, self._where)


def _fetched(asked: Any, where: str) -> pa.Table:
    try:
        with quietly():
            return asked.toArrow()
    except Exception:  # noqa: BLE001  (an error of Spark may quote a value)
        raise SourceError(f"{where}: Spark could not count; its own log says why") from None


def _sql() -> tuple[Any, Any]:
    """Spark's functions, and its windows."""
    from pyspark.sql import Window, functions

    return functions, Window


def _text(name: str) -> Any:
    return _sql()[0].col(_quoted(name)).cast("string")


class _Operations:
    """Spark's expressions."""

    def __init__(self) -> None:
        self._f, _ = _sql()

    def missing(self, x: Any, form: Form) -> Any:
        floating = isinstance(form, Pieces) and pa.types.is_floating(form.type)
        return x.isNull() | self._f.isnan(x) if floating else x.isNull()

    def at_least(self, x: Any, start: Any, form: Pieces) -> Any:
        lit = self._f.lit
        if isinstance(start, bool):
            return x
        if isinstance(start, float):
            return x.cast("double") >= lit(start).cast("double")
        if isinstance(start, Decimal):
            type_ = f"decimal({form.type.precision},{form.type.scale})"
            return x >= lit(str(start)).cast(type_)
        if isinstance(start, datetime):
            zoned = start.tzinfo is not None
            return x >= lit(start.isoformat(" ")).cast("timestamp" if zoned else "timestamp_ntz")
        if isinstance(start, date):
            return x >= lit(start.isoformat()).cast("date")
        return x.cast("bigint") >= lit(start).cast("bigint")

    def among(self, x: Any, texts: Sequence[str]) -> Any:
        return x.isin(list(texts))

    def trimmed(self, x: Any, blanks: str) -> Any:
        return self._f.btrim(x, self._f.lit(blanks))

    def text(self, x: Any) -> Any:
        return x.cast("string")

    def first(self, x: Any, length: int) -> Any:
        return self._f.substring(x, 1, length)

    def number(self, x: Any, pattern: str) -> tuple[Any, Any]:
        return x.rlike(pattern), x.try_cast("double")

    def clamped(self, x: Any, low: int, high: int) -> Any:
        bounds = [self._f.lit(bound).cast("bigint") for bound in (low, high)]
        return self._f.least(self._f.greatest(x.cast("bigint"), bounds[0]), bounds[1])

    def cases(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        found: Any = None
        for condition, code in branches:
            found = (self._f if found is None else found).when(condition, code)
        return otherwise if found is None else found.otherwise(otherwise)

    def whole(self, code: int) -> Any:
        return self._f.lit(code).cast("bigint")

    def double(self, x: Any, low: float, high: float) -> Any:
        ends = [self._f.lit(float(end)).cast("double") for end in (low, high)]
        return self._f.least(self._f.greatest(x.cast("double"), ends[0]), ends[1])

    def floor(self, x: Any) -> Any:
        return self._f.floor(x).cast("bigint")

    def quotient(self, x: Any, divisor: int) -> Any:
        return self._f.call_function("div", x, self.whole(divisor))

    def microseconds(self, x: Any, low: datetime, high: datetime, form: Pieces) -> Any:
        if pa.types.is_date(form.type):  # not all of them are moments
            after = min(high, datetime.max - timedelta(days=1)) + timedelta(days=1)
            ends = [self._f.lit(end.date().isoformat()).cast("date") for end in (low, after)]
            x = self._f.greatest(ends[0], self._f.least(x, ends[1]))
        first, last = (self._f.lit(end.isoformat(" ")) for end in (low, high))
        kind = "timestamp" if low.tzinfo is not None else "timestamp_ntz"
        x, first, last = (each.cast(kind) for each in (x, first, last))
        near = self._f.greatest(first, self._f.least(x, last))
        start = self._f.lit(f"1970-01-01 00:00:00{'+00:00' * (low.tzinfo is not None)}").cast(kind)
        return self._f.timestamp_diff("MICROSECOND", start, near)


def _arrow(stored: Any, zoned: bool) -> pa.DataType | None:
    """The physical type that a form speaks of; None for types that are not counted."""
    name = stored.typeName()
    if name == "decimal":
        return pa.decimal128(stored.precision, stored.scale)
    if stored.simpleString() == "string":  # which is compared byte by byte
        return pa.string()
    return {
        **dict.fromkeys(("byte", "short", "integer", "long"), pa.int64()),
        **dict.fromkeys(("char", "varchar"), pa.string()),
        "boolean": pa.bool_(),
        "float": pa.float64(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC" if zoned else None),
        "timestamp_ntz": pa.timestamp("us"),
    }.get(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

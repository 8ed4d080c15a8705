"""Tables in databases, through Ibis: the database encodes, groups and counts.

`SQLSource` takes any Ibis table expression; `connect` makes one from a URL. A password is never
kept here, and no message holds the text of a driver's error about rows: it may quote one.
"""

import contextlib
import difflib
import re
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from understudy._types import Clique
from understudy.columns.forms import ANY_DECIMAL, BLANKS, Form, Pieces
from understudy.errors import InputError, SourceError
from understudy.schema import Schema
from understudy.source.addresses import permitted
from understudy.source.pushed import (
    Asked,
    Counted,
    Engine,
    PushedSource,
    Related,
    columns_of,
    encoded,
    packed,
    places,
    quietly,
    told,
)
from understudy.units import Unit

_EXTRA = "pip install '.[sql]'"
_ENGINES = {"postgres": "PostgreSQL", "postgresql": "PostgreSQL", "duckdb": "DuckDB"}
_PART = re.compile(r'(?:"((?:[^"]|"")*)"|([^".]+))(?:\.|$)')
_CASTS = {
    "str": "string",
    **dict.fromkeys(("integer", "int"), "int64"),
    **dict.fromkeys(("number", "float"), "float64"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    "date": "date",
    "datetime": "timestamp",
}
_DIGITS = 38
_TRIES = 3
_PATIENCE = 1.0


def connect(url: str, table: str | Sequence[str] | None, nulls: Sequence[str] = ()) -> "SQLSource":
    """A table of a database.

    Raises:
        InputError: No table was named.
        SourceError: The server cannot be reached or refuses; there is no such table.
    """
    ibis = _ibis()
    where = _where(url)
    if table is None:
        raise InputError(f"{where}: which table? Give table='schema.table' (--table)")
    path = _path(table)
    address = permitted(url)
    try:
        backend = ibis.connect(address)
    except Exception as error:  # noqa: BLE001  (drivers have errors of their own)
        raise SourceError(f"{where}: {_refusal(error, url)}") from None
    _close_with(backend)
    *database, name = path
    shown = ".".join(path)
    try:
        expression = backend.table(name, database=tuple(database) or None)
    except Exception as error:  # noqa: BLE001
        near = _near(backend, name, tuple(database))
        if isinstance(error, ibis.common.exceptions.TableNotFound) or near is not None:
            raise SourceError(f"{where}: there is no table {shown!r}{near or ''}") from None
        raise SourceError(f"{where}: table {shown!r} cannot be opened") from None
    return SQLSource(expression, nulls, f"{where}, table {shown!r}")


class SQLSource(PushedSource):
    """A table, view or query of a database."""

    def __init__(self, expression: Any, nulls: Sequence[str] = (), where: str = "") -> None:
        """From an Ibis table expression."""
        try:
            self._backend = expression.get_backend()
        except _ibis().common.exceptions.IbisError:
            raise SourceError(
                "this Ibis expression belongs to no database: take a table of a connection, such as "
                "ibis.connect(url).table('patients')"
            ) from None
        super().__init__(expression.columns, nulls, where or f"{self._backend.name} table")
        self._expression = expression

    def _holders(self, asked: Asked) -> pa.Table:
        ibis, ops = _ibis(), _Operations(self._backend.name)
        level, unit, x = asked.level, asked.unit, self._expression[asked.column]
        rows = self._expression.filter(told(x, asked.nulls, ops))
        for length, taken in level.taken:
            rows = rows.filter(~ops.among(ops.first(x, length) if length else x, taken))
        v = ops.text(x)
        if level.length:
            rows = rows.filter(v.length() >= level.length)
            v = ops.first(x, level.length)
        # A collation may take two texts for one: hashes tell them apart.
        if unit is None:
            pairs = rows.select(v=v, k=ops.md5(v))
        else:
            who = self._expression[unit.column]
            rows, u = rows.filter(told(who, asked.no_units, ops)), ops.trimmed(who, BLANKS)
            pairs = rows.select(u=u, v=v, k=ops.md5(v), o=ops.md5(u)).distinct()
            pairs = pairs.mutate(h=ops.md5(unit.salt + "|" + pairs.v + "|" + pairs.u))
            order = ibis.window(group_by="o", order_by="h")
            pairs = pairs.mutate(place=ibis.row_number().over(order))
            pairs = pairs.filter(pairs.place < unit.max_rows)
        counted = pairs.group_by(["v", "k"]).aggregate(n=pairs.count())
        return _Link(self._backend, self._where).insist(counted.drop("k"))

    def _engine(self, schema: Schema) -> "_Database":
        forms = self._forms(schema)
        engine = _Database(self._expression, self._backend, self._where, forms, schema.shape)
        engine.check(self._remedy)
        return engine

    def _fetched(self, names: Sequence[str]) -> pa.Table:
        return self._backend.to_pyarrow(self._expression.select(*names))

    def _type(self, name: str, zoned: bool = False) -> pa.DataType | None:
        return _arrow(self._expression.schema()[name])

    def _stored(self, name: str) -> str:
        return str(self._expression.schema()[name]).split("(")[0]

    def _remedy(self, name: str, wanted: str = "str") -> str:
        cast = f"table[{name!r}].cast({_CASTS[wanted]!r})"
        return f"cast it in a view, or with Ibis: table.mutate(**{{{name!r}: {cast}}})"


class _Database:
    """Counts by GROUP BY, one for each union of marginals.

    PostgreSQL and DuckDB count one GROUP BY after the other at least as fast as GROUPING SETS, or as
    an unnested array of cells over a single scan: hashing costs more than reading.
    """

    def __init__(
        self,
        expression: Any,
        backend: Any,
        where: str,
        forms: Mapping[str, Form],
        shape: Sequence[int],
    ) -> None:
        self._expression = expression
        self._link = _Link(backend, where)
        self._where = where
        self._shape = tuple(shape)
        self._ops = _Operations(backend.name)
        self._backend, self.dialect = backend, str(backend.name)
        self._weighted = False
        self._codes = {
            name: encoded(expression[name], found, self._ops) for name, found in forms.items()
        }

    def keep(self, unit: Unit, null_values: Sequence[str]) -> None:
        ibis, ops = _ibis(), self._ops
        codes = {f"c{i}": code for i, code in enumerate(self._codes.values())}
        x = self._expression[unit.column]
        rows = self._expression.filter(told(x, null_values, ops))
        rows = rows.select(u=ops.trimmed(x, BLANKS), **codes)
        # A collation may take two units for one: hashes tell them apart.
        rows = rows.mutate(k=ops.md5(rows.u))
        alike = ibis.window(group_by=["k", *codes], order_by=[rows[name] for name in codes])
        rows = rows.mutate(n=ibis.row_number().over(alike) + 1)
        listed = rows.c0.cast("string")
        for name in list(codes)[1:]:
            listed = listed + "," + rows[name].cast("string")
        text = unit.salt + "|" + listed + "|" + rows.n.cast("string") + "|" + rows.u
        rows = rows.mutate(h=ops.md5(text))
        order = ibis.window(group_by="k", order_by=["h", *codes, "n"])
        rows = rows.mutate(place=ibis.row_number().over(order))
        rows = rows.filter(rows.place < unit.kept)
        if unit.equal:
            rows = rows.mutate(s=rows.count().over(ibis.window(group_by="k")))
            rows = rows.mutate(w=(ops.whole(unit.max_rows) // rows.s).cast("int64"))
        self._expression, self._weighted = rows, bool(unit.equal)
        self._codes = {
            name: self._expression[code] for name, code in zip(self._codes, codes, strict=True)
        }

    def beside(self, other: Engine) -> bool:
        """Whether both are of one connection, or of two to the same server or file."""
        if not isinstance(other, _Database):
            return False
        mine, its = self._backend, other._backend
        if mine is its or mine.name != its.name:
            return mine is its
        if mine.name == "duckdb":  # those in memory are all alike, and all different
            return _file(mine) is not None and _file(mine) == _file(its)
        return mine.name == "postgres" and mine == its

    def related(
        self, key: tuple[str, Sequence[str]], order: tuple[str, Sequence[str], pa.DataType] | None
    ) -> Related:
        name, nulls = key
        x, rows = self._expression[name], {}
        texts: tuple[bool, ...] = ()
        if order is not None:
            found = places(self._expression[order[0]], order[2], order[1], self._ops)
            rows = {f"o{i}": place for i, place in enumerate(found)}
            texts = tuple(place.type().is_string() for place in found)
        rows |= {f"c{i}": code for i, code in enumerate(self._codes.values())}
        kept = self._expression.filter(told(x, nulls, self._ops))
        return Related(kept.select(u=self._ops.trimmed(x, BLANKS), **rows), texts)

    def asking(
        self, parents: Related, children: Related
    ) -> tuple[str, str, Callable[[str], pa.Table]]:
        """The two as texts of queries."""
        backend, link = self._backend, self._link
        kinds = {"cell": "int64", "number": "int64"}
        one, other = (str(backend.compile(each.rows)) for each in (parents, children))
        return one, other, lambda query: link.insist(backend.sql(query, schema=kinds))

    def check(self, remedy: Callable[[str], str]) -> None:
        """Have the database understand every column, on no rows, and compare texts by letters."""
        letters = self._ops.among(_ibis().literal("a"), ["A", "a "])
        if self._link.constant(letters):
            raise SourceError(
                f"{self._where}: this database takes 'a', 'A' and 'a ' for one text, so categories "
                "would be counted together: connect with a collation that tells them apart"
            )
        if self._understood(self._codes):
            return
        for name, code in self._codes.items():
            if not self._understood({name: code}):
                raise SourceError(
                    f"{self._where}: the database does not compare column {name!r} with the values "
                    f"of the schema, or may not read it: {remedy(name)}; or export the table to a CSV "
                    "or Parquet file"
                )
        raise SourceError(f"{self._where}: the database refuses to read these columns together")

    def _understood(self, codes: Mapping[str, Any]) -> bool:
        try:
            self._link.fetch(self._expression.select(**codes).limit(0))
        except Exception:  # noqa: BLE001
            return False
        return True

    def count(self, cliques: Sequence[Clique]) -> Iterator[Counted]:
        """One GROUP BY each; after a lost connection the same one again, on a new connection."""
        return (self._count(clique) for clique in cliques)

    def _count(self, clique: Clique) -> Counted:
        codes = list(self._codes.values())
        cell = packed(codes, self._shape, clique, self._ops)
        if self._weighted:
            rows = self._expression.select(cell=cell, w=self._expression.w)
            number = rows.w.sum().cast("int64")
        else:
            rows = self._expression.select(cell=cell)
            number = rows.count()
        return columns_of(self._link.insist(rows.group_by("cell").aggregate(number=number)))


class _Link:
    """A connection that is made again when it is lost."""

    def __init__(self, backend: Any, where: str) -> None:
        self._backend = backend
        self._where = where

    def insist(self, asked: Any) -> pa.Table:
        """The answer, if need be on a new connection; SourceError if there is none."""
        for attempt in range(1, _TRIES + 1):
            try:
                return self.fetch(asked)
            except Exception:  # noqa: BLE001  (a driver's error may quote a value)
                if self._alive():
                    raise SourceError(f"{self._where}: the database could not count") from None
                if attempt < _TRIES:
                    time.sleep(_PATIENCE * attempt)
                    self._reconnect()
        raise SourceError(
            f"{self._where}: the connection was lost, and {_TRIES} tries did not help"
        )

    def fetch(self, asked: Any) -> pa.Table:
        """The answer, or the driver's own error."""
        with quietly():
            return self._backend.to_pyarrow(asked)

    def constant(self, asked: Any) -> Any:
        """The value of an expression that reads no table."""
        return self._backend.execute(asked)

    def _alive(self) -> bool:
        try:
            self.constant(_ibis().literal(1))
        except Exception:  # noqa: BLE001
            return False
        return True

    def _reconnect(self) -> None:
        with contextlib.suppress(Exception), quietly():
            self._backend.reconnect()
            _close_with(self._backend)


class _Operations:
    """Ibis expressions."""

    def __init__(self, dialect: str) -> None:
        self._ibis = _ibis()
        self._dialect = dialect
        builtin = self._ibis.udf.scalar.builtin

        def of_text(x: str) -> str: ...

        def of_texts(x: str, blanks: str) -> str: ...

        self._written = builtin(of_text, name="text")
        self.md5 = builtin(of_text, name="md5")
        trim = {"postgres": "btrim", "duckdb": "trim"}.get(dialect)
        self._trim = None if trim is None else builtin(of_texts, name=trim)

    def missing(self, x: Any, form: Form) -> Any:
        if x.type().is_floating():
            return x.isnull() | x.isnan()
        if x.type().is_decimal() and self._dialect == "postgres":  # numerics know NaN as well
            return x.isnull() | (x.cast("string") == "NaN")
        return x.isnull()

    def at_least(self, x: Any, start: Any, form: Pieces) -> Any:
        if isinstance(start, bool):
            return x
        if isinstance(start, float):
            return x.cast("float64") >= self._ibis.literal(start, type="float64")
        if isinstance(start, Decimal):
            scale = "" if form.type == ANY_DECIMAL else f"(38, {form.type.scale})"
            return x >= self._ibis.literal(start, type=f"decimal{scale}")
        if x.type().is_unsigned_integer() and start <= 0:  # types that are not compared
            return self._ibis.literal(True)
        return x >= self._ibis.literal(start)

    def among(self, x: Any, texts: Sequence[str]) -> Any:
        return self.text(x).isin(list(texts))

    def trimmed(self, x: Any, blanks: str) -> Any:
        if self._trim is not None:
            return self._trim(self.text(x), blanks)
        return x.re_replace(f"^[{blanks}]+|[{blanks}]+$", "")

    def text(self, x: Any) -> Any:
        """The text that a value is written as."""
        # Enumerations and padded texts pass for texts in Ibis, and not in PostgreSQL.
        stored = x.type().is_string() and self._dialect == "postgres"
        return self._written(x) if stored else x.cast("string")

    def first(self, x: Any, length: int) -> Any:
        return self.text(x).substr(0, length)

    def number(self, x: Any, pattern: str) -> tuple[Any, Any]:
        # On PostgreSQL a CASE keeps the cast from texts that do not match; others try, and get null.
        double = x.cast("float64") if self._dialect == "postgres" else x.try_cast("float64")
        return x.re_search(pattern), double

    def clamped(self, x: Any, low: int, high: int) -> Any:
        if not x.type().is_unsigned_integer():
            return self._within(x.cast("int64"), self.whole(low), self.whole(high))
        if high < 0:
            return self.whole(high)
        return x.clip(max(low, 0), high).cast("int64")  # it may not fit before

    def cases(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        return self._ibis.cases(*branches, else_=otherwise) if branches else otherwise

    def whole(self, code: int) -> Any:
        return self._ibis.literal(code, type="int64")

    def double(self, x: Any, low: float, high: float) -> Any:
        if self._dialect == "postgres" and _arrow(x.type()) == ANY_DECIMAL:
            # It may be too large or too small for a double, and the cast would fail.
            ends = (Decimal(int(low)), Decimal(int(high)), Decimal("-1e-300"), Decimal("1e-300"))
            first, last, below, above = (self._ibis.literal(e, type="decimal") for e in ends)
            near = [(x >= last, last), (x <= first, first), ((x > below) & (x < above), above)]
            return self.cases(near, x).cast("float64")
        real = (x.cast("int64") if x.type().is_boolean() else x).cast("float64")
        first, last = (self._ibis.literal(float(end), type="float64") for end in (low, high))
        return self._within(real, first, last)

    def _within(self, x: Any, low: Any, high: Any) -> Any:
        """Clamped; null may become either end. Ibis's `clip` writes x nine times to keep null."""
        return self._ibis.greatest(low, self._ibis.least(high, x))

    def floor(self, x: Any) -> Any:
        return x.floor().cast("int64")

    def quotient(self, x: Any, divisor: int) -> Any:
        return (x // self.whole(divisor)).cast("int64")

    def microseconds(self, x: Any, low: datetime, high: datetime, form: Pieces) -> Any:
        if x.type().is_date():  # not all of them are moments
            after = min(high, datetime.max - timedelta(days=1)) + timedelta(days=1)
            x = self._between(x, low.date(), after.date()).cast("timestamp")
        near = self._between(x, low, high).cast("timestamp")
        return near.truncate("s").epoch_seconds() * 10**6 + near.microsecond()

    def _between(self, x: Any, low: Any, high: Any) -> Any:
        first, last = (self._ibis.literal(end, type=x.type()) for end in (low, high))
        return self.cases([(x >= last, last), (x >= first, x)], first)


def _arrow(stored: Any) -> pa.DataType | None:
    """The physical type that a form speaks of; None for types that are not counted."""
    if stored.is_boolean():
        return pa.bool_()
    if stored.is_integer():
        return pa.int64()
    if stored.is_floating():
        return pa.float64()
    if stored.is_decimal():
        precision, scale = stored.precision, stored.scale
        if precision is None or scale is None or precision > _DIGITS or scale < 0:
            return ANY_DECIMAL
        return pa.decimal128(precision, scale)
    if stored.is_date():
        return pa.date32()
    if stored.is_timestamp():
        return pa.timestamp("us", None if stored.timezone is None else "UTC")
    return pa.string() if stored.is_string() or stored.is_uuid() else None


# --- what may be said -----------------------------------------------------------------------------


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise InputError(f"reading from a database needs Ibis: {_EXTRA}") from None
    return ibis


def _file(backend: Any) -> str | None:
    """The file of a DuckDB database; None in memory."""
    asked = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
    return backend.con.execute(asked).fetchone()[0]


def _close_with(backend: Any) -> None:
    """Close the connection when nobody can ask through it any more.

    By itself DuckDB would keep rows that do not fit the memory beside its file, for everybody to read:
    it gets a folder of its own, which goes with the connection.
    """
    connection = getattr(backend, "con", None)
    if connection is None:
        return
    with contextlib.ExitStack() as stack:
        if backend.name == "duckdb":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="understudy-"))
            with contextlib.suppress(Exception):  # somebody else has it open, and has spilled
                connection.execute("SET temp_directory = '{}'".format(folder.replace("'", "''")))
        stack.callback(connection.close)
        weakref.finalize(backend, stack.pop_all().close)


def _where(url: str) -> str:
    """Engine, host and database of a URL: neither user nor password."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or (parse_qs(parts.query).get("host") or [""])[0]
        port = f":{parts.port}" if parts.port else ""
        if "@" in parts.path:  # an unescaped slash in a password
            raise ValueError
    except ValueError:
        raise InputError(
            "this database URL cannot be read; write postgresql://user@host:5432/database, with "
            "special characters as %XX"
        ) from None
    engine = _ENGINES.get(parts.scheme, parts.scheme)
    return f"{engine} {unquote(f'{host}{port}{parts.path}')!r}"


def _refusal(error: Exception, url: str) -> str:
    """Why there is no connection, in our own words: a driver's may hold the URL."""
    said = str(error).lower()
    user = unquote(urlsplit(url).username or "") or "the default user"
    if "password" in said or "authentication" in said or "no pg_hba.conf entry" in said:
        return (
            f"the server does not let {user!r} in: check user and password (PGPASSWORD, or a line "
            "in ~/.pgpass, keep it out of the URL)"
        )
    if "role" in said and "does not exist" in said:
        return f"the server knows no user {user!r}"
    if "database" in said and "does not exist" in said:
        return "the server has no such database"
    if isinstance(error, ImportError) or "no module named" in said:
        return f"the driver for this database is not installed: {_EXTRA}"
    if "don't know how to connect" in said or "no such backend" in said or "unknown" in said:
        return "no engine of this name is known"
    return "the server cannot be reached: is it running, are host and port right?"


def _path(table: str | Sequence[str]) -> list[str]:
    """The parts of "schema.table"; a part with dots stands in double quotes."""
    if not isinstance(table, str):
        parts = [str(part) for part in table]
    else:
        matches = list(_PART.finditer(table))
        whole = "".join(match[0] for match in matches) == table and table[-1:] != "."
        parts = [m[1].replace('""', '"') if m[1] is not None else m[2] for m in matches]
        parts = parts if whole else []
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise InputError(
            f"table={table!r}: write 'table' or 'schema.table'; a name with dots in double quotes, "
            "or the parts as a list"
        )
    return parts


def _near(backend: Any, name: str, database: tuple[str, ...]) -> str | None:
    """A remark on tables of nearly this name; None if the table is there or nobody may look."""
    try:
        known = backend.list_tables(database=database or None)
    except Exception:  # noqa: BLE001
        return f"; is there a schema {'.'.join(database)!r}?" if database else ""
    if name in known:
        return None
    close = difflib.get_close_matches(name, known, n=1)
    return f"; is it {close[0]!r}?" if close else ""

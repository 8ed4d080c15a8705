"""Our own adapters keep the sources' contract, and bad ones are found out."""

import itertools
import warnings

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.thorough import slow
from understudy.errors import SourceError
from understudy.privacy.sensitive import Sensitive
from understudy.queries import counts
from understudy.source import read
from understudy.testing import ContractBroken, check_source, source_checks


def parquet(folder, engine=None):
    numbers = itertools.count()

    def make(table):
        path = folder / f"{next(numbers)}.parquet"
        pq.write_table(table, path)
        return read(path, engine=engine)

    return make


def csv(folder, engine=None):
    numbers = itertools.count()

    def make(table):
        path = folder / f"{next(numbers)}.csv"
        pacsv.write_csv(table, path)
        return read(path, engine=engine)

    return make


OURS = {
    "arrow": lambda folder: read,
    "pandas": lambda folder: lambda table: read(table.to_pandas()),
    "polars": lambda folder: lambda table: read(pytest.importorskip("polars").from_arrow(table)),
    "parquet": parquet,
    "parquet by duckdb": lambda folder: parquet(folder, "duckdb"),
    "csv": csv,
    "csv by duckdb": lambda folder: csv(folder, "duckdb"),
}


# In `make test` without two whose like stay.
@pytest.mark.parametrize(
    "name", [slow(name) if name in {"pandas", "parquet by duckdb"} else name for name in OURS]
)
def test_our_sources_conform(name, tmp_path):
    assert check_source(OURS[name](tmp_path), examples=5) >= 9


def test_as_many_examples_as_asked():
    few, many = (list(source_checks(read, examples=n)) for n in (3, 12))
    assert len(many) - len(few) == 9
    assert len({str(check) for check in many}) == len(many)


class Bound:
    """A bound table with one thing done badly."""

    def __init__(self, inner, table, schema):
        self._inner, self._table, self._schema = inner, table, schema
        self.shape, self.unit = inner.shape, inner.unit

    def marginals(self, cliques):
        return Sensitive(self.tables(cliques))

    def tables(self, cliques):
        return counts(self._schema.encode(self._table), self.shape, cliques)


class Source:
    bound = Bound

    def __init__(self, table):
        self._table, self._inner = table, read(table)
        self.columns, self.native = self._inner.columns, self._inner.native
        self.typed = self._inner.typed

    def describe(self):
        return self._inner.describe()

    def bind(self, schema):
        return self.bound(self._inner.bind(schema), self._table, schema)


def test_the_plain_source_is_fine():
    check_source(Source)


class Unsealed(Source):
    class bound(Bound):  # noqa: N801
        def marginals(self, cliques):
            return self.tables(cliques)


class CountsSetsOfRows(Source):
    class bound(Bound):  # noqa: N801
        def tables(self, cliques):
            return tuple(np.minimum(table, 1) for table in super().tables(cliques))


class SecondAnswerDiffers(Source):
    class bound(Bound):  # noqa: N801
        def tables(self, cliques):
            found = super().tables(cliques)
            self._table = self._table.slice(1)
            return found


class Miscounts(Source):
    class bound(Bound):  # noqa: N801
        def tables(self, cliques):
            found = zip(cliques, super().tables(cliques), strict=True)
            return tuple(table + (clique == ()) for clique, table in found)


class DropsNulls(Source):
    def __init__(self, table):
        super().__init__(table.filter(table.column("sex").is_valid()))


class Shouts(Source):
    def bind(self, schema):
        if self._table.column("age").null_count:
            warnings.warn("there are nulls in age", stacklevel=1)
        return super().bind(schema)


class RaisesOnValues(Source):
    def bind(self, schema):
        if "?" in self._table.column("sex").to_pylist():
            raise ValueError("'?' is not a sex")
        return super().bind(schema)


class TakesAnyHeader(Source):
    def bind(self, schema):
        if "surplus" in self.columns:
            return self.bound(
                read(self._table.drop_columns(["surplus"])).bind(schema), self._table, schema
            )
        return super().bind(schema)


class QuotesARow(Source):
    def bind(self, schema):
        try:
            return super().bind(schema)
        except SourceError as error:
            raise SourceError(f"{error}; first row: {self._table.to_pylist()[0]}") from None


class DescribesRows(Source):
    def describe(self):
        return f"a table that begins with {self._table.slice(0, 1).to_pylist()}"


class GoesByPosition(Source):
    def bind(self, schema):
        if len(self.columns) == len(schema.columns):
            names = [column.name for column in schema.columns]
            try:
                self._table = self._table.rename_columns(names)
                return self.bound(read(self._table).bind(schema), self._table, schema)
            except ValueError:
                pass
        return super().bind(schema)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Unsealed, "leave a source sealed"),
        (CountsSetsOfRows, "marginal"),
        (SecondAnswerDiffers, "marginal"),
        (Miscounts, "\\(\\) is not the"),
        (DropsNulls, "\\(\\) is not the"),
        (Shouts, "made the source speak"),
        (RaisesOnValues, "raised ValueError"),
        (TakesAnyHeader, "was accepted"),
        (QuotesARow, "shows a value of a row"),
        (DescribesRows, "without a fact of rows"),
        (GoesByPosition, "found by name"),
    ],
)
def test_bad_sources_are_found_out(bad, message):
    with pytest.raises(ContractBroken, match=message):
        check_source(bad)

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema_strategies import arrays
from tests.thorough import examples
from understudy.draft import check, confirm, draft
from understudy.errors import SchemaError, SourceError, UnconfirmedError
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Identifier,
    Incomplete,
    Integer,
    Modelled,
    Number,
    Schema,
    Text,
)
from understudy.source import read, read_table

RNG = np.random.default_rng(0)
ROWS = 2000


def drafted(cells, type_=None):
    """The drafted column of an Arrow table with this one column."""
    return draft(pa.table({"x": pa.array(cells, type_)})).columns[0]


def from_csv(tmp_path, cells, name="x"):
    """The drafted column of a CSV file with this one column."""
    path = tmp_path / "table.csv"
    path.write_text("\n".join([name, *map(str, cells)]) + "\n")
    return draft(path).columns[0]


class TestGuesses:
    def test_small_counts_are_integers(self):
        column = drafted(np.arange(ROWS) % 16 + 1)
        assert column == Integer("x", 1, 16, read_from_rows=("type", "nullable", "lower", "upper"))

    def test_ages_are_integers_with_round_bounds(self):
        column = drafted(RNG.integers(17, 91, ROWS))
        assert isinstance(column, Integer)
        assert (column.lower, column.upper, column.bins) == (15, 90, None)

    def test_wide_integers_are_binned(self):
        column = drafted(RNG.integers(12_285, 1_490_400, ROWS))
        assert isinstance(column, Integer)
        assert (column.lower, column.upper, column.bins) == (0, 1_500_000, 32)

    def test_amounts_with_many_zeros_keep_zero_apart(self):
        gains = np.where(RNG.random(ROWS) < 0.9, 0, np.exp(RNG.normal(8, 1, ROWS)).astype(int))
        column = drafted(gains)
        assert isinstance(column, Integer)
        assert column.edges is not None
        assert column.edges[:2] == (0, 1)
        assert column.edges[-1] >= gains.max()

    def test_two_integers_are_a_category(self):
        assert drafted([0, 1] * 9) == Category(
            "x", (0, 1), read_from_rows=("type", "nullable", "values")
        )

    def test_numbers_have_decimals(self):
        column = drafted(np.round(RNG.uniform(1.2, 9.7, ROWS), 2))
        assert isinstance(column, Number)
        assert (column.lower, column.upper, column.bins, column.decimals) == (1.0, 10.0, 32, 2)
        assert column.read_from_rows == ("type", "nullable", "lower", "upper", "decimals")

    def test_numbers_without_decimals_are_continuous(self):
        column = drafted(RNG.normal(size=ROWS))
        assert isinstance(column, Number)
        assert column.decimals is None
        assert column.edges is None

    def test_whole_floats_are_integers_of_their_type(self):
        column = drafted(RNG.integers(0, 50, ROWS).astype(np.float32), pa.float32())
        assert isinstance(column, Integer)
        assert column.dtype == "float32"

    def test_dictionaries_keep_their_type(self):
        column = draft(pd.DataFrame({"x": pd.Categorical(["b", "a", "b"])})).columns[0]
        assert isinstance(column, Category)
        assert column.values == ("a", "b")
        assert column.dtype.startswith("dictionary<values=")

    def test_words(self, tmp_path):
        column = from_csv(tmp_path, ["Private", "?", "State-gov", "Private"] * 5)
        assert isinstance(column, Category)
        assert column.values == ("Private", "State-gov")
        assert column.null_values == ("?",)
        assert column.nullable
        assert set(column.read_from_rows) == {"type", "nullable", "null_values", "values"}

    def test_digits_in_a_file(self, tmp_path):
        column = from_csv(tmp_path, [*range(30), "NA", "-"])
        assert isinstance(column, Integer)
        assert (column.dtype, column.nullable, column.null_values) == ("int64", True, ("-", "NA"))

    def test_leading_zeros_are_texts(self, tmp_path):
        column = from_csv(tmp_path, ["02139", "10001", "02139"] * 5, "zip")
        assert isinstance(column, Category)
        assert column.values == ("02139", "10001")

    def test_codes_are_categories(self, tmp_path):
        column = from_csv(tmp_path, [98001, 98199, 98100, 98102] * 5, "zipcode")
        assert isinstance(column, Category)
        assert not column.ordinal

    def test_booleans(self, tmp_path):
        assert isinstance(from_csv(tmp_path, ["true", "False", ""]), Boolean)
        assert isinstance(drafted([True, None]), Boolean)
        assert drafted([True, None]).read_from_rows == ("nullable",)

    def test_iso_dates_in_a_file(self, tmp_path):
        days = pd.date_range("2014-05-02", "2015-05-27").strftime("%Y-%m-%d")
        column = from_csv(tmp_path, days)
        assert isinstance(column, Date)
        assert column.dtype == "date32[day]"
        assert (column.lower, column.upper) == (date(2014, 5, 1), date(2015, 5, 31))

    @pytest.mark.parametrize("form", ["%Y%m%dT%H%M%S", "%d/%m/%Y", "%d %b %Y", "%Y%m%d"])
    def test_other_dates_keep_their_form(self, tmp_path, form):
        days = pd.date_range("2014-05-02", "2015-05-27").strftime(form)
        column = from_csv(tmp_path, [*days])
        assert isinstance(column, Date)
        assert (column.format, column.dtype) == (form, "string")
        assert "format" in column.read_from_rows
        back = column.decode(column.encode(pa.array(days.tolist())), np.random.default_rng(0))
        assert column.legal(back).all()

    def test_times(self, tmp_path):
        times = pd.date_range("2014-05-02", periods=500, freq="7h")
        column = from_csv(tmp_path, times)
        assert isinstance(column, Datetime)
        assert (column.dtype, column.resolution) == ("timestamp[s]", "second")
        zoned = drafted(times.tz_localize("UTC").to_pydatetime(), pa.timestamp("ns", "UTC"))
        assert isinstance(zoned, Datetime)
        assert zoned.dtype == "timestamp[ns, tz=UTC]"

    @pytest.mark.parametrize("name", ["id", "patient_id", "userId", "Record ID"])
    def test_names_of_ids(self, name):
        table = pa.table({name: RNG.integers(10**9, 10**10, ROWS)})
        assert isinstance(draft(table).columns[0], Identifier)

    def test_names_that_only_end_like_ids(self):
        table = pa.table({"paid": RNG.integers(10**5, 10**7, ROWS)})
        assert isinstance(draft(table).columns[0], Integer)

    def test_times_written_as_text_keep_their_form(self):
        texts = [f"2014-01-{1 + i % 28:02d} {i % 24:02d}:00:00" for i in range(300)]
        column = drafted(texts)
        assert isinstance(column, Datetime)
        assert (column.dtype, column.format) == ("string", "%Y-%m-%d %H:%M:%S")

    def test_narrow_types_keep_their_bounds(self):
        column = drafted(RNG.integers(-128, 128, ROWS).astype(np.int8), pa.int8())
        assert isinstance(column, Integer)
        assert (column.lower, column.upper, column.dtype) == (-128, 127, "int8")
        early = drafted(np.array(["1677-09-22", "2262-04-11"] * 9, "M8[ns]"))
        assert isinstance(early, Datetime)
        assert early.dtype == "timestamp[ns]"

    def test_distinct_texts_are_ids_and_long_ones_text(self):
        assert isinstance(drafted([f"P{i}" for i in range(99)]), Identifier)
        assert isinstance(
            drafted([f"the patient {i} was seen again " * 3 for i in range(99)]), Text
        )
        assert isinstance(drafted([f"{i} words" for i in range(900)] * 2), Category | Text)

    def test_a_running_number_is_an_id(self):
        assert isinstance(drafted(range(1, 1000)), Identifier)

    def test_many_words_keep_the_frequent_ones(self):
        words = [f"w{i % 400}" for i in range(4000)]
        column = drafted(words)
        assert isinstance(column, Category)
        assert len(column.values) == 200
        assert column.other == "OTHER"

    def test_a_column_without_values_has_to_be_filled_in(self):
        assert isinstance(drafted([None, None]), Incomplete)
        assert isinstance(drafted([float("nan")] * 3), Incomplete)
        assert isinstance(drafted([], pa.int64()), Incomplete)
        assert isinstance(drafted(["", "?"]), Incomplete)

    def test_lists_are_dropped(self):
        column = drafted([[1], [2, 3]])
        assert isinstance(column, Identifier)
        assert column.dropped

    def test_decimals_keep_their_type(self):
        cells = [Decimal(i) / 8 for i in range(80)]
        column = drafted(cells, pa.decimal128(10, 3))
        assert isinstance(column, Number)
        assert column.dtype == "decimal128(10, 3)"


class TestDraft:
    @given(arrays())
    def test_any_table_can_be_drafted(self, array):
        table = pa.table({"x": pa.chunked_array(array) if isinstance(array, list) else array})
        schema = draft(table)
        assert Schema.loads(schema.dumps()) == schema
        column = schema.columns[0]
        if isinstance(column, Modelled):
            infinite = pa.types.is_floating(array.type) or column.dtype.startswith("float")
            assert infinite or not sum(finding.count for finding in check(schema, table))

    @settings(max_examples=examples(50, 300))
    @given(st.lists(st.floats() | st.integers(-100, 100).map(float), max_size=40))
    def test_drafted_bounds_enclose_the_values(self, cells):
        schema = draft(pa.table({"x": pa.array(cells, pa.float64(), from_pandas=True)}))
        column = schema.columns[0]
        if isinstance(column, Modelled):
            finite = pa.array([cell for cell in cells if np.isfinite(cell)], pa.float64())
            assert not any(mask.any() for mask in column.misfits(finite).values())

    def test_every_kind_of_source_gives_the_same(self, tmp_path):
        frame = pd.DataFrame({"a": [1, 2, 3] * 40, "b": ["x", "y", None] * 40})
        table = pa.Table.from_pandas(frame, preserve_index=False)
        pq.write_table(table, tmp_path / "t.parquet")
        expected = draft(table)
        assert draft(frame) == expected
        assert draft(tmp_path / "t.parquet") == expected
        assert draft(table.to_batches()[0]) == expected
        assert draft(str(tmp_path / "t.parquet")) == expected
        assert [c.name for c in draft(pl.from_arrow(table)).columns] == ["a", "b"]

    def test_texts_of_polars_stay_what_they_are(self):
        frame = pl.DataFrame({"a": ["x", "y"] * 9, "b": [str(i % 7) for i in range(18)]})
        schema = confirm(draft(frame))
        table = schema.decode(schema.encode(pa.table(frame)), np.random.default_rng(0))
        assert read(frame).frame(table).equals(frame)
        assert table.column("a").to_pylist() == frame["a"].to_list()
        assert check(schema, frame) == schema.illegal(table) == []

    def test_what_is_declared_is_not_marked(self):
        table = pa.table(
            [pa.array([True, False])], schema=pa.schema([pa.field("b", pa.bool_(), False)])
        )
        assert draft(table).columns[0].read_from_rows == ()

    def test_it_is_refused_until_confirmed(self):
        schema = draft(pa.table({"a": [1, 2, 3], "b": ["x", "y", "x"]}))
        with pytest.raises(UnconfirmedError, match=r"'a' \(.*lower.*\), 'b' \(.*values"):
            schema.require_confirmed()
        half = confirm(schema, ["a"])
        with pytest.raises(UnconfirmedError, match="'b'"):
            half.require_confirmed()
        confirm(schema).require_confirmed()
        with pytest.raises(SchemaError, match="'c' is not in the schema"):
            confirm(schema, ["c"])

    def test_the_file_says_what_was_read(self):
        text = draft(pa.table({"a": [1, 2, 3]})).dumps()
        assert "THIS IS A DRAFT, AND PRIVATE" in text
        assert "# Read from private rows" in text
        assert 'read_from_rows = ["type", "nullable", "lower", "upper"]' in text
        assert "rows_public" not in text

    def test_bad_sources(self, tmp_path):
        with pytest.raises(SourceError, match="there is no file"):
            draft(tmp_path / "missing.csv")
        with pytest.raises(SourceError, match="there is no file"):
            draft(tmp_path / "missing.parquet")
        (tmp_path / "empty.csv").write_text("")
        with pytest.raises(SourceError, match="is empty or begins with an empty line"):
            draft(tmp_path / "empty.csv")
        (tmp_path / "bad.parquet").write_text("no")
        with pytest.raises(SourceError, match="it is not a whole Parquet file"):
            draft(tmp_path / "bad.parquet")
        (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
        with pytest.raises(SourceError, match="cells 1 and 2 of the first line are the same"):
            draft(tmp_path / "twice.csv")
        with pytest.raises(SourceError, match="cannot read a table from 'int'"):
            draft(7)

    def test_a_ragged_file_is_read_as_a_release_reads_it(self, tmp_path):
        path = tmp_path / "ragged.csv"
        path.write_bytes(b"age,town\n31,Ulm\n32\n33,Bonn,too,much\n34,K\xf6ln\n")
        even = pa.table({"age": ["31", "32", "33", "34"], "town": ["Ulm", "", "Bonn", "K\ufffdln"]})
        assert read_table(read(path)) == even
        age, town = draft(path).columns
        assert (age.nullable, town.nullable) == (False, True)
        assert town.values == ("Bonn", "K\ufffdln", "Ulm")
        schema = Schema((Integer("age", 30, 39), Category("town", ("Bonn", "Ulm"))))
        assert [(f.problem, f.count) for f in check(schema, path)] == [
            ("null", 1),
            ("a value that is not declared", 1),
        ]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("blank.csv", b"\n1,2\n"),
            ("numbers.csv", b"1,2\n3,4\n"),
            ("nameless.csv", b",age\n0,31\n"),
            ("twice.csv", b"a,a\n1,2\n"),
            ("wide.csv", "a,b\n1,2\n".encode("utf-16")),
            ("unknown.xlsx", b"a,b\n1,2\n"),
            ("cut.csv.gz", b"a,b\n1,2\n"),
        ],
    )
    def test_a_draft_refuses_what_a_release_refuses(self, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError) as of_release:
            read(tmp_path / name)
        with pytest.raises(SourceError) as of_draft:
            draft(tmp_path / name)
        assert str(of_draft.value) == str(of_release.value)

    def test_types_are_known_without_rows(self, tmp_path):
        table = pa.table({"a": pa.array([], pa.int16()), "b": pa.array([], pa.date32())})
        pq.write_table(table, tmp_path / "t.parquet")
        for source in (table, tmp_path / "t.parquet"):
            assert [column.dtype for column in draft(source).columns] == ["int16", "date32[day]"]

    def test_an_empty_table(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n")
        schema = draft(tmp_path / "t.csv")
        with pytest.raises(SchemaError, match=r"lacks facts: 'a' \(values\), 'b' \(values\)"):
            schema.require_confirmed()

    def test_the_first_moment_of_the_calendar(self):
        assert isinstance(drafted([date(1, 1, 1), date(9999, 12, 31)] * 9), Date)
        assert isinstance(drafted([datetime(1, 1, 1), datetime(9999, 12, 31)] * 9), Datetime)


def test_texts_that_are_said_to_stand_for_null():
    table = pa.table({"age": ["1", "-9", "3"] * 40, "job": ["a", "X", "b"] * 40})
    made = draft(table, null_values=["-9", "job=X"])
    assert [column.null_values for column in made.columns] == [("-9",), ("X",)]
    assert all("null_values" in column.read_from_rows for column in made.columns)
    assert not any("X" in map(str, column.labels()) for column in made.columns)
    with pytest.raises(SchemaError, match="no column 'jobs'"):
        draft(table, null_values=["jobs=X"])

import re
from datetime import date, datetime, timedelta
from decimal import Decimal

import ibis
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
from understudy.columns.reading import ticks as ticks_of
from understudy.draft import check, confirm, draft
from understudy.errors import SchemaError, SourceError, UnconfirmedError
from understudy.schema import Boolean, Category, Identifier, Integer, Modelled, Schema, Text
from understudy.schema.toml import column_facts
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


def kind_and_bounds(column):
    """The type of a column whose shape a release finds, and its public bounds."""
    facts = column_facts(column)
    assert {"bins", "edges"}.isdisjoint(facts) or facts["bins"] == "shape"
    return facts["type"], facts.get("lower"), facts.get("upper")


class TestGuesses:
    def test_small_counts_are_integers(self):
        column = drafted(np.arange(ROWS) % 16 + 1)
        assert column == Integer("x", 1, 16, read_from_rows=("type", "nullable", "lower", "upper"))

    def test_a_bound_that_few_hold_is_not_written_down(self):
        counts = np.append(RNG.integers(0, 7, ROWS), [9] * 5)
        assert drafted(counts) == Integer(
            "x", 0, 6, read_from_rows=("type", "nullable", "lower", "upper")
        )

    def test_ages_have_public_bounds(self):
        table = pa.table({"age": RNG.integers(17, 91, ROWS)})
        assert draft(table).columns[0] == Integer(
            "age", 0, 120, read_from_rows=("type", "nullable")
        )

    @pytest.mark.parametrize(
        "cells",
        [
            RNG.integers(12_285, 1_490_400, ROWS),
            np.where(RNG.random(ROWS) < 0.9, 0, np.exp(RNG.normal(8, 1, ROWS)).astype(int)),
            RNG.integers(0, 50, ROWS),
        ],
    )
    def test_other_integers_have_a_shape_and_nothing_from_the_rows(self, cells):
        column = drafted(cells)
        assert kind_and_bounds(column) == ("integer", None, None)
        assert column.read_from_rows == ("type", "nullable")

    def test_two_integers_are_a_category(self):
        assert drafted([0, 1] * 10) == Category(
            "x", (0, 1), read_from_rows=("type", "nullable", "values")
        )

    def test_numbers_have_decimals(self):
        column = drafted(np.round(RNG.uniform(1.2, 9.7, ROWS), 2))
        assert kind_and_bounds(column) == ("number", None, None)
        assert column_facts(column)["decimals"] == 2
        assert column.read_from_rows == ("type", "nullable", "decimals")

    def test_numbers_without_decimals_are_continuous(self):
        assert "decimals" not in column_facts(drafted(RNG.normal(size=ROWS)))

    def test_whole_floats_are_integers(self):
        column = drafted(RNG.integers(0, 50, ROWS).astype(np.float32), pa.float32())
        assert (kind_and_bounds(column)[0], column.dtype) == ("integer", "float64")

    def test_dictionaries_keep_their_type(self):
        column = draft(pd.DataFrame({"x": pd.Categorical(["b", "a", "b"] * 10)})).columns[0]
        assert isinstance(column, Category)
        assert column.values == ("a", "b")
        assert column.dtype.startswith("dictionary<values=")

    def test_dictionaries_of_numbers(self):
        column = draft(pd.DataFrame({"x": pd.Categorical([3, 1, 3] * 10 + [7])})).columns[0]
        assert isinstance(column, Category)
        assert (column.values, column.other) == ((1, 3), -1)

    def test_words(self, tmp_path):
        column = from_csv(tmp_path, ["Private", "?", "State-gov", "Private"] * 10)
        assert isinstance(column, Category)
        assert column.values == ("Private", "State-gov")
        assert column.null_values == ("?",)
        assert column.nullable
        assert set(column.read_from_rows) == {"type", "nullable", "null_values", "values"}

    def test_a_refusal_is_on_no_side_of_an_order(self):
        column = drafted(["under 18", "18 to 64", "65 or more", "Refused"] * 500)
        assert isinstance(column, Category)
        assert column.values == ("under 18", "18 to 64", "65 or more")
        assert (column.other, column.ordinal) == ("Refused", True)
        assert column_facts(drafted(["a", "Refused"] * 500))["values"] == ("Refused", "a")

    def test_the_name_of_all_others_is_free(self):
        column = drafted(["OTHER", "x"] * 500 + ["y"] * 3)
        assert isinstance(column, Category)
        assert (column.values, column.other) == (("OTHER", "x"), "(other)")

    def test_digits_in_a_file(self, tmp_path):
        column = from_csv(tmp_path, [*range(40), "NA", "-"] * 60)
        assert kind_and_bounds(column) == ("integer", None, None)
        assert (column.dtype, column.nullable, column.null_values) == ("int64", True, ("-", "NA"))

    def test_leading_zeros_are_texts(self, tmp_path):
        column = from_csv(tmp_path, ["02139", "10001", "02139"] * 10, "zip")
        assert isinstance(column, Category)
        assert column.values == ("02139", "10001")

    def test_codes_are_categories(self, tmp_path):
        column = from_csv(tmp_path, [98001, 98199, 98100, 98102] * 10, "zipcode")
        assert isinstance(column, Category)
        assert not column.ordinal

    def test_versions_are_no_numbers(self, tmp_path):
        column = from_csv(tmp_path, ["3.9", "3.10", "3.11"] * 700)
        assert column_facts(column)["values"] == ("3.10", "3.11", "3.9")
        assert column_facts(from_csv(tmp_path, ["1.5", "2", "3"] * 700))["values"] == (1.5, 2, 3)

    def test_codes_with_a_point_are_no_numbers(self, tmp_path):
        cells = [f"{i % 200 + 250}.{i % 7}" for i in range(7000)]
        assert column_facts(from_csv(tmp_path, cells, "diag"))["values"] == "discover"
        measured = from_csv(tmp_path, [i / 8 for i in range(2000)], "zone")
        assert kind_and_bounds(measured)[0] == "number"

    def test_rare_texts_among_numbers_become_null(self, tmp_path):
        column = from_csv(tmp_path, [*range(500), *range(500), *["N"] * 50, "oops"])
        assert (column_facts(column)["special"], column.nullable) == (("N",), True)
        assert "oops" not in Schema((column,)).dumps()

    def test_booleans(self, tmp_path):
        assert isinstance(from_csv(tmp_path, ["true", "False", ""]), Boolean)
        assert isinstance(drafted([True, None]), Boolean)
        assert drafted([True, None]).read_from_rows == ("nullable",)

    def test_iso_dates_in_a_file(self, tmp_path):
        days = pd.date_range("2014-05-02", "2015-05-27").strftime("%Y-%m-%d")
        column = from_csv(tmp_path, [*days] * 6)
        assert column.dtype == "date32[day]"
        assert kind_and_bounds(column) == ("date", date(1900, 1, 1), date(2099, 12, 31))
        few = from_csv(tmp_path, days)
        assert kind_and_bounds(few) == ("date", date(2014, 1, 1), date(2015, 12, 31))
        assert few.read_from_rows == ("type", "nullable", "lower", "upper")

    def test_numbers_of_few_rows_have_round_bounds_that_are_marked(self, tmp_path):
        column = drafted(np.append(RNG.integers(1000, 1101, 500), 90_000))
        assert kind_and_bounds(column) == ("integer", 900, 1200)
        assert column.read_from_rows == ("type", "nullable", "lower", "upper")
        amounts = from_csv(tmp_path, np.linspace(3, 9, 601).round(2))
        assert kind_and_bounds(amounts) == ("number", 0, 16)

    @pytest.mark.parametrize("form", ["%Y%m%dT%H%M%S", "%d/%m/%Y", "%d %b %Y", "%Y%m%d"])
    def test_other_dates_keep_their_form(self, tmp_path, form):
        days = pd.date_range("2014-05-02", "2015-05-27").strftime(form)
        column = from_csv(tmp_path, [*days])
        assert (kind_and_bounds(column)[0], column.dtype) == ("date", "string")
        assert column_facts(column)["format"] == form
        assert "format" in column.read_from_rows

    def test_times(self, tmp_path):
        times = pd.date_range("2014-05-02", periods=500, freq="7h")
        column = from_csv(tmp_path, times)
        assert (kind_and_bounds(column)[0], column.dtype) == ("datetime", "timestamp[s]")
        assert column_facts(column)["resolution"] == "second"
        zoned = drafted(times.tz_localize("UTC").to_pydatetime(), pa.timestamp("ns", "UTC"))
        assert zoned.dtype == "timestamp[ns, tz=UTC]"
        minutes = from_csv(tmp_path, times.strftime("%d/%m/%Y %H:%M"))
        assert column_facts(minutes)["resolution"] == "minute"

    @pytest.mark.parametrize("name", ["id", "patient_id", "userId", "Record ID", "caseno", "SSN"])
    def test_names_of_ids(self, name):
        table = pa.table({name: RNG.integers(10**9, 10**10, ROWS)})
        assert isinstance(draft(table).columns[0], Identifier)

    @pytest.mark.parametrize("name", ["paid", "grid", "education-num", "humid"])
    def test_names_that_only_end_like_ids(self, name):
        table = pa.table({name: RNG.integers(10**5, 10**7, ROWS)})
        assert kind_and_bounds(draft(table).columns[0])[0] == "integer"

    def test_times_written_as_text_keep_their_form(self):
        texts = [f"2014-01-{1 + i % 28:02d} {i % 24:02d}:00:00" for i in range(300)]
        column = drafted(texts)
        assert (column.dtype, column_facts(column)["format"]) == ("string", "%Y-%m-%d %H:%M:%S")

    def test_narrow_types(self):
        column = drafted(RNG.integers(-128, 128, ROWS).astype(np.int8), pa.int8())
        assert (kind_and_bounds(column), column.dtype) == (("integer", None, None), "int8")
        early = drafted(np.array(["1677-09-22", "2262-04-11"] * 9, "M8[ns]"))
        assert (kind_and_bounds(early), early.dtype) == (("datetime", None, None), "timestamp[ns]")

    def test_distinct_texts_are_ids_and_long_ones_text(self):
        assert isinstance(drafted([f"P{i}" for i in range(99)]), Identifier)
        assert isinstance(
            drafted([f"the patient {i} was seen again " * 3 for i in range(99)]), Text
        )

    def test_a_running_number_is_an_id(self):
        assert isinstance(drafted(range(1, 1000)), Identifier)

    def test_a_list_that_is_public_needs_no_holders(self):
        found = drafted(["Nein"] * ROWS + ["Ja"] * 2)
        assert (column_facts(found)["values"], found.read_from_rows) == (
            ("Nein", "Ja"),
            ("type", "nullable"),
        )
        assert column_facts(drafted(["no", "yes", "no"]))["values"] == ("no", "yes")

    def test_amounts_as_accounts_write_them(self):
        cents = RNG.integers(-99_999, 99_999, ROWS) / 100
        for sign in ("({})", "{}-"):
            texts = [f"{n:.2f}" if n >= 0 else sign.format(f"{-n:.2f}") for n in cents]
            facts = column_facts(drafted(texts))
            assert (facts["type"], facts["format"]) == ("number", "0.00")

    def test_many_words_are_not_listed(self):
        assert column_facts(drafted([f"w{i % 400}" for i in range(8000)]))["values"] == "discover"

    def test_a_column_without_values_is_left_out(self):
        for column in (drafted([None, None]), drafted([float("nan")] * 3), drafted(["", "?"])):
            assert isinstance(column, Text)

    def test_lists_are_dropped(self):
        column = drafted([[1], [2, 3]])
        assert isinstance(column, Text)

    def test_decimals_keep_their_type(self):
        cells = [Decimal(i) / 8 for i in range(80)]
        column = drafted(cells, pa.decimal128(10, 3))
        assert (kind_and_bounds(column)[0], column.dtype) == ("number", "decimal128(10, 3)")


class TestDraft:
    @given(arrays())
    def test_any_table_can_be_drafted(self, array):
        table = pa.table({"x": pa.chunked_array(array) if isinstance(array, list) else array})
        schema = draft(table)
        assert Schema.loads(schema.dumps()) == schema
        column = schema.columns[0]
        if isinstance(column, Modelled):
            type_ = table.schema.field("x").type
            infinite = pa.types.is_floating(type_) or column.dtype.startswith("float")
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
        frame = pl.DataFrame({"a": ["x", "y"] * 70, "b": [str(i % 7) for i in range(140)]})
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
        schema = draft(pa.table({"a": [1, 2, 3] * 10, "b": ["x", "y", "x"] * 10}))
        with pytest.raises(UnconfirmedError, match=r"'a' \(.*lower.*\), 'b' \(.*values"):
            schema.require_confirmed()
        half = confirm(schema, ["a"])
        with pytest.raises(UnconfirmedError, match=r"\[understudy\] \(unit\), 'b'"):
            half.require_confirmed()
        confirm(schema).require_confirmed()
        with pytest.raises(SchemaError, match="'c' is not in the schema"):
            confirm(schema, ["c"])

    def test_the_file_says_what_was_read(self):
        text = draft(pa.table({"a": [1, 2, 3] * 10})).dumps()
        assert "THIS IS A DRAFT, AND PRIVATE" in text
        assert "# Read from private rows" in text
        assert 'unit = "row"\n# Read from private rows' in text
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
        assert "K\ufffdln" not in draft(path).dumps()  # nothing that one row holds
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
        confirm(draft(tmp_path / "t.csv")).require_confirmed()

    def test_the_first_moment_of_the_calendar(self):
        days = drafted([date(1, 1, 1), date(9999, 12, 31)] * 9)
        assert kind_and_bounds(days) == ("date", None, None)
        times = drafted([datetime(1, 1, 1), datetime(9999, 12, 31)] * 9)
        assert kind_and_bounds(times) == ("datetime", None, None)


def test_texts_that_are_said_to_stand_for_null():
    table = pa.table({"age": ["1", "-9", "3"] * 40, "job": ["a", "X", "b"] * 40})
    made = draft(table, null_values=["-9", "job=X"])
    assert [column.null_values for column in made.columns] == [("-9",), ("X",)]
    assert all("null_values" in column.read_from_rows for column in made.columns)
    assert '"X"' not in made.dumps().replace('null_values = ["X"]', "")
    with pytest.raises(SchemaError, match="no column 'jobs'"):
        draft(table, null_values=["jobs=X"])


class TestDaysAmongNumbers:
    DAYS = np.datetime64("2019-11-20") + RNG.integers(0, 700, ROWS)
    NUMBERS = np.array([int(str(day).replace("-", "")) for day in DAYS])

    def test_are_days_and_become_numbers_again(self):
        frame = pd.DataFrame({"x": self.NUMBERS})
        column = draft(frame).columns[0]
        assert kind_and_bounds(column) == ("date", date(1900, 1, 1), date(2099, 12, 31))
        text = pa.table({"x": pa.array(["20200229", "20191231"])})
        assert read(frame).frame(text)["x"].tolist() == [20200229, 20191231]

    def test_one_that_is_no_day_makes_all_of_them_numbers(self):
        assert drafted([*self.NUMBERS, 20201350]).kind != "date"
        assert drafted([*self.NUMBERS, 20210229]).kind != "date"

    def test_months_are_a_list_in_order(self):
        column = drafted(self.NUMBERS // 100)
        assert isinstance(column, Category)
        assert column.ordinal
        assert list(column.values) == sorted({*(self.NUMBERS // 100).tolist()})
        rare = draft(
            pa.table({"x": [100 * (1900 + i // 24) + i // 2 % 12 + 1 for i in range(3000)]})
        )
        assert column_facts(rare.columns[0])["values"] == "discover"
        assert column_facts(rare.columns[0])["prefixes"] == (4,)  # years

    def test_an_engine_keeps_the_types_it_has(self):
        days = pa.table({"day": self.NUMBERS, "text": [str(n % 3) for n in self.NUMBERS]})
        first, second = draft(read(ibis.memtable(days))).columns
        assert column_facts(first)["type"] == "integer"
        assert column_facts(second)["values"] == ("0", "1", "2")


def test_never_among_two_dates_is_no_date():
    cells = ["9999-12-31"] * 300 + ["2020-01-05"] * 300 + ["2021-03-15"] * 300
    facts = column_facts(drafted(cells))
    assert facts["special"] == (date(9999, 12, 31),)
    assert facts["upper"] == date(2021, 12, 31)


def test_whole_numbers_beyond_doubles_name_somebody():
    assert drafted(10**17 + RNG.integers(0, 10**16, ROWS)).kind == "identifier"


class TestDates:
    DAYS = tuple(
        date(2019, 11, 20) + timedelta(days=n) for n in RNG.integers(0, 700, ROWS).tolist()
    )

    @pytest.mark.parametrize(
        "form",
        [
            "%m/%d/%Y",
            "%d.%m.%Y",
            "%d.%m.%y",
            "%m/%d/%y",
            "%d%b%Y",
            "%B %d, %Y",
            "%d-%b-%y",
            "%Y年%m月%d日",
        ],
    )
    @pytest.mark.parametrize("bare", [False, True])
    def test_are_read_as_they_are_written(self, form, bare):
        texts = [f"{day:{form}}" for day in self.DAYS]
        texts = [re.sub(r"\b0", "", text).upper() for text in texts] if bare else texts
        facts = column_facts(drafted(texts))
        assert (facts["type"], facts["format"]) == ("date", form)

    @pytest.mark.parametrize(
        "form", ["%m/%d/%Y %I:%M %p", "%d.%m.%y %H:%M", "%d-%b-%Y %H:%M", "%A, %d %B %Y %H:%M"]
    )
    def test_with_a_clock(self, form):
        texts = [f"{datetime(d.year, d.month, d.day, d.day % 24, 5):{form}}" for d in self.DAYS]
        facts = column_facts(drafted(texts))
        assert (facts["type"], facts["format"]) == ("datetime", form)
        assert facts["resolution"] == "minute"

    def test_a_year_of_two_digits_that_may_be_of_either_century_is_no_date(self):
        births = [date(1930, 1, 1) + timedelta(days=int(n)) for n in RNG.integers(0, 9999, ROWS)]
        assert drafted([f"{day:%d.%m.%y}" for day in births]).kind not in ("date", "undeclared")
        assert drafted([f"{day:%d.%m.%Y}" for day in births]).kind != "text"

    def test_a_table_of_months_has_their_first_day(self):
        firsts = [f"{day.month}/1/{day.year}" for day in self.DAYS]
        assert column_facts(drafted(firsts))["format"] == "%m/%d/%Y"

    def test_what_programs_write_for_no_day(self):
        texts = [str(day) if i % 9 else "0000-00-00" for i, day in enumerate(self.DAYS)]
        facts = column_facts(drafted(texts))
        assert (facts["type"], facts["null_values"]) == ("date", ("0000-00-00",))

    @pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.time64("us")])
    def test_times_of_a_day_are_read_as_their_texts(self, type_):
        ticks = {"s": 1, "ms": 10**3, "us": 10**6}[type_.unit]
        seconds = RNG.integers(0, 86_400, ROWS)
        array = pa.array((seconds * ticks).tolist(), type_)
        column = drafted(array)
        facts = column_facts(column)
        assert (facts["type"], facts["format"]) == ("datetime", "%H:%M:%S")
        assert (facts["dtype"], facts["resolution"]) == ("string", "second")
        texts = [f"{n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}" for n in seconds.tolist()]
        assert facts == column_facts(drafted(texts))
        read, valid = ticks_of(array, tick=10**9, form="%H:%M:%S")
        assert valid.all()
        assert ((read - read.min()) == (seconds - seconds.min())).all()

    def test_hours_alone_name_nobody(self):
        facts = column_facts(drafted([f"{i % 24:02d}:{i * 7 % 60:02d}" for i in range(ROWS)]))
        assert (facts["type"], facts["format"], facts["bins"]) == ("datetime", "%H:%M", "shape")

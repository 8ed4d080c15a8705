"""Files that are wrong: told by the header alone, silent about the rows."""

import contextlib
import gzip
import logging
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import understudy.source
from tests.thorough import examples, some
from understudy.errors import InputError, SourceError, WorkError
from understudy.privacy.sensitive import reveal
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.source import read, read_table
from understudy.source.base import Unreadable
from understudy.source.files import Layout, Ragged, ragged, read_layout

SCHEMA = Schema((Integer("age", 0, 9, nullable=True), Category("sex", ("F", "M"), nullable=True)))
ENGINES = pytest.mark.parametrize("engine", ["memory", "duckdb"])


def write(folder, content, name="t.csv"):
    path = folder / name
    path.write_bytes(content)
    return path


def tally(path, engine, schema=SCHEMA):
    bound = read(path, engine=engine).bind(schema)
    (table,) = reveal(bound.marginals([tuple(range(len(schema.shape)))]))
    return table, reveal(bound.marginals([()]))[0]


# ------------------------------------------------------------------- wrong rows: never a word

MESSY = {
    "short": (b"age,sex\n3\n4,F\n", [(3, None), (4, "F")]),
    "long": (b"age,sex\n3,F,9,9\n4,M\n", [(3, "F"), (4, "M")]),
    "not UTF-8": (b"age,sex\n3,\xff\xfe\n4,F\n", [(3, "F"), (4, "F")]),
    "text after a quote": (b'age,sex\n3,"F"x\n4,M\n', [(3, "F"), (4, "M")]),
    "quote never closed": (b'age,sex\n3,F\n4,"M\n5,F\n', [(3, "F"), (4, "F")]),
    "mixed line ends": (b"age,sex\r\n3,F\n4,M\r\n", [(3, "F"), (4, "M")]),
    "blank lines": (b"age,sex\n\n3,F\n\n\n4,M\n\n", [(3, "F"), (4, "M")]),
    "NUL": (b"age,sex\n3,F\n4,\0\n", [(3, "F"), (4, "F")]),
    "no last line end": (b"age,sex\n3,F\n4,M", [(3, "F"), (4, "M")]),
    "not numbers": (b"age,sex\nold,F\n99,M\n-1,M\n", [(None, "F"), (9, "M"), (0, "M")]),
    "an endless cell": (
        b"age,sex\n3\n" + b"x" * 200_000 + b",F\n4,M\n",
        [(3, None), (None, None), (4, "M")],
    ),
    "only the header": (b"age,sex", []),
    "old line ends": (b"age,sex\r3,F\r4,M\r", [(3, "F"), (4, "M")]),
}  # an undeclared text is the first category, F; nulls stay nulls


def expected(rows):
    table = pa.table(
        {
            "age": pa.array([age for age, _ in rows], pa.int64()),
            "sex": pa.array([sex for _, sex in rows], pa.string()),
        }
    )
    codes = SCHEMA.encode(table)
    counted = np.zeros(SCHEMA.shape, np.int64)
    np.add.at(counted, tuple(codes), 1)
    return counted


@ENGINES
@pytest.mark.parametrize(
    ("name", "packed"),
    [*((name, False) for name in MESSY), *some(((name, True) for name in MESSY), 4)],
)
def test_messy_rows_are_read_silently(name, engine, packed, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    content, rows = MESSY[name]
    path = (
        write(tmp_path, gzip.compress(content), "t.csv.gz") if packed else write(tmp_path, content)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table, total = tally(path, engine)
    np.testing.assert_array_equal(table, expected(rows))
    assert total == len(rows)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


@given(st.binary(max_size=60).map(lambda b: b.replace(b"\x1f\x8b", b"")))
@example(b'"')
@example(b',\n,,"\n"')
@settings(max_examples=examples(10, 30), deadline=None)
def test_no_bytes_below_the_header_ever_raise(tmp_path_factory, rows):
    path = write(tmp_path_factory.mktemp("rows"), b"age,sex\n3,F\n" + rows)
    for engine in ("memory", "duckdb"):
        table, total = tally(path, engine)
        assert table.sum() == total >= 1


ROWS = 400_000  # with fewer, an engine meets the bad row before it hands over any


@ENGINES
def test_a_bad_row_far_down_counts_no_row_twice(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("understudy.source.files._BLOCK_BYTES", 1 << 16)
    content = b"age,sex\n" + b"3,F\n" * ROWS + b"4\n" + b"5,M\n" * 10
    path = write(tmp_path, content)
    table, total = tally(path, engine)
    assert (table[3, 0], table[4, 2], table[5, 1], total) == (ROWS, 1, 10, ROWS + 11)
    # The fast reader hands over rows before it meets the bad one, unless its threads meet that first.
    assert any(handed_over(path, engine) for _ in range(20))


def handed_over(path, engine):
    try:
        return next(next(iter(read(path, engine=engine).scans(["age"])))).num_rows > 0
    except Unreadable:
        return False


@ENGINES
def test_one_column_and_blank_lines(engine, tmp_path):
    schema = Schema((Integer("age", 0, 9, nullable=True),))
    table, total = tally(write(tmp_path, b'age\n1\n\n2\n""\n'), engine, schema)
    assert total == 3
    assert table[[1, 2, 10]].tolist() == [1, 1, 1]


@ENGINES
def test_text_is_never_sniffed(engine, tmp_path):
    """A category that looks like a number, a date or a boolean stays the text it is."""
    schema = Schema((Category("code", ("007", "7", "1e3", "true", "2024-01-01", "NULL", "nan")),))
    content = b"code\n007\n7\n1e3\ntrue\n2024-01-01\nNULL\nnan\n"
    table, _ = tally(write(tmp_path, content), engine, schema)
    assert table.tolist() == [1] * 7


# -------------------------------------------------------------------------------- the header


@pytest.mark.parametrize(
    ("header", "separator", "columns"),
    [
        (b"a,b\n", ",", ("a", "b")),
        (b"\xef\xbb\xbfa;b;c,d\r\n", ";", ("a", "b", "c,d")),
        (b'"a;b;c",d\n', ",", ("a;b;c", "d")),
        (b"a\tb\n1,2,3,4\t5\n", "\t", ("a", "b")),
        (b"a|b\n", "|", ("a", "b")),
        (b"only\n1;2\n", ",", ("only",)),
        (b'"a;b","say ""hi"""\n1,2\n', ",", ("a;b", 'say "hi"')),
        ("größe,höhe".encode(), ",", ("größe", "höhe")),
        (b"id,2019,2020\n", ",", ("id", "2019", "2020")),
        (b"id,2020,2019\n", ",", ("id", "2020", "2019")),
        (b"nm,400.5,401.0,401.5\n", ",", ("nm", "400.5", "401.0", "401.5")),
        (b"town,1/22/20,1/23/20,1/24/20\n", ",", ("town", "1/22/20", "1/23/20", "1/24/20")),
        (b"0,1,2\n5,6,7\n", ",", ("0", "1", "2")),
        (b"1;2;3;4\n5;6;7;8\n", ";", ("1", "2", "3", "4")),
        (b'height 5",b\n1;2;3;"4\n', ",", ('height 5"', "b")),
        (b'"a""b",c\n"1\n', ",", ('a"b', "c")),
        (b'x""y,c\n1;"\n', ",", ('x""y', "c")),
    ],
)
def test_layout(header, separator, columns, tmp_path):
    assert read_layout(write(tmp_path, header)) == Layout(separator, columns)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty"),
        (b"\xef\xbb\xbf", r"is empty"),
        (b"\n71,SECRET\n", r"begins with an empty line"),
        (b"0,1\n3,4\n", r"seems to have no header"),
        (b"0,1,3\n3,4,5\n", r"seems to have no header"),
        (b"71,4242\n3,4\n", r"seems to have no header, its first line holds only numbers.*add one"),
        (b"SECRET,,\na,b,c\n", r"seems to be a title"),
        (b",SECRET,,,71,\na,b,c,d,e,f\n", r"take away what stands above.*groups"),
        (b";;;\na;b;c;d\n", r"take away what stands above"),
        (b"SECRET,,3\n", r"cell 2 of the first line is empty.*to_csv\(\.\.\., index=False\)"),
        (b"SECRET,71,71\n", r"cells 2 and 3 of the first line are the same.*rename one"),
        (b"39,SECRET,71,4242,13\n", r"no header: cell 1 of its first line is a value.*add one"),
        (b"SECRET,1,1971-03-07\n", r"no header: cell 3 of its first line"),
        (b"71.5,4.242,SECRET,0.2\n", r"no header: cell 1 of its first line"),
        (b"x,SECRET@mail.example\n", r"no header: cell 2 of its first line"),
        (b"x,SECRET,\xff\n", r"the header is not UTF-8 text"),
        (b"a\0SECRET,b\n", r"is not text"),
        ("age,sex".encode("utf-16"), r"is UTF-16 .*iconv -f utf-16"),
        (b"SECRET " * 200_000, r"the first line is longer than 1,048,576 bytes"),
    ],
)
def test_a_header_that_is_none_is_refused_without_quoting_it(content, message, tmp_path):
    with pytest.raises(SourceError, match=message) as caught:
        read(write(tmp_path, content))
    said = str(caught.value)
    assert "t.csv" in said
    assert not any(word in said for word in ("SECRET", "71", "4242"))


@given(st.binary(max_size=40) | st.text('ab1,;|\t"\r\n', max_size=30).map(str.encode))
@settings(max_examples=examples(15, 60), deadline=None)
def test_any_bytes_have_a_layout_or_are_refused(tmp_path_factory, content):
    with contextlib.suppress(SourceError):  # and nothing else
        found = read_layout(write(tmp_path_factory.mktemp("any"), content))
        assert found.columns
        assert all(name.strip() for name in found.columns)


def test_a_cell_of_the_header_without_end(tmp_path):
    with pytest.raises(SourceError, match="a cell of the first line is too long"):
        read(write(tmp_path, b"a," + b"x" * 200_000 + b"\n"))


def test_a_row_taken_for_the_header_is_not_quoted_when_it_is_bound(tmp_path):
    source = read(write(tmp_path, b"39,SECRET\n40,F\n"))
    with pytest.raises(SourceError, match="add a line with the column names above it") as caught:
        source.bind(SCHEMA)
    assert "SECRET" not in str(caught.value) + source.describe()


def test_missing_and_unknown_files(tmp_path):
    with pytest.raises(SourceError, match=r"there is no file '.*missing\.csv'"):
        read(tmp_path / "missing.csv")
    with pytest.raises(SourceError, match=r"holds no \.parquet files"):
        read(tmp_path)
    with pytest.raises(SourceError, match=r"no file matches '.*\*\.csv'"):
        read(str(tmp_path / "*.csv"))
    for name in ("t.xlsx", "t", "t.parquet.gz", "t.gz"):
        with pytest.raises(SourceError, match=r"is not known: understudy reads CSV"):
            read(write(tmp_path, b"age,sex\n", name))
    with pytest.raises(SourceError, match=r"save the sheet as CSV \(UTF-8\)"):
        read(write(tmp_path, b"", "t.xlsx"))
    for wrong in (7, None, ["age"], {"age": [1]}, object()):
        with pytest.raises(SourceError, match="cannot read a table from"):
            read(wrong)


def test_files_that_do_not_belong_together(tmp_path):
    write(tmp_path, b"age,sex\n", "a.csv")
    write(tmp_path, b"age,size\n", "b.csv")
    with pytest.raises(SourceError, match=r"a\.csv' and '.*b\.csv' differ"):
        read(str(tmp_path / "*.csv"))
    pq.write_table(pa.table({"age": [1], "sex": ["F"]}), tmp_path / "c.parquet")
    with pytest.raises(SourceError, match="mixes CSV and Parquet"):
        read(str(tmp_path / "[ac].*"))


@ENGINES
def test_files_of_one_table_may_order_their_columns_differently(engine, tmp_path):
    write(tmp_path, b"age,sex\n3,F\n", "a.csv")
    write(tmp_path, b"sex;age\nM;4\n", "b.csv")
    table, total = tally(str(tmp_path / "*.csv"), engine)
    assert (table[3, 0], table[4, 1], total) == (1, 1, 2)
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"age": [3], "sex": ["F"]}), tmp_path / "p" / "1.parquet")
    pq.write_table(pa.table({"sex": ["M"], "age": [4]}), tmp_path / "p" / "2.parquet")
    table, total = tally(tmp_path / "p", engine)
    assert (table[3, 0], table[4, 1], total) == (1, 1, 2)


@ENGINES
@pytest.mark.parametrize("name", ["a[1].csv", "a?.csv", "a*.csv", 'it\'s "b".csv'])
def test_names_with_odd_characters_are_names(name, engine, tmp_path):
    write(tmp_path, b"age,sex\n9,M\n", "a1.csv")  # what the patterns would match
    table, total = tally(write(tmp_path, b"age,sex\n3,F\n", name), engine)
    assert (table[3, 0], total) == (1, 1)


@ENGINES
def test_damaged_files(engine, tmp_path):
    for content in (b"", b"PAR1 SECRET PAR1", b"age,sex\n"):
        path = write(tmp_path, content, "t.parquet")
        with pytest.raises(SourceError, match="it is not a whole Parquet file") as caught:
            read(path, engine=engine)
        assert "SECRET" not in str(caught.value)
    with pytest.raises(SourceError, match="gzip"):
        read(write(tmp_path, b"age,sex\n3,SECRET\n", "t.csv.gz"), engine=engine)


@ENGINES
def test_a_file_damaged_below_its_header_is_refused_without_details(engine, tmp_path):
    sexes = [f"SECRET{i}" for i in range(3000)]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": list(range(3000)), "sex": sexes}), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xaa" * 1996
    path.write_bytes(content)
    # In memory the rows are read before anything can be charged, by DuckDB afterwards.
    wanted = {"memory": SourceError, "duckdb": WorkError}[engine]
    with pytest.raises(wanted, match="the rows cannot be read; a file may be damaged") as caught:
        read(path, engine=engine).bind(SCHEMA).marginals([(0,)])
    assert "SECRET" not in str(caught.value)


def test_duplicate_columns(tmp_path):
    twice = pa.table([[1], [2]], names=["age", "age"])
    with pytest.raises(SourceError, match="more than one column is called 'age'"):
        read(twice)
    with pytest.raises(SourceError, match="more than one column is called 'age'"):
        read(pd.DataFrame([[1, 2]], columns=["age", "age"]))
    pq.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(SourceError, match=r"t\.parquet': more than one column is called 'age'"):
        read(tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="no columns"):
        read(pd.DataFrame())


# ------------------------------------------------------------------------ frames and options


def test_reading_does_not_touch_the_rows(tmp_path):
    lazy = pl.LazyFrame({"age": ["SECRET"]}).with_columns(pl.col("age").cast(pl.Int64))
    assert read(lazy).columns == ("age",)  # collecting would fail
    path = write(tmp_path, b"age,sex\n3,F\n")
    source = read(path)
    path.write_bytes(b"age,sex\n3,F\n4,M\n")
    assert read_table(source).num_rows == 2


def test_identifiers_are_never_read(tmp_path):
    schema = Schema((Identifier("id"), *SCHEMA.columns))
    for engine in ("memory", "duckdb"):
        path = write(tmp_path, b"id,age,sex\nx,3,F\n")
        asked = []
        source = read(path, engine=engine)
        original = source.scans
        source.scans = lambda names, original=original, asked=asked: (
            asked.append(tuple(names)) or original(names)
        )
        bound = source.bind(schema)
        reveal(bound.marginals([(0, 1)]))
        assert set(asked) == {("age", "sex")}
        reveal(bound.marginals([(1,)]))  # and of the others, those that are asked for
        assert engine == "memory" or asked[-1] == ("sex",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, "engine='spark': it is 'memory' or 'duckdb'"),
        ({"memory_limit": "lots"}, "memory_limit='lots': write for instance '2GB'"),
        ({"memory_limit": "1MB"}, "at least 100MB"),
        ({"memory_limit": -5}, "memory_limit=-5"),
        ({"null_values": "?"}, r"give a list, such as \['\?'\]"),
    ],
)
def test_malformed_options(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path, b"age,sex\n"), **options)
    with pytest.raises(InputError, match="in memory already"):
        read(pa.table({"age": [1]}), engine="duckdb")


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("512mb", 512 * 10**6), (10**9, 10**9)],
)
def test_memory_limits_in_words(text, size):
    assert understudy.source._bytes(text) == size


def test_ragged_rows_are_counted_for_whoever_may_see_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,c\n1,2,x\n3,4\n5,6,y,7\n8,9,"z\nz"\n')
    found = ragged(read(path))
    assert found == Ragged(2, 3, 2, 3)
    assert "2 rows have another number of cells than the header, the first in line 3" in str(found)
    path.write_text('a,b,c\n1,2,x\n\n8,9,"z\nz"\n')
    assert ragged(read(path)) is None

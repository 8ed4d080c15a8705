"""What may stand in a message, and what the custodian still learns from one."""

import errno
import os
import traceback

import duckdb
import pyarrow as pa
import pytest

import understudy as us
from understudy.draft import draft
from understudy.errors import InputError, SourceError
from understudy.quoting import in_our_words, is_name, named, require_names, unquoted
from understudy.schema import Category, Integer, Schema

SECRET = "Wilhelmina"
SCHEMA = Schema((Category("city", ("Aa", "Bb")), Integer("age", 0, 9)))


@pytest.mark.parametrize(
    "name", ["age", "größe (cm)", "Age\xa0in years", "n" * 200, "年齢", "", "'"]
)
def test_names(name):
    assert is_name(name)
    assert named(name) == repr(name)


@pytest.mark.parametrize(
    "name", ["n" * 201, "a\nb", "a\rb", "a\x85b", "a\u2028b", "a\x00b", "a\tb"]
)
def test_what_cannot_be_a_name(name):
    assert not is_name(name)
    assert named(name) == f"(a name of {len(name)} characters)"
    with pytest.raises(
        SourceError, match=rf"t: column 2 of the header .* \({len(name)} characters"
    ):
        require_names(["age", name], "t")


def test_a_readers_words_are_not_passed_on():
    uneven = pa.ArrowInvalid(f"CSV parse error: Row #7: Expected 3 columns, got 4: 1,{SECRET},2,3")
    assert in_our_words(uneven).startswith("row 7 has 4 cells, the header has 3;")
    assert SECRET not in in_our_words(uneven)
    nowhere = pa.ArrowInvalid("CSV parse error: Expected 3 columns, got 4: 1,2,3,4")
    assert in_our_words(nowhere).startswith("a row has 4 cells")
    assert "damaged" in in_our_words(pa.ArrowInvalid(f"invalid value '{SECRET}'"))
    assert in_our_words(PermissionError(errno.EACCES, SECRET)) == os.strerror(errno.EACCES)


def test_unforeseen_errors_are_told_by_their_kind(monkeypatch):
    def fail():
        with unquoted("t.csv"):
            float(SECRET)

    with pytest.raises(SourceError, match=r"t\.csv: .* \(ValueError\)") as caught:
        fail()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    monkeypatch.setenv("UNDERSTUDY_DEBUG", "1")
    with pytest.raises(ValueError, match=SECRET):
        fail()


@pytest.mark.parametrize("error", [InputError("mine"), MemoryError(), KeyboardInterrupt()])
def test_what_is_ours_or_not_about_rows_goes_through(error):
    with pytest.raises(type(error)) as caught, unquoted("t"):
        raise error
    assert caught.value is error


def test_an_open_quote_in_the_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('city,"age\n' + f"{SECRET},3\n" * 50 + f'{SECRET},3"\n')
    for work in (lambda: us.read(path), lambda: draft(path)):
        with pytest.raises(
            SourceError, match=r"column 2 of the header is not a name \(\d+ char"
        ) as e:
            work()
        assert SECRET not in str(e.value)
        assert "quote in the first line not closed" in str(e.value)


HEADERS = {
    f"city,age{SECRET},Aa\n": "lacks 'age'; the table has column 2, column 3",
    f"city,{SECRET}\n": "lacks 'age'; the table has column 2, not",
    f"city,age,{SECRET},3\n": "the table has column 3, column 4, not",
    "city,Age\n": r"lacks 'age' \(is it 'Age'\?\); the table has 'Age', not",
    "city,age,height\n": "the table has 'height', not",
}


@pytest.mark.parametrize(("header", "said"), HEADERS.items())
def test_a_header_that_ran_into_a_row(tmp_path, header, said):
    (tmp_path / "t.csv").write_text(header)
    with pytest.raises(SourceError, match=said) as caught:
        us.read(tmp_path / "t.csv").bind(SCHEMA)
    assert SECRET not in str(caught.value)


def test_what_duckdb_spills_goes_to_a_private_folder(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'Aa' AS city, 3 AS age")
    source = us.read(f"duckdb://{path}", table="t")
    setting = "SELECT current_setting('temp_directory')"
    (folder,) = source._backend.con.execute(setting).fetchone()
    assert os.stat(folder).st_mode & 0o077 == 0
    assert not folder.startswith(str(tmp_path))
    del source
    assert not os.path.exists(folder)
    assert os.listdir(tmp_path) == ["t.duckdb"]

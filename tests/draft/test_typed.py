"""Facts as people type them, and back."""

from datetime import date, datetime

import pytest

from understudy.draft.typed import parsed, shown, split
from understudy.errors import SchemaError
from understudy.schema import Category, Column, Date, Integer

WORDS = Category("c", ("a",))
VALUES = ("plain", " padded ", "a, b", 'say "x"', '"', "two\nlines", "")


def test_what_is_shown_is_read_again():
    for lines in (False, True):
        text = shown(VALUES, lines=lines)
        assert parsed(WORDS, "values", "category", text, commas=not lines) == list(VALUES)
    assert shown((1, 2.5, date(2020, 1, 31), datetime(2020, 1, 31, 12))) == (
        "1, 2.5, 2020-01-31, 2020-01-31 12:00:00"
    )
    assert (shown(None), shown(())) == ("", "")


@pytest.mark.parametrize(
    ("column", "key", "kind", "text", "wanted"),
    [
        (WORDS, "values", "category", " discover ", "discover"),
        (WORDS, "values", "category", " \n", None),
        (Category("i", (1, 2)), "values", "category", "1\r\n7", [1, 7]),
        (Category("b", (True, False)), "values", "category", "true\nFALSE", [True, False]),
        (Integer("n", 0, 9), "edges", "integer", "0, 5, 9", [0, 5, 9]),
        (Integer("n", 0, 9), "upper", "integer", " ", None),
        (Date("d", date(2020, 1, 1), date(2020, 2, 1)), "lower", "date", "2020-01-02",
         date(2020, 1, 2)),
        (Integer("n", 0, 9), "special", "integer", 'N, 999, "7"', ["N", 999, "7"]),
        (Integer("n", 0, 9), "bins", "integer", "shape", "shape"),
        (WORDS, "null_values", "category", '?, "a, b"', ["?", "a, b"]),
        (WORDS, "dtype", "category", "string", "string"),
    ],
)  # fmt: skip
def test_a_fact_gets_the_type_of_its_column(column, key, kind, text, wanted):
    assert parsed(column, key, kind, text) == wanted


@pytest.mark.parametrize(
    ("column", "key", "text", "said"),
    [
        (Integer("n", 0, 9), "lower", "x", "column 'n': lower = 'x' must be a whole number"),
        (Integer("n", 0, 9), "bins", "2.5", "bins = '2.5' must be a whole number"),
        (Category("b", (True, False)), "values", "maybe", "must be true or false"),
    ],
)
def test_what_cannot_be_one_is_named(column: Column, key: str, text: str, said: str):
    with pytest.raises(SchemaError, match=said):
        parsed(column, key, column.kind, text)


def test_items_stand_between_commas():
    assert split(' a ,, "b, c",d') == ["a", '"b, c"', "d"]
    assert split('"open') == ['"open']

"""Numbers as people write them: which notation a column has, and reading and writing it."""

import numpy as np
import pyarrow as pa
import pytest

from understudy.columns import Integer, Number
from understudy.columns.forms import form
from understudy.columns.notation import Notation, notation_of
from understudy.errors import SchemaError


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (["$1,234.50", "-$3.00"], "$#,##0.00"),
        (["1.234,50 €", "3,00 €"], "#.##0,00 €"),
        (["1,234", "999", "12,345"], "#,##0"),
        (["12.345", "7", "1.000.000"], "#.##0"),
        (["0,125", "1,250"], "0,000"),
        (["1'234.50", "3.05"], "#'##0.00"),
        (["1 234,5", "3"], "# ##0,0"),
        (["EUR 12.50", "EUR 3.00"], "EUR 0.00"),
        (["45 min", "100 min"], "0 min"),
        (["5 °C", "-3 °C"], "0 °C"),
        (["€10K", "€7K"], "€0K"),
        (["€10K", "€7M"], None),
        (["-46,1234567", "2,3"], "0,0000000"),
        (["R$ 1.234,50", "R$ 3,00"], "R$ #.##0,00"),
        (["Rs. 12.50", "Rs. 3.00"], "Rs. 0.00"),
        (["12,34,567", "1,234", "7"], "#,##,##0"),
        (["₹ 1,00,000.50", "₹ 99,999"], "₹ #,##,##0.00"),
        (["1,234", "12,345"], "#,##0"),  # of both, the usual one
        (["12,34,567", "1,234,567"], None),
        (["−3.5", "2.0"], "0.0"),
        (["−3,5", "2,0"], "0,0"),
        (["12 %", "3%"], "0 %"),
        (["(1)", "7"], "0"),
        (["1.50-", "7.00"], "0.00"),
        (["1.234,50-", "7,00"], "#.##0,00"),
        (["1.5", "7"], None),  # as programs write it
        (["$5", "7", "9"], None),  # most have no sign
        (["900", "1.2k", "3.4k"], None),  # thousands beside ones
        (["2 kg", "3 years"], None),
        (["007 kg", "008 kg"], None),
        (["P-12", "P-3"], None),
        (["#12", "#3"], None),
        (["5.00 €", "1,5 €"], None),
        (["12:30", "13:40"], None),
        ([], None),
    ],
)
def test_one_notation(texts, pattern):
    found = notation_of(texts)
    assert (found and found.pattern) == pattern
    if found is not None:
        assert Notation.of(found.pattern) == found


@pytest.mark.parametrize(
    "pattern",
    [
        "$#,##0.00",
        "#.##0,00 €",
        "0,0 %",
        "0 min",
        "#\u00a0##0",
        "CHF #'##0.000",
        "0,0000000",
        "0",
        "₹ #,##,##0.00",
    ],
)
def test_what_is_written_is_read(pattern):
    notation = Notation.of(pattern)
    assert notation is not None
    rng = np.random.default_rng(1)
    cents = [*rng.integers(-(10**9), 10**9, 300).tolist(), 0, 5, -5, 999, 1000, -1000]
    plain = [f"{c / 10**notation.places:.{notation.places}f}" for c in cents]
    written = notation.written(pa.array([*plain, None]))
    assert notation.plain(written).to_pylist() == [*plain, None]
    assert len(set(written.to_pylist())) == len({*plain, None})


def test_other_texts_are_null_and_accounts_are_below_zero():
    notation = Notation.of("#,##0.00")
    assert notation is not None
    read = notation.plain(pa.array(["(1,234.5)", "x", "1,23", " 7 ", "", None, "- 5", "5-", "−5"]))
    assert read.to_pylist() == ["-1234.5", None, None, "7", None, None, "-5", "-5", "-5"]
    assert notation.plain(pa.nulls(2, pa.string())).null_count == 2


def test_columns_read_and_write_it():
    column = Number("fee", 0, 2000, 4, dtype="string", decimals=2, format="#.##0,00 €")
    codes = column.encode(pa.array(["3,50 €", "1.999,99 €", "9.000 €"]))
    assert codes.tolist() == [0, 3, 3]
    assert all(t.endswith(" €") for t in column.decode(codes, np.random.default_rng(1)).to_pylist())
    fine = Number("x", -9, 9, 4, dtype="string", decimals=7, format="0,0000000")
    assert fine.encode(pa.array(["0,0000000", "-8,1234567"])).tolist() == [2, 0]
    whole = Integer("n", 1, 9, dtype="string", format="0 kg", special=(999,))
    assert whole.decode(whole.encode(pa.array(["4 kg", "999 kg"])), np.random.default_rng(1)) == (
        pa.array(["4 kg", "999 kg"])
    )


@pytest.mark.parametrize("pattern", ["abc", "#,##0,0", "-0", "0#", 7])
def test_a_pattern_that_is_none(pattern):
    with pytest.raises(SchemaError, match="must say how numbers are written"):
        Number("x", 0, 9, 3, decimals=1, format=pattern)


def test_decimals_are_declared_and_engines_know_plain_numbers():
    with pytest.raises(SchemaError, match="needs decimals"):
        Number("x", 0, 9, 3, format="0.0")
    column = Number("x", 0, 9, 3, dtype="string", decimals=1, format="0,0", special=("N",))
    with pytest.raises(SchemaError, match="of type 'number' in the schema and text in the table"):
        form(column, pa.string())

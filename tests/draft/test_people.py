import pyarrow as pa
import pytest

from understudy.draft import confirm, draft, rows_per_unit
from understudy.draft.people import about_rows
from understudy.errors import SchemaError, UnconfirmedError
from understudy.schema import Identifier, Integer, Schema
from understudy.units import Unit

IDS = ["a"] * 7 + ["b", "b ", "c", None]
TABLE = pa.table({"who": IDS, "visit": [f"v{i}" for i in range(11)], "age": list(range(11))})
COLUMNS = (
    Identifier("who", nullable=True),
    Identifier("visit"),
    Integer("age", 0, 9, read_from_rows=("upper",)),
)
ASKED = Schema(COLUMNS, unit_word="?")


def test_what_each_choice_leaves_out():
    (found,) = rows_per_unit(ASKED, TABLE)  # nobody has two visits
    assert (found.column, found.units, found.rows, found.nameless) == ("who", 3, 10, 1)
    assert found.most == 7
    assert found.choices == ((1, 7), (2, 5), (3, 4), (5, 2), (10, 0))
    assert found.whole == (1, 2, 2, 2, 3)
    assert "3 drops 4" in str(found)
    assert "1 rows without a value" in str(found)
    assert "who" not in ASKED.dumps().partition("[[column]]")[0]  # what was counted is not written


def test_a_column_with_one_value_tells_nobody_apart():
    empty = ["?"] * 300
    table = pa.table({"weight": empty, "who": [f"p{i // 2}" for i in range(300)]})
    schema = Schema((Identifier("weight"), Identifier("who")), unit_word="?")
    assert [found.column for found in rows_per_unit(schema, table)] == ["who"]


def test_about_how_many_rows_count():
    (found,) = rows_per_unit(ASKED, TABLE)
    rows = Schema(COLUMNS, unit_word="row")
    assert about_rows(rows, 71_518, [found]) == 72_000
    assert about_rows(rows, None, [found]) is None
    assert about_rows(rows.protecting(Unit("who", 3)), 11, [found]) == 6
    assert about_rows(rows.protecting(Unit.sharing("who", 3)), 11, [found]) == 3


def test_an_open_question_is_refused_with_both_remedies():
    with pytest.raises(
        UnconfirmedError, match=r"'who', 'visit'.*schema review.*max_rows=K.*unit='row'"
    ):
        ASKED.require_confirmed()
    with pytest.raises(UnconfirmedError, match="who is protected"):
        confirm(ASKED).require_confirmed()  # all other facts; this one stays open
    assert Schema.loads(ASKED.dumps()) == ASKED
    assert "WHO IS PROTECTED IS NOT SAID" in ASKED.dumps()


def test_answers():
    per_row = confirm(ASKED, unit="row")
    per_row.require_confirmed()
    assert (per_row.unit, per_row.unit_word) == (None, "row")
    assert 'unit = "row"\n' in per_row.dumps()
    person = confirm(ASKED, unit="who", max_rows=3)
    person.require_confirmed()
    assert person.unit == Unit("who", 3)
    only = confirm(ASKED, (), unit="row")
    assert only.columns[2].read_from_rows == ("upper",)
    for schema in (per_row, person, only):
        assert Schema.loads(schema.dumps()) == schema


def test_a_drafted_answer_waits_like_any_other_fact():
    schema = Schema(COLUMNS, unit_word="row", read_from_rows=("unit",))
    assert Schema.loads(schema.dumps()) == schema
    with pytest.raises(UnconfirmedError, match=r"\[understudy\] \(unit\), 'age' \(upper\)"):
        schema.require_confirmed()
    with pytest.raises(UnconfirmedError, match="unit"):
        confirm(schema, ["age"]).require_confirmed()
    confirm(schema).require_confirmed()


def test_bad_answers():
    with pytest.raises(SchemaError, match="'age' is a column of type 'integer'"):
        confirm(ASKED, unit="age", max_rows=2)
    with pytest.raises(SchemaError, match="needs max_rows"):
        confirm(ASKED, unit="who")
    with pytest.raises(SchemaError, match="says nothing without unit"):
        confirm(ASKED, max_rows=2)
    with pytest.raises(SchemaError, match="unit = 'rows' needs max_rows"):
        Schema.loads(ASKED.dumps().replace('"?"', '"rows"'))
    with pytest.raises(SchemaError, match="read_from_rows"):
        Schema(COLUMNS, read_from_rows=("age",))
    with pytest.raises(SchemaError, match="max_rows"):
        Schema.loads(ASKED.dumps().replace('unit = "?"', "max_rows = 3"))


def test_a_column_may_be_called_row():
    schema = Schema((Identifier("row"), COLUMNS[2]), unit=Unit("row", 2))
    assert Schema.loads(schema.dumps()) == schema


def test_numbers_that_two_rows_share_by_chance_come_last():
    table = pa.table(
        {
            "token": [f"t{i // 2}" if i < 4 else f"t{i}" for i in range(120)],
            "device_id": [f"d{i % 40}" for i in range(120)],
            "patient_id": [f"p{i // 2}" for i in range(120)],
        }
    )
    found = rows_per_unit(draft(table), table)
    assert [each.column for each in found] == ["patient_id", "device_id", "token"]

import pandas as pd
import pyarrow as pa
from pyarrow import csv

from tests.tools.survey import RULED, survey
from understudy.draft import Finding, check
from understudy.schema import (
    Boolean,
    Category,
    Identifier,
    Integer,
    Number,
    Schema,
    Text,
    UndeclaredShape,
)


def findings(column, cells, **facts) -> list[Finding]:
    return check(Schema((column,), **facts), pa.table({"x": pa.array(cells)}))


def test_what_fits_gives_nothing():
    assert findings(Integer("x", 0, 9, nullable=True), [0, 9, None]) == []
    assert findings(Category("x", ("a",)), ["a"]) == []
    assert findings(Category("x", ("a",), True), ["a", "OTHER"]) == []


def test_what_lies_outside_is_counted_with_examples():
    (found,) = findings(Integer("x", 0, 9), [10, 10, -1, 5])
    assert (found.count, found.examples) == (3, ("10 ×2", "-1 ×1"))
    assert str(found) == (
        "column 'x': a value outside the bounds in 3 rows (10 ×2, -1 ×1); "
        "widen the bounds, or it counts as the nearest one"
    )


def test_nulls_where_none_are_allowed():
    (found,) = findings(Integer("x", 0, 9), [None, 1, 2])
    assert (found.problem, found.count, found.examples) == ("null", 1, ())
    assert "nullable = true" in found.remedy
    (found,) = findings(Number("x", 0, 1, 2), [float("nan")])
    assert found.problem == "null"


def test_undeclared_values():
    (found,) = findings(Category("x", ("a", "b")), ["a", "z", "z"])
    assert found.examples == ("'z' ×2",)
    assert "counts as 'a'" in found.remedy
    (found,) = findings(Category("x", ("a", "b"), True), ["z"])
    assert "counts as OTHER" in found.remedy
    (found,) = findings(Category("x", (1, 2), -1), [7])
    assert found.remedy.endswith("it counts as -1")


def test_what_cannot_be_read():
    found = findings(Boolean("x", nullable=True), ["yes", "maybe", "?"], null_values=("?",))
    assert [(f.problem, f.count) for f in found if f.count] == [("no boolean", 1)]


def test_types_are_compared_where_the_source_has_them(tmp_path):
    (found,) = findings(Integer("x", 0, 9, dtype="int8"), [1, 2])
    assert "arrives as 'int64' and is declared as 'int8'" in found.problem
    (tmp_path / "t.csv").write_text("x\n1\n")
    assert check(Schema((Integer("x", 0, 9, dtype="int8"),)), tmp_path / "t.csv") == []


def test_headers():
    schema = Schema((Integer("age", 0, 9), Identifier("id"), Text("note")))
    found = check(schema, pd.DataFrame({"agee": [1], "note": ["x"]}))
    said = [str(f) for f in found]
    assert "'agee': is in the table and not in the schema" in said[0]
    assert "did you mean 'age'" in said[0]
    assert "'age': is in the schema and not in the table" in said[1]
    assert "'id': is in the schema and not in the table" in said[2]
    assert len(said) == 3


def test_a_column_whose_shape_is_to_be_found_has_bounds_all_the_same():
    (found,) = findings(UndeclaredShape("x", "integer", {"lower": 0, "upper": 5000}), [1, 9999])
    assert "outside" in found.problem
    assert found.count == 1


def test_columns_that_rules_compute_may_lack():
    """All rules that do not speak of them are checked as ever."""
    table = survey(100)
    bare = table.drop_columns(["sector", "income", "band"])
    assert check(RULED, bare) == check(RULED, table) == []
    rooms = pa.array([0] * 4 + bare["rooms"].to_pylist()[4:])
    bare = bare.set_column(bare.column_names.index("rooms"), "rooms", rooms)
    bare = bare.set_column(bare.column_names.index("bedrooms"), "bedrooms", [[8] * 100])
    assert "bedrooms <= rooms" in {f.column for f in check(RULED, bare) if f.about == "rule"}


def test_rules_that_rows_break(tmp_path):
    """Counted by what cells are read as, in a typed table and in a file of texts."""
    table = survey(1000)
    assert [f for f in check(RULED, table) if f.about == "rule"] == []
    wrong = {
        "income": [x + 1 for x in table["income"].to_pylist()[:7]],
        "bedrooms": [8] * 5,
        "rooms": [1] * 5,
        "industry": ["00"] * 3,
        "sector": ["H"] * 3,
    }
    for name, first in wrong.items():
        rest = table[name].to_pylist()[len(first) :]
        values = pa.array([*first, *rest], table[name].type)
        table = table.set_column(table.column_names.index(name), name, values)
    csv.write_csv(table, tmp_path / "t.csv")
    for data in (table, tmp_path / "t.csv"):
        told = {f.column: f.count for f in check(RULED, data) if f.about == "rule"}
        assert told["income = wages + other"] == 7
        assert told["bedrooms <= rooms"] == 5
        assert told["industry determines sector"] == 3
    assert "rule 'bedrooms <= rooms': is broken in 5 rows" in "".join(map(str, check(RULED, table)))

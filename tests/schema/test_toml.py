"""Files of schemas: what is wrong is told with its remedy, and edits keep what people wrote."""

import dataclasses
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema_strategies import columns
from tests.thorough import examples
from understudy.columns import KINDS
from understudy.errors import SchemaError, WorkloadError
from understudy.schema import (
    Category,
    Date,
    Datetime,
    Identifier,
    Integer,
    Number,
    Schema,
    Text,
    UndeclaredShape,
)
from understudy.schema.toml import build_column
from understudy.units import Unit

HEAD = "[understudy]\nversion = 1\n"


def load(body: str) -> Schema:
    return Schema.loads(HEAD + body)


def column(**facts) -> str:
    lines = [f"{key} = {value}" for key, value in facts.items()]
    return "\n".join(["[[column]]", 'name = "x"', *lines, ""])


INTEGER = {"type": '"integer"', "lower": 0, "upper": 9}
NUMBER = {"type": '"number"', "lower": 0, "upper": 9, "bins": 3}
CATEGORY = {"type": '"category"', "values": '["a", "b"]'}
DATE = {"type": '"date"', "lower": "2014-01-01", "upper": "2014-02-01"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (column(**INTEGER | {"lower": 90, "upper": 17}), ["lower = 90 lies above upper = 17"]),
        (column(**INTEGER | {"lower": 9}), ["lower = 9 equals upper = 9", "category"]),
        (column(**INTEGER | {"lower": 1.5}), ["lower holds 1.5", 'type = "number"']),
        (column(**INTEGER | {"upper": 2**70}), ["upper holds", "64 bits"]),
        (column(**INTEGER | {"bins": '"shapes"'}), ["bins = 'shapes'", "bins = 32"]),
        (column(**INTEGER | {"bins": '"shape"', "edges": "[0, 9]"}), ["both given"]),
        (column(type='"boolean"', bins='"shape"'), ["unknown key 'bins'"]),
        (column(type='"number"', lower=3, upper=1), ["lower = 3.0 lies above upper = 1.0"]),
        (column(type='"number"', lower='"a"'), ["lower holds 'a'", "finite number"]),
        (column(type='"number"', decimals=-1), ["decimals = -1", "0 to 15"]),
        (column(type='"number"', dtype='"float16"'), ["float16", "too coarse"]),
        (column(type='"date"', lower='"soon"'), ["lower holds 'soon'", "ISO"]),
        (
            column(type='"integer"', edges="[0, 5, 9]", shape="{leaves = [0, 5], weights = [1]}"),
            ["its leaves do not nest"],
        ),
        (column(**INTEGER | {"shape": "{leaves = [0]}"}), ["shape belongs to edges"]),
        (column(**INTEGER | {"bins": 0}), ["bins = 0", "above zero"]),
        (column(**INTEGER | {"bins": -3}), ["bins = -3", "bins = 32"]),
        (column(**INTEGER | {"bins": 11}), ["bins = 11 is more than its 10 values"]),
        (column(**INTEGER | {"bins": 10**6}), ["bins = 1000000 is more than 10000", "bins = 32"]),
        (column(**INTEGER | {"bins": 2, "edges": "[0, 9]"}), ["bins and edges are both given"]),
        (
            column(type='"integer"', edges="[0, 5, 5]"),
            ["edges must increase", "5 is followed by 5"],
        ),
        (column(type='"integer"', edges="[7]"), ["edges = [7]", "at least two"]),
        (column(type='"integer"', edges="7"), ["edges = 7 must be a list"]),
        (column(type='"integer"', edges=list(range(10_002))), ["10002 values", "wider cells"]),
        (
            column(type='"integer"', edges="[0, 5]", upper=9),
            ["upper = 9 differs from the outermost edge 5", "drop upper"],
        ),
        (column(**INTEGER | {"dtype": '"int8"', "upper": 300}), ["dtype = 'int8'", "wider dtype"]),
        (column(**INTEGER | {"dtype": '"bool"'}), ["dtype = 'bool' cannot hold", "int64"]),
        (column(**INTEGER | {"dtype": '"int65"'}), ["'int65' is not the name of an Arrow type"]),
        (column(**NUMBER | {"upper": "inf"}), ["upper holds inf", "finite"]),
        (column(**NUMBER | {"decimals": -1}), ["decimals = -1", "0 to 15"]),
        (column(**NUMBER | {"decimals": 0, "bins": 30}), ["bins = 30", "fewer bins"]),
        (column(**NUMBER | {"decimals": 15, "upper": 1e6}), ["decimals = 15", "fewer decimals"]),
        (column(**NUMBER | {"dtype": '"int64"'}), ["dtype = 'int64'", "float64"]),
        (column(**NUMBER | {"lower": -1e308, "upper": 1e308}), ["too far apart"]),
        (
            column(**NUMBER | {"dtype": '"float16"', "lower": 1000, "upper": 1001, "bins": 9}),
            ["bins = 9", "float16", "fewer bins"],
        ),
        (
            column(**NUMBER | {"dtype": '"decimal128(4, 1)"', "decimals": 2}),
            ["decimal128(4, 1)", "fewer decimals"],
        ),
        (column(type='"category"', values="[]"), ["values is empty", "identifier"]),
        (column(type='"category"'), ["values is missing"]),
        (column(type='"category"', values='"abc"'), ["values = 'abc' must be a list"]),
        (column(**CATEGORY | {"values": '["a", "a"]'}), ["lists 'a' more than once"]),
        (column(**CATEGORY | {"values": '["a", 1]'}), ["holds 1 of another kind"]),
        (column(**CATEGORY | {"values": "[1.0, nan]"}), ["not finite", "nullable = true"]),
        (column(**CATEGORY | {"values": "[1, 300]", "dtype": '"int8"'}), ["'int8'", "int64"]),
        (
            column(**CATEGORY | {"values": "[1, 2]", "other": "true"}),
            ["other = True", "other = -1"],
        ),
        (column(**CATEGORY | {"values": "[true, false]", "other": "true"}), ["drop other"]),
        (column(**CATEGORY | {"other": '"a"'}), ["other = 'a' is one of the values"]),
        (column(**CATEGORY | {"null_values": '["a"]'}), ["'a' is both", "null_values"]),
        (column(**CATEGORY | {"null_values": '"?"'}), ["null_values = '?'", "list of texts"]),
        (column(**CATEGORY | {"nullable": 1}), ["nullable = 1", "true or false"]),
        (column(**CATEGORY | {"ordinal": 1}), ["ordinal = 1", "true or false"]),
        (column(**DATE | {"lower": '"soon"'}), ["lower holds 'soon'", "ISO"]),
        (column(**DATE | {"lower": 7}), ["lower holds 7", "2000-01-31"]),
        (column(**DATE | {"format": '"d"'}), ["format = 'd'", "%d/%m/%Y"]),
        (
            column(**DATE | {"format": '"%Y-%m"', "dtype": '"string"'}),
            ["format = '%Y-%m'", "write every part"],
        ),
        (
            column(**DATE | {"type": '"datetime"', "bins": 3, "resolution": '"secund"'}),
            ["resolution = 'secund'", "did you mean 'second'"],
        ),
        (
            column(**DATE | {"type": '"datetime"', "bins": 3, "dtype": '"timestamp[ns]"'}).replace(
                "2014-01-01", "1014-01-01"
            ),
            ["timestamp[ns]", "narrower bounds"],
        ),
        (column(type='"identifier"', action='"P"'), ["action = 'P'", "P-{:06d}"]),
        (column(type='"identifier"', action='"{0.real}"'), ["action = '{0.real}'", "P-{:06d}"]),
        (column(type='"identifier"', action='"P{}"', dtype='"int64"'), ["'P{}'", 'action = "{}"']),
        (column(type='"identifier"', action="7"), ["action = 7", "drop"]),
        (column(type='"integr"'), ["unknown type 'integr'", "did you mean 'integer'"]),
        (column(), ["type is missing", "category"]),
        (column(**INTEGER | {"binz": 3}), ["unknown key 'binz'", "did you mean 'bins'"]),
        (column(**INTEGER | {"values": "[1]"}), ["unknown key 'values'"]),
        (column(**INTEGER | {"read_from_rows": '["lowr"]'}), ["'lowr'", "did you mean 'lower'"]),
        (column(**INTEGER | {"missing": "7"}), ["missing = 7", "list"]),
    ],
)
def test_a_column_that_is_wrong(body, said):
    with pytest.raises(SchemaError) as caught:
        load(body)
    message = str(caught.value)
    assert "column 'x'" in message
    for part in said:
        assert part in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["version", "[understudy]"]),
        ("a = = 1", ["not a schema file", "line 1"]),
        ("[understudy]\nversion = 3\n", ["version = 3", "newer than 2", "upgrade"]),
        ('[understudy]\nversion = "1"\n', ["version = '1'"]),
        (HEAD, ["no columns", "[[column]]"]),
        (HEAD + "rows = 3\n", ["unknown key 'rows'", "rows_public"]),
        (HEAD + "[column]\nname='x'\n", ["[[column]]", "two brackets"]),
        (HEAD + "[[columns]]\n", ["unknown key 'columns'", "did you mean 'column'"]),
        (HEAD + "[column]\n" * 2, ["line 4", "write [[column]], with two brackets"]),
        (HEAD + "nullable = yes\n", ["line 3 is not TOML", "): nullable = yes"]),
        (HEAD + "[[column]]\n", ["number 1 has no name", 'name = "..."']),
        (HEAD + column(**INTEGER) * 2, ["column 'x' is declared more than once"]),
        (HEAD + "rows_public = 0\n" + column(**INTEGER), ["rows_public = 0", "leave it out"]),
        (HEAD + "null_values = '?'\n" + column(**INTEGER), ["null_values = '?'", "list"]),
        (HEAD + "null_values = ['a']\n" + column(**CATEGORY), ["column 'x'", "'a' is both"]),
    ],
)
def test_a_file_that_is_wrong(text, said):
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text)
    for part in said:
        assert part in str(caught.value)


def test_a_million_values_are_refused_at_once():
    values = tuple(str(i) for i in range(10**6))
    start = time.process_time()
    with pytest.raises(
        SchemaError, match=r"column 'x': values lists 1000000 entries.*other = true"
    ):
        Category("x", values)
    assert time.process_time() - start < 1


def test_a_file_is_named(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(HEAD + column(**INTEGER | {"lower": 90}))
    with pytest.raises(SchemaError, match=r"s\.toml: column 'x': lower = 90"):
        Schema.load(path)
    with pytest.raises(SchemaError, match=r"none\.toml: there is no such file"):
        Schema.load(tmp_path / "none.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match=r"s\.toml: cannot be read"):
        Schema.load(path)
    with pytest.raises(SchemaError, match="cannot be written"):
        Schema((Integer("x", 0, 9),)).save(tmp_path / "no" / "such" / "s.toml")


def test_free_text_is_left_out():
    schema = Schema((Integer("a", 0, 9), Text("note")))
    schema.require_confirmed()
    assert schema.arrow_schema.names == ["a"]


def test_a_schema_without_modelled_columns_is_refused():
    with pytest.raises(SchemaError, match="no column is modelled"):
        Schema((Identifier("id"),)).require_confirmed()


def test_missing_facts_are_refused_until_filled_in():
    body = column(type='"category"', dtype='"string"', missing='["values"]')
    with pytest.raises(SchemaError, match=r"'x' \(values\); fill them in.*understudy schema draft"):
        load(body).require_confirmed()
    filled = load(body + 'values = ["a"]\n')
    filled.require_confirmed()
    assert filled.columns == (Category("x", ("a",)),)


def test_unknown_columns_are_named():
    schema = Schema((Integer("age", 0, 9), Identifier("id")))
    assert schema.position("age") == 0
    with pytest.raises(WorkloadError, match=r"unknown column 'agee' \(did you mean 'age'"):
        schema.position("agee")
    with pytest.raises(WorkloadError, match="unknown column 'zzz'; known are age"):
        schema.position("zzz")
    with pytest.raises(WorkloadError, match="'id' is of type 'identifier' and not modelled"):
        schema.position("id")


def test_headers_are_public():
    schema = Schema((Integer("age", 0, 9),))
    with pytest.raises(SchemaError, match=r"'age' .* 0 times \(did you mean 'Age'"):
        schema.encode(pa.table({"Age": [1]}))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"])
    with pytest.raises(SchemaError, match="2 times"):
        schema.encode(twice)


def test_wrong_codes_are_refused():
    schema = Schema((Integer("a", 0, 9), Integer("b", 0, 9)))
    rng = np.random.default_rng(0)
    with pytest.raises(SchemaError, match="1 arrays of codes for 2 columns"):
        schema.decode([np.zeros(1, int)], rng)
    with pytest.raises(SchemaError, match="differ in length"):
        schema.decode([np.zeros(1, int), np.zeros(2, int)], rng)


def test_names_must_be_texts():
    for name in ("", None, 7):
        with pytest.raises(SchemaError, match="a column's name"):
            Integer(name, 0, 9)


def test_the_same_checks_hold_in_python():
    with pytest.raises(SchemaError, match="column 'x'"):
        Number("x", 3, 2, 4)
    with pytest.raises(SchemaError, match="column 'x'"):
        Date("x", "2014-01-02", "2014-01-02")
    with pytest.raises(SchemaError, match="column 'x'"):
        Datetime("x", "2014-01-02", "2014-01-03")  # 86 401 seconds


ANYTHING = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.dates()
    | st.datetimes()
    | st.sampled_from(["int64", "string", "drop", "second", "%Y", "lower", "category"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
KEYS = st.sampled_from(
    [
        "type",
        "dtype",
        "nullable",
        "null_values",
        "read_from_rows",
        "missing",
        "values",
        "other",
        "ordinal",
        "lower",
        "upper",
        "bins",
        "edges",
        "decimals",
        "format",
        "resolution",
        "action",
    ]
)


@settings(max_examples=examples(60, 400))
@given(
    st.sampled_from(sorted(KINDS)), st.dictionaries(KEYS, ANYTHING, max_size=5), st.integers(2, 99)
)
def test_whatever_a_file_says_the_error_is_ours(kind, facts, upper):
    base = {"name": "x", "type": kind}
    if kind in ("integer", "number"):
        base |= {"lower": 0, "upper": upper, "bins": 2}
    try:
        schema = Schema((build_column(base | facts),))
    except SchemaError as error:
        said = str(error)
    else:
        said = "column 'x'"
        assert Schema.loads(schema.dumps()) == schema
    assert "column 'x'" in said


# --- files that people have written in

FILE = """\
# Our survey of 2024.
#
# THIS IS A DRAFT, AND PRIVATE: facts listed under `read_from_rows` were read from private rows.
# Check each one. Replace what is not public knowledge by what is, then delete the
# `read_from_rows` line of the column. No release accepts the schema before that.

[understudy]  # the head
version = 1

# Who was asked.
[[column]]
name = "age"  # in whole years
type = "integer"
lower = 18   # the form begins here
upper = 0x63
# Read from private rows: confirm or correct, then delete this line.
read_from_rows = ["lower", "upper"]

[[column]]
name = "town"
type = "category"
values = [
    "Bonn",  # since 1990
    "Ulm",
]
read_from_rows = [
    "values",
]  # ask Ann

[[column]]
name = "id"
type = "identifier"
"""


def confirmed(schema: Schema, *names: str) -> Schema:
    cleared = (
        dataclasses.replace(column, read_from_rows=()) if column.name in names else column
        for column in schema.columns
    )
    return dataclasses.replace(schema, columns=tuple(cleared))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    return path


def test_one_mark_is_cleared_and_all_else_stays(path):
    schema = Schema.load(path)
    confirmed(schema, "age").save(path)
    assert path.read_text() == FILE.replace(
        "# Read from private rows: confirm or correct, then delete this line.\n"
        'read_from_rows = ["lower", "upper"]\n',
        "",
    )
    assert Schema.load(path) == confirmed(schema, "age")


def test_with_the_last_mark_the_warning_goes(path):
    schema = Schema.load(path)
    confirmed(schema, "age", "town").save(path)
    text = path.read_text()
    assert Schema.load(path) == confirmed(schema, "age", "town")
    assert "DRAFT" not in text
    assert "read_from_rows" not in text
    kept = ("# Our survey of 2024.", "# the head", "# Who was asked.", "# in whole years", "0x63")
    assert all(comment in text for comment in (*kept, "# since 1990", "# the form begins here"))


def test_facts_are_changed_added_and_taken_away(path):
    schema = Schema.load(path)
    age = Integer("age", 16, 99, 10, read_from_rows=("upper",))
    changed = dataclasses.replace(
        schema, columns=(age, *schema.columns[1:]), unit=Unit("id", 3), rows_public=400
    )
    changed.save(path)
    assert Schema.load(path) == changed
    assert "# the form begins here" in path.read_text()
    dataclasses.replace(changed, unit=None).save(path)
    assert Schema.load(path) == dataclasses.replace(changed, unit=None)
    assert "# Who was asked." in path.read_text()


def test_a_file_of_other_columns_is_written_anew(path):
    other = Schema((Category("town", ("Ulm",)),))
    other.save(path)
    assert path.read_text() == other.dumps()


@pytest.mark.parametrize("text", ["", "no schema", '[understudy]\nversion = 1\n"', "\x00"])
def test_a_file_that_is_no_schema_is_written_anew(path, text):
    path.write_text(text)
    schema = Schema((Category("town", ("Ulm",)),))
    schema.save(path)
    assert path.read_text() == schema.dumps()


def test_what_nobody_has_edited_is_written_in_its_one_form(path):
    schema = Schema.loads(FILE)
    path.write_text(schema.dumps())
    confirmed(schema, "age", "town").save(path)
    assert path.read_text() == confirmed(schema, "age", "town").dumps()


@settings(max_examples=examples(15, 30))
@given(st.lists(columns(), min_size=1, max_size=4, unique_by=lambda column: column.name), st.data())
def test_any_schema_keeps_its_comments(tmp_path_factory, declared, data):
    path = tmp_path_factory.mktemp("edit") / "s.toml"
    marked = Schema(tuple(dataclasses.replace(c, read_from_rows=("type",)) for c in declared))
    names = data.draw(st.sets(st.sampled_from([column.name for column in declared])))
    path.write_text(marked.dumps().replace("[[column]]\n", "[[column]]\n# mine\n"), newline="")
    confirmed(marked, *names).save(path)
    assert Schema.load(path) == confirmed(marked, *names)
    assert path.read_text().count("# mine\n") == len(declared)


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        (column(type='"number"'), {}),
        (column(type='"number"', lower=0, upper=1), {"lower": 0, "upper": 1}),
        (column(type='"number"', decimals=2), {"decimals": 2}),
        (column(**INTEGER | {"upper": 5000}), {"lower": 0, "upper": 5000}),
        (column(type='"integer"', upper=9), {"upper": 9}),
        (column(**INTEGER | {"bins": '"shape"'}), {"lower": 0, "upper": 9}),
        (column(type='"date"'), {}),
        (column(type='"datetime"', resolution='"minute"'), {"resolution": "minute"}),
    ],
)
def test_an_ordered_column_that_is_not_cut_is_found_by_its_shape(body, facts):
    found = Schema.loads(HEAD + body)
    (made,) = found.columns
    assert isinstance(made, UndeclaredShape)
    assert made.facts == facts
    assert 'bins = "shape"' in found.dumps()
    assert Schema.loads(found.dumps()) == found


@pytest.mark.parametrize(("rests", "kept"), [("[0, 4]", (0, 4)), ("[0, 0]", ()), ("[]", ())])
def test_rests_are_written_where_there_are_any(rests, kept):
    facts = f"decades = [0, 10], steps = [6, 3], rests = {rests}, roundness = [1, 2, 3]"
    facts = facts.replace("[6, 3]", "[5, 5]") if kept else facts
    shape = f"{{leaves = [0, 10], weights = [3], {facts}}}"
    made = Schema.loads(HEAD + column(type='"integer"', edges="[0, 9]", shape=shape))
    assert made.columns[0].shape.rests == kept
    assert ("rests" in made.dumps()) == bool(kept)
    assert Schema.loads(made.dumps()) == made


def test_few_values_keep_a_cell_each():
    made = Schema.loads(HEAD + column(**INTEGER) + column(**DATE).replace('"x"', '"y"'))
    assert made.shape == (10, 32)


def test_a_shape_is_written_and_read():
    shape = "{leaves = [0, 5, 6, 10], weights = [3, 0, 4], decades = [0, 1, 10], steps = [5], "
    body = column(type='"integer"', edges="[0, 6, 9]", shape=shape + "roundness = [1, 2, 3, 4]}")
    made = Schema.loads(HEAD + body)
    (one,) = made.columns
    assert one.shape.starts == (0, 2)
    assert one.shape.roundness == (1, 2, 3, 4)
    assert Schema.loads(made.dumps()) == made
    drawn = one.decode(np.arange(2).repeat(50), np.random.default_rng(0)).to_pylist()
    assert one.encode(pa.array(drawn)).tolist() == [0] * 50 + [1] * 50
    assert 5 not in drawn  # its leaf has no weight

"""A file that people have written in keeps what they wrote when facts in it change."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema_strategies import columns
from understudy.schema import Category, Integer, Schema
from understudy.units import Unit

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


@settings(max_examples=30)
@given(
    st.lists(columns(), min_size=1, max_size=4, unique_by=lambda column: column.name),
    st.data(),
)
def test_any_schema_keeps_its_comments(tmp_path_factory, declared, data):
    path = tmp_path_factory.mktemp("edit") / "s.toml"
    marked = Schema(tuple(dataclasses.replace(c, read_from_rows=("type",)) for c in declared))
    names = data.draw(st.sets(st.sampled_from([column.name for column in declared])))
    path.write_text(marked.dumps().replace("[[column]]\n", "[[column]]\n# mine\n"), newline="")
    confirmed(marked, *names).save(path)
    assert Schema.load(path) == confirmed(marked, *names)
    assert path.read_text().count("# mine\n") == len(declared)

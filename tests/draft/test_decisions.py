"""What a draft decides about thirteen raw tables, column by column."""

import pytest
from bench.raw import ROWS, TABLES, rare, write, wrong

from understudy.draft import draft
from understudy.schema import Schema

BY_ROW = {"bank", "laboratory"}


@pytest.fixture(scope="module", params=sorted(TABLES))
def drafted(request, tmp_path_factory):
    """The name of a table, its columns, and the draft of its CSV file."""
    path, made = write(request.param, tmp_path_factory.mktemp("tables"))
    return request.param, made, draft(path)


def test_decisions(drafted):
    _, made, schema = drafted
    pairs = zip(schema.columns, made.items(), strict=True)
    found = {
        name: f"{'; '.join(problems)} (expected {expected})"
        for column, (name, (_, expected)) in pairs
        if (problems := wrong(column, expected))
    }
    assert found == {}


def test_no_value_that_few_rows_hold_is_written_down(drafted):
    _, made, schema = drafted
    assert rare(schema, made) == []


def test_who_is_protected_is_asked_where_somebody_has_several_rows(drafted):
    table, _, schema = drafted
    unit = "row" if table in BY_ROW else "?"
    assert schema.unit_word == unit
    assert schema.read_from_rows == (("unit",) if unit == "row" else ())
    assert str(ROWS) not in schema.dumps()
    assert Schema.loads(schema.dumps()) == schema

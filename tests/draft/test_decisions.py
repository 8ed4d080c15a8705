"""What a draft decides about five nasty tables, column by column."""

import csv
from datetime import date

import numpy as np
import pytest

from tests.draft.tables import ROWS, TABLES, Expected
from understudy.draft import draft
from understudy.schema import Column, Schema
from understudy.schema.toml import column_facts

LEAST = 10
UNITS = {"clinic": "?", "bank": "row", "houses": "?", "survey": "?", "shop": "?"}


@pytest.fixture(scope="module", params=sorted(TABLES))
def drafted(request, tmp_path_factory):
    """The name of a table, its columns, and the draft of its CSV file."""
    made = TABLES[request.param](np.random.default_rng(7))
    path = tmp_path_factory.mktemp("tables") / f"{request.param}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([name or "unnamed" for name in made])
        writer.writerows(zip(*(cells for cells, _ in made.values()), strict=True))
    return request.param, made, draft(path)


def sort_of(column: Column) -> str:
    """The word for what was decided, as `tables` writes it."""
    facts = column_facts(column)
    if "missing" in facts:
        return "incomplete"
    if facts["type"] == "category":
        return "discover" if facts["values"] == "discover" else "list"
    ordered = facts["type"] in ("integer", "number", "date", "datetime")
    cells = (
        facts["type"] == "integer" and {"lower", "upper"} <= facts.keys() and "bins" not in facts
    )
    return "shape" if ordered and not cells else facts["type"]


def wrong(column: Column, expected: Expected) -> list[str]:
    """What is not as it should be."""
    facts = column_facts(column)
    found = [] if expected.sort in ("any", sort_of(column)) else [f"is {sort_of(column)}"]
    for key, value in expected.facts.items():
        got = facts.get(key)
        got = list(got) if isinstance(got, tuple) and key != "read_from_rows" else got
        got = (
            [v.isoformat() if isinstance(v, date) else v for v in got]
            if key == "special" and got
            else got
        )
        if got != value:
            found.append(f"{key} = {got!r}")
    return found


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
    public = {"weekday", "state"}  # whole lists, which everybody knows
    for column, (name, (cells, _)) in zip(schema.columns, made.items(), strict=True):
        facts = column_facts(column)
        listed = facts.get("values", ()) if facts.get("values") != "discover" else ()
        texts = [str(cell) for cell in cells]
        for value in (*listed, *facts.get("special", ())):
            shown = {str(value), str(float(value)) if isinstance(value, int) else ""}
            held = sum(text in shown for text in texts)
            assert held >= LEAST or name in public, (name, value)
        for key in ("lower", "upper"):
            if key in facts["read_from_rows"] and facts["type"] == "integer":
                assert texts.count(str(facts[key])) >= LEAST, (name, key)


def test_who_is_protected_is_asked_where_somebody_has_several_rows(drafted):
    table, _, schema = drafted
    assert schema.unit_word == UNITS[table]
    assert schema.read_from_rows == (("unit",) if UNITS[table] == "row" else ())
    assert str(ROWS) not in schema.dumps()
    assert Schema.loads(schema.dumps()) == schema

"""`understudy schema rules`: list, confirm, drop; what people wrote is kept."""

import pytest

from tests.cli.cli_cases import run
from tests.tools.survey import BARE, INDUSTRIES
from understudy.constraints import Rule
from understudy.schema import Schema

RULES = (
    Rule("income = wages + other", read_from_rows=True),
    Rule("bedrooms <= rooms", read_from_rows=True),
    Rule(
        "industry determines sector", tuple(INDUSTRIES.items()), derived=True, read_from_rows=True
    ),
    Rule("income determines band", cuts=(5000,), values=("low", "high")),
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "s.toml"
    Schema(BARE.columns, rules=RULES).save(path)
    text = path.read_text()
    noted = 'says = "bedrooms <= rooms"\n'
    path.write_text(text.replace(noted, noted + "# Of the building code.\n"))
    return path


def test_listed(path):
    told = run("schema", "rules", path)
    assert told.code == 0
    for part in (
        "income = wages + other",
        "00 → A",
        "and 34 more",
        "high from 5000",
        "3 to confirm",
    ):
        assert part in told.out
    assert Schema.load(path).rules == RULES


def test_dropped_and_confirmed(path):
    told = run(
        "schema", "rules", path, "--drop", "1", "--drop", "income determines band", "--confirm"
    )
    assert told.code == 0
    kept = Schema.load(path)
    assert [rule.says for rule in kept.rules] == ["bedrooms <= rooms", "industry determines sector"]
    assert not any(rule.read_from_rows for rule in kept.rules)
    assert "# Of the building code." in path.read_text()
    assert "DRAFT" not in path.read_text()
    for says in ("bedrooms <= rooms", "industry determines sector"):
        assert run("schema", "rules", path, "--drop", says).code == 0
    assert Schema.load(path) == BARE
    assert "no rules" in run("schema", "rules", path).out


@pytest.mark.parametrize("drop", ["5", "0", "bedrooms < rooms"])
def test_what_is_not_there(path, drop):
    before = path.read_text()
    told = run("schema", "rules", path, "--drop", drop)
    assert told.code == 2
    assert "nothing was dropped" in told.err
    assert path.read_text() == before


def test_all_confirms_rules_too(path):
    assert run("schema", "confirm", path, "--all").code == 0
    assert not any(rule.read_from_rows for rule in Schema.load(path).rules)

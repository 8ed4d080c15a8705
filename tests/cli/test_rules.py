"""Rules of a draft on the command line: kept or dropped by what they say; comments stay."""

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


def test_rules_are_listed_dropped_and_confirmed(path):
    told = run("schema", "review", path, "--list")
    assert all(part in told.out for part in ("income = wages + other", "bedrooms <= rooms"))
    told = run("schema", "review", path, "--drop", "income = wages + other", "--public", "rules")
    assert told.code == 0, told.err
    left = Schema.load(path).rules
    assert {rule.says for rule in left} == {rule.says for rule in RULES[1:]}
    assert not any(rule.read_from_rows for rule in left)
    assert "# Of the building code." in path.read_text()


def test_what_no_rule_says_is_refused(path):
    before = path.read_text()
    told = run("schema", "review", path, "--drop", "bedrooms < rooms")
    assert told.code == 2
    assert "no open decision" in told.err
    assert path.read_text() == before


def test_all_confirms_rules_too(path):
    told = run("schema", "confirm", path, "--all")
    assert all(rule.says in told.out for rule in RULES if rule.read_from_rows), "each by itself"
    assert not any(rule.read_from_rows for rule in Schema.load(path).rules)

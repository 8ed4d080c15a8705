"""Names of columns in rules about families, and whom a rule is about."""

import pytest

from understudy.constraints.rule import Rule
from understudy.errors import SchemaError
from understudy.schema.naming import Names

NAMES = Names("homes", ("id", "area"), "people", ("id", "age", "two words"), "sibling", False)


@pytest.mark.parametrize(
    ("says", "members"),
    [
        ("area > 3", {"parent"}),
        ("homes.area > 3", {"parent"}),
        ("age > 3", {"child"}),
        ("age > sibling.age", {"child", "sibling"}),
        ("sibling.age > 3", {"parent", "child", "sibling"}),
        ("people.count = 1", {"parent", "child"}),
        ("area > 3 implies `people.two words` > age", {"parent", "child"}),
    ],
)
def test_whom_a_rule_is_about(says, members):
    assert NAMES.members(Rule(says)) == members


def test_rules_are_written_for_their_table_and_for_views():
    rule = Rule("`people.two words` > 3 implies age < 5")
    assert NAMES.own(rule).says == "`two words` > 3 implies age < 5"
    assert rule.renamed(NAMES.view).says == "`people.two words` > 3 implies people.age < 5"
    both = Rule("age <= sibling.age")
    assert both.renamed(NAMES.mirrored).says == "sibling.age <= people.age"
    assert NAMES.mirrors(both)
    assert not NAMES.mirrors(Rule("age <= 3"))
    assert not NAMES.mirrors(Rule("area > 3 implies age <= sibling.age"))
    assert NAMES.siblings([both]) == ["age"]


def test_names_that_are_none_or_two():
    with pytest.raises(SchemaError, match=r"homes\.id or people\.id"):
        NAMES.members(Rule("id = 3"))
    with pytest.raises(SchemaError, match=r"unknown column 'sibling\.area'"):
        NAMES.members(Rule("sibling.area = 3"))
    with pytest.raises(SchemaError, match="computed"):
        NAMES.require_kept(Rule("age <= sibling.age"), {"age"})
    with pytest.raises(SchemaError, match="a condition or compares"):
        NAMES.require_kept(Rule("age = area + 3"), set())

"""One rule: its forms, its file, and what is none."""

from fractions import Fraction

import pytest

from understudy.columns.amounts import Linear
from understudy.constraints.rule import Comparison, Condition, Dependency, Formula, Rule, compared
from understudy.errors import SchemaError


@pytest.mark.parametrize(
    ("says", "form"),
    [
        ("age >= 0", Condition(("age >= 0",))),
        ("65 <= age", Condition(("65 <= age",))),
        ("a = -5", Condition(("a = -5",))),
        ("a = 'x'", Condition(("a = 'x'",))),
        ("smoker = true", Condition(("smoker = true",))),
        ("a < 3 implies b", Condition(("a < 3 ", " b"))),
        ("t = a + b - 2.5", Formula("t", Linear((("a", 1), ("b", 1)), Fraction("-2.5")))),
        ("t = -a + 'x'", Condition(("t = -a + 'x'",))),
        ('"t t" = a', Formula("t t", Linear((("a", 1),)))),
        ("a <= b", Comparison(Linear((("a", 1),)), "<=", Linear((("b", 1),)))),
        (
            "x implies a > b + 3",
            Comparison(Linear((("a", 1),)), ">", Linear((("b", 1),), Fraction(3)), "x "),
        ),
        ("a <= b and c", Condition(("a <= b and c",))),
    ],
)
def test_forms(says, form):
    assert Rule(says).form == form


def test_what_computes_a_column():
    assert Rule("t = a + b").target == "t"
    assert Rule("a <= b").target is None
    mapping = (("1", "x"),)
    assert Rule("a determines b", mapping).target is None
    assert Rule("a determines b", mapping, derived=True).target == "b"
    steps = Rule("a determines b", cuts=(3,), values=("x", "y"))
    assert steps.target == "b"
    assert steps.form == Dependency("a", "b")


@pytest.mark.parametrize(
    "rule",
    [
        Rule("t = a + b", read_from_rows=True),
        Rule("a determines b", (("1", "x"),)),
        Rule("a determines b", (("1", "x"),), default="y", derived=True),
        Rule("a determines b", cuts=(3, 7.5), values=("x", "y", "z")),
    ],
)
def test_read_back(rule):
    assert Rule.from_toml(rule.facts()) == rule


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"says": "t = t + 1"}, "itself"),
        ({"says": "a determines b"}, "mapping"),
        ({"says": "a determines b", "cuts": [1], "values": ["x"]}, "2 intervals"),
        ({"says": "a determines b", "cuts": [1], "mapping": {"1": "x"}}, "both"),
        ({"says": "a determines b", "cuts": 3}, "list"),
        ({"says": "a determines b", "mapping": {"1": "x"}, "default": "y"}, "derived = true"),
        ({"says": "a <= b", "derived": True}, "belongs to"),
        ({"says": "a <= b", "derived": "yes"}, "true or false"),
        ({"says": "a <= b", "maping": {}}, "mapping"),
    ],
)
def test_what_is_none(facts, said):
    with pytest.raises(SchemaError, match=said):
        _ = Rule.from_toml(facts).form


def test_a_constant_that_would_take_for_ever():
    assert isinstance(Rule("a <= b + 1e999999999").form, Condition)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("age < 16 implies status = 'never'", [("<", 16)]),
        ("65 <= age and age <= -2.5", [(">=", 65), ("<=", -2.5)]),
        ("-3 < age", [(">", -3)]),
        ("age in (1, -2, 3) or sex = 4", [("=", 1), ("=", -2), ("=", 3)]),
        ("age not between 5 and 10 and income > 7", [(">=", 5), ("<=", 10)]),
        ("not age = 3", [("=", 3)]),
        ("\"age\" >= '2000-01-01'", [(">=", "2000-01-01")]),
        ("age is null", []),
        ("ages < 3 and 'age' = town", []),
        ("age <= income", []),
    ],
)
def test_what_a_column_is_compared_with(text, found):
    assert list(compared(text, "age")) == found

import pytest

from understudy.constraints.cuts import compared


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

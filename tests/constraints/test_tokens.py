"""Words, values and signs, and errors that point at one."""

import pytest

from understudy.constraints.tokens import NAMES, fail, named, tokens
from understudy.errors import WorkloadError


def test_words_values_and_signs():
    found = [(t.kind, t.text) for t in tokens("""a <= "b c" + 1.5e3 and not x = 'it''s'""")]
    assert found == [
        ("word", "a"), ("op", "<="), ("quoted", "b c"), ("mark", "+"), ("number", "1.5e3"),
        ("keyword", "and"), ("keyword", "not"), ("word", "x"), ("op", "="), ("string", "it's"),
        ("end", ""),
    ]  # fmt: skip


def test_names_may_have_dots_between_words():
    found = [(t.text, t.start, t.end) for t in tokens("previous.age <= 1.5")]
    assert found == [("previous.age", 0, 12), ("<=", 13, 15), ("1.5", 16, 19), ("", 19, 19)]
    with pytest.raises(WorkloadError, match="not expected"):
        list(tokens("age. <= 3"))


@pytest.mark.parametrize("name", ["age", "previous.age", "two words", "a.1", "and", "a·b", 'a"b'])
def test_a_name_as_it_is_written_is_that_name(name):
    written = named(name)
    kind, text = next((t.kind, t.text) for t in tokens(written))
    assert (kind in NAMES, text) == (True, name)
    assert (written == name) == (name in ("age", "previous.age"))


def test_an_error_points_at_its_place():
    with pytest.raises(WorkloadError) as caught:
        list(tokens("age ; 3"))
    assert str(caught.value).splitlines()[-1].index("^") == 2 + len("age ")
    with pytest.raises(WorkloadError, match="never closed"):
        list(tokens("a = 'x"))
    with pytest.raises(WorkloadError, match="…"):
        fail("x" * 500, 250, "here")

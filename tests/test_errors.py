"""Every error of understudy: one tree, and messages that somebody can read."""

import pytest

from understudy import errors
from understudy.errors import InputError, UnderstudyError, WorkError, cut, readable


def kinds():
    return [each for each in vars(errors).values() if isinstance(each, type)]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_every_error_is_of_the_tree_and_drawn_in_it(kind):
    assert issubclass(kind, UnderstudyError)
    assert kind.__name__ in (errors.__doc__ or "")
    assert kind.__doc__


def test_wrong_input_and_failed_work_are_what_python_calls_them():
    assert issubclass(InputError, ValueError)
    assert issubclass(WorkError, RuntimeError)


def test_a_long_input_is_echoed_without_its_middle():
    text = "column 'x' = " + "9" * 100_000 + " must be below 10"
    short = str(InputError(text))
    assert len(short) < 200
    assert short.startswith("column 'x' = 999")
    assert short.endswith("must be below 10")
    assert "characters …" in short


@pytest.mark.parametrize("length", [0, 1, 3_999, 4_000, 4_001, 10_000])
def test_a_page_at_most(length):
    text = "ab " * (length // 3) + "x" * (length % 3)
    assert len(text) == length
    assert len(cut(text)) <= 4_000
    assert readable(text) == cut(text)
    assert (cut(text) == text) is (length <= 4_000)


@pytest.mark.parametrize(
    ("extra", "missing", "named"),
    [("learn", "sklearn", "scikit-learn, which is"), ("nets", "optax", "JAX and optax, which are")],
)
def test_a_missing_library_is_refused_with_its_extra(extra, missing, named, monkeypatch):
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == missing else name)
    how = rf"pip install '\.\[{extra}\]', in the folder of the source"
    expected = rf"^x needs {named} not installed: {how}$"
    with pytest.raises(InputError, match=expected):
        errors.require_extra("x", extra)
    errors.require_extra("x", "reference")

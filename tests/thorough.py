"""How much of a test is run: enough of every kind in `make test`, all of it in `make test-all`.

`--thorough` asks for all. Numbers of examples and repetitions are `examples(few, all)`; of cases that
are alike, `some` leaves most to the slow tests.
"""

from collections.abc import Iterable
from typing import Any

import pytest

_asked = False


def ask(thorough: bool) -> None:
    """Said once, before any test file is read."""
    global _asked
    _asked = thorough


def examples(few: int, every: int) -> int:
    """How many examples or repetitions: a few, or with --thorough all."""
    return every if _asked else few


def some(cases: Iterable[Any], each: int = 4, beginning: int = 0) -> list[Any]:
    """All cases; slow but for every `each`-th, counted from `beginning`."""
    return [case if number % each == beginning else slow(case) for number, case in enumerate(cases)]


def slow(case: Any) -> Any:
    """One case that only `make test-all` runs."""
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=(*case.marks, pytest.mark.slow), id=case.id)
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)

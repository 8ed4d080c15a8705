"""Named checks: what a conformance kit yields, and how all of them are run.

A kit is a generator of `Check`s, so a test suite can make one test of each

    @pytest.mark.parametrize("check", method_checks(MyMethod()), ids=str)
    def test_my_method(check):
        check()

or run them in one go with `check_method(MyMethod())`. A broken contract is a `ContractBroken`, an
AssertionError that says what was promised and what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ParamSpec

P = ParamSpec("P")


class ContractBroken(AssertionError):
    """A part does not keep the contract of its kind; the message says which and how."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, and the function that holds a part against it."""

    name: str
    run: Callable[[], None] = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Raise `ContractBroken` if the promise is not kept, for whatever reason."""
        try:
            self.run()
        except AssertionError as broken:
            raise ContractBroken(f"{self.name}: {broken}") from broken
        except Exception as error:
            kind = type(error).__name__
            raise ContractBroken(f"{self.name}: raised {kind}: {error}") from error


def require(kept: bool, message: str) -> None:
    """Raise unless a promise was kept (an `assert` that `python -O` does not remove)."""
    if not kept:
        raise ContractBroken(message)


def all_of(kit: Callable[P, Iterator[Check]]) -> Callable[P, int]:
    """The function that runs every check of a kit, called as the kit is.

    It raises `ContractBroken` at the first that fails, and returns how many there were.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        checks = list(kit(*args, **kwargs))
        for check in checks:
            check()
        return len(checks)

    return run

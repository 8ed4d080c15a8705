"""Named checks: what a conformance kit yields, and how all of them are run.

A kit is a generator of `Check`s, so a test suite can make one test of each

    @pytest.mark.parametrize("check", method_checks(MyMethod()), ids=str)
    def test_my_method(check):
        check()

or run them in one go with `check_method(MyMethod())`. A broken contract is a `ContractBroken`, an
AssertionError that says what was promised and what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

__all__ = ["Check", "ContractBroken", "require", "run_all"]


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


def run_all(checks: Iterable[Check]) -> int:
    """Run every check; raises at the first that fails, returns how many there were."""
    done = 0
    for check in checks:
        check()
        done += 1
    return done

"""What the commands of `python -m bench` share: paths of tables, lists of numbers, progress."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import typer

from understudy.cli import shell
from understudy.errors import InputError

__all__ = [
    "DATA",
    "Adult",
    "AdultDomain",
    "AdultRaw",
    "Loans",
    "LoansDomain",
    "SurveyRows",
    "kept",
    "left_of",
    "listed",
    "missing",
    "split",
]

_Task = TypeVar("_Task")

DATA = "Tables (integers from 0 in a CSV file, and a JSON file of sizes)"

Adult = Annotated[Path | None, typer.Option("--adult", metavar="CSV", rich_help_panel=DATA)]
AdultDomain = Annotated[
    Path | None, typer.Option("--adult-domain", metavar="JSON", rich_help_panel=DATA)
]
AdultRaw = Annotated[
    Path | None,
    typer.Option(
        "--adult-raw", metavar="CSV", help="UCI's Adult with all 15 attributes and a header.",
        rich_help_panel=DATA,
    ),
]  # fmt: skip
Loans = Annotated[Path | None, typer.Option("--loans", metavar="CSV", rich_help_panel=DATA)]
LoansDomain = Annotated[
    Path | None, typer.Option("--loans-domain", metavar="JSON", rich_help_panel=DATA)
]
SurveyRows = Annotated[
    int,
    typer.Option("--rows", metavar="N", min=10, help="Of the survey.", rich_help_panel=DATA),
]


class Kept(Protocol):
    """Results in a file, as far as an interrupted command speaks of them."""

    path: Path

    @property
    def runs(self) -> Sized:
        """What has been run."""
        ...


@contextmanager
def kept(results: Kept) -> Iterator[None]:
    """Whoever is interrupted is told that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(
            f"{results.path} has {len(results.runs):,} of the runs; the same command goes on there."
        )
        raise


def left_of(planned: Sequence[_Task], results: Container[_Task]) -> list[_Task]:
    """What is not done yet, with a remark on what is."""
    left = [task for task in planned if task not in results]
    if len(left) < len(planned):
        shell.note(f"{len(planned) - len(left):,} runs are there already, {len(left):,} are left")
    return left


def missing(name: str) -> None:
    """A remark on a table that was not given, and where to get it."""
    from bench.published.tables import WHERE

    low = name.lower()
    shell.note(f"without {name}: give it with --{low} and --{low}-domain. {WHERE[name]}.")


def split(text: str) -> list[str]:
    """The parts between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def listed(text: str, name: str, kind: Any) -> list[Any]:
    """Numbers with commas between them.

    Raises:
        InputError: One is not a number above 0.
    """
    try:
        found = [kind(part) for part in split(text)]
    except ValueError:
        found = []
    if not found or any(not value > 0 for value in found):
        raise InputError(f"{name} = {text!r} must be numbers above 0 with commas between them")
    return found

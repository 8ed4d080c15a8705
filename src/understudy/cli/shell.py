"""How every command ends: exit codes, errors in words, and Ctrl-C.

Nothing printed here was computed from private rows. The text of an exception that understudy did
not raise on purpose may quote one, so it is shown only where UNDERSTUDY_DEBUG is set.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from types import FrameType
from typing import Any, Protocol, TypeVar, runtime_checkable

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from understudy import progress
from understudy.cli.commands import in_prose
from understudy.errors import (
    BudgetExhausted,
    InputError,
    RelationError,
    UnconfirmedError,
    UnderstudyError,
    readable,
)
from understudy.quoting import debugging, unforeseen

FAILED = 1
WRONG_USE = 2
_INTERRUPTED = 130
_TERMINATED = 143
_BROKEN_PIPE = 141
_PLAIN_WIDTH = 10_000
"""Pipes and files get whole lines."""

R = TypeVar("R")


def one_thread() -> None:
    """For commands without much linear algebra: NumPy's threads, one a core, wait for each other.

    To be called before NumPy is imported; what the environment says of threads stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@runtime_checkable
class Misuse(Protocol):
    """A command line that does not parse; Typer brings its own Click, under a private name."""

    def format_message(self) -> str:
        """What is wrong with it."""
        ...


class Terminated(KeyboardInterrupt):
    """SIGTERM; ends like Ctrl-C."""


# Consoles are made when they are used, so that they follow a redirected stdout or stderr.


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def out() -> Console:
    """Results."""
    return _console(stderr=False)


def say(*parts: str | tuple[str, str]) -> None:
    """A line of results, whole wherever it goes; a part is a text, or a text and its style."""
    out().print(Text.assemble(*parts), soft_wrap=True)


def paragraph(*parts: str | tuple[str, str], indent: int = 0) -> None:
    """The same for prose: at a terminal, broken between words and indented as a whole."""
    console, text = out(), Text.assemble(*parts)
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent) + text, soft_wrap=True)


def entry(mark: str, *parts: str | tuple[str, str], indent: int) -> None:
    """A line of a list behind its mark; at a terminal, broken between words behind the mark."""
    console, text = out(), Text.assemble(*parts)
    if console.is_terminal:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_row(mark, text)
        console.print(Padding(grid, (0, 0, 0, indent)))
    else:
        console.print(Text.assemble(f"{' ' * indent}{mark}  ", text), soft_wrap=True)


def err() -> Console:
    """Everything else. Pipes and files get plain text, whole lines and no colour."""
    return _console(stderr=True)


def note(text: str | Text) -> None:
    """A remark on stderr."""
    _paragraph(Text(in_prose(text), style="dim") if isinstance(text, str) else text)


def complain(text: str, *more: str) -> None:
    """An error on stderr, with remarks below it."""
    _paragraph(Text.assemble(("error: ", "bold red"), in_prose(readable(text))))
    for line in more:
        _paragraph(Text(in_prose(line)), indent=7)


def _paragraph(text: Text, indent: int = 0) -> None:
    console = err()
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent) + text, soft_wrap=True)


def guarded(command: Callable[..., R]) -> Callable[..., R]:
    """A command whose errors become a message and an exit code, for calls by keyword.

    A parameter that is a dataclass stands for its fields: each of them is an option.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}
    shown: list[inspect.Parameter] = []
    for parameter in own:
        group = groups.get(parameter.name)
        fields = inspect.signature(group, eval_str=True).parameters.values() if group else ()
        shown += fields or [parameter]

    @functools.wraps(command)
    def run(**given: Any) -> R:
        try:
            for name, group in groups.items():
                known = [field.name for field in fields_of(group) if field.name in given]
                given[name] = group(**{field: given.pop(field) for field in known})
            with _calm():
                return command(**given)
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            if isinstance(error, SystemExit | Misuse):
                raise  # the parser's own way to leave
            raise typer.Exit(explain(error)) from None

    shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]
    run.__doc__ = _flowing(command.__doc__ or "")
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _flowing(text: str) -> str:
    """A docstring whose paragraphs are one line each, so that a terminal of any width wraps them."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(p if p.startswith("\b") else p.replace("\n", " ") for p in paragraphs)


@contextmanager
def _calm() -> Iterator[None]:
    """No chatter from libraries: what they warn of may depend on private rows."""
    if debugging():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def explain(error: BaseException) -> int:
    """Say what went wrong; the exit code for it."""
    more = tuple(getattr(error, "__notes__", ()))
    if _is_broken_pipe(error):
        _quiet_stdout()
        return _BROKEN_PIPE
    if debugging():
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        words, *commands = (" ".join(more) or "Nothing was left behind.").split("\n")
        if err().is_terminal:
            err().print()  # below what was typed
        _paragraph(Text.assemble(("interrupted. ", "bold yellow"), words))
        for line in commands:
            err().print(line, soft_wrap=True)
        return _TERMINATED if isinstance(error, Terminated) else _INTERRUPTED
    if isinstance(error, UnderstudyError):
        if isinstance(error, UnconfirmedError):
            more = more or ("`understudy schema review` on this schema asks about them.",)
        complain(str(error), *more)
        wrong_use = isinstance(error, (InputError, BudgetExhausted, RelationError))
        return WRONG_USE if wrong_use else FAILED
    if isinstance(error, MemoryError):
        complain("the memory is full; see `understudy plan` for what a release needs", *more)
        return FAILED
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror}", *more)
        return FAILED
    complain(unforeseen(error), *more)
    return FAILED


def _is_broken_pipe(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _quiet_stdout() -> None:
    """Nobody reads any more; keep the interpreter from complaining when it flushes."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


# Signals


@contextmanager
def interrupts() -> Iterator[None]:
    """The first Ctrl-C or SIGTERM stops the work; later ones let it clean up in peace."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in kept:
            signal.signal(each, signal.SIG_IGN)
        progress.stop(Terminated if number == signal.SIGTERM else KeyboardInterrupt)

    kept: dict[int, Any] = {}
    for each in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(each) is not signal.SIG_IGN:
            try:
                kept[each] = signal.signal(each, stop)
            except ValueError:  # not in the main thread: somebody else's business
                break
    try:
        yield
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)
        progress.forget()

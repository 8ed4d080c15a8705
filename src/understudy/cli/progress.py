"""Progress on stderr: a bar against an estimate on a terminal, plain lines elsewhere.

What is shown are stages, rounds and times of a public plan; nothing here knows a private row.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.progress import Progress as Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from understudy.cli import shell, words
from understudy.progress import COUNTING, Progress

__all__ = ["Rows", "Runs", "Stages"]

_PATIENCE = 10.0
"""Seconds between two plain lines of one stage."""
_MANY = 100_000
"""Rows from which on writing may take longer than two seconds."""


class _Clock(ProgressColumn):
    """Time passed, against an estimate where there is one."""

    def render(self, task: Task) -> Text:
        passed = f"{task.elapsed or 0:.0f} s"
        about = task.fields.get("about")
        if not about:
            return Text(passed, style="dim")
        late = (task.elapsed or 0) > about
        said = "more than expected" if late else f"of about {words.duration(about)}"
        return Text(f"{passed}{',' if late else ''} {said}", style="dim", no_wrap=True)


class _TimeBar(ProgressColumn):
    """How much of the estimated time has passed; never quite full before the end."""

    def render(self, task: Task) -> ProgressBar | Text:
        about = task.fields.get("about")
        if not about:
            return Text("")
        return ProgressBar(total=about, completed=min(task.elapsed or 0, 0.98 * about), width=30)


class Stages:
    """The stages of a release on a terminal; `stages(progress)` is a `Watch`."""

    def __init__(self) -> None:
        self._console = shell.err()
        self._now: Progress | None = None
        self._last = 0.0
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                _TimeBar(),
                _Clock(),
                console=self._console,
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._live.add_task("", total=None, about=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            if kind is None:
                self._tick()

    def expect(self, seconds: float, line: str) -> None:
        """The check is over: what comes, and about how long the whole of it takes."""
        self._tick()
        self._now = None
        self._say(line)
        if self._live is not None:
            self._live.reset(self._live.task_ids[0], total=None, about=seconds)
            self._show("", new=False)

    def __call__(self, progress: Progress) -> None:
        """Called by the work."""
        done, total = progress.done, progress.total
        if progress.stage == COUNTING:
            doing = "" if self._now is None else self._now.words
            self._show(f"{doing}: counted {100 * done // total} % of the table", new=False)
            return
        new = self._now is None or progress.stage != self._now.stage
        if new:
            self._tick()
        self._now = progress
        step = f": round {min(done + 1, total)} of {total}" if total > 1 else ""
        self._show(progress.words + step, new=new)

    def _tick(self) -> None:
        if self._live is not None and self._now is not None:
            self._live.console.print(Text.assemble(("✓ ", "green"), self._now.words))

    def _show(self, line: str, *, new: bool) -> None:
        """On a terminal at once; elsewhere where it is new, or nothing was said for a while."""
        if self._live is not None:
            self._live.update(self._live.task_ids[0], description=line)
        elif line and (new or time.monotonic() - self._last > _PATIENCE):
            self._say(line)

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        console = self._live.console if self._live is not None else self._console
        console.print(line, soft_wrap=True)


class Rows:
    """Rows written so far; nothing is shown where there are few."""

    def __init__(self, total: int) -> None:
        self._console = shell.err()
        self._total = total
        self._done = 0
        self._start = self._last = time.monotonic()
        self._live: Live | None = None
        if total > _MANY and self._console.is_terminal:
            self._live = _rows_bar(self._console)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._live.add_task("writing rows", total=self._total)
        elif self._total > _MANY:
            self._console.print(f"writing {self._total:,} rows")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, rows: int) -> None:
        """That many more rows are written."""
        self._done += rows
        now = time.monotonic()
        if self._live is not None:
            self._live.update(self._live.task_ids[0], completed=self._done)
        elif now - self._last > _PATIENCE and self._done < self._total:
            self._last = now
            left = (now - self._start) * (self._total - self._done) / self._done
            self._console.print(
                f"wrote {self._done:,} of {self._total:,} rows, about {words.duration(left)} left"
            )


def _rows_bar(console: shell.Console) -> Live:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Live(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


class Runs:
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int) -> None:
        self._total, self._last = total, 0.0
        self._console = shell.err()
        self._live: Live | None = None
        if self._console.is_terminal and total:
            after = TextColumn("{task.fields[left]}  {task.description}", markup=False)
            columns = BarColumn(bar_width=20), MofNCompleteColumn(), after
            self._live = Live(*columns, console=self._console, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._live.add_task("", total=self._total, left="")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, done: int, what: str, seconds: float) -> None:
        """`done` are done, `what` comes next, and all that is left takes about `seconds`."""
        left = f"about {words.duration(seconds)} left"
        if self._live is not None:
            self._live.update(self._live.task_ids[0], completed=done, description=what, left=left)
        elif time.monotonic() - self._last > 10:
            self._last = time.monotonic()
            self._console.print(f"{done} of {self._total} runs, {left}: {what}", soft_wrap=True)

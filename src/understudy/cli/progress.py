"""Progress on stderr: a bar against an estimate on a terminal, plain lines elsewhere.

What is shown are stages, rounds and times of a public plan; nothing here knows a private row.
"""

from __future__ import annotations

import time
from typing import Any, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from understudy import wording
from understudy.cli import shell
from understudy.progress import Progress, heed

_PATIENCE = 10.0  # Seconds between two plain lines of one stage
_MANY = 100_000  # Rows from which on writing may take longer than two seconds


class _Clock(ProgressColumn):
    """Time passed; and CPU time, against an estimate of that where there is one."""

    def render(self, task: Task) -> Text:
        said, about = f"{task.elapsed or 0:.0f} s", task.fields.get("about")
        if about:
            used = _used(task)
            than = " of about" if used <= about else ", forecast"
            said += f"; CPU time {used:.0f} s{than} {wording.duration(about)}"
        return Text(said, style="dim", no_wrap=True)


class _TimeBar(ProgressColumn):
    """How much of the estimated CPU time is used; never quite full before the end."""

    def render(self, task: Task) -> ProgressBar | Text:
        about = task.fields.get("about")
        if not about:
            return Text("")
        return ProgressBar(total=about, completed=min(_used(task), 0.98 * about), width=30)


def _used(task: Task) -> float:
    """CPU seconds since the work began."""
    return time.process_time() - task.fields["began"]


class _Line:
    """One line: on a terminal it changes, elsewhere it is printed now and then."""

    def __init__(self, *columns: ProgressColumn) -> None:
        self._console = shell.err()
        self._last, self._used = 0.0, time.process_time()
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(*columns, console=self._console, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._live.add_task(
                "", total=None, visible=False, about=None, left="", began=self._used
            )
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _show(self, line: str, *, at_once: bool = False, **changes: Any) -> None:
        """`changes` are of the bar; without one, `line` at once or if nothing was said for a while.

        A step, so work that a signal has stopped ends here.
        """
        heed()
        if self._live is not None:
            self._live.update(self._live.task_ids[0], visible=True, **changes)
        elif line and (at_once or time.monotonic() - self._last > _PATIENCE):
            self._say(line)

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        self._console.print(line, soft_wrap=not self._console.is_terminal)


class Stages(_Line):
    """The stages of a release on a terminal; `stages(progress)` is a `Watch`."""

    def __init__(self) -> None:
        text = TextColumn("{task.description}", markup=False)
        super().__init__(SpinnerColumn(), text, _TimeBar(), _Clock())
        self._now: Progress | None = None
        self._start = time.monotonic()
        self._about: float | None = None
        self._told = False

    def __exit__(self, *exc: object) -> None:
        super().__exit__()
        if exc[0] is None:
            self._tick()
            self._late("it took")

    def expect(self, seconds: float | None, line: str) -> None:
        """The check is over: what comes, and about how long it takes, where that is known by now."""
        self._tick()
        self._now, self._about = None, seconds
        self._say(line)
        if self._live is not None:
            self._live.reset(self._live.task_ids[0], total=None)
            self._show("", description="", about=seconds)

    def __call__(self, progress: Progress) -> None:
        """Called by the work."""
        if progress.part:
            doing = "" if self._now is None else self._now.words
            line = f"{doing}: {progress.part}"
            self._show(line, description=line)
            return
        if progress.seconds:
            self._about = progress.seconds
            self._show(
                f"about {wording.duration(progress.seconds)} of CPU time in all, by the number of rows "
                f"measured",
                at_once=True,
                about=progress.seconds,
            )
            return
        new = self._now is None or progress.stage != self._now.stage
        if new:
            self._tick()
            if self._live is None and not self._told:  # where there is one, its clock says so
                self._late("so far")
        self._now = progress
        line = ": ".join(filter(None, (progress.words, progress.step)))
        self._show(line, at_once=new, description=line)

    def _late(self, verb: str) -> None:
        """Say that it takes longer than forecast, in CPU time as well, of which the forecast is."""
        passed, used = time.monotonic() - self._start, time.process_time() - self._used
        if self._about is None or passed <= self._about:
            return
        self._told = True
        self._say(
            f"{verb} {wording.duration(passed)}, with {wording.duration(used)} of CPU time; the "
            f"forecast was {wording.duration(self._about)} of CPU time"
        )

    def _tick(self) -> None:
        if self._live is not None and self._now is not None:
            self._console.print(Text.assemble(("✓ ", "green"), self._now.words))


class Rows(_Line):
    """Rows written so far; nothing is shown where there are few, unless each is slow to make."""

    def __init__(self, total: int, *, slow: bool = False) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._total, self._done = total, 0
        self._shown = slow or total > _MANY
        if not self._shown:
            self._live = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._start = self._last = time.monotonic()
        if self._shown:
            line = f"writing {self._total:,} rows"
            self._show(line, at_once=True, description="writing rows", total=self._total)
        return self

    def add(self, rows: int) -> None:
        """That many more rows are written."""
        self._done += rows
        if self._done < self._total or self._live is not None:
            left = (time.monotonic() - self._start) * (self._total / max(1, self._done) - 1)
            self._show(
                f"wrote {self._done:,} of {self._total:,} rows, about {wording.duration(left)} left",
                completed=self._done,
            )


class Runs(_Line):
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int = 0) -> None:
        after = TextColumn("{task.fields[left]}  {task.description}", markup=False)
        super().__init__(BarColumn(bar_width=20), MofNCompleteColumn(), after)
        self._total, self._start = total, time.monotonic()
        self._kept: int | None = None

    def show(self, done: int, what: str, seconds: float) -> None:
        """`done` are done, `what` comes next, and all that is left takes about `seconds`."""
        left = f"about {wording.duration(seconds)} left"
        self._show(
            f"{done} of {self._total} runs, {left}: {what}",
            completed=done,
            description=what,
            left=left,
            total=self._total,
        )

    def count(self, done: int, total: int) -> None:
        """The same for runs that take about as long each; those of the first call are kept ones."""
        self._total = total
        if self._kept is None:
            self._kept = done
        elif done > self._kept:
            each = (time.monotonic() - self._start) / (done - self._kept)
            self.show(done, "shadow runs", each * (total - done))

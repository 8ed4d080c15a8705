"""How far a piece of work is, and where it stops: what the library says, and the shells show.

Stages, steps and times follow from the public plan and from released numbers; no private row is known
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

STAGES = {
    "checking": "checking the input and planning",
    "reading": "reading the table",
    "finding domains": "finding what the schema leaves open",
    "playing": "measuring and fitting",
    "sampling": "making synthetic rows",
    "certifying": "certifying the worst error",
    "reporting": "writing the report",
    "saving": "writing the release",
}
"""What a release does, in order, in words."""

COUNTING, FITTING = "counting", "fitting"
"""No stages of their own but parts of any."""
_PARTS = {COUNTING: "counted {} % of the table", FITTING: "pass {} of the fit"}
_STEPS = {"playing": "round", "shadow releases": "run"}


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` steps of a stage; `note` says how it goes. Released facts only.

    `seconds` is about how long the whole release takes, said once its number of rows is measured.
    """

    stage: str
    done: int
    total: int
    note: str = ""
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """The stage as people read it, and the note."""
        name = STAGES.get(self.stage, self.stage)
        return f"{name}, {self.note}" if self.note else name

    @property
    def part(self) -> str:
        """What is done within the stage that was said last; nothing of a stage."""
        return _PARTS.get(self.stage, "").format(self.done)

    @property
    def step(self) -> str:
        """Which step of how many; nothing where there is one."""
        if self.total <= 1:
            return ""
        name = _STEPS.get(self.stage, "step")
        if self.done >= self.total:
            return f"all {self.total} {name}s done"
        return f"{name} {self.done + 1} of {self.total}"


Watch = Callable[[Progress], None]
"""Whoever is told how far the work is."""


def passes(watch: Watch) -> Callable[[], None]:
    """To be called at every pass of a fit: tells which it is."""
    number = count(1)
    return lambda: watch(Progress(FITTING, next(number), 0))


def silent(progress: Progress) -> None:
    """Say nothing."""


_STOPPED: list[type[KeyboardInterrupt]] = []
"""How a signal has stopped the work of this process."""


_UNDISTURBED: list[None] = []
"""One for every piece of work that is under way and is finished first."""


def stop(how: type[KeyboardInterrupt]) -> None:
    """Stop the work here, for handlers of signals, and at its next step (`heed`) if that is in vain.

    Python ignores what is raised in a finalizer, or in a callback from C.
    """
    _STOPPED[:] = [how]
    if not _UNDISTURBED:
        raise how


def heed() -> None:
    """Raise again how the work was stopped, if it was; for whoever watches it, at every step."""
    for how in _STOPPED:
        raise how


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is begun in here is finished before the work stops."""
    _UNDISTURBED.append(None)
    try:
        yield
    finally:
        _UNDISTURBED.pop()
    if not _UNDISTURBED:
        heed()


def forget() -> None:
    """The work has stopped."""
    _STOPPED.clear()

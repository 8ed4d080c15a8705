"""How far a piece of work is: what the library says, and the command line and the web app show.

Stages, steps and times follow from the public plan and from released numbers; no private row is known
here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["COUNTING", "STAGES", "Progress", "Watch", "silent"]

STAGES = {
    "checking": "checking the input and planning",
    "reading": "reading the table",
    "finding domains": "finding what the schema leaves open",
    "playing": "measuring and fitting",
    "sampling": "making synthetic rows",
    "certifying": "certifying the worst error",
    "saving": "writing the release",
    "reporting": "writing the report",
}
"""What a release does, in order, in words."""

COUNTING = "counting"
"""No stage of its own but a part of any: how many percent of the rows an engine has counted."""


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


Watch = Callable[[Progress], None]
"""Whoever is told how far the work is."""


def silent(progress: Progress) -> None:
    """Say nothing."""

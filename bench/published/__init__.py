"""Published experiments, run again: tables that anyone may see, true errors beside certificates.

Errors here are exact and therefore not private. This room is for public benchmark tables and generated
ones, never for the table that a release is to protect.
"""

from bench.published.game import (
    LeftOut,
    Panel,
    Results,
    Task,
    answered,
    figure_one,
    figure_two,
    run,
    tasks,
)
from bench.published.tables import Bench, adult_of_15, generated, load

__all__ = [
    "Bench", "LeftOut", "Panel", "Results", "Task", "adult_of_15", "answered", "figure_one",
    "figure_two", "generated", "load", "run", "tasks",
]  # fmt: skip

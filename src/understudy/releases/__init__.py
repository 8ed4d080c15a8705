"""Releases: made (`run.release`), certified, sampled, asked, saved and verified."""

from typing import TYPE_CHECKING

from understudy._lazy import lazily

if TYPE_CHECKING:
    from understudy.releases.answer import Answer
    from understudy.releases.certificate import Certificate
    from understudy.releases.options import Options
    from understudy.releases.plan import Prepared, epsilon_for, prepare
    from understudy.releases.release import Release
    from understudy.releases.run import Reserved, reserve

__all__ = [
    "Answer",
    "Certificate",
    "Options",
    "Prepared",
    "Release",
    "Reserved",
    "epsilon_for",
    "prepare",
    "reserve",
]

__getattr__ = lazily(
    __name__,
    {
        "Answer": "answer",
        "Certificate": "certificate",
        "Options": "options",
        "Prepared": "plan",
        "Release": "release",
        "Reserved": "run",
        "epsilon_for": "plan",
        "prepare": "plan",
        "reserve": "run",
    },
)

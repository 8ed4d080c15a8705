"""Releases: made, certified, sampled, asked, saved and verified."""

from understudy.releases.answer import Answer
from understudy.releases.certificate import Certificate
from understudy.releases.options import Options
from understudy.releases.plan import Prepared, epsilon_for, prepare
from understudy.releases.release import Release
from understudy.releases.run import Reserved, release, reserve

__all__ = [
    "Answer",
    "Certificate",
    "Options",
    "Prepared",
    "Release",
    "Reserved",
    "epsilon_for",
    "prepare",
    "release",
    "reserve",
]

"""Releases: made, certified, sampled, asked, saved and verified."""

from understudy.releases.answer import Answer
from understudy.releases.certificate import Certificate
from understudy.releases.make import Prepared, epsilon_for, prepare, release
from understudy.releases.release import Release

__all__ = ["Answer", "Certificate", "Prepared", "Release", "epsilon_for", "prepare", "release"]

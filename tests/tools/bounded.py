"""Either verifier as a function of a folder; as a program, with limits on its memory and time."""

from __future__ import annotations

import inspect
import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tools import verify_release
from understudy.errors import BundleError
from understudy.releases import verify as releases_verify

_verify = inspect.unwrap(releases_verify.verify)  # tests put a watched one in its place
MEMORY = 500 * 2**20
SECONDS = 1
"""Of processor time, once everything is imported."""
LONGEST = 100
"""On the clock, of a busy machine: a verifier that waits for something uses no processor time."""


def ours(folder: Path) -> list[str]:
    """Why `understudy verify` refuses; [] if it does not."""
    try:
        found = _verify(folder)
    except BundleError as error:
        return [str(error)]
    return [f"{check.name}: {check.detail}" for check in found.checks if not check.passed]


def theirs(folder: Path) -> list[str]:
    """Why `tools/verify_release.py` refuses; [] if it does not."""
    return verify_release.verify(folder)


def theirs_at_once(folder: Path) -> list[str]:
    """The same, but only the first reason: no check is carried out after one that fails."""
    try:
        bundle = verify_release.Bundle(folder)
        for check in verify_release.CHECKS:
            for problem in check(bundle):
                return [problem]
    except Exception as error:  # noqa: BLE001 - what cannot be checked is refused
        return [repr(error)]
    return []


def main(which: str, folder: str, count: str) -> None:
    """A line of JSON for every folder 1, 2, …: the reasons, and the seconds it took.

    Folder 0 is a good one, of which nothing is said: it is read so that everything is imported.
    """
    verifier: Callable[[Path], list[str]] = {"ours": ours, "theirs": theirs}[which]
    verifier(Path(folder) / "0")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)

    def late(*_: object) -> None:
        raise TimeoutError("Late")

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGPROF, late)
    for i in range(1, int(count) + 1):
        began = time.process_time()
        signal.alarm(LONGEST)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            reasons = verifier(Path(folder) / str(i))
        except TimeoutError as error:
            reasons = [f"a raw {error!r}"]
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([reasons, time.process_time() - began]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A call in a process of its own: what the kernel keeps it to."""

import asyncio
import os
import resource
import signal

import pytest

from tests.web import hostile
from understudy.errors import BundleError
from understudy.web import confined
from understudy.web.confined import Limits, Stopped, run_confined

GIGABYTE = 10**9


def call(limits, work, *arguments):
    return asyncio.run(run_confined(limits, work, *arguments))


def test_what_it_returns_and_what_it_raises_come_back():
    assert call(Limits(GIGABYTE, 60), sorted, [2, 1]) == [1, 2]
    with pytest.raises(BundleError, match="no release"):
        call(Limits(GIGABYTE, 60), hostile.refuses)


def test_every_process_has_its_limits_and_is_another():
    (pid, space, core, kinder), again = (call(Limits(GIGABYTE, 60), hostile.facts) for _ in "ab")
    assert GIGABYTE < space < 8 * GIGABYTE
    assert space != resource.RLIM_INFINITY
    assert core == 0
    assert kinder == os.nice(0) + 5
    assert pid not in (os.getpid(), again[0])


def test_one_that_dies_or_takes_too_long_is_told_apart_from_an_answer():
    with pytest.raises(Stopped):
        call(Limits(GIGABYTE, 60), os._exit, 3)
    with pytest.raises(Stopped):
        call(Limits(GIGABYTE, 1), hostile.burns, "", 1, "")
    with pytest.raises(Stopped):
        call(Limits(GIGABYTE, 60), hostile.greedy, "", 1, "")


def test_an_answer_is_never_more_than_data():
    """Somebody who has taken the reader over may send a pickle, or gigabytes."""
    for sent in (b"\x80\x04N.", b"not JSON", b'{"error": "SystemExit", "message": "1"}'):
        with pytest.raises(Stopped):
            call(Limits(GIGABYTE, 60), hostile.answers, sent)


def test_the_kernel_ends_it_where_nobody_else_does():
    """Its interpreter is held, so that it cannot notice that the server is gone."""
    _, there = confined._FORK.Pipe(duplex=False)
    limits = Limits(GIGABYTE, 1 - confined._SLACK)  # the alarm rings after a second
    process = confined._FORK.Process(
        target=confined._answer, args=(there, limits, hostile.burns, ("", 1, ""))
    )
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGALRM

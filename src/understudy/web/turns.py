"""Who is served next: a few at a time, and nobody waits for all that another person sent."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from understudy.errors import WorkError

__all__ = ["Busy", "Turns"]


class Busy(WorkError):
    """Too much is waiting already; nothing was begun."""


class Turns:
    """At most `at_once` turns at a time. People take turns; one person's wait in their order.

    So a person with one file waits for at most one file of every other person, however many each of
    them sent. At most `waiting` of one person wait; more are refused.
    """

    def __init__(self, at_once: int, waiting: int = 64) -> None:
        self._free = at_once
        self._most = waiting
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as this lasts.

        Raises:
            Busy: `who` has too much waiting already.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(who)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, who: str) -> None:
        queue = self._queues.setdefault(who, deque())
        if len(queue) >= self._most:
            raise Busy(f"{len(queue)} of your files are waiting to be read; send this one later")
        called = asyncio.get_running_loop().create_future()
        queue.append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._next()  # called and gone at the same moment
            raise

    def _next(self) -> None:
        """Call the first of whoever was served longest ago; those who went away are passed over."""
        while self._queues:
            who, queue = self._queues.popitem(last=False)
            called = queue.popleft()
            if queue:
                self._queues[who] = queue
            if not called.done():
                called.set_result(None)
                return
        self._free += 1

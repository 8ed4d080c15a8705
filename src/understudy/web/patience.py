"""How long the server waits for a client that is slow, or means to be.

A request is whole when its headers and its body have arrived. Until then its connection takes a place
and nothing has been asked, so the time is limited, as Apache's RequestReadTimeout limits it:

    headers   `headers` seconds, from the first moment of the connection or of the next request
    body      `body` seconds, and one more for every `rate` bytes that have arrived
    refused   where the answer is given before the body is read (too large, not logged in), `linger`
              seconds in which the rest is read and thrown away, so that the client sees the answer
    answer    like a body: `body` seconds to take what was sent, and one more for every `rate` bytes

Time in which the server itself does not read counts for nobody. Beyond `most` connections one is cut
off, so that there is a place for others: one that is kept open between requests, or else with a request
that is not whole; of these one of a stranger before one of somebody who is logged in, and the one that
has waited longest. So whoever comes has a moment to send a request, however many others trickle theirs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds, bytes in a second, and connections."""

    headers: float = 20.0
    body: float = 30.0
    rate: float = 1_000.0
    linger: float = 5.0
    most: int = 500


class PatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, to clients that send a request in time."""

    patience: ClassVar[Patience] = Patience()

    _since = 0.0
    _arrived = 0
    _phase: object = None
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _hung_up = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        self._watch()
        waiting = [each for each in self.connections if isinstance(each, PatientProtocol)]
        waiting = [each for each in waiting if each._idle or each._deadline is not None]
        if len(self.connections) > self.patience.most and waiting:
            min(waiting, key=lambda each: each._rank).transport.abort()

    @property
    def _idle(self) -> bool:
        """Between requests, where uvicorn's own limit holds."""
        return self.timeout_keep_alive_task is not None

    @property
    def _known(self) -> bool:
        """Whether somebody who is logged in asks, or asked last; the guard notes it."""
        return self.cycle is not None and self.cycle.scope.get("user") is not None

    @property
    def _rank(self) -> tuple[bool, bool, float]:
        """Those that ask for nothing go first, and strangers before those who are logged in."""
        return not self._idle, self._known, self._since

    def data_received(self, data: bytes) -> None:
        """A piece of a request; after the last answer it is thrown away."""
        if self._hung_up:
            return
        self._arrived += len(data)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.transport = _AnswerFirst(self, self.transport)  # type: ignore[assignment]
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """What is no request gets its answer too, however much of it is still being sent."""
        connection = self.transport
        self.transport = _AnswerFirst(self, connection)  # type: ignore[assignment]
        try:
            super().send_400_response(msg)
        finally:
            self.transport = connection

    def hang_up(self, connection: asyncio.Transport) -> None:
        """Close the connection, but let a client that is still sending see its answer first.

        To close a socket with bytes that nobody read resets the connection, and the client loses an
        answer that it has not read yet. So our side alone is closed, and the rest lingers.
        """
        if self.conn.their_state in (h11.SEND_BODY, h11.ERROR) and connection.can_write_eof():
            self._hung_up = True
            connection.write_eof()
        else:
            connection.close()

    def on_response_complete(self) -> None:
        """An answer is given, perhaps before the request was read."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop()
        self._taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes the answer more slowly than it is given."""
        super().pause_writing()
        self._taken()
        seconds = self.transport.get_write_buffer_size() / self.patience.rate
        self._unread = self.loop.call_later(self.patience.body + seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has taken it."""
        super().resume_writing()
        self._taken()

    def _taken(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self) -> None:
        """Set the time at which this connection is cut off; none while a request is worked at."""
        phase = self._now()
        if phase != self._phase:
            self._phase, self._since, self._arrived = phase, self.loop.time(), 0
        self._stop()
        if phase is not None and not self.transport.is_closing():
            self._deadline = self.loop.call_at(self._since + self._patience(), self._cut)

    def _now(self) -> object:
        """What is waited for: headers, a body, the rest of a refused one, or nothing."""
        state = self.conn.their_state
        if self._hung_up:
            return "refused"
        if state is h11.SEND_BODY:
            return "refused" if self.cycle.response_complete else h11.SEND_BODY
        return h11.IDLE if state is h11.IDLE and not self._idle else None

    def _patience(self) -> float:
        if self._phase is h11.IDLE:
            return self.patience.headers
        if self._phase is h11.SEND_BODY:
            return self.patience.body + self._arrived / self.patience.rate
        return self.patience.linger

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        self._deadline = None
        if self._phase is h11.SEND_BODY and self.flow.read_paused:
            self._since += self.patience.body
            self._watch()
        else:
            self.transport.abort()


@dataclass(frozen=True, slots=True)
class _AnswerFirst:
    """A connection as uvicorn's answer uses it: written to, asked whether it closes, and closed."""

    protocol: PatientProtocol
    connection: asyncio.Transport

    def write(self, data: bytes) -> None:
        self.connection.write(data)

    def is_closing(self) -> bool:
        return self.connection.is_closing()

    def close(self) -> None:
        self.protocol.hang_up(self.connection)

"""A connection to a server, which carries one request at a time."""

from __future__ import annotations

import asyncio
from typing import Optional, cast

from . import _clock
from ._core.clocks import SECOND
from ._core.request import Failure
from ._reply import NotHttp, StreamedReply

#: The largest answer that is read: no answer of a server comes near.
ANSWER_BYTES_MAX = 1 << 20
#: An idle connection is closed after this many seconds. A server and its proxies keep idle connections for longer, so
#: no request meets the end of its connection.
IDLE_MAX = 5


class TransportError(Exception):
    """A request got no response."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.value)
        self.failure = failure


class Connection(asyncio.Protocol):
    """A connection of HTTP/1.1. All methods belong to the thread of the event loop."""

    __slots__ = (
        "_answer",
        "_body",
        "_idle_since",
        "_idle_timer",
        "_loop",
        "_reply",
        "_transport",
        "is_open",
        "is_resting",
    )

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Optional[asyncio.Transport] = None
        self._reply = StreamedReply()
        self._body = bytearray()
        self._answer: Optional[asyncio.Future[None]] = None
        self._idle_since = 0
        self._idle_timer: Optional[asyncio.TimerHandle] = None
        #: True until an end of the connection closes it.
        self.is_open = False
        #: True between two requests.
        self.is_resting = False

    async def ask(self, request: bytes, deadline: float) -> tuple[StreamedReply, bytes]:
        """Sends a request, and returns the response with its body. Raises ``TransportError``.

        A timer of the connection ends the request at ``deadline``, a time of the event loop: ``asyncio.wait_for`` would
        start a task for each request.
        """
        if not self.is_open or self._transport is None:
            raise TransportError(Failure.RESET_BEFORE_SEND)
        self.is_resting = False
        self._reply, self._body = StreamedReply(), bytearray()
        self._answer = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._end, Failure.TIMEOUT)
        try:
            self._transport.write(request)
            await self._answer
        finally:
            timer.cancel()
        return self._reply, bytes(self._body)

    def rest(self) -> bool:
        """Keeps the connection for the next request, for a while; returns false if the response ended it."""
        if not self.is_open or not self._reply.keeps_alive or self._reply.has_rest:
            return False
        self._idle_since = _clock.boot()
        self.is_resting = True
        if self._idle_timer is None:
            self._idle_timer = self._loop.call_later(IDLE_MAX, self._close_if_idle)
        return True

    def _close_if_idle(self) -> None:
        """Closes a connection that has been idle for ``IDLE_MAX``; otherwise looks again when it may have been.

        One timer for each span of time is cheaper than one for each rest.
        """
        idle = (_clock.boot() - self._idle_since) / SECOND if self.is_resting else 0.0
        if idle >= IDLE_MAX:
            self.abort()
        else:
            self._idle_timer = self._loop.call_later(IDLE_MAX - idle, self._close_if_idle)

    @property
    def is_fresh(self) -> bool:
        """True while a resting connection may take a request: the timer of a host that slept is late."""
        return self.is_open and _clock.boot() - self._idle_since < IDLE_MAX * SECOND

    def abort(self) -> None:
        """Closes the connection at once."""
        self.is_open = False
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            # No request asked for these bytes.
            self.abort()
            return
        try:
            self._body += self._reply.feed(data)
        except NotHttp:
            self._end(Failure.GARBAGE)
            return
        if len(self._body) > ANSWER_BYTES_MAX:
            self._end(Failure.GARBAGE)
        elif self._reply.is_over:
            self._answer.set_result(None)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_open = False
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._reply.is_unread:
            self._end(Failure.RESET_AFTER_SEND)
        elif self._reply.status is None:
            self._end(Failure.GARBAGE)
        elif self._reply.ends_with_connection and error is None:
            self._end(None)
        else:
            self._end(Failure.TRUNCATED if error is None else Failure.RESET_AFTER_SEND)

    def _end(self, failure: Optional[Failure]) -> None:
        """Ends the request under way, and the connection."""
        if self._answer is not None and not self._answer.done():
            if failure is None:
                self._answer.set_result(None)
            else:
                self._answer.set_exception(TransportError(failure))
        self.abort()

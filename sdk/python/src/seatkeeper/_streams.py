"""Event streams: a held seat hears of its end at once.

A stream is a help. Heartbeats alone decide about a seat, so a stream that fails changes no state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import socket
from collections.abc import Awaitable
from typing import Any, Callable, Optional, cast

from ._connection import TransportError
from ._core import problem as problems
from ._core.events import SessionEnd
from ._reply import NotHttp, StreamedReply
from ._servers import Servers
from ._sse import EventParser, EventTooLong, ServerEvent
from ._tokens import NoToken
from ._transport import Transport

#: The pause between two keep-alive comments of a server, in seconds.
KEEP_ALIVE = 15.0
#: A connection without a byte for this long is dead.
SILENCE_MAX = 3 * KEEP_ALIVE
#: The longest pause before the first reconnect; each later one doubles, up to ``BACKOFF_MAX``.
BACKOFF_FIRST = 1.0
BACKOFF_MAX = 60.0
#: A stream that lived this long starts the backoff anew.
SETTLED_AFTER = 60.0
#: The longest id of an event that is sent back to the server.
ID_CHARS_MAX = 256

_log = logging.getLogger("seatkeeper")


def backoff(failures: int, jitter: float) -> float:
    """Returns the pause after a failure that follows ``failures`` others, with full jitter, in seconds."""
    return jitter * min(BACKOFF_FIRST * 2.0 ** min(failures, 16), BACKOFF_MAX)


class Credentials:
    """The token of a seat, as its event stream uses it."""

    def __init__(self, current: Callable[[], Awaitable[str]], peek: Callable[[], tuple[int, Optional[str]]]) -> None:
        #: Returns the token of the moment. Raises ``NoToken`` and ``TransportError``.
        self.current = current
        #: Returns the generation and the text of the token of the moment, and fetches none.
        self.peek = peek


class EventStream:
    """The event stream of one session, connected again after each failure until ``close``.

    All methods belong to the thread of the event loop.
    """

    def __init__(
        self, path: str, servers: Servers, credentials: Credentials, tell: Callable[[Optional[SessionEnd]], None]
    ) -> None:
        """Starts to connect; ``tell`` is called with each told end, and with ``None`` once the stream is over."""
        self._path = path
        self._servers = servers
        self._credentials = credentials
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._last_id = ""
        self._connection: Optional[_Connection] = None
        self._node: Optional[Transport] = None
        #: The token of the latest connection.
        self._used: tuple[int, Optional[str]] = (0, None)
        #: Set by ``look`` while the stream waits for another token.
        self._looked = asyncio.Event()
        self._is_closed = False
        #: The server has nothing more to tell of the session (204), or does not know the session (404).
        self.is_over = False
        self._task = self._loop.create_task(self._run())

    def close(self) -> None:
        """Closes the stream at once."""
        self._is_closed = True
        self._task.cancel()
        if self._connection is not None:
            self._connection.abort()

    def look(self) -> None:
        """Looks at the client's node and token, which a step of the machine may have changed."""
        self._looked.set()
        if self._connection is not None and self._node is not self._servers.in_use:
            self._connection.abort()

    async def _run(self) -> None:
        failures = 0
        while not self._is_closed:
            try:
                connection = await self._follow()
            except Exception:
                _log.exception("an event stream failed in a way that the client does not know")
                return
            status = connection.status if connection is not None else None
            if status in (204, 404):
                self.is_over = True
                # Not within this task, which a step of the machine may cancel.
                self._loop.call_soon(self._tell, None)
                return
            if status == 401:
                await self._token_after(self._used)
            if connection is not None and connection.lived >= SETTLED_AFTER:
                failures = 0
            # Jitter needs no secret randomness.
            pause = backoff(failures, random.random())  # noqa: S311
            failures += 1
            await asyncio.sleep(pause)

    async def _follow(self) -> Optional[_Connection]:
        """Follows one connection to its end; ``None`` without a connection."""
        try:
            token = await self._credentials.current()
            node = self._servers.in_use
            self._used, self._node = self._credentials.peek(), node
            # Several addresses of a node may each get a connection, of which ``open`` returns one.
            connection = self._connection = await node.open(lambda: self._connect(node, token))
            await connection.closed
            return connection
        except (TransportError, NoToken, OSError):
            return None
        finally:
            if self._connection is not None:
                self._last_id = self._connection.last_id
                self._connection.abort()
                self._connection = None

    def _connect(self, node: Transport, token: str) -> _Connection:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", "Authorization": f"Bearer {token}"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        request = node.encode_get(self._path, headers)
        return _Connection(request, self._last_id, self._tell, self._loop)

    async def _token_after(self, rejected: tuple[int, Optional[str]]) -> None:
        """Waits until a step of the machine has brought another token than the rejected one."""
        while self._credentials.peek() == rejected:
            self._looked.clear()
            await self._looked.wait()


class _Connection(asyncio.Protocol):
    """One connection of an event stream."""

    def __init__(
        self, request: bytes, last_id: str, tell: Callable[[SessionEnd], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._request = request
        self._tell = tell
        self._loop = loop
        self._reply = StreamedReply()
        self._parser = EventParser(last_id)
        self._transport: Optional[asyncio.Transport] = None
        self._watch: Optional[asyncio.TimerHandle] = None
        self._heard_at = loop.time()
        self._began_at: Optional[float] = None
        self._pid = os.getpid()
        #: Done at the end of the connection.
        self.closed: asyncio.Future[None] = loop.create_future()

    @property
    def status(self) -> Optional[int]:
        """The status of the response, once its head is whole."""
        return self._reply.status

    @property
    def lived(self) -> float:
        """The seconds from the head of the response to the last byte."""
        return 0.0 if self._began_at is None else self._heard_at - self._began_at

    @property
    def last_id(self) -> str:
        """The id of the last event; empty if the id does not fit into a header."""
        last = self._parser.last_id
        return last if last.isascii() and last.isprintable() and len(last) <= ID_CHARS_MAX else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)
        self._request = b""
        self._heard_at = self._loop.time()
        self._watch = self._loop.call_later(SILENCE_MAX, self._look_for_silence)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        try:
            body = self._reply.feed(data)
            if self._reply.status is None:
                return
            if not self._is_stream():
                self.abort()
                return
            if self._began_at is None:
                self._began_at = self._heard_at
            for event in self._parser.feed(body):
                end = read_end(event)
                if end is not None:
                    # One end of one connection, so a stream that repeats itself causes no storm of heartbeats.
                    self._loop.call_soon(self._tell, end)
                    self.abort()
                    return
            if self._reply.is_over:
                self.abort()
        except (NotHttp, EventTooLong):
            self.abort()

    def connection_lost(self, error: Optional[Exception]) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def abort(self) -> None:
        """Closes the connection at once."""
        if self._transport is None or self._transport.is_closing() or os.getpid() != self._pid:
            return
        # A forked child may hold the socket open: a shutdown reaches the server all the same.
        found: Any = self._transport.get_extra_info("socket")
        with contextlib.suppress(Exception):
            found.shutdown(socket.SHUT_RDWR)
        self._transport.abort()

    def _is_stream(self) -> bool:
        kind = self._reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        return self._reply.status == 200 and kind == "text/event-stream"

    def _look_for_silence(self) -> None:
        left = self._heard_at + SILENCE_MAX - self._loop.time()
        if left <= 0:
            self.abort()
        else:
            self._watch = self._loop.call_later(left, self._look_for_silence)


def read_end(event: ServerEvent) -> Optional[SessionEnd]:
    """Reads the end of a session; ``None`` for every other event."""
    try:
        members = json.loads(event.data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    session, reason = problems.text(members, "session_id"), problems.text(members, "reason")
    if session is None or reason is None:
        return None
    return SessionEnd(session, reason, _read_cause(members))


def _read_cause(members: dict[str, Any]) -> Optional[str]:
    """Returns the name of the device that has the seat now, or the best other name of it."""
    by = members.get("by")
    if isinstance(by, dict):
        names = (problems.text(by, name) for name in ("device_name", "device_type", "session_id"))
        return next((name for name in names if name is not None), None)
    return by if isinstance(by, str) else None

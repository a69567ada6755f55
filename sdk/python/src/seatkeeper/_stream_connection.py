"""One connection of an event stream, and the news that it tells."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from typing import Any, Callable, Optional, cast

from ._core import problem as problems
from ._core.events import SessionEnd
from ._reply import NotHttp, StreamedReply
from ._sse import EventParser, EventTooLong, ServerEvent
from ._stream_groups import News, NotShared

#: The pause between two keep-alive comments of a server, in seconds.
KEEP_ALIVE = 15.0
#: A connection without a byte for this long is dead.
SILENCE_MAX = 3 * KEEP_ALIVE
#: The longest id of an event that is sent back to the server.
ID_CHARS_MAX = 256


class StreamConnection(asyncio.Protocol):
    """One connection of an event stream. All methods belong to the thread of the event loop."""

    def __init__(
        self,
        tell: Callable[[News], None],
        opened: Callable[[StreamConnection], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``tell`` is called with the news of the sessions, ``opened`` once the response begins a stream."""
        self._tell = tell
        self._opened = opened
        self._loop = loop
        self._reply = StreamedReply()
        self._parser = EventParser()
        self._transport: Optional[asyncio.Transport] = None
        self._watch: Optional[asyncio.TimerHandle] = None
        #: The time of the last byte.
        self.heard_at = loop.time()
        #: True once the head of a stream has come.
        self.is_open = False
        self._pid = os.getpid()
        #: The first session of the request.
        self.first = ""
        #: The sessions of the request without news yet.
        self.sessions: list[str] = []
        self._is_shared = False
        #: Done at the end of the connection.
        self.closed: asyncio.Future[None] = loop.create_future()

    def ask(self, request: bytes, sessions: list[str], last_id: str) -> None:
        """Sends the request for the stream of ``sessions``, which goes on after the event ``last_id``."""
        self.first, self.sessions, self._is_shared = sessions[0], sessions, len(sessions) > 1
        self._parser = EventParser(last_id)
        if self._transport is not None:
            self._transport.write(request)

    @property
    def status(self) -> Optional[int]:
        """The status of the response, once its head is whole."""
        return self._reply.status

    @property
    def last_id(self) -> str:
        """The id of the last event; empty if the id does not fit into a header."""
        last = self._parser.last_id
        return last if last.isascii() and last.isprintable() and len(last) <= ID_CHARS_MAX else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.heard_at = self._loop.time()
        self._watch = self._loop.call_later(SILENCE_MAX, self._look_for_silence)

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._loop.time()
        try:
            body = self._reply.feed(data)
            if self._reply.status is None:
                return
            if not self._is_stream():
                self.abort()
                return
            if not self.is_open:
                self.is_open = True
                self._opened(self)
            for event in self._parser.feed(body):
                self._take(event)
            if self._reply.is_over or not self.sessions:
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

    def _take(self, event: ServerEvent) -> None:
        """Tells the news of an event, once for each session: a stream that repeats itself causes no heartbeats."""
        news = read_event(event)
        if isinstance(news, NotShared) and not self._is_shared:
            return
        if news is not None and news.session in self.sessions:
            self.sessions.remove(news.session)
            self._loop.call_soon(self._tell, news)

    def _is_stream(self) -> bool:
        kind = self._reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        return self._reply.status == 200 and kind == "text/event-stream"

    def _look_for_silence(self) -> None:
        left = self.heard_at + SILENCE_MAX - self._loop.time()
        if left <= 0:
            self.abort()
        else:
            self._watch = self._loop.call_later(left, self._look_for_silence)


def read_event(event: ServerEvent) -> Optional[News]:
    """Reads the news of an event; ``None`` for an event without news.

    A session that is ``unknown`` may be at home in another region: only a stream of its own tells for certain.
    """
    try:
        members = json.loads(event.data)
    except (ValueError, RecursionError):
        return None
    session = problems.text(members, "session_id") if isinstance(members, dict) else None
    if session is None:
        return None
    if event.name == "unknown":
        return NotShared(session)
    reason = problems.text(members, "reason")
    return None if reason is None else SessionEnd(session, reason, _read_cause(members))


def _read_cause(members: dict[str, Any]) -> Optional[str]:
    """Returns the name of the device that has the seat now, or the best other name of it."""
    by = members.get("by")
    if isinstance(by, dict):
        names = (problems.text(by, name) for name in ("device_name", "device_type", "session_id"))
        return next((name for name in names if name is not None), None)
    return by if isinstance(by, str) else None

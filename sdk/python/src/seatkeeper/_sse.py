"""Server-sent events, parsed by the rules of the HTML standard (WHATWG)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

#: The longest event of which data is kept: no event of a server comes near.
EVENT_BYTES_MAX = 1 << 16

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """An event is longer than ``EVENT_BYTES_MAX``."""


@dataclass(frozen=True)
class ServerEvent:
    """An event of a stream."""

    name: str
    data: str


class EventParser:
    """Parses the bytes of one stream into events."""

    __slots__ = ("_begun", "_data", "_id", "_name", "_rest", "_size", "_skips_line_feed", "last_id")

    def __init__(self, last_id: str = "") -> None:
        """Starts a stream that goes on after the event ``last_id`` of an earlier stream."""
        #: The id of the last event, for the header ``Last-Event-ID``.
        self.last_id = last_id
        self._id = last_id
        self._name = ""
        self._data: list[str] = []
        #: The bytes of the event so far.
        self._size = 0
        #: The start of a line whose end has not arrived.
        self._rest = b""
        #: The last line ended in a carriage return, so a line feed belongs to the same line end.
        self._skips_line_feed = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Takes the next bytes, and returns the events that they complete. Raises ``EventTooLong``."""
        if self._skips_line_feed and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skips_line_feed = False
        if chunk.endswith(b"\r"):
            self._skips_line_feed = True
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        events = [event for event in map(self._take, lines) if event is not None]
        if self._size + len(self._rest) > EVENT_BYTES_MAX:
            raise EventTooLong
        return events

    def _take(self, line: bytes) -> Optional[ServerEvent]:
        """Takes a whole line; returns an event at the line that ends the event."""
        if not self._begun:
            line, self._begun = line.removeprefix(_BYTE_ORDER_MARK), True
        if not line:
            return self._dispatch()
        self._size += len(line)
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> Optional[ServerEvent]:
        name, data = self._name, self._data
        self._name, self._data, self._size = "", [], 0
        self.last_id = self._id
        return ServerEvent(name or "message", "\n".join(data)) if data else None

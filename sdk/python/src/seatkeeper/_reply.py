"""An HTTP/1.1 response that is read while it arrives."""

from __future__ import annotations

from typing import Optional

#: The longest head of a response.
HEAD_BYTES_MAX = 1 << 15
#: The longest line before a chunk.
CHUNK_LINE_BYTES_MAX = 1 << 10


class NotHttp(ValueError):
    """The bytes are no HTTP/1.1 response that this package reads."""


class StreamedReply:
    """Parses a response: ``status`` and ``headers`` once the head is whole, and the body piece by piece."""

    __slots__ = ("_is_chunked", "_left", "_rest", "headers", "is_over", "keeps_alive", "status")

    def __init__(self) -> None:
        self.status: Optional[int] = None
        #: The headers by name in lower case; the last one of a name counts.
        self.headers: dict[str, str] = {}
        #: True after the end of the body. A body without a length ends with its connection.
        self.is_over = False
        #: True if the connection takes another request after this response, whose length the head tells.
        self.keeps_alive = False
        self._rest = b""
        self._is_chunked = False
        #: The bytes left of the body or of the chunk; ``None`` without a length, or before the length of a chunk.
        self._left: Optional[int] = None

    def feed(self, received: bytes) -> bytes:
        """Takes the next bytes of the connection, and returns the bytes of the body among them. Raises ``NotHttp``."""
        self._rest += received
        while self.status is None:
            if not self._read_head():
                return b""
        if self._is_chunked:
            return self._read_chunks()
        body, self._rest = self._rest[: self._left], b"" if self._left is None else self._rest[self._left :]
        if self._left is not None:
            self._left -= len(body)
            self.is_over = self._left == 0
        return body

    def _read_head(self) -> bool:
        """Reads the head, and passes over heads of informational responses; false if a head is not whole yet."""
        head, end, rest = self._rest.partition(b"\r\n\r\n")
        if len(head) > HEAD_BYTES_MAX:
            raise NotHttp
        if not end:
            return False
        self._rest = rest
        first, *lines = head.decode("latin-1").split("\r\n")
        protocol, _, status = first.partition(" ")
        if not protocol.startswith("HTTP/1.") or not (status[:3].isascii() and status[:3].isdigit()):
            raise NotHttp
        if status.startswith("1"):
            return True
        self.status = int(status[:3])
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._read_length()
        is_closed = protocol == "HTTP/1.0" or self.headers.get("connection", "").lower() == "close"
        self.keeps_alive = not is_closed and self._left is not None
        return True

    @property
    def is_unread(self) -> bool:
        """True before the first byte."""
        return self.status is None and not self._rest

    @property
    def has_rest(self) -> bool:
        """True if bytes came after the end of the body."""
        return bool(self._rest)

    @property
    def ends_with_connection(self) -> bool:
        """True for a body without a length: the end of the connection is the end of the body."""
        return self.status is not None and not self._is_chunked and self._left is None

    def _read_length(self) -> None:
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length", "")
        if self.status in (204, 304):
            self._left = 0
        elif coding is not None:
            if coding.lower() != "chunked":
                raise NotHttp
            self._is_chunked = True
        elif length.isascii() and length.isdigit() and len(length) < 20:
            self._left = int(length)

    def _read_chunks(self) -> bytes:
        body = b""
        while not self.is_over:
            if self._left is None and not self._read_chunk_line():
                break
            if self._left is None or len(self._rest) == 0:
                break
            piece, self._rest = self._rest[: self._left], self._rest[self._left :]
            body += piece
            self._left -= len(piece)
            if self._left == 0:
                self._left = None
        return body

    def _read_chunk_line(self) -> bool:
        """Reads the length of the next chunk, after the line end of the chunk before; false if it is not whole yet."""
        line, end, rest = self._rest.removeprefix(b"\r\n").partition(b"\r\n")
        if len(line) > CHUNK_LINE_BYTES_MAX:
            raise NotHttp
        if not end:
            return False
        try:
            self._left = int(line.partition(b";")[0], 16)
        except ValueError as error:
            raise NotHttp from error
        if self._left < 0:
            raise NotHttp
        self._rest = rest
        self.is_over = self._left == 0
        return True

"""Requests of the machine as HTTP."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import socket
import ssl
from typing import Callable, Optional, TypeVar
from urllib.parse import urlsplit

from ._connection import Connection, TransportError
from ._core.request import Call, Failure, Response
from ._reply import StreamedReply
from ._threads import call_in_thread
from ._timeout import within
from ._version import VERSION
from .errors import Misuse

#: Connections of one client at a time: a server's queue of new connections is short.
CONNECTIONS_MAX = 64
#: Connections for event streams that are opened at a time, beside those of requests.
OPENINGS_MAX = 16
#: Seconds before the next address of a host is tried beside the addresses before: a try of a release lasts a second,
#: and must reach the second address.
ATTEMPT_DELAY = 0.6
#: The longest wait for a look-up while addresses of the host are known, in seconds: a try of a release lasts a second.
LOOKUP_PATIENCE = 0.3
#: The errors of the operating system, or of a limit of the process, that stand in the way of every connection.
NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
USER_AGENT = f"seatkeeper-python/{VERSION}"

P = TypeVar("P", bound=asyncio.Protocol)


class Server:
    """The address of a server, and the terms of a connection to it."""

    def __init__(self, url: str, tls: Optional[ssl.SSLContext], connect_timeout: float) -> None:
        """Parses the address; raises ``Misuse`` if it is none."""
        # No error shows an address that may have a password, nor the `ValueError`, which quotes the address.
        shown = "the text with '@'" if "@" in url else repr(url)
        wrong = f"{shown} is not the address of a server: want http://HOST:PORT or https://HOST:PORT"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise Misuse(wrong) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Misuse(wrong)
        if parts.username is not None:
            raise Misuse("the address has a user name: pass a token instead")
        if not parts.netloc.isascii():
            # The encoding of Python is that of IDNA 2003, which names another host than a browser: ß becomes ss.
            raise Misuse("the host of the address has characters beyond ASCII: write it in its ASCII form, as xn--...")
        if not parts.path.isascii():
            raise Misuse("the path of the address has characters beyond ASCII: write them as %XX")
        self.host = parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        self.authority = parts.netloc
        #: The path before ``/api``, behind a proxy.
        self.prefix = parts.path.rstrip("/")
        self.tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self.connect_timeout = connect_timeout

    @property
    def is_named(self) -> bool:
        """True if the host is a name, and no IP address."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return True
        return False


class Transport:
    """The way to a server: a request takes a connection that rests, or a new one."""

    def __init__(self, server: Server) -> None:
        """Must be called on the thread of the event loop that sends the requests."""
        self._server = server
        #: The addresses of the host, as the last lookup found them.
        self._addresses = [] if server.is_named else [server.host]
        #: The address of the latest connection.
        self._answering: Optional[str] = None
        #: The look-up in progress, which goes on after each request has given up.
        self._lookup: Optional[asyncio.Task[None]] = None
        #: The places of requests in flight.
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)
        #: Connections that rest, the latest at the end.
        self._resting: list[Connection] = []
        self._openings = asyncio.Semaphore(OPENINGS_MAX)

    async def send(self, call: Call, token: Optional[str], timeout: float) -> Response:
        """Sends one request and returns its response within ``timeout`` seconds.

        Raises ``TransportError``; a cancelled call aborts.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        connection = None
        if not self._places.locked():
            # Does not wait. Most requests take a connection that rests.
            await self._places.acquire()
            connection = self._rested()
            if connection is None:
                self._places.release()
        if connection is None:
            connection = await self._connected(timeout)
        is_kept = False
        try:
            reply, body = await connection.ask(self._encode(call, token), deadline)
            is_kept = connection.rest()
        finally:
            if is_kept:
                self._resting.append(connection)
            else:
                connection.abort()
            self._places.release()
        return _response(reply, body)

    def close(self) -> None:
        """Closes the connections that rest."""
        while self._resting:
            self._resting.pop().abort()

    def _rested(self) -> Optional[Connection]:
        """Returns a connection that rests; ``None`` if none may take a request."""
        while self._resting:
            connection = self._resting.pop()
            if connection.is_fresh:
                return connection
            connection.abort()
        return None

    async def _connected(self, timeout: float) -> Connection:
        """Takes a place, and returns a connection within ``timeout`` seconds. Raises ``TransportError``."""

        async def connect() -> Connection:
            await self._places.acquire()
            try:
                rested = self._rested()
                return rested if rested is not None else await self._connect(Connection)
            except BaseException:
                self._places.release()
                raise

        def discard(connection: Connection) -> None:
            connection.abort()
            self._places.release()

        try:
            return await within(timeout, connect(), discard)
        except asyncio.TimeoutError as error:
            raise TransportError(Failure.TIMEOUT) from error

    async def open(self, protocol: Callable[[], P]) -> P:
        """Opens a connection for a protocol of the caller, who closes the connection. Raises ``TransportError``."""
        async with self._openings:
            return await self._connect(protocol)

    def encode_get(self, path: str, headers: dict[str, str]) -> bytes:
        """Returns the bytes of a request without a body."""
        return self._head("GET", path, headers)

    def _encode(self, call: Call, token: Optional[str]) -> bytes:
        body = b"" if call.body is None else json.dumps(call.body).encode()
        headers = {"Accept": "application/json", "Content-Length": str(len(body))}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if body:
            headers["Content-Type"] = "application/json"
        return self._head(call.method, call.path, headers) + body

    def _head(self, method: str, path: str, headers: dict[str, str]) -> bytes:
        lines = [f"{method} {self._server.prefix}{path} HTTP/1.1", f"Host: {self._server.authority}"]
        headers = {"User-Agent": USER_AGENT, **headers}
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def _connect(self, protocol: Callable[[], P]) -> P:
        """Connects to the address that answers first. Raises ``TransportError``.

        The address of the latest connection goes first. As in Happy Eyeballs (RFC 8305), the next address joins after
        ``ATTEMPT_DELAY`` or a failure, so a slow address keeps its whole ``connect_timeout``.
        """
        addresses = sorted(await self._resolve(), key=lambda address: address != self._answering)
        attempts: set[asyncio.Task[tuple[asyncio.Transport, P]]] = set()
        last: Optional[Exception] = None
        try:
            while addresses or attempts:
                if addresses:
                    attempts.add(asyncio.ensure_future(self._attempt(protocol, addresses.pop(0))))
                delay = ATTEMPT_DELAY if addresses else None
                ended, _ = await asyncio.wait(attempts, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
                for attempt in ended:
                    attempts.remove(attempt)
                    try:
                        return attempt.result()[1]
                    except (OSError, asyncio.TimeoutError) as error:
                        last = error
        finally:
            for attempt in attempts:
                attempt.cancel()
                attempt.add_done_callback(_abort)
        raise TransportError(_failure_of(last)) from last

    async def _attempt(self, protocol: Callable[[], P], address: str) -> tuple[asyncio.Transport, P]:
        """Connects to one address within ``connect_timeout``."""
        server = self._server
        name = server.host if server.tls else None
        opening = asyncio.get_running_loop().create_connection(
            protocol, address, server.port, ssl=server.tls, server_hostname=name
        )
        opened = await within(server.connect_timeout, opening, lambda late: late[0].abort())
        self._answering = address
        return opened

    async def _resolve(self) -> list[str]:
        """Returns the addresses of the host; one look-up at a time serves every request.

        While the name service does not answer, the known addresses serve, and the look-up goes on.
        """
        if self._server.is_named:
            if self._lookup is None:
                self._lookup = asyncio.ensure_future(self._look_up())
            await asyncio.wait([self._lookup], timeout=LOOKUP_PATIENCE if self._addresses else None)
        return self._addresses

    async def _look_up(self) -> None:
        """Looks the host up; a failure leaves the known addresses."""
        server = self._server
        try:
            found = await call_in_thread(lambda: socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM))
            self._addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        except (OSError, RuntimeError, MemoryError, UnicodeError):
            pass
        finally:
            self._lookup = None


def _abort(attempt: asyncio.Task[tuple[asyncio.Transport, P]]) -> None:
    """Closes the connection of an attempt that another one has overtaken."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result()[0].abort()


def _failure_of(error: Optional[Exception]) -> Failure:
    """Returns the failure of a connection that was not made."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure.CERTIFICATE
    if isinstance(error, OSError) and error.errno in NO_RESOURCES:
        return Failure.NO_RESOURCES
    return Failure.REFUSED


def _response(reply: StreamedReply, body: bytes) -> Response:
    seconds = reply.headers.get("retry-after", "")
    retry_after = int(seconds) if seconds.isascii() and seconds.isdigit() and len(seconds) < 20 else None
    return Response(reply.status or 0, retry_after, body, reply.headers.get("x-request-id"))

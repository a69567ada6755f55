"""A server whose answers and event streams a test computes. The server notes every request."""

from __future__ import annotations

import http.server
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

GRANT = {"session_id": "0198a0aa-0000-7000-8000-000000000001", "expires_in_seconds": 360}


@dataclass(frozen=True)
class Arrived:
    """A request as it arrived."""

    #: The method and the path.
    target: str
    token: Optional[str]
    body: Any
    accept: Optional[str] = None
    last_event_id: Optional[str] = None


@dataclass(frozen=True)
class Reply:
    """An answer, and the seconds before the answer."""

    status: int
    body: Any = field(default_factory=dict)
    retry_after: Optional[int] = None
    delay: float = 0.0
    request_id: Optional[str] = None


#: Computes an answer from a request and the number of earlier requests for the same target.
Script = Callable[[Arrived, int], Reply]


class Wire:
    """The server's end of the connection of an event stream."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def head(self, status: int = 200, kind: str = "text/event-stream; charset=utf-8") -> None:
        """Sends the head of a response, whose body is chunked."""
        lines = [f"HTTP/1.1 {status} Told", f"Content-Type: {kind}", "Transfer-Encoding: chunked", "", ""]
        self.send("\r\n".join(lines).encode())

    def event(self, text: str) -> None:
        """Sends a piece of the stream as a chunk."""
        piece = text.encode()
        self.send(b"%x\r\n%s\r\n" % (len(piece), piece))

    def send(self, data: bytes) -> None:
        """Sends bytes; a client that has gone is no error."""
        with suppress(OSError):
            self._connection.sendall(data)

    def is_closed(self, timeout: float) -> bool:
        """Waits until the client closes the connection; false after ``timeout`` seconds."""
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            if select.select([self._connection], [], [], left)[0]:
                try:
                    if not self._connection.recv(4_096):
                        return True
                except OSError:
                    return True
        return False


#: Serves an event stream: the request, the number of earlier requests for the same target, and the connection, which is
#: closed afterwards.
Serve = Callable[[Arrived, int, Wire], None]


def hold(_: Arrived, __: int, wire: Wire) -> None:
    """Serves a stream on which nothing happens, until the client closes it."""
    wire.head()
    wire.event("id: 0\n\n")
    wire.is_closed(60)


class Scripted:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = threading.Lock()
        self.noted: list[Arrived] = []
        #: The event streams that are being served.
        self.streams = 0

    def arrived(self, target: str = "") -> list[Arrived]:
        """Returns the requests whose target begins with ``target``."""
        with self.lock:
            return [request for request in self.noted if request.target.startswith(target)]


@contextmanager
def scripted(script: Script, serve: Serve = hold, certificate: Optional[Path] = None) -> Iterator[Scripted]:
    """Starts a server; with a certificate, of HTTPS."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def note(self) -> tuple[Arrived, int]:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            bearer = self.headers["Authorization"]
            token = bearer.removeprefix("Bearer ") if bearer else None
            request = Arrived(
                f"{self.command} {self.path}",
                token,
                json.loads(body) if body else None,
                self.headers["Accept"],
                self.headers["Last-Event-ID"],
            )
            with state.lock:
                earlier = sum(1 for other in state.noted if other.target == request.target)
                state.noted.append(request)
            return request, earlier

        def do_GET(self) -> None:
            request, earlier = self.note()
            self.close_connection = True
            with state.lock:
                state.streams += 1
            try:
                serve(request, earlier, Wire(self.connection))
            finally:
                with state.lock:
                    state.streams -= 1

        def do_POST(self) -> None:
            request, earlier = self.note()
            reply = script(request, earlier)
            time.sleep(reply.delay)
            # A release that the script grants is answered as by a real server.
            is_released = self.command == "DELETE" and 200 <= reply.status <= 299
            text = b"" if is_released else json.dumps(reply.body).encode()
            self.send_response(204 if is_released else reply.status)
            if reply.retry_after is not None:
                self.send_header("Retry-After", str(reply.retry_after))
            if reply.request_id is not None:
                self.send_header("X-Request-Id", reply.request_id)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_DELETE = do_PATCH = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        # A connection that finds the queue full waits for a second.
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        state = Scripted(f"{scheme}://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield state
        finally:
            server.shutdown()

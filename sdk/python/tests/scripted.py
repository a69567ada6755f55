"""A server whose answers a test computes. The server notes every request."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

GRANT = {"session_id": "0198a0aa-0000-7000-8000-000000000001", "expires_in_seconds": 360}


@dataclass(frozen=True)
class Arrived:
    """A request as it arrived."""

    #: The method and the path.
    target: str
    token: Optional[str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """An answer, and the seconds before the answer."""

    status: int
    body: Any = field(default_factory=dict)
    retry_after: Optional[int] = None
    delay: float = 0.0


#: Computes an answer from a request and the number of earlier requests for the same target.
Script = Callable[[Arrived, int], Reply]


class Scripted:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = threading.Lock()
        self.noted: list[Arrived] = []

    def arrived(self, target: str = "") -> list[Arrived]:
        """Returns the requests whose target begins with ``target``."""
        with self.lock:
            return [request for request in self.noted if request.target.startswith(target)]


@contextmanager
def scripted(script: Script) -> Iterator[Scripted]:
    """Starts a server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            bearer = self.headers["Authorization"]
            token = bearer.removeprefix("Bearer ") if bearer else None
            request = Arrived(f"{self.command} {self.path}", token, json.loads(body) if body else None)
            with state.lock:
                earlier = sum(1 for other in state.noted if other.target == request.target)
                state.noted.append(request)
            reply = script(request, earlier)
            time.sleep(reply.delay)
            text = json.dumps(reply.body).encode()
            self.send_response(reply.status)
            if reply.retry_after is not None:
                self.send_header("Retry-After", str(reply.retry_after))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_DELETE = do_PATCH = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        state = Scripted(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield state
        finally:
            server.shutdown()

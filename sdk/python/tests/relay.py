"""A relay between client and server, which cuts or swallows event streams."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """A running relay."""

    def __init__(self, url: str, upstream: tuple[str, int]) -> None:
        #: The address for clients.
        self.url = url
        #: Event streams get no answer.
        self.swallows_streams = False
        self._upstream = upstream
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._streams: set[socket.socket] = set()
        #: The event streams that have arrived.
        self.streams_seen = 0
        #: The event streams to which the server has sent its first bytes.
        self.streams_begun = 0
        #: The request line of each event stream that has arrived.
        self.lines: list[bytes] = []

    def open(self) -> int:
        """Returns the number of open connections of clients."""
        with self._lock:
            return len(self._open)

    def open_streams(self) -> int:
        """Returns the number of open event streams."""
        with self._lock:
            return len(self._streams)

    def cut_streams(self) -> None:
        """Cuts all event streams."""
        with self._lock:
            for stream in self._streams:
                stream.shutdown(socket.SHUT_RDWR)

    def serve(self, client: socket.socket) -> None:
        """Serves one connection to its end."""
        with self._lock:
            self._open.add(client)
        try:
            head = client.recv(65_536)
            line = head.partition(b"\r\n")[0]
            is_stream = line.startswith(b"GET ") and b"/events" in line
            if is_stream:
                with self._lock:
                    self._streams.add(client)
                    self.streams_seen += 1
                    self.lines.append(line)
                if self.swallows_streams:
                    while client.recv(65_536):
                        pass
                    return
            with socket.create_connection(self._upstream) as server:
                server.sendall(head)
                threading.Thread(target=_pump, args=(client, server), daemon=True).start()
                while piece := server.recv(65_536):
                    client.sendall(piece)
                    if is_stream:
                        self.streams_begun += 1
                        is_stream = False
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(client)
                self._streams.discard(client)
            with suppress(OSError):
                # The other thread may be reading, which keeps a socket open over its close.
                client.shutdown(socket.SHUT_RDWR)
            client.close()


@contextmanager
def relay(url: str) -> Iterator[Relay]:
    """Starts a relay to the server at ``url``."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        state = Relay(f"http://127.0.0.1:{listener.getsockname()[1]}", (host, int(port)))
        threading.Thread(target=_accept, args=(listener, state), daemon=True).start()
        try:
            yield state
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, state: Relay) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=state.serve, args=(client,), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Passes bytes on, and then the end of the connection."""
    try:
        while piece := source.recv(65_536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass

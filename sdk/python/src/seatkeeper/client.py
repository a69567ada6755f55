"""The client of one server, and requests for seats."""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Union

from . import _tokens
from ._core.clocks import SECOND
from ._core.plan import FOREVER, Plan
from ._core.state import State
from ._dispatcher import Callback, Dispatcher
from ._driver import Driver
from ._license_tokens import LicenseKey
from ._mask import masked
from ._shared import Shared
from ._tokens import TokenSource
from ._transport import Server
from .errors import Closed, Denied, Misuse, Offline
from .seat import Seat

#: Seconds to wait for a free seat; ``None`` takes the first denial as final, ``"forever"`` has no end.
Wait = Union[float, str, None]


class Connection:
    """The way to one server, with one thread for all seats; the base of ``Client`` and ``AsyncClient``."""

    def __init__(
        self,
        source: Union[_tokens.Fetch, LicenseKey],
        url: Union[str, Sequence[str]],
        ca_file: Union[str, Path, None],
        connect_timeout: float,
    ) -> None:
        tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else None
        urls = [url] if isinstance(url, str) else list(url)
        if not urls:
            raise Misuse("a client needs the address of a server")
        self._servers = [Server(address, tls, connect_timeout) for address in urls]
        self._source = source
        self._driver: Optional[Driver] = None
        self._opening = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self.dispatcher = Dispatcher()

    def driver(self) -> Driver:
        """Returns the driver of this process, and starts it at the first call. Raises ``Closed``."""
        if os.getpid() != self._pid:
            # A forked child has the parent's memory without its threads, and locks in any state.
            self._opening, self.dispatcher = threading.Lock(), Dispatcher()
            self._driver, self._pid = None, os.getpid()
        with self._opening:
            if self._closed:
                raise Closed("the client is closed")
            if self._driver is None:
                self._driver = Driver(self._servers, self._source)
                atexit.register(self.close)
            return self._driver

    def close(self, timeout: float = 2.5) -> None:
        """Gives every seat back, and ends the threads; returns after ``timeout`` seconds at the latest."""
        self._closed = True
        atexit.unregister(self.close)
        if self._driver is not None and os.getpid() == self._pid:
            self._driver.close(timeout)
            self.dispatcher.close()


def choose_source(
    token: Optional[str],
    token_file: Union[str, Path, None],
    token_source: Union[TokenSource, LicenseKey, None],
    home: Optional[asyncio.AbstractEventLoop],
) -> Union[_tokens.Fetch, LicenseKey]:
    """Returns the one token source that is given. Raises ``Misuse``."""
    given: list[Union[_tokens.Fetch, LicenseKey]] = []
    if token is not None:
        given.append(_tokens.from_text(token))
    if token_file is not None:
        given.append(_tokens.from_file(Path(token_file)))
    if isinstance(token_source, LicenseKey):
        given.append(token_source)
    elif token_source is not None:
        given.append(_tokens.from_source(token_source, home))
    if len(given) != 1:
        raise Misuse("a client needs one of token, token_file and token_source")
    return given[0]


def plan(
    license_key: str,
    machine: str,
    instance: Optional[str],
    wait: Wait,
    patience: float,
    user_agent: Optional[str],
    metadata: Optional[dict[str, Any]],
) -> Plan:
    """Returns the plan of an acquire. Raises ``Misuse``."""
    if not machine:
        raise Misuse("machine is empty: want a name of this machine that stays the same")
    if isinstance(wait, str) and wait != "forever":
        raise Misuse(f"wait is {wait!r}: want seconds, None or 'forever'")
    if (not isinstance(wait, str) and wait is not None and not wait >= 0) or not patience >= 0:
        raise Misuse("wait and patience are seconds from zero up")
    span = wait if wait is None else FOREVER if isinstance(wait, str) else _nanoseconds(wait)
    return Plan(license_key, machine, instance, user_agent, metadata, span, _nanoseconds(patience))


def _nanoseconds(seconds: float) -> int:
    return FOREVER if seconds * SECOND >= FOREVER else round(seconds * SECOND)


class Client:
    """A client of one server. All seats of a client share one thread; every method may be called from any thread."""

    def __init__(
        self,
        url: Union[str, Sequence[str]],
        *,
        token: Optional[str] = None,
        token_file: Union[str, Path, None] = None,
        token_source: Union[TokenSource, LicenseKey, None] = None,
        ca_file: Union[str, Path, None] = None,
        connect_timeout: float = 5.0,
    ) -> None:
        """Describes the server at ``url``; sends no request and starts no thread.

        :param url: ``http://HOST:PORT`` or ``https://HOST:PORT``, or a list of nodes of one installation. The client
            stays with one node; after a failed connection, or a 503 without ``Retry-After``, the next node takes over.
        :param token: a fixed bearer token.
        :param token_file: the file of the bearer token, read again when the server rejects the token.
        :param token_source: a function that returns a fresh bearer token, called for the first request and when the
            server rejects the token; one call at a time serves every seat. Or a ``LicenseKey``.
        :param ca_file: the certificate authorities in PEM; without it the system's authorities are trusted.
        :param connect_timeout: seconds for a connection to the server.
        """
        source = choose_source(token, token_file, token_source, None)
        self._connection = Connection(source, url, ca_file, connect_timeout)

    def license(self, key: str) -> License:
        """Returns the license with this key. No request is sent."""
        return License(self._connection, key)

    def wake(self) -> None:
        """Makes every seat ask the server at once, for a host that knows of a sleep or a new network."""
        self._connection.driver().wake()

    def close(self) -> None:
        """Gives every seat back within two seconds, and ends the threads of the client."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class License:
    """A license on one server."""

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection = connection
        self._key = key

    def __repr__(self) -> str:
        """Shows the last four characters of the key alone."""
        return f"License({masked(self._key)!r})"

    def acquire(
        self,
        *,
        machine: str,
        instance: Optional[str] = None,
        wait: Wait = None,
        patience: float = 10.0,
        user_agent: Optional[str] = None,
        metadata: Optional[dict[str, Any]] = None,
        on_change: Optional[Callback] = None,
    ) -> Seat:
        """Acquires a seat, and keeps it until it is given back.

        :param machine: a name of this machine that stays the same.
        :param instance: a name of this process, for licenses that count processes.
        :param wait: seconds to ask again while every seat is in use, or ``"forever"``.
        :param patience: seconds to try a server that does not answer; a longer ``wait`` prevails.
        :param user_agent: the program's name for itself, for the audit log.
        :param metadata: an object of the program's own, for the audit log: at most 4 KiB.
        :param on_change: a callback for ``Seat.on_change``.

        Raises ``Denied`` if the server refuses, and ``Offline`` if the server does not answer. An exception in the
        waiting thread, such as ``KeyboardInterrupt``, gives up and gives back a seat that came too late.
        """
        wanted = plan(self._key, machine, instance, wait, patience, user_agent, metadata)
        driver, shared = self._connection.driver(), Shared()
        seat = Seat(driver.start(wanted, shared), shared, driver, self._connection.dispatcher)
        try:
            state = shared.wait_for(lambda state: state.kind != "acquiring", None)
        except BaseException:
            driver.release(seat._key)
            raise
        raise_refusal(state, driver, seat._key)
        if on_change is not None:
            seat.on_change(on_change)
        return seat


def raise_refusal(state: Optional[State], driver: Driver, key: int) -> None:
    """Raises the error of an acquire that got no seat, and forgets the seat."""
    if state is None or state.kind == "released":
        raise Closed("the client is closed")
    if state.kind != "refused":
        return
    driver.release(key)
    if state.problem is not None:
        raise Denied(state.problem)
    raise Offline(f"the server cannot be reached: {state.failure.value if state.failure else 'no answer'}")

"""The client of one server, and requests for seats."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import dataclasses
import json
import os
import ssl
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Union

from . import _tokens
from ._core.clocks import SECOND
from ._core.door import DeviceDoor, Door, LicenseDoor
from ._core.plan import FOREVER, Plan
from ._core.state import State
from ._dispatcher import Callback, Dispatcher
from ._driver import Driver
from ._license_tokens import LicenseKey
from ._mask import masked
from ._shared import Shared
from ._slots import Slots
from ._state_dir import Base, Holder, Slot, StateDir
from ._tokens import TokenSource
from ._transport import Server
from ._version import SDK
from .errors import Closed, Denied, Misuse, NoResources, Offline
from .seat import RELEASE_TIMEOUT, Seat

#: Seconds to wait for a free seat; ``None`` takes the first denial as final, ``"forever"`` has no end.
Wait = Union[float, str, None]

#: The longest wait of a close, in seconds: a release takes two seconds at most.
CLOSE_TIMEOUT = 2.5
#: The longest name and the longest version of a program.
PROGRAM_CHARS_MAX = 100


class Connection:
    """The way to one server, with one thread for all seats; the base of ``Client`` and ``AsyncClient``."""

    def __init__(
        self,
        source: Union[_tokens.Fetch, LicenseKey],
        url: Union[str, Sequence[str]],
        ca_file: Union[str, Path, None],
        connect_timeout: float,
        program: Optional[dict[str, str]],
        event_streams: bool,
        state_dir: StateDir,
    ) -> None:
        tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else None
        urls = [url] if isinstance(url, str) else list(url)
        if not urls:
            raise Misuse("a client needs the address of a server")
        self._servers = [Server(address, tls, connect_timeout) for address in urls]
        self._source = source
        self._event_streams = event_streams
        self._first_url, self._state_dir = urls[0], state_dir
        self.slots = Slots(state_dir)
        #: The program, as an acquire names it to the server.
        self.program = program
        self._driver: Optional[Driver] = None
        #: Reentrant: a signal handler may acquire while its thread has the lock.
        self._opening = threading.RLock()
        self._pid = os.getpid()
        self._closed = False
        self.dispatcher = Dispatcher()

    def driver(self) -> Driver:
        """Returns the driver of this process, and starts it at the first call. Raises ``Closed``."""
        if os.getpid() != self._pid:
            # A forked child has the parent's memory without its threads, and locks in any state.
            self._opening, self.dispatcher = threading.RLock(), Dispatcher()
            self.slots = Slots(self._state_dir)
            self._driver, self._pid = None, os.getpid()
        with self._opening:
            if self._closed:
                raise Closed("the client is closed")
            if self._driver is None:
                try:
                    self._driver = Driver(self._servers, self._source, self._event_streams)
                except (OSError, RuntimeError, MemoryError) as error:
                    raise NoResources("the thread of the client cannot be started") from error
                atexit.register(self.close)
            return self._driver

    def slot_holder(self, plan: Plan) -> Optional[Holder]:
        """Returns the holder whose slots name a seat of one process; ``None`` for every other plan."""
        door = plan.door
        if not isinstance(door, LicenseDoor) or not door.per_process or door.instance_id is not None:
            return None
        return Holder(self._first_url, door.license_key, door.machine_id)

    def start(self, plan: Plan, slot: Optional[Slot]) -> tuple[int, Shared, Driver]:
        """Starts an acquire, and returns the seat's key, its state and its driver. Raises ``Closed``."""
        if slot is not None and isinstance(plan.door, LicenseDoor):
            plan = dataclasses.replace(plan, door=dataclasses.replace(plan.door, instance_id=slot.instance_id))
        try:
            driver = self.driver()
            shared = Shared(driver.lock, slot)
            return driver.start(plan, shared), shared, driver
        except Exception:
            # Not `BaseException`: an interrupt may come after the start, and the acquire then has the slot.
            if slot is not None:
                slot.close()
            raise

    def device_plan(self, door: DeviceDoor, wait: Wait, patience: float) -> Plan:
        """Returns the plan of an admission. Raises ``Misuse``."""
        if isinstance(self._source, LicenseKey):
            raise Misuse("a device needs the token of its subscriber: a license key opens licenses alone")
        check_texts(
            device_id=door.device_id,
            device_type=door.device_type,
            name=door.device_name,
            session=door.session_id,
            replace=door.replace_session_id,
        )
        return door_plan(door, wait, patience)

    def close(self) -> None:
        """Gives every seat back, and ends the threads; returns after ``CLOSE_TIMEOUT`` at the latest."""
        driver = self.start_close()
        if driver is not None:
            driver.join(CLOSE_TIMEOUT)

    def start_close(self) -> Optional[Driver]:
        """Starts to give every seat back; returns the driver that ends afterwards, if there is one."""
        if os.getpid() != self._pid:
            # A forked child has no thread, and the lock in any state.
            self._closed = True
            return None
        with self._opening:
            self._closed = True
            driver = self._driver
        if driver is not None:
            driver.ended.add_done_callback(self._finish_close)
            driver.close()
        return driver

    def _finish_close(self, _: object) -> None:
        # Not earlier: a program that ends meanwhile waits for the releases, and each change is told.
        atexit.unregister(self.close)
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
        given.append(_tokens.FileToken(Path(token_file)))
    if isinstance(token_source, LicenseKey):
        given.append(token_source)
    elif token_source is not None:
        given.append(_tokens.from_source(token_source, home))
    if len(given) != 1:
        raise Misuse("a client needs one of token, token_file and token_source")
    return given[0]


def choose_program(application: Optional[str], application_version: Optional[str]) -> Optional[dict[str, str]]:
    """Returns the name of the program for the audit log; ``None`` without a name. Raises ``Misuse``."""
    if application is None:
        if application_version is not None:
            raise Misuse("application_version needs application, the name of the program")
        return None
    program = {"name": application}
    if application_version is not None:
        program["version"] = application_version
    for part in program.values():
        if not 1 <= len(part) <= PROGRAM_CHARS_MAX or any(unicodedata.category(char) == "Cc" for char in part):
            raise Misuse(
                f"application and application_version have 1 to {PROGRAM_CHARS_MAX} characters, none of control"
            )
    return {**program, "sdk": SDK}


def license_plan(
    license_key: str,
    machine: str,
    instance: Optional[str],
    per_process: bool,
    wait: Wait,
    patience: float,
    user_agent: Optional[str],
    metadata: Optional[dict[str, Any]],
    client: Optional[dict[str, str]],
) -> Plan:
    """Returns the plan of an acquire. Raises ``Misuse``."""
    check_texts(license_key=license_key, machine=machine, instance=instance, user_agent=user_agent)
    if not machine:
        raise Misuse("machine is empty: want a name of this machine that stays the same")
    try:
        # A copy: the program may change its object while the acquire is sent again.
        sent = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise Misuse(f"metadata are no JSON: {error}") from error
    door = LicenseDoor(license_key, machine, instance, user_agent, sent, client, per_process)
    return door_plan(door, wait, patience)


def check_texts(**texts: Optional[str]) -> None:
    """Raises ``Misuse`` for an argument that is no text: nothing else can be sent."""
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise Misuse(f"{name} is of type {type(text).__name__}: want a text")


def door_plan(door: Door, wait: Wait, patience: float) -> Plan:
    if isinstance(wait, str) and wait != "forever":
        raise Misuse(f"wait is {wait!r}: want seconds, None or 'forever'")
    if (not isinstance(wait, str) and wait is not None and not wait >= 0) or not patience >= 0:
        raise Misuse("wait and patience are seconds from zero up")
    span = wait if wait is None else FOREVER if isinstance(wait, str) else _nanoseconds(wait)
    return Plan(door, span, _nanoseconds(patience))


@lru_cache(maxsize=64)
def _nanoseconds(seconds: float) -> int:
    """Returns the nanoseconds; seats with the same wait share the number."""
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
        application: Optional[str] = None,
        application_version: Optional[str] = None,
        event_streams: bool = True,
        state_dir: StateDir = Base.DEFAULT,
    ) -> None:
        """Describes the server at ``url``; sends no request and starts no thread.

        :param url: ``http://HOST:PORT`` or ``https://HOST:PORT``, or a list of nodes of one installation. A host beyond
            ASCII is written in its ASCII form, ``xn--…``. The client stays with one node; after a failed connection, a
            503 without ``Retry-After``, or the second 5xx in a row, the next node takes over.
        :param token: a fixed bearer token.
        :param token_file: the file of the bearer token, read again when the file changes, and when the server rejects
            the token.
        :param token_source: a function that returns a fresh bearer token, called for the first request and when the
            server rejects the token; one call at a time serves every seat. Or a ``LicenseKey``.
        :param ca_file: the certificate authorities in PEM; without it the system's authorities are trusted.
        :param connect_timeout: seconds for a connection to the server.
        :param application: the name of the program, for the audit log.
        :param application_version: the version of the program.
        :param event_streams: a connection for up to 100 seats stays open, and each seat hears of its end within a
            second. Without, no connection lasts, and a seat hears of its end at its next heartbeat.
        :param state_dir: the directory of the instance ids for ``acquire(per_process=True)``, which is used for nothing
            else. Left out: ``$XDG_STATE_HOME/seatkeeper`` or ``$HOME/.local/state/seatkeeper``; on macOS
            ``$HOME/Library/Application Support/Seatkeeper``; on Windows ``%LOCALAPPDATA%\\Seatkeeper``. With ``None``
            each acquire has a random instance id.
        """
        source = choose_source(token, token_file, token_source, None)
        program = choose_program(application, application_version)
        self._connection = Connection(source, url, ca_file, connect_timeout, program, event_streams, state_dir)

    def license(self, key: str) -> License:
        """Returns the license with this key. No request is sent."""
        return License(self._connection, key)

    def device(self, device_id: str, device_type: str, name: Optional[str] = None) -> Device:
        """Returns a device of the token's user. No request is sent.

        :param device_id: a name of the device that stays the same.
        :param device_type: ``mobile``, ``tv``, ``browser`` or ``tablet``.
        :param name: the owner's name for the device, which the other devices of the user show.
        """
        return Device(self._connection, device_id, device_type, name)

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
        per_process: bool = False,
        wait: Wait = None,
        patience: float = 10.0,
        user_agent: Optional[str] = None,
        metadata: Optional[dict[str, Any]] = None,
        on_change: Optional[Callback] = None,
    ) -> Seat:
        """Acquires a seat, and keeps it until it is given back.

        :param machine: a name of this machine that stays the same.
        :param instance: a name of this process, for licenses that count processes.
        :param per_process: a name of this process from the state directory, for licenses that count processes. A
            program that is started again after a crash gets its own seat back at once. A failed acquire frees the name
            before the error is raised, within two seconds. ``instance`` prevails.
        :param wait: seconds to ask again while every seat is in use, or ``"forever"``.
        :param patience: seconds to try a server that does not answer, with at least two for each try; a longer
            ``wait`` prevails.
        :param user_agent: the program's name for itself, for the audit log; prevails over ``application``.
        :param metadata: an object of the program's own, for the audit log: at most 4 KiB of JSON.
        :param on_change: a callback for ``Seat.on_change``.

        Raises ``Denied`` if the server refuses, and ``Offline`` if the server does not answer. An exception in the
        waiting thread, such as ``KeyboardInterrupt``, gives up and gives back a seat that came too late.
        """
        program = self._connection.program
        plan = license_plan(self._key, machine, instance, per_process, wait, patience, user_agent, metadata, program)
        return _hold(self._connection, plan, on_change)


class Device:
    """A device of the token's user, on one server."""

    def __init__(self, connection: Connection, device_id: str, device_type: str, name: Optional[str]) -> None:
        self._connection = connection
        self._device_id, self._device_type, self._name = device_id, device_type, name

    def admit(
        self,
        *,
        session: Optional[str] = None,
        replace: Optional[str] = None,
        wait: Wait = None,
        patience: float = 10.0,
        on_change: Optional[Callback] = None,
    ) -> Seat:
        """Takes a screen, and keeps it until it is given back.

        :param session: the ``session_id`` of the device's last seat, if the device remembers: a live session goes on.
        :param replace: the session of this subscriber that may end if all screens are in use; ``Denied.sessions`` has
            the choice.
        :param wait: seconds to ask again while every screen is in use, or ``"forever"``.
        :param patience: seconds to try a server that does not answer, with at least two for each try; a longer
            ``wait`` prevails.
        :param on_change: a callback for ``Seat.on_change``.

        Raises ``Denied`` if the server refuses, and ``Offline`` if the server does not answer.
        """
        door = DeviceDoor(self._device_id, self._device_type, self._name, session, replace)
        return _hold(self._connection, self._connection.device_plan(door, wait, patience), on_change)


def _hold(connection: Connection, plan: Plan, on_change: Optional[Callback]) -> Seat:
    """Acquires a seat, and waits for it."""
    holder = connection.slot_holder(plan)
    slot = None
    if holder is not None:
        # A release under way still has its slot.
        released = threading.Event()
        connection.driver().when_released(plan.door, lambda _: released.set())
        released.wait(RELEASE_TIMEOUT)
        slot = connection.slots.start(holder).wait()
    key, shared, driver = connection.start(plan, slot)
    seat = Seat(key, shared, driver, connection.dispatcher)
    try:
        state = shared.wait_for(lambda state: state.kind != "acquiring", None)
        if slot is not None and state is not None and state.kind == "refused":
            # A retry by another instance id may be denied for the session that the release ends.
            seat.release()
        raise_refusal(state)
        if on_change is not None:
            seat.on_change(on_change)
    except BaseException:
        with contextlib.suppress(Closed):
            driver.abandon(seat._key)
        raise
    return seat


def raise_refusal(state: Optional[State]) -> None:
    """Raises the error of an acquire that got no seat."""
    if state is None or state.kind == "released":
        raise Closed("the client is closed")
    if state.kind != "refused":
        return
    if state.problem is not None:
        raise Denied(state.problem)
    raise Offline(state.failure, state.request_id)

"""The client for programs on asyncio. Heartbeats run on a thread of the client: a blocked event loop loses no seat."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar, Union

from ._core.door import DeviceDoor
from ._core.events import Finish
from ._core.plan import Plan
from ._core.state import State
from ._license_tokens import LicenseKey
from ._mask import masked
from ._slots import SLOT_PATIENCE
from ._state_dir import Base, Slot, StateDir
from ._threads import post
from ._timeout import within
from ._tokens import TokenSource
from .client import CLOSE_TIMEOUT, Connection, Wait, choose_program, choose_source, license_plan, raise_refusal
from .errors import Closed
from .seat import RELEASE_TIMEOUT, SeatView

T = TypeVar("T")


class AsyncSeat(SeatView):
    """A seat of a license. Leaving its ``async with`` block gives the seat back."""

    async def states(self) -> AsyncIterator[State]:
        """Yields the present state and every change; ends after ``released``.

        After ``lost`` without ``retry`` nothing more comes, and the iteration ends, too. Raises ``Closed`` in a forked
        child.
        """
        self._require_ours()
        loop = asyncio.get_running_loop()
        states: asyncio.Queue[State] = asyncio.Queue()
        stop = self._shared.listen(lambda state: _tell(loop, states, state))
        try:
            while True:
                state = await states.get()
                yield state
                if state.kind in ("released", "refused") or (state.kind == "lost" and not state.retry):
                    return
        finally:
            stop()

    async def release(self) -> bool:
        """Gives the seat back, within two seconds. Returns true if the server confirmed."""
        if not self._start_release():
            return False
        return await _told(self._shared.when_finished, RELEASE_TIMEOUT) is Finish.GIVEN_BACK

    async def __aenter__(self) -> AsyncSeat:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await asyncio.shield(self.release())


class AsyncClient:
    """A client of one server for asyncio. All seats of a client share one thread."""

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
        """Describes the server at ``url``; must be called while the program's event loop runs.

        The parameters are those of ``Client``. ``token_source`` may be an ``async`` function, which runs on the event
        loop of the caller.
        """
        home = asyncio.get_running_loop()
        source = choose_source(token, token_file, token_source, home)
        program = choose_program(application, application_version)
        self._connection = Connection(source, url, ca_file, connect_timeout, program, event_streams, state_dir)

    def license(self, key: str) -> AsyncLicense:
        """Returns the license with this key. No request is sent."""
        return AsyncLicense(self._connection, key)

    def device(self, device_id: str, device_type: str, name: Optional[str] = None) -> AsyncDevice:
        """Returns a device of the token's user, as ``Client.device`` does. No request is sent."""
        return AsyncDevice(self._connection, device_id, device_type, name)

    def wake(self) -> None:
        """Makes every seat ask the server at once, for a host that knows of a sleep or a new network."""
        self._connection.driver().wake()

    async def close(self) -> None:
        """Gives every seat back within two seconds, and ends the threads of the client."""
        driver = self._connection.start_close()
        if driver is None:
            return
        await _told(driver.ended.add_done_callback, CLOSE_TIMEOUT)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await asyncio.shield(self.close())


class AsyncLicense:
    """A license on one server."""

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection = connection
        self._key = key

    def __repr__(self) -> str:
        """Shows the last four characters of the key alone."""
        return f"AsyncLicense({masked(self._key)!r})"

    async def acquire(
        self,
        *,
        machine: str,
        instance: Optional[str] = None,
        per_process: bool = False,
        wait: Wait = None,
        patience: float = 10.0,
        user_agent: Optional[str] = None,
        metadata: Optional[dict[str, Any]] = None,
    ) -> AsyncSeat:
        """Acquires a seat, and keeps it until it is given back. Parameters and errors are those of ``License.acquire``.

        A cancelled call gives up, and gives back a seat that came too late.
        """
        program = self._connection.program
        plan = license_plan(self._key, machine, instance, per_process, wait, patience, user_agent, metadata, program)
        return await _hold(self._connection, plan)


class AsyncDevice:
    """A device of the token's user, on one server."""

    def __init__(self, connection: Connection, device_id: str, device_type: str, name: Optional[str]) -> None:
        self._connection = connection
        self._device_id, self._device_type, self._name = device_id, device_type, name

    async def admit(
        self,
        *,
        session: Optional[str] = None,
        replace: Optional[str] = None,
        wait: Wait = None,
        patience: float = 10.0,
    ) -> AsyncSeat:
        """Takes a screen, and keeps it until it is given back. Parameters and errors are those of ``Device.admit``.

        A cancelled call gives up, and gives back a screen that came too late.
        """
        door = DeviceDoor(self._device_id, self._device_type, self._name, session, replace)
        return await _hold(self._connection, self._connection.device_plan(door, wait, patience))


async def _hold(connection: Connection, plan: Plan) -> AsyncSeat:
    """Acquires a seat, and waits for it."""
    slot = await _take_slot(connection, plan)
    key, shared, driver = connection.start(plan, slot)
    seat = AsyncSeat(key, shared, driver)
    loop = asyncio.get_running_loop()
    states: asyncio.Queue[State] = asyncio.Queue()
    stop = shared.listen(lambda state: _tell(loop, states, state))
    try:
        state = await states.get()
        while state.kind == "acquiring":
            state = await states.get()
        if slot is not None and state.kind == "refused":
            # A retry by another instance id may be denied for the session that the release ends.
            await seat.release()
        raise_refusal(state)
    except BaseException:
        with contextlib.suppress(Closed):
            driver.abandon(seat._key)
        raise
    finally:
        stop()
    return seat


async def _take_slot(connection: Connection, plan: Plan) -> Optional[Slot]:
    """Takes the instance id of a seat of one process on another thread, for the state directory may be a slow one."""
    holder = connection.slot_holder(plan)
    if holder is None:
        return None
    # A release under way still has its slot.
    await _told(partial(connection.driver().when_released, plan.door), RELEASE_TIMEOUT)
    call = connection.slots.start(holder)
    try:
        await _told(call.came.add_done_callback, SLOT_PATIENCE)
    except asyncio.CancelledError:
        call.give_up()
        raise
    return call.result()


async def _told(subscribe: Callable[[Callable[[T], None]], None], timeout: float) -> Optional[T]:
    """Waits for the first item that another thread tells; ``None`` after ``timeout`` seconds."""
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[T] = asyncio.Queue()
    subscribe(lambda item: _tell(loop, items, item))
    try:
        return await within(timeout, items.get())
    except asyncio.TimeoutError:
        return None


def _tell(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[T], item: T) -> None:
    # A program whose loop has ended reads no more items.
    post(loop, queue.put_nowait, item)

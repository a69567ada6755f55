"""A seat in the hands of a program."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Callable, Optional

from . import _clock, _fork
from ._core.clocks import SECOND
from ._core.events import Finish
from ._core.state import State
from ._dispatcher import Callback, Dispatcher, Relay
from ._driver import Driver, DriverThread
from ._shared import Shared
from .errors import Closed, Misuse, NotHeld, SeatLost

#: A release takes two seconds at most; the rest is for a busy host.
RELEASE_TIMEOUT = 5.0


class SeatView:
    """The part of a seat that needs no waiting; the base of ``Seat`` and ``AsyncSeat``."""

    __slots__ = ("__weakref__", "_driver", "_key", "_shared")

    def __init__(self, key: int, shared: Shared, driver: Driver) -> None:
        self._key = key
        self._shared = shared
        self._driver = driver

    @property
    def state(self) -> State:
        """The state of this instant.

        Raises ``Closed`` in a forked child, whose copy of the seat hears of no change.
        """
        self._require_ours()
        return self._shared.state()

    @property
    def is_valid(self) -> bool:
        """True while the program may go on: see ``check``."""
        return _clock.boot() < self._shared.valid_until and self._driver.forks == _fork.count

    @property
    def remaining(self) -> float:
        """Seconds until the deadline of this instant, with the sleep of the host counted; 0 without a valid seat."""
        return max(0, self._shared.valid_until - _clock.boot()) / SECOND if self._driver.is_ours else 0

    def check(self) -> None:
        """Returns while the program may go on; a seat in order costs less than a microsecond.

        Raises ``SeatLost`` after a loss, ``NotHeld`` in the other states without a seat, and ``Closed`` in a forked
        child, for the seat belongs to the parent.
        """
        # `is_valid`, without the price of the call.
        if _clock.boot() < self._shared.valid_until and self._driver.forks == _fork.count:
            return
        self._require_ours()
        state = self.state
        if state.kind == "lost":
            raise SeatLost(state.reason or "ended", state.by, state.retry, state.request_id)
        if state.kind == "released":
            raise NotHeld("released", "the seat is released: acquire another one")
        raise NotHeld("unconfirmed", "the seat is not confirmed: wait until its state is active again")

    def _require_ours(self) -> None:
        """Raises ``Closed`` in a forked child, whose copy of the seat never changes."""
        if not self._driver.is_ours:
            raise Closed("the seat belongs to the parent of this process")

    def activity(self) -> None:
        """Notes that the user did something; each later heartbeat tells the server the seconds since the last call.

        Cheap, from any thread, and sends nothing by itself. A program that never calls tells the server nothing.
        """
        self._shared.active_at = _clock.boot()

    def leave(self) -> None:
        """Stops the heartbeats without a release, if a second program of the machine keeps the seat.

        Without a second program the seat is free after the TTL. The seat is ``released`` soon after the call, and
        nothing gives the seat back any more: neither ``release`` nor the end of the ``with`` block. The call has no
        effect after a release, and in a forked child.
        """
        with contextlib.suppress(Closed):
            self._driver.leave(self._key)

    def _start_release(self) -> bool:
        """Starts the release, unless the client is closed and gives the seat back; returns false in a forked child."""
        with contextlib.suppress(Closed):
            self._driver.release(self._key)
        return self._driver.is_ours

    @property
    def session_id(self) -> Optional[str]:
        """The id of the session, which changes when the seat is acquired again."""
        lease = self._shared.lease
        return None if lease is None else lease.session

    @property
    def license_id(self) -> Optional[str]:
        """The id of the license."""
        lease = self._shared.lease
        return None if lease is None else lease.license_id

    @property
    def seats(self) -> Optional[tuple[int, int]]:
        """The seats in use and in total, at the time of the grant."""
        lease = self._shared.lease
        return None if lease is None else lease.seats

    @property
    def warning(self) -> Optional[str]:
        """The reason for which a seat of one process got a random instance id; ``None`` if all is well.

        The text begins with ``no-home``, ``unusable``, ``not-a-directory``, ``foreign-owner``,
        ``writable-by-others`` or ``no-free-slot``, and names the place.
        """
        return self._shared.slot.warning if self._shared.slot is not None else None


class Seat(SeatView):
    """A seat of a license. Leaving its ``with`` block gives the seat back.

    A seat is also given back by ``release``, by the ``close`` of its client, and at the end of the interpreter. After a
    crash of the program the server frees the seat once the TTL has passed.
    """

    __slots__ = ("_dispatcher",)

    def __init__(self, key: int, shared: Shared, driver: Driver, dispatcher: Dispatcher) -> None:
        super().__init__(key, shared, driver)
        self._dispatcher = dispatcher

    def on_change(self, callback: Callback) -> Callable[[], None]:
        """Tells ``callback`` the present state and every change; returns a function that ends this at once.

        The callback runs on a thread of the client, may be slow, and may call every method of the seat. Its errors go
        to the logger ``seatkeeper``. A deadline that merely moves is no change.

        Raises ``Misuse`` for a callback that cannot be called, ``NoResources`` without room for a thread, and
        ``Closed`` in a forked child.
        """
        if not callable(callback):
            raise Misuse(f"the callback of a seat is {type(callback).__name__}: want a function")
        self._require_ours()
        self._dispatcher.start()
        relay = Relay(self._dispatcher, callback)
        leave = self._shared.listen(relay)

        def stop() -> None:
            leave()
            relay.stop()

        return stop

    def wait_until_over(self, timeout: Optional[float] = None) -> Optional[State]:
        """Waits until the seat is lost or released, and returns that state; ``None`` after ``timeout`` seconds.

        Raises ``Closed`` in a forked child.
        """
        self._require_ours()
        return self._shared.wait_for(lambda state: state.kind in ("lost", "released"), timeout)

    def release(self) -> bool:
        """Gives the seat back, within two seconds.

        Returns true if the server confirmed. Otherwise the seat is free one TTL after the last heartbeat at the latest.
        A second call has no effect, and neither has a call in a forked child. A finalizer that runs on a thread of a
        client starts the release, and does not wait.
        """
        if not self._start_release():
            return False
        timeout = 0.0 if DriverThread.is_current() else RELEASE_TIMEOUT
        return self._shared.wait_for_finish(timeout) is Finish.GIVEN_BACK

    def __enter__(self) -> Seat:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.release()

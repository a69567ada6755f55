"""The state of one seat, shared by driver and program."""

from __future__ import annotations

import threading
import time
from typing import Callable, Optional, Union

from . import _clock
from ._core.events import Finish
from ._core.lease import Lease
from ._core.state import ACTIVE, State
from ._state_dir import Slot

#: A function that is told each change of a state.
Listener = Callable[[State], None]

#: The longest wait without a look, in seconds. A change may come between the look and the wait: a signal handler that
#: waits for another seat of the same driver frees the lock.
LOOK_AGAIN = 5.0


class Shared:
    """One seat's state, written by the driver alone.

    The seats of a driver share a lock, because a lock is large, and is held for a moment. The lock is reentrant: a
    signal handler may call a seat while its thread has the lock.
    """

    __slots__ = (
        "_changed",
        "_finish",
        "_finish_listeners",
        "_listening",
        "_lock",
        "_state",
        "_waiting",
        "active_at",
        "lease",
        "slot",
        "valid_until",
    )

    def __init__(self, lock: threading.RLock, slot: Optional[Slot] = None) -> None:
        #: The instance id of a seat of one process, which the driver closes after the release.
        self.slot = slot
        #: The end of validity on the clock that counts sleep, in nanoseconds; 0 is invalid.
        self.valid_until = 0
        #: The lease of the latest session. The program reads the members of the session alone, which never change.
        self.lease: Optional[Lease] = None
        #: The last activity of the user on the clock that counts sleep; ``None`` before the first. Set by the program.
        self.active_at: Optional[int] = None
        #: The latest state. ``ACTIVE`` stands for ``active`` with the deadline ``valid_until``.
        self._state = State("acquiring")
        self._finish: Optional[Finish] = None
        self._finish_listeners: tuple[Callable[[Finish], None], ...] = ()
        self._lock = lock
        #: Exists while somebody waits: a condition is larger than the rest of a seat.
        self._changed: Optional[threading.Condition] = None
        self._waiting = 0
        #: The only listener, as most seats have it, or all listeners: a tuple of one would take memory of its own.
        self._listening: Union[Listener, tuple[Listener, ...]] = ()

    def publish(self, state: State, told: bool) -> None:
        """Publishes a state; ``told`` tells the listeners."""
        with self._lock:
            self.valid_until = state.until or 0
            self._state = ACTIVE if state.kind == ACTIVE.kind else state
            listeners = self._listeners if told else ()
            if told:
                self._notify()
        for listener in listeners:
            listener(state)

    def finish(self, finish: Finish) -> None:
        """Publishes the result of the release."""
        with self._lock:
            self._finish = finish
            self._notify()
            listeners, self._finish_listeners = self._finish_listeners, ()
        for listener in listeners:
            listener(finish)

    def state(self) -> State:
        """Returns the state of this instant: ``active`` ends by itself at its deadline."""
        # A caller who found the seat invalid reads the state of the same change, or of a later one.
        with self._lock:
            state = self._published()
        if state.kind == "active" and state.until is not None and _clock.boot() >= state.until:
            return State("offline", since=state.until, until=state.until)
        return state

    def wait_for(self, wanted: Callable[[State], bool], timeout: Optional[float]) -> Optional[State]:
        """Waits for a state; ``None`` after ``timeout`` seconds."""
        with self._lock:
            self._wait_for(lambda: wanted(self._published()), timeout)
            state = self._published()
            return state if wanted(state) else None

    def wait_for_finish(self, timeout: float) -> Optional[Finish]:
        """Waits for the result of the release; ``None`` after ``timeout`` seconds."""
        with self._lock:
            self._wait_for(lambda: self._finish is not None, timeout)
            return self._finish

    def when_finished(self, listener: Callable[[Finish], None]) -> None:
        """Tells ``listener`` the result of the release: at once after the release, else on the driver's thread."""
        with self._lock:
            finish = self._finish
            if finish is None:
                self._finish_listeners = (*self._finish_listeners, listener)
        if finish is not None:
            listener(finish)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tells ``listener`` the present state, and every change on the driver's thread; returns a function to stop."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
            listener(self._published())

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return stop

    @property
    def _listeners(self) -> tuple[Listener, ...]:
        return self._listening if isinstance(self._listening, tuple) else (self._listening,)

    @_listeners.setter
    def _listeners(self, listeners: tuple[Listener, ...]) -> None:
        self._listening = listeners[0] if len(listeners) == 1 else listeners

    def _published(self) -> State:
        """Returns the latest state with its deadline."""
        return State(ACTIVE.kind, until=self.valid_until) if self._state is ACTIVE else self._state

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.notify_all()

    def _wait_for(self, happened: Callable[[], bool], timeout: Optional[float]) -> None:
        """Waits with the lock released."""
        if self._changed is None:
            self._changed = threading.Condition(self._lock)
        self._waiting += 1
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while not happened():
                left = LOOK_AGAIN if end is None else min(LOOK_AGAIN, end - time.monotonic())
                if left <= 0:
                    return
                self._changed.wait(left)
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                self._changed = None

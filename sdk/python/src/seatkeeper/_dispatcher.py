"""The thread that calls the program back, so that a slow callback delays no heartbeat."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Callable, Optional

from ._core.state import State
from .errors import NoResources

#: A function of the program that is told each change of state.
Callback = Callable[[State], object]

#: The changes of one registration that wait for a slow callback; older ones give way, except a loss.
WAITING_MAX = 16

_log = logging.getLogger("seatkeeper")
_log.addHandler(logging.NullHandler())


class Dispatcher:
    """Calls callbacks in the order of the changes, on one daemon thread that starts with the first callback."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: The changes that wait. A queue exists while its relay has changes: an empty one would be larger than a seat.
        self._waiting: dict[Relay, deque[State]] = {}
        #: The relay of each change. A relay that was stopped has turns without a change.
        self._turns: deque[Relay] = deque()
        self._thread: Optional[threading.Thread] = None
        self._closed = False

    def start(self) -> None:
        """Starts the thread, unless it runs or the dispatcher is closed. Raises ``NoResources``."""
        with self._changed:
            if self._closed or self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="seatkeeper-callbacks", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError) as error:
                raise NoResources("the thread for callbacks cannot be started") from error
            self._thread = thread

    def put(self, relay: Relay, state: State) -> None:
        """Queues a change for a relay that is not stopped, and never blocks."""
        with self._changed:
            if self._closed or relay.callback is None:
                return
            waiting = self._waiting.setdefault(relay, deque())
            if not _make_room(waiting):
                self._turns.append(relay)
            waiting.append(state)
            self._changed.notify()

    def drop(self, relay: Relay) -> None:
        """Stops a relay, and drops its changes that wait."""
        with self._changed:
            relay.callback = None
            self._waiting.pop(relay, None)

    def close(self) -> None:
        """Ends the thread after the changes that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            change = self._next()
            if change is None:
                return
            callback, state = change
            try:
                callback(state)
            except BaseException:  # a callback that calls `sys.exit` ends neither this thread nor the program
                _log.exception("a callback of the program failed; the seat is not affected")

    def _next(self) -> Optional[tuple[Callback, State]]:
        """Waits for the next change; ``None`` at the end of the dispatcher."""
        with self._changed:
            while True:
                while not self._turns:
                    if self._closed:
                        return None
                    self._changed.wait()
                relay = self._turns.popleft()
                waiting = self._waiting.get(relay)
                if waiting is None or relay.callback is None:
                    continue
                state = waiting.popleft()
                if not waiting:
                    del self._waiting[relay]
                return relay.callback, state


def _make_room(waiting: deque[State]) -> bool:
    """Drops the oldest change but a loss from a full queue; returns false if no change was dropped."""
    if len(waiting) >= WAITING_MAX:
        for place, state in enumerate(waiting):
            if state.kind != "lost":
                del waiting[place]
                return True
    return False


class Relay:
    """Queues the changes of a seat for one registration of a callback: a closure would be several times as large."""

    __slots__ = ("_dispatcher", "callback")

    def __init__(self, dispatcher: Dispatcher, callback: Callback) -> None:
        self._dispatcher = dispatcher
        #: ``None`` once the relay is stopped.
        self.callback: Optional[Callback] = callback

    def __call__(self, state: State) -> None:
        self._dispatcher.put(self, state)

    def stop(self) -> None:
        """Drops the changes that wait, and every later one. A call under way goes on."""
        self._dispatcher.drop(self)

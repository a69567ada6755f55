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

#: Changes that wait for a slow callback; older ones give way, except a loss.
WAITING_MAX = 16

_log = logging.getLogger("seatkeeper")
_log.addHandler(logging.NullHandler())


class Dispatcher:
    """Calls callbacks in the order of the changes, on one daemon thread that starts with the first callback."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callback, State]] = deque()
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

    def put(self, callback: Callback, state: State) -> None:
        """Queues a change for ``callback``, and never blocks."""
        with self._changed:
            if self._closed:
                return
            self._make_room(callback)
            self._waiting.append((callback, state))
            self._changed.notify()

    def close(self) -> None:
        """Ends the thread after the changes that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _make_room(self, callback: Callback) -> None:
        mine = [change for change in self._waiting if change[0] is callback]
        if len(mine) >= WAITING_MAX:
            old = next((change for change in mine if change[1].kind != "lost"), None)
            if old is not None:
                self._waiting.remove(old)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait()
                callback, state = self._waiting.popleft()
            try:
                callback(state)
            except BaseException:  # a callback that calls `sys.exit` ends neither this thread nor the program
                _log.exception("a callback of the program failed; the seat is not affected")


class Relay:
    """Queues the changes of a seat for a callback: a closure would be several times as large."""

    __slots__ = ("_callback", "_dispatcher")

    def __init__(self, dispatcher: Dispatcher, callback: Callback) -> None:
        self._dispatcher = dispatcher
        self._callback = callback

    def __call__(self, state: State) -> None:
        self._dispatcher.put(self._callback, state)

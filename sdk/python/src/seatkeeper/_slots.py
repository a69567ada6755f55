"""Slots that are taken on a thread, because a file server may hang."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from typing import Callable

from ._state_dir import Holder, Slot, StateDir, Unusable, base_directory, random_slot, take_slot

#: The longest wait of an acquire for a slot, in seconds.
SLOT_PATIENCE = 5.0


class Slots:
    """Takes the slots of a client, one at a time: a file server that hangs keeps one thread."""

    def __init__(self, state_dir: StateDir) -> None:
        self._state_dir = state_dir
        #: Locked by the thread that takes a slot.
        self._calls = threading.Lock()

    def start(self, holder: Holder) -> SlotCall:
        """Starts to take the first free slot of a license."""
        place = ""
        with contextlib.suppress(Unusable):
            # Without a base, the call ends before any call of the file system.
            place = base_directory(self._state_dir) or ""
        late = str(Unusable("unusable", place))
        return SlotCall(lambda: take_slot(self._state_dir, holder), late, self._calls)


class SlotCall:
    """A slot on its way. Either ``result`` or ``give_up`` ends the call; a slot that comes later is closed."""

    def __init__(self, take: Callable[[], Slot], late: str, calls: threading.Lock) -> None:
        self._take = take
        #: The warning of a slot that did not come in time.
        self._late = late
        self._calls = calls
        #: Cancelled by the end of a call without a slot.
        self.came: concurrent.futures.Future[Slot] = concurrent.futures.Future()
        thread = threading.Thread(target=self._run, name="seatkeeper-slot", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            # A state directory costs no seat.
            self.came.set_result(random_slot(late))

    def wait(self) -> Slot:
        """Waits for ``SLOT_PATIENCE`` at most, and returns the result."""
        try:
            concurrent.futures.wait([self.came], SLOT_PATIENCE)
        except BaseException:
            self.give_up()
            raise
        return self.result()

    def result(self) -> Slot:
        """Returns the slot, or a random id with a warning if the slot has not come."""
        return random_slot(self._late) if self.came.cancel() else self.came.result()

    def give_up(self) -> None:
        """Ends the call of an acquire that needs no slot any more."""
        if not self.came.cancel() and self.came.exception() is None:
            self.came.result().close()

    def _run(self) -> None:
        # Another call may hang. The acquire of this one waits no longer.
        if not self._calls.acquire(timeout=SLOT_PATIENCE):
            return
        try:
            if not self.came.cancelled():
                self._settle()
        finally:
            self._calls.release()

    def _settle(self) -> None:
        try:
            slot = self._take()
        except Exception as error:
            if self.came.set_running_or_notify_cancel():
                self.came.set_exception(error)
            return
        if self.came.set_running_or_notify_cancel():
            self.came.set_result(slot)
        else:
            slot.close()

"""The thread of a client, which steps the machine of every seat and carries out the actions."""

from __future__ import annotations

import asyncio
import bisect
import concurrent.futures
import contextlib
import itertools
import logging
import random
import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, Optional, Union

from . import _clock, _fork
from ._connection import TransportError
from ._core.clocks import SECOND
from ._core.door import Door
from ._core.events import (
    Action,
    Answered,
    Cancel,
    Event,
    Failed,
    Finish,
    RefreshToken,
    Send,
    Signal,
    Tell,
)
from ._core.exchange import TOKEN_TIMEOUT
from ._core.machine import Machine
from ._core.plan import Plan
from ._core.request import Failure, Request, Response
from ._core.state import State, lost
from ._core.tokens import Rejected, TokenKeeper
from ._license_tokens import LicenseKey, LicenseTokens
from ._servers import Servers
from ._shared import Shared
from ._state_dir import Slot
from ._stream_groups import Member
from ._streams import Credentials, Streams
from ._threads import call_in_thread, post
from ._timeout import within
from ._tokens import Fetch, NoToken, TokenCache
from ._transport import Server
from .errors import Closed

#: The longest pause between two readings of the clocks: timers of the host do not count sleep.
LOOK_INTERVAL = SECOND
#: A tick may be late by this part of the interval between heartbeats, so that many seats share one tick.
SLACK_PART = 100
#: The longest delay of a tick: a machine takes a timer that is much later for a sleep of the host.
SLACK_MAX = SECOND
#: The longest wait of an acquire for releases of the same holder, in seconds: a release takes two seconds, and the rest
#: is for a busy host.
RELEASES_TIMEOUT = 2.5
#: The longest wait for the end of a slot, in seconds: a file server may hang.
SLOT_TIMEOUT = 1.0
#: The states of a seat in which an event stream follows its session.
STREAMED = ("active", "offline", "grace")

#: The reason of a loss by a failure of the client itself.
CLIENT_ENDED = "client_ended"

_log = logging.getLogger("seatkeeper")


class Entry(Member):
    """One seat of the driver. The order of entries is that of their timers."""

    __slots__ = (
        "finished",
        "flight",
        "machine",
        "sent_with",
        "shared",
        "slack",
        "token_owner",
        "wake_at",
        "wants_token",
    )

    def __init__(self, key: int, machine: Machine, shared: Shared, token_owner: str) -> None:
        super().__init__(key)
        self.machine = machine
        self.shared = shared
        self.token_owner = token_owner
        #: The time at which the next tick is due; 0 without a timer.
        self.wake_at = 0
        #: The longest delay of the tick.
        self.slack = 0
        self.flight: Optional[tuple[int, asyncio.Task[None]]] = None
        self.sent_with = 0
        self.wants_token = False
        #: The release is over. A slot may still be on its way.
        self.finished = False

    @property
    def latest_tick(self) -> int:
        """The latest time of the next tick."""
        return self.wake_at + self.slack

    def __lt__(self, other: Entry) -> bool:
        return (self.latest_tick, self.key) < (other.latest_tick, other.key)


class DriverThread(threading.Thread):
    """The thread of a driver. A finalizer may run on the thread, so no call waits there."""

    @classmethod
    def is_current(cls) -> bool:
        """Returns true on the thread of any driver."""
        return isinstance(threading.current_thread(), cls)


class Driver:
    """One daemon thread with an event loop of its own, for all seats of a client.

    The driver belongs to the process that started it: a forked child neither beats nor releases.
    """

    def __init__(self, servers: Sequence[Server], source: Union[Fetch, LicenseKey], event_streams: bool) -> None:
        """Starts the thread. No request is sent."""
        #: The forks at the start; more of them make a child.
        self.forks = _fork.count
        self._event_streams = event_streams
        self._addresses = servers
        self._source = source
        self._seats: dict[int, Entry] = {}
        #: The seats whose release is on its way, or whose slot is being closed.
        self._releasing: dict[int, Entry] = {}
        #: The earlier releases of the same holder, for which an acquire waits.
        self._blockers: dict[int, Sequence[asyncio.Future[Finish]]] = {}
        #: The slots of seats that end with the thread.
        self._late_slots: list[Slot] = []
        self._keys = itertools.count()
        #: The lock of every ``Shared``.
        self.lock = threading.RLock()
        #: The acquires on their way to the thread.
        self._starting: dict[int, Shared] = {}
        #: The seats with a timer, sorted. A heap would keep the timers that seats have replaced: a heartbeat replaces
        #: the timer of a deadline, which is minutes away.
        self._timers: list[Entry] = []
        #: The timer of the seat that is due first, and its time.
        self._timer: Optional[asyncio.TimerHandle] = None
        self._fires_at = 0
        #: One for each owner of a token with a seat.
        self._keepers: dict[str, TokenKeeper] = {}
        self._slept = _clock.now().slept
        self._closing: Optional[Callable[[], None]] = None
        # Tasks that no seat refers to; an event loop keeps weak references alone.
        self._work: set[asyncio.Task[None]] = set()
        #: Done once every seat has ended, at the end of the thread.
        self.ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        opened: concurrent.futures.Future[asyncio.BaseEventLoop] = concurrent.futures.Future()
        self._thread = DriverThread(target=self._run, args=(opened,), name="seatkeeper", daemon=True)
        try:
            self._thread.start()
            self._loop = opened.result()
        except BaseException:
            # After an interrupt, nobody else ends the thread.
            opened.add_done_callback(_stop)
            raise

    @property
    def is_ours(self) -> bool:
        """True in the process that started the driver."""
        return self.forks == _fork.count

    def start(self, plan: Plan, shared: Shared) -> int:
        """Starts an acquire, and returns the key of the seat. Raises ``Closed``."""
        key = next(self._keys)
        self._starting[key] = shared
        self._post(lambda: self._start(key, plan, shared))
        return key

    def release(self, key: int) -> None:
        """Starts the release of a seat. Raises ``Closed``."""
        self._post(lambda: self._step(key, Signal.RELEASE))

    def abandon(self, key: int) -> None:
        """Starts the release of a seat whose program has given up. Raises ``Closed``."""
        self._post(lambda: self._step(key, Signal.ABANDON))

    def leave(self, key: int) -> None:
        """Stops the heartbeats of a seat without a release. Raises ``Closed``."""
        self._post(lambda: self._leave(key))

    def when_released(self, door: Door, tell: Callable[[None], None]) -> None:
        """Calls ``tell`` on the thread once the releases of the same holder are over, and their slots closed.

        Calls ``tell`` after ``RELEASES_TIMEOUT`` at the latest. Raises ``Closed``.
        """
        self._post(lambda: self._keep(self._loop.create_task(self._tell_released(door, tell))))

    def wake(self) -> None:
        """Makes every seat ask the server at once. Raises ``Closed``."""
        self._post(self._wake)

    def close(self) -> None:
        """Starts the release of every seat; the thread ends afterwards."""
        with contextlib.suppress(Closed):
            self._post(self._release_all)

    def join(self, timeout: float) -> None:
        """Waits until the thread has ended, for ``timeout`` seconds at most; returns at once on a driver's thread."""
        if self.is_ours and not DriverThread.is_current():
            self._thread.join(timeout)

    def _post(self, call: Callable[[], None]) -> None:
        if not self.is_ours:
            raise Closed("the seat belongs to the parent of this process")
        if self._closing is not None or not post(self._loop, _guarded, call):
            raise Closed("the client is closed")

    def _run(self, opened: concurrent.futures.Future[asyncio.BaseEventLoop]) -> None:
        try:
            # On this thread: a loop of Windows that is made on the main thread takes over the signals of the program.
            self._loop = _new_loop()
        except BaseException as error:
            opened.set_exception(error)
            return
        opened.set_result(self._loop)
        try:
            asyncio.set_event_loop(self._loop)
            self._loop.set_exception_handler(_log_error)
            self._servers = Servers(self._addresses)
            self._streams = Streams(self._servers, self._credentials, self._hear)
            self._slot_closing = asyncio.Lock()
            self._tokens: Union[TokenCache, LicenseTokens]
            if isinstance(self._source, LicenseKey):
                self._tokens = LicenseTokens(self._servers, self._source)
            else:
                self._tokens = TokenCache(self._source)
            self._loop.run_forever()
            self._servers.close()
            self._loop.run_until_complete(_end_tasks(self._loop))
        except BaseException:
            # For example, the program has closed descriptors that are not its own.
            _log.exception("the thread of the client failed: every seat of the client is lost, and free after its TTL")
        finally:
            # From now on no call is accepted.
            self._closing = self._loop.stop
            while self._seats:
                shared = self._seats.popitem()[1].shared
                _guarded(partial(_end_failed, shared))
                self._close_at_end(shared)
            try:
                self._loop.close()
            except Exception:
                # A loop whose descriptors the program has closed. Otherwise its finalizer prints an error.
                asyncio.BaseEventLoop.close(self._loop)
            # The loop accepts calls until `close`, but runs no more of them.
            while self._starting:
                self._end_unsent(self._starting.popitem()[1])
            self.ended.set_result(None)
            # At last, because a file server may hang.
            for slot in self._late_slots:
                slot.close()

    def _start(self, key: int, plan: Plan, shared: Shared) -> None:
        self._starting.pop(key, None)
        if self._closing is not None:
            # Another thread closed the client between the check in `_post` and this call.
            self._end_unsent(shared)
            return
        machine = Machine(plan, _clock.now())
        entry = self._seats[key] = Entry(key, machine, shared, self._tokens.owner(plan.door.machine_id))
        self._blockers[key] = self._releases_of(plan.door)
        self._carry_out(entry, machine.begin())
        self._set_timer()

    def _end_unsent(self, shared: Shared) -> None:
        """Ends an acquire that has sent no request."""
        _guarded(lambda: shared.publish(State("released"), told=True))
        _guarded(lambda: shared.finish(Finish.GIVEN_BACK))
        self._close_at_end(shared)

    def _close_at_end(self, shared: Shared) -> None:
        if shared.slot is not None:
            self._late_slots.append(shared.slot)

    def _releases_of(self, door: Door) -> Sequence[asyncio.Future[Finish]]:
        """Returns the releases of the same holder that are on their way, and ends them within their budget.

        The server resumes the session of a holder that acquires again, so a late DELETE would end the new seat.
        """
        releases = []
        for key, entry in list(self._releasing.items()):
            if entry.machine.door.holder == door.holder:
                releases.append(self._loop.create_future())
                entry.shared.when_finished(releases[-1].set_result)
                self._step(key, Signal.RELEASE)
        return releases

    async def _tell_released(self, door: Door, tell: Callable[[None], None]) -> None:
        try:
            await _all_done(self._releases_of(door))
        finally:
            tell(None)

    def _wake(self) -> None:
        for key in list(self._seats):
            self._step(key, Signal.WAKE)

    def _release_all(self) -> None:
        self._closing = self._loop.stop
        for key in list(self._seats):
            self._step(key, Signal.RELEASE)
        self._stop_if_idle()

    def _leave(self, key: int) -> None:
        entry = self._seats.get(key)
        # A release under way goes on. The slot of a seat that was left may still be on its way.
        if entry is None or entry.finished or entry.machine.state(_clock.boot()).kind == "released":
            return
        if entry.flight is not None:
            entry.flight[1].cancel()
            entry.flight = None
        released = State("released")
        entry.shared.publish(released, told=True)
        self._finish(entry, Finish.UNCONFIRMED)
        self._wake_later(entry, 0, 0)
        self._follow(entry, released)
        self._set_timer()

    def _stop_if_idle(self) -> None:
        if self._closing is not None and not self._seats:
            self._loop.call_soon(self._closing)

    def _set_timer(self) -> None:
        """Sets the timer for the seat that is due first; a timer that fires sooner stays, and sets the next one."""
        if not self._seats:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            return
        now = _clock.boot()
        fires_at = now + LOOK_INTERVAL
        if self._timers:
            fires_at = min(fires_at, max(now, self._timers[0].latest_tick))
        if self._timer is not None:
            if self._fires_at <= fires_at:
                return
            self._timer.cancel()
        self._fires_at = fires_at
        self._timer = self._loop.call_later((fires_at - now) / SECOND, _guarded, self._tick)

    def _tick(self) -> None:
        """Fires the timers that are due; after a sleep of the host, steps every machine."""
        self._timer = None
        now = _clock.now()
        due: set[int] = set(self._seats) if now.slept_since(self._slept) else set()
        self._slept = now.slept
        while self._timers and self._timers[0].wake_at <= now.boot:
            entry = self._timers.pop(0)
            entry.wake_at = 0
            due.add(entry.key)
        for key in due:
            self._step(key, Signal.TICK)
        self._set_timer()

    def _step(self, key: int, event: Event) -> None:
        entry = self._seats.get(key)
        if entry is not None and not entry.finished:
            if isinstance(event, (Answered, Failed)) and entry.flight is not None and entry.flight[0] == event.request:
                entry.flight = None
                if isinstance(event, Answered) and 200 <= event.response.status <= 299:
                    # The machine cancels a heartbeat that is in flight when the end of its session is told.
                    entry.hear_alive()
            # Jitter needs no secret randomness.
            jitter = random.random()  # noqa: S311
            if entry.shared.active_at is not None:
                entry.machine.note_activity(entry.shared.active_at)
            self._carry_out(entry, entry.machine.step(event, _clock.now(), jitter))
            self._set_timer()

    def _carry_out(self, entry: Entry, actions: Sequence[Action]) -> None:
        told = False
        for action in actions:
            if isinstance(action, Send):
                self._send(entry, action.request)
            elif isinstance(action, Cancel):
                self._cancel(entry, action.request)
            elif isinstance(action, RefreshToken):
                self._refresh_token(entry)
            elif isinstance(action, Tell):
                told = True
            else:
                self._finish(entry, action)
        self._publish(entry, told)

    def _keeper(self, owner: str) -> TokenKeeper:
        return self._keepers.setdefault(owner, TokenKeeper())

    def _send(self, entry: Entry, request: Request) -> None:
        entry.sent_with = self._keeper(entry.token_owner).current
        task = self._loop.create_task(self._exchange(entry, request))
        entry.flight = (request.id, task)
        self._keep(task)

    async def _exchange(self, entry: Entry, request: Request) -> None:
        event: Event
        try:
            await _all_done(self._blockers.get(entry.key, ()))
            self._blockers.pop(entry.key, None)
            event = Answered(request.id, await self._answer(entry.token_owner, request))
        except TransportError as error:
            event = Failed(request.id, error.failure)
        except asyncio.TimeoutError:
            event = Failed(request.id, Failure.TIMEOUT)
        except NoToken as error:
            event = _without_token(request, error)
        except Exception:
            _log.exception("a request failed in a way that the client does not know")
            event = Failed(request.id, Failure.GARBAGE)
        _guarded(lambda: self._step(entry.key, event))

    async def _answer(self, owner: str, request: Request) -> Response:
        deadline = self._loop.time() + request.timeout / SECOND
        token: Optional[str] = None
        if request.call.bearer:
            token = self._tokens.at_hand(owner)
            if token is None:
                token = await within(request.timeout / SECOND, self._tokens.current(owner))
        return await self._servers.send(request.call, token, deadline - self._loop.time())

    def _cancel(self, entry: Entry, request: int) -> None:
        if entry.flight is not None and entry.flight[0] == request:
            entry.flight[1].cancel()
            entry.flight = None

    def _refresh_token(self, entry: Entry) -> None:
        rejected = self._keeper(entry.token_owner).reject(entry.sent_with)
        if rejected is Rejected.SUPERSEDED:
            self._loop.call_soon(_guarded, lambda: self._step(entry.key, Signal.TOKEN_READY))
            return
        entry.wants_token = True
        if rejected is Rejected.REFRESH:
            self._keep(self._loop.create_task(self._refresh(entry.token_owner)))

    async def _refresh(self, owner: str) -> None:
        try:
            fresh = await within(TOKEN_TIMEOUT / SECOND, self._tokens.refresh(owner))
        except asyncio.TimeoutError:
            fresh = False
        self._keeper(owner).finish(fresh)
        event = Signal.TOKEN_READY if fresh else Signal.TOKEN_FAILED
        for key, entry in list(self._seats.items()):
            if entry.wants_token and entry.token_owner == owner:
                entry.wants_token = False
                self._step(key, event)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def _finish(self, entry: Entry, finish: Finish) -> None:
        entry.finished = True
        slot = entry.shared.slot
        if slot is None or not slot.is_locked:
            self._end(entry, finish)
        else:
            self._releasing[entry.key] = entry
            self._keep(self._loop.create_task(self._end_after(slot, entry, finish)))

    async def _end_after(self, slot: Slot, entry: Entry, finish: Finish) -> None:
        """Ends a seat once its slot is closed, and after ``SLOT_TIMEOUT`` at the latest."""
        closing = self._loop.create_task(self._close_slot(slot))
        self._keep(closing)
        await asyncio.wait([closing], timeout=SLOT_TIMEOUT)
        self._end(entry, finish)

    async def _close_slot(self, slot: Slot) -> None:
        """Closes a slot on a thread, because a file server may hang; all slots together have one thread at a time."""
        async with self._slot_closing:
            try:
                await call_in_thread(slot.close)
            except (RuntimeError, MemoryError):
                slot.close()

    def _end(self, entry: Entry, finish: Finish) -> None:
        del self._seats[entry.key]
        self._releasing.pop(entry.key, None)
        self._blockers.pop(entry.key, None)
        owner = entry.token_owner
        if owner and not any(other.token_owner == owner for other in self._seats.values()):
            self._keepers.pop(owner, None)
        entry.shared.finish(finish)
        self._stop_if_idle()

    def _publish(self, entry: Entry, told: bool) -> None:
        """Publishes the state of a seat, and sets its timer."""
        machine = entry.machine
        if machine.lease is not None:
            entry.shared.lease = machine.lease
        state = machine.state(_clock.boot())
        if state.kind == "released" and not entry.finished:
            self._releasing[entry.key] = entry
        entry.shared.publish(state, told)
        wake_at = 0 if entry.finished else machine.wake_at() or 0
        slack = 0 if machine.lease is None else min(machine.lease.interval // SLACK_PART, SLACK_MAX)
        self._wake_later(entry, wake_at, slack)
        # After the timer: a stream is a help, and its failure must stop no heartbeat.
        self._follow(entry, state)

    def _wake_later(self, entry: Entry, wake_at: int, slack: int) -> None:
        """Replaces the timer of a seat; a ``wake_at`` of 0 sets none."""
        if (wake_at, slack) == (entry.wake_at, entry.slack):
            return
        if entry.wake_at:
            del self._timers[bisect.bisect_left(self._timers, entry)]
        entry.wake_at, entry.slack = wake_at, slack
        if wake_at:
            bisect.insort(self._timers, entry)

    def _follow(self, entry: Entry, state: State) -> None:
        """Follows the session of a held seat by an event stream, and that of no other seat."""
        lease = entry.machine.lease
        if entry.finished:
            self._streams.end(entry)
        elif self._event_streams and lease is not None and state.kind in STREAMED:
            self._streams.follow(entry, entry.token_owner, type(entry.machine.door), lease.session)
        else:
            self._streams.leave(entry)

    def _hear(self, key: int, event: Event) -> None:
        """Takes the news of a seat from its event stream."""
        _guarded(lambda: self._step(key, event))

    def _credentials(self, owner: str) -> Credentials:
        return Credentials(partial(self._tokens.current, owner), partial(self._peek_token, owner))

    def _peek_token(self, owner: str) -> tuple[int, Optional[str]]:
        return self._keeper(owner).current, self._tokens.peek(owner)


async def _all_done(releases: Sequence[asyncio.Future[Finish]]) -> None:
    """Waits for the end of releases, for ``RELEASES_TIMEOUT`` at most."""
    if releases:
        await asyncio.wait(releases, timeout=RELEASES_TIMEOUT)


def _new_loop() -> asyncio.BaseEventLoop:
    """Returns a loop of the standard library: the program's policy may make loops of another kind."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.SelectorEventLoop()


def _log_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs an error of a callback: the logger of asyncio would print the error."""
    _log.error("the event loop of the client: %s", context["message"], exc_info=context.get("exception"))


def _stop(opened: concurrent.futures.Future[asyncio.BaseEventLoop]) -> None:
    """Ends a thread that carries no seat."""
    if opened.exception() is None:
        opened.result().call_soon_threadsafe(opened.result().stop)


def _end_failed(shared: Shared) -> None:
    """Ends a seat whose client has failed."""
    kind = shared.state().kind
    if kind == "acquiring":
        shared.publish(State("released"), told=True)
    elif kind not in ("lost", "refused", "released"):
        shared.publish(lost(CLIENT_ENDED, None, retry=False), told=True)
    shared.finish(Finish.UNCONFIRMED)


def _without_token(request: Request, error: NoToken) -> Event:
    """Returns the outcome of a request whose token the server did not give.

    A refused license token refuses the acquire as well, but tells nothing of a session.
    """
    answer = error.answer
    if answer is None:
        return Failed(request.id, Failure.NO_TOKEN)
    is_transient = answer.status in (408, 429) or 500 <= answer.status <= 599
    if request.call.method == "POST" or is_transient:
        return Answered(request.id, answer)
    return Failed(request.id, Failure.NO_TOKEN)


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancels the tasks that are left, and waits until each has closed its connection."""
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _guarded(call: Callable[[], None]) -> None:
    """Keeps an error of the client itself from ending the thread of all seats."""
    try:
        call()
    except Exception:
        _log.exception("the client failed; its seats end at their deadlines")

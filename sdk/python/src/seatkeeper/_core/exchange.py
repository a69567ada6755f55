"""One request at a time: timer, request, at most one fresh token, answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from .clocks import SECOND, Now, after
from .events import Action, Answered, Cancel, Event, Failed, RefreshToken, Send, Signal
from .plan import Plan
from .request import Call, Failure, Request, Response
from .retry import Retry

#: The time that the token source has for a fresh token.
TOKEN_TIMEOUT = 30 * SECOND


class Context:
    """The input of one step besides its event, and the step's actions so far."""

    def __init__(
        self,
        plan: Plan,
        now: Now,
        jitter: float,
        next_request: int,
        active_at: Optional[int] = None,
        latest: Optional[str] = None,
    ) -> None:
        self.plan = plan
        self.now = now.boot
        self.jitter = jitter
        self.next_request = next_request
        #: The last activity of the user, if the program tells of activity.
        self.active_at = active_at
        #: The latest session that the machine was granted.
        self.latest = latest
        self.actions: list[Action] = []

    def acquire(self) -> Call:
        """Returns the call that acquires a seat, or finds the holder's session again."""
        return self.plan.door.acquire(self.latest)

    def act(self, action: Action) -> None:
        self.actions.append(action)

    def passed(self, point: int) -> bool:
        """Returns true at ``point`` and later."""
        return self.now >= point


@dataclass(frozen=True)
class InFlight:
    """A request is in flight. ``refreshed`` is set after the fresh token of this try."""

    request: int
    sent: int
    refreshed: bool


@dataclass(frozen=True)
class AwaitingToken:
    """The server rejected the token of this try, and the token source has until ``over`` for another."""

    over: int


#: The time at which the next try is sent, or the state of the present try. Nearly every seat waits at any moment, so
#: the time has no object around it.
Exchange = Union[int, InFlight, AwaitingToken]


@dataclass(frozen=True)
class Due:
    """The next try is due, or the fresh token has arrived."""

    refreshed: bool


@dataclass(frozen=True)
class Reply:
    """The request was answered."""

    response: Response
    sent: int
    refreshed: bool


#: The result of an event for an exchange; ``None`` if the event belongs to no request of the exchange.
Outcome = Union[Due, Reply, Failure, None]


def send(call: Call, timeout: int, refreshed: bool, retry: Retry, context: Context) -> Exchange:
    """Sends a request at once."""
    retry.count(context.now)
    request = context.next_request
    context.next_request += 1
    context.act(Send(Request(request, call, timeout)))
    return InFlight(request, context.now, refreshed)


def refresh_token(context: Context, over: Optional[int] = None) -> Exchange:
    """Asks the token source for another token, which counts until ``over``."""
    context.act(RefreshToken())
    return AwaitingToken(after(context.now, TOKEN_TIMEOUT) if over is None else over)


def cancel(exchange: Exchange, context: Context) -> bool:
    """Aborts a request on its way. Returns true if there was one."""
    if not isinstance(exchange, InFlight):
        return False
    context.act(Cancel(exchange.request))
    return True


def take(exchange: Exchange, event: Event, context: Context) -> Outcome:
    """Matches an event against the exchange."""
    if isinstance(exchange, int):
        if event is Signal.TICK and context.passed(exchange):
            return Due(refreshed=False)
    elif isinstance(exchange, InFlight):
        if isinstance(event, Answered) and event.request == exchange.request:
            return Reply(event.response, exchange.sent, exchange.refreshed)
        if isinstance(event, Failed) and event.request == exchange.request:
            return event.failure
    elif event is Signal.TOKEN_READY:
        return Due(refreshed=True)
    elif event is Signal.TOKEN_FAILED or (event is Signal.TICK and context.passed(exchange.over)):
        return Failure.NO_TOKEN
    return None


def wake_at(exchange: Exchange) -> Optional[int]:
    """Returns the time of the next try, or the end of the time for a fresh token.

    The driver ends a request in flight.
    """
    if isinstance(exchange, int):
        return exchange
    return exchange.over if isinstance(exchange, AwaitingToken) else None

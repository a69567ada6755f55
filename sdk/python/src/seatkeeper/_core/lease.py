"""A seat as the server granted it, and its deadline."""

from __future__ import annotations

from typing import Optional

from .answer import Grant, Renewal
from .clocks import SECOND, after, between, part

#: Heartbeats come no faster than this, whatever a server says.
INTERVAL_MIN = SECOND
#: The longest timeout of a heartbeat.
TIMEOUT_MAX = 10 * SECOND


def _interval(told: Optional[int], ttl: int) -> int:
    """Returns the interval told, if a heartbeat fits before the TTL; else a third of the TTL."""
    interval = told if told is not None and told < ttl else ttl // 3
    return max(interval, INTERVAL_MIN)


class Lease:
    """The session of a seat, with the terms of the last answer."""

    __slots__ = (
        "grace",
        "interval",
        "license_id",
        "reacquires",
        "release_code",
        "session",
        "total",
        "ttl",
        "until",
        "used",
    )

    def __init__(self, grant: Grant, sent: int) -> None:
        """Starts the lease of a grant whose request was sent at ``sent``."""
        self.session = grant.session
        self.license_id = grant.license_id
        # Two numbers are smaller than a tuple of them.
        self.used: Optional[int]
        self.total: Optional[int]
        self.used, self.total = grant.seats or (None, None)
        self.until = after(sent, grant.expires_in)
        self.ttl = grant.expires_in
        self.interval = _interval(grant.interval, grant.expires_in)
        self.grace = grant.grace
        self.reacquires = grant.reacquires
        #: The code that releases the session without a token: a secret.
        self.release_code = grant.release_code

    def renew(self, renewal: Renewal, sent: int) -> None:
        """Counts the TTL anew from ``sent``. Requests are sent one after the other, so ``sent`` never goes back."""
        if renewal.expires_in is not None:
            self.ttl = renewal.expires_in
        self.until = after(sent, self.ttl)
        known = min(self.interval, max(self.ttl // 3, INTERVAL_MIN))
        self.interval = _interval(known if renewal.interval is None else renewal.interval, self.ttl)
        if renewal.grace is not None:
            self.grace = renewal.grace
        if renewal.reacquires is not None:
            self.reacquires = renewal.reacquires

    def first_beat(self, sent: int, jitter: float) -> int:
        """Returns 0.3 to 1.0 of the interval after ``sent``, so that fleets that started together drift apart."""
        return after(sent, part(self.interval, between(0.3, 1.0, jitter)))

    def next_beat(self, sent: int, jitter: float) -> int:
        """Returns 0.9 to 1.0 of the interval after ``sent``."""
        return after(sent, part(self.interval, between(0.9, 1.0, jitter)))

    @property
    def seats(self) -> Optional[tuple[int, int]]:
        """The seats in use and in total, as the grant told."""
        return None if self.used is None or self.total is None else (self.used, self.total)

    @property
    def timeout(self) -> int:
        """The timeout of a heartbeat: a third of the interval, at most 10 s."""
        return min(self.interval // 3, TIMEOUT_MAX)

"""Retries: exponential backoff with full jitter, and a bound on tries."""

from __future__ import annotations

from typing import Optional

from .clocks import SECOND, after, between, part

#: Requests of one seat within any interval.
TRIES_MAX = 8
#: The bytes of a time.
TIME_BYTES = 8
#: The longest backoff before the second try; each later backoff doubles.
BACKOFF_FIRST = SECOND
#: The shortest wait that ``wait_before`` leaves of a longer ``Retry-After``: an answer needs its time, and ever
#: shorter halves of the rest would spend the tries of an interval.
WAIT_MIN = SECOND


class Retry:
    """The latest requests of one seat, and the failures since the last success."""

    __slots__ = ("_failures", "_sent")

    def __init__(self) -> None:
        #: The times of the requests. Numbers of their own would be three times as large.
        self._sent = b""
        self._failures = 0

    def count(self, now: int) -> None:
        """Counts a request that is sent now."""
        self._sent = (self._sent + now.to_bytes(TIME_BYTES, "big"))[-TRIES_MAX * TIME_BYTES :]

    def is_spent(self, now: int, interval: int) -> bool:
        """Returns true if a request now would be the ninth within an interval."""
        return now < self._free_at(interval)

    def succeed(self) -> None:
        """Starts the backoff anew; the bound on tries stays in force."""
        self._failures = 0

    def forget_before(self, point: int) -> None:
        """Forgets the requests before ``point``, an interval ago: such requests bound no later try."""
        while self._sent and self._oldest() < point:
            self._sent = self._sent[TIME_BYTES:]

    def after_failure(self, now: int, interval: int, retry_after: Optional[int], jitter: float) -> int:
        """Returns the time of the next try: ``retry_after`` or a backoff, whichever is longer, within the bound."""
        doubled = BACKOFF_FIRST << min(self._failures, 16)
        backoff = part(min(doubled, interval // 4), jitter)
        self._failures += 1
        return max(after(now, max(backoff, retry_after or 0)), self._free_at(interval))

    def _free_at(self, interval: int) -> int:
        """Returns the time from which on a request is not the ninth within an interval."""
        return after(self._oldest(), interval) if len(self._sent) == TRIES_MAX * TIME_BYTES else 0

    def _oldest(self) -> int:
        return int.from_bytes(self._sent[:TIME_BYTES], "big")


def wait_before(end: int, retry_after: Optional[int], now: int) -> Optional[int]:
    """Returns the part of ``retry_after`` that a holder waits before ``end``.

    Half of the rest at most, and ``WAIT_MIN`` at least. A holder that waits past ``end`` loses a seat that the server
    keeps.
    """
    return None if retry_after is None else min(retry_after, max((end - now) // 2, WAIT_MIN))


def after_hopeless(now: int, interval: int, jitter: float) -> int:
    """Returns the time of the next try after an answer that a quick retry cannot change."""
    return after(now, part(interval, between(0.9, 1.0, jitter)))

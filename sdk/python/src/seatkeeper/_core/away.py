"""Times that a heartbeat tells: how long the program was offline, and how long its user was idle."""

from __future__ import annotations

from typing import Optional

from .clocks import SECOND

#: The longest time that a server accepts: a year.
SECONDS_MAX = 31_536_000


def away(now: int, offline_since: Optional[int], active_at: Optional[int]) -> dict[str, int]:
    """Returns the times in whole seconds; empty if there is nothing to tell.

    :param offline_since: the start of the outage; ``None`` while the server is in reach.
    :param active_at: the last activity of the user; ``None`` if the program never told of one.
    """
    times = {}
    if active_at is not None:
        times["idle_seconds"] = _seconds(now - active_at)
    if offline_since is not None and now - offline_since >= SECOND:
        times["offline_seconds"] = _seconds(now - offline_since)
    return times


def _seconds(span: int) -> int:
    return min(max(span, 0) // SECOND, SECONDS_MAX)

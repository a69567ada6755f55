"""One refresh at a time for all seats of a client."""

from __future__ import annotations

import enum


class Rejected(enum.Enum):
    """The step after a token was rejected."""

    #: A fresh token came since the request was sent: send again at once.
    SUPERSEDED = enum.auto()
    #: A refresh is under way: wait for its result.
    WAIT = enum.auto()
    #: Start the refresh, and call ``TokenKeeper.finish`` with its result.
    REFRESH = enum.auto()


class TokenKeeper:
    """Coalesces refreshes: at most one at a time, for all seats of a client."""

    def __init__(self) -> None:
        #: The generation of the token to send; each fresh token has the next one.
        self.current = 0
        self._refreshing = False

    def reject(self, sent_with: int) -> Rejected:
        """Decides on a request that was sent with the token of ``sent_with`` and answered 401."""
        if sent_with < self.current:
            return Rejected.SUPERSEDED
        if self._refreshing:
            return Rejected.WAIT
        self._refreshing = True
        return Rejected.REFRESH

    def finish(self, fresh: bool) -> None:
        """Ends the refresh; ``fresh`` says that a token came."""
        self._refreshing = False
        if fresh:
            self.current += 1

"""Sessions that may live at the server although no phase holds their lease."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from .answer import Kind, Setback
from .door import Door
from .lease import Lease
from .request import Failure


@dataclass(frozen=True)
class Orphan:
    """The session of this holder that a release has to end. A holder has at most one live session."""

    #: The id of the last lease, whose session may live; ``None`` after a lost reply to an acquire. An acquire is
    #: idempotent by holder: another acquire tells the id, also that of an earlier session.
    session: Optional[str]
    #: The code that releases the session without a token.
    release_code: Optional[str] = field(default=None, repr=False)

    @classmethod
    def from_lease(cls, lease: Lease) -> Orphan:
        """Returns the session of ``lease``."""
        return cls(lease.session, lease.release_code)


#: The session of an acquire whose reply is lost.
UNKNOWN = Orphan(None)

#: Failures of requests that the server has not seen.
_UNSENT = frozenset(
    {Failure.REFUSED, Failure.CERTIFICATE, Failure.NO_RESOURCES, Failure.RESET_BEFORE_SEND, Failure.NO_TOKEN}
)


def after_failure(orphan: Optional[Orphan], failure: Failure) -> Optional[Orphan]:
    """Returns the orphan after an acquire without a response."""
    return orphan if failure in _UNSENT else UNKNOWN


def after_setback(orphan: Optional[Orphan], setback: Setback, door: Door) -> Optional[Orphan]:
    """Returns the orphan after an acquire without a grant.

    A server with every seat in use would have resumed a session of this holder.
    """
    if setback.kind is Kind.TRANSIENT and setback.in_doubt:
        return UNKNOWN
    if setback.kind is Kind.REFUSED and setback.problem is not None and setback.problem.code == door.full:
        return None
    return orphan

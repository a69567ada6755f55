"""The seat that a holder asks for."""

from __future__ import annotations

from typing import Optional

from .clocks import NEVER, SECOND
from .door import Door
from .slotted import slotted

#: A ``Plan.wait`` without an end.
FOREVER = NEVER


@slotted(frozen=True)
class Plan:
    """The request of a holder: a seat behind a door, and how long to try."""

    door: Door
    #: How long to ask again while every seat is in use: ``None`` takes the first denial as final.
    wait: Optional[int] = None
    #: How long to try a server that does not answer; a longer ``wait`` prevails.
    patience: int = 10 * SECOND

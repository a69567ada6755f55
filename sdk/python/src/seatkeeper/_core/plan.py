"""The seat that a holder asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from .clocks import NEVER, SECOND

#: A ``Plan.wait`` without an end.
FOREVER = NEVER


@dataclass(frozen=True)
class Plan:
    """The request of a holder: a seat of a license for a machine, and how long to try."""

    license_key: str = field(repr=False)
    machine_id: str
    #: The process on the machine, for licenses that count processes.
    instance_id: Optional[str] = None
    #: The program's name for itself, for the audit log.
    user_agent: Optional[str] = None
    #: An object of the program's own, for the audit log.
    metadata: Optional[dict[str, Any]] = None
    #: How long to ask again while every seat is in use: ``None`` takes the first denial as final.
    wait: Optional[int] = None
    #: How long to try a server that does not answer; a longer ``wait`` prevails.
    patience: int = 10 * SECOND

"""Requests of a holder, and their outcomes, as values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class Call:
    """A request without its number and timeout."""

    method: str
    path: str
    #: The body of an acquire has the license key, and that of a release by code the code: no ``repr`` shows a body.
    body: Optional[dict[str, Any]] = field(default=None, repr=False)
    #: False for a request that goes without a bearer token.
    bearer: bool = True


@dataclass(frozen=True)
class Request:
    """A request for the driver to send with the bearer token of the moment."""

    #: The number of the request; no two requests of one machine share a number.
    id: int
    call: Call
    #: The driver fails the request with ``Failure.TIMEOUT`` after this many nanoseconds.
    timeout: int


@dataclass(frozen=True)
class Response:
    """An HTTP response that arrived whole."""

    status: int
    #: The header ``Retry-After`` in seconds, if the header is a number.
    retry_after: Optional[int]
    body: bytes
    #: The header ``X-Request-Id``: the id of the request in the server's log.
    request_id: Optional[str] = None


class Failure(enum.Enum):
    """The way in which a request got no response; the value is a sentence for people."""

    REFUSED = "the connection was refused"
    CERTIFICATE = (
        "the server's certificate was not accepted: name a CA file that vouches for the certificate, "
        "or correct the certificate's name and dates"
    )
    NO_RESOURCES = "this process has no file descriptor or no memory for a connection"
    RESET_BEFORE_SEND = "the connection broke before the request was sent"
    RESET_AFTER_SEND = "the connection broke before the answer"
    TIMEOUT = "no answer in time"
    TRUNCATED = "the answer broke off"
    GARBAGE = "the answer is not one of a Seatkeeper server"
    NO_TOKEN = "the token source has no token"
    UNAVAILABLE = "the server cannot answer now"

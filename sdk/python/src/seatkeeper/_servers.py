"""The servers of a client: equal nodes, of which one is in use until it does not serve."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Optional

from ._connection import TransportError
from ._core.request import Call, Failure, Response
from ._transport import Server, Transport


class Servers:
    """Sends each request to the node in use; a node that does not serve is left for the next node of the list."""

    def __init__(self, servers: Sequence[Server]) -> None:
        """Must be called on the thread of the event loop that sends the requests."""
        self._nodes = [Transport(server) for server in servers]
        #: The number of changes of the node in use. A late answer belongs to its turn: the node may be in use again.
        self._turn = 0
        #: The 5xx in a row of the node in use.
        self._unavailable = 0

    @property
    def in_use(self) -> Transport:
        """The node in use."""
        return self._nodes[self._turn % len(self._nodes)]

    async def send(self, call: Call, token: Optional[str], timeout: float) -> Response:
        """Sends one request and returns its response. Raises ``TransportError``; a cancelled call aborts.

        After a refused connection the next node gets the request. After another failure, a 503 without
        ``Retry-After``, or the second 5xx in a row, the next node gets the next request: a node that is cut off tells
        ``Retry-After`` with every 503.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        last = TransportError(Failure.REFUSED)
        for _ in self._nodes:
            turn = self._turn
            try:
                response = await self.in_use.send(call, token, max(0.0, deadline - loop.time()))
            except TransportError as error:
                if error.failure is Failure.NO_RESOURCES:
                    # Another node would get no connection either.
                    raise
                self._leave(turn)
                if error.failure is not Failure.REFUSED:
                    raise
                last = error
                continue
            self._count(turn, response)
            return response
        raise last

    def close(self) -> None:
        """Closes the connections that rest."""
        for node in self._nodes:
            node.close()

    def _count(self, turn: int, response: Response) -> None:
        """Leaves a node that cannot serve; a late answer of a node that was left counts for nothing."""
        if self._turn != turn:
            return
        # Every node answers 501 and 505 alike.
        is_unavailable = response.status >= 500 and response.status not in (501, 505)
        self._unavailable = self._unavailable + 1 if is_unavailable else 0
        if self._unavailable > 1 or (response.status == 503 and response.retry_after is None):
            self._leave(turn)

    def _leave(self, turn: int) -> None:
        """Puts the next node in use, unless another request has ended the turn already."""
        if self._turn == turn:
            self._turn += 1
            self._unavailable = 0

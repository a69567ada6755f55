"""License tokens: the client trades a license key for a short-lived token of one machine."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass
from typing import Optional

from . import _clock
from ._connection import TransportError
from ._core import problem as problems
from ._core.clocks import SECOND
from ._core.request import Call, Failure, Response
from ._mask import masked
from ._servers import Servers
from ._tokens import NoToken, is_token

PATH = "/api/v1/licenses/token"
#: The timeout of a request for a token, in seconds.
TIMEOUT = 10.0
#: The pause after a failed replacement ahead of time, in nanoseconds.
PAUSE = 10 * SECOND
#: The number of machines above which expired tokens are dropped.
MACHINES_KEPT = 64

REMEDIES = {
    "license-not-found": (
        "no license token: the key or the tenant is unknown, or the license is suspended, expired or closed to license "
        "tokens. Check the key and the tenant; an operator opens a license with "
        "`seatkeeper license update LICENSE_ID --clients key`"
    ),
    "not-found": (
        "the server issues no license tokens: an operator sets auth.license_token_key_file on every node; "
        "else give the client a user's token"
    ),
}


@dataclass(frozen=True)
class LicenseKey:
    """The key of a license that issues license tokens (``--clients key``), as the ``token_source`` of a client.

    A program with the key needs no other token.
    """

    key: str
    #: The tenant that owns the license; ``None`` is the tenant ``default``.
    tenant: Optional[str] = None

    def __repr__(self) -> str:
        """Shows the last four characters of the key alone."""
        return f"LicenseKey({masked(self.key)!r}, tenant={self.tenant!r})"


@dataclass(frozen=True)
class _Token:
    """A token. Times are readings of the clock that counts sleep."""

    text: str
    renew_at: int
    over_at: int


class _Slot:
    """The token of one machine."""

    def __init__(self) -> None:
        #: Held during a request for a token, so that one request serves all seats.
        self.fetching = asyncio.Lock()
        self.token: Optional[_Token] = None
        #: The time before which no replacement ahead of time is tried.
        self.pause_until = 0

    def good(self) -> Optional[_Token]:
        """Returns the token if its life is not over."""
        return self.token if self.token is not None and _clock.boot() < self.token.over_at else None


class LicenseTokens:
    """A license token for each machine of a client."""

    def __init__(self, servers: Servers, key: LicenseKey) -> None:
        self._servers = servers
        self._key = key
        self._machines: dict[str, _Slot] = {}
        self._work: set[asyncio.Task[None]] = set()

    def owner(self, machine_id: Optional[str]) -> str:
        """Returns the name under which the token of a machine is cached."""
        return machine_id or ""

    def at_hand(self, machine_id: str) -> Optional[str]:
        """Returns the token of a machine if ``current`` would return it without a request."""
        slot = self._machines.get(machine_id)
        token = slot.good() if slot is not None else None
        return token.text if token is not None and _clock.boot() < token.renew_at else None

    async def current(self, machine_id: str) -> str:
        """Returns the token of a machine. Raises ``NoToken`` and ``TransportError``.

        A token in the last fifth of its life is returned as well, and replaced in the background, so that no heartbeat
        waits for the replacement.
        """
        slot = self._slot(machine_id)
        token = slot.good()
        if token is not None:
            if _clock.boot() >= token.renew_at:
                self._renew(machine_id, slot)
            return token.text
        async with slot.fetching:
            token = slot.good() or await self._fetch(machine_id, slot)
            return token.text

    def peek(self, machine_id: str) -> Optional[str]:
        """Returns the token of the moment, and asks for none."""
        slot = self._machines.get(machine_id)
        token = slot.good() if slot is not None else None
        return token.text if token is not None else None

    async def refresh(self, machine_id: str) -> bool:
        """Replaces a token that the server rejected; returns false without a new token."""
        slot = self._slot(machine_id)
        async with slot.fetching:
            return await self._try_fetch(machine_id, slot)

    def _renew(self, machine_id: str, slot: _Slot) -> None:
        """Replaces the token in the background, unless a request for a token is in flight or failed a moment ago."""
        if slot.fetching.locked() or _clock.boot() < slot.pause_until:
            return
        # A second renewal is barred before the task runs.
        slot.pause_until = _clock.boot() + PAUSE
        task = asyncio.ensure_future(self._renewed(machine_id, slot))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _renewed(self, machine_id: str, slot: _Slot) -> None:
        async with slot.fetching:
            await self._try_fetch(machine_id, slot)

    async def _try_fetch(self, machine_id: str, slot: _Slot) -> bool:
        try:
            await self._fetch(machine_id, slot)
        except (NoToken, TransportError):
            return False
        return True

    async def _fetch(self, machine_id: str, slot: _Slot) -> _Token:
        """Asks the server for a token, and keeps it.

        A refusal drops the old token, which the server rejects as well.
        """
        began = _clock.boot()
        body = {"license_key": self._key.key, "machine_id": machine_id}
        if self._key.tenant is not None:
            body["tenant"] = self._key.tenant
        answer = await self._servers.send(Call("POST", PATH, body), None, TIMEOUT)
        if answer.status != 200:
            if 400 <= answer.status <= 499 and answer.status not in (408, 429):
                slot.token = None
            raise NoToken("the server gave no license token", _explained(answer))
        members = problems.parse_object(answer.body) or {}
        text, life = problems.text(members, "token"), problems.whole(members, "expires_in_seconds")
        if text is None or life is None or not is_token(text):
            raise TransportError(Failure.GARBAGE)
        slot.token = _Token(text, began + life * SECOND * 4 // 5, began + life * SECOND)
        return slot.token

    def _slot(self, machine_id: str) -> _Slot:
        slot = self._machines.get(machine_id)
        if slot is None:
            if len(self._machines) >= MACHINES_KEPT:
                kept = self._machines.items()
                self._machines = {name: slot for name, slot in kept if slot.good() or slot.fetching.locked()}
            slot = self._machines[machine_id] = _Slot()
        return slot


def _explained(answer: Response) -> Response:
    """Adds the remedy to the server's refusal of a license token."""
    problem, members = problems.parse(answer.status, answer.body), problems.parse_object(answer.body)
    if problem is None or members is None or problem.code not in REMEDIES:
        return answer
    body = json.dumps({**members, "detail": REMEDIES[problem.code]}).encode()
    return dataclasses.replace(answer, body=body)

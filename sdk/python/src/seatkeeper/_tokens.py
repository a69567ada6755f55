"""Sources of bearer tokens, and the token of the moment."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, Callable, Optional, Union

from ._core.clocks import SECOND
from ._core.exchange import TOKEN_TIMEOUT
from ._core.request import Response
from ._threads import Gate
from ._timeout import within

#: A function that returns a fresh bearer token, or an awaitable of one.
TokenSource = Callable[[], Union[str, Awaitable[str]]]
#: The shortest pause between two looks at the file of a token, in seconds.
LOOK_INTERVAL = 1.0
#: The longest wait of a request for the file of a token, in seconds: a file server may hang.
LOOK_PATIENCE = 1.0
#: Fetches a token on the thread of the driver.
Fetch = Callable[[], Coroutine[Any, Any, str]]


class NoToken(Exception):
    """The token source has no token."""

    def __init__(self, message: str = "", answer: Optional[Response] = None) -> None:
        super().__init__(message)
        #: The server's answer to a request for a license token.
        self.answer = answer


def is_token(text: str) -> bool:
    """Returns true for one line of ASCII without spaces."""
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


def from_text(token: str) -> Fetch:
    """Returns a source of one fixed token."""

    async def fetch() -> str:
        return token

    return fetch


class FileToken:
    """A source that reads a file at each refresh, and when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: Identity, time of change and size of the file at the last reading.
        self._read: Optional[tuple[int, int, int]] = None
        self._look_at = 0.0
        self._gate = Gate()

    async def __call__(self) -> str:
        def read() -> tuple[tuple[int, int, int], str]:
            # A change after the look is seen by the next look.
            return self._look(), self._path.read_text(encoding="utf-8")

        self._read, text = await self._gate.call(read)
        return text

    def is_due(self) -> bool:
        """Returns true once per ``LOOK_INTERVAL``, when the next look is due."""
        now = asyncio.get_running_loop().time()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_INTERVAL
        return True

    async def has_changed(self) -> bool:
        """Looks at the file; returns false without an answer of the file system."""
        try:
            return await self._gate.call(self._look) != self._read
        except (OSError, RuntimeError):
            return False

    def _look(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size


def from_source(source: TokenSource, home: Optional[asyncio.AbstractEventLoop]) -> Fetch:
    """Returns a source that calls the program's function; its awaitable runs on the program's loop ``home``.

    A function that hangs is not called again before its end.
    """
    gate = Gate()

    async def fetch() -> str:
        token = await gate.call(source)
        if isinstance(token, str):
            return token
        if home is None:
            raise NoToken("an awaitable token needs an AsyncClient")
        return await _answer(asyncio.run_coroutine_threadsafe(_settle(token), home))

    return fetch


async def _settle(token: Awaitable[str]) -> str:
    return await token


async def _answer(call: concurrent.futures.Future[str]) -> str:
    """Returns the answer of a call on the program's loop. Raises ``NoToken`` if the program cancels the call or exits.

    ``CancelledError`` would cancel the request that needs the token, and ``SystemExit`` would end the thread of all
    seats.
    """
    answer = asyncio.wrap_future(call)
    try:
        await asyncio.wait([answer])
    finally:
        # A call that takes too long is cancelled.
        answer.cancel()
    if answer.cancelled():
        raise NoToken("the program cancelled its token source")
    error = answer.exception()
    if error is not None:
        raise NoToken from error
    return answer.result()


class TokenCache:
    """The token of the moment, fetched once for all requests that need it."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._current: Optional[str] = None
        #: The call of the source in progress, which goes on after each caller has given up.
        self._fetching: Optional[asyncio.Task[Union[str, NoToken]]] = None
        #: The look at the file in progress. A file server that hangs gets no second one.
        self._looking: Optional[asyncio.Task[None]] = None

    def owner(self, machine_id: Optional[str]) -> str:
        """Returns one name for all machines: they share the token."""
        return ""

    def at_hand(self, owner: str) -> Optional[str]:
        """Returns the token of the moment if ``current`` would return it without a wait."""
        return None if isinstance(self._fetch, FileToken) else self._current

    async def current(self, owner: str) -> str:
        """Returns the token of the moment; the first call, or a file that changed, fetches it. Raises ``NoToken``.

        A file that answers after ``LOOK_PATIENCE`` replaces the token for a later request.
        """
        if self._current is None:
            return await self._renew()
        if isinstance(self._fetch, FileToken) and self._looking is None and self._fetch.is_due():
            self._looking = asyncio.ensure_future(self._renew_if_changed(self._fetch, owner))
            await asyncio.wait([self._looking], timeout=LOOK_PATIENCE)
        return self._current

    async def _renew_if_changed(self, file: FileToken, owner: str) -> None:
        try:
            if await file.has_changed():
                await self.refresh(owner)
        finally:
            self._looking = None

    def peek(self, owner: str) -> Optional[str]:
        """Returns the token of the moment, and fetches none."""
        return self._current

    async def refresh(self, owner: str) -> bool:
        """Replaces the token by a fresh one; returns false and keeps the old token if there is none."""
        try:
            await self._renew()
        except NoToken:
            return False
        return True

    async def _renew(self) -> str:
        """Replaces the token by a fresh one, with one call of the source for all callers. Raises ``NoToken``."""
        if self._fetching is None:
            self._fetching = asyncio.ensure_future(self._keep_fresh())
        fresh = await asyncio.shield(self._fetching)
        if isinstance(fresh, NoToken):
            raise fresh
        return fresh

    async def _keep_fresh(self) -> Union[str, NoToken]:
        """Fetches and keeps a token. Returns the error instead of raising it: perhaps no caller is left."""
        try:
            self._current = await self._fresh()
            return self._current
        except NoToken as error:
            return error
        finally:
            self._fetching = None

    async def _fresh(self) -> str:
        try:
            token = (await within(TOKEN_TIMEOUT / SECOND, self._fetch())).strip()
        except Exception as error:
            raise NoToken from error
        if not is_token(token):
            raise NoToken("a token is one line of ASCII")
        return token

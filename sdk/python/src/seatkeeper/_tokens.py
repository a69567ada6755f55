"""Sources of bearer tokens, and the token of the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Callable, Optional, Union

from ._core.request import Response
from ._threads import call_in_thread

#: A function that returns a fresh bearer token, or an awaitable of one.
TokenSource = Callable[[], Union[str, Awaitable[str]]]
#: Fetches a token on the thread of the driver.
Fetch = Callable[[], Awaitable[str]]


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


def from_file(path: Path) -> Fetch:
    """Returns a source that reads a file at each refresh."""

    async def fetch() -> str:
        return await call_in_thread(lambda: path.read_text(encoding="utf-8"))

    return fetch


def from_source(source: TokenSource, home: Optional[asyncio.AbstractEventLoop]) -> Fetch:
    """Returns a source that calls the program's function; its awaitable runs on the program's loop ``home``."""

    async def fetch() -> str:
        token = await call_in_thread(source)
        if isinstance(token, str):
            return token
        if home is None:
            raise NoToken("an awaitable token needs an AsyncClient")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_settle(token), home))

    return fetch


async def _settle(token: Awaitable[str]) -> str:
    return await token


class TokenCache:
    """The token of the moment, fetched once for all requests that need it."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._current: Optional[str] = None
        self._fetching = asyncio.Lock()

    def owner(self, machine_id: Optional[str]) -> str:
        """Returns one name for all machines: they share the token."""
        return ""

    async def current(self, owner: str) -> str:
        """Returns the token of the moment; the first call fetches it. Raises ``NoToken``."""
        if self._current is None:
            async with self._fetching:
                if self._current is None:
                    self._current = await self._fresh()
        return self._current

    def peek(self, owner: str) -> Optional[str]:
        """Returns the token of the moment, and fetches none."""
        return self._current

    async def refresh(self, owner: str) -> bool:
        """Replaces the token by a fresh one; returns false and keeps the old token if there is none."""
        try:
            self._current = await self._fresh()
        except NoToken:
            return False
        return True

    async def _fresh(self) -> str:
        try:
            token = (await self._fetch()).strip()
        except Exception as error:
            raise NoToken from error
        if not is_token(token):
            raise NoToken("a token is one line of ASCII")
        return token

"""Blocking calls beside an event loop, on daemon threads that never delay the end of the program."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")


class Gate:
    """Admits one call at a time: a function that hangs keeps one thread, also after every caller has given up."""

    def __init__(self) -> None:
        #: The latest call, also one whose caller has given up.
        self._latest: Optional[asyncio.Future[Any]] = None

    async def call(self, function: Callable[[], T]) -> T:
        """Calls ``function`` as ``start_in_thread`` does, after the end of the call before."""
        loop = asyncio.get_running_loop()
        # Nobody tells this loop of a call by an earlier loop, such as the loop of a forked parent.
        while self._latest is not None and self._latest.get_loop() is loop and not self._latest.done():
            await asyncio.wait([self._latest])
        call = self._latest = start_in_thread(function)
        return await asyncio.shield(call)


async def call_in_thread(function: Callable[[], T]) -> T:
    """Calls ``function`` as ``start_in_thread`` does, and waits for the result."""
    return await start_in_thread(function)


def start_in_thread(function: Callable[[], T]) -> asyncio.Future[T]:
    """Calls ``function`` on a daemon thread of its own, and returns the result to come.

    The executor of an event loop would make the interpreter wait for the call at exit. Raises ``RuntimeError`` if the
    interpreter is about to end and starts no more threads. The result is a ``RuntimeError`` instead of an exception
    that is no ``Exception``.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def set_result(value: T) -> None:
        if not result.done():
            result.set_result(value)

    def set_error(error: Exception) -> None:
        if not result.done():
            result.set_exception(error)

    def run() -> None:
        try:
            value = function()
        except BaseException as error:  # an exception of the caller's function belongs to the caller
            post(loop, set_error, _for_future(error))
        else:
            post(loop, set_result, value)

    threading.Thread(target=run, name="seatkeeper-call", daemon=True).start()
    return result


def _for_future(error: BaseException) -> Exception:
    """Returns ``error``, or a ``RuntimeError`` that stands for an error which no event loop carries.

    ``SystemExit`` and ``KeyboardInterrupt`` would end the loop, and ``CancelledError`` would cancel the waiting task.
    A future accepts no ``StopIteration``.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError("the call failed")
    wrapped.__cause__ = error
    return wrapped


def post(loop: asyncio.AbstractEventLoop, function: Callable[[T], None], argument: T) -> bool:
    """Calls ``function`` on the thread of ``loop``; returns false if the loop is closed."""
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        return False
    return True

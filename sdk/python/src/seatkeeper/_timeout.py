"""A timeout that loses neither a result nor a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")


async def within(timeout: float, work: Coroutine[Any, Any, T], discard: Optional[Callable[[T], None]] = None) -> T:
    """Returns the result of ``work`` within ``timeout`` seconds. Raises ``asyncio.TimeoutError``.

    If ``work`` ends in the moment of a timeout or a cancellation, ``discard`` frees the result. Before Python 3.12,
    ``asyncio.wait_for`` then loses the result, or ignores the cancellation.
    """

    def free(ended: asyncio.Task[T]) -> None:
        # The call of `exception` also keeps asyncio from a report of an error that has no reader.
        if not ended.cancelled() and ended.exception() is None and discard is not None:
            discard(ended.result())

    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=timeout)
        if task.done():
            return task.result()
        raise asyncio.TimeoutError
    except BaseException:
        task.cancel()
        task.add_done_callback(free)
        raise

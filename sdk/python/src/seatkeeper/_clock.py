"""The clocks of this host."""

from __future__ import annotations

import sys
import time
from functools import partial

from ._core.clocks import Now

if sys.platform.startswith("linux"):
    #: Reads the clock that counts sleep, in nanoseconds.
    boot = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)

elif sys.platform == "darwin":
    #: Reads the clock that counts sleep: on macOS ``CLOCK_MONOTONIC`` does, while ``time.monotonic`` does not.
    boot = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC)

else:
    #: Reads the clock that counts sleep: on Windows the monotonic clock does.
    boot = time.monotonic_ns


def now() -> Now:
    """Reads all three clocks."""
    return Now(mono=time.monotonic_ns(), boot=boot(), wall=time.time_ns())

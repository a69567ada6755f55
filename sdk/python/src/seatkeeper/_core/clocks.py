"""Readings of the three clocks of a client, and arithmetic on the clock that decides."""

from __future__ import annotations

from dataclasses import dataclass

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
#: The end of time: a deadline that never passes.
NEVER = 2**63 - 1

#: A gap between ``boot`` and ``mono`` longer than this is a sleep of the host.
SLEEP_GAP = 2 * SECOND


@dataclass(frozen=True)
class Now:
    """One reading of the three clocks, in nanoseconds; each clock has an origin of its own."""

    __slots__ = ("boot", "mono", "wall")

    #: The monotonic clock, which may stand still while the host sleeps.
    mono: int
    #: The monotonic clock that counts sleep. Every deadline uses this clock.
    boot: int
    #: The wall clock since 1970, for logs alone.
    wall: int

    @property
    def slept(self) -> int:
        """The sleep of the host since the origin of ``mono``, plus a constant."""
        return self.boot - self.mono

    def slept_since(self, earlier: int) -> bool:
        """Returns true if the host slept since a reading whose ``slept`` was ``earlier``."""
        return self.slept - earlier > SLEEP_GAP


def after(point: int, span: int) -> int:
    """Returns the point ``span`` later, or ``NEVER`` if the sum is longer."""
    return min(point + span, NEVER)


def part(span: int, factor: float) -> int:
    """Returns the part of ``span`` that ``factor`` stands for, to the nearest nanosecond."""
    return round(span * factor)


def between(low: float, high: float, jitter: float) -> float:
    """Returns the point of ``low..high`` that the random number ``jitter`` stands for."""
    return low + (high - low) * jitter

"""Counts the forks between this process and its first ancestor with this package."""

from __future__ import annotations

import os

#: The number of forks. A system call for each look would cost more than the look.
count = 0


def _count_fork() -> None:
    global count
    count += 1


if hasattr(os, "register_at_fork"):
    # Windows has no fork.
    os.register_at_fork(after_in_child=_count_fork)

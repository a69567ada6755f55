"""Dataclasses whose objects are small: every held seat keeps some."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

__all__ = ["slotted"]

if TYPE_CHECKING:
    from dataclasses import dataclass as slotted
elif sys.version_info >= (3, 10):
    slotted = partial(dataclass, slots=True)
else:
    # Python 3.9 allows no slots for fields with defaults.
    slotted = dataclass

"""License keys in texts for people."""

from __future__ import annotations


def masked(key: str) -> str:
    """Returns a key with all but its last four characters hidden; a key of eight or fewer is hidden whole."""
    return "****" if len(key) <= 8 else f"****{key[-4:]}"

"""Identifiers that sort by time, so that new rows land beside each other in an index."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

__all__ = ["uuid7"]

_RANDOM_BITS = 74


def uuid7(at: datetime, random_bits: int) -> UUID:
    """A version 7 UUID (RFC 9562, 5.7): 48 bits of Unix milliseconds, then 74 random bits."""
    milliseconds = int(at.timestamp() * 1_000) & ((1 << 48) - 1)
    noise = random_bits & ((1 << _RANDOM_BITS) - 1)
    value = milliseconds << 80 | 0x7 << 76 | (noise >> 62) << 64 | 0b10 << 62
    return UUID(int=value | noise & ((1 << 62) - 1))

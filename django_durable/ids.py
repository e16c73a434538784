"""Identifiers: time-ordered for rows, random for leases and hints."""

from __future__ import annotations

import os
import secrets
import socket
import time
import uuid

__all__ = ["process_identity", "random_id", "time_ordered_id"]

_identity: tuple[int, str] | None = None


def time_ordered_id() -> uuid.UUID:
    """A UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then 74 random bits.

    Inserts go to the right edge of the primary key's index. The order is for locality only: nothing decides
    ownership or due-ness by it.
    """
    millis = time.time_ns() // 1_000_000
    value = (millis & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    return uuid.UUID(int=value | 0b10 << 62 | secrets.randbits(62))


def random_id() -> uuid.UUID:
    """A UUIDv4: unguessable, without a time in it. Hint ids and lease tokens."""
    return uuid.uuid4()


def process_identity() -> str:
    """A name for this process, unique per start: evidence for people, never used to decide ownership.

    A fork gets its own; host and pid are there for the reader only, since both may repeat.
    """
    global _identity
    pid = os.getpid()
    if _identity is None or _identity[0] != pid:
        _identity = (pid, f"{socket.gethostname()[:80]}:{pid}:{secrets.token_hex(4)}")
    return _identity[1]

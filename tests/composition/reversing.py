"""A payload codec for tests: what is stored is backwards."""

from __future__ import annotations


class Reversing:
    """Nothing is encrypted; but no text of a value stands in the database as it is."""

    name = "reversing"

    def encode(self, data: bytes) -> bytes:
        """Backwards."""
        return data[::-1]

    def decode(self, data: bytes) -> bytes:
        """And forwards again."""
        return data[::-1]

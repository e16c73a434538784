"""Outgoing e-mail, kept in a file: one message a key, however often it is sent."""

from __future__ import annotations

import time
from typing import Any

from testproject.shop.outside import OutsideSystem

__all__ = ["Mailbox"]


class Mailbox(OutsideSystem):
    """The mail server. Its messages are in the file ``MAILBOX``."""

    variable = "MAILBOX"
    schema = """
        CREATE TABLE messages (
            key TEXT PRIMARY KEY, recipient TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL,
            at REAL NOT NULL);
        CREATE TABLE calls (key TEXT NOT NULL, recipient TEXT NOT NULL, at REAL NOT NULL);
    """

    def send(self, key: str, recipient: str, subject: str, body: str = "") -> bool:
        """Send one message; whether this call did, ``False`` where the key had been sent before."""
        with self.connected() as connection:
            connection.execute("INSERT INTO calls VALUES (?, ?, ?)", (key, recipient, time.time()))
            return bool(
                connection.execute(
                    "INSERT INTO messages VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                    (key, recipient, subject, body, time.time()),
                ).rowcount
            )

    def messages(self) -> list[dict[str, Any]]:
        """What was sent, oldest first."""
        return self.rows("messages")

    def calls(self) -> list[dict[str, Any]]:
        """Every request to send, repeats included."""
        return self.rows("calls")

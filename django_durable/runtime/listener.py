"""Listener: hears of work that other processes have committed, where PostgreSQL tells it; see ``dispatch.notify``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, InterfaceError, connections

from django_durable.dispatch.notify import CHANNEL
from django_durable.quiet import report

logger = logging.getLogger("django_durable")

LOOK_SECONDS = 0.5
"""How soon it notices that it is to end."""
LONGEST_PAUSE = 30.0
"""Between two attempts to connect again."""


class Listener:
    """A thread with a connection of its own that calls ``heard(queue)`` for each notification.

    Nothing depends on it: while it cannot listen, workers poll as they do without it.
    """

    def __init__(self, using: str, heard: Callable[[str], None]) -> None:
        self._using, self._heard = using, heard
        self._stop = threading.Event()
        self._failing = False
        self.listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="durable-listener", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, and close the connection."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        pause = LOOK_SECONDS
        while not self._stop.is_set():
            try:
                self._listen()
            except (DatabaseError, InterfaceError) as error:
                self._note_outage(error)
            except Exception as error:
                report(error, "listening for new work failed; it is found by polling")
            pause = LOOK_SECONDS if self.listening.is_set() else min(LONGEST_PAUSE, pause * 2)
            self.listening.clear()
            self._stop.wait(pause)

    def _listen(self) -> None:
        """Until told to end, or until the connection breaks."""
        connection = connections.create_connection(self._using)
        try:
            with connection.cursor() as cursor, connection.wrap_database_errors:
                cursor.execute(f"LISTEN {CHANNEL}")
                self.listening.set()
                self._failing = False
                # What was committed before somebody listened has told nobody.
                self._heard("")
                self._hear(connection.connection)
        finally:
            connection.close()

    def _hear(self, session: Any) -> None:
        while not self._stop.is_set():
            for notice in session.notifies(timeout=LOOK_SECONDS):
                self._heard(notice.payload)
                if self._stop.is_set():
                    return

    def _note_outage(self, error: Exception) -> None:
        if not self._failing:
            logger.warning("listening for new work failed (%s); it is found by polling", type(error).__name__)
        self._failing = True

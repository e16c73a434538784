"""Sweeper: ticks from a thread of its own beside the embedded worker."""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, InterfaceError, connections

from django_durable.conf import config
from django_durable.quiet import report
from django_durable.runtime.tick import tick

logger = logging.getLogger("django_durable")


class Sweeper:
    """Calls ``tick`` every TICK_SECONDS; any number of them in any number of processes is harmless."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._stop = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._sweep, name="durable-sweeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End after the pass that is under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _sweep(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._tick()
                except Exception as error:
                    report(error, "the tick failed")
                self._stop.wait(config().tick_seconds)
        finally:
            connections.close_all()

    def _tick(self) -> None:
        try:
            tick()
            self._failing = False
        except (DatabaseError, InterfaceError) as error:
            if not self._failing:
                logger.warning("the tick failed (%s); trying again", type(error).__name__)
            self._failing = True
            connections[self._using].close()

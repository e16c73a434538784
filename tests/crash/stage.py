"""The stage: what bodies under test find of the run that they belong to. Empty in a real worker process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.crash.ledger import Ledger
from tests.crash.life import Life

__all__ = ["Stage", "stage"]


@dataclass
class Stage:
    """What a scenario sets up for its bodies; reset before every run."""

    repaired: bool = False
    changed: bool = False
    during: Callable[[], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def reset(self) -> None:
        """As at the beginning."""
        self.repaired, self.changed, self.during, self.stop = False, False, None, threading.Event()


stage = Stage()


def act(label: str) -> None:
    """What every body does first: its effect on the outside world, unless its process is dead."""
    life = Life.current()
    if life is not None:
        life.check_alive()
    process = f"{life.role}-{id(life)}" if life is not None else f"pid-{os.getpid()}"
    Ledger().write(label, process)

"""What a message does. Plain functions: ``django_durable.celery.setup`` makes tasks of them.

Neither raises, so that nothing reaches Celery's log or result backend but a class name and ids.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.planes.selection import spine_alias
from django_durable.runtime import tick as sweeping
from django_durable.runtime.messages_due import MessagesDue, Put
from django_durable.runtime.one import run_hint

logger = logging.getLogger("django_durable")

LATE = 10
"""Intervals without a tick after which a worker ticks by itself."""

_outage = False


def run(hint_id: object, stop: threading.Event) -> UUID | None:
    """Drive one turn of the execution that this hint is for; the hint, where another worker should go on with it.

    An id that is none, or that nobody knows, is a no-op.
    """
    try:
        known_id = UUID(str(hint_id))
    except ValueError:
        logger.warning("a message without a hint's id was dropped")
        return None
    if not stop.is_set():
        _guarded("running a message", lambda: run_hint(known_id, stop))
    return known_id if stop.is_set() else None


def tick(due: MessagesDue, put: Put) -> None:
    """Run the sweeps whose turn it is, and send messages for due work."""
    due.note_tick()
    _guarded("the tick", sweeping.tick)
    _guarded("sending messages for due work", lambda: due.send(spine_alias(), put))


def tick_is_late(due: MessagesDue) -> bool:
    """Whether this worker has seen no tick for a while: no beat runs, or its clock is off, or all slots are busy."""
    return due.seconds_without_tick > LATE * config().tick_seconds


def tick_if_late(due: MessagesDue, put: Put) -> None:
    """Tick after a turn if nobody else does.

    Where all slots are busy, ticks wait behind other messages until they have expired: whoever has just run an
    execution looks after the rest now and then.
    """
    if tick_is_late(due):
        due.note_tick()
        if _guarded("looking for the last tick", _nobody_ticks):
            tick(due, put)


def _nobody_ticks() -> bool:
    using = spine_alias()
    last = sweeping.last_tick(using)
    return last is None or read_now(using) - last > timedelta(seconds=LATE * config().tick_seconds)


def _guarded(what: str, act: Callable[[], object]) -> object:
    """Its result, ``None`` where it failed; an outage of the database is reported once."""
    global _outage
    try:
        result = act()
    except (DatabaseError, InterfaceError) as error:
        level = logging.DEBUG if _outage else logging.WARNING
        _outage = True
        logger.log(level, "%s failed (%s); it is tried again by a later message", what, type(error).__name__)
    except Exception as error:
        logger.error("%s failed: %s", what, type(error).__name__)
        logger.debug("%s failed", what, exc_info=True)
    else:
        _outage = False
        return result
    return None

"""Celery carries the work: ``setup(app)`` in the module that makes the Celery application, and nothing else.

A message is only ever a hint: it holds a hint's id, and losing, repeating or delaying it changes nothing but
latency. Committed work is announced by a thread of its own; the tick, sent by beat, finds what was lost.

This module imports Celery and no tables: ``setup`` may be called before Django's apps are loaded.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from celery import Celery, Task, bootsteps, signals
from kombu.exceptions import OperationalError

from django_durable.conf import Config, read_settings
from django_durable.dispatch.broker import EXIT_SECONDS, Broker, BrokerUnavailable, Send
from django_durable.dispatch.nudge import listen

if TYPE_CHECKING:
    from django_durable.runtime.messages_due import MessagesDue
    from django_durable.runtime.stop_flag import StopFlag

__all__ = ["installed_app", "setup"]

RUN, TICK = "django_durable.run", "django_durable.tick"
ENTRY = "django_durable-tick"
"""The name of beat's one entry."""

SOCKET_SECONDS = 2.0
"""Connecting, reading and writing of the thread that sends. Nobody waits for it."""

_app: Celery | None = None
_excluded: set[str] = set()


def setup(app: Celery) -> None:
    """Have this Celery application carry the work: its two tasks, their queues, and beat's one entry.

    Idempotent, and independent of the order: the project may configure the application before or after, and set
    its own ``beat_schedule`` too. Neither a result backend nor ETAs are used.
    """
    global _app
    if app is _app:
        return
    _add_tasks(app)
    app.steps["consumer"].add(LateTicks)
    app.on_after_configure.connect(_keep_entry, weak=False, dispatch_uid=ENTRY)
    if app.configured:
        _keep_entry(app)
    _listen()
    _app = app


def installed_app() -> Celery | None:
    """The application that carries the work; ``None`` where ``setup`` was not called."""
    return _app


def _settings() -> Config:
    """The settings, faults replaced by defaults: the system checks report those."""
    return read_settings()[0]


# -- tasks ---------------------------------------------------------------------------------------------------


class DurableTask(Task):  # type: ignore[misc]
    """A task in the default queue of executions, untouched by a base class of the project's own tasks."""

    abstract = True

    @property
    def queue(self) -> str:
        """Where a message without a queue goes."""
        return _settings().default_queue


def _add_tasks(app: Celery) -> None:
    options: dict[str, Any] = {
        "base": DurableTask,
        "shared": False,
        "serializer": "json",
        "max_retries": 0,
        "ignore_result": True,
        "store_errors_even_if_ignored": False,
        "track_started": False,
        # Acknowledged early: a turn may take long, and a message that is lost with its worker is found missing.
        "acks_late": False,
    }
    app.task(_run, name=RUN, bind=True, **options)
    app.task(_tick, name=TICK, **options)


def _run(task: Task, hint_id: str) -> None:
    """Drive one turn of the execution that this hint is for."""
    from django_durable import tasks

    shared = _shared()
    passed_on = tasks.run(hint_id, shared.stop)
    if passed_on is not None:
        _broker.put(passed_on, _queue_of(task))
    else:
        tasks.tick_if_late(shared.due, _broker.put)


def _tick() -> None:
    """What must happen now and then: sweeps, and messages for due work."""
    from django_durable import tasks

    tasks.tick(_shared().due, _broker.put)


def _queue_of(task: Task) -> str:
    """The queue that this message came from."""
    key = (task.request.delivery_info or {}).get("routing_key")
    known = (queue.name for queue in task.app.amqp.queues.values() if queue.routing_key == key)
    return next(known, _settings().default_queue)


# -- beat ----------------------------------------------------------------------------------------------------


def _keep_entry(sender: Celery, **kwargs: object) -> None:
    """After each configuration: whatever ``beat_schedule`` is set to from now on, it has our entry when it is read.

    Celery has no hook for that. What is put into the schedule once is lost when the project assigns its own.
    """
    conf = sender.conf
    if not hasattr(type(conf), "_keeps_entry"):
        object.__setattr__(conf, "__class__", _with_entry(type(conf)))


def _with_entry(settings: type[Any]) -> type[Any]:
    """Celery's class of settings, adding our entry to the schedule that is read, unless it has one for the tick."""

    class Settings(settings):  # type: ignore[misc]
        _keeps_entry = True

        def __getitem__(self, key: str) -> Any:
            found = super().__getitem__(key)
            if key != "beat_schedule" or any(map(_is_tick, (found or {}).values())):
                return found
            if not isinstance(found, MutableMapping):
                return {**(found or {}), ENTRY: _entry()}
            found[ENTRY] = _entry()
            return found

    return Settings


def _entry() -> dict[str, Any]:
    """Ticks that nobody has taken when the next one comes are dropped, so that they do not pile up."""
    settings = _settings()
    seconds = settings.tick_seconds
    options = {"queue": settings.default_queue, "expires": seconds * 0.9, "ignore_result": True}
    return {"task": TICK, "schedule": seconds, "options": options}


def _is_tick(entry: object) -> bool:
    task = entry.get("task") if isinstance(entry, Mapping) else getattr(entry, "task", None)
    return bool(task == TICK)


# -- messages ------------------------------------------------------------------------------------------------


def _announce(hint_id: UUID, queue: str) -> None:
    """After a commit, in the committing thread: append and return."""
    if _app is not None and not _app.conf.task_always_eager:
        _broker.put(hint_id, queue)


def _connect() -> Send:
    """In the sending thread: a connection of its own, and the function that sends over it."""
    app = _app
    assert app is not None
    connection = app.connection_for_write(
        connect_timeout=SOCKET_SECONDS, transport_options=_impatience(app.connection_for_write())
    )
    failures = (*connection.connection_errors, *connection.channel_errors, OperationalError, OSError)

    def send(hint_id: UUID | None, queue: str) -> None:
        name, args = (TICK, ()) if hint_id is None else (RUN, (str(hint_id),))
        try:
            app.send_task(
                name,
                args=args,
                queue=queue,
                connection=connection,
                retry=False,
                serializer="json",
                ignore_result=True,
            )
        except failures as error:
            with suppress(Exception):
                connection.collapse()
            raise BrokerUnavailable from error

    return send


def _impatience(connection: Any) -> dict[str, Any]:
    """Options with which a connection gives up soon; by default it would try for ever."""
    options = {"max_retries": 1.0, "interval_start": 0.0, "interval_step": 0.0, "interval_max": 0.0}
    match connection.transport.driver_type:
        case "redis":
            options |= {"socket_timeout": SOCKET_SECONDS, "socket_connect_timeout": SOCKET_SECONDS}
        case "amqp":
            options |= {"read_timeout": SOCKET_SECONDS, "write_timeout": SOCKET_SECONDS}
    return options


_broker = Broker(_connect)


# -- workers -------------------------------------------------------------------------------------------------


class _Shared:
    """What the processes of one worker share: made in the parent, before it forks."""

    def __init__(self) -> None:
        from django_durable.runtime.messages_due import MessagesDue
        from django_durable.runtime.stop_flag import StopFlag

        self.stop: StopFlag = StopFlag()
        self.due: MessagesDue = MessagesDue()


@cache
def _shared() -> _Shared:
    return _Shared()


class LateTicks(bootsteps.StartStopStep):  # type: ignore[misc]
    """In a worker that sees no tick for a while: send one.

    Without this, an idle system would stand still where beat is down, or where its clock is so far behind that
    each of its ticks has expired when it arrives.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)
    _entry: Any = None
    _sent_at = float("-inf")

    def start(self, consumer: Any) -> None:
        """Look every interval; again after each reconnection, which clears the worker's timer."""
        self._entry = consumer.timer.call_repeatedly(_settings().tick_seconds, self._look)

    def stop(self, consumer: Any) -> None:
        """The worker ends, or has lost the broker."""
        if self._entry is not None:
            self._entry.cancel()

    def _look(self) -> None:
        from django_durable import tasks

        now = time.monotonic()
        if tasks.tick_is_late(_shared().due) and now - self._sent_at > tasks.LATE * _settings().tick_seconds:
            self._sent_at = now
            _broker.put(None, _settings().default_queue)


@cache
def _listen() -> None:
    """Once a process, to commits and to what Celery's workers go through."""
    listen(_announce)
    signals.celeryd_init.connect(_note_exclusions, weak=False, dispatch_uid=ENTRY)
    signals.worker_init.connect(_begin_worker, weak=False, dispatch_uid=ENTRY)
    signals.worker_shutting_down.connect(_hand_back, weak=False, dispatch_uid=ENTRY)
    signals.worker_process_shutdown.connect(_flush, weak=False, dispatch_uid=ENTRY)


def _note_exclusions(options: Mapping[str, Any], **kwargs: object) -> None:
    """``celery worker -X``: queues that this worker does not serve."""
    given: Iterable[str] | str = options.get("exclude_queues") or ()
    _excluded.update(given.split(",") if isinstance(given, str) else given)


def _begin_worker(sender: Any, **kwargs: object) -> None:
    """In the worker's first process, before any other: share memory, and serve our queues unless ``-Q`` is given."""
    if _app is None or sender.app is not _app:
        return
    _shared().stop.clear()
    queues = _app.amqp.queues
    if queues._consume_from is None:
        for name in _our_queues() - _excluded:
            with suppress(KeyError):  # the project forbids queues that it has not defined
                queues.select_add(queues[name])


def _our_queues() -> set[str]:
    from django_durable.authoring.registry import declared_queues

    return {_settings().default_queue, *declared_queues()}


def _hand_back(**kwargs: object) -> None:
    """SIGTERM, in the worker's first process: turns in all of them hand back at their next position."""
    _shared().stop.set()


def _flush(**kwargs: object) -> None:
    """A forked process ends: without the interpreter's exit handlers."""
    _broker.flush(EXIT_SECONDS)

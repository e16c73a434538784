"""Broker: hint ids on their way to a message broker, sent by a daemon thread of their own.

Whoever commits work only appends to a queue in memory: a broker that refuses or swallows connections costs the
caller nothing, and what is dropped here is found by the tick. Each process has its own queue, thread and
connection; a fork begins with empty ones.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from uuid import UUID

logger = logging.getLogger("django_durable")

CAPACITY = 1000
"""Messages that wait while the broker is slow or away; more are dropped."""
EXIT_SECONDS = 0.5
"""How long the end of a process waits for what it has just committed."""
FORK_SECONDS = 0.5
"""How long a fork waits for a message that is being sent."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0

Send = Callable[[UUID | None, str], None]
"""Sends a hint's id to a queue, or a tick where it is ``None``; raises ``BrokerUnavailable``."""


class BrokerUnavailable(Exception):
    """The connection failed; the same message may be sent again over a new one."""


class Broker:
    """``put`` appends and returns at once; a thread, started with the first message, sends.

    ``connect`` is called in that thread, and again after each failure.
    """

    def __init__(self, connect: Callable[[], Send]) -> None:
        self._connect = connect
        self._line = _Line()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: self._line.rest(FORK_SECONDS),
                after_in_parent=lambda: self._line.go_on(),
                after_in_child=self._begin_anew,
            )
        atexit.register(lambda: self.flush(EXIT_SECONDS))

    def put(self, hint_id: UUID | None, queue: str) -> bool:
        """Send a hint's id (``None``: a tick) to a queue soon; ``False`` where too many wait already."""
        line = self._line_of_this_process()
        with line.changed:
            if len(line.waiting) >= CAPACITY:
                return False
            line.waiting.append((hint_id, queue))
            if line.thread is None and not self._start(line):
                line.waiting.clear()
                return False
            line.changed.notify_all()
        return True

    def flush(self, seconds: float) -> bool:
        """Wait until everything has been sent, but not longer than this, and not for a broker that is away."""
        line = self._line_of_this_process()
        with line.changed:
            line.changed.wait_for(lambda: line.empty or line.failing, seconds)
            return line.empty

    def _line_of_this_process(self) -> _Line:
        if self._line.pid != os.getpid():  # forked by something that does not run Python's hooks
            self._begin_anew()
        return self._line

    def _begin_anew(self) -> None:
        self._line = _Line()

    def _start(self, line: _Line) -> bool:
        line.thread = threading.Thread(target=self._work, args=(line,), name="durable-broker", daemon=True)
        try:
            line.thread.start()
        except RuntimeError:  # the interpreter is shutting down
            line.thread = None
        return line.thread is not None

    def _work(self, line: _Line) -> None:
        deliver = _Delivery(self._connect, line)
        while True:
            with line.changed:
                line.busy = False
                line.changed.notify_all()
                line.changed.wait_for(lambda: line.waiting)
                hint_id, queue = line.waiting.popleft()
                line.busy = True
            deliver(hint_id, queue)


class _Line:
    """One process's messages and the thread that sends them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.changed = threading.Condition()
        self.waiting: deque[tuple[UUID | None, str]] = deque()
        self.thread: threading.Thread | None = None
        self.busy = False
        self.failing = False
        self.sending = threading.Lock()
        self._forking = threading.local()  # each thread that forks holds its own

    def rest(self, seconds: float) -> None:
        """Let no message be under way while this process forks.

        Otherwise the child inherits locks that the thread holds (a module's import, Celery's own), and nobody
        there ever releases them.
        """
        self._forking.holds = self.sending.acquire(timeout=seconds)

    def go_on(self) -> None:
        """The fork is done."""
        if self._forking.holds:
            self.sending.release()

    @property
    def empty(self) -> bool:
        """Whether nothing waits and nothing is being sent."""
        return not self.waiting and not self.busy


class _Delivery:
    """Sends one message at a time, over as many connections as it takes; reports an outage once."""

    def __init__(self, connect: Callable[[], Send], line: _Line) -> None:
        self._connect = connect
        self._line = line
        self._send: Send | None = None
        self._has_worked = False
        self._refused: set[str] = set()

    def __call__(self, hint_id: UUID | None, queue: str) -> None:
        pause = FIRST_PAUSE
        while not self._try_alone(hint_id, queue):
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _try_alone(self, hint_id: UUID | None, queue: str) -> bool:
        with self._line.sending:
            return self._try(hint_id, queue)

    def _try(self, hint_id: UUID | None, queue: str) -> bool:
        """Whether this message is dealt with."""
        try:
            if self._send is None:
                self._send = self._connect()
            self._send(hint_id, queue)
        except BrokerUnavailable as error:
            self._send = None
            if self._has_worked:  # an idle connection that the broker has closed is no outage
                self._has_worked = False
                return self._try(hint_id, queue)
            self._note_outage(error)
            return False
        except Exception as error:
            self._note_refusal(error, queue)
            return True
        self._has_worked = True
        self._note_success()
        return True

    def _note_outage(self, error: BrokerUnavailable) -> None:
        if not self._line.failing:
            logger.warning(
                "the message broker cannot be reached (%s); what cannot be sent now is found by the tick later",
                type(_first_cause(error)).__name__,
            )
        with self._line.changed:
            self._line.failing = True
            self._line.changed.notify_all()

    def _note_success(self) -> None:
        if self._line.failing:
            logger.info("the message broker can be reached again")
            self._line.failing = False

    def _note_refusal(self, error: Exception, queue: str) -> None:
        """This message cannot be sent at all: said once for each queue, by the name of the error only."""
        if queue not in self._refused:
            self._refused.add(queue)
            logger.error("no message can be sent to queue %r: %s", queue, type(error).__name__)


def _first_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _first_cause(error.__cause__)

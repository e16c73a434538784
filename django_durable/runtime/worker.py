"""Worker: the embedded one. It needs nothing but the database.

The main thread claims and hands out; each slot is a thread with its own connection that runs one turn at a
time; the lease keeper renews; the sweeper ticks. New work in this process is heard at once, and that of others too
where the database tells it (``NOTIFY``); other work is found by polling, from 50 ms upwards to POLL_SECONDS.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence

from django.db import DatabaseError, InterfaceError, connections

from django_durable.conf import config
from django_durable.dispatch.notify import can_notify
from django_durable.dispatch.nudge import listen
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import drop_broken_connection
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report
from django_durable.runtime.claim_run import release, run_held
from django_durable.runtime.claiming import KINDS, claim_pass, terms_of
from django_durable.runtime.lease import LeaseKeeper
from django_durable.runtime.listener import Listener
from django_durable.runtime.queues import Queues
from django_durable.runtime.sweeper import Sweeper
from django_durable.runtime.tick import tick

logger = logging.getLogger("django_durable")

SHORTEST_POLL = 0.05
POOL_DEFAULT = 4
"""psycopg_pool's size where the project's pool options name none."""
BLOCKED_SECONDS = 30.0
"""How often a worker looks whether its code can go on with what other code was blocked by."""


class Worker:
    """Claims and runs executions until told to stop, or until nothing is due.

    ``plane`` is the one plane that it serves, ``''`` the spine's own database; ``None``: all of them.
    """

    def __init__(
        self,
        *,
        concurrency: int | None = None,
        queues: Sequence[str] = (),
        plane: str | None = None,
        until_idle: bool = False,
        max_turns: int | None = None,
    ) -> None:
        self.concurrency = concurrency or config().worker_concurrency
        self.until_idle = until_idle
        self.max_turns = max_turns
        self.turns = 0
        self.stop = threading.Event()
        self._plane = plane
        self._using = spine_alias()
        self._queues = Queues(self._using, tuple(queues))
        self._wake = threading.Event()
        self._work: queue.Queue[Claimed | None] = queue.Queue()
        self._running: dict[object, Claimed] = {}
        self._lock = threading.Lock()
        self._keeper = LeaseKeeper(config().lease_seconds)
        self._blocked_at = float("-inf")
        self._first = 0  # which kind of work the next pass begins with
        self._outage = False

    def run(self) -> None:
        """Work until the end; returns once every turn is over or given up."""
        self._warn_of_small_pool()
        threads: list[threading.Thread] = []
        sweeper = None if self.until_idle else Sweeper(self._using)
        forget = listen(lambda _hint, _queue: self._wake.set())
        listener = Listener(self._using, self._hear) if can_notify(self._using) else None
        try:
            for number in range(self.concurrency):
                thread = threading.Thread(target=self._slot, name=f"durable-turn-{number}", daemon=True)
                thread.start()
                threads.append(thread)
            if listener is not None:
                listener.start()
            if sweeper is None:
                self._tick_once()
            else:
                sweeper.start()
            self._loop()
        finally:
            forget()
            self.stop.set()
            if listener is not None:
                listener.close()
            if sweeper is not None:
                sweeper.close()
            self._wind_up(threads)

    def _warn_of_small_pool(self) -> None:
        """Claiming, renewing and sweeping have a connection each, and so has every running body."""
        pool = connections[self._using].settings_dict.get("OPTIONS", {}).get("pool")
        if not pool:
            return
        most = pool.get("max_size", POOL_DEFAULT) if isinstance(pool, dict) else POOL_DEFAULT
        needed = self.concurrency + 3
        if most is not None and most < needed:
            logger.warning(
                "the connection pool of %r holds %s connections; a worker of concurrency %d needs %d: raise max_size",
                self._using,
                most,
                self.concurrency,
                needed,
            )

    def request_stop(self) -> None:
        """Take nothing new; running executions hand back at their next position."""
        self.stop.set()
        self._wake.set()

    def _hear(self, queue: str) -> None:
        """Another process has committed work for this queue; ``""`` may stand for any."""
        if not queue or not self._queues.chosen or queue in self._queues.chosen:
            self._wake.set()

    # -- the loop --------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        pause = SHORTEST_POLL
        while not self.stop.is_set():
            self._wake.clear()
            found = self._pass()
            if self.max_turns is not None and self.turns >= self.max_turns and not self._running:
                return
            if found:
                pause = SHORTEST_POLL
                if self._free() > 0:
                    continue
            elif self.until_idle and found is not None and not self._running:
                if self._wake.is_set():
                    continue
                return
            # A full house waits for a slot, which rings; an empty one for work.
            self._wake.wait(pause)
            pause = min(config().poll_seconds, pause * 1.5)

    def _tick_once(self) -> None:
        """A worker that cron starts, and that ends when idle, is all the tick that there may be."""
        try:
            tick()
        except (DatabaseError, InterfaceError) as error:
            self._note_outage(error)
        except Exception as error:
            report(error, "the tick failed")

    def _free(self) -> int:
        with self._lock:
            return self.concurrency - len(self._running)

    def _room(self) -> int:
        """How many turns may be claimed now."""
        free = self._free()
        return free if self.max_turns is None else min(free, self.max_turns - self.turns)

    def _pass(self) -> int | None:
        """Claim what is due and hand it out; how many hints were touched, ``None`` while the database is away."""
        free = self._room()
        if free < 1:
            return 0
        try:
            touched = self._claim(free, blocked=False)
            touched += self._look_at_blocked()
        except (DatabaseError, InterfaceError) as error:
            self._note_outage(error)
            return None
        except Exception as error:
            if self.until_idle:
                raise  # whoever waits for its end is told
            if not self._outage:
                report(error, "claiming failed; trying again")
            self._outage = True
            return None
        self._outage = False
        return touched

    def _look_at_blocked(self) -> int:
        """Now and then what other code was blocked by: then pass after pass, until there is no more of it."""
        free = self._room()
        if free < 1 or time.monotonic() - self._blocked_at < BLOCKED_SECONDS:
            return 0
        touched = self._claim(free, blocked=True)
        if touched < free:
            self._blocked_at = time.monotonic()
        return touched

    def _claim(self, limit: int, *, blocked: bool) -> int:
        terms = terms_of(limit=limit, queues=self._queues.names(), blocked=blocked, plane=self._plane)
        claims, touched = claim_pass(self._using, terms, self._first)
        self._first = (self._first + 1) % KINDS if touched >= limit else 0
        for claim in claims:
            with self._lock:
                self._running[claim.token] = claim
            self.turns += 1
            self._work.put(claim)
        return touched

    def _note_outage(self, error: Exception) -> None:
        """Reported once per outage; no claim, no attempt is consumed."""
        if not self._outage:
            logger.warning("claiming failed (%s); trying again", type(error).__name__)
        self._outage = True
        try:
            drop_broken_connection(self._using)
        except (DatabaseError, InterfaceError):
            connections[self._using].close()

    # -- the slots -------------------------------------------------------------------------------------------

    def _slot(self) -> None:
        try:
            while (claim := self._work.get()) is not None:
                self._run_one(claim)
        finally:
            connections.close_all()

    def _run_one(self, claim: Claimed) -> None:
        try:
            _refresh_connections(claim.using)
            run_held(claim, self._keeper, self.stop)
            _return_connections()
        except BaseException as error:
            # The lease lapses and the execution is taken over; this slot goes on.
            report(error, "execution %s could not be run", claim.id)
        finally:
            with self._lock:
                self._running.pop(claim.token, None)
            self._wake.set()

    def _wind_up(self, threads: list[threading.Thread]) -> None:
        """Wait for the turns to hand back; release what is still running when the time is over."""
        for _ in threads:
            self._work.put(None)
        until = time.monotonic() + config().worker_shutdown_seconds
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        with self._lock:
            stuck = list(self._running.values())
        for claim in stuck:
            self._release(claim)
        self._keeper.close()
        connections[self._using].close()

    def _release(self, claim: Claimed) -> None:
        logger.warning("execution %s is still in a body at shutdown; it is released", claim.id)
        try:
            release(claim)
        except Exception as error:
            report(error, "execution %s could not be released; its lease will lapse", claim.id)

    @property
    def stuck(self) -> bool:
        """Whether bodies are still running after the end, in threads that nobody can stop."""
        with self._lock:
            return bool(self._running)


def _refresh_connections(using: str) -> None:
    """As at the beginning of a request, and no dead one on any alias: it would cost a body its attempt.

    That of the plane is found out by the engine, whose statement is the first one of a turn.
    """
    _return_connections()
    for connection in connections.all(initialized_only=True):
        if connection.alias != using:
            drop_broken_connection(connection.alias)


def _return_connections() -> None:
    """As at the end of a request: an idle slot holds nothing that a pool could give to others."""
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def exit_at_once(code: int) -> None:
    """Leave the process without waiting for threads that are stuck in bodies."""
    logging.shutdown()
    os._exit(code)

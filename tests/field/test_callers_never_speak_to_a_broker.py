"""Field report B90: a request hangs for minutes because the broker is down.

What a caller does goes into the database and nowhere else. Whoever listens for new work is told after the commit;
what that listener does wrong is its own affair. ``tests/celery`` has the black hole behind a real broker's port.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from django_durable import Context, Execution, workflow
from django_durable.dispatch.nudge import listen
from tests.calling import durable
from tests.driving import drain

pytestmark = pytest.mark.django_db(transaction=True)

broken: set[str] = set()


@workflow
def listens(ctx: Context, name: str) -> Any:
    if name in broken:
        raise ValueError(name)
    return ctx.wait_for_signal("go")


@pytest.fixture(autouse=True)
def _no_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """No connection leaves this process; the database's own client does not come by here."""
    attempts: list[str] = []

    def refuse(self: socket.socket, address: Any) -> None:
        attempts.append(str(address))
        raise OSError(f"a caller connects to {address}")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    yield attempts
    broken.clear()
    assert attempts == []


def failed() -> Execution[Any]:
    broken.add("k")
    execution = listens.using(key="k").start("k")
    drain()
    broken.clear()
    return Execution.objects.locate(execution.pk)


def waiting() -> Execution[Any]:
    execution = listens.using(key="k").start("k")
    drain()
    return Execution.objects.locate(execution.pk)


def paused() -> Execution[Any]:
    execution = waiting()
    execution.pause(actor="ann")
    return execution


VERBS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "start": (lambda: None, lambda _: listens.start("k")),
    "start with a key": (lambda: None, lambda _: listens.using(key="k").start("k")),
    "start again": (waiting, lambda _: listens.using(key="k").start("k")),
    "start later": (lambda: None, lambda _: listens.using(run_after=60).start("k")),
    "signal": (waiting, lambda execution: execution.signal("go")),
    "signal by key": (waiting, lambda _: listens.signal("k", "go")),
    "signal or start": (lambda: None, lambda _: listens.using(key="k").signal_or_start("go", 1, "k")),
    "cancel": (waiting, lambda execution: execution.cancel(actor="ann")),
    "retry": (failed, lambda execution: execution.retry(actor="ann")),
    "pause": (waiting, lambda execution: execution.pause(actor="ann")),
    "resume": (paused, lambda execution: execution.resume(actor="ann")),
    "command: start": (lambda: None, lambda _: durable("start", listens.name, "--input", '{"name": "k"}')),
    "command: signal": (waiting, lambda execution: durable("signal", execution.pk, "go")),
    "command: cancel": (waiting, lambda execution: durable("cancel", execution.pk)),
    "command: retry": (failed, lambda execution: durable("retry", execution.pk)),
    "command: tick": (waiting, lambda _: durable("tick")),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_opens_no_connection_and_starts_no_thread(verb: str) -> None:
    prepare, act = VERBS[verb]
    prepared = prepare()
    threads = set(threading.enumerate())
    act(prepared)
    assert set(threading.enumerate()) == threads


@pytest.mark.parametrize("verb", ["start", "signal", "retry", "resume", "command: start"])
def test_a_listener_that_fails_fails_no_call(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    prepare, act = VERBS[verb]
    prepared = prepare()
    heard: list[UUID] = []

    def fails(hint_id: UUID, queue: str) -> None:
        heard.append(hint_id)
        raise OSError("the broker is down")

    forget = listen(fails)
    try:
        with caplog.at_level(logging.ERROR, "django_durable"):
            act(prepared)
            with transaction.atomic():
                listens.start("in a transaction")
    finally:
        forget()
    assert len(heard) == 2
    assert "found by the next poll" in caplog.text
    drain()
    assert not Execution.objects.filter(status="pending").exists()

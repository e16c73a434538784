"""The a-prefixed twins do what their sync forms do; Django signals are sent after the commit, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from django_durable import Context, Execution, FatalError, step, workflow
from django_durable.signals import execution_finished, execution_started, execution_waiting, step_failed
from tests.driving import USING, drain

pytestmark = pytest.mark.django_db(transaction=True)


@step
def fails() -> None:
    raise FatalError("secret text")


@workflow
def conversation(ctx: Context, name: str) -> str:
    ctx.set_value("name", name)
    return f"{name} {ctx.wait_for_signal('answer')}"


@workflow
def failing(ctx: Context) -> None:
    ctx.step(fails)


@pytest.fixture
def told() -> Iterator[list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []
    listeners = {
        "started": execution_started,
        "waiting": execution_waiting,
        "finished": execution_finished,
        "step_failed": step_failed,
    }
    receivers = []
    for name, signal in listeners.items():

        def receive(execution: Execution[Any], name: str = name, **kwargs: Any) -> None:
            heard.append((name, execution.status))

        def broken(**kwargs: Any) -> None:
            raise RuntimeError("a broken receiver harms nobody")

        for receiver in (broken, receive):
            signal.connect(receiver, weak=False)
            receivers.append((signal, receiver))
    yield heard
    for signal, receiver in receivers:
        signal.disconnect(receiver)


def test_signals_are_sent_after_the_commit(told: list[tuple[str, str]]) -> None:
    with transaction.atomic(using=USING):
        execution = conversation.start("ann")
        assert told == []
    assert told == [("started", "pending")]
    drain()
    execution.signal("answer", "yes")
    drain()
    assert told[1:] == [("waiting", "waiting"), ("finished", "completed")]


def test_a_failure_and_a_cancel_are_told(told: list[tuple[str, str]]) -> None:
    failing.start()
    drain()
    conversation.start("bob").cancel(actor="ann")
    assert told == [
        ("started", "pending"),
        ("step_failed", "running"),
        ("finished", "failed"),
        ("started", "pending"),
        ("finished", "cancelled"),
    ]


def test_a_rolled_back_start_tells_nobody(told: list[tuple[str, str]]) -> None:
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        conversation.start("ann")
        raise RuntimeError
    assert told == []


@pytest.mark.parametrize("timeout", [0.01, timedelta(milliseconds=10)], ids=["seconds", "timedelta"])
def test_a_timeout_tells_how_long_was_waited(timeout: float | timedelta) -> None:
    execution = conversation.start("ann")
    with pytest.raises(TimeoutError, match=r"is still pending after 0\.01 s$"):
        execution.result(timeout=timeout)

    async def wait() -> None:
        try:
            await execution.aresult(timeout=timeout)
        finally:
            await sync_to_async(connections.close_all)()

    with pytest.raises(TimeoutError, match=r"is still pending after 0\.01 s$"):
        asyncio.run(wait())


def test_async_code_starts_signals_and_waits() -> None:
    async def talk() -> tuple[Any, ...]:
        execution = await conversation.using(key="k").astart("ann")
        with pytest.raises(TimeoutError):
            await execution.aresult(timeout=0.01)
        await asyncio.to_thread(_drain_and_close)
        assert await execution.avalue("name") == "ann"
        await conversation.asignal("k", "answer", "yes")
        await asyncio.to_thread(_drain_and_close)
        found = await conversation.aget("k")
        told = await found.aresult(timeout=5), len(await found.ahistory()), await found.acancel(actor="ann")
        await sync_to_async(connections.close_all)()
        return told

    assert asyncio.run(talk()) == ("ann yes", 2, False)


def _drain_and_close() -> None:
    try:
        drain()
    finally:
        connections.close_all()

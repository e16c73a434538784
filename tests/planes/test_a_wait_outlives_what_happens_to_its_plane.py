"""Waiting for a result or a reply: an outage is unavailable and says what is known, a move is followed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connections

from django_durable import Context, Execution, ExecutionNotFound, PlaneUnavailable, workflow
from django_durable.models import Message
from django_durable.planes import breaker, move_tenant
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")


@workflow("waits.listener")
def listener(ctx: Context) -> str:
    return str(ctx.wait_for_signal("go"))


@workflow("waits.asked")
def asked(ctx: Context) -> None:
    ctx.wait_for_update("add").reply("added")


@asked.validator("add")
def check(payload: Any, execution: Execution[Any]) -> None:
    if payload == "outage":
        raise OperationalError("the shop's own database is away")


@contextmanager
def at_the_look(alias: str, then: Callable[[], Any]) -> Iterator[None]:
    """Let something happen just before the sender first looks for the reply."""
    waiting = [then]

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT") and "encoded_reply" in sql and waiting:
            waiting.pop()()
        return execute(sql, params, many, context)

    with connections[alias].execute_wrapper(look):
        yield


def lose_the_connection() -> None:
    raise OperationalError("server closed the connection unexpectedly")


@pytest.mark.parametrize("wait", ["result", "aresult"])
def test_a_result_on_a_dead_plane_is_unavailable(wait: str) -> None:
    execution = listener.using(tenant="ann").start()
    drain()
    with down(NORTH), pytest.raises(PlaneUnavailable, match="'north' cannot be reached"):
        execution.result(timeout=1) if wait == "result" else asyncio.run(execution.aresult(timeout=1))


def test_a_result_is_found_where_its_tenant_has_moved() -> None:
    execution = listener.using(tenant="ann").start()
    drain()
    move_tenant("ann", "south", actor="op")
    Execution.objects.locate(execution.pk).signal("go", "on")
    drain()
    assert execution.using == NORTH
    assert execution.result(timeout=5) == "on"
    assert execution.using == SOUTH


def test_an_update_reaches_an_execution_whose_tenant_has_moved() -> None:
    execution = asked.using(tenant="ann").start()
    drain()
    move_tenant("ann", "south", actor="op")
    assert execution.send_update("add", 1)
    assert Message.objects.using(SOUTH).count() == 1


def test_an_outage_while_the_reply_is_awaited_says_that_the_update_is_accepted() -> None:
    execution = asked.using(tenant="ann").start()
    drain()
    with at_the_look(NORTH, lose_the_connection), pytest.raises(PlaneUnavailable) as caught:
        execution.send_update("add", 1, timeout=5)
    message = Message.objects.using(NORTH).get()
    assert f"(message {message.pk}) is accepted" in str(caught.value)
    assert "nothing was changed" not in str(caught.value)


def test_a_move_while_the_reply_is_awaited_is_told_as_such() -> None:
    execution = asked.using(tenant="ann").start()
    drain()
    moved = at_the_look(NORTH, lambda: move_tenant("ann", "south", actor="op"))
    with moved, pytest.raises(PlaneUnavailable, match="has moved to database 'south'"):
        execution.send_update("add", 1, timeout=5)


def test_an_outage_of_the_validator_is_its_own() -> None:
    execution = asked.using(tenant="ann").start()
    drain()
    with pytest.raises(OperationalError, match="the shop's own"):
        execution.send_update("add", "outage")
    assert breaker.available(NORTH)
    assert not Message.objects.using(NORTH).exists()


@pytest.mark.parametrize("timeout", [None, 1])
def test_an_update_to_an_execution_that_is_gone_finds_none(timeout: float | None) -> None:
    execution = asked.using(tenant="ann").start()
    rows = Execution._base_manager.using(NORTH).filter(pk=execution.pk)
    rows._raw_delete(NORTH)
    for act in (lambda: execution.send_update("add", 1, timeout=timeout), lambda: execution.result(timeout=1)):
        with pytest.raises(ExecutionNotFound, match=str(execution.pk)):
            act()

"""result: wait for an execution's end."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any, NoReturn

from asgiref.sync import sync_to_async
from django.db import connections

from django_durable.authoring.place import current
from django_durable.durations import seconds
from django_durable.errors import ExecutionCancelled, ExecutionFailed, InvalidTransition
from django_durable.models import Execution
from django_durable.models.execution import TERMINAL
from django_durable.operators.chain import current_run
from django_durable.operators.reload import reload

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
"""Seconds between polls: from the first to the longest, growing by half each time."""


def wait_for_result(execution: Execution[Any], timeout: float | timedelta | None) -> Any:
    """Poll by primary key, with back-off, until the execution (or the last run of its chain) has ended."""
    limit = None if timeout is None else time.monotonic() + seconds(timeout, name="timeout")
    if execution.status not in TERMINAL:
        reload(execution)
    pause = FIRST_PAUSE
    while True:
        execution = current_run(execution)
        if execution.status in TERMINAL:
            return _outcome(execution)
        _refuse_hopeless_wait(execution)
        if limit is not None and time.monotonic() >= limit:
            raise TimeoutError(f"execution {execution.pk} is still {execution.status} after {timeout} s")
        time.sleep(pause if limit is None else max(0.0, min(pause, limit - time.monotonic())))
        pause = min(LONGEST_PAUSE, pause * 1.5)
        reload(execution)


async def await_result(execution: Execution[Any], timeout: float | timedelta | None) -> Any:
    """The same for async code: each look in a thread, each pause in the event loop."""
    limit = None if timeout is None else time.monotonic() + seconds(timeout, name="timeout")
    pause = FIRST_PAUSE
    while True:
        try:
            return await sync_to_async(wait_for_result)(execution, 0)
        except TimeoutError:
            if limit is not None and time.monotonic() >= limit:
                raise
        await asyncio.sleep(pause if limit is None else max(0.0, min(pause, limit - time.monotonic())))
        pause = min(LONGEST_PAUSE, pause * 1.5)


def _outcome(execution: Execution[Any]) -> Any:
    if execution.status == "completed":
        return execution.output
    return raise_for_end(execution)


def _refuse_hopeless_wait(execution: Execution[Any]) -> None:
    if current.get() is not None:
        raise InvalidTransition(
            f"result() of execution {execution.pk} was called inside a turn or a step, where it would hold the"
            " worker; use ctx.child(), or a signal"
        )
    if connections[execution.using].in_atomic_block:
        raise InvalidTransition(
            f"result() of execution {execution.pk} was called inside a transaction, which could never see the end;"
            " call it after the commit"
        )


def raise_for_end(execution: Execution[Any]) -> NoReturn:
    """Raise the error that an execution which ended without a result stands for."""
    if execution.status == "cancelled":
        raise ExecutionCancelled(f"execution {execution.pk} was cancelled")
    error = execution.error or {}
    raise ExecutionFailed(
        f"execution {execution.pk} ended {execution.status}: {error.get('type', 'unknown error')}",
        status=execution.status,
        error=execution.error,
    )

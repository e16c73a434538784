"""result: wait for an execution's end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn

from asgiref.sync import sync_to_async

from django_durable.durations import seconds
from django_durable.errors import ExecutionCancelled, ExecutionFailed
from django_durable.models import Execution
from django_durable.models.execution import TERMINAL
from django_durable.operators.chain import current_run
from django_durable.operators.reload import reload
from django_durable.operators.waiting import pauses, refuse_hopeless_wait


def wait_for_result(execution: Execution[Any], timeout: float | timedelta | None) -> Any:
    """Poll by primary key, with back-off, until the execution (or the last run of its chain) has ended."""
    limit = None if timeout is None else seconds(timeout, name="timeout")
    further = pauses(limit)
    while (run := _look(execution)).status not in TERMINAL:
        time.sleep(_next(further, run, limit))
        execution = run
    return _outcome(run)


async def await_result(execution: Execution[Any], timeout: float | timedelta | None) -> Any:
    """The same for async code: each look in a thread, each pause in the event loop."""
    limit = None if timeout is None else seconds(timeout, name="timeout")
    further = pauses(limit)
    while (run := await sync_to_async(_look)(execution)).status not in TERMINAL:
        await asyncio.sleep(_next(further, run, limit))
        execution = run
    return await sync_to_async(_outcome)(run)


def _look(execution: Execution[Any]) -> Execution[Any]:
    """The chain's current run as it is now. Raises ``InvalidTransition`` where its end could not be waited for."""
    if execution.status not in TERMINAL:
        reload(execution)
    run = current_run(execution)
    if run.status not in TERMINAL:
        refuse_hopeless_wait(
            f"result() of execution {run.pk}",
            run.using,
            in_turn="use ctx.child(), or a signal",
            in_transaction="call it after the commit",
        )
    return run


def _next(further: Iterator[float], run: Execution[Any], limit: float | None) -> float:
    """Seconds until the next look. Raises ``TimeoutError`` where there is none."""
    for pause in further:
        return pause
    raise TimeoutError(f"execution {run.pk} is still {run.status} after {limit:g} s")


def _outcome(execution: Execution[Any]) -> Any:
    if execution.status == "completed":
        return execution.output
    return raise_for_end(execution)


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

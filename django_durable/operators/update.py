"""update: send a message that is checked first, and may be answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.authoring.registry import find_workflow
from django_durable.durations import seconds
from django_durable.engine.messages import CLOSED, send
from django_durable.engine.reach import reaching
from django_durable.errors import ExecutionClosed, PlaneUnavailable
from django_durable.models import Execution, Message
from django_durable.models.columns import check_name
from django_durable.models.execution import TERMINAL
from django_durable.operators.chain import current_run
from django_durable.operators.reload import read_again
from django_durable.operators.waiting import pauses, refuse_hopeless_wait
from django_durable.payloads import decode, encode


def send_update(
    execution: Execution[Any],
    name: str,
    payload: Any,
    *,
    timeout: float | timedelta | None = None,
    dedup_key: str | None = None,
) -> Any:
    """Store the update in the caller's transaction; its id, or with ``timeout`` the reply.

    Only if its validator lets it pass: a rejection leaves no trace. ``TimeoutError`` does not take the update back.
    Raises what the validator raises, ``ExecutionClosed`` once the execution has ended, ``PlaneUnavailable``.
    """
    refuse_in_body("execution.send_update()", "put it into a step")
    check_name(name, "update name")
    if dedup_key is not None:
        check_name(dedup_key, "dedup_key")
    limit = None if timeout is None else seconds(timeout, name="timeout")
    further = pauses(limit)
    if limit is not None:
        _refuse_hopeless_wait(execution, name)
    encoded = encode(payload, where=f"payload of update {name!r}")
    found = read_again(execution)
    check_transaction(found.using)
    _validate(found, name, encoded)
    with reaching(found.using):
        message = send(found.using, execution.pk, f"update:{name}", encoded, dedup_key)
    return message if limit is None else _wait_for_reply(found, message, name, further)


def wait_for_reply(execution: Execution[Any], name: str, message: int, *, timeout: float | timedelta) -> Any:
    """The reply to an update that is stored already. Raises ``TimeoutError``, ``ExecutionClosed``."""
    _refuse_hopeless_wait(execution, name)
    return _wait_for_reply(execution, message, name, pauses(seconds(timeout, name="timeout")))


def _validate(execution: Execution[Any], name: str, encoded: str) -> None:
    """Ask the workflow's validator, in the sender's process; only here, never at a replay."""
    target = current_run(execution)
    if target.status in CLOSED:
        raise ExecutionClosed(f"execution {target.pk} is {target.status}; it takes no more messages")
    validator = find_workflow(target.workflow, target.version).validators.get(name)
    if validator is not None:
        validator(decode(encoded), target)


def _wait_for_reply(execution: Execution[Any], message: int, name: str, further: Iterator[float]) -> Any:
    """Poll by primary key, with back-off, until the workflow has answered or can answer no more."""
    told = f"update {name!r} (message {message}) is accepted"
    while True:
        with reaching(execution.using, told=f"{told}, its reply unknown"):
            found = _look(execution, message, name)
        if found is not None:
            return decode(found)
        pause = next(further, None)
        if pause is None:
            raise TimeoutError(f"{told} and not answered in time")
        time.sleep(pause)


def _look(execution: Execution[Any], message: int, name: str) -> str | None:
    """The reply. Raises ``ExecutionClosed`` once the execution has ended without one."""
    rows = Message.objects.using(execution.using).filter(pk=message)
    status = rows.values_list("execution__status", flat=True).first()
    # Read after the status: what was written with the end or before it can be seen by now.
    reply = rows.values_list("encoded_reply", flat=True).first()
    if reply is None and status is None:
        _refuse_lost(execution, message, name)
    if reply is None and status in TERMINAL:
        raise ExecutionClosed(f"the execution ended {status}, without a reply to update {name!r}")
    return reply


def _refuse_lost(execution: Execution[Any], message: int, name: str) -> NoReturn:
    """The message's row is gone: with the execution, or to another plane, where it has another number."""
    now = read_again(execution)
    raise PlaneUnavailable(
        f"update {name!r} (message {message}) is accepted; execution {now.pk} has moved to database {now.using!r}"
        " meanwhile, and its reply cannot be waited for any more"
    )


def _refuse_hopeless_wait(execution: Execution[Any], name: str) -> None:
    refuse_hopeless_wait(
        f"send_update({name!r}, timeout=…)",
        execution.using,
        in_turn="leave timeout out",
        in_transaction="leave timeout out, or call it after the commit",
    )

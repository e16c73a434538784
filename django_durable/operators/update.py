"""update: send a message that is checked first, and may be answered."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.db import connections

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import current, refuse_in_body
from django_durable.authoring.registry import find_workflow
from django_durable.durations import seconds
from django_durable.engine.messages import CLOSED, send
from django_durable.engine.reach import reaching
from django_durable.errors import ExecutionClosed, InvalidTransition
from django_durable.models import Execution, Message
from django_durable.models.columns import check_name
from django_durable.models.execution import TERMINAL
from django_durable.operators.chain import current_run
from django_durable.operators.reload import reload
from django_durable.operators.result import FIRST_PAUSE, LONGEST_PAUSE
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
    Raises what the validator raises, ``ExecutionClosed`` once the execution has ended.
    """
    refuse_in_body("execution.send_update()", "put it into a step")
    check_name(name, "update name")
    if dedup_key is not None:
        check_name(dedup_key, "dedup_key")
    limit = None if timeout is None else time.monotonic() + seconds(timeout, name="timeout")
    if limit is not None:
        _refuse_hopeless_wait(execution, name)
    encoded = encode(payload, where=f"payload of update {name!r}")
    check_transaction(execution.using)
    with reaching(execution.using):
        _validate(execution, name, encoded)
        message = send(execution.using, execution.pk, f"update:{name}", encoded, dedup_key)
        return message if limit is None else _wait_for_reply(execution.using, message, name, limit)


def wait_for_reply(execution: Execution[Any], name: str, message: int, *, timeout: float | timedelta) -> Any:
    """The reply to an update that is stored already. Raises ``TimeoutError``, ``ExecutionClosed``."""
    _refuse_hopeless_wait(execution, name)
    limit = time.monotonic() + seconds(timeout, name="timeout")
    with reaching(execution.using):
        return _wait_for_reply(execution.using, message, name, limit)


def _validate(execution: Execution[Any], name: str, encoded: str) -> None:
    """Ask the workflow's validator, in the sender's process; only here, never at a replay."""
    target = current_run(reload(Execution._base_manager.using(execution.using).get(pk=execution.pk)))
    if target.status in CLOSED:
        raise ExecutionClosed(f"execution {target.pk} is {target.status}; it takes no more messages")
    validator = find_workflow(target.workflow, target.version).validators.get(name)
    if validator is not None:
        validator(decode(encoded), target)


def _wait_for_reply(using: str, message: int, name: str, limit: float) -> Any:
    """Poll by primary key, with back-off, until the workflow has answered or can answer no more."""
    pause = FIRST_PAUSE
    while True:
        found = _look(using, message, name)
        if found is not None:
            return decode(found)
        if time.monotonic() >= limit:
            raise TimeoutError(f"update {name!r} (message {message}) is accepted and not answered in time")
        time.sleep(max(0.0, min(pause, limit - time.monotonic())))
        pause = min(LONGEST_PAUSE, pause * 1.5)


def _look(using: str, message: int, name: str) -> str | None:
    """The reply. Raises ``ExecutionClosed`` once the execution has ended without one."""
    rows = Message.objects.using(using).filter(pk=message)
    status = rows.values_list("execution__status", flat=True).first()
    # Read after the status: what was written with the end or before it can be seen by now.
    reply = rows.values_list("encoded_reply", flat=True).first()
    if reply is None and (status is None or status in TERMINAL):
        raise ExecutionClosed(f"the execution ended {status or 'and is gone'}, without a reply to update {name!r}")
    return reply


def _refuse_hopeless_wait(execution: Execution[Any], name: str) -> None:
    if current.get() is not None:
        raise InvalidTransition(
            f"send_update({name!r}, timeout=…) was called inside a turn or a step, where waiting for the reply would"
            " hold the worker; leave timeout out"
        )
    if connections[execution.using].in_atomic_block:
        raise InvalidTransition(
            f"send_update({name!r}, timeout=…) was called inside a transaction, whose update nobody could answer"
            " before its end; leave timeout out, or call it after the commit"
        )

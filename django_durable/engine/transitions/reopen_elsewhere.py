"""What a retried run had running elsewhere: it goes on with what was done, and begins the rest again, where it stood.

Nothing of it is removed: the body may have gone on past it. A failed child is retried with its parent, whichever of
the two is retried first; a child that was cancelled with its parent is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import Q, QuerySet

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.journal import CHECKPOINT
from django_durable.engine.standing import step_intent
from django_durable.engine.transitions.family import start_child
from django_durable.engine.transitions.fan_in import this_checkpoint
from django_durable.engine.transitions.start import Order
from django_durable.engine.transitions.verbs import write_execution
from django_durable.models import Checkpoint, Execution, Join
from django_durable.models.checkpoint import UNDO, WHOLE
from django_durable.models.execution import RETRYABLE
from django_durable.sql import assignments, build, execute

Reopen = Callable[[UUID], None]

ELSEWHERE = Q(queued_at__isnull=False) | Q(kind__in=["child", "map"]) | Q(item__gt=WHOLE, item__lt=UNDO)
AFRESH: Mapping[str, Any] = {
    "status": "pending",
    "attempt": 0,
    "begun": 0,
    "recoveries": 0,
    "lease_token": None,
    "encoded_output": None,
    "encoded_error": None,
    "wake_at": None,
    "started_at": None,
    "finished_at": None,
    "attempts_log": "",
}


def put_back_elsewhere(
    using: str, row: Mapping[str, Any], ended_by: Iterable[int], before: int | None, reopen: Reopen
) -> None:
    """Begin again what had not been done. The caller holds the run's row, and publishes its next turn.

    ``ended_by``: the positions whose failure ended the run; ``before``: where what came of that begins.
    """
    rows = Checkpoint.objects.using(using).filter(execution_id=row["id"], item=WHOLE).filter(ELSEWHERE)
    unfinished = Q(status="pending") | Q(status="cancelled", encoded_error=None)
    rows = rows.filter(unfinished | Q(position__in=list(ended_by), status__in=["failed", "completed"]))
    for checkpoint in (rows if before is None else rows.filter(position__lt=before)).order_by("position"):
        if checkpoint.kind == "map":
            _put_back_map(using, row, checkpoint.position, reopen)
        elif checkpoint.status != "completed":
            _begin_again(using, row, checkpoint, reopen)


def detach_children(using: str, row: Mapping[str, Any], start: int) -> None:
    """Children of positions that are removed from the history are nobody's any more: others will stand there."""
    for child in _children(using, row, Q(parent_position__gte=start)):
        write_execution(using, child.pk, {"parent_id": None})


def _put_back_map(using: str, row: Mapping[str, Any], position: int, reopen: Reopen) -> None:
    items = Checkpoint.objects.using(using).filter(execution_id=row["id"], position=position, item__gt=WHOLE)
    if not items.exclude(status="completed").exists():
        return  # all of it was done: the error came from elsewhere
    in_flight = 0
    for item in items.exclude(status="completed").order_by("item"):
        in_flight += _keep_child(using, row, item, reopen) if item.kind == "child" else 0
        if item.kind != "child":
            _write(using, row, item, {**AFRESH, "queued_at": None})
    done = items.filter(status="completed").count()
    join = Join.objects.using(using).filter(execution_id=row["id"], position=position)
    join.update(settled=done, failed=0, in_flight=in_flight)
    whole = {"status": "pending", "encoded_error": None, "finished_at": None}
    execute(using, _update(using, row, position, WHOLE, whole))


def _begin_again(using: str, row: Mapping[str, Any], checkpoint: Checkpoint, reopen: Reopen) -> None:
    now = sql_now(connections[using])
    if checkpoint.kind == "step":
        _write(using, row, checkpoint, {**AFRESH, "queued_at": now})
        SpineWork(using).publish(step_intent(row, checkpoint.position, WHOLE, 1, checkpoint.queue)).run()
        return
    cancelled = _newest_child(using, row, checkpoint)
    if _keep_child(using, row, checkpoint, reopen) or cancelled is None:
        return
    _write(using, row, checkpoint, {**AFRESH, "queued_at": now})
    start_child(using, row, checkpoint.position, WHOLE, order_of(cancelled))


def _keep_child(using: str, row: Mapping[str, Any], checkpoint: Checkpoint, reopen: Reopen) -> bool:
    """Go on with the child that there is: retried if it had failed. ``False``: it was cancelled, or there is none."""
    child = _newest_child(using, row, checkpoint)
    if child is None or child.status == "cancelled":
        if child is not None:
            write_execution(using, child.pk, {"parent_id": None})
        _write(using, row, checkpoint, {**AFRESH, "queued_at": None})
        return False
    _write(using, row, checkpoint, {**AFRESH, "queued_at": sql_now(connections[using])})
    if child.status in RETRYABLE:
        reopen(child.pk)
    return True


def _newest_child(using: str, row: Mapping[str, Any], checkpoint: Checkpoint) -> Execution[Any] | None:
    here = Q(parent_position=checkpoint.position, parent_item=checkpoint.item)
    found: Execution[Any] | None = _children(using, row, here).order_by("created_at", "id").last()
    return found


def _children(using: str, row: Mapping[str, Any], which: Q) -> QuerySet[Execution[Any]]:
    rows: QuerySet[Execution[Any]] = Execution._base_manager.using(using).filter(which, parent_id=row["id"])
    return rows


def order_of(child: Execution[Any]) -> Order:
    """What an execution was started with."""
    return Order(
        workflow=child.workflow,
        version=child.version,
        source_digest=child.source_digest,
        encoded_input=child.encoded_input,
        queue=child.queue,
        priority=child.priority,
        timeout_seconds=child.timeout_seconds,
        max_recoveries=child.max_recoveries,
        tags=dict(child.tags),
        correlation_id=child.correlation_id,
        parent_close=child.parent_close,
        budget=child.budget,
    )


def _write(using: str, row: Mapping[str, Any], checkpoint: Checkpoint, changes: Mapping[str, Any]) -> None:
    execute(using, _update(using, row, checkpoint.position, checkpoint.item, changes))


def _update(using: str, row: Mapping[str, Any], position: int, item: int, changes: Mapping[str, Any]) -> Any:
    return build(
        f"UPDATE {CHECKPOINT} AS c SET {{sets}} WHERE {{here}}",
        sets=assignments(connections[using], Checkpoint, changes),
        here=this_checkpoint(using, row["id"], position, item, "c."),
    )

"""Fan-in: something that ran elsewhere is over; count it, start what waited for its place, wake who waits for it.

Whoever ends such work holds the execution's row, shared; it is locked exclusively, from the start of the
transaction again, only where it has to be woken. The checkpoint's row is the mark that a turn looks for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import MustWake, must_lock_exclusively
from django_durable.engine.locking import lock_execution
from django_durable.engine.messages import wake
from django_durable.engine.standing import step_intent
from django_durable.models import Checkpoint, Join
from django_durable.models.checkpoint import WHOLE
from django_durable.sql import Sql, assignments, build, execute, fetch, field_of, is_postgres, value

TABLE = Checkpoint._meta.db_table
JOIN = Join._meta.db_table
COUNTS = ("needs", "settled", "failed", "tolerated", "min_successful", "in_flight")


def lock_owner(using: str, owner_id: UUID, *, wait: bool = True) -> dict[str, Any]:
    """Lock the row of an execution that has something running elsewhere: shared, or exclusively to wake it."""
    _now, row = lock_execution(using, owner_id, shared=not must_lock_exclusively(owner_id), wait=wait)
    return row


def at(position: int) -> str:
    """The channel of what was started at a position."""
    return f"at:{position}"


def failed_at(position: int) -> str:
    """The channel of its failure alone."""
    return f"failed:{position}"


def settle(
    using: str,
    row: Mapping[str, Any],
    position: int,
    item: int,
    changes: Mapping[str, Any],
    where: Sql,
) -> bool:
    """Write the end of what ran at a position, if it is still pending, and what follows; whether it was.

    ``where`` is a further condition on the checkpoint ``c``. The caller holds the execution's row (``lock_owner``),
    within ``repeated``, which begins again where ``MustWake`` is raised.
    """
    statement = build(
        f"UPDATE {TABLE} AS c SET {{sets}} WHERE {{here}} AND c.status = 'pending' AND {{where}}",
        sets=assignments(connections[using], Checkpoint, changes),
        here=this_checkpoint(using, row["id"], position, item, "c."),
        where=where,
    )
    if not execute(using, statement):
        return False
    failed = changes["status"] != "completed"
    if item == WHOLE:
        told = [at(position), *([failed_at(position)] if failed else [])]
    else:
        told = [at(position)] if _count(using, row, position, failed) else []
    awaited = _awaited(row, told)
    if awaited:
        # Two that hold the row shared do not see each other's end: only who holds it alone knows to be the last.
        if not must_lock_exclusively(row["id"]) and is_postgres(connections[using]):
            raise MustWake(row["id"])
        if any(isinstance(one, str) or not _any_pending(using, row["id"], one) for one in awaited):
            wake(using, row)
    return True


def _awaited(row: Mapping[str, Any], told: Sequence[str]) -> list[str | list[str]]:
    """What the execution waits for of these channels; a list among it waits for all of its own."""
    if row["status"] != "waiting":
        return []
    awaiting: list[str | list[str]] = json.loads(row["awaiting"] or "[]")
    return [one for one in awaiting if (one in told if isinstance(one, str) else any(t in one for t in told))]


def _any_pending(using: str, execution_id: UUID, channels: Sequence[str]) -> bool:
    positions = [int(channel.partition(":")[2]) for channel in channels]
    pending = Checkpoint.objects.using(using).filter(
        execution_id=execution_id, item=WHOLE, status="pending", position__in=positions
    )
    return pending.exists()


def _count(using: str, row: Mapping[str, Any], position: int, failed: bool) -> bool:
    """Count an item that has ended, and start the next one in its place; whether the whole is over."""
    join = _tally(using, row, position, failed)
    if join is None:
        return False
    unstarted = join.settled + join.in_flight < join.needs
    if unstarted and not join.is_decided and start_items(using, row, position, 1):
        return False
    return join.in_flight == 0


def _tally(using: str, row: Mapping[str, Any], position: int, failed: bool) -> Join | None:
    """Count the end of one item; the counts with it."""
    statement = build(
        f"UPDATE {JOIN} SET settled = settled + 1, failed = failed + {int(failed)}, in_flight = in_flight - 1"
        f" WHERE execution_id = {{id}} AND position = {{position}} RETURNING {', '.join(COUNTS)}",
        id=value(connections[using], field_of(Join, "execution_id"), row["id"]),
        position=value(connections[using], field_of(Join, "position"), position),
    )
    counted = fetch(using, statement)
    return Join(**dict(zip(COUNTS, counted[0], strict=True))) if counted else None


def start_items(using: str, row: Mapping[str, Any], position: int, room: int) -> int:
    """Start so many items of a map that have not been started, in their order; how many are under way.

    One that ends by being started (a child whose key is taken) is counted, and another one takes its place.
    """
    started = 0
    while started < room and (under_way := _start_next(using, row, position)) is not None:
        if under_way:
            started += 1
        elif (join := _tally(using, row, position, failed=True)) is None or join.is_decided:
            break
    return started


def _start_next(using: str, row: Mapping[str, Any], position: int) -> bool | None:
    """Start the first item that has not been started; whether it is under way, ``None``: there is none."""
    following = (
        Checkpoint.objects.using(using)
        .filter(execution_id=row["id"], position=position, item__gt=WHOLE, status="pending", queued_at=None)
        .order_by("item")
        .values("item", "kind", "queue", "encoded_input")
        .first()
    )
    if following is None:
        return None
    connection = connections[using]
    item = following["item"]
    ended: Mapping[str, Any] = {}
    if following["kind"] == "child":
        from django_durable.engine.transitions.family import start_stored_child

        ended = start_stored_child(using, row, position, item, following["encoded_input"] or "") or {}
    else:
        SpineWork(using).publish(step_intent(row, position, item, 1, following["queue"])).run()
    execute(
        using,
        build(
            f"UPDATE {TABLE} AS c SET {{sets}} WHERE {{here}}",
            sets=assignments(connection, Checkpoint, {"queued_at": sql_now(connection), **ended}),
            here=this_checkpoint(using, row["id"], position, item, "c."),
        ),
    )
    execute(
        using,
        build(
            f"UPDATE {JOIN} SET in_flight = in_flight + 1 WHERE execution_id = {{id}} AND position = {{position}}",
            id=value(connection, field_of(Join, "execution_id"), row["id"]),
            position=value(connection, field_of(Join, "position"), position),
        ),
    )
    return not ended


def this_checkpoint(using: str, execution_id: UUID, position: int, item: int, alias: str = "") -> Sql:
    """The condition that names one checkpoint."""
    connection = connections[using]
    return build(
        f"{alias}execution_id = {{id}} AND {alias}position = {{position}} AND {alias}item = {{item}}",
        id=value(connection, field_of(Checkpoint, "execution_id"), execution_id),
        position=value(connection, field_of(Checkpoint, "position"), position),
        item=value(connection, field_of(Checkpoint, "item"), item),
    )

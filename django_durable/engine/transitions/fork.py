"""Fork: a new execution that begins with a copy of the first positions of another one's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.derived import DERIVED, KINDS, derive
from django_durable.engine.footprint import HistoryMovedOn, Mark, footprint
from django_durable.engine.journal import CHECKPOINT
from django_durable.engine.locking import lock_execution
from django_durable.engine.standing import standing_intent
from django_durable.engine.telling import tell
from django_durable.engine.transitions.heir import insert_heir
from django_durable.engine.transitions.singleton import enter_again
from django_durable.engine.transitions.start import current_epoch, refuse_leaving, write_route
from django_durable.engine.transitions.verbs import Attribution, note, write_execution
from django_durable.errors import InvalidTransition
from django_durable.ids import time_ordered_id
from django_durable.models import Checkpoint
from django_durable.models.checkpoint import WHOLE
from django_durable.payloads import encode
from django_durable.signals import execution_started
from django_durable.sql import build, column_of, execute, field_of, value

EFFECTS_NOTED = 50
"""How many effects after the cut a note lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where the copy ends, and on which code the fork goes on. ``seen``: the history that was checked against it."""

    position: int
    version: str
    source_digest: str
    seen: Sequence[Mark] | None = None
    id: UUID = field(default_factory=time_ordered_id)


def fork(using: str, source_id: UUID, cut: Cut, by: Attribution) -> UUID:
    """Start the fork in the source's tenant; its id. The source is not changed, apart from the operator's note.

    Raises ``InvalidTransition`` where the copy would hold an operation that is not settled, or more than there is;
    ``HistoryMovedOn`` where the history is not ``cut.seen`` any more.
    """
    write_route(using, cut.id)

    def attempt() -> UUID:
        with transaction.atomic(using=using):
            now, row = lock_execution(using, source_id, shared=True)
            marks = footprint(using, source_id)
            if cut.seen is not None and _before(cut, cut.seen) != _before(cut, marks):
                raise HistoryMovedOn
            check_prefix(source_id, marks, cut.position)
            _insert(using, row, cut, now)
            refuse_leaving(using, row["tenant"])
            _copy(using, source_id, cut)
            _record_derived(using, row["seed"], marks, cut)
            _note_both(using, row, now, marks, cut, by)
            _publish(using, cut.id)
            return cut.id

    return repeated(using, attempt)


def _before(cut: Cut, marks: Sequence[Mark]) -> list[Mark]:
    return [mark for mark in marks if mark.position < cut.position]


def check_prefix(source_id: UUID, marks: Sequence[Mark], position: int) -> None:
    """Refuse a cut behind the end of the history, and one with an unsettled operation before it."""
    length = max((mark.position for mark in marks), default=-1) + 1
    if position > length:
        raise InvalidTransition(
            f"execution {source_id} cannot be forked from position {position}: its history has {length} positions"
        )
    for mark in marks:
        if mark.position < position and not mark.is_settled:
            raise InvalidTransition(
                f"execution {source_id} cannot be forked from position {position}: at position {mark.position} its"
                f" {mark.kind} {mark.name!r} is {mark.status}; fork from position {mark.position} or before"
            )


def effects_after(marks: Sequence[Mark], position: int) -> list[Mark]:
    """The steps that the source has completed at or after the cut: a fork may do them again."""
    return [m for m in marks if m.position >= position and m.kind == "step" and m.status == "completed"]


def _insert(using: str, row: Mapping[str, Any], cut: Cut, now: datetime) -> None:
    later = row["run_after"] if row["run_after"] is not None and row["run_after"] > now else None
    timeout = row["timeout_seconds"]
    changes = {
        "version": cut.version,
        "source_digest": cut.source_digest,
        "key": None,
        "current_key": None,
        "run": 1,
        "chain_id": cut.id,
        "root_id": cut.id,
        "parent_id": None,
        "parent_position": None,
        "parent_item": None,
        "parent_close": "cancel",
        "forked_from": row["id"],
        "fork_position": cut.position,
        "epoch": current_epoch(using, row["tenant"]),
        "wake_at": later,
        "deadline": None if timeout is None else (later or now) + timedelta(seconds=timeout),
    }
    insert_heir(using, row["id"], cut.id, changes)


def _copy(using: str, source_id: UUID, cut: Cut) -> None:
    """The records as they are; results of children among them, without the children."""
    connection = connections[using]
    columns = [column_of(f) for f in Checkpoint._meta.concrete_fields if f.attname != "execution_id"]
    owner = field_of(Checkpoint, "execution_id")
    statement = build(
        f"INSERT INTO {CHECKPOINT} (execution_id, {', '.join(columns)}) SELECT {{heir}}, {', '.join(columns)}"
        f" FROM {CHECKPOINT} WHERE execution_id = {{source}} AND position < {{cut}}",
        heir=value(connection, owner, cut.id),
        source=value(connection, owner, source_id),
        cut=value(connection, field_of(Checkpoint, "position"), cut.position),
    )
    execute(using, statement)


def _record_derived(using: str, seed: str, marks: Sequence[Mark], cut: Cut) -> None:
    """What the source's seed gave at positions without a record: the copied results may hold these values."""
    taken = {mark.position for mark in marks}
    rows = [
        Checkpoint(
            execution_id=cut.id,
            position=position,
            item=WHOLE,
            kind=DERIVED,
            name="",
            status="completed",
            encoded_output=encode({k: derive(seed, k, position).hex() for k in KINDS}, where="a derived value"),
        )
        for position in range(cut.position)
        if position not in taken
    ]
    Checkpoint.objects.using(using).bulk_create(rows, batch_size=500)


def _note_both(
    using: str, row: Mapping[str, Any], now: datetime, marks: Sequence[Mark], cut: Cut, by: Attribution
) -> None:
    effects = effects_after(marks, cut.position)
    listed = ", ".join(f"{mark.position} {mark.name}" for mark in effects[:EFFECTS_NOTED])
    more = f" and {len(effects) - EFFECTS_NOTED} more" if len(effects) > EFFECTS_NOTED else ""
    done = f"completed at or after it: {listed}{more}" if effects else "nothing was completed at or after it"
    told = f"{by.reason}\n" if by.reason else ""
    into = Attribution(by.actor, f"{told}forked into {cut.id} from position {cut.position}; {done}")
    note(using, row, now, "fork", into)
    out_of = Attribution(by.actor, f"{told}forked from {row['id']} at position {cut.position}; there {done}")
    note(using, {"id": cut.id, "revision": 1}, now, "fork", out_of)


def _publish(using: str, fork_id: UUID) -> None:
    _now, row = lock_execution(using, fork_id)
    if enter_again(using, row):
        row |= {"in_line": True, "deadline": None}
        write_execution(using, fork_id, {"in_line": True, "deadline": None})
    intent = standing_intent(using, row)
    if intent is not None:
        SpineWork(using).publish(intent, first=True).run()
    tell(using, execution_started, fork_id)

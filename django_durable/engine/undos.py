"""Which undo steps a run has: registered, dropped, done. One list for saga blocks and for the whole execution.

It is read off the journal alone, so that a cancel or a deadline, which know no code, come to the same answer as
the turn. A registration is a checkpoint of kind ``compensate``. One of kind ``saga`` (named ``ended``) or
``discard`` drops those since the position that it holds. How an undo step went stands at its registration's
position, as the item ``UNDO``. A block that an exception left is named ``undone`` and drops nothing: its undo
steps have outcomes of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.engine.claimed import Claimed
from django_durable.engine.isolation import may_see_an_old_snapshot
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import UNDO, WHOLE
from django_durable.payloads import encode
from django_durable.sql import build, columns, convert, fetch, field_of, value

FIRST = -(2**31)
"""Below every position. What a run has inherited from the one that it continues is registered below 0."""

COMPENSATE, SAGA, DISCARD = "compensate", "saga", "discard"
ENDED, UNDONE = "ended", "undone"
FINAL = ("completed", "failed")

_READ = ("position", "item", "kind", "name", "status", "encoded_output")


@dataclass(slots=True)
class UndoList:
    """Positions of registrations: those in force, and those whose undo step has an outcome.

    Registrations before ``since`` are a fork's copies and belong to its source.
    """

    since: int = FIRST
    registered: set[int] = field(default_factory=set)
    outcomes: dict[int, str] = field(default_factory=dict)

    def register(self, position: int) -> None:
        """An undo step is registered at this position."""
        if position >= self.since:
            self.registered.add(position)

    def drop(self, start: int) -> None:
        """Those registered since this position are not needed any more."""
        self.registered = {position for position in self.registered if position < start}

    def settle(self, position: int, status: str) -> None:
        """The undo step of this registration has an outcome."""
        self.outcomes[position] = status

    def due(self, start: int = FIRST) -> list[int]:
        """Registrations since this position that are in force and have no outcome yet, the last one first."""
        return sorted((p for p in self.registered if p >= start and p not in self.outcomes), reverse=True)

    def failed(self, start: int = FIRST) -> list[int]:
        """Registrations since this position whose undo step has failed for good, in the order in which they ran."""
        failed = (p for p in self.registered if p >= start and self.outcomes.get(p) == "failed")
        return sorted(failed, reverse=True)


def note_mark(undos: UndoList, position: int, kind: str, name: str, encoded_output: str | None) -> None:
    """What a checkpoint of the run itself means for the list."""
    if kind == COMPENSATE:
        undos.register(position)
    elif kind == DISCARD or (kind == SAGA and name == ENDED):
        # A number as it is, without any payload codec: whoever cancels need not have its key.
        undos.drop(int(encoded_output or 0))


def read_undos(using: str, execution_id: UUID) -> UndoList:
    """The list of an execution whose row this transaction has locked: one statement."""
    connection = connections[using]
    since = f"COALESCE((SELECT e.fork_position FROM {Execution._meta.db_table} e WHERE e.id = {{id}}), {FIRST})"
    statement = build(
        f"SELECT {columns(Checkpoint, _READ)} FROM {Checkpoint._meta.db_table} WHERE execution_id = {{id}}"
        f" AND (kind IN ('{COMPENSATE}', '{SAGA}', '{DISCARD}') OR item = {UNDO}) AND position >= {since}"
        " ORDER BY position, item",
        id=value(connection, field_of(Checkpoint, "execution_id"), execution_id),
    )
    undos = UndoList()
    for raw in fetch(using, statement):
        row = convert(connection, Checkpoint, _READ, raw)
        if row["item"] == WHOLE:
            note_mark(undos, row["position"], row["kind"], row["name"], row["encoded_output"])
        elif row["status"] in FINAL:
            undos.settle(row["position"], row["status"])
    return undos


def has_undos(using: str, row: Mapping[str, Any]) -> bool:
    """Whether a locked execution has undo steps to run, or may have: those that its turn has just registered are not
    seen by a snapshot that is older than the lock. The turn that begins them finds out."""
    if read_undos(using, row["id"]).due():
        return True
    return row["status"] == "running" and may_see_an_old_snapshot(using)


def read_arguments(using: str, execution_id: UUID, positions: Iterable[int]) -> dict[int, str]:
    """The encoded arguments with which the undo steps at these positions were registered."""
    rows = Checkpoint.objects.using(using).filter(
        execution_id=execution_id, kind=COMPENSATE, item=WHOLE, position__in=list(positions)
    )
    return {position: encoded or "" for position, encoded in rows.values_list("position", "encoded_input")}


def inherit_undos(claim: Claimed, heir_id: UUID) -> None:
    """Register for a run's successor what this run would still undo, in the same order, below its first position.

    The caller's transaction holds this run. An undo step keeps the idempotency key of the run that registered it.
    """
    rows = Checkpoint.objects.using(claim.using).filter(
        execution_id=claim.id, item=WHOLE, position__in=read_undos(claim.using, claim.id).due()
    )
    found = list(rows.order_by("position"))
    for number, row in enumerate(found):
        own_key = encode(undo_key(claim.id, row.position), where="an idempotency key")
        row.encoded_output = row.encoded_output or own_key
        row.execution_id, row.position, row.lease_token = heir_id, number - len(found), claim.token
    Checkpoint.objects.using(claim.using).bulk_create(found, batch_size=500)


def undo_key(execution_id: UUID, position: int) -> str:
    """The idempotency key of the undo step that was registered at this position: apart from that of any step."""
    return f"{execution_id}:undo.{position}"

"""Continue: this run ends, its successor begins with an empty history; one fenced transaction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.isolation import read_committed
from django_durable.engine.messages import CALLBACK
from django_durable.engine.messages import TABLE as MESSAGE
from django_durable.engine.telling import tell
from django_durable.engine.transitions.family import close_children, hold
from django_durable.engine.transitions.heir import insert_heir
from django_durable.engine.transitions.leave import ENDED, Pages, cancel_pending, ended_columns
from django_durable.engine.transitions.singleton import pass_on
from django_durable.engine.transitions.start import chain_mark, write_route
from django_durable.engine.transitions.verbs import write_execution
from django_durable.engine.transitions.wait import lock_fenced, write_pages
from django_durable.engine.undos import inherit_undos
from django_durable.ids import time_ordered_id
from django_durable.models import Execution
from django_durable.signals import execution_finished, execution_started
from django_durable.sql import Sql, build, execute, field_of, value

PARENT = {"parent_id": None, "parent_position": None, "parent_item": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """The next run of the chain: what differs from this one."""

    encoded_input: str
    source_digest: str
    id: UUID = field(default_factory=time_ordered_id)


def continue_as_new(claim: Claimed, pages: Pages, successor: Successor) -> bool:
    """End this run as ``continued`` and start its successor; ``False``: the fence did not hold.

    Under the exclusive lock that senders wait for: a message goes to this run before it, or to the successor after.
    """
    using = claim.using
    write_route(using, successor.id)
    with read_committed(using):
        # From the root down: a parent that is being closed waits, or has taken this run's token.
        hold(using, claim.row["parent_id"])
        if not lock_fenced(claim):
            return False
        write_pages(claim, pages)
        write_execution(using, claim.id, {"current_key": None})
        _insert(claim, successor)
        _move_messages(claim, successor.id)
        write_execution(using, claim.id, _ended(claim, successor.id))
        execute(using, cancel_pending(using, claim.id))
        close_children(using, [claim.id])
        inherit_undos(claim, successor.id)
        if claim.row["singleton"] is not None:
            pass_on(using, claim.id, successor.id)
        intent = replace(claim.intent(revision=1, opening=True), execution_id=successor.id)
        SpineWork(using).delete_all(claim.id).publish(intent, first=True).run()
        tell(using, execution_finished, claim.id)
        tell(using, execution_started, successor.id)
    return True


def _ended(claim: Claimed, successor: UUID) -> dict[str, Any]:
    """The parent waits for the successor from here on: any end of that one reaches it."""
    return {
        **ENDED,
        **ended_columns(),
        **PARENT,
        "status": "continued",
        "successor_id": successor,
        "encoded_output": None,
        "encoded_error": None,
        "finished_at": sql_now(connections[claim.using]),
    }


def _insert(claim: Claimed, successor: Successor) -> None:
    """It has what this run has: tenant, key, the chain's deadline, queue, tags, parent, budget."""
    connection, row = connections[claim.using], claim.row
    own = value(connection, field_of(Execution, "id"), successor.id)
    changes = {
        "run": row["run"] + 1,
        "current_key": None if row["key"] is None else chain_mark(row["tenant"], row["workflow"], row["key"]),
        "source_digest": successor.source_digest,
        "root_id": build("CASE WHEN e.root_id = e.id THEN {own} ELSE e.root_id END", own=own),
        "run_after": None,
        "pause_requested_at": Sql("e.pause_requested_at"),
        "encoded_input": successor.encoded_input,
    }
    insert_heir(claim.using, claim.id, successor.id, changes)


def _move_messages(claim: Claimed, successor: UUID) -> None:
    """What was accepted and not taken is for the successor, in the same order; a callback is of its run alone."""
    connection = connections[claim.using]
    statement = build(
        f"UPDATE {MESSAGE} SET execution_id = {{successor}} WHERE execution_id = {{id}} AND consumed_by IS NULL"
        f" AND channel NOT LIKE '{CALLBACK}%%'",
        successor=value(connection, field_of(Execution, "id"), successor),
        id=value(connection, field_of(Execution, "id"), claim.id),
    )
    execute(claim.using, statement)

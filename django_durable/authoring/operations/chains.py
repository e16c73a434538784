"""Chains: a life longer than one history."""

from __future__ import annotations

from typing import Any, NoReturn

from django_durable.authoring.operations.base import Base, operation
from django_durable.authoring.registry import find_workflow
from django_durable.engine.journal import Entry
from django_durable.engine.transitions.continuation import Successor, continue_as_new
from django_durable.payloads import encode


class Chains(Base):
    """``ctx.continue_as_new``."""

    @operation
    def continue_as_new(self, /, *args: Any, **kwargs: Any) -> NoReturn:
        """End this run as ``continued`` and start its successor with these arguments and an empty history.

        One transaction. Unread messages, tags, the waiting parent, key, deadline, correlation id, priority and queue
        go along; published values and what was spent of a budget do not. Raises ``TypeError`` for arguments that do
        not fit, ``UnserializableValue``, ``PayloadTooLarge``; otherwise nothing behind it runs.
        """
        row, session = self._row, self._session
        workflow = find_workflow(row["workflow"], row["version"])
        bound = workflow.signature.bind(*args, **kwargs)
        encoded = encode(dict(bound.arguments), where=f"input of workflow {workflow.name!r}")
        position, record = session.enter("continue", "")
        successor = Successor(encoded_input=encoded, source_digest=workflow.source_digest)
        now = session.claim.now()
        changes = {
            "status": "completed",
            "encoded_output": encode(successor.id, where="the successor's id"),
            "started_at": now,
            "finished_at": now,
        }
        pages = session.pages_with(Entry(record, position, "continue", "", changes))
        session.leave(lambda p: continue_as_new(session.claim, p, successor), pages)

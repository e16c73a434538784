"""Adopt: a live execution goes on with another version, or with the changed source of its own."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.footprint import HistoryMovedOn, Mark, footprint
from django_durable.engine.locking import lock_execution
from django_durable.engine.standing import standing_intent
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.verbs import Attribution, note, reopen_row, write_execution
from django_durable.errors import InvalidTransition


def adopt(
    using: str,
    execution_id: UUID,
    *,
    version: str,
    source_digest: str,
    was: tuple[str, str],
    seen: Sequence[Mark],
    verb: str,
    by: Attribution,
) -> None:
    """Store the code that it goes on with, and publish for workers that know it; a blocked one is pending again.

    ``was``: the version and the source digest that the decision is about. Raises ``InvalidTransition`` while it runs,
    after its end, and where it has other code by now; ``HistoryMovedOn`` where its history is another than ``seen``.
    """
    code = {"version": version, "source_digest": source_digest}

    def attempt() -> None:
        with transaction.atomic(using=using):
            now, row = lock_execution(using, execution_id)
            if row["status"] not in SOURCES["adopt"]:
                remedy = "; pause it first" if row["status"] == "running" else ""
                raise InvalidTransition(
                    f"execution {execution_id} is {row['status']}; it cannot go on with other code{remedy}"
                )
            if (row["version"], row["source_digest"]) != was:
                raise InvalidTransition(
                    f"execution {execution_id} goes on with other code by now, version {row['version']!r}; look at it"
                    " again"
                )
            if list(seen) != footprint(using, execution_id):
                raise HistoryMovedOn
            row |= code
            if row["status"] == "blocked":
                reopen_row(using, row, now, code)
            else:
                row["revision"] += 1
                write_execution(using, execution_id, {**code, "revision": row["revision"]})
                intent = standing_intent(using, row)
                work = SpineWork(using)
                (work.withdraw(execution_id, row["revision"]) if intent is None else work.publish(intent)).run()
            note(using, row, now, verb, by)

    repeated(using, attempt)

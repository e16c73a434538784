"""Executions and hints by the thousand, written past the engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from django.db.models import QuerySet

from django_durable import Execution
from django_durable.authoring.workflow import Workflow
from django_durable.dispatch.definitions import definition_hash
from django_durable.models import DispatchHint

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
FAR = datetime(2090, 1, 1, tzinfo=UTC)


def executions_of(flow: Workflow[..., Any], count: int, **columns: Any) -> list[Execution[Any]]:
    """So many executions in one state; all that is not given is as empty as the model allows."""
    rows: QuerySet[Execution[Any]] = QuerySet(Execution)
    return rows.bulk_create([_execution(flow, columns) for _ in range(count)], batch_size=500)


def _execution(flow: Workflow[..., Any], columns: dict[str, Any]) -> Execution[Any]:
    given = {
        "id": uuid4(),
        "workflow": flow.name,
        "version": flow.version,
        "queue": "durable",
        "encoded_input": "{}",
        "seed": "00",
        "created_at": LONG_AGO,
        **columns,
    }
    return Execution(chain_id=given["id"], root_id=given["id"], **given)


def hints_of(executions: Sequence[Execution[Any]], due_at: datetime, *, leased: bool = False, **columns: Any) -> None:
    """A hint for each; with the execution's own token where it is leased."""
    DispatchHint.objects.bulk_create(
        [
            DispatchHint(
                execution_id=execution.pk,
                revision=execution.revision,
                queue=execution.queue,
                definition=definition_hash(execution.workflow, execution.version),
                due_at=due_at,
                token=execution.lease_token if leased else None,
                owner="somebody:1" if leased else "",
                **columns,
            )
            for execution in executions
        ],
        batch_size=500,
    )


def ids(executions: Sequence[Execution[Any]]) -> set[UUID]:
    """Their ids."""
    return {execution.pk for execution in executions}

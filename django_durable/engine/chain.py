"""The chain: the runs that follow one another by ``continue_as_new``. Verbs act on its current one."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.engine.locking import TABLE, lock_execution
from django_durable.models import Execution
from django_durable.sql import Sql, build, convert, fetch, field_of, value


def newest_run(using: str, chain_id: UUID) -> UUID:
    """The last run of a chain, whatever its status; the first one where no other is there."""
    statement = build(
        f"SELECT id FROM {TABLE} WHERE chain_id = {{chain}} AND run > 1 ORDER BY run DESC LIMIT 1",
        chain=_chain(using, chain_id),
    )
    rows = fetch(using, statement)
    if not rows:
        return chain_id
    found: UUID = convert(connections[using], Execution, ["id"], rows[0])["id"]
    return found


def current_id(using: str, execution_id: UUID) -> UUID:
    """This run's id, or that of its chain's newest where it has been continued, as seen without a lock."""
    rows = Execution._base_manager.using(using).filter(pk=execution_id, status="continued")
    chain_id = rows.values_list("chain_id", flat=True).first()
    return execution_id if chain_id is None else newest_run(using, chain_id)


def runs_of(using: str, chain_id: UUID) -> Sql:
    """The ids of a chain's runs, as a subquery that the index of later runs answers."""
    chain = _chain(using, chain_id)
    return build(
        f"SELECT {{one}} UNION ALL SELECT id FROM {TABLE} WHERE chain_id = {{two}} AND run > 1", one=chain, two=chain
    )


def lock_current(using: str, execution_id: UUID, *, shared: bool = False) -> tuple[datetime, dict[str, Any]]:
    """``lock_execution``, of the chain's current run where this one has been continued; the row says which it is."""
    now, row = lock_execution(using, execution_id, shared=shared)
    while row["status"] == "continued":
        newest = newest_run(using, row["chain_id"])
        if newest == row["id"]:
            break
        now, row = lock_execution(using, newest, shared=shared)
    return now, row


def _chain(using: str, chain_id: UUID) -> Sql:
    return value(connections[using], field_of(Execution, "chain_id"), chain_id)

"""load_ended: ended executions by the million, written by the database itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection

from django_durable.clock import read_now
from django_durable.models import Checkpoint, Execution
from django_durable.sql import column_of

__all__ = ["load_ended"]

CHUNK = 100_000
"""Executions of one statement."""

EXECUTION, CHECKPOINT = Execution._meta.db_table, Checkpoint._meta.db_table
SERIES = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %s)"
# Executions that a chunk's first run is copied from have every column that a start would have set.
RUN: dict[str, Any] = {
    "tenant": "",
    "workflow": "retention.order",
    "version": "1",
    "source_digest": "",
    "run": 1,
    "status": "completed",
    "queue": "durable",
    "priority": 0,
    "tags": "{}",
    "correlation_id": "",
    "parent_close": "cancel",
    "revision": 3,
    "epoch": 0,
    "worker": "",
    "recoveries": 0,
    "takeovers": "[]",
    "awaiting": "",
    "ending_as": "",
    "failed_positions": "",
    "blocked_by": "",
    "budget": "",
    "singleton_limit": 0,
    "in_line": False,
    "seed": "0" * 32,
    "encoded_input": '{"order_id":1,"note":"as it was ordered"}',
    "encoded_output": '"delivered to the door of the one who ordered it"',
    "moving": False,
}
STEP: dict[str, Any] = {
    "item": -1,
    "kind": "step",
    "name": "retention.step",
    "status": "completed",
    "attempt": 1,
    "begun": 1,
    "queue": "",
    "recoveries": 0,
    "encoded_output": '{"id":"payment-1","amount":["12.50","EUR"]}',
    "attempts_log": "",
    "log": "",
}


def load_ended(count: int, *, checkpoints: int, ended: timedelta, children: int = 0) -> None:
    """So many trees that ended so long ago, one behind the other, each execution with so many checkpoints."""
    for begin in range(0, count, CHUNK):
        _load(min(CHUNK, count - begin), begin, checkpoints, ended, children)


def _load(count: int, begin: int, checkpoints: int, ended: timedelta, children: int) -> None:
    fresh = "gen_random_uuid()" if connection.vendor == "postgresql" else "lower(hex(randomblob(16)))"
    moment = read_now("default") - ended
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS loaded")
        cursor.execute(f"CREATE TEMPORARY TABLE loaded AS {SERIES} SELECT {fresh} AS id, n FROM s", [count])
        cursor.execute("ALTER TABLE loaded ADD COLUMN root_id " + _type_of_id())
        cursor.execute("UPDATE loaded SET root_id = id")
        for _child in range(children):
            cursor.execute(
                f"INSERT INTO loaded (id, n, root_id) SELECT {fresh}, n, root_id FROM loaded WHERE id = root_id"
            )
        same = {
            "id": "id",
            "chain_id": "id",
            "root_id": "root_id",
            "parent_id": "CASE WHEN id <> root_id THEN root_id END",
            "finished_at": _behind(),
            "created_at": _behind(),
        }
        _insert(cursor, Execution, RUN, same, "FROM loaded", [moment, begin, moment, begin])
        if checkpoints:
            _insert(
                cursor,
                Checkpoint,
                STEP,
                {"execution_id": "loaded.id", "position": "s.n"},
                "FROM loaded, s",
                [],
                series=checkpoints,
            )


def _type_of_id() -> str:
    return "uuid" if connection.vendor == "postgresql" else "char(32)"


def _behind() -> str:
    """A moment, and a millisecond later for each execution."""
    if connection.vendor == "postgresql":
        return "CAST(%s AS timestamptz) + (n + %s) * interval '1 millisecond'"
    return "strftime('%%Y-%%m-%%d %%H:%%M:%%f', %s, ((n + %s) / 1000.0) || ' seconds')"


def _insert(
    cursor: Any,
    model: type[Any],
    fixed: dict[str, Any],
    chosen: dict[str, str],
    source: str,
    moments: list[Any],
    *,
    series: int | None = None,
) -> None:
    names = [column_of(field) for field in model._meta.concrete_fields]
    names = [name for name in names if name in fixed or name in chosen]
    parts = [chosen.get(name, "%s") for name in names]
    later = iter(moments)
    params: list[Any] = [] if series is None else [series]
    for name in names:
        if name in chosen:
            params += [next(later) for _hole in range(chosen[name].count("%s"))]
        else:
            params.append(fixed[name])
    with_series = "" if series is None else f"{SERIES} "
    cast = "CAST(%s AS jsonb)" if connection.vendor == "postgresql" else "%s"
    parts = [cast if name == "tags" else part for name, part in zip(names, parts, strict=True)]
    cursor.execute(
        f"INSERT INTO {model._meta.db_table} ({', '.join(names)}) {with_series}SELECT {', '.join(parts)} {source}",
        params,
    )

"""A prune among many rows reads none of the big tables whole, and holds no transaction for long.

Every statement of it is explained in the moment before it is sent; on PostgreSQL with the statistics that tables of
such a size have. SQLite decides without statistics: there a few rows will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection

from django_durable.clock import read_now
from django_durable.engine.retention import Terms
from django_durable.engine.transitions.prune import ROWS
from django_durable.models import Checkpoint, Execution
from django_durable.operators.prune import prune_place
from django_durable.runtime.retention import prune_ended
from testproject.retention.loading import load_ended
from testproject.retention.timing import timed
from tests.services.project import Project

EXECUTION, CHECKPOINT = Execution._meta.db_table, Checkpoint._meta.db_table
KEPT, OLD = (20_000, 600) if connection.vendor == "postgresql" else (300, 40)


@contextmanager
def plans() -> Iterator[list[str]]:
    """What is wrong with the plan of any statement in the block."""
    found: list[str] = []
    looking = False

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal looking
        if not looking and sql.startswith(("SELECT", "UPDATE", "DELETE")):
            looking = True
            with connection.cursor() as cursor:
                if connection.vendor == "postgresql":
                    cursor.execute(f"EXPLAIN {sql}", params)
                    whole = rf"Seq Scan on ({EXECUTION}|{CHECKPOINT})"
                else:
                    cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
                    whole = rf"SCAN ({EXECUTION}|{CHECKPOINT})$"
                plan = [str(row[-1]) for row in cursor.fetchall()]
            found.extend(f"{line}: {sql[:300]}" for line in plan if re.search(whole, line))
            looking = False
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield found


def test_no_statement_reads_a_big_table_whole(project: Project) -> None:
    load_ended(KEPT, checkpoints=3, ended=timedelta(days=1))
    load_ended(OLD, checkpoints=3, ended=timedelta(days=100), children=1)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    terms = Terms(periods={}, older_than=timedelta(days=30))
    with plans() as found, timed(connection) as lengths:
        counted = prune_place("default", terms, dry_run=True)
        pruned = prune_place("default", terms)
        assert prune_ended("default") == 0
    assert not found, "\n".join(found)
    assert max(lengths) < 5.0
    assert len(lengths) > 2 * OLD / ROWS, "one transaction has all of it"
    assert pruned.trees == counted.trees == OLD
    assert pruned.rows == counted.rows
    assert pruned.rows["executions"] == 2 * OLD
    assert Execution.objects.filter(finished_at__lt=read_now("default") - timedelta(days=30)).count() == 0
    assert Execution.objects.count() == KEPT
    assert Checkpoint.objects.count() == 3 * KEPT

"""Field report B102: polls take seconds once millions of runs have finished or sleep.

Every statement that workers and ticks send by themselves is explained, on PostgreSQL in a database that holds mostly
what is not due: with statistics and before there are any, with plans made for the values and for any values. SQLite
explains without running, and decides without statistics: there a few rows will do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet

from django_durable import Context, Execution, step, workflow
from django_durable.authoring.registry import code_digest
from django_durable.dispatch.definitions import definition_hash
from django_durable.dispatch.hints import renew
from django_durable.engine.transitions.hint_lease import lease
from django_durable.models import Checkpoint, DeadLetter, DispatchHint, Message
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.messages_due import MessagesDue
from django_durable.runtime.queues import waiting_queues
from django_durable.runtime.sweeps import write_missing_letters
from django_durable.runtime.tick import INTERVALS, claim_pass_of, tick
from django_durable.runtime.turn import run_turn
from django_durable.sql import column_of
from tests.driving import lease_of
from tests.services.project import Project

EXECUTION, HINT, CHECKPOINT, MESSAGE, LETTER = (
    model._meta.db_table for model in (Execution, DispatchHint, Checkpoint, Message, DeadLetter)
)
BIG = {EXECUTION, HINT, CHECKPOINT, MESSAGE}
COMPLETED, SLEEPING, ASLEEP, LISTENING, READY, FAILED, BLOCKED = 40_000, 60_000, 10_000, 3_000, 3_000, 1_000, 500
BATCH = 50


@step
def nothing() -> None: ...


@workflow
def ordinary(ctx: Context) -> None:
    ctx.step(nothing)
    ctx.sleep(60)


@workflow
def listens(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


@contextmanager
def without_indexes() -> Iterator[None]:
    """Rows come faster into tables whose indexes are made afterwards; those behind constraints stay."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s)"
            " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
            [sorted(BIG)],
        )
        indexes = cursor.fetchall()
        for name, _definition in indexes:
            cursor.execute(f"DROP INDEX {name}")
        yield
        for _name, definition in indexes:
            cursor.execute(definition)


def load() -> None:
    """Mostly finished and sleeping runs, some that are due, copied from one that was really started."""
    pattern = ordinary.start()
    with without_indexes(), connection.cursor() as cursor:
        _copy(cursor, pattern, COMPLETED, status="'completed'", finished_at="now()", encoded_output="'null'")
        far = "now() + (random() * 60 + 1) * interval '1 day'"
        _copy(cursor, pattern, SLEEPING, status="'waiting'", wake_at=far)
        _copy(cursor, pattern, ASLEEP, status="'waiting'", wake_at=far, queue="'asleep'")
        _copy(cursor, pattern, LISTENING, status="'waiting'", awaiting="'[\"signal:go\"]'")
        _copy(cursor, pattern, READY)
        _copy(cursor, pattern, FAILED, status="'failed'", finished_at="now()", encoded_error="'{}'")
        _copy(cursor, pattern, BLOCKED, status="'blocked'", blocked_by=f"'{code_digest()}'")
        cursor.execute(
            f"INSERT INTO {HINT} (id, kind, state, execution_id, position, item, plane, revision, epoch, queue, priority,"
            " definition, lane, opening, avoid, due_at, owner, token, revoked, failures, category)"
            " SELECT gen_random_uuid(), 0, CASE WHEN status = 'blocked' THEN 1 ELSE 0 END, id, -1, -1, '', revision,"
            " epoch, queue, priority, %s, '', false, blocked_by, COALESCE(wake_at, now() - random() * interval '1 hour'), '', NULL,"
            f" false, 0, '' FROM {EXECUTION} WHERE id <> %s AND (status IN ('pending', 'blocked') OR wake_at IS NOT NULL)",
            [definition_hash(ordinary.name, ordinary.version), pattern.pk],
        )
        cursor.execute(
            f"INSERT INTO {CHECKPOINT} (execution_id, position, item, kind, name, status, attempt, begun, queue,"
            " recoveries, attempts_log, log) SELECT id, 0, -1, 'sleep', '', 'completed', 1, 1, '', 0, '', ''"
            f" FROM {EXECUTION} WHERE status IN ('completed', 'waiting')"
        )
        cursor.execute(
            f"INSERT INTO {MESSAGE} (execution_id, channel, payload, accepted_at, consumed_by)"
            f" SELECT id, 'signal:go', 'null', now(), 0 FROM {EXECUTION} WHERE status = 'completed' LIMIT 10000"
        )
        cursor.execute(
            f"INSERT INTO {LETTER} (execution_id, generation, tenant, workflow, version, correlation_id, status, failures,"
            " recoveries, created_at, retried_by) SELECT id, 1, '', workflow, version, '', status, '[]', 0, now(), ''"
            f" FROM {EXECUTION} WHERE status = 'failed'"
        )


def _copy(cursor: Any, pattern: Execution[Any], count: int, **columns: str) -> None:
    columns = {"id": "gen_random_uuid()", **columns}
    names = [column_of(field) for field in Execution._meta.concrete_fields]
    chosen = ", ".join(columns.get(name, f"e.{name}") for name in names)
    cursor.execute(
        f"INSERT INTO {EXECUTION} ({', '.join(names)}) SELECT {chosen} FROM {EXECUTION} e,"
        " generate_series(1, %s) WHERE e.id = %s",
        [count, pattern.pk],
    )


# -- what is sent --------------------------------------------------------------------------------------------


@contextmanager
def each_statement(look: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Look at every statement in the moment before it is sent; lists of any length are one statement."""
    seen: set[str] = set()
    looking = False

    def before(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal looking
        shape = re.sub(r"(\(?%s(::\w+)?\)?(, )?)+", "%s ", sql)
        if not looking and shape not in seen and sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
            seen.add(shape)
            looking = True
            try:
                look(sql, tuple(params or ()))
            finally:
                looking = False
        return execute(sql, params, many, context)

    with connection.execute_wrapper(before):
        yield


def claim_batch(*queues: str, blocked: bool = False) -> list[Any]:
    return claim_pass("default", terms_of(limit=BATCH, queues=queues, blocked=blocked))[0]


def work() -> None:
    """A few turns, and what others do to their runs meanwhile."""
    claims = claim_batch("durable")
    assert len(claims) == BATCH
    renew("default", [(claimed.hint_id, claimed.token) for claimed in claims], 30)
    for claimed in claims[:3]:
        run_turn(claimed, lease_of(claimed))
    talk = listens.using(key=str(uuid4())).start()
    for claimed in claim_pass("default", terms_of(limit=1, queues=(), hint_id=_hint(talk)))[0]:
        run_turn(claimed, lease_of(claimed))
    talk.signal("go")
    for claimed in claim_pass("default", terms_of(limit=1, queues=(), hint_id=_hint(talk)))[0]:
        run_turn(claimed, lease_of(claimed))
    failed = Execution.objects.filter(status="failed").order_by("pk")[0]
    failed.retry(actor="ann")
    failed.cancel(actor="ann")


def _hint(execution: Execution[Any]) -> Any:
    return DispatchHint.objects.get(execution_id=execution.pk).pk


def sweep_all() -> None:
    for _interval, sweep in INTERVALS.values():
        for _ in range(2):
            assert sweep("default") == 0


PERIODIC: dict[str, Callable[[], Any]] = {
    "queues": lambda: waiting_queues("default"),
    "claim": lambda: claim_batch("durable", "other", "asleep"),
    "claim where all sleep": lambda: claim_batch("asleep"),
    "claim of blocked work": lambda: claim_batch("durable", blocked=True),
    "lease for other planes": lambda: lease("default", terms_of(limit=BATCH, queues=("durable", "asleep"))),
    "messages": lambda: MessagesDue().send("default", lambda _hint, _queue: True),
    "turns": work,
    "sweeps": sweep_all,
    "tick": tick,
    "sweep claim": lambda: claim_pass_of("default", "unknown", 2.0),
}


# -- how it is read ------------------------------------------------------------------------------------------


def explained(sql: str, params: tuple[Any, ...], *, generic: bool = False) -> dict[str, Any]:
    """The plan that the statement is really run by, undone afterwards."""
    how = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
    with transaction.atomic(), connection.cursor() as cursor:
        if generic:
            numbers = iter(range(1, len(params) + 1))
            text = re.sub("%s|%%", lambda hole: "%" if hole[0] == "%%" else f"${next(numbers)}", sql)
            cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            cursor.execute(f"PREPARE one AS {text.replace('%', '%%')}", [])
            sql = f"EXECUTE one({', '.join('%s' for _ in params)})" if params else "EXECUTE one"
        cursor.execute(how + sql, params)
        plan: dict[str, Any] = cursor.fetchone()[0][0]
        if generic:
            cursor.execute("DEALLOCATE one")
        transaction.set_rollback(True)
    return plan


WHOLE = rf"SCAN ({'|'.join(sorted(BIG))}|[ehc])"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


def blocks(plan: dict[str, Any]) -> int:
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


# Blocks that one statement may read: a claim writes two rows and their indexes for each run that it takes; a sweep
# that looks for unknown work reads a page of a thousand due hints, and before there are statistics sorts all that are
# due; a backstop that runs once an hour reads all failed runs.
CLAIM = 60 * BATCH
LIMITS = {"claim": CLAIM, "lease for other planes": CLAIM, "turns": CLAIM, "sweeps": 2 * READY, "tick": 2 * READY}
ORDINARY_LIMIT = 1_500


def offences(by: str, sql: str, params: tuple[Any, ...], statistics: str) -> Iterator[str]:
    """What is wrong with the plans of one statement."""
    for generic in (False, True):
        plan = explained(sql, params, generic=generic)
        where = f"({statistics} statistics, {'generic' if generic else 'custom'} plan) {by}: {sql[:300]}"
        for node in nodes(plan["Plan"]):
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in BIG:
                yield f"reads all of {node['Relation Name']} {where}"
        if blocks(plan) > LIMITS.get(by, ORDINARY_LIMIT):
            yield f"reads {blocks(plan)} blocks {where}"


def cost_of(act: Callable[[], Any]) -> tuple[int, float]:
    """Blocks and milliseconds of its statements, turns and then steps elsewhere, each the best of five."""
    plans: list[list[dict[str, Any]]] = []
    with each_statement(lambda sql, params: plans.append([explained(sql, params) for _ in range(5)])):
        act()
    assert 1 <= len(plans) <= 2
    blocks_read = sum(min(map(blocks, five)) for five in plans)
    return blocks_read, sum(min(float(plan["Execution Time"]) for plan in five) for five in plans)


if connection.vendor == "sqlite":

    def test_each_is_searched_by_an_index(project: Project) -> None:
        for _ in range(4 * BATCH):
            ordinary.start()
        broken = Execution.objects.order_by("pk")[0]
        QuerySet(Execution).filter(pk=broken.pk).update(status="failed")
        write_missing_letters("default")
        found: list[str] = []
        for by, act in PERIODIC.items():

            def look(sql: str, params: tuple[Any, ...]) -> None:
                with connection.cursor() as cursor:
                    cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
                    how = [row[3] for row in cursor.fetchall()]
                found.extend(f"{one} {by}: {sql[:300]}" for one in how if re.fullmatch(WHOLE, one))
                if "claim" in by and f"FROM {HINT} h WHERE" in sql:
                    assert any("queue=? AND priority=? AND due_at<?" in one for one in how), how

            with each_statement(look):
                act()
        assert not found, "\n".join(found)


if connection.vendor == "postgresql":

    def test_each_is_read_by_an_index_and_within_bounds(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        # A few pages show how a page is read.
        monkeypatch.setattr("django_durable.runtime.stretch.STRETCH", 1_000)
        load()
        found: list[str] = []
        looked_at: Counter[str] = Counter()
        for statistics in ("no", "fresh"):
            if statistics == "fresh":
                with connection.cursor() as cursor:
                    cursor.execute("VACUUM ANALYZE")
            monkeypatch.setattr("django_durable.runtime.stretch._cursors", {})
            for by, act in PERIODIC.items():

                def look(sql: str, params: tuple[Any, ...]) -> None:
                    looked_at[by] += 1
                    found.extend(offences(by, sql, params, statistics))

                with each_statement(look):
                    act()
        assert not found, "\n".join(found)
        assert set(looked_at) == set(PERIODIC)
        assert looked_at.total() > 100

        busy, idle = cost_of(lambda: claim_batch("durable")), cost_of(lambda: claim_batch("asleep"))
        assert busy[0] < CLAIM
        assert busy[1] < 20.0
        assert idle[0] < 50
        assert idle[1] < 5.0

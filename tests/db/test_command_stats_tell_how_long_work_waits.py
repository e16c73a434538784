"""``durable stats``: the backlog and its age, at a price that does not grow with the backlog."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, workflow
from django_durable.cli.stats import capped
from django_durable.clock import read_now
from django_durable.models import DispatchHint, SweepClaim
from django_durable.operators.stats import MOST_COUNTED, count_up_to, measure
from django_durable.runtime.tick import tick
from tests.calling import durable
from tests.driving import USING, claim, connection, drain

pytestmark = pytest.mark.django_db


@workflow("stats.flow")
def flow(ctx: Context, then: str = "end") -> None:
    if then == "sleep":
        ctx.sleep(3600)
    elif then == "wait":
        ctx.wait_for_signal("go")
    elif then == "fail":
        raise ValueError("no")


def ago(seconds: float) -> Any:
    return read_now(USING) - timedelta(seconds=seconds)


def test_an_empty_database_has_zeros_and_no_ages() -> None:
    stats = measure().total
    assert set(stats.statuses.values()) == {0}
    assert (stats.ready, stats.running, stats.sleeping, stats.open_dead_letters) == (0, 0, 0, 0)
    assert (stats.oldest_ready_seconds, stats.last_tick_seconds) == (None, None)


def test_each_kind_of_work_is_counted_as_what_it_is() -> None:
    for then in ("end", "sleep", "sleep", "wait", "fail", "fail", "fail"):
        flow.start(then)
    drain()
    flow.start()
    claim(limit=1)
    for priority, queue in [(-2, "slow"), (0, "durable"), (2, "durable")]:
        flow.using(priority=priority, queue=queue).start()

    stats = durable("stats", "--json").data
    assert {name: count for name, count in stats["statuses"].items() if count} == {
        "pending": 3,
        "running": 1,
        "waiting": 3,
        "completed": 1,
        "failed": 3,
    }
    assert (stats["ready"], stats["running"], stats["sleeping"]) == (3, 1, 2)
    assert (stats["open_dead_letters"], stats["blocked"], stats["parked"], stats["unpublished"]) == (3, 0, 0, 0)


def test_the_oldest_ready_work_gives_the_age_on_whatever_queue_and_priority() -> None:
    flow.start()
    late = flow.using(priority=-2, queue="slow").start()
    sleeping = flow.using(run_after=3600).start()
    DispatchHint.objects.filter(execution_id=late.pk).update(due_at=ago(100))

    age = measure().total.oldest_ready_seconds
    assert age is not None
    assert 100 <= age < 160
    DispatchHint.objects.filter(execution_id=late.pk).delete()
    DispatchHint.objects.exclude(execution_id=sleeping.pk).delete()
    assert measure().total.oldest_ready_seconds is None


def test_ages_are_told_by_the_databases_clock() -> None:
    tick()
    SweepClaim.objects.filter(name="tick").update(ran_at=ago(50))
    age = measure().total.last_tick_seconds
    assert age is not None
    assert 50 <= age < 110


def test_counting_stops_at_its_bound() -> None:
    for _ in range(5):
        flow.start()
    assert count_up_to(Execution.objects.using(USING), 3) == 3
    assert count_up_to(Execution.objects.using(USING), 10) == 5
    assert capped(MOST_COUNTED) == f"{MOST_COUNTED}+"
    assert capped(MOST_COUNTED - 1) == MOST_COUNTED - 1


def test_the_text_has_the_statuses_that_there_are() -> None:
    flow.start()
    lines = [line.rsplit(maxsplit=1) for line in durable("stats").out.splitlines()]
    text = dict(lines)
    assert (text["pending"], text["ready"], text["last tick seconds"]) == ("1", "1", "-")
    assert "completed" not in text


def queries() -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        measure().total
    return [query["sql"] for query in captured]


def test_the_number_of_queries_does_not_depend_on_the_backlog() -> None:
    flow.start()
    few = queries()
    for _ in range(30):
        flow.start()
    assert len(queries()) == len(few) <= 20


LARGE = re.compile("django_durable_(execution|dispatchhint|outbox|deadletter|checkpoint)")


def test_every_query_on_a_large_table_is_a_search_of_an_index() -> None:
    flow.start()
    asked = [sql for sql in queries() if LARGE.search(sql)]
    assert len(asked) >= 8
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # On so few rows only the lack of a usable index leaves a sequential scan.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
        for sql in asked:
            cursor.execute(f"EXPLAIN {'' if connection.vendor == 'postgresql' else 'QUERY PLAN '}{sql}")
            plan = [str(line) for line in cursor.fetchall() if LARGE.search(str(line))]
            assert plan, sql
            for line in plan:
                assert "Seq Scan" not in line and not re.search(r"\bSCAN\b", line), f"{sql}\n{line}"

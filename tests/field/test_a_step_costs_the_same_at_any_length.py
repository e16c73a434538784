"""Field report B104: each resume reads the whole history several times, and a step costs more the later it comes.

``tests/db/test_the_ordinary_path_costs_what_the_plan_says.py`` counts the statements of one turn; here is what a long
run costs over its life, and where it ends.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from django_durable import Context, Execution, step, workflow
from django_durable.models import Checkpoint
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lease_of, make_due

pytestmark = pytest.mark.django_db

at: list[float] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    at.clear()


@step
def clock(number: int) -> int:
    at.append(time.thread_time())
    return number


@workflow
def steps(ctx: Context, count: int) -> int:
    return sum(ctx.step(clock, number) for number in range(count))


@workflow
def naps(ctx: Context, count: int) -> int:
    total = 0
    for number in range(count):
        total += ctx.step(clock, number)
        ctx.sleep(60)
    return total


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that is sent, but for savepoints: they stand in for the transactions of production."""
    sent: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK TO")):
            sent.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield sent


COUNT = 1500


def test_the_last_steps_of_a_long_turn_take_as_long_as_the_first() -> None:
    execution = steps.start(COUNT)
    with statements() as sent:
        assert drain() == 1
    assert Execution.objects.locate(execution.pk).output == sum(range(COUNT))
    assert len(sent) <= COUNT + 20
    assert sum("FROM django_durable_checkpoint" in sql for sql in sent) == 1
    gaps = [later - earlier for earlier, later in zip(at, at[1:], strict=False)]
    # This thread's own processor time, and the median of many: what else the machine does takes no part.
    first, last = statistics.median(gaps[:300]), statistics.median(gaps[-300:])
    assert last <= 2 * first


def test_each_resume_reads_the_history_once_and_in_one_statement() -> None:
    count = 120
    execution = naps.start(count)
    costs: list[int] = []
    for _ in range(count + 1):
        make_due()
        [claimed] = claim()
        with statements() as sent:
            run_turn(claimed, lease_of(claimed))
        costs.append(len(sent))
        assert sum("FROM django_durable_checkpoint" in sql for sql in sent) == 1
    assert Execution.objects.locate(execution.pk).output == sum(range(count))
    assert len(at) == count
    # The first turn has no sleep to end, the last no step to run: all the others cost the same.
    assert len(set(costs[1:-1])) == 1
    assert costs[0] <= costs[1]
    assert costs[1] <= (4 if connection.vendor == "postgresql" else 8)


def test_a_run_that_is_too_long_stops_with_a_text_that_says_what_to_do(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.DURABLE = {"MAX_POSITIONS": 50}
    execution = steps.start(60)
    with caplog.at_level(logging.WARNING, "django_durable"):
        drain()
    assert "40 of 50 positions" in caplog.text
    stopped = Execution.objects.locate(execution.pk)
    assert stopped.status == "blocked"
    assert stopped.error is not None
    assert "MAX_POSITIONS" in stopped.error["message"]
    assert Checkpoint.objects.count() == len(at) == 50

    settings.DURABLE = {"MAX_POSITIONS": 100}
    stopped.resume(actor="ann")
    drain()
    assert Execution.objects.locate(execution.pk).output == sum(range(60))
    assert len(at) == 60

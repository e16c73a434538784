"""Field report B70: the dead-letter sweep copies the same run again and again.

Here a letter is written by the transaction that ends the run; the sweep is only a backstop. Any number of sweeps,
and a crash between the letter and the end, leave exactly one open letter.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from django_durable import Context, Execution, InvalidTransition, workflow
from django_durable.models import DeadLetter, DispatchHint
from django_durable.runtime.sweeps import write_missing_letters
from tests.driving import claim, drain, lapse_leases
from tests.field.bench.running import Aside

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(max_recoveries=0)
def fails(ctx: Context) -> None:
    raise ValueError("for good")


def letters(execution: Execution[Any]) -> list[tuple[int, bool]]:
    """Generation, and whether it is open, in order."""
    rows = DeadLetter.objects.filter(execution_id=execution.pk).order_by("generation")
    return [(row.generation, row.retried_at is None) for row in rows]


def test_parallel_sweeps_write_one_letter_each() -> None:
    dead = [fails.start() for _ in range(20)]
    drain()
    DeadLetter.objects.all().delete()

    def sweep() -> int:
        return sum(write_missing_letters("default") for _ in range(10))

    sweepers = [Aside(sweep) for _ in range(4)]
    for sweeper in sweepers:
        sweeper.start()
    assert sum(sweeper.finish() for sweeper in sweepers) == 20
    for execution in dead:
        assert letters(execution) == [(1, True)]
        assert DeadLetter.objects.get(execution_id=execution.pk).encoded_error == execution_error(execution)


def execution_error(execution: Execution[Any]) -> Any:
    return Execution.objects.locate(execution.pk).encoded_error


def test_the_database_refuses_a_second_letter_of_one_end() -> None:
    execution = fails.start()
    drain()
    letter = DeadLetter.objects.get()
    letter.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        letter.save(force_insert=True)
    assert letters(execution) == [(1, True)]


class Crash(BaseException):
    """The process is gone."""


def test_a_crash_between_the_letter_and_the_end_leaves_neither() -> None:
    execution = fails.start()
    [_lost] = claim()
    lapse_leases()

    def crash_after_the_letter(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(f"DELETE FROM {DispatchHint._meta.db_table}"):
            assert DeadLetter.objects.exists()
            raise Crash
        return execute(sql, params, many, context)

    with pytest.raises(Crash), connection.execute_wrapper(crash_after_the_letter):
        claim()
    assert letters(execution) == []
    assert Execution.objects.locate(execution.pk).status == "running"
    lapse_leases()
    assert claim() == []
    assert Execution.objects.locate(execution.pk).status == "dead"
    assert letters(execution) == [(1, True)]


def test_dying_again_after_a_retry_opens_a_new_letter_and_closes_no_other_run_s() -> None:
    execution, other = fails.start(), fails.start()
    drain()
    execution.retry(actor="ann")
    assert letters(execution) == [(1, False)]
    drain()
    assert letters(execution) == [(1, False), (2, True)]
    assert letters(other) == [(1, True)]
    assert write_missing_letters("default") == 0
    assert letters(execution) == [(1, False), (2, True)]


def test_of_operators_who_retry_at_once_one_wins_and_the_run_is_reopened_once() -> None:
    execution = fails.start()
    drain()

    def retry(actor: str) -> bool:
        try:
            Execution.objects.locate(execution.pk).retry(actor=actor)
        except InvalidTransition as refused:
            assert refused.actor
            return False
        return True

    operators = [Aside(partial(retry, actor)) for actor in ("ann", "bob", "cleo", "dan")]
    for operator in operators:
        operator.start()
    assert [operator.finish() for operator in operators].count(True) == 1
    assert letters(execution) == [(1, False)]
    assert DispatchHint.objects.count() == 1

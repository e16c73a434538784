"""A cancel that undoes against a running turn: what was registered is undone, and nothing forward is recorded after."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from django_durable import Context, Execution, step, workflow
from django_durable.engine.journal import fenced_insert, row_for
from django_durable.engine.ownership import Refusal, explain_refusal
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.undo import Ending, begin_after_failure, begin_asked
from django_durable.models import DispatchHint
from django_durable.sql import fetch
from tests.db.racing import USING, Transaction, claim_one, lapsed, racers, take_over
from tests.driving import drain
from tests.services.project import Project

log: list[str] = []
meanwhile: dict[str, Callable[[], Any]] = {}
POSTGRES = os.environ["TEST_DB"] == "postgres"


@step("racing.book")
def book(what: str) -> None:
    log.append(what)
    meanwhile.pop(what, lambda: None)()


@workflow("racing.booked")
def booked(ctx: Context) -> None:
    ctx.step(book, "first")
    ctx.compensate(book, "undo second")
    ctx.step(book, "second")
    ctx.wait_for_signal("go")


@pytest.fixture(autouse=True)
def _forget() -> None:
    log.clear()
    meanwhile.clear()


def register(claimed: Any, position: int = 0) -> int:
    """Append one registration under the fence, as a turn does; how many rows went in."""
    more = {"encoded_input": '[["undo second"], {}]'}
    row = row_for(claimed, position, "compensate", "racing.book", "completed", **more)
    return len(fetch(USING, fenced_insert(claimed, [row])))


def test_a_turn_that_was_asked_to_stop_records_nothing_forward_and_hands_over_once(project: Project) -> None:
    execution = booked.start()
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        assert turn.run(begin_asked, held) is False, "nobody has asked"
        assert turn.run(register, held) == 1
        assert operator.run(execution.cancel, actor="ann") is True
        assert Execution.objects.get().status == "running"
        assert DispatchHint.objects.get().revoked is True

        assert turn.run(register, held, 1) == 0
        assert turn.run(explain_refusal, held, 1) is Refusal.ENDING
        assert turn.run(begin_after_failure, held, Pages(), Ending(status="failed")) is False
        assert turn.run(leave.suspend, held, Pages(), wake_at=None, awaiting='["signal:go"]') is False
        assert turn.run(leave.release, held, Pages()) is False
        assert turn.run(leave.pause_here, held, Pages()) is False

        assert turn.run(begin_asked, held) is True
        assert turn.run(begin_asked, held) is False
        row = Execution.objects.get()
        assert (row.status, row.ending_as, row.lease_token) == ("compensating", "cancelled", None)
        assert not DispatchHint.objects.get().revoked


def test_a_cancel_that_meets_an_open_registration_comes_after_it_and_undoes(project: Project) -> None:
    execution = booked.start()
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        appending = Transaction(turn)
        assert turn.run(register, held) == 1
        cancelling = operator.begin(execution.cancel, actor="ann")
        if POSTGRES:
            operator.wait_for_lock(cancelling)
        appending.commit()
        assert cancelling.result(60) is True
        assert Execution.objects.get().ending_as == "cancelled"


def test_a_take_over_of_a_turn_that_was_asked_to_stop_is_a_turn_in_undo_mode(project: Project) -> None:
    execution = booked.start()
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        assert turn.run(register, held) == 1
        assert operator.run(execution.cancel, actor="ann") is True
        new = operator.run(lambda: take_over(lapsed()))
        assert new.row["status"] == "compensating"
        assert turn.run(begin_asked, held) is False, "the zombie has nothing left to hand over"
        assert Execution.objects.get().lease_token == new.token


def test_a_snapshot_that_is_older_than_a_registration_does_not_hide_it(project: Project) -> None:
    execution = booked.start()
    with racers(1) as (operator,):
        caller = transaction.atomic(using=USING)

        def look() -> None:
            if POSTGRES:  # SQLite's transactions begin with its only write lock: no registration comes in between
                caller.__enter__()
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    cursor.execute("SELECT count(*) FROM django_durable_checkpoint")

        def cancel() -> bool:
            if not POSTGRES:
                caller.__enter__()
            won = execution.cancel(actor="ann")
            caller.__exit__(None, None, None)
            return won

        answers: list[bool] = []
        meanwhile["first"] = lambda: operator.run(look)
        meanwhile["second"] = lambda: answers.append(operator.run(cancel))
        drain()
    execution.refresh_from_db()
    assert (answers, execution.status) == ([True], "cancelled")
    assert log == ["first", "second", "undo second"]


def test_of_a_cancel_and_a_failure_with_undo_steps_the_first_decides(project: Project) -> None:
    execution = booked.start()
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        assert turn.run(register, held) == 1
        cancelling = Transaction(operator)
        assert operator.run(execution.cancel, actor="ann") is True
        failing = turn.begin(begin_after_failure, held, Pages(), Ending(status="failed"))
        if POSTGRES:
            turn.wait_for_lock(failing)
        cancelling.commit()
        assert failing.result(60) is False
        assert Execution.objects.get().ending_as == "cancelled"

"""Field report B38: the state is committed, the message that would go on with it is not sent, and nobody looks again.

What a broker that is away costs is in ``tests/celery/test_a_broker_that_is_away_costs_the_caller_nothing.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import Context, Execution, step, workflow
from django_durable.dispatch.nudge import listen
from django_durable.models import DispatchHint, SweepClaim
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor import examine
from django_durable.runtime.tick import tick
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lease_of
from tests.field.rig.bulk import executions_of
from tests.field.rig.yard import Yard

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.runtime.stretch._cursors", {})
    ran.clear()


@step
def effect(text: str) -> None:
    ran.append(text)


@workflow
def waits(ctx: Context) -> str:
    ctx.step(effect, "before")
    ctx.wait_for_signal("go", timeout=600)
    ctx.step(effect, "after")
    return "end"


# -- a message that is never sent ----------------------------------------------------------------------------------


@pytest.fixture
def silent_broker() -> Iterator[None]:
    """Whoever should tell others of due work raises instead."""

    def refuse(_hint_id: uuid.UUID, _queue: str) -> None:
        raise ConnectionError("no broker")

    forget = listen(refuse)
    yield
    forget()


@pytest.mark.usefixtures("silent_broker")
@pytest.mark.django_db(transaction=True)
def test_a_message_that_cannot_be_sent_fails_no_call_and_is_not_needed() -> None:
    execution = waits.start()
    drain()
    execution.signal("go")
    assert Execution.objects.locate(execution.pk).status == "pending"
    drain()
    assert Execution.objects.locate(execution.pk).output == "end"
    assert ran == ["before", "after"]


DIES_AFTER_COMMIT = """
import os
from django_durable.dispatch.nudge import listen
from tests.field.rig.workflows import three

listen(lambda hint_id, queue: os._exit(9))
three.using(key="k").start("x")
"""


def test_a_process_that_dies_between_commit_and_message_leaves_work_that_is_found(yard: Yard) -> None:
    yard.worker()
    yard.configure()
    yard.project.run_python(DIES_AFTER_COMMIT, expect=9)
    yard.wait_for_status(Execution.objects.get(key="k"), "completed")
    assert yard.begun() == ["x-a", "x-b", "x-c"]


# -- every state that the model allows -----------------------------------------------------------------------------

TOKENS: dict[str, Any] = {"without a token": None, "with a token": uuid.uuid4()}
ARRANGED = [(status, token) for status in ACTIVE for token in TOKENS]


@workflow
def plain(ctx: Context) -> str:
    ctx.step(effect, "plain")
    return "end"


def three_ticks() -> list[Any]:
    """Three ticks in which every sweep has its turn, with workers at work in between; what the doctor then says."""
    for _ in range(3):
        SweepClaim.objects.update(due_at="2000-01-01T00:00:00Z")
        tick()
        leased = DispatchHint.objects.filter(due_at__gt="2001-01-01T00:00:00Z")
        leased.update(due_at="2001-01-01T00:00:00Z")  # as long as a lease later
        for blocked in (False, True):
            for claimed in claim(blocked=blocked):
                run_turn(claimed, lease_of(claimed))
    return examine()


@pytest.mark.django_db
@pytest.mark.parametrize(("status", "token"), ARRANGED)
def test_a_row_of_any_state_with_all_else_empty_goes_on_or_is_reported(status: str, token: str) -> None:
    [execution] = executions_of(plain, 1, status=status, lease_token=TOKENS[token])
    found = three_ticks()
    row = Execution.objects.locate(execution.pk)
    reported = {pk for finding in found for pk in finding.executions}
    if status == "paused" and not row.is_terminal:
        # It awaits an operator, who can let it go on: that is what the status says.
        assert row.status == "paused"
        row.resume(actor="ann")
        drain()
        row = Execution.objects.locate(execution.pk)
    assert row.status == "completed" or row.pk in reported


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["pending", "running", "waiting", "paused", "blocked"])
def test_an_emptied_table_of_hints_costs_nothing_but_time(status: str) -> None:
    execution = waits.using(key="k").start()
    if status == "running":
        claim()
    elif status == "blocked":
        QuerySet(Execution).filter(pk=execution.pk).update(status="blocked", blocked_by="other code")
    elif status != "pending":
        drain()
    if status == "paused":
        execution.pause(actor="ann")
    assert Execution.objects.locate(execution.pk).status == status
    DispatchHint.objects.all().delete()
    assert three_ticks() == []
    row = Execution.objects.locate(execution.pk)
    assert row.status == ("paused" if status == "paused" else "waiting")
    if status == "paused":
        row.resume(actor="ann")
    row.signal("go")
    drain()
    assert Execution.objects.locate(execution.pk).output == "end"
    assert ran == ["before", "after"]

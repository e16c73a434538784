"""Rule 65: tenants' turns, the spine's own and steps elsewhere share a worker, however much of one kind is due."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connections
from django.test import override_settings

from django_durable import Context, Execution, PlaneUnavailable, UnknownWorkflow, step, workflow
from django_durable.dispatch.nudge import listen
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.ids import random_id
from django_durable.models import Checkpoint, DispatchHint
from django_durable.planes.breaker import _open
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.worker import Worker
from tests.driving import claim, drain, lease_of, run_claim
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")

PLANES = {"north": NORTH, "south": SOUTH}
QUEUES = ("durable", "crowd.steps")


@step(queue="crowd.steps")
def elsewhere(number: int) -> int:
    return number


@workflow("crowd.one")
def one(ctx: Context) -> int:
    return ctx.step(elsewhere, 1)


@workflow("crowd.plain")
def plain(ctx: Context) -> int:
    return 1


def step_due() -> Execution[int]:
    """A run of tenant ann whose step elsewhere is due."""
    execution = one.using(tenant="ann").start()
    for turn in claim():
        if not isinstance(turn, ClaimedStep):
            run_claim(turn, lease_of(turn))
    DispatchHint.objects.using(SPINE).update(due_at="2000-01-01T00:00:00Z")
    return execution


@override_settings(DURABLE={**settings.DURABLE, "SPINE": SPINE, "PLANES": PLANES, "UNTENANTED": "control-plane"})
def test_whoever_found_no_room_begins_the_next_pass() -> None:
    waiting = step_due()
    for _ in range(3):
        plain.using(tenant="ann").start()
    own = plain.start()
    terms = terms_of(limit=1, queues=QUEUES)
    assert [c.id for c in claim_pass(SPINE, terms, 1)[0]] == [own.id]
    assert [c.id for c in claim_pass(SPINE, terms, 2)[0]] == [waiting.id]
    assert [c.row["workflow"] for c in claim_pass(SPINE, terms)[0]] == ["crowd.plain"]


@workflow("crowd.endless")
def endless(ctx: Context, number: int) -> None:
    ctx.continue_as_new(number + 1)


def test_a_worker_of_one_slot_comes_to_steps_whatever_else_is_due() -> None:
    execution = step_due()
    for _ in range(3):
        endless.using(tenant="cid").start(0)
    Worker(concurrency=1, queues=QUEUES, max_turns=6).run()
    settled = Checkpoint.objects.using(NORTH).get(execution_id=execution.id)
    assert settled.status == "completed"


def test_a_step_on_a_plane_that_is_away_goes_back_and_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    step_due()
    step_due()
    with down(NORTH), caplog.at_level(logging.WARNING, "django_durable"):
        assert claim() == []
    hints = DispatchHint.objects.using(SPINE).filter(kind=DispatchHint.Kind.STEP)
    assert set(hints.values_list("token", "failures")) == {(None, 0)}
    assert [record.levelname for record in caplog.records] == ["WARNING"]  # one outage, told once
    _open.clear()


@workflow("crowd.late")
def late(ctx: Context) -> int:
    return 1


@workflow("crowd.parent")
def parent(ctx: Context) -> int:
    return ctx.child(late.using(timeout=timedelta(hours=1)))


def test_an_overdue_child_that_nobody_knows_times_out_and_wakes_its_parent() -> None:
    execution = parent.using(tenant="ann").start()
    (turn,) = claim()
    run_claim(turn, lease_of(turn))
    child = Execution._base_manager.using(NORTH).get(parent_id=execution.id)
    Execution._base_manager.using(NORTH).filter(pk=child.pk).update(deadline="2000-01-01T00:00:00Z")
    hint = DispatchHint.objects.using(SPINE).get(execution_id=child.pk)
    assert block_unclaimable(NORTH, hint.pk, child.pk, UnknownWorkflow("gone"), "code")
    child.refresh_from_db()
    assert child.status == "timed_out"
    execution.refresh_from_db()
    assert execution.status == "pending"


def test_what_is_due_later_wakes_nobody_now() -> None:
    @workflow("crowd.sleeper")
    def sleeper(ctx: Context) -> None:
        ctx.sleep(timedelta(hours=1))

    heard: list[object] = []
    sleeper.using(tenant="ann").start()
    (turn,) = claim()
    forget = listen(lambda hint_id, queue: heard.append(hint_id))
    try:
        run_claim(turn, lease_of(turn))
        assert heard == []
        plain.using(tenant="ann").start()
        assert len(heard) == 1
    finally:
        forget()


def test_an_execution_is_not_missing_where_its_plane_is_unknown_here() -> None:
    entry = connections.settings.pop(NORTH)
    try:
        with pytest.raises(PlaneUnavailable, match="north"):
            Execution.objects.locate(random_id())
    finally:
        connections.settings[NORTH] = entry
    drain()

"""Rule 2: what was listed is compared with what is locked; a hint of yesterday blocks, ends and loses nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from django_durable import Context, Execution, UnknownWorkflow, step, workflow
from django_durable.authoring import registry
from django_durable.authoring.workflow import Workflow
from django_durable.engine.journal import Entry
from django_durable.engine.transitions.expire import expire_attempt
from django_durable.engine.transitions.hint_lease import lease
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.recover import resolve
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.ids import random_id
from django_durable.models import Checkpoint, DispatchHint
from django_durable.planes import registry as planes_registry
from django_durable.runtime.claiming import terms_of
from tests.driving import USING, claim, drain, lapse_leases, lease_of, run_claim

pytestmark = pytest.mark.django_db

PAST = "2000-01-01T00:00:00Z"


@workflow("stale.sleeper")
def sleeper(ctx: Context) -> str:
    ctx.sleep(timedelta(hours=1))
    return "slept"


@contextmanager
def forgotten(one: Workflow[..., object]) -> Iterator[None]:
    registry.forget(one)
    try:
        yield
    finally:
        registry.add_workflow(one)


def hint_of(execution: Execution[str]) -> DispatchHint:
    return DispatchHint.objects.get(execution_id=execution.id)


def block(hint: DispatchHint, execution: Execution[str]) -> bool:
    return block_unclaimable(USING, hint.pk, execution.id, UnknownWorkflow("gone"), "code")


def test_a_stale_hint_of_unknown_work_blocks_nobody() -> None:
    execution = sleeper.start()
    drain()
    current = hint_of(execution)
    stale = DispatchHint.objects.get(pk=current.pk)
    stale.pk, stale.revision, stale.due_at = random_id(), current.revision - 1, PAST  # type: ignore[assignment]
    stale.save(force_insert=True, using=USING)
    with forgotten(sleeper):
        assert not block(stale, execution)
    execution.refresh_from_db()
    assert execution.status == "waiting"
    assert DispatchHint.objects.filter(pk=current.pk).exists()


def test_work_that_somebody_holds_under_another_token_is_not_blocked() -> None:
    execution = sleeper.start()
    (claimed,) = claim()
    hint = hint_of(execution)
    DispatchHint.objects.filter(pk=hint.pk).update(token=random_id(), due_at=PAST)
    assert not block(hint, execution)
    execution.refresh_from_db()
    assert execution.status == "running"
    DispatchHint.objects.filter(pk=hint.pk).update(token=claimed.token)
    assert block(hint, execution)
    execution.refresh_from_db()
    assert (execution.status, execution.recoveries) == ("blocked", 1)
    assert hint_of(execution).state == DispatchHint.State.BLOCKED


def test_the_hint_of_a_blocked_execution_outlives_a_claim_that_came_to_nothing() -> None:
    execution = sleeper.start()
    with forgotten(sleeper):
        assert block(hint_of(execution), execution)
    terms = terms_of(limit=1, queues=("durable",), blocked=True)
    (odd,) = lease(USING, terms)  # and somebody had the execution's row locked for a moment
    assert resolve(USING, terms, odd) is None
    hint = hint_of(execution)
    assert (hint.state, hint.avoid, hint.token) == (DispatchHint.State.BLOCKED, "code", None)
    assert len(claim(blocked=True)) == 1


def test_the_local_end_of_a_lease_is_never_later_than_the_real_one() -> None:
    sleeper.start()
    before = time.monotonic()
    (odd,) = lease(USING, terms_of(limit=1, queues=("durable",)))
    assert before <= odd.sent_at <= time.monotonic()


@step
def quick(number: int) -> int:
    return number


@workflow("stale.one_step")
def one_step(ctx: Context) -> int:
    return ctx.step(quick, 1)


@pytest.mark.parametrize(("status", "attempt"), [("completed", 1), ("pending", 1)])
def test_an_attempt_that_the_body_has_recorded_does_not_expire_too(status: str, attempt: int) -> None:
    execution = one_step.start()
    (claimed,) = claim()
    Checkpoint.objects.create(
        execution_id=execution.id, position=0, kind="step", name=quick.name, status=status, attempt=attempt
    )
    entry = Entry(record=None, position=0, kind="step", name=quick.name, changes={"status": "pending", "attempt": 1})
    assert not expire_attempt(claimed, Pages(), entry, None)
    execution.refresh_from_db()
    assert execution.status == "running"


@workflow("stale.child")
def child(ctx: Context) -> str:
    return "late"


@workflow("stale.parent")
def parent(ctx: Context) -> str:
    return ctx.child(child)


def test_a_child_that_was_detached_settles_nothing_of_its_parents() -> None:
    execution = parent.start()
    (turn,) = claim()
    run_claim(turn, lease_of(turn))
    (born,) = claim()
    Execution._base_manager.using(USING).filter(pk=born.id).update(parent_id=None)
    run_claim(born, lease_of(born))
    checkpoint = Checkpoint.objects.get(execution_id=execution.id)
    assert (checkpoint.kind, checkpoint.status) == ("child", "pending")


body_ran: list[int] = []


@step(queue="stale.elsewhere")
def elsewhere(number: int) -> int:
    body_ran.append(number)
    return number


@step
def undo(number: int) -> None: ...


@workflow("stale.undoing")
def undoing(ctx: Context) -> int:
    ctx.compensate(undo, 1)
    future = ctx.submit(elsewhere, 1)
    ctx.step(quick, 1)
    ctx.wait_for_signal("go")
    return future.result()


def test_a_run_that_is_to_end_begins_no_step_elsewhere() -> None:
    body_ran.clear()
    execution = undoing.start()
    drain()
    execution.signal("go")
    Checkpoint.objects.filter(execution_id=execution.id, kind="step", name=elsewhere.name).update(
        status="pending", begun=0, attempt=0, lease_token=None
    )
    ran_before = len(body_ran)
    claims = [one for one in claim() if one.id == execution.id]
    assert claims
    assert execution.cancel() is True  # asks the running turn to stop for its undo steps
    execution.refresh_from_db()
    assert execution.status == "running"
    DispatchHint.objects.filter(execution_id=execution.id, kind=DispatchHint.Kind.STEP).update(due_at=PAST)
    for claimed in claim():
        run_claim(claimed, lease_of(claimed))
    assert len(body_ran) == ran_before
    lapse_leases()
    drain()
    execution.refresh_from_db()
    assert execution.status == "cancelled"


def test_who_reads_the_planes_from_a_slow_spine_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow() -> dict[str, planes_registry.Plane]:
        reading.set()
        assert go_on.wait(10)
        return {}

    known = {"north": planes_registry.Plane("north", USING)}
    monkeypatch.setattr(planes_registry, "planes_in_use", lambda: True)
    monkeypatch.setattr(planes_registry, "_known", known)
    monkeypatch.setattr(planes_registry, "_read_at", float("-inf"))
    monkeypatch.setattr(planes_registry, "_read", slow)
    reader = threading.Thread(target=planes_registry.all_planes)
    reader.start()
    assert reading.wait(10)
    try:
        assert planes_registry.all_planes() is known
    finally:
        go_on.set()
        reader.join()
        planes_registry.forget_planes()

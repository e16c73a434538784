"""A mismatch stops at once, before any effect, in a visible state, and goes on when the old code is back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.authoring import registry
from django_durable.models import DispatchHint
from tests.driving import USING, claim, drain, lapse_leases, make_due

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def a() -> str:
    ran.append("a")
    return "a"


@step
def b() -> str:
    ran.append("b")
    return "b"


@step
def c() -> str:
    ran.append("c")
    return "c"


@workflow
def parked(ctx: Context) -> str:
    return str(body(ctx))


def original(ctx: Context) -> str:
    ctx.step(a)
    ctx.step(b)
    ctx.sleep(10)
    return "end"


body: Callable[[Context], Any] = original


def renamed(ctx: Context) -> None:
    ctx.step(a)
    ctx.step(c)
    ctx.sleep(10)


def inserted(ctx: Context) -> None:
    ctx.step(c)
    original(ctx)


def swapped(ctx: Context) -> None:
    ctx.step(b)
    ctx.step(a)
    ctx.sleep(10)


def sleep_became_step(ctx: Context) -> None:
    ctx.step(a)
    ctx.step(b)
    ctx.step(c)


def step_became_sleep(ctx: Context) -> None:
    ctx.step(a)
    ctx.sleep(10)
    ctx.sleep(10)


def removed(ctx: Context) -> None:
    ctx.step(a)
    ctx.sleep(10)


def shortened(ctx: Context) -> None:
    ctx.step(a)
    ctx.step(b)


def derived_instead(ctx: Context) -> None:
    ctx.step(a)
    ctx.uuid()
    ctx.sleep(10)


def swallowing(ctx: Context) -> str:
    try:
        ctx.step(c)
    except Exception:
        return "swallowed"
    return "?"


VARIANTS = [
    renamed,
    inserted,
    swapped,
    sleep_became_step,
    step_became_sleep,
    removed,
    shortened,
    derived_instead,
    swallowing,
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_illegal_code_has_no_effect_and_the_old_code_finishes(
    variant: Callable[[Context], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = parked.start()
    drain()
    assert ran == ["a", "b"]
    make_due()
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.body", variant)
        drain()
        blocked = Execution.objects.locate(execution.pk)
        assert blocked.status == "blocked"
        assert ran == ["a", "b"]
        assert blocked.error is not None
        assert blocked.error["type"] == "django_durable.errors.NonDeterminismError"
        assert "position" in blocked.error["message"]
        assert blocked.recoveries == 0
        assert drain() == 0
        assert claim(blocked=True) == []
    blocked.retry(actor="ann")
    drain()
    assert Execution.objects.locate(execution.pk).output == "end"
    assert ran == ["a", "b"]


def appended(ctx: Context) -> str:
    original(ctx)
    ctx.step(c)
    return "longer"


def test_a_step_after_the_history_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = parked.start()
    drain()
    make_due()
    monkeypatch.setattr(f"{__name__}.body", appended)
    drain()
    assert Execution.objects.locate(execution.pk).output == "longer"
    assert ran == ["a", "b", "c"]


def test_other_code_looks_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = parked.start()
    drain()
    make_due()
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.body", renamed)
        drain()
    monkeypatch.setattr("django_durable.runtime.claiming.code_digest", lambda: "other code")
    [claimed] = claim(blocked=True)
    assert claimed.id == execution.pk
    row = Execution.objects.locate(execution.pk)
    assert row.status == "running"
    assert row.error is None
    assert row.blocked_by == ""


def test_an_unknown_workflow_is_blocked_not_failed_and_nobody_else_is_held_up() -> None:
    from django_durable.runtime.unknown_work import block_unknown

    gone = temporary.start()
    registry.forget(temporary)
    try:
        known = parked.start()
        drain()
        assert Execution.objects.locate(known.pk).status == "waiting"
        assert Execution.objects.locate(gone.pk).status == "pending"
        assert block_unknown(USING) == 1
        blocked = Execution.objects.locate(gone.pk)
        assert blocked.status == "blocked"
        assert blocked.error is not None
        assert blocked.error["type"] == "django_durable.errors.UnknownWorkflow"
        assert blocked.recoveries == 0
        assert DispatchHint.objects.get(execution_id=gone.pk).state == DispatchHint.State.BLOCKED
    finally:
        registry.add_workflow(temporary)
    Execution.objects.locate(gone.pk).resume(actor="ann")
    drain()
    assert Execution.objects.locate(gone.pk).output == "back"


@workflow
def temporary(ctx: Context) -> str:
    return "back"


def test_a_lapsed_lease_whose_code_is_gone_is_blocked_and_counted() -> None:
    from django_durable.runtime.unknown_work import block_unknown

    gone = temporary.start()
    [claimed] = claim()
    registry.forget(temporary)
    try:
        assert block_unknown(USING) == 0
        lapse_leases()
        assert claim() == []
        assert block_unknown(USING) == 1
        blocked = Execution.objects.locate(gone.pk)
        assert blocked.status == "blocked"
        assert blocked.recoveries == 1
        assert claimed.worker in blocked.takeovers
    finally:
        registry.add_workflow(temporary)
    blocked.resume(actor="ann")
    drain()
    assert Execution.objects.locate(gone.pk).output == "back"


def test_what_is_past_its_deadline_ends_also_where_its_code_is_gone() -> None:
    from django.db.models import QuerySet

    from django_durable.runtime.unknown_work import block_unknown

    gone = temporary.using(timeout=60).start()
    gone.pause(actor="ann")
    registry.forget(temporary)
    try:
        DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
        QuerySet(Execution).update(deadline="2000-01-01T00:00:00Z")
        assert block_unknown(USING) == 1
        assert Execution.objects.locate(gone.pk).status == "timed_out"
        assert not DispatchHint.objects.exists()
    finally:
        registry.add_workflow(temporary)

"""Start, claim, turn, suspend, wake, end and every verb, with spine and planes in databases of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from django_durable import (
    Context,
    Execution,
    ExecutionNotFound,
    FatalError,
    PlaneNotSelected,
    TenantRequired,
    UnknownTenant,
    WrongDatabase,
    step,
    workflow,
)
from django_durable.models import Checkpoint, DeadLetter, DispatchHint, ExecutionRoute, Outbox
from django_durable.planes import plane_of, register_plane, use_plane
from django_durable.runtime import sweeps
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.tick import tick
from tests.driving import claim, drain
from tests.planes.conftest import NORTH, SOUTH, SPINE

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@step
def fails_once() -> None:
    failures.append(1)
    if len(failures) == 1:
        raise FatalError("once")


failures: list[int] = []


@workflow
def talk(ctx: Context, name: str) -> str:
    ctx.step(note, name)
    answer = ctx.wait_for_signal("answer", timeout=3600)
    return ctx.step(note, f"{name} {answer}")


@workflow
def fragile(ctx: Context) -> str:
    ctx.step(fails_once)
    return "mended"


def start(tenant: str, **using: Any) -> Execution[str]:
    return talk.using(tenant=tenant, **using).start("hello")


def test_an_execution_lives_on_its_tenants_plane_and_nowhere_else() -> None:
    north, south = start("ann"), start("cid")
    assert (north.using, south.using) == (NORTH, SOUTH)
    for alias, expected in ((NORTH, 1), (SOUTH, 1), (SPINE, 0)):
        assert Execution.objects.using(alias).count() == expected
    assert DispatchHint.objects.count() == 2
    assert set(DispatchHint.objects.values_list("plane", flat=True)) == {"north", "south"}
    assert not Outbox.objects.using(NORTH).exists()
    assert ExecutionRoute.objects.get(pk=north.pk).plane == "north"


def test_it_runs_waits_wakes_and_ends_there() -> None:
    executions = [start("ann"), start("cid"), start("bob")]
    assert drain() == 3
    for execution in executions:
        assert Execution.objects.locate(execution.pk).status == "waiting"
        execution.signal("answer", "yes")
    assert drain() == 3
    for execution in executions:
        assert Execution.objects.locate(execution.pk).output == "hello yes"
    assert not DispatchHint.objects.exists()
    assert Checkpoint.objects.using(NORTH).count() == 6
    assert Checkpoint.objects.using(SOUTH).count() == 3
    assert not Checkpoint.objects.using(SPINE).exists()


def test_the_same_key_in_two_tenants_is_two_executions() -> None:
    ann, bob, cid = (start(tenant, key="k") for tenant in ("ann", "bob", "cid"))
    assert len({ann.pk, bob.pk, cid.pk}) == 3
    assert start("ann", key="k").pk == ann.pk
    assert talk.get("k", tenant="cid").pk == cid.pk


def test_an_unknown_tenant_and_none_are_refused_and_nothing_is_written() -> None:
    with pytest.raises(UnknownTenant):
        start("zoe")
    with pytest.raises(TenantRequired):
        talk.start("hello")
    for alias in (SPINE, NORTH, SOUTH):
        assert not Execution.objects.using(alias).exists()
    assert not DispatchHint.objects.exists()
    assert not ExecutionRoute.objects.exists()


def test_a_transaction_on_another_database_is_refused() -> None:
    with pytest.raises(WrongDatabase), transaction.atomic(using=SPINE):
        start("ann")
    other = start("bob")
    for act in (lambda: other.signal("answer"), lambda: other.cancel(actor="op")):
        with pytest.raises(WrongDatabase), transaction.atomic(using=SPINE):
            act()
    assert Execution.objects.locate(other.pk).status == "pending"
    DispatchHint.objects.all().delete()
    with transaction.atomic(using=NORTH):
        execution = start("ann")
        assert not DispatchHint.objects.exists()
    assert DispatchHint.objects.get().execution_id == execution.pk


def test_a_rolled_back_start_leaves_a_route_only_until_its_sweep() -> None:
    with pytest.raises(RuntimeError), transaction.atomic(using=NORTH):
        start("ann")
        raise RuntimeError
    assert not DispatchHint.objects.exists()
    assert ExecutionRoute.objects.count() == 1
    ExecutionRoute.objects.update(created_at="2000-01-01T00:00:00Z")
    assert sweeps.drop_unused_routes(NORTH) == 1


def test_a_plane_model_without_a_selected_plane_is_refused_and_use_plane_selects() -> None:
    start("ann")
    with pytest.raises(PlaneNotSelected):
        Execution.objects.count()
    with use_plane("ann") as alias:
        assert alias == NORTH
        assert Execution.objects.count() == 1
        assert talk.executions.count() == 1
    with use_plane("south"):
        assert Execution.objects.count() == 0
    assert plane_of("cid") == SOUTH


def test_the_spine_is_rebuilt_from_the_planes() -> None:
    executions = [start("ann"), start("cid")]
    DispatchHint.objects.all().delete()
    assert drain() == 0
    assert tick(rebuild=True)["rebuild"] == 2
    assert drain() == 2
    for execution in executions:
        execution.signal("answer", 1)
    DispatchHint.objects.all().delete()
    ExecutionRoute.objects.all().delete()
    tick(rebuild=True)
    drain()
    for execution in executions:
        assert Execution.objects.locate(execution.pk).status == "completed"
    assert tick(rebuild=True)["rebuild"] == 0


def test_a_publication_that_was_cut_short_is_relayed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("django_durable.dispatch.spine_work.publish_intents", lambda *args: 0)
        execution = start("ann")
    assert Outbox.objects.using(NORTH).count() == 1
    assert not DispatchHint.objects.exists()
    assert sweeps.relay_outbox(NORTH) == 1
    assert not Outbox.objects.using(NORTH).exists()
    assert DispatchHint.objects.get().execution_id == execution.pk


def test_a_failed_run_is_retried_from_a_process_that_never_saw_it() -> None:
    failures.clear()
    execution = fragile.using(tenant="ann").start()
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert failed.status == "failed"
    assert DeadLetter.objects.using(NORTH).count() == 1
    failed.retry(actor="op", reason="mended")
    assert DispatchHint.objects.get().revision == failed.revision
    drain()
    assert Execution.objects.locate(execution.pk).output == "mended"


def test_cancel_pause_and_resume_work_there() -> None:
    execution = start("ann")
    execution.pause(actor="op")
    assert drain() == 0
    execution.resume(actor="op")
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"
    assert execution.cancel(actor="op") is True
    assert not DispatchHint.objects.exists()
    with pytest.raises(ExecutionNotFound):
        Execution.objects.locate("00000000-0000-7000-8000-000000000000")


def test_a_lapsed_lease_on_a_plane_is_taken_over_and_counted() -> None:
    execution = start("ann")
    [zombie] = claim()
    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
    [heir] = claim()
    assert heir.token != zombie.token
    assert Execution.objects.locate(execution.pk).recoveries == 1


@pytest.mark.parametrize("lacking", [{"queues": ()}, {"known": ()}, {"limit": 0}], ids=["queues", "known", "limit"])
def test_a_worker_that_can_take_nothing_claims_nothing(lacking: dict[str, Any]) -> None:
    start("ann")
    terms = replace(terms_of(limit=5, queues=("durable",)), **lacking)
    assert claim_pass(SPINE, terms) == ([], 0)
    assert DispatchHint.objects.get().token is None


def test_a_hint_of_an_unknown_plane_is_parked_after_the_cap_and_requeued() -> None:
    from django_durable.dispatch.parking import requeue_hint

    execution = start("ann")
    DispatchHint.objects.update(plane="gone")
    for _ in range(10):
        DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
        assert claim() == []
    hint = DispatchHint.objects.get()
    assert (hint.state, hint.category, hint.failures) == (DispatchHint.State.PARKED, "plane-unresolved", 10)
    DispatchHint.objects.update(plane="north")
    assert requeue_hint(SPINE, hint.pk) is True
    assert requeue_hint(SPINE, hint.pk) is False
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"


def test_a_plane_registered_later_is_used_without_a_restart() -> None:
    with pytest.raises(ValueError, match="not in DATABASES"):
        register_plane("west", "nowhere")
    with pytest.raises(ValueError, match="plane 'north' already"):
        register_plane("west", NORTH)


def test_many_starts_of_several_planes_are_refused_and_the_error_says_why() -> None:
    calls = [talk.using(tenant=tenant).bind("hello") for tenant in ("ann", "bob", "cid")]
    with pytest.raises(WrongDatabase, match="only one database"):
        talk.start_many(calls)
    assert not Execution.objects.using(NORTH).exists()
    assert [execution.tenant for execution in talk.start_many(calls[:2])] == ["ann", "bob"]

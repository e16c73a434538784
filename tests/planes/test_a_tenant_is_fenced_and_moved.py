"""bump_epoch fences what is in flight; move_tenant takes everything along and leaves nothing runnable behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connections

from django_durable import Context, DurableError, Execution, InvalidTransition, PlaneUnavailable, step, workflow
from django_durable.events import publish
from django_durable.models import (
    Checkpoint,
    DispatchHint,
    EventRow,
    EventTaken,
    ExecutionRoute,
    Message,
    OperatorAction,
    Outbox,
    TenantEpoch,
    TenantPlacement,
)
from django_durable.operators.move import copying
from django_durable.operators.move import tenant as moving
from django_durable.planes import bump_epoch, move_tenant, place_tenant, plane_of
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lease_of
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")

ran: list[str] = []


@step
def note(text: str) -> str:
    ran.append(text)
    return text


@workflow
def errand(ctx: Context, name: str) -> Any:
    ctx.step(note, f"{name} first")
    answer = ctx.wait_for_signal("answer")
    return ctx.step(note, f"{name} {answer}")


def start(tenant: str, name: str, **using: Any) -> Execution[Any]:
    return errand.using(tenant=tenant, **using).start(name)


def test_a_bump_fences_the_turn_in_flight_and_republishes() -> None:
    ran.clear()
    execution = start("ann", "x")
    [zombie] = claim()
    assert bump_epoch("ann") == 1
    run_turn(zombie, lease_of(zombie))
    assert Checkpoint.objects.using(NORTH).count() == 0
    assert ran == ["x first"]
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"
    assert Execution.objects.locate(execution.pk).epoch == 1
    later = start("ann", "y")
    assert later.epoch == 1
    assert DispatchHint.objects.get(execution_id=later.pk).epoch == 1
    other = start("cid", "z")
    assert other.epoch == 0
    drain()
    for one in (execution, later, other):
        one.signal("answer", "yes")
    drain()
    assert {Execution.objects.locate(one.pk).status for one in (execution, later, other)} == {"completed"}


def test_no_bump_is_without_its_note() -> None:
    def broken(execute: Any, sql: str, *rest: Any) -> Any:
        if "django_durable_operatoraction" in sql:
            raise DatabaseError("disk full")
        return execute(sql, *rest)

    start("ann", "x")
    with connections[SPINE].execute_wrapper(broken), pytest.raises(DatabaseError):
        bump_epoch("ann", actor="op")
    assert not TenantEpoch.objects.using(NORTH).filter(pk="ann", epoch__gt=0).exists()


def test_a_move_that_stops_after_the_fence_says_who_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    start("ann", "x")
    with monkeypatch.context() as patch:
        patch.setattr(moving, "copy_tenant", lambda *_args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            move_tenant("ann", "south", actor="eve")
    assert list(OperatorAction.objects.values_list("verb", "actor")) == [("fence_tenant", "eve")]
    move_tenant("ann", "south", actor="dora")
    noted = OperatorAction.objects.order_by("pk").values_list("verb", "actor")
    assert list(noted) == [("fence_tenant", "eve"), ("move_tenant", "dora")]


def test_a_move_takes_everything_along() -> None:
    ran.clear()
    done, waiting, queued = start("ann", "done", key="d"), start("ann", "waiting"), start("bob", "stays")
    done.signal("answer", 1)
    drain()
    fresh = start("ann", "fresh")
    waiting.signal("other", {"kept": (1, 2)})
    [zombie] = [c for c in claim() if c.id == fresh.pk]
    before = Execution.objects.using(NORTH).get(pk=done.pk).history()

    assert move_tenant("ann", "south", actor="op") == 3

    run_turn(zombie, lease_of(zombie))
    assert plane_of("ann") == SOUTH
    assert not Execution.objects.using(NORTH).filter(tenant="ann").exists()
    assert Execution.objects.using(NORTH).get().pk == queued.pk
    moved = Execution.objects.locate(done.pk)
    assert (moved.using, moved.output, moved.history()) == (SOUTH, "done 1", before)
    assert Message.objects.using(SOUTH).filter(execution_id=waiting.pk).count() == 1
    assert start("ann", "done", key="d").pk == done.pk
    assert ExecutionRoute.objects.get(pk=done.pk).plane == "south"
    for one in (waiting, fresh):
        drain()
        Execution.objects.locate(one.pk).signal("answer", 2)
    drain()
    assert Execution.objects.locate(waiting.pk).output == "waiting 2"
    assert Execution.objects.locate(fresh.pk).output == "fresh 2"
    assert OperatorAction.objects.using(SPINE).filter(verb="move_tenant", actor="op").count() == 1
    placement = TenantPlacement.objects.get(pk="ann")
    assert (placement.plane, placement.moving_to, placement.moved_from) == ("south", "", "")


@workflow("moving.reader")
def reader(ctx: Context) -> list[Any]:
    return [ctx.wait_for_event("sold")["n"] for _ in range(4)]


def test_a_move_takes_the_events_along_page_by_page_and_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "BATCH", 2)
    execution, other = (reader.using(tenant=tenant).start() for tenant in ("ann", "bob"))
    drain()
    for n in range(3):
        publish("sold", {"n": n}, tenant="ann", dedup_key=f"sale-{n}")
        publish("sold", {"n": n}, tenant="bob")
    drain()
    taken = EventTaken.objects.using(NORTH).filter(execution_id=execution.pk).count()
    assert taken == 3
    move_tenant("ann", "south", actor="op")
    assert set(EventRow.objects.using(NORTH).values_list("tenant", flat=True)) == {"bob"}
    assert set(EventTaken.objects.using(NORTH).values_list("execution_id", flat=True)) == {other.pk}
    assert EventTaken.objects.using(SOUTH).filter(execution_id=execution.pk).count() == 3
    assert publish("sold", {"n": 0}, tenant="ann", dedup_key="sale-0")
    assert EventRow.objects.using(SOUTH).count() == 3
    publish("sold", {"n": 9}, tenant="ann")
    drain()
    assert Execution.objects.locate(execution.pk).output == [0, 1, 2, 9]


def test_an_event_that_arrives_changed_stops_the_move(monkeypatch: pytest.MonkeyPatch) -> None:
    reader.using(tenant="ann").start()
    publish("sold", {"n": 1}, tenant="ann")

    def spoiled(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        found = execute(sql, params, *rest)
        if sql.startswith("INSERT") and '"django_durable_eventrow"' in sql:
            EventRow.objects.using(SOUTH).update(payload="spoiled")
        return found

    with connections[SOUTH].execute_wrapper(spoiled), pytest.raises(DurableError, match="eventrow"):
        move_tenant("ann", "south", actor="op")
    assert plane_of("ann") == NORTH
    move_tenant("ann", "south", actor="op")
    drain()
    assert EventTaken.objects.using(SOUTH).count() == 1


STAGES = ["freeze", "copy_tenant", "_prepare", "_switch", "release", "pages", "_finish"]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_move_killed_anywhere_is_finished_by_running_it_again(
    stage: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran.clear()
    executions = [start("ann", str(number)) for number in range(3)]
    drain()
    original = getattr(moving, stage)

    def killed(*args: Any, **kwargs: Any) -> Any:
        if after:
            original(*args, **kwargs)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(moving, stage, killed)
        with pytest.raises(Killed):
            move_tenant("ann", "south", actor="op")
    drain()
    move_tenant("ann", "south", actor="op")
    assert not Execution.objects.using(NORTH).filter(tenant="ann").exists()
    for execution in executions:
        Execution.objects.locate(execution.pk).signal("answer", "yes")
    drain()
    assert {Execution.objects.locate(one.pk).status for one in executions} == {"completed"}
    assert sorted(ran) == sorted([*(f"{n} first" for n in range(3)), *(f"{n} yes" for n in range(3))])
    assert not DispatchHint.objects.exists()


def test_a_move_that_another_operator_overtook_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ran.clear()
    executions = [start("ann", str(number)) for number in range(3)]
    drain()
    original = copying.pages

    def overtaken(alias: str, tenant: str) -> Iterator[list[UUID]]:
        for page in original(alias, tenant):
            if alias == NORTH and plane_of("ann") == NORTH:
                with monkeypatch.context() as patch:
                    patch.setattr(copying, "pages", original)
                    move_tenant("ann", "south", actor="quick")
                Execution.objects.locate(executions[0].pk).signal("answer", "yes")
                drain()
            yield page

    monkeypatch.setattr(copying, "pages", overtaken)
    move_tenant("ann", "south", actor="slow")
    assert Execution.objects.locate(executions[0].pk).output == "0 yes"
    for execution in executions[1:]:
        Execution.objects.locate(execution.pk).signal("answer", "yes")
    drain()
    assert [Execution.objects.locate(one.pk).output for one in executions] == ["0 yes", "1 yes", "2 yes"]
    assert sorted(ran) == sorted([*(f"{n} first" for n in range(3)), *(f"{n} yes" for n in range(3))])
    assert OperatorAction.objects.using(SPINE).filter(verb="move_tenant").count() == 1


def test_a_move_whose_placement_is_lost_under_way_says_so_and_leaves_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = start("ann", "x")
    drain()
    original = moving.copy_tenant

    def losing(*args: Any) -> int:
        TenantPlacement.objects.filter(pk="ann").delete()
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(moving, "copy_tenant", losing)
        with pytest.raises(InvalidTransition, match="not on its way"):
            move_tenant("ann", "south", actor="op")
    assert Execution.objects.using(NORTH).filter(pk=execution.pk).exists()
    place_tenant("ann", "north")
    assert move_tenant("ann", "south", actor="op") == 1
    Execution.objects.locate(execution.pk).signal("answer", "yes")
    drain()
    assert Execution.objects.locate(execution.pk).output == "x yes"


def test_what_the_source_had_not_published_is_not_published_from_there_after_the_move() -> None:
    execution = start("ann", "x")
    [hint] = DispatchHint.objects.all()
    same = ("execution_id", "revision", "epoch", "queue", "priority", "definition", "due_at")
    Outbox.objects.using(NORTH).create(**{name: getattr(hint, name) for name in same}, created_at=hint.due_at)
    hint.delete()
    move_tenant("ann", "south", actor="op")
    assert not Outbox.objects.using(NORTH).exists()
    assert [one.plane for one in DispatchHint.objects.all()] == ["south"]
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"


def test_while_it_moves_nothing_is_accepted_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = start("ann", "x")
    with monkeypatch.context() as patch:
        patch.setattr(moving, "copy_tenant", lambda *args: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            move_tenant("ann", "south", actor="op")
    for act in (
        lambda: start("ann", "y"),
        lambda: Execution.objects.locate(execution.pk).signal("answer"),
        lambda: Execution.objects.locate(execution.pk).cancel(actor="op"),
        lambda: bump_epoch("ann"),
    ):
        with pytest.raises(PlaneUnavailable, match="moved"):
            act()
    assert drain() == 0
    move_tenant("ann", "south", actor="op")
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"
    assert move_tenant("ann", "north", actor="op") == 1
    assert TenantEpoch.objects.using(NORTH).get(pk="ann").moved_to == ""
    Execution.objects.locate(execution.pk).signal("answer", 3)
    drain()
    assert Execution.objects.locate(execution.pk).output == "x 3"


@pytest.mark.parametrize("alias", [NORTH, SOUTH])
def test_a_move_that_meets_an_outage_says_so_and_is_finished_later(alias: str) -> None:
    execution = start("ann", "x")
    with down(alias), pytest.raises(PlaneUnavailable, match="run the move again"):
        move_tenant("ann", "south", actor="op")
    assert move_tenant("ann", "south", actor="op") == 1
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"

"""Retention and gathered events on planes: each in its own database, one that is away delays nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from django_durable import Context, Execution, workflow
from django_durable.clock import shift, shifted
from django_durable.engine.retention import Terms
from django_durable.events import publish
from django_durable.models import ExecutionRoute, GatheredEvent, OperatorAction, OperatorNote, PrunedExecution
from django_durable.operators.prune import prune, prune_place
from django_durable.planes import move_tenant
from django_durable.runtime.gathering import start_gathered
from tests.calling import durable
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")
TERMS = Terms(periods={}, older_than=timedelta())


@workflow("planes.kept")
def kept(ctx: Context, number: int = 0) -> int:
    return number


@workflow("planes.of_last")
def of_last(ctx: Context, payload: Any) -> None: ...


@pytest.fixture(autouse=True)
def subscribed() -> Iterator[None]:
    of_last.on_event("planes.saved", key=lambda saved: "k", debounce=60)
    with shifted():
        yield
    of_last.subscriptions.clear()


def executions(alias: str) -> int:
    return Execution.objects.using(alias).count()


def test_a_route_goes_with_its_execution_and_a_note_is_told_to_the_spine_first() -> None:
    execution = kept.using(tenant="ann").start()
    execution.pause(actor="ann")
    execution.resume(actor="ann")
    drain()
    OperatorAction.objects.using(SPINE).all().delete()
    assert [pruned.trees for _place, pruned in prune(actor="op", terms=TERMS).found] == [0, 1, 0]
    assert (executions(NORTH), ExecutionRoute.objects.using(SPINE).count()) == (0, 0)
    assert not OperatorNote.objects.using(NORTH).exists()
    verbs = OperatorAction.objects.using(SPINE).order_by("verb").values_list("verb", flat=True)
    assert list(verbs) == ["pause", "prune", "resume"]


def test_a_plane_that_is_away_is_told_and_the_others_are_pruned() -> None:
    for tenant in ("ann", "cid"):
        kept.using(tenant=tenant).start()
    drain()
    with down(NORTH):
        called = durable("prune", "--older-than", "0", "--json")
    assert called.code == 4
    assert json.loads(called.out)["trees"] == 1
    assert "north" in called.error
    assert (executions(NORTH), executions(SOUTH)) == (1, 0)
    assert durable("prune", "--older-than", "0").code == 0
    assert executions(NORTH) == 0


def test_one_plane_or_one_tenant_can_be_chosen() -> None:
    for tenant in ("ann", "bob", "cid"):
        kept.using(tenant=tenant).start()
    drain()
    assert durable("prune", "--older-than", "0", "--tenant", "ann").code == 0
    assert (executions(NORTH), executions(SOUTH)) == (1, 1)
    assert durable("prune", "--older-than", "0", "--plane", "south").code == 0
    assert (executions(NORTH), executions(SOUTH)) == (1, 0)
    assert durable("prune", "--older-than", "0", "--tenant", "nobody").code == 3


def test_marks_of_a_crash_are_gone_on_with_from_the_plane_alone() -> None:
    execution = kept.using(tenant="ann").start()
    drain()
    Execution.objects.using(NORTH).filter(pk=execution.pk)._raw_delete(NORTH)
    PrunedExecution.objects.using(NORTH).create(execution_id=execution.pk, pruned_at=execution.created_at)
    prune_place(NORTH, TERMS)
    assert not ExecutionRoute.objects.using(SPINE).exists()


def test_what_has_gathered_moves_with_its_tenant() -> None:
    publish("planes.saved", 1, tenant="ann")
    publish("planes.saved", 2, tenant="ann")
    move_tenant("ann", "south", actor="op")
    assert GatheredEvent.objects.using(SOUTH).count() == 2
    assert not GatheredEvent.objects.using(NORTH).exists()
    shift(timedelta(minutes=2))
    assert (start_gathered(NORTH), start_gathered(SOUTH)) == (0, 1)
    assert of_last.get("k", tenant="ann").input == {"payload": 2}


def test_a_copy_that_a_move_has_made_starts_nothing_before_the_switch() -> None:
    publish("planes.saved", 1, tenant="ann")
    row = GatheredEvent.objects.using(NORTH).get()
    row.save(using=SOUTH, force_insert=True)
    shift(timedelta(minutes=2))
    assert start_gathered(SOUTH) == 0
    assert executions(SOUTH) == 0

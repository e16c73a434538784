"""Steps elsewhere and children are on their tenant's plane, and go along when it moves."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.models import Checkpoint, DispatchHint, Join, Outbox
from django_durable.operators.doctor.liveness import liveness_violations
from django_durable.planes import bump_epoch, move_tenant, plane_of
from django_durable.planes.breaker import _open
from django_durable.runtime.sweeps import rebuild_everything
from tests.driving import claim, drain, lapse_leases, lease_of, run_claim
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")

ran: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


@step(queue="planes.elsewhere")
def note(text: str) -> str:
    ran.append(text)
    return text


@workflow("planes.leaf")
def leaf(ctx: Context, text: str) -> Any:
    ctx.step(note, text)
    return ctx.wait_for_signal("go")


@workflow("planes.family")
def family(ctx: Context) -> list[Any]:
    mapped = ctx.map(note, ["a", "b", "c"], concurrency=2)
    return [mapped, ctx.child(leaf, "d")]


def children() -> list[Execution[Any]]:
    found = []
    for plane in (SPINE, NORTH, SOUTH):
        found += list(Execution._base_manager.using(plane).filter(parent_id__isnull=False))
    return found


def make_due() -> None:
    """Every pause and every lease is over."""
    DispatchHint.objects.using(SPINE).update(due_at="2000-01-01T00:00:00Z")


def one_turn() -> None:
    """Run the only turn that is due; what it started stays undone."""
    (claimed,) = claim(1)
    run_claim(claimed, lease_of(claimed))


def finish(execution: Execution[Any]) -> list[Any]:
    drain()
    (child,) = children()
    child.signal("go", 7)
    drain()
    done: list[Any] = Execution.objects.locate(execution.pk).output
    assert not DispatchHint.objects.using(SPINE).exists()
    return done


def test_all_of_it_is_on_the_plane() -> None:
    execution = family.using(tenant="ann").start()
    assert finish(execution) == [["a", "b", "c"], 7]
    (child,) = children()
    assert (child._state.db, child.tenant, child.root_id) == (NORTH, "ann", execution.pk)
    for plane in (SPINE, SOUTH):
        for model in (Checkpoint, Join, Outbox):
            assert not model._base_manager.using(plane).exists()


def test_a_plane_that_is_away_delays_its_steps_and_loses_none() -> None:
    execution = family.using(tenant="ann").start()
    one_turn()
    with down(NORTH):
        assert claim() == []
    make_due()
    _open.clear()
    assert finish(execution) == [["a", "b", "c"], 7]
    assert sorted(ran) == ["a", "b", "c", "d"]


def test_an_emptied_spine_is_told_of_steps_again() -> None:
    execution = family.using(tenant="ann").start()
    one_turn()
    DispatchHint.objects.using(SPINE).all().delete()
    assert rebuild_everything(NORTH) == 2
    assert finish(execution) == [["a", "b", "c"], 7]


def test_a_bump_fences_a_step_in_flight_and_it_runs_again() -> None:
    execution = family.using(tenant="ann").start()
    one_turn()
    first = next(one for one in claim(1) if isinstance(one, ClaimedStep))
    bump_epoch("ann")
    run_claim(first, lease_of(first))
    assert set(Checkpoint.objects.using(NORTH).values_list("status", flat=True)) == {"pending"}
    lapse_leases()
    assert finish(execution) == [["a", "b", "c"], 7]
    assert sorted(ran) == ["a", "a", "b", "c", "d"]


def test_a_move_takes_steps_joins_and_children_along() -> None:
    execution = family.using(tenant="ann").start()
    one_turn()
    first = next(one for one in claim(1) if isinstance(one, ClaimedStep))
    move_tenant("ann", "south", actor="ops")
    assert plane_of("ann") == SOUTH
    run_claim(first, lease_of(first))  # of a plane where it lives no more: it changes nothing
    make_due()  # what was under way had a lease: it is due again when that would have ended
    drain()
    assert not Checkpoint._base_manager.using(NORTH).exists()
    assert not Join._base_manager.using(NORTH).exists()
    (child,) = children()
    assert (child._state.db, child.status) == (SOUTH, "waiting")
    move_tenant("ann", "north", actor="ops")
    assert liveness_violations(NORTH) == []
    assert finish(execution) == [["a", "b", "c"], 7]

"""Draining takes no more tenants and goes on; closed is left alone; both are attributed, neither strands work."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, InvalidTransition, PlaneUnavailable, step, workflow
from django_durable.models import DataPlane, DispatchHint, OperatorAction, TenantPlacement
from django_durable.operators.move import tenant as moving
from django_durable.operators.planes import add_plane, close_plane, drain_plane
from django_durable.planes import bump_epoch, move_tenant, place_tenant, plane_of
from django_durable.planes.registry import all_planes
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@workflow("states.plain")
def plain(ctx: Context, name: str) -> str:
    return ctx.step(note, name)


def start(tenant: str) -> Execution[Any]:
    return plain.using(tenant=tenant).start("x")


def test_a_draining_plane_goes_on_and_takes_no_more_tenants() -> None:
    drain_plane("north", actor="op")
    execution = start("ann")
    drain()
    assert Execution.objects.locate(execution.pk).output == "x"
    place_tenant("ann", "north")  # where it is already
    with pytest.raises(InvalidTransition, match="draining"):
        place_tenant("dora", "north")
    with pytest.raises(InvalidTransition, match="draining"):
        move_tenant("cid", "north", actor="op")
    assert TenantPlacement.objects.get(pk="cid").moving_to == ""
    assert not TenantPlacement.objects.filter(pk="dora").exists()


def test_a_move_that_was_begun_in_time_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    start("ann")
    with monkeypatch.context() as patch:
        patch.setattr(moving, "copy_tenant", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            move_tenant("ann", "south", actor="op")
    drain_plane("south", actor="op")
    assert move_tenant("ann", "south", actor="op") == 1
    assert plane_of("ann") == SOUTH


def test_a_plane_with_tenants_or_work_is_not_closed() -> None:
    execution = start("cid")
    with pytest.raises(InvalidTransition, match="'cid'"):
        close_plane("south", actor="op")
    TenantPlacement.objects.filter(pk="cid").delete()
    with pytest.raises(InvalidTransition, match=r"1 execution\(s\)"):
        close_plane("south", actor="op")
    assert all_planes(fresh=True)["south"].state == "active"
    drain()
    assert Execution.objects.locate(execution.pk).is_terminal
    close_plane("south", actor="op")
    assert DataPlane.objects.get(pk="south").state == "closed"


def test_what_cannot_be_seen_is_not_closed_unless_forced() -> None:
    TenantPlacement.objects.filter(pk="cid").delete()
    with down(SOUTH):
        with pytest.raises(PlaneUnavailable):
            close_plane("south", actor="op")
        assert all_planes(fresh=True)["south"].state == "active"
        close_plane("south", actor="op", force=True)
    assert all_planes(fresh=True)["south"].state == "closed"


def test_a_closed_plane_is_left_alone_until_it_is_added_again() -> None:
    execution = start("cid")
    close_plane("south", actor="op", force=True)
    assert drain() == 0
    with pytest.raises(PlaneUnavailable, match="closed"):
        start("cid")
    with pytest.raises(InvalidTransition, match="closed"):
        move_tenant("ann", "south", actor="op")
    assert Execution.objects.locate(execution.pk).status == "pending"
    add_plane("south", SOUTH, actor="op")
    assert drain() == 1
    assert Execution.objects.locate(execution.pk).output == "x"


def test_every_act_is_attributed_in_the_transaction_that_does_it() -> None:
    drain_plane("north", actor="anna")
    close_plane("north", actor="bert", force=True)
    add_plane("north", NORTH, actor="carl")
    bump_epoch("ann", actor="dora")
    assert set(OperatorAction.objects.values_list("verb", "actor")) == {
        ("drain_plane", "anna"),
        ("close_plane", "bert"),
        ("add_plane", "carl"),
        ("bump_epoch", "dora"),
    }
    for act in (drain_plane, close_plane):
        with pytest.raises(ValueError, match="actor"):
            act("north", actor=" ")
    with pytest.raises(ValueError, match="is plane 'south' already"):
        add_plane("west", SOUTH, actor="op")
    assert OperatorAction.objects.count() == 4
    assert not DataPlane.objects.filter(pk="west").exists()


def test_a_bump_of_a_tenant_on_a_plane_that_is_down_is_unavailable() -> None:
    with down(NORTH), pytest.raises(PlaneUnavailable):
        bump_epoch("ann", actor="op")
    assert not OperatorAction.objects.exists()


def test_hints_of_a_closed_plane_are_not_even_leased() -> None:
    start("cid")
    close_plane("south", actor="op", force=True)
    before = DispatchHint.objects.values().get()
    drain()
    assert DispatchHint.objects.values().get() == before

"""A start in a transaction that is open while its tenant moves: it goes along, or it is refused, and is never lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections, transaction

from django_durable import Context, Execution, InvalidTransition, PlaneUnavailable, workflow
from django_durable.models import DataPlane, TenantEpoch, TenantPlacement
from django_durable.operators.move import tenant as moving
from django_durable.operators.planes import close_plane
from django_durable.planes import move_tenant, place_tenant
from django_durable.planes.registry import find_plane
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.services.waiting import wait_until

pytestmark = pytest.mark.usefixtures("planes")


@workflow("moving.errand")
def errand(ctx: Context) -> str:
    return "done"


class Beside:
    """Something in another thread, with connections of its own."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self.begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(act,))
        self._thread.start()

    def _run(self, act: Callable[[], Any]) -> None:
        self.begun.set()
        try:
            act()
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def waits_for_a_lock() -> bool:
    if connections[NORTH].vendor != "postgresql":
        return True  # there is one lock, and this test holds it
    # Asked on another database: within a transaction PostgreSQL looks at its activity once.
    with connections[SPINE].cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s",
            [connections[NORTH].settings_dict["NAME"]],
        )
        return cursor.fetchone() is not None


@pytest.mark.parametrize("row", ["there", "missing"])
def test_a_start_that_has_not_committed_goes_along(row: str) -> None:
    if row == "missing":
        TenantEpoch.objects.using(NORTH).all().delete()
        from django_durable.planes.presence import forget_known

        forget_known()
    with transaction.atomic(using=NORTH):
        execution = errand.using(tenant="ann").start()
        mover = Beside(lambda: move_tenant("ann", "south", actor="op"))
        assert mover.begun.wait(30)
        wait_until(waits_for_a_lock, within=30)
    mover.join()
    assert mover.error is None
    assert not Execution.objects.using(NORTH).filter(tenant="ann").exists()
    drain()
    assert Execution.objects.using(SOUTH).get(pk=execution.pk).output == "done"


def test_a_start_that_comes_after_the_freeze_is_refused_or_finds_the_new_plane() -> None:
    TenantEpoch.objects.using(NORTH).update_or_create(tenant="ann", defaults={"moved_to": "south", "epoch": 3})
    with pytest.raises(PlaneUnavailable, match="being moved"):
        errand.using(tenant="ann").start()
    assert not Execution.objects.using(NORTH).exists()


def spine_waits() -> bool:
    if connections[SPINE].vendor != "postgresql":
        return True  # there is one lock, and this test holds it
    with connections[SOUTH].cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s",
            [connections[SPINE].settings_dict["NAME"]],
        )
        return cursor.fetchone() is not None


@pytest.mark.parametrize("comes", ["placed", "moved"])
def test_no_tenant_comes_to_a_plane_that_is_being_closed(comes: str) -> None:
    if comes == "moved":
        TenantPlacement.objects.filter(pk="cid").update(plane="north")
    TenantPlacement.objects.filter(plane="south").delete()
    with transaction.atomic(using=SPINE):
        place_tenant("dan", "south") if comes == "placed" else moving._begin("cid", find_plane("south"), "op")
        closing = Beside(lambda: close_plane("south", actor="op"))
        assert closing.begun.wait(10)
        wait_until(spine_waits, because="the plane is closed behind the placement")
    closing.join()
    assert isinstance(closing.error, InvalidTransition), closing.error
    assert find_plane("south", fresh=True).accepts_tenants
    assert not DataPlane.objects.exists()


def test_no_tenant_comes_to_a_plane_that_was_closed_first() -> None:
    TenantPlacement.objects.filter(plane="south").delete()
    with transaction.atomic(using=SPINE):
        close_plane("south", actor="op")
        placing = Beside(lambda: place_tenant("dan", "south"))
        assert placing.begun.wait(10)
        wait_until(spine_waits, because="the tenant is placed behind the closing")
    placing.join()
    assert isinstance(placing.error, InvalidTransition), placing.error
    assert not TenantPlacement.objects.filter(pk="dan").exists()

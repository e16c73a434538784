"""A plane that cannot be reached is unavailable, not unknown; the others go on; its own work waits, uncounted."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from typing import Any

import pytest
from django.db import OperationalError, connections

from django_durable import Context, Execution, PlaneUnavailable, step, workflow
from django_durable.engine.lease_state import Lease
from django_durable.models import DataPlane, DispatchHint, Outbox, SweepClaim
from django_durable.planes import breaker, bump_epoch, move_tenant, registry
from django_durable.planes.registry import forget_planes
from django_durable.routers import PlaneRouter
from django_durable.runtime import messages_due
from django_durable.runtime.tick import tick
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain
from tests.planes.conftest import NORTH, SPINE
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@workflow
def listener(ctx: Context) -> int:
    return int(ctx.wait_for_signal("go"))


@workflow
def plain(ctx: Context, name: str) -> str:
    return ctx.step(note, name)


def make_due() -> None:
    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")


def test_verbs_say_unavailable_and_never_not_found() -> None:
    execution = plain.using(tenant="ann", key="k").start("x")
    acts: list[Any] = [
        lambda: plain.using(tenant="ann").start("y"),
        lambda: plain.using(tenant="ann", run_after=5).start("y"),
        lambda: plain.using(tenant="ann", key="z").signal_or_start("go", 1, "y"),
        lambda: plain.start_many([plain.using(tenant="ann").bind("y")]),
        lambda: plain.get("k", tenant="ann"),
        lambda: Execution.objects.locate(execution.pk),
        lambda: execution.signal("s"),
        lambda: execution.send_update("u", 1),
        lambda: execution.send_update("u", 1, timeout=1),
        lambda: execution.result(timeout=0),
        lambda: execution.cancel(actor="op"),
        lambda: execution.pause(actor="op"),
        lambda: execution.retry(actor="op"),
        lambda: bump_epoch("ann"),
        lambda: move_tenant("ann", "south", actor="op"),
    ]
    with down(NORTH):
        for act in acts:
            with pytest.raises(PlaneUnavailable):
                act()
    breaker._open.clear()
    assert move_tenant("ann", "south", actor="op") == 1
    drain()
    assert Execution.objects.locate(execution.pk).output == "x"


def test_the_others_go_on_and_its_own_work_waits_uncounted(caplog: pytest.LogCaptureFixture) -> None:
    away, here = plain.using(tenant="ann").start("away"), plain.using(tenant="cid").start("here")
    with down(NORTH), caplog.at_level(logging.WARNING, "django_durable"):
        for _ in range(15):
            drain()
            tick()
            make_due()
            breaker._open.update({alias: (0.0, pause) for alias, (_until, pause) in breaker._open.items()})
        assert Execution.objects.locate(here.pk).output == "here"
        assert caplog.text.count("cannot be reached") == 1
        hint = DispatchHint.objects.get()
        assert (hint.state, hint.failures, hint.token) == (DispatchHint.State.LIVE, 0, None)
    breaker._open.clear()
    make_due()
    drain()
    assert Execution.objects.locate(away.pk).output == "away"
    assert Execution.objects.locate(away.pk).recoveries == 0


def test_a_turn_on_a_plane_that_went_away_gives_its_slot_back_although_its_lease_is_renewed() -> None:
    away = plain.using(tenant="ann").start("away")
    [claimed] = claim()
    claimed.lease_seconds = 0.3
    with down(NORTH):
        begun = time.monotonic()
        run_turn(claimed, Lease(claimed.hint_id, claimed.token, math.inf))
        assert 0.3 <= time.monotonic() - begun < 10
    breaker._open.clear()
    make_due()
    drain()
    done = Execution.objects.locate(away.pk)
    assert (done.output, done.recoveries) == ("away", 1)


def test_only_an_answer_closes_the_breaker(caplog: pytest.LogCaptureFixture) -> None:
    with down(NORTH), caplog.at_level(logging.WARNING, "django_durable"):
        for _ in range(3):
            with contextlib.suppress(OperationalError), breaker.guarded(NORTH):
                Execution.objects.using(NORTH).count()
            with breaker.guarded(NORTH):
                pass  # a sweep that had nothing to do there
            assert list(breaker._open) == [NORTH]
        assert caplog.text.count("cannot be reached") == 1
    with breaker.guarded(NORTH):
        pass
    assert breaker.available(NORTH) and not breaker._open
    assert caplog.text.count("can be reached again") == 1


def test_an_open_breaker_asks_the_plane_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain.using(tenant="ann").start("away")
    with down(NORTH):
        drain()
        assert list(breaker._open) == [NORTH]
        tried: list[int] = []
        monkeypatch.setattr(connections[NORTH], "connect", lambda: tried.append(1))
        make_due()
        for _ in range(5):
            drain()
        assert tried == []


def test_a_process_that_does_not_know_a_planes_database_leaves_its_work_to_others() -> None:
    execution = plain.using(tenant="ann").start("x")
    DataPlane.objects.create(name="north", database="known_elsewhere")
    forget_planes()
    before = DispatchHint.objects.values().get()
    for _ in range(3):
        drain()
    assert DispatchHint.objects.values().get() == before
    DataPlane.objects.all().delete()
    forget_planes()
    drain()
    assert Execution.objects.locate(execution.pk).output == "x"


def test_without_the_spine_planes_stay_known_and_a_signal_is_stored_and_wakes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = listener.using(tenant="ann").start()
    drain()
    monkeypatch.setattr(registry, "_read_at", float("-inf"))
    with down(SPINE):
        # What a step's own queries ask the router is answered by what was known last.
        assert PlaneRouter().db_for_read(Execution, instance=execution) == NORTH
        execution.signal("go", 5)
        assert Outbox.objects.using(NORTH).count() == 1
        with pytest.raises(PlaneUnavailable):
            plain.using(tenant="ann").start("y")
    breaker._open.clear()
    tick()
    drain()
    assert Execution.objects.locate(execution.pk).output == 5


@pytest.mark.parametrize("state", [DispatchHint.State.LIVE, DispatchHint.State.BLOCKED])
def test_where_messages_carry_the_work_a_dead_planes_hints_fill_no_window(
    state: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_due, "WINDOW", 2)
    monkeypatch.setattr(messages_due, "LEAST_PER_QUEUE", 2)
    away = [plain.using(tenant="ann").start("away") for _ in range(3)]
    here = plain.using(tenant="cid").start("here")
    make_due()  # those of the dead plane are the oldest, by time and by key
    DispatchHint.objects.update(state=state, avoid="other code")
    DispatchHint.objects.filter(execution_id=here.pk).update(due_at="2001-01-01T00:00:00Z")
    sent: list[Any] = []
    with down(NORTH):
        tick()
        assert not breaker.available(NORTH)
        messages_due.MessagesDue().send(SPINE, lambda hint, _queue: sent.append(hint) is None)
    owners = DispatchHint.objects.filter(pk__in=sent).values_list("execution_id", flat=True)
    assert list(owners) == [here.pk]
    breaker._open.clear()
    SweepClaim.objects.all().delete()
    messages_due.MessagesDue().send(SPINE, lambda hint, _queue: sent.append(hint) is None)
    owners = DispatchHint.objects.filter(pk__in=sent).values_list("execution_id", flat=True)
    assert set(owners) & {execution.pk for execution in away}

"""Field report B06: two processes share a host name, a process number, a pod's name, or all that is told of them."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta

import pytest
from django.db import connections

from django_durable import Context, Execution, step, workflow
from django_durable.clock import read_now
from django_durable.models import DispatchHint, SweepClaim
from django_durable.runtime.tick import claim_pass_of
from django_durable.runtime.turn import run_turn
from tests.driving import USING, claim, lapse_leases, lease_of
from tests.field.rig.yard import Yard, freeze_between_writes


def test_a_pod_that_comes_back_under_its_name_takes_over_after_the_lease_and_not_before(yard: Yard) -> None:
    yard.durable["LEASE_SECONDS"] = 2
    first = yard.worker(POD="pod-0")
    execution = yard.start("standing", "x")
    yard.wait_for_effect("begin x")
    first.kill()
    leased_until = DispatchHint.objects.get().due_at
    assert leased_until > read_now(USING)
    yard.worker(POD="pod-0")
    yard.wait_for_effect("begin x", times=2)
    yard.open("x")
    done = yard.wait_for_status(execution, "completed")
    [takeover] = json.loads(done.takeovers)
    assert takeover["worker"].startswith("pod-0:1:")
    waited = datetime.fromisoformat(takeover["end"]) - leased_until
    assert timedelta(0) <= waited < timedelta(seconds=3)


def test_two_workers_of_one_identity_do_not_take_each_other_for_themselves(yard: Yard) -> None:
    frozen = yard.worker(IDENTITY="the same")
    execution = yard.start("standing", "x")
    yard.wait_for_effect("begin x")
    freeze_between_writes(frozen)
    yard.worker(IDENTITY="the same")
    yard.wait_for_effect("begin x", times=2)
    assert yard.reload(execution).worker == "the same"
    frozen.thaw()
    yard.open("x")
    yard.wait_for_effect("end x", times=2)
    yard.wait_for_status(execution, "completed")
    assert f"{frozen.pid} begin x-after" not in yard.lines()
    assert yard.begun().count("x-after") == 1


ran: list[str] = []


@step
def effect() -> None:
    ran.append("effect")


@workflow
def named_alike(ctx: Context) -> None:
    ctx.step(effect)


@pytest.mark.django_db
def test_a_token_decides_and_not_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.runtime.claiming.process_identity", lambda: "pod-0")
    ran.clear()
    execution = named_alike.start()
    [zombie] = claim()
    assert claim() == []
    lapse_leases()
    [heir] = claim()
    assert zombie.worker == heir.worker == "pod-0"
    run_turn(zombie, lease_of(zombie))
    assert Execution.objects.locate(execution.pk).history() == []
    run_turn(heir, lease_of(heir))
    assert Execution.objects.locate(execution.pk).status == "completed"


@pytest.mark.django_db(transaction=True)
def test_of_many_processes_under_one_name_one_gets_each_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.runtime.tick.process_identity", lambda: "beat@host")
    won: list[bool] = []
    for _ in range(3):
        SweepClaim.objects.update(due_at="2000-01-01T00:00:00Z")
        together = threading.Barrier(6)
        beats = [threading.Thread(target=_beat, args=(together, won)) for _ in range(6)]
        for beat in beats:
            beat.start()
        for beat in beats:
            beat.join()
    assert won.count(True) == 3
    assert len(won) == 18


def _beat(together: threading.Barrier, won: list[bool]) -> None:
    try:
        connections[USING].ensure_connection()
        together.wait(30)
        won.append(claim_pass_of(USING, "every hour", 3600))
    finally:
        connections.close_all()

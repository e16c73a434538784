"""A worker is made of loops: claiming, slots, renewal, sweeps. An error that nobody thought of ends none of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.engine.lease_state import Lease
from django_durable.runtime import lease as keeping
from django_durable.runtime import worker as working
from django_durable.runtime.lease import LeaseKeeper
from django_durable.runtime.listener import Listener
from django_durable.runtime.sweeper import Sweeper
from django_durable.runtime.worker import Worker
from tests.driving import USING, claim, lease_of
from tests.field.bench.running import embedded_worker
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Unforeseen(Exception):
    """Of no kind that anybody catches by name."""


@step
def effect(number: int) -> int:
    return number


@workflow
def one(ctx: Context, number: int) -> int:
    return ctx.step(effect, number)


def fails_at_first(function: Callable[..., Any]) -> Callable[..., Any]:
    calls: list[int] = []

    def called(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise Unforeseen
        return function(*args, **kwargs)

    return called


def ended(execution: Execution[Any]) -> bool:
    return Execution.objects.locate(execution.pk).status == "completed"


@pytest.mark.parametrize("name", ["claim_pass", "run_held", "_refresh_connections", "_return_connections"])
def test_claiming_and_slots_go_on(name: str, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.DURABLE = {"LEASE_SECONDS": 1, "POLL_SECONDS": 0.1, "TICK_SECONDS": 60}
    monkeypatch.setattr(working, name, fails_at_first(getattr(working, name)))
    with embedded_worker(concurrency=1) as worker:
        for number in range(3):
            execution = one.start(number)
            wait_until(lambda e=execution: ended(e), within=30)  # type: ignore[misc]
        wait_until(lambda: worker._free() == 1, within=30)


def test_a_claim_whose_lease_cannot_be_kept_takes_no_slot_for_ever(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DURABLE = {"LEASE_SECONDS": 1, "POLL_SECONDS": 0.1, "TICK_SECONDS": 60}
    monkeypatch.setattr(LeaseKeeper, "hold", fails_at_first(LeaseKeeper.hold))
    with embedded_worker(concurrency=1):
        execution = one.start(1)
        wait_until(lambda: ended(execution), within=30)


def test_a_worker_that_is_to_end_when_idle_tells_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "claim_pass", fails_at_first(working.claim_pass))
    with pytest.raises(Unforeseen):
        Worker(concurrency=1, until_idle=True).run()


def test_renewal_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "renew", fails_at_first(keeping.renew))
    one.start(1)
    [claimed] = claim()
    keeper = LeaseKeeper(0.6)
    lease = keeper.hold(claimed)
    first = lease.ends
    try:
        wait_until(lambda: lease.ends > first, within=30)
    finally:
        keeper.close()


def test_a_thread_that_does_not_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "durable-sweeper":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    before = {thread for thread in threading.enumerate() if thread.name.startswith("durable-turn")}
    with pytest.raises(RuntimeError, match="can't start"):
        Worker(concurrency=2).run()
    assert {thread for thread in threading.enumerate() if thread.name.startswith("durable-turn")} == before
    for unstarted in (Sweeper(USING), Listener(USING, lambda _queue: None)):
        unstarted.close()


def test_a_clock_whose_action_failed_rings_again() -> None:
    one.start(1)
    [claimed] = claim()
    keeper = LeaseKeeper(30)
    lease = keeper.hold(claimed)
    rung: list[float] = []

    def ring() -> None:
        rung.append(time.monotonic())
        if len(rung) == 1:
            raise Unforeseen

    lease.set_clock("attempt", time.monotonic(), ring)
    try:
        wait_until(lambda: len(rung) == 2, within=30)
    finally:
        keeper.close()
    assert rung[1] - rung[0] > 0.5


@pytest.mark.parametrize("meanwhile", ["cleared", "set anew"])
def test_a_clock_that_is_over_does_not_ring_again(meanwhile: str) -> None:
    one.start(1)
    [claimed] = claim()
    lease: Lease = lease_of(claimed)
    lease.set_clock("attempt", time.monotonic(), lambda: None)
    clock = lease.take_rung_clock()
    assert clock is not None
    assert lease.take_rung_clock() is None, "each rings once"
    if meanwhile == "cleared":
        lease.clear_clock("attempt")
    else:
        lease.set_clock("attempt", time.monotonic() + 60, lambda: None)
    lease.ring_again(clock, time.monotonic())
    assert lease.take_rung_clock() is None

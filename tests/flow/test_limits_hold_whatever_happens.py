"""Starts, claims, ends, crashes, pauses and time in any order, against a small model of what a queue may do."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from django_durable import clock
from django_durable.clock import read_now
from django_durable.dispatch.flow_queue import refresh
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.leave import Pages, release
from django_durable.models import DispatchHint, Execution, QueueLimit, QueueStart
from django_durable.runtime.claim_run import run_claim
from tests.driving import USING, claim, lease_of
from tests.flow import limited

pytestmark = pytest.mark.usefixtures("queues")

TENANTS = ["a", "b", "c", "d"]


class Queue(RuleBasedStateMachine):
    """The model: what waits, by tenant; what is held; when what began; who was passed over by whom."""

    queue = "flow.turns"
    rate: int | None = None
    period = 60.0

    def __init__(self) -> None:
        super().__init__()
        for model in (DispatchHint, QueueStart):
            model._base_manager.using(USING).all().delete()
        Execution._base_manager.using(USING).all()._raw_delete(USING)
        QueueLimit.objects.using(USING).all().update(paused=False, last_lane="")
        self.clock = clock.shifted()
        self.clock.__enter__()
        self.held: list[Claimed] = []
        self.began: list[float] = []
        self.passed_over: dict[str, Counter[str]] = {}
        self.paused = False
        self.zero = read_now(USING)

    def teardown(self) -> None:
        """Nothing has leaked: once nobody holds anything and time goes on, everything ends."""
        try:
            QueueLimit.objects.using(USING).all().update(paused=False)
            self.paused = False
            for claimed in self.held:
                run_claim(claimed, lease_of(claimed))
            self.held = []
            for _ in range(100):
                if not DispatchHint.objects.using(USING).exists():
                    break
                self.admit(3)
                for claimed in self.held:
                    run_claim(claimed, lease_of(claimed))
                self.held = []
                clock.shift(timedelta(seconds=31))
            assert not DispatchHint.objects.using(USING).exists()
            assert not Execution.objects.using(USING).active().exists()
        finally:
            self.clock.__exit__(None, None, None)

    @rule(tenant=st.sampled_from(TENANTS), priority=st.integers(-2, 2), count=st.integers(1, 3))
    def start(self, tenant: str, priority: int, count: int) -> None:
        for _ in range(count):
            limited.one.using(queue=self.queue, tenant=tenant, priority=priority).start()

    @rule(limit=st.integers(1, 5))
    def admit(self, limit: int) -> None:
        waiting = self.due()
        # One at a time: a batch gives those that were taken over last, whatever their turn was.
        found: list[Claimed] = []
        for _ in range(limit):
            for claimed in claim(1):
                self.check_order(claimed, waiting)
                found.append(claimed)
        if self.paused:
            assert found == []
        self.held += found
        now = (read_now(USING) - self.zero).total_seconds()
        self.began += [now] * len(found)

    def due(self) -> dict[str, list[DispatchHint]]:
        now = read_now(USING)
        tenants = dict(Execution._base_manager.using(USING).values_list("pk", "tenant"))
        waiting: dict[str, list[DispatchHint]] = {}
        for hint in DispatchHint.objects.using(USING).filter(due_at__lte=now):
            waiting.setdefault(tenants[hint.execution_id], []).append(hint)
        return waiting

    def check_order(self, claimed: Claimed, waiting: dict[str, list[DispatchHint]]) -> None:
        """The best of its tenant; and who waits is passed over by each other tenant once at most."""
        tenant = claimed.row["tenant"]
        mine = next(hint for hint in waiting[tenant] if hint.pk == claimed.hint_id)
        assert all((-mine.priority, mine.due_at) <= (-other.priority, other.due_at) for other in waiting[tenant])
        waiting[tenant].remove(mine)
        self.passed_over.pop(tenant, None)
        for other, hints in waiting.items():
            if other != tenant and hints:
                self.passed_over.setdefault(other, Counter())[tenant] += 1
                assert self.rate is not None or self.passed_over[other][tenant] <= 1

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10))
    def end(self, which: int) -> None:
        claimed = self.held.pop(which % len(self.held))
        run_claim(claimed, lease_of(claimed))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10))
    def hand_back(self, which: int) -> None:
        release(self.held.pop(which % len(self.held)), Pages())

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10))
    def crash(self, which: int) -> None:
        claimed = self.held.pop(which % len(self.held))
        rows = DispatchHint.objects.using(USING).filter(pk=claimed.hint_id)
        rows.update(due_at=read_now(USING) - timedelta(seconds=2))

    @rule(seconds=st.sampled_from([1, 10, 25]))
    def wait(self, seconds: int) -> None:
        """Whoever holds a lease renews it meanwhile."""
        clock.shift(timedelta(seconds=seconds))
        tokens = [claimed.token for claimed in self.held]
        rows = DispatchHint.objects.using(USING).filter(token__in=tokens)
        rows.update(due_at=read_now(USING) + timedelta(seconds=30))

    @rule()
    def pause_or_resume(self) -> None:
        self.paused = not self.paused
        QueueLimit.objects.using(USING).filter(name=self.queue).update(paused=self.paused)

    @invariant()
    def no_more_slots_than_the_concurrency(self) -> None:
        held = DispatchHint.objects.using(USING).filter(token__isnull=False, due_at__gt=read_now(USING)).count()
        assert held == len(self.held) <= 3

    @invariant()
    def no_more_starts_than_the_rate_in_any_window(self) -> None:
        if self.rate is None:
            return
        for number, first in enumerate(self.began):
            # A start is later than the model notes it by a statement or two at most.
            assert sum(first <= later < first + self.period - 1 for later in self.began[number:]) <= self.rate


class PacedQueue(Queue):
    queue = "flow.paced_turns"
    rate = 5


@pytest.mark.parametrize("machine", [Queue, PacedQueue])
def test_a_queue_does_what_its_model_does(machine: Any) -> None:
    refresh(USING)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=8,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

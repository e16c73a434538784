"""Field report B50: a thousand runs fail together and come back together, or all lost claims at once."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from uuid import UUID, uuid4

import pytest

from django_durable import Context, Execution, Retry, RetryAfter, step, workflow
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.hint_lease import Terms
from django_durable.models import Checkpoint, DispatchHint
from django_durable.runtime import messages_due, sweeps
from django_durable.runtime import stretch as stretching
from django_durable.runtime.claiming import claim_pass
from django_durable.runtime.messages_due import MessagesDue
from django_durable.runtime.worker import Worker
from tests.driving import USING, claim, drain, lapse_leases
from tests.field.rig.bulk import LONG_AGO, executions_of, hints_of, ids

BASE = 10.0


@pytest.mark.parametrize("jitter", [0.5, 1.0])
@pytest.mark.parametrize("attempt", [1, 3])
def test_a_thousand_delays_spread_over_the_documented_range(attempt: int, jitter: float) -> None:
    retry = Retry(max_attempts=5, initial=BASE, factor=2.0, maximum=30.0, jitter=jitter)
    whole = min(BASE * 2 ** (attempt - 1), 30.0)
    delays = [retry.delay_after(ValueError(), attempt) for _ in range(1000)]
    assert all(whole * (1 - jitter) <= delay <= whole for delay in delays)
    assert statistics.pstdev(delays) > 1
    assert max(Counter(int(delay) for delay in delays).values()) <= 250


def test_jitter_can_be_seeded_and_leaves_alone_what_the_step_asked_for() -> None:
    retry = Retry(initial=BASE, jitter=1.0)
    drawn = []
    for _ in range(2):
        random.seed(7)
        drawn.append([retry.delay_after(ValueError(), 1) for _ in range(3)])
    assert drawn[0] == drawn[1]
    assert {retry.delay_after(RetryAfter(3), 1) for _ in range(20)} == {3.0}
    assert {Retry(initial=BASE).delay_after(ValueError(), 1) for _ in range(20)} == {BASE}


@step(retry=Retry(max_attempts=2, initial=BASE, jitter=0.8))
def fails() -> None:
    raise ValueError("all together")


@workflow
def failing(ctx: Context) -> None:
    ctx.step(fails)


@workflow
def plain(ctx: Context) -> None: ...


@pytest.mark.django_db
def test_executions_that_fail_together_are_due_again_at_times_of_their_own() -> None:
    for _ in range(100):
        failing.start()
    drain()
    waits = list(Checkpoint.objects.values_list("wake_at", "started_at"))
    delays = [(wake_at - started_at).total_seconds() for wake_at, started_at in waits if wake_at and started_at]
    assert len(delays) == 100
    assert statistics.pstdev(delays) > 1
    assert max(Counter(int(delay) for delay in delays).values()) <= 30


@pytest.mark.django_db
def test_lost_claims_are_taken_over_batch_by_batch() -> None:
    lost = executions_of(plain, 50, status="running", lease_token=uuid4(), worker="lost:1")
    hints_of(lost, LONG_AGO, leased=True)
    found: set[UUID] = set()
    for _ in range(10):
        claims = claim(5)
        assert len(claims) == 5
        found |= {claimed.id for claimed in claims}
    assert found == ids(lost)
    assert claim(5) == []


@pytest.mark.django_db(transaction=True)
def test_a_worker_takes_over_no_more_than_it_has_slots_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = executions_of(plain, 20, status="running", lease_token=uuid4(), worker="lost:1")
    hints_of(lost, LONG_AGO, leased=True)
    taken: list[int] = []

    def counted(using: str, terms: Terms, first: int) -> tuple[list[Claimed], int]:
        claims, touched = claim_pass(using, terms, first)
        taken.append(len(claims))
        return claims, touched

    monkeypatch.setattr("django_durable.runtime.worker.claim_pass", counted)
    Worker(concurrency=3, until_idle=True).run()
    assert max(taken) <= 3
    assert sum(taken) == 20
    assert not Execution.objects.active().exists()


@pytest.mark.django_db
def test_messages_for_lost_claims_are_bounded_and_not_repeated_at_once() -> None:
    lost = executions_of(plain, messages_due.WINDOW + 50, status="running", lease_token=uuid4())
    hints_of(lost, LONG_AGO, leased=True)
    sent: list[UUID] = []

    def put(hint_id: UUID, _queue: str) -> bool:
        sent.append(hint_id)
        return True

    due = MessagesDue()
    assert due.send(USING, put) == messages_due.WINDOW
    assert len(sent) == len(set(sent)) == messages_due.WINDOW


@pytest.mark.django_db
def test_rebuilt_hints_are_bounded_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.runtime.stretch._cursors", {})
    executions_of(plain, stretching.BATCH + 10)
    assert sweeps.rebuild_hints(USING) == stretching.BATCH
    assert DispatchHint.objects.count() == stretching.BATCH
    assert sweeps.rebuild_hints(USING) == 10
    lapse_leases()
    assert len(claim(7)) == 7

"""What a tick sends: the due and free, most urgent first, bounded, and not the same again and again."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_durable.authoring.registry import code_digest
from django_durable.models import DispatchHint, SweepClaim
from django_durable.runtime import messages_due
from django_durable.runtime.messages_due import MessagesDue, SentMessages, due_hints
from tests.celery.workflows import quick
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db
PAST = timezone.now() - timedelta(hours=1)


@pytest.fixture(autouse=True)
def brisk(settings: Any) -> None:
    settings.DURABLE = {"TICK_SECONDS": 0.01, "LEASE_SECONDS": 60.0}


class Round:
    """Passes of one worker, and what they sent."""

    def __init__(self) -> None:
        self.due = MessagesDue()
        self.room = 10_000
        self.sent: list[tuple[UUID, str]] = []

    def send(self) -> list[UUID]:
        """One pass, whoever has just made one."""
        SweepClaim.objects.filter(name="messages").update(due_at=PAST)
        before = len(self.sent)
        assert self.due.send("default", self.put) == len(self.sent) - before
        return [hint_id for hint_id, _queue in self.sent[before:]]

    def put(self, hint_id: UUID, queue: str) -> bool:
        self.room -= 1
        if self.room >= 0:
            self.sent.append((hint_id, queue))
        return self.room >= 0


def hint(**columns: Any) -> UUID:
    """A due hint of a workflow that is known here, changed as told."""
    quick.start("x")
    row = DispatchHint.objects.exclude(category="made").get()
    for name, item in {"due_at": PAST, **columns, "category": "made"}.items():
        setattr(row, name, item)
    row.save()
    return row.id


def copies(of: UUID, count: int, **columns: Any) -> None:
    """Many more like this one."""
    row = DispatchHint.objects.get(pk=of)
    values = {field.attname: getattr(row, field.attname) for field in DispatchHint._meta.concrete_fields}
    made = [{**values, **columns, "id": uuid4(), "execution_id": uuid4()} for _ in range(count)]
    DispatchHint.objects.bulk_create([DispatchHint(**each) for each in made])


def test_the_urgent_come_first_then_the_oldest_each_to_its_queue() -> None:
    late, early = hint(), hint(due_at=PAST - timedelta(minutes=1))
    urgent, patient = hint(priority=2, queue="fast"), hint(priority=-2, due_at=PAST - timedelta(days=1))
    round = Round()
    round.send()
    assert round.sent == [(urgent, "fast"), (early, "durable"), (late, "durable"), (patient, "durable")]


def test_only_what_is_due_and_free_is_sent() -> None:
    hour = timezone.now() + timedelta(hours=1)
    hint(due_at=hour)
    hint(due_at=hour, token=uuid4(), owner="somebody")
    hint(state=DispatchHint.State.PARKED)
    hint(definition="0" * 16)
    lapsed = hint(token=uuid4(), owner="somebody who died")
    assert Round().send() == [lapsed]


def test_a_hint_that_waits_is_sent_again_after_its_lease_and_then_more_rarely(settings: Any) -> None:
    one, round = hint(), Round()
    begin = time.monotonic()
    assert round.send() == [one]
    assert round.send() == []
    settings.DURABLE = {"TICK_SECONDS": 0.01, "LEASE_SECONDS": 0.3}
    assert wait_until(round.send) == [one]
    first = time.monotonic() - begin
    assert wait_until(round.send) == [one]
    second = time.monotonic() - begin - first
    assert first >= 0.25
    assert second >= 0.5


def test_a_hint_that_was_put_back_is_sent_at_once() -> None:
    one, round = hint(), Round()
    assert round.send() == [one]
    DispatchHint.objects.update(due_at=PAST + timedelta(seconds=1))
    assert round.send() == [one]


def test_what_the_broker_did_not_take_is_sent_by_the_next_pass() -> None:
    first, second = hint(due_at=PAST - timedelta(minutes=1)), hint()
    round = Round()
    round.room = 1
    assert round.send() == [first]
    round.room = 10
    assert round.send() == [second]


def test_a_backlog_goes_to_the_broker_in_bounded_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_due, "WINDOW", 40)
    copies(hint(), 99)
    round, parts = Round(), []
    while part := round.send():
        parts.append(len(part))
        DispatchHint.objects.filter(pk__in=part).delete()
    assert parts == [40, 40, 20]
    assert len(set(round.sent)) == 100


def test_nothing_is_sent_twice_where_two_workers_tick_at_once(settings: Any) -> None:
    settings.DURABLE = {"TICK_SECONDS": 60.0}
    hint()
    room = Round()
    sent = [MessagesDue().send("default", room.put) for _ in range(2)]
    assert sent == [1, 0]


def test_blocked_work_is_sent_where_other_code_was_blocked() -> None:
    state = DispatchHint.State.BLOCKED
    hint(state=state, avoid=code_digest())
    hint(state=state, avoid="0" * 16, definition="0" * 16)
    ours = hint(state=state, avoid="0" * 16)
    round = Round()
    assert round.send() == [ours]
    assert round.send() == []


def test_all_blocked_work_is_reached_whatever_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_due, "WINDOW", 40)
    copies(hint(state=DispatchHint.State.BLOCKED, avoid="0" * 16), 99)
    round = Round()
    assert [len(round.send()) for _ in range(3)] == [40, 40, 20]
    assert len(set(round.sent)) == 100


def test_a_pass_costs_the_same_number_of_statements_whatever_is_due() -> None:
    one = hint()
    costs = []
    for _ in range(2):
        round = Round()
        with CaptureQueriesContext(
            connection,
        ) as captured:
            round.send()
        costs.append(len(captured))
        copies(one, 50)
    assert costs[0] == costs[1] <= 8


def test_the_memory_forgets_rather_than_grows_and_never_invents() -> None:
    memory, moment = SentMessages(), timezone.now()
    ids = [uuid4() for _ in range(30_000)]
    for each in ids:
        assert memory.is_due(each, moment, 60, 60)
        memory.note(each, moment)
    remembered = sum(not memory.is_due(each, moment, 60, 60) for each in ids[-5000:])
    assert remembered > 4900
    assert memory.is_due(ids[-1], moment + timedelta(microseconds=1), 60, 60)


if os.environ.get("TEST_DB") == "postgres":

    def test_a_pass_reads_ranges_of_the_index_among_sleepers_and_dead_rows() -> None:
        one = hint()
        copies(one, 20_000, due_at=timezone.now() + timedelta(days=1))
        copies(one, 2_000)
        DispatchHint.objects.filter(due_at=PAST).exclude(pk=one).delete()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE django_durable_dispatchhint")
        with CaptureQueriesContext(connection) as captured:
            assert [row[0] for row in due_hints("default")] == [one]
        [statement] = [query["sql"] for query in captured if "UNION ALL" in query["sql"]]
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + statement)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert plan.count("durable_hint_due") == 5
        assert "Seq Scan" not in plan

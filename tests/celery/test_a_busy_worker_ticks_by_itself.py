"""Where ticks expire before a slot is free for them, whoever has run an execution ticks, and only if nobody did."""

from __future__ import annotations

from uuid import UUID

import pytest

from django_durable import tasks
from django_durable.models import DispatchHint, SweepClaim
from django_durable.runtime.messages_due import MessagesDue, Put
from django_durable.runtime.tick import TICK, claim_pass_of
from tests.celery.workflows import quick

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    monkeypatch.setattr(tasks, "LATE", 0.0)
    quick.start("x")
    return []


def put(sent: list[UUID]) -> Put:
    def append(hint_id: UUID, queue: str) -> bool:
        sent.append(hint_id)
        return True

    return append


def test_after_a_turn_if_the_last_tick_was_long_ago(sent: list[UUID]) -> None:
    tasks.tick_if_late(MessagesDue(), put(sent))
    assert sent == [DispatchHint.objects.get().id]
    assert SweepClaim.objects.filter(name=TICK).exists()


def test_not_if_another_worker_ticks(sent: list[UUID], monkeypatch: pytest.MonkeyPatch) -> None:
    assert claim_pass_of("default", TICK, 0.5)
    monkeypatch.setattr(MessagesDue, "seconds_without_tick", 3600.0)
    monkeypatch.setattr(tasks, "LATE", 60.0)
    tasks.tick_if_late(MessagesDue(), put(sent))
    assert sent == []


def test_not_if_this_worker_has_seen_one(sent: list[UUID], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "LATE", 60.0)
    tasks.tick_if_late(MessagesDue(), put(sent))
    assert sent == []
    assert not SweepClaim.objects.exists()

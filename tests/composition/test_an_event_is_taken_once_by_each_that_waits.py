"""Events: each execution takes each event once, in order, since it was created and within their retention."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from django_durable import Context, EventTimeout, Execution, UnserializableValue, workflow
from django_durable.clock import read_now
from django_durable.engine import events as engine
from django_durable.events import publish
from django_durable.models import EventRow, EventTaken, EventWait
from django_durable.runtime import event_sweeps
from django_durable.testing import DurableKit
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]


@workflow("composition.listener")
def listener(ctx: Context, match: dict[str, Any] | None, number: int = 1) -> list[Any]:
    return [ctx.wait_for_event("order.paid", match) for _ in range(number)]


@workflow("composition.impatient")
def impatient(ctx: Context) -> Any:
    try:
        ctx.wait_for_event("order.paid", timeout=60)
    except EventTimeout:
        return ["late", ctx.wait_for_event("order.paid")]
    return "in time"


def outputs(*executions: Execution[Any]) -> list[Any]:
    for execution in executions:
        execution.refresh_from_db()
    return [execution.output for execution in executions]


def test_one_event_is_taken_by_every_execution_that_it_matches(durable: DurableKit) -> None:
    any_order, five, six, not_an_int = (
        durable.run(listener, match) for match in (None, {"id": 5}, {"id": 6}, {"id": 5.0})
    )
    publish("order.paid", {"id": 5, "amount": 3})
    durable.run_until_idle()
    assert outputs(any_order, five, six, not_an_int) == [[{"id": 5, "amount": 3}]] * 2 + [None, None]
    assert {six.status, not_an_int.status} == {"waiting"}
    assert EventTaken.objects.count() == EventWait.objects.count() == 2


def test_only_those_are_woken_whom_the_event_fits(durable: DurableKit) -> None:
    waiting = durable.run(listener, {"id": 6, "kind": "book"})
    before = waiting.revision
    publish("order.paid", {"id": 5, "kind": "book"})
    publish("order.paid", {"id": 6, "kind": "car"})
    publish("order.paid", 6)
    publish("order.sent", {"id": 6, "kind": "book"})
    assert durable.run_until_idle() == 0
    waiting.refresh_from_db()
    assert waiting.revision == before
    publish("order.paid", {"id": 6, "kind": "book", "more": None})
    assert durable.run_until_idle() == 1
    assert outputs(waiting) == [[{"id": 6, "kind": "book", "more": None}]]


def test_one_execution_takes_an_event_once_and_all_of_them_in_order(durable: DurableKit) -> None:
    execution = durable.run(listener, None, 3)
    for number in range(2):
        publish("order.paid", number)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "waiting"
    publish("order.paid", 2)
    durable.run_until_idle()
    assert outputs(execution) == [[0, 1, 2]]


def test_an_event_from_before_the_wait_is_taken_and_one_from_before_the_creation_is_not(durable: DurableKit) -> None:
    publish("order.paid", "too early")
    durable.advance(1)
    execution = listener.start(None)
    publish("order.paid", "early")
    durable.run_until_idle()
    assert outputs(execution) == [["early"]]


def test_an_event_past_its_retention_is_not_taken_and_is_deleted(durable: DurableKit) -> None:
    execution = listener.using(run_after=timedelta(days=8)).start(None)
    publish("order.paid", "old")
    durable.advance(timedelta(days=7, seconds=1))
    publish("order.paid", "new")
    durable.run_until_idle()
    assert outputs(execution) == [["new"]]
    event_sweeps.forget_events(USING)
    assert [row.payload for row in EventRow.objects.all()] == ['"new"']


def test_old_events_are_deleted_with_their_receipts_a_batch_at_a_time(
    durable: DurableKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "DELETED", 2)
    execution = durable.run(listener, None)
    for number in range(3):
        publish("order.paid", number)
    durable.run_until_idle()
    assert outputs(execution) == [[0]]
    EventRow.objects.update(published_at=read_now(USING) - timedelta(days=8))
    assert [event_sweeps.forget_events(USING) for _ in range(3)] == [2, 1, 0]
    assert not EventTaken.objects.exists()


def test_a_repeated_publication_is_one_event(durable: DurableKit) -> None:
    execution = durable.run(listener, None, 2)
    first = publish("order.paid", 1, dedup_key="one")
    assert publish("order.paid", 2, dedup_key="one") == first
    assert publish("order.sent", 2, dedup_key="one") != first
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "waiting"
    assert [row.payload for row in EventRow.objects.filter(name="order.paid")] == ["1"]


def test_an_event_in_a_rolled_back_transaction_never_happened(durable: DurableKit) -> None:
    execution = durable.run(listener, None)
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        publish("order.paid", 1)
        raise RuntimeError
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, EventRow.objects.count()) == ("waiting", 0)


def test_a_timed_out_wait_does_not_take_the_next_event(durable: DurableKit) -> None:
    execution = durable.run(impatient)
    durable.run_until_idle(skip="all")
    assert EventWait.objects.get().position == 1
    publish("order.paid", "second")
    durable.run_until_idle()
    assert outputs(execution) == [["late", "second"]]
    assert not EventWait.objects.exists()


def test_an_event_before_the_deadline_wins_although_it_is_noticed_later(durable: DurableKit) -> None:
    execution = durable.run(impatient)
    publish("order.paid", 1)
    durable.advance(3600)
    durable.run_until_idle()
    assert outputs(execution) == ["in time"]


def test_more_items_than_are_marked_and_values_under_a_codec_match_as_well(durable: DurableKit) -> None:
    execution = durable.run(listener, {"id": 5, "n": 1})
    publish("order.paid", {**{str(number): number for number in range(100)}, "id": 5, "n": 2})
    durable.run_until_idle()
    publish("order.paid", {**{str(number): number for number in range(100)}, "id": 5, "n": 1})
    durable.run_until_idle()
    assert outputs(execution)[0][0]["n"] == 1
    with override_settings(DURABLE={**settings.DURABLE, "CODECS": ["tests.composition.reversing.Reversing"]}):
        coded = durable.run(listener, {"id": 5})
        publish("order.paid", {"id": 5})
        assert EventRow.objects.latest("pk").marks == "*"
        assert EventWait.objects.get().marks == ""
        durable.run_until_idle()
        assert outputs(coded) == [[{"id": 5}]]


def test_a_payload_that_cannot_be_read_hides_none_that_fits(durable: DurableKit) -> None:
    execution = durable.run(listener, {"id": 5})
    publish("order.paid", {"id": 5, "broken": True})
    EventRow.objects.update(payload='{"$nobody":1}')
    publish("order.paid", {"id": 5})
    durable.run_until_idle()
    assert outputs(execution) == [[{"id": 5}]]


def test_many_events_that_do_not_fit_are_looked_past(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PAGE", 2)
    execution = listener.start({"id": 6})
    for number in range(7):
        publish("order.paid", {"id": number, "of": 7})
    EventRow.objects.update(marks="*")
    durable.run_until_idle()
    assert outputs(execution) == [[{"id": 6, "of": 7}]]


def test_more_waiters_than_one_search_wakes_are_all_told(
    durable: DurableKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "WAKES", 2)
    executions = [durable.run(listener, None) for _ in range(5)]
    event = publish("order.paid", 1)
    assert [engine.tell_waiters(USING, event) for _ in range(4)] == [2, 2, 1, 0]
    assert EventRow.objects.get().told_up_to is None
    durable.run_until_idle()
    assert outputs(*executions) == [[1]] * 5


def test_registrations_of_what_has_ended_are_swept(durable: DurableKit) -> None:
    ended, waiting = durable.run(listener, None), durable.run(listener, None)
    ended.cancel()
    assert event_sweeps.drop_ended_waits(USING) == 1
    assert EventWait.objects.get().execution_id == waiting.pk


def test_what_cannot_be_stored_is_refused_before_anything_happens(durable: DurableKit) -> None:
    with pytest.raises(UnserializableValue):
        publish("order.paid", object())
    with pytest.raises(ValueError, match="event name"):
        publish("", 1)
    assert not EventRow.objects.exists()


@workflow("composition.wrong_match")
def wrong_match(ctx: Context) -> Any:
    return ctx.wait_for_event("order.paid", match=[("id", 5)])  # type: ignore[arg-type]


def test_a_match_that_is_no_dict_is_a_clear_error(durable: DurableKit) -> None:
    execution = durable.run(wrong_match)
    assert execution.error is not None
    assert "match must be a dict" in execution.error["message"]


def test_on_wait_and_history_know_the_event_by_its_name(durable: DurableKit) -> None:
    durable.on_wait("order.paid", lambda execution: publish("order.paid", 9))
    execution = durable.run(listener, None)
    assert execution.output == [9]
    assert [(row["kind"], row["name"], row["output"]) for row in execution.history()] == [("event", "order.paid", 9)]
    durable.assert_replays(listener, durable.export_history(execution))


@pytest.mark.parametrize("position", [0, 1])
def test_a_crash_at_the_wait_takes_no_event_twice_and_loses_none(durable: DurableKit, position: int) -> None:
    execution = durable.run(listener, None, 2)
    crash = durable.crash_turn(at_position=position)
    publish("order.paid", "a")
    publish("order.paid", "b")
    durable.run_until_idle()
    assert crash.happened
    assert outputs(execution) == [["a", "b"]]

"""``debounce`` and ``batch``: several events start one run; each event counts exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings

from django_durable import Context, Debounce, Execution, workflow
from django_durable.authoring.workflow import Workflow
from django_durable.events import publish
from django_durable.models import EventTaken, GatheredEvent
from django_durable.operators.doctor import examine
from django_durable.runtime.gathering import start_gathered
from django_durable.testing import DurableKit
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]
MINUTE = timedelta(minutes=1)


@workflow("flow.indexes")
def indexes(ctx: Context, document: Any) -> Any:
    return document


@workflow("flow.imports")
def imports(ctx: Context, lines: list[Any]) -> Any:
    return lines


@workflow("flow.slow")
def slow(ctx: Context, document: Any) -> Any:
    ctx.wait_for_signal("go")
    return document


@pytest.fixture(autouse=True)
def subscribed() -> Iterator[None]:
    yield
    for flow in (indexes, imports, slow):
        flow.subscriptions.clear()


def outputs(flow: Workflow[..., Any]) -> list[Any]:
    return [e.output for e in Execution.objects.using(USING).filter(workflow=flow.name).order_by("pk")]


def test_a_burst_starts_one_run_with_its_last_payload(durable: DurableKit) -> None:
    indexes.on_event("saved", debounce=MINUTE)
    for number in range(4):
        publish("saved", number)
        durable.advance(30)
        durable.run_until_idle(skip=None)
        assert outputs(indexes) == []
    durable.advance(31)
    durable.run_until_idle(skip=None)
    assert outputs(indexes) == [3]
    assert not GatheredEvent.objects.using(USING).exists()
    publish("saved", 9)
    durable.run_until_idle()
    assert outputs(indexes) == [3, 9]


def test_each_key_and_each_tenant_has_its_own_quiet(durable: DurableKit) -> None:
    indexes.on_event("saved", key=lambda saved: f"doc-{saved['doc']}", args=lambda saved: (saved["n"],), debounce=60)
    for doc, n in ((1, 1), (2, 2), (1, 3)):
        publish("saved", {"doc": doc, "n": n})
    publish("saved", {"doc": 1, "n": 4}, tenant="ann")
    durable.run_until_idle()
    assert [indexes.get("doc-1").output, indexes.get("doc-2").output] == [3, 2]
    assert indexes.get("doc-1", tenant="ann").output == 4


def test_a_stream_without_a_pause_is_cut_at_the_bound(durable: DurableKit) -> None:
    indexes.on_event("saved", debounce=Debounce(60, at_most=150))
    for number in range(9):
        publish("saved", number)
        durable.advance(30)
        durable.run_until_idle(skip=None)
    assert outputs(indexes) == [4]
    assert GatheredEvent.objects.using(USING).count() == 1, "what a later event has replaced is not kept"
    durable.run_until_idle()
    assert outputs(indexes) == [4, 8]


def test_a_key_with_a_live_run_gathers_for_the_next_one(durable: DurableKit) -> None:
    slow.on_event("saved", key=lambda saved: "one", debounce=60)
    publish("saved", 1)
    durable.run_until_idle()
    first = slow.get("one")
    assert not examine()
    for number in (2, 3):
        publish("saved", number)
        durable.run_until_idle()
    assert slow.executions.using(USING).count() == 1
    first.signal("go")
    durable.run_until_idle()
    second = slow.get("one")
    second.signal("go")
    durable.run_until_idle()
    assert outputs(slow) == [1, 3]
    assert second.pk != first.pk


def test_a_batch_starts_when_it_is_full_or_its_window_is_over(durable: DurableKit) -> None:
    imports.on_event("line", batch=(3, MINUTE))
    with durable_commits():
        for number in range(7):
            publish("line", number)
    durable.run_until_idle(skip=None)
    assert outputs(imports) == [[0, 1, 2], [3, 4, 5]]
    durable.advance(61)
    durable.run_until_idle(skip=None)
    assert outputs(imports) == [[0, 1, 2], [3, 4, 5], [6]]
    assert EventTaken.objects.using(USING).count() == 7


def test_a_batch_whose_publishers_died_is_started_by_the_sweep_no_larger_than_it_may_be(durable: DurableKit) -> None:
    imports.on_event("line", args=lambda line: line * 10, batch=(2, 60))
    for number in range(5):
        publish("line", number)
    durable.run_until_idle()
    assert outputs(imports) == [[0, 10], [20, 30], [40]]


def test_a_list_too_large_for_one_input_is_parted(durable: DurableKit) -> None:
    imports.on_event("line", batch=(8, 60))
    with override_settings(DURABLE={"SPINE": USING, "MAX_PAYLOAD_BYTES": 300}):
        for letter in "abcd":
            publish("line", letter * 100)
        durable.run_until_idle()
    assert outputs(imports) == [["a" * 100, "b" * 100], ["c" * 100, "d" * 100]]


def test_a_rolled_back_publication_gathers_nothing(durable: DurableKit) -> None:
    indexes.on_event("saved", debounce=60)
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        publish("saved", 1)
        raise RuntimeError
    assert not GatheredEvent.objects.using(USING).exists()


def test_what_would_not_start_is_refused_when_it_is_published(durable: DurableKit) -> None:
    indexes.on_event("saved", args=lambda saved: {"nothing": saved}, debounce=60)
    with pytest.raises(TypeError):
        publish("saved", 1)
    assert not GatheredEvent.objects.using(USING).exists()


def test_a_repeated_event_counts_once(durable: DurableKit) -> None:
    imports.on_event("line", batch=(5, 60))
    for _time in range(3):
        publish("line", 1, dedup_key="one")
    durable.run_until_idle()
    assert outputs(imports) == [[1]]


def test_a_group_that_cannot_start_keeps_nobody_else_waiting(
    durable: DurableKit, caplog: pytest.LogCaptureFixture
) -> None:
    imports.on_event("line", key=lambda line: line, batch=(5, 60))
    publish("line", "bad")
    publish("line", "good")
    GatheredEvent.objects.using(USING).filter(key="bad").update(encoded="{not json")
    durable.advance(61)
    assert start_gathered(USING) == 1
    assert "could not start their run" in caplog.text
    assert start_gathered(USING) == 0
    assert GatheredEvent.objects.using(USING).get().key == "bad"
    assert [finding.code for finding in examine() if finding.code == "waiting-events"] == ["waiting-events"]


def test_an_unknown_workflow_is_left_to_a_process_that_knows_it(durable: DurableKit) -> None:
    indexes.on_event("saved", debounce=60)
    publish("saved", 1)
    GatheredEvent.objects.using(USING).update(workflow="elsewhere.indexes")
    durable.advance(61)
    assert start_gathered(USING) == 0
    assert GatheredEvent.objects.using(USING).exists()
    durable.advance(61)
    assert "waiting-events" in [finding.code for finding in examine()]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"debounce": 0}, ValueError, "above 0"),
        ({"debounce": -1}, ValueError, "negative"),
        ({"debounce": "5"}, TypeError, "debounce"),
        ({"batch": 5}, TypeError, "batch must be"),
        ({"batch": (0, 5)}, ValueError, "from 1"),
        ({"batch": (2.0, 5)}, TypeError, "whole number"),
        ({"batch": (2, 0)}, ValueError, "above 0"),
        ({"batch": (2, 5), "debounce": 5}, ValueError, "not both"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_declared(
    options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        indexes.on_event("saved", **options)
    assert not indexes.subscriptions


def test_a_bound_shorter_than_the_quiet_is_refused() -> None:
    with pytest.raises(ValueError, match="at_most"):
        Debounce(60, at_most=30)


def durable_commits() -> Any:
    """Run what is to happen after a commit although the test's own transaction goes on."""
    from django.test import TestCase

    return TestCase.captureOnCommitCallbacks(using=USING, execute=True)

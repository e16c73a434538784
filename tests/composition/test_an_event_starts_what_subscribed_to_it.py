"""``on_event``: a workflow is started once for each event, in the transaction that publishes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, workflow
from django_durable.authoring.registry import forget
from django_durable.authoring.workflow import Workflow
from django_durable.events import publish
from django_durable.models import EventRow, EventTaken
from django_durable.testing import DurableKit
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]


@workflow("composition.by_payload")
def by_payload(ctx: Context, payload: Any) -> Any:
    return payload


@workflow("composition.by_order")
def by_order(ctx: Context, order: int, rest: list[int] | None = None) -> list[Any]:
    return [order, ctx.wait_for_event("sold", {"order": order})["amount"]]


@workflow("composition.by_nothing")
def by_nothing(ctx: Context) -> str:
    return "ran"


@pytest.fixture
def subscribed(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    for flow in (by_payload, by_order, by_nothing):
        flow.subscriptions.clear()


pytestmark = pytest.mark.usefixtures("subscribed")


def of(flow: Workflow[..., Any]) -> list[Execution[Any]]:
    return list(Execution.objects.filter(workflow=flow.name).order_by("pk"))


def test_each_event_starts_one_run_with_its_payload(durable: DurableKit) -> None:
    by_payload.on_event("sold")
    by_nothing.on_event("sold")
    publish("sold", {"order": 1})
    publish("sold", {"order": 2}, dedup_key="two")
    publish("sold", {"order": 3}, dedup_key="two")
    publish("returned", 4)
    durable.run_until_idle()
    assert [execution.output for execution in of(by_payload)] == [{"order": 1}, {"order": 2}]
    assert [execution.output for execution in of(by_nothing)] == ["ran", "ran"]
    assert EventTaken.objects.count() == 4


def test_a_key_starts_one_run_for_all_its_events_and_the_run_waits_for_the_later_ones(durable: DurableKit) -> None:
    by_order.on_event("sold", key=lambda sold: f"order-{sold['order']}", args=lambda sold: {"order": sold["order"]})
    for amount in (1, 2):
        publish("sold", {"order": 5, "amount": amount})
    durable.run_until_idle()
    [execution] = of(by_order)
    assert (execution.key, execution.output) == ("order-5", [5, 2])


def test_another_input_under_the_same_key_is_no_conflict(durable: DurableKit) -> None:
    by_payload.on_event("sold", key=lambda sold: "one")
    publish("sold", {"order": 1})
    publish("sold", {"order": 2})
    assert [execution.input for execution in of(by_payload)] == [{"payload": {"order": 1}}]


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        ((5, [1]), {"order": 5, "rest": [1]}),
        ({"order": 5}, {"order": 5}),
        (5, {"order": 5}),
    ],
)
def test_args_are_by_position_by_name_or_the_first(durable: DurableKit, made: Any, taken: Any) -> None:
    by_order.on_event("sold", args=lambda sold: made)
    publish("sold", None)
    assert [execution.input for execution in of(by_order)] == [taken]


def test_a_rolled_back_publication_starts_nothing(durable: DurableKit) -> None:
    by_payload.on_event("sold")
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        publish("sold", 1)
        raise RuntimeError
    assert not of(by_payload)


def test_what_a_subscription_raises_publishes_nothing(durable: DurableKit) -> None:
    by_nothing.on_event("sold")
    by_payload.on_event("sold", key=lambda sold: sold["missing"])
    with pytest.raises(KeyError):
        publish("sold", {})
    assert not of(by_nothing)
    assert not EventRow.objects.exists()


def test_the_newest_version_is_started_whichever_declared_it(durable: DurableKit) -> None:
    by_payload.on_event("sold")

    @workflow("composition.by_payload", version="1.10")
    def newest(ctx: Context, payload: Any) -> list[Any]:
        return [payload]

    try:
        publish("sold", 1)
        durable.run_until_idle()
        [execution] = of(by_payload)
        assert (execution.version, execution.output) == ("1.10", [1])
    finally:
        forget(newest)

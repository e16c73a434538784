"""A stored history is replayed against today's code: no database, no step body, and the position where they part."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from django_durable import Context, Execution, FatalError, Retry, SignalTimeout, StepFailed, step, workflow
from django_durable.testing import DurableKit, assert_replays, export_history
from testproject.shop.models import Order

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[str] = []


@step
def price(order_id: int) -> Decimal:
    ran.append("price")
    return Decimal("12.50")


@step(retry=Retry(max_attempts=2, initial=3600))
def charge(order_id: int, amount: Decimal) -> tuple[str, Decimal]:
    ran.append("charge")
    return "pay-1", amount


@step
def refuses() -> None:
    raise FatalError("no")


@workflow("tests.replayed", version="3")
def recorded(ctx: Context, order_id: int, limit: Decimal = Decimal(10)) -> Any:
    amount = ctx.step(price, order_id)
    reference = ctx.uuid()
    token = ctx.random()
    if amount > limit and isinstance(ctx.now().tzinfo, object):
        ctx.step(charge, order_id, amount)
    ctx.sleep(timedelta(days=1))
    ctx.set_value("reference", reference)
    try:
        ctx.step(refuses)
    except StepFailed as error:
        assert error.message == "no"
    try:
        signal = ctx.wait_for_signal("go", timeout=60)
    except SignalTimeout:
        signal = None
    if token < 2:
        ctx.set_tags(done=True)
    return signal


def run_it(durable: DurableKit, signal: bool = True) -> Execution[Any]:
    if signal:
        durable.on_wait("go", lambda execution: execution.signal("go", {"at": Decimal(1)}))
    recorded.using(key="k").start(7)
    durable.run_until_idle(skip="all")
    execution: Execution[Any] = recorded.get("k")
    assert execution.status == "completed", execution.error
    ran.clear()
    return execution


@pytest.fixture
def history(durable: DurableKit) -> list[dict[str, Any]]:
    return export_history(run_it(durable))


@pytest.mark.parametrize("signal", [True, False])
def test_the_code_that_ran_replays_its_history(
    durable: DurableKit, django_assert_num_queries: Any, signal: bool
) -> None:
    execution = run_it(durable, signal)
    as_given = execution.history()
    exported = json.loads(json.dumps(export_history(execution)))
    start = {"kind": "start", "input": execution.input, "version": "3", "format": 1}
    with django_assert_num_queries(0):
        assert_replays(recorded, exported)
        assert_replays(recorded, [start, *as_given])
        durable.assert_replays(recorded, exported)
    assert ran == []


def test_every_prefix_of_a_history_replays(history: list[dict[str, Any]]) -> None:
    for length in range(1, len(history) + 1):
        assert_replays(recorded, history[:length])


def test_a_run_that_is_under_way_replays_up_to_where_it_is(durable: DurableKit) -> None:
    durable.fail_step(charge, times=2, error=ValueError)
    execution = recorded.start(7)
    durable.run_until_idle(skip=None)
    assert execution.history()[-1]["status"] == "pending"
    ran.clear()
    assert_replays(recorded, export_history(execution))
    durable.run_until_idle(skip="sleeps")
    execution.refresh_from_db()
    assert execution.status == "failed"
    ran.clear()
    assert_replays(recorded, export_history(execution))
    assert ran == []


def test_the_export_says_how_the_run_began(durable: DurableKit) -> None:
    execution = run_it(durable)
    start, *entries = export_history(execution)
    assert {"kind": "start", "format": 1, "version": "3", "input": {"order_id": 7}}.items() <= start.items()
    assert start["key"] == "k"
    assert [entry["position"] for entry in entries] == [entry["position"] for entry in execution.history()]
    assert entries[0]["output"] == {"$decimal": "12.50"}


def changed(function: Any) -> Any:
    """The same workflow with another body, as after a deployment."""
    return type(recorded)(function, recorded.name, recorded.version, recorded.options)


def parts(history: list[dict[str, Any]], function: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_replays(changed(function), history)
    assert "workflow 'tests.replayed' version '3' does not replay the history: " in str(caught.value)
    return re.sub(r".*the history: ", "", str(caught.value), count=1)


def test_another_step_is_named_with_its_position(history: list[dict[str, Any]]) -> None:
    def body(ctx: Context, order_id: int) -> None:
        ctx.step(charge, order_id, Decimal(1))

    message = parts(history, body)
    assert message == f"position 0: the history has step '{price.name}', the code asks for step '{charge.name}'"


def test_a_step_in_the_place_of_a_sleep(history: list[dict[str, Any]]) -> None:
    def body(ctx: Context, order_id: int) -> None:
        amount = ctx.step(price, order_id)
        ctx.uuid(), ctx.random(), ctx.now()
        ctx.step(charge, order_id, amount)
        ctx.step(price, order_id)

    assert parts(history, body).startswith("position 5: the history has sleep '', the code asks for step")


def test_a_derived_value_that_is_no_longer_asked_for(history: list[dict[str, Any]]) -> None:
    def body(ctx: Context, order_id: int) -> None:
        ctx.step(price, order_id)
        ctx.step(charge, order_id, Decimal(1))

    assert parts(history, body).startswith("position 1: the history has a derived value")


def test_code_that_ends_before_its_history(history: list[dict[str, Any]]) -> None:
    def ends(ctx: Context, order_id: int) -> None:
        ctx.step(price, order_id)

    def raises(ctx: Context, order_id: int) -> None:
        ctx.step(price, order_id)
        raise KeyError("x")

    assert parts(history, ends) == "position 3: the history has now '', but the code ended before it"
    assert parts(history, raises) == "position 3: the history has now '', but the code raised KeyError: 'x' before it"


def test_a_direct_call_or_query_in_the_body(history: list[dict[str, Any]]) -> None:
    def calls(ctx: Context, order_id: int) -> None:
        ctx.step(price, order_id)
        charge(order_id, Decimal(1))

    def queries(ctx: Context, order_id: int) -> None:
        Order.objects.count()

    assert re.match(r"position 1: DirectCall: .*write ctx.step\(charge, …\)", parts(history, calls))
    assert re.match(r"position 0: DirectCall: .*put it into a step", parts(history, queries))


def test_code_that_swallows_its_suspension(history: list[dict[str, Any]]) -> None:
    def body(ctx: Context, order_id: int) -> None:
        try:
            recorded.func(ctx, order_id)
        except BaseException:
            if order_id == 8:
                raise ValueError from None

    assert_replays(changed(body), history)  # nothing is left to suspend for
    for order_id in (7, 8):
        history[0]["input"]["order_id"] = order_id
        assert parts(history[:3], body).startswith("position 4: The workflow body caught the suspension")


def test_a_parameter_that_is_gone(history: list[dict[str, Any]]) -> None:
    def body(ctx: Context, order: int) -> None:
        ctx.step(price, order)

    assert parts(history, body).startswith("its start does not fit the parameters of today")


def test_new_code_behind_the_end_of_the_history_is_free(history: list[dict[str, Any]]) -> None:
    def body(ctx: Context, order_id: int) -> None:
        recorded.func(ctx, order_id)
        ctx.step(price, order_id)

    assert_replays(changed(body), history)
    assert ran == []


def test_a_history_written_by_hand_is_enough() -> None:
    start = {"kind": "start", "input": {"order_id": 7}, "version": "3", "format": 1}
    assert_replays(recorded, [start])
    cheap = {"position": 0, "kind": "step", "name": price.name, "status": "completed", "output": Decimal(1)}
    assert_replays(recorded, [start, cheap])
    wrong = {"position": 3, "kind": "signal", "name": "go", "status": "completed", "output": None}
    with pytest.raises(AssertionError, match="position 3: the history has signal 'go', the code asks for sleep"):
        assert_replays(recorded, [start, cheap, wrong])


@pytest.mark.parametrize(
    "history, message",
    [
        ([], "a history begins with"),
        ([{"kind": "step", "position": 0}], "a history begins with"),
        ([{"kind": "start", "input": {}, "version": "1"}], "format None of a history is not known"),
        ([{"kind": "start", "input": {}, "version": "1", "format": 2}], "format 2 of a history is not known"),
    ],
)
def test_what_is_no_history_is_refused(history: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assert_replays(recorded, history)

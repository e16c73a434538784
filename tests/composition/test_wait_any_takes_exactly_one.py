"""``wait_any``: whatever came first is taken, that alone; the others stay for later waits."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import (
    Context,
    Execution,
    WaitTimeout,
    complete_callback,
    event,
    fail_callback,
    step,
    update,
    workflow,
)
from django_durable.events import publish
from django_durable.models import EventTaken, EventWait, Message
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]

handed_out: list[str] = []


@step
def hand_out(token: str) -> None:
    handed_out.append(token)


@workflow("composition.juggler")
def juggler(ctx: Context, number: int) -> list[Any]:
    callback = ctx.create_callback("pay")
    ctx.step(hand_out, callback.token)
    sources: dict[Any, str] = {
        "go": "signal",
        update("add"): "update",
        event("sold"): "event",
        event("returned"): "another event",
        callback: "callback",
    }
    found = []
    for _ in range(number):
        arrived = ctx.wait_any(*sources, timeout=3600)
        found.append([sources[arrived.source], arrived.value])
        if arrived.update is not None:
            arrived.update.reply("thanks")
        if arrived.source is callback:
            del sources[callback]
    return found


@workflow("composition.any_then_each")
def any_then_each(ctx: Context) -> list[Any]:
    try:
        first = ctx.wait_any("go", event("sold"), timeout=60)
        found = [first.source if isinstance(first.source, str) else first.source.name, first.value]
    except WaitTimeout as error:
        found = [type(error).__name__]
    return [*found, ctx.wait_for_signal("go"), ctx.wait_for_event("sold")]


@workflow("composition.one_of_many_names")
def one_of_many_names(ctx: Context) -> Any:
    return ctx.wait_any(*(f"{number:03}" * 20 for number in range(20))).value


@pytest.fixture(autouse=True)
def nothing_handed_out() -> None:
    handed_out.clear()


def ended(execution: Execution[Any]) -> Any:
    execution.refresh_from_db()
    return execution.output


def test_each_kind_of_source_arrives_as_the_object_that_was_passed_in(durable: DurableKit) -> None:
    execution = durable.run(juggler, 5)
    publish("returned", {"n": 1})
    durable.run_until_idle()
    message = execution.send_update("add", 2)
    durable.run_until_idle()
    complete_callback(handed_out[0], 3)
    durable.run_until_idle()
    execution.signal("go", 4)
    durable.run_until_idle()
    publish("sold", 5)
    durable.run_until_idle()
    assert ended(execution) == [
        ["another event", {"n": 1}],
        ["update", 2],
        ["callback", 3],
        ["signal", 4],
        ["event", 5],
    ]
    assert Message.objects.get(pk=message).encoded_reply == '"thanks"'
    assert not EventWait.objects.exists()
    durable.assert_replays(juggler, durable.export_history(execution))


def test_what_came_first_is_taken_first_wherever_it_is(durable: DurableKit) -> None:
    execution = juggler.start(4)
    for number, send in enumerate((publish, None, publish, None)):
        durable.advance(1)
        if send is None:
            execution.signal("go", number)
        else:
            publish("sold", number)
    durable.run_until_idle()
    assert ended(execution) == [["event", 0], ["signal", 1], ["event", 2], ["signal", 3]]


def test_exactly_one_is_consumed(durable: DurableKit) -> None:
    execution = durable.run(any_then_each)
    execution.signal("go", "first")
    durable.advance(1)
    publish("sold", "second")
    execution.signal("go", "third")
    durable.run_until_idle()
    assert ended(execution) == ["go", "first", "third", "second"]
    assert EventTaken.objects.count() == 1


def test_it_times_out_and_takes_nothing_later(durable: DurableKit) -> None:
    execution = durable.run(any_then_each)
    durable.run_until_idle(skip="all")
    execution.signal("go", "late")
    publish("sold", "later")
    durable.run_until_idle()
    assert ended(execution) == ["WaitTimeout", "late", "later"]


def test_a_message_before_the_deadline_wins_although_it_is_noticed_later(durable: DurableKit) -> None:
    execution = durable.run(any_then_each)
    publish("sold", "in time")
    durable.advance(3600)
    execution.signal("go", "late")
    publish("sold", "late too")
    durable.run_until_idle()
    assert ended(execution) == ["sold", "in time", "late", "late too"]


def test_a_failed_callback_raises_its_error(durable: DurableKit) -> None:
    execution = durable.run(juggler, 1)
    fail_callback(handed_out[0], "refused")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.error is not None
    assert execution.error["type"] == "django_durable.errors.CallbackFailed"
    assert execution.error["message"] == "refused"


@pytest.mark.parametrize("name", ["go", "add", "sold", "pay"])
def test_on_wait_knows_each_of_its_names(durable: DurableKit, name: str) -> None:
    seen = []
    durable.on_wait(name, lambda execution: seen.append(execution.signal("go", 1)))
    execution = durable.run(juggler, 1)
    assert (len(seen), execution.output) == (1, [["signal", 1]])


def test_names_of_any_number_and_length_are_waited_for(durable: DurableKit) -> None:
    execution = durable.run(one_of_many_names)
    execution.signal("019" * 20, "last")
    durable.run_until_idle()
    assert ended(execution) == "last"


changed: list[Any] = []


@workflow("composition.changing_sources")
def changing_sources(ctx: Context) -> Any:
    return ctx.wait_any("go", *changed).value


def test_other_sources_than_before_are_caught_before_anything_is_taken(durable: DurableKit) -> None:
    changed.clear()
    execution = durable.run(changing_sources)
    changed.append(update("add"))
    execution.signal("go", 1)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "blocked"
    assert Message.objects.get().consumed_by is None
    changed.clear()
    execution.resume(actor="ann")
    durable.run_until_idle()
    assert ended(execution) == 1


@pytest.mark.parametrize(
    ("sources", "error"),
    [((), ValueError), (("go", "go"), ValueError), ((5,), TypeError), ((update,), TypeError), (("",), ValueError)],
)
def test_wrong_use_is_a_clear_error(durable: DurableKit, sources: tuple[Any, ...], error: type[Exception]) -> None:
    changed[:] = sources
    execution = durable.run(wrong)
    assert execution.error is not None
    assert execution.error["type"] == f"builtins.{error.__name__}"


@workflow("composition.wrong_sources")
def wrong(ctx: Context) -> Any:
    return ctx.wait_any(*changed)

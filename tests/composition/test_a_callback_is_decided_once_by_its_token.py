"""Callbacks: whoever has the token decides, once, before the wait or after it, from any process."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import override_settings

from django_durable import (
    CallbackFailed,
    CallbackTimeout,
    Context,
    Execution,
    ExecutionClosed,
    ExecutionNotFound,
    complete_callback,
    fail_callback,
    step,
    workflow,
)
from django_durable.models import Message
from django_durable.testing import DurableKit
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]

handed_out: list[str] = []


@step
def hand_out(token: str) -> None:
    handed_out.append(token)


@workflow("composition.payment")
def payment(ctx: Context) -> Any:
    callback = ctx.create_callback("paid")
    ctx.step(hand_out, callback.token)
    try:
        value = callback.wait(timeout=60)
    except CallbackFailed as error:
        return f"failed: {error.message}"
    except CallbackTimeout:
        return "late"
    return [value, callback.wait()]


@workflow("composition.two_callbacks")
def two_callbacks(ctx: Context) -> list[Any]:
    first, second = ctx.create_callback(), ctx.create_callback()
    ctx.step(hand_out, first.token)
    ctx.step(hand_out, second.token)
    return [second.wait(), first.wait()]


@workflow("composition.callback_behind_a_change")
def behind_a_change(ctx: Context, name: str) -> Any:
    if ctx.patched("asks the bank"):
        callback = ctx.create_callback(name)
        ctx.step(hand_out, callback.token)
        return callback.wait()
    return None


@workflow("composition.uncaught_callback")
def uncaught(ctx: Context) -> Any:
    callback = ctx.create_callback()
    ctx.step(hand_out, callback.token)
    return callback.wait(timeout=60)


@workflow("composition.with_url")
def with_url(ctx: Context) -> str:
    return ctx.create_callback().url


@pytest.fixture(autouse=True)
def nothing_handed_out() -> None:
    handed_out.clear()


def ended(execution: Execution[Any]) -> Any:
    execution.refresh_from_db()
    return execution.output


def test_it_is_completed_after_the_wait_began_and_every_wait_gets_the_value(durable: DurableKit) -> None:
    execution = durable.run(payment)
    assert complete_callback(handed_out[0], {"amount": 5}) is True
    durable.run_until_idle()
    assert ended(execution) == [{"amount": 5}, {"amount": 5}]


def test_it_is_completed_before_the_wait(durable: DurableKit) -> None:
    durable.stub_step(hand_out, side_effect=lambda token: complete_callback(token, None))
    assert durable.run(payment).output == [None, None]


def test_a_failure_is_raised_in_the_body_on_replay_too(durable: DurableKit) -> None:
    execution = durable.run(payment)
    assert fail_callback(handed_out[0], "card refused") is True
    durable.run_until_idle()
    assert ended(execution) == "failed: card refused"
    durable.assert_replays(payment, durable.export_history(execution))


def test_only_the_first_decision_counts_also_after_the_end(durable: DurableKit) -> None:
    execution = durable.run(payment)
    token = handed_out[0]
    assert [complete_callback(token, 1), complete_callback(token, 2), fail_callback(token, "no")] == [
        True,
        False,
        False,
    ]
    durable.run_until_idle()
    assert complete_callback(token, 3) is False
    assert ended(execution) == [1, 1]


def test_a_decision_in_a_rolled_back_transaction_is_none(durable: DurableKit) -> None:
    execution = durable.run(payment)
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        complete_callback(handed_out[0], 1)
        raise RuntimeError
    assert complete_callback(handed_out[0], 2) is True
    durable.run_until_idle()
    assert ended(execution) == [2, 2]


def test_its_deadline_is_its_own_and_a_late_decision_is_refused_with_the_end(durable: DurableKit) -> None:
    execution = durable.run(payment)
    durable.run_until_idle(skip="all")
    assert ended(execution) == "late"
    with pytest.raises(ExecutionClosed):
        complete_callback(handed_out[0], 1)
    assert not Message.objects.exists()


def test_a_decision_before_the_deadline_wins_although_it_is_noticed_later(durable: DurableKit) -> None:
    execution = durable.run(payment)
    complete_callback(handed_out[0], "in time")
    durable.advance(3600)
    durable.run_until_idle()
    assert ended(execution) == ["in time", "in time"]


def test_two_callbacks_are_told_apart(durable: DurableKit) -> None:
    execution = durable.run(two_callbacks)
    complete_callback(handed_out[0], "first")
    durable.run_until_idle()
    complete_callback(handed_out[1], "second")
    durable.run_until_idle()
    assert ended(execution) == ["second", "first"]


@pytest.mark.parametrize("name", ["", "paid"])
def test_one_made_right_behind_a_marker_hears_its_decision_at_every_replay(durable: DurableKit, name: str) -> None:
    execution = durable.run(behind_a_change, name)
    assert complete_callback(handed_out[0], "decided") is True
    durable.run_until_idle()
    assert ended(execution) == "decided"
    durable.assert_replays(behind_a_change, durable.export_history(execution))


def test_after_a_retry_a_failed_callback_is_failed_still_and_a_late_one_can_be_decided(durable: DurableKit) -> None:
    late = durable.run(uncaught)
    durable.run_until_idle(skip="all")
    failed = durable.run(uncaught)
    fail_callback(handed_out[1], "no")
    durable.run_until_idle()
    for execution in (late, failed):
        execution.refresh_from_db()
        assert execution.status == "failed"
        execution.retry(actor="ann")
    durable.run_until_idle()
    assert complete_callback(handed_out[0], "at last") is True
    durable.run_until_idle()
    failed.refresh_from_db()
    assert (ended(late), failed.status) == ("at last", "failed")


@pytest.mark.parametrize("token", ["", "nonsense", "a:b", "\x00"])
def test_anything_but_a_token_made_here_finds_nothing(durable: DurableKit, token: str) -> None:
    with pytest.raises(ExecutionNotFound):
        complete_callback(token, 1)


def test_a_token_with_another_signature_finds_nothing(durable: DurableKit) -> None:
    durable.run(payment)
    with override_settings(SECRET_KEY="another"), pytest.raises(ExecutionNotFound):
        complete_callback(handed_out[0], 1)
    assert not Message.objects.exists()


def test_the_url_stands_below_the_base_url(durable: DurableKit) -> None:
    with override_settings(DURABLE={**settings.DURABLE, "CALLBACK_BASE_URL": "https://shop.example/durable/"}):
        url = durable.run(with_url).output
    assert url is not None
    assert url.startswith("https://shop.example/durable/callbacks/")
    assert url.endswith("/")


def test_without_a_base_url_the_error_says_what_to_set(durable: DurableKit) -> None:
    execution = durable.run(with_url)
    assert execution.error is not None
    assert execution.error["type"].endswith(ImproperlyConfigured.__name__)
    assert "CALLBACK_BASE_URL" in execution.error["message"]


def test_on_wait_knows_a_callback_by_its_name(durable: DurableKit) -> None:
    durable.on_wait("paid", lambda execution: complete_callback(handed_out[0], 7))
    assert durable.run(payment).output == [7, 7]

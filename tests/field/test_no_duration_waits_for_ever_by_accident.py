"""Field report B48: a NaN, a negative, infinite or mistyped duration gets in, and a comparison is false for ever.

The rule for one value is in ``tests/unit/test_durations_are_finite_and_not_negative.py``. Here: every argument of the
public API that is a duration or a point in time, where it is called, with the argument's name in the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings

from django_durable import (
    Context,
    Execution,
    InvalidTransition,
    Retry,
    RetryAfter,
    SignalTimeout,
    step,
    workflow,
)
from django_durable.conf import config
from django_durable.durations import MAXIMUM_SECONDS
from django_durable.models import Checkpoint
from tests.driving import drain, make_due

pytestmark = pytest.mark.django_db

BAD: dict[str, tuple[Any, type[Exception]]] = {
    "nan": (math.nan, ValueError),
    "infinity": (math.inf, ValueError),
    "minus infinity": (-math.inf, ValueError),
    "negative": (-1, ValueError),
    "negative timedelta": (timedelta(microseconds=-1), ValueError),
    "too long": (MAXIMUM_SECONDS + 1, ValueError),
    "much too long": (1e300, ValueError),
    "longest timedelta": (timedelta.max, ValueError),
    "bool": (True, TypeError),
    "text": ("3", TypeError),
}
GOOD: dict[str, Any] = {"nought": 0, "next to nothing": 1e-9, "timedelta": timedelta(0)}
ran: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def effect() -> str:
    ran.append("effect")
    return "done"


@step(retry=Retry(max_attempts=2, give_up_on=(ValueError, TypeError)))
def asks_for(delay: Any) -> str:
    ran.append("attempt")
    if len(ran) == 1:
        raise RetryAfter(delay, "busy")
    return "done"


def waits_for_a_signal(ctx: Context, value: Any) -> Any:
    try:
        return ctx.wait_for_signal("never", timeout=value)
    except SignalTimeout:
        return "done"


INSIDE: dict[str, tuple[str, Callable[[Context, Any], Any]]] = {
    "ctx.sleep": ("duration", lambda ctx, value: ctx.sleep(value) or "done"),
    "ctx.wait_for_signal": ("timeout", waits_for_a_signal),
    "step.using(timeout)": ("timeout", lambda ctx, value: ctx.step(effect.using(timeout=value))),
    "step.using(retry)": ("initial", lambda ctx, value: ctx.step(effect.using(retry=Retry(initial=value)))),
    "RetryAfter": ("delay", lambda ctx, value: ctx.step(asks_for, value)),
}


@workflow
def calls(ctx: Context, place: str, value: Any) -> Any:
    return INSIDE[place][1](ctx, value)


def start_after(value: Any) -> Execution[Any]:
    return calls.using(run_after=value).start("ctx.sleep", 0)


def declare_step(**options: Any) -> Any:
    return effect.using(**options)


OUTSIDE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "run_after": ("run_after", start_after),
    "timeout of a start": ("timeout", lambda value: calls.using(timeout=value)),
    "timeout of a workflow": ("timeout", lambda value: workflow(timeout=value)),
    "result": ("timeout", lambda value: start_after(600).result(timeout=value)),
    "timeout of a step": ("timeout", lambda value: declare_step(timeout=value)),
    "total_timeout": ("total_timeout", lambda value: declare_step(total_timeout=value)),
    "queue_timeout": ("queue_timeout", lambda value: declare_step(queue_timeout=value)),
    "heartbeat_timeout": ("heartbeat_timeout", lambda value: declare_step(heartbeat_timeout=value)),
    "Retry(initial)": ("initial", lambda value: Retry(initial=value)),
    "Retry(maximum)": ("maximum", lambda value: Retry(maximum=value)),
    "RetryAfter": ("delay", lambda value: RetryAfter(value)),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", OUTSIDE)
def test_a_bad_duration_is_refused_where_it_is_passed(place: str, bad: str) -> None:
    name, call = OUTSIDE[place]
    value, error = BAD[bad]
    with pytest.raises(error, match=name):
        call(value)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", INSIDE)
def test_a_bad_duration_in_a_workflow_ends_it_at_once_with_its_name(place: str, bad: str) -> None:
    name, _call = INSIDE[place]
    value, error = BAD[bad]
    execution = calls.start(place, value)
    assert drain() == 1
    failed = Execution.objects.locate(execution.pk)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["type"] == f"builtins.{error.__name__}"
    assert name in failed.error["message"]
    if place == "RetryAfter":
        assert ran == ["attempt"]
        assert [entry["status"] for entry in failed.history()] == ["failed"]
    else:
        assert failed.history() == []


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("place", ["ctx.sleep", "ctx.wait_for_signal", "step.using(retry)", "RetryAfter"])
def test_nought_means_now_and_leaves_a_checkpoint(place: str, good: str) -> None:
    execution = calls.start(place, GOOD[good])
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.output == "done"
    assert Checkpoint.objects.count() == 1


@pytest.mark.parametrize("good", GOOD)
def test_a_start_after_nought_is_a_start_now_and_a_result_after_nought_is_a_look(good: str) -> None:
    execution = start_after(GOOD[good])
    with pytest.raises((TimeoutError, InvalidTransition)):
        execution.result(timeout=GOOD[good])
    drain()
    assert execution.result(timeout=GOOD[good]) == "done"


@pytest.mark.parametrize("seconds", [10**9, MAXIMUM_SECONDS])
@pytest.mark.parametrize("place", ["ctx.sleep", "ctx.wait_for_signal", "RetryAfter"])
def test_a_very_long_wait_is_stored_and_not_woken(place: str, seconds: int) -> None:
    execution = calls.start(place, seconds)
    drain()
    waiting = Execution.objects.locate(execution.pk)
    assert waiting.status == "waiting"
    assert waiting.wake_at is not None
    assert waiting.wake_at.year > 2050
    assert drain() == 0
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == "done"


@pytest.mark.parametrize(
    "options",
    [
        {"run_after": MAXIMUM_SECONDS, "timeout": MAXIMUM_SECONDS},
        {"run_after": datetime(9998, 12, 31, tzinfo=UTC), "timeout": 10**9},
    ],
    ids=["two durations", "a time and a duration"],
)
def test_two_long_times_that_add_up_beyond_the_calendar_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="timeout"):
        calls.using(**options).start("ctx.sleep", 0)
    assert not Execution.objects.exists()


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("key", ["LEASE_SECONDS", "POLL_SECONDS", "TICK_SECONDS", "INLINE_RETRY_SECONDS"])
def test_a_bad_duration_in_the_settings_is_refused_by_its_key(key: str, bad: str) -> None:
    from django.core.exceptions import ImproperlyConfigured

    with override_settings(DURABLE={key: BAD[bad][0]}), pytest.raises(ImproperlyConfigured, match=key):
        config()


@pytest.mark.parametrize("attempt", [1, 2, 10, 100, 2000, 10**6])
def test_back_off_saturates_whatever_the_number_of_the_attempt(attempt: int) -> None:
    retry = Retry(max_attempts=2 * 10**6, initial=1.0, factor=10.0, maximum=3600.0)
    assert 0 < retry.delay_after(ValueError(), attempt) <= 3600

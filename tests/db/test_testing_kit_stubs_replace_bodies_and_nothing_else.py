"""A stub or a failure stands in for a step's body only: attempts, storage and replay are the real ones."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import call

import pytest

from django_durable import Context, FatalError, Retry, current_step, step, workflow
from django_durable.testing import DurableKit, fail_step, run, stub_step

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

calls: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    calls.clear()


@step(retry=Retry(max_attempts=3, initial=0))
def charge(order_id: int, amount: Decimal = Decimal(1)) -> Any:
    calls.append((order_id, amount))
    return "real"


def plain(text: str) -> str:
    return f"real {text}"


@step(transactional=True)
def transactional(text: str) -> str:
    return f"real {text}"


@workflow
def pays(ctx: Context, order_id: int) -> Any:
    return ctx.step(charge, order_id)


@workflow
def pays_by_name(ctx: Context, order_id: int) -> Any:
    return ctx.step(charge.using(retry=Retry(max_attempts=1)), amount=Decimal(3), order_id=order_id)


@workflow
def others(ctx: Context) -> tuple[str, str]:
    return ctx.step(plain, "a"), ctx.step(transactional, "b")


@workflow
def passes_a_word(ctx: Context) -> Any:
    return ctx.step(charge, 1, Decimal(2)), ctx.step(plain, "a")


def test_a_stub_lasts_as_long_as_its_block() -> None:
    with stub_step(charge, returns="stub") as stub:
        assert run(pays, 7).output == "stub"
        assert stub.calls == [call(7)]
        assert stub.calls[0].args == (7,)
    assert run(pays, 8).output == "real"
    assert (stub.calls, calls) == ([call(7)], [(8, Decimal(1))])


def test_a_stub_without_a_block_lasts_as_long_as_the_test(durable: DurableKit) -> None:
    stub = durable.stub_step(charge)
    assert durable.run(pays, 7).output is None
    assert durable.run(pays, 8).output is None
    assert stub.calls == [call(7), call(8)]


def test_the_next_test_has_the_real_body(durable: DurableKit) -> None:
    assert durable.run(pays, 7).output == "real"
    assert charge.run(8) == "real"


def test_copies_and_plain_functions_are_the_step_too(durable: DurableKit) -> None:
    stub = durable.stub_step(charge, returns="stub")
    durable.stub_step(plain, side_effect=str.upper)
    durable.stub_step(transactional, side_effect=lambda text: text * 2)
    assert durable.run(pays_by_name, 7).output == "stub"
    assert stub.calls == [call(amount=Decimal(3), order_id=7)]
    assert durable.run(others).output == ("A", "bb")


def test_what_a_stub_returns_is_stored_and_read_back(durable: DurableKit) -> None:
    value = {"paid": Decimal("1.50"), "on": date(2026, 1, 2), "at": datetime(2026, 1, 2, tzinfo=UTC), 3: (1, {2})}
    durable.stub_step(charge, returns=value)
    output = durable.run(pays, 7).output
    assert (output, type(output[3])) == (value, tuple)
    assert output is not value


def test_what_cannot_be_stored_fails_as_it_would(durable: DurableKit) -> None:
    stub = durable.stub_step(charge, returns=object())
    execution = durable.run(pays, 7)
    assert execution.error["type"] == "django_durable.errors.UnserializableValue"
    assert len(stub.calls) == 1  # not retried


def test_a_side_effect_is_what_mock_makes_of_it(durable: DurableKit) -> None:
    with durable.stub_step(charge, side_effect=lambda order_id: order_id * 2):
        assert durable.run(pays, 7).output == 14
    with durable.stub_step(charge, side_effect=FatalError) as stub:
        assert durable.run(pays, 7).error["type"] == "django_durable.errors.FatalError"
        assert len(stub.calls) == 1
    with durable.stub_step(charge, side_effect=[ValueError("once"), KeyError, "third time"]) as stub:
        execution = durable.run(pays, 7)
        assert execution.output == "third time"
        assert execution.history()[0]["attempts"] == len(stub.calls) == 3
    with durable.stub_step(charge, side_effect=[]):
        error = durable.run(pays, 7).error
        assert error["message"].endswith("charge' is called more often than side_effect has outcomes (0)")


def test_a_side_effect_runs_as_the_body(durable: DurableKit) -> None:
    durable.stub_step(charge, side_effect=lambda order_id: current_step().idempotency_key)
    execution = durable.run(pays, 7)
    assert execution.output == f"{execution.pk}:0"


def test_a_spy_may_call_the_real_function(durable: DurableKit) -> None:
    stub = durable.stub_step(charge, side_effect=lambda *args: f"really {charge.func(*args)}")
    assert durable.run(pays, 7).output == "really real"
    assert (stub.calls, calls) == ([call(7)], [(7, Decimal(1))])


def test_arguments_that_do_not_fit_the_step_fail_with_a_stub_too(durable: DurableKit) -> None:
    stub = durable.stub_step(plain, returns="x")
    execution = durable.run(calls_wrongly)
    assert execution.error["type"] == "builtins.TypeError"
    assert stub.calls == []


@workflow
def calls_wrongly(ctx: Context) -> str:
    return ctx.step(plain, "a", "b")


def test_calling_the_step_directly_is_the_function_stub_or_not(durable: DurableKit) -> None:
    with durable.stub_step(charge, returns="stub"):
        assert charge(7) == "real"


def test_a_step_fails_as_often_as_it_was_told(durable: DurableKit) -> None:
    failing = durable.fail_step(charge, times=2, error=TimeoutError("gateway"))
    execution = durable.run(pays, 7)
    assert execution.output == "real"
    assert execution.history()[0]["attempts"] == len(failing.calls) == 3
    assert len(calls) == 1


def test_a_failure_for_good_is_the_error_that_was_given(durable: DurableKit) -> None:
    durable.fail_step(charge, times=3, error=TimeoutError)
    assert durable.run(pays, 7).error["type"] == "builtins.TimeoutError"
    assert durable.run(pays, 7).output == "real"
    with fail_step(charge, error=FatalError("no")):
        assert durable.run(pays, 7).error["message"] == "no"
    with fail_step(charge):
        assert durable.run(pays_by_name, 7).error["message"] == "failed by fail_step()"


def test_a_failing_stub_succeeds_with_the_stub_s_value(durable: DurableKit) -> None:
    stub = durable.stub_step(charge, returns="stub")
    with durable.fail_step(charge, times=1):
        assert durable.run(pays, 7).output == "stub"
    assert durable.run(pays, 8).output == "stub"
    assert stub.calls == [call(7), call(8)]


def test_the_latest_stub_is_asked_first(durable: DurableKit) -> None:
    outer = durable.stub_step(charge, returns="outer")
    with durable.stub_step(charge, returns="inner"):
        assert durable.run(pays, 7).output == "inner"
    assert durable.run(pays, 7).output == "outer"
    assert len(outer.calls) == 1


def test_only_the_named_step_is_replaced(durable: DurableKit) -> None:
    durable.stub_step(charge, returns="stub")
    assert durable.run(passes_a_word).output == ("stub", "real a")


def test_mistakes_are_told_at_the_call(durable: DurableKit) -> None:
    with pytest.raises(TypeError, match="returns= or side_effect=, not both"):
        durable.stub_step(charge, returns=1, side_effect=2)
    with pytest.raises(TypeError, match="not by the name 'charge'"):
        durable.stub_step("charge", returns=1)
    with pytest.raises(TypeError, match="is a workflow, not a step"):
        durable.stub_step(pays, returns=1)
    for times in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="times must be an int of at least 1"):
            durable.fail_step(charge, times=times)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="error must be an exception or a class of them, not str"):
        durable.fail_step(charge, error="no")  # type: ignore[arg-type]
    assert durable.run(pays, 7).output == "real"

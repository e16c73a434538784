"""ctx.spend charges before it is too late: over the budget nothing is charged, now and at every replay."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from django_durable import BudgetExhausted, Context, Execution, step, workflow
from django_durable.testing import DurableKit, assert_replays, export_history

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def ask(question: str) -> str:
    ran.append(question)
    return question


@workflow("tests.spender", budget={"tokens": 1000, "euros": Decimal("0.30")})
def spender(ctx: Context, *amounts: Any) -> list[Any]:
    left: list[Any] = []
    for number, amount in enumerate(amounts):
        try:
            left.append(ctx.spend("tokens", amount))
        except BudgetExhausted as error:
            left.append(str(error))
            continue
        ctx.step(ask, f"{number}")
    ctx.sleep(1)
    return left


def test_what_is_covered_is_charged_and_what_is_not_is_refused(durable: DurableKit) -> None:
    execution = durable.run(spender, 600, 500, 400, 1)
    first, refused, second, again = execution.result()
    assert (first, second) == (400, 0)
    assert refused == "budget 'tokens' has 400 left, which does not cover 500"
    assert again == "budget 'tokens' has 0 left, which does not cover 1"
    assert ran == ["0", "2"]
    assert execution.budget_left() == {"tokens": 0, "euros": Decimal("0.30")}
    spent = [(e["status"], e["output"]) for e in execution.history() if e["kind"] == "spend"]
    assert spent == [("completed", 600), ("failed", None), ("completed", 400), ("failed", None)]


def test_every_prefix_replays(durable: DurableKit) -> None:
    start, *entries = export_history(durable.run(spender, 600, 500, 400, 1))
    for length in range(len(entries) + 1):
        assert_replays(spender, [start, *entries[:length]])


@pytest.mark.parametrize("position", range(1, 6))
def test_a_crash_charges_nothing_twice(durable: DurableKit, position: int) -> None:
    crash = durable.crash_turn(at_position=position)
    execution = durable.run(spender, 600, 500, 400)
    assert crash.happened
    assert execution.result()[-1] == 0
    assert execution.budget_left()["tokens"] == 0


@workflow("tests.careless", budget={"calls": 1})
def careless(ctx: Context) -> None:
    ctx.spend("calls", 1)
    ctx.step(ask, "one")
    ctx.spend("calls", 1)
    ctx.step(ask, "two")


def test_an_uncaught_refusal_fails_the_run_and_is_not_retried(durable: DurableKit) -> None:
    execution = durable.run(careless)
    assert execution.status == "failed"
    assert execution.error["type"] == "django_durable.errors.BudgetExhausted"
    assert ran == ["one"]


def test_a_retry_charges_again_and_keeps_what_was_charged(durable: DurableKit) -> None:
    execution = durable.run(careless)
    execution.retry(actor="ann")
    durable.run_until_idle()
    assert Execution.objects.locate(execution.pk).status == "failed"
    assert ran == ["one"]
    assert [e["kind"] for e in execution.history()] == ["spend", "step", "spend"]


def test_a_start_may_have_a_budget_of_its_own(durable: DurableKit) -> None:
    execution = durable.run(spender, 600, 500, budget={"tokens": 1100.5})
    assert execution.result() == [Decimal("500.5"), Decimal("0.5")]
    assert execution.budget_left() == {"tokens": Decimal("0.5")}


@workflow("tests.cents", budget={"euros": Decimal("0.30")})
def cents(ctx: Context) -> list[Decimal]:
    return [ctx.spend("euros", 0.1), ctx.spend("euros", 0.2)]


def test_fractions_are_counted_exactly(durable: DurableKit) -> None:
    assert durable.run(cents).result() == [Decimal("0.20"), Decimal("0.00")]


@workflow("tests.unknown_budget", budget={"tokens": 5})
def asks_for(ctx: Context, name: Any, amount: Any) -> None:
    ctx.spend(name, amount)


@pytest.mark.parametrize(
    ("name", "amount", "said"),
    [
        ("token", 1, "the run has no budget 'token'; it has 'tokens'"),
        ("tokens", -1, "must not be negative"),
        ("tokens", float("nan"), "must be finite"),
        ("tokens", float("inf"), "must be finite"),
        ("tokens", True, "must be an int, float or Decimal, not bool"),
        ("tokens", "5", "must be an int, float or Decimal, not str"),
        ("tokens", Decimal("1E+60"), "at most 60 digits"),
        ("tokens", Decimal("1E-31"), "30 after it"),
        ("", 1, "budget name"),
    ],
)
def test_a_wrong_charge_is_refused_before_it_takes_a_position(
    durable: DurableKit, name: Any, amount: Any, said: str
) -> None:
    execution = durable.run(asks_for, name, amount)
    assert execution.status == "failed"
    assert said in execution.error["message"]
    assert execution.history() == []


@pytest.mark.parametrize("wrong", [5, ["tokens"], {"tokens": -1}, {"tokens": "5"}, {5: 5}, {"": 1}])
def test_a_budget_that_is_none_is_refused_where_it_is_given(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        spender.using(budget=wrong)
    with pytest.raises((TypeError, ValueError)):
        workflow("tests.wrong_budget", budget=wrong)


def test_a_run_without_budget_says_how_to_declare_one(durable: DurableKit) -> None:
    execution = durable.run(asks_for, "tokens", 1, budget={})
    assert "it has none at all. Declare it: @workflow(budget={'tokens': …})" in execution.error["message"]


def test_another_budget_at_this_position_is_a_mismatch(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    history = export_history(durable.run(asks_for, "tokens", 2))
    history[0]["input"]["name"] = "tokens"
    with pytest.raises(AssertionError, match="position 0: the history has spend 'tokens', the code asks for step"):
        monkeypatch.setattr(asks_for, "func", lambda ctx, name, amount: ctx.step(ask, "x"))
        assert_replays(asks_for, history)

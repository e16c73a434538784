"""The workflows of the stored histories about versions and long lives. Their bodies must keep replaying those files."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django_durable import BudgetExhausted, Context, step, workflow


@step("recorded.effect")
def effect(word: str) -> str:
    return word


@workflow("recorded.patched")
def patched(ctx: Context) -> list[Any]:
    answers: list[Any] = []
    for number in range(2):
        answers.append(ctx.patched("loop"))
        answers.append(ctx.step(effect, str(number)))
    return [*answers, ctx.patched("end")]


@workflow("recorded.spend", budget={"tokens": 10, "euros": Decimal("0.5")})
def spend(ctx: Context) -> list[Any]:
    left: list[Any] = [ctx.spend("tokens", 4), ctx.spend("euros", Decimal("0.2"))]
    ctx.step(effect, "spent")
    try:
        ctx.spend("tokens", 7)
    except BudgetExhausted as error:
        left.append(str(error))
    return [*left, ctx.spend("tokens", 6)]


@workflow("recorded.continue_as_new")
def continue_as_new(ctx: Context, number: int = 1) -> int:
    ctx.set_tags(number=number)
    ctx.step(effect, str(number))
    if number == 1:
        ctx.continue_as_new(number + 1)
    return number


@workflow("recorded.fork")
def fork(ctx: Context) -> list[Any]:
    values: list[Any] = [ctx.uuid(), ctx.random()]
    ctx.step(effect, str(values[0]))
    values.append(ctx.uuid())
    ctx.step(effect, str(values[2]))
    return values

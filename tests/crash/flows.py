"""The workflows that are killed. Named outright, so that worker processes find them by import."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any

from django_durable import Context, FatalError, Retry, SignalTimeout, StepFailed, step, workflow
from testproject.shop.models import Order
from tests.crash.places import rows
from tests.crash.stage import act, stage

HOUR = 3600.0


@step("crash.effect")
def effect(label: str) -> str:
    act(label)
    return f"{label} done"


@step("crash.paid", transactional=True)
def paid(label: str) -> str:
    act(label)
    rows(Order).create(payment_id=label)
    return f"{label} done"


@step("crash.paid_late", transactional=True, retry=Retry(max_attempts=2, initial=0.0))
def paid_late(label: str) -> str:
    """Its first attempt writes and then fails: that row must be gone."""
    from django_durable import current_step

    act(label)
    rows(Order).create(payment_id=label)
    if current_step().attempt == 1:
        raise ValueError("refused")
    return f"{label} done"


@step("crash.once", at_most_once=True)
def once(label: str) -> str:
    act(label)
    return f"{label} done"


@step("crash.flaky", retry=Retry(max_attempts=3, initial=0.0, give_up_on=(FatalError,)))
def flaky(label: str, succeeds_at: int) -> str:
    from django_durable import current_step

    act(label)
    if current_step().attempt < succeeds_at:
        raise ValueError("not yet")
    return f"{label} done"


@step("crash.fragile")
def fragile(label: str) -> str:
    """Fails for good until somebody has repaired the world."""
    act(label)
    if not stage.repaired:
        raise ValueError("broken")
    return f"{label} done"


@step("crash.busy")
def busy(label: str) -> str:
    """While it runs, something happens elsewhere."""
    act(label)
    if stage.during is not None:
        stage.during()
    return f"{label} done"


@step("crash.leaving")
def leaving(label: str) -> str:
    """Its process wants to end the first time."""
    act(label)
    if not stage.repaired:
        raise SystemExit(3)
    return f"{label} done"


@workflow("crash.three_steps")
def three_steps(ctx: Context, mark: str) -> list[str]:
    return [ctx.step(effect, f"{mark}-{n}") for n in range(3)]


@step("crash.unrecorded")
def unrecorded() -> str:
    return "done"


@workflow("crash.undisturbed")
def undisturbed(ctx: Context) -> str:
    """Another tenant's, on another plane: of no run's effects."""
    return ctx.step(unrecorded)


@workflow("crash.transactional")
def transactional(ctx: Context, mark: str) -> list[str]:
    return [
        ctx.step(effect, f"{mark}-0"),
        ctx.step(paid, f"{mark}-1"),
        ctx.step(paid_late, f"{mark}-2"),
        ctx.step(effect, f"{mark}-3"),
    ]


@workflow("crash.at_most_once")
def at_most_once(ctx: Context, mark: str, attempts: int) -> list[str]:
    guarded = once.using(retry=Retry(max_attempts=attempts, initial=0.0))
    return [ctx.step(effect, f"{mark}-0"), ctx.step(guarded, f"{mark}-1"), ctx.step(effect, f"{mark}-2")]


@workflow("crash.sleeper")
def sleeper(ctx: Context, mark: str) -> list[str]:
    first = ctx.step(effect, f"{mark}-0")
    ctx.sleep(HOUR)
    return [first, ctx.step(effect, f"{mark}-2")]


@workflow("crash.two_signals")
def two_signals(ctx: Context, mark: str) -> list[Any]:
    """Takes two signals of one name, in order, with a step between them."""
    before = ctx.step(busy, f"{mark}-0")
    first = ctx.wait_for_signal("go")
    between = ctx.step(effect, f"{mark}-2")
    return [before, first, between, ctx.wait_for_signal("go"), ctx.step(effect, f"{mark}-4")]


@workflow("crash.one_signal")
def one_signal(ctx: Context, mark: str) -> list[Any]:
    before = ctx.step(busy, f"{mark}-0")
    return [before, ctx.wait_for_signal("go"), ctx.step(effect, f"{mark}-2")]


@workflow("crash.signal_timeout")
def signal_timeout(ctx: Context, mark: str) -> list[Any]:
    before = ctx.step(effect, f"{mark}-0")
    try:
        answer = ctx.wait_for_signal("go", timeout=HOUR)
    except SignalTimeout:
        answer = "late"
    return [before, answer, ctx.step(effect, f"{mark}-2")]


@workflow("crash.retried_inline")
def retried_inline(ctx: Context, mark: str) -> list[str]:
    return [ctx.step(flaky, f"{mark}-0", 3), ctx.step(effect, f"{mark}-1")]


@workflow("crash.retried_late")
def retried_late(ctx: Context, mark: str) -> list[str]:
    patient = flaky.using(retry=Retry(max_attempts=3, initial=HOUR, factor=1.0, maximum=HOUR))
    return [ctx.step(patient, f"{mark}-0", 3), ctx.step(effect, f"{mark}-1")]


@workflow("crash.doomed")
def doomed(ctx: Context, mark: str) -> list[str]:
    """Handles one failure of its own, then fails for good."""
    first = ctx.step(effect, f"{mark}-0")
    with suppress(StepFailed):
        ctx.step(flaky.using(retry=Retry(max_attempts=2, initial=0.0)), f"{mark}-1", 9)
    return [first, ctx.step(fragile, f"{mark}-2"), ctx.step(effect, f"{mark}-3")]


@workflow("crash.stopped")
def stopped(ctx: Context, mark: str) -> list[str]:
    """Three steps; during the second something happens elsewhere."""
    return [ctx.step(effect, f"{mark}-0"), ctx.step(busy, f"{mark}-1"), ctx.step(effect, f"{mark}-2")]


@workflow("crash.breakpoints")
def breakpoints(ctx: Context, mark: str) -> list[str]:
    first = ctx.step(effect, f"{mark}-0")
    ctx.breakpoint("look")
    return [first, ctx.step(effect, f"{mark}-2")]


@workflow("crash.published")
def published(ctx: Context, mark: str) -> list[Any]:
    """Values ride along: before a step, before a transactional step, with tags, before a wait, at the end."""
    ctx.set_value("stage", "begun")
    begun = ctx.now()
    ctx.step(effect, f"{mark}-2")
    ctx.set_value("stage", "paying")
    ctx.step(paid, f"{mark}-4")
    ctx.set_value("stage", "tagging")
    ctx.set_tags(mark=mark, paid=True)
    token, chance = ctx.uuid(), ctx.random()
    ctx.step(effect, f"{mark}-9")
    ctx.set_value("stage", "waiting")
    word = ctx.wait_for_signal("go")
    ctx.set_tags(word=word)
    ctx.set_value("stage", "ended")
    ended = ctx.now()
    return [begun <= ended, token == ctx.uuid(), chance == ctx.random(), isinstance(ended, datetime), word]


@workflow("crash.lethal", max_recoveries=0)
def lethal(ctx: Context, mark: str) -> list[str]:
    return [ctx.step(effect, f"{mark}-0"), ctx.step(leaving, f"{mark}-1")]


@workflow("crash.quitting")
def quitting(ctx: Context, mark: str) -> list[str]:
    return [ctx.step(effect, f"{mark}-0"), ctx.step(leaving, f"{mark}-1"), ctx.step(effect, f"{mark}-2")]


@workflow("crash.changing")
def changing(ctx: Context, mark: str) -> list[str]:
    """Its code is changed under way, so that it does not match its history, and changed back."""
    if stage.changed:
        ctx.sleep(HOUR)
    first = ctx.step(effect, f"{mark}-0")
    ctx.sleep(HOUR)
    return [first, ctx.step(effect, f"{mark}-2")]


@workflow("crash.swallowing")
def swallowing(ctx: Context, mark: str) -> str:
    ctx.step(effect, f"{mark}-0")
    with suppress(BaseException):
        ctx.sleep(HOUR)
    return "went on"


@workflow("crash.undone_block")
def undone_block(ctx: Context, mark: str) -> list[str]:
    """A block fails and is undone; the error is handled, and the run goes on."""
    with suppress(StepFailed), ctx.saga():
        ctx.compensate(effect, f"{mark}-undo-0")
        ctx.step(effect, f"{mark}-1")
        ctx.compensate(paid, f"{mark}-undo-2")
        ctx.step(fragile, f"{mark}-3")
    return [ctx.step(effect, f"{mark}-5")]


@workflow("crash.undone")
def undone(ctx: Context, mark: str, end: str) -> list[str]:
    """Two undo steps for the whole run, each registered before its step; fails or waits in the end."""
    ctx.compensate(effect, f"{mark}-undo-0")
    ctx.step(busy, f"{mark}-1")
    ctx.compensate(effect, f"{mark}-undo-2")
    ctx.step(effect, f"{mark}-3")
    if end == "fail":
        ctx.step(fragile, f"{mark}-4")
    return [ctx.wait_for_signal("go")]


@workflow("crash.undone_late")
def undone_late(ctx: Context, mark: str, in_block: bool) -> None:
    """An undo step that succeeds at its second attempt, an hour later."""
    patient = flaky.using(retry=Retry(max_attempts=2, initial=HOUR))
    with ctx.saga() if in_block else nullcontext():
        ctx.compensate(patient, f"{mark}-undo-0", 2)
        ctx.step(fragile, f"{mark}-1")


@workflow("crash.undo_fails")
def undo_fails(ctx: Context, mark: str) -> None:
    """The first undo step fails until somebody has repaired the world."""
    ctx.compensate(fragile, f"{mark}-undo-0")
    ctx.compensate(effect, f"{mark}-undo-1")
    ctx.step(flaky.using(retry=Retry(max_attempts=1)), f"{mark}-2", 9)


@workflow("crash.everything")
def everything(ctx: Context, mark: str) -> list[Any]:
    """For the processes that are really killed: some of everything, with short times."""
    results: list[Any] = [ctx.step(effect, f"{mark}-0"), ctx.step(paid, f"{mark}-1")]
    ctx.sleep(0.05)
    guarded = once.using(retry=Retry(max_attempts=50, initial=0.0))
    results.append(ctx.step(guarded, f"{mark}-3"))
    ctx.set_value("stage", "waiting")
    results.append(ctx.wait_for_signal("go"))
    results.append(ctx.step(flaky.using(retry=Retry(max_attempts=9, initial=0.02)), f"{mark}-6", 2))
    results.append(ctx.step(paid_late, f"{mark}-7"))
    results.append(ctx.step(effect, f"{mark}-8"))
    return results

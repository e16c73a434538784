"""Contract §2 and §10: undo steps of a block, and of the whole execution outside one."""

from __future__ import annotations

import pytest

from django_durable import Context, Retry, StepFailed, step, workflow
from django_durable.testing import DurableKit
from tests.composition.trips import book, log, note, refuse, unbook, undone

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

HOUR = 3600.0


@step("sagas.stubborn", retry=Retry(max_attempts=2, initial=0.0))
def stubborn(what: str) -> None:
    note(f"unbook {what}")
    raise OSError(f"{what} cannot be taken back")


@step("sagas.patient", retry=Retry(max_attempts=3, initial=HOUR, factor=1.0, maximum=HOUR))
def patient(what: str) -> None:
    note(f"unbook {what}")
    if log.count(f"unbook {what}") < 3:
        raise OSError("not yet")


@workflow("sagas.nested")
def nested(ctx: Context, fails_in: str) -> list[str]:
    ctx.compensate(unbook, "whole")
    with ctx.saga():
        ctx.compensate(unbook, "outer")
        with ctx.saga():
            ctx.compensate(unbook, "inner")
            ctx.step(book, "inner")
            if fails_in == "inner":
                ctx.step(refuse, "inner")
        ctx.step(book, "outer")
        if fails_in == "outer":
            ctx.step(refuse, "outer")
    if fails_in == "after":
        ctx.step(refuse, "after")
    return log.copy()


@pytest.mark.parametrize(
    ("fails_in", "unbooked"),
    [
        ("inner", ["unbook inner", "unbook outer", "unbook whole"]),
        ("outer", ["unbook outer", "unbook whole"]),
        ("after", ["unbook whole"]),
        ("nowhere", []),
    ],
)
def test_a_block_that_ended_drops_its_undo_steps(durable: DurableKit, fails_in: str, unbooked: list[str]) -> None:
    execution = durable.run(nested, fails_in)
    assert [line for line in log if line.startswith("unbook")] == unbooked
    assert execution.status == ("failed" if unbooked else "completed")


@workflow("sagas.handled")
def handled(ctx: Context, pause: bool = False) -> str:
    try:
        with ctx.saga():
            ctx.compensate(unbook, "a")
            ctx.step(book, "a")
            ctx.step(refuse, "b")
    except StepFailed:
        pass
    if pause:
        ctx.wait_for_signal("go")
    ctx.step(book, "other")
    return "went on"


def test_an_error_handled_outside_the_block_lets_the_run_go_on(durable: DurableKit) -> None:
    execution = durable.run(handled)
    assert execution.result() == "went on"
    assert log == ["book a", "refuse b", "unbook a", "book other"]


def test_what_a_block_has_undone_is_not_undone_again_by_a_later_cancel(durable: DurableKit) -> None:
    execution = durable.run(handled, True)
    assert execution.cancel() is True
    assert execution.status == "cancelled", "nothing is left to undo, so it ends at once"
    durable.run_until_idle()
    assert log == ["book a", "refuse b", "unbook a"]


@workflow("sagas.noted")
def noted(ctx: Context) -> list[str]:
    notes: list[str] = []
    try:
        with ctx.saga():
            ctx.compensate(unbook, "a")
            ctx.compensate(stubborn, "b")
            ctx.compensate(unbook, "c")
            ctx.step(refuse, "d")
    except StepFailed as error:
        notes = list(error.__notes__)
    ctx.sleep(HOUR)
    return notes


def test_an_undo_step_that_fails_for_good_is_a_note_on_the_error_and_in_nobodys_way(durable: DurableKit) -> None:
    execution = durable.run(noted)
    assert log == ["refuse d", "unbook c", "unbook b", "unbook b", "unbook a"]
    assert execution.result() == ["undo step 'sagas.stubborn' failed: builtins.OSError: b cannot be taken back"], (
        "the same at the replay after the sleep"
    )
    assert undone(execution) == [
        ("trips.cancel", "completed"),
        ("sagas.stubborn", "failed"),
        ("trips.cancel", "completed"),
    ]


@workflow("sagas.delayed")
def delayed(ctx: Context, in_block: bool) -> str:
    if in_block:
        with ctx.saga():
            ctx.compensate(patient, "a")
            ctx.step(refuse, "b")
    ctx.compensate(patient, "a")
    ctx.step(refuse, "b")
    return "never"


@pytest.mark.parametrize("in_block", [True, False])
def test_a_long_retry_delay_of_an_undo_step_holds_no_worker(durable: DurableKit, in_block: bool) -> None:
    execution = delayed.start(in_block)
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    assert execution.status == ("waiting" if in_block else "compensating")
    assert execution.wake_at is not None
    assert log == ["refuse b", "unbook a"]
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "failed"
    assert log == ["refuse b", "unbook a", "unbook a", "unbook a"]


def test_cancel_of_a_block_whose_undo_step_waits_goes_on_with_it_in_its_time(durable: DurableKit) -> None:
    execution = delayed.start(True)
    durable.run_until_idle(skip=None)
    assert execution.cancel() is True
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    assert (execution.status, log) == ("compensating", ["refuse b", "unbook a"]), "its next attempt is not due"
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log) == ("cancelled", ["refuse b", *["unbook a"] * 3])


@workflow("sagas.discarding")
def discarding(ctx: Context, in_block: bool) -> None:
    ctx.compensate(unbook, "whole")
    if in_block:
        with ctx.saga():
            ctx.compensate(unbook, "block")
            ctx.discard_compensations()
            ctx.compensate(unbook, "later")
            ctx.step(refuse, "it")
    ctx.discard_compensations()
    ctx.compensate(unbook, "later")
    ctx.step(refuse, "it")


def test_discard_drops_those_of_the_block_or_of_the_execution(durable: DurableKit) -> None:
    durable.run(discarding, True)
    assert log == ["refuse it", "unbook later", "unbook whole"]
    log.clear()
    durable.run(discarding, False)
    assert log == ["refuse it", "unbook later"]


@workflow("sagas.suspending")
def suspending(ctx: Context) -> str:
    with ctx.saga():
        ctx.compensate(unbook, "a")
        ctx.step(book, "a")
        ctx.sleep(HOUR)
        ctx.wait_for_signal("go")
        ctx.step(book, "b")
    return "done"


def test_a_suspension_within_a_block_undoes_nothing(durable: DurableKit) -> None:
    execution = durable.run(suspending)
    assert execution.status == "waiting"
    execution.signal("go")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.result() == "done"
    assert log == ["book a", "book b"]


@workflow("sagas.counted")
def counted(ctx: Context, fails: bool) -> list[int]:
    sizes = [ctx.history_size]
    try:
        with ctx.saga():
            sizes.append(ctx.history_size)
            ctx.compensate(unbook, "a")
            sizes.append(ctx.history_size)
            if fails:
                raise ValueError("no")
    except ValueError:
        pass
    sizes.append(ctx.history_size)
    ctx.discard_compensations()
    sizes.append(ctx.history_size)
    return sizes


@pytest.mark.parametrize("fails", [True, False])
def test_every_operation_takes_one_position_on_every_path(durable: DurableKit, fails: bool) -> None:
    execution = durable.run(counted, fails)
    assert execution.result() == [0, 0, 1, 2, 3]


@workflow("sagas.wrong")
def wrong(ctx: Context, how: str) -> str:
    try:
        if how == "arguments":
            ctx.compensate(unbook)  # type: ignore[call-arg]
        elif how == "workflow":
            ctx.compensate(nested, "inner")  # type: ignore[call-overload]
        else:
            ctx.compensate(unbook, object())  # type: ignore[arg-type]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("arguments", "TypeError: missing a required argument: 'what'"),
        ("workflow", "is a workflow, not a step"),
        ("value", "arguments of undo step 'trips.cancel'"),
    ],
)
def test_a_mistake_is_told_where_the_undo_step_is_registered(durable: DurableKit, how: str, said: str) -> None:
    assert said in durable.run(wrong, how).result()


def test_the_arguments_of_an_undo_step_are_those_of_its_registration(durable: DurableKit) -> None:
    assert durable.run(mutable).status == "failed"
    assert log == ["refuse it", "unbook first"]


@workflow("sagas.mutable")
def mutable(ctx: Context) -> None:
    what = {"name": "first"}
    ctx.compensate(named, what)
    what["name"] = "second"
    ctx.step(refuse, "it")


@step("sagas.named")
def named(what: dict[str, str]) -> None:
    note(f"unbook {what['name']}")

"""A change behind ctx.patched() reaches runs that get there first with it; runs past it go on as they began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, SignalTimeout, step, workflow
from django_durable.testing import DurableKit, assert_replays, export_history

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def note(word: str) -> str:
    ran.append(word)
    return word


@workflow("tests.patched")
def changing(ctx: Context) -> Any:
    return body(ctx)


def before(ctx: Context) -> list[str]:
    """The code as it was first deployed."""
    first = ctx.step(note, "first")
    old = ctx.step(note, "old")
    ctx.wait_for_signal("go")
    return [first, old]


def changed(ctx: Context) -> list[str]:
    """Both ways."""
    first = ctx.step(note, "first")
    second = ctx.step(note, "new") if ctx.patched("second") else ctx.step(note, "old")
    ctx.wait_for_signal("go")
    return [first, second]


def without_old_branch(ctx: Context) -> list[str]:
    """Once no run from before is left."""
    first = ctx.step(note, "first")
    ctx.patched("second")
    second = ctx.step(note, "new")
    ctx.wait_for_signal("go")
    return [first, second]


def without_call(ctx: Context) -> list[str]:
    """In the end."""
    first = ctx.step(note, "first")
    second = ctx.step(note, "new")
    ctx.wait_for_signal("go")
    return [first, second]


body: Callable[[Context], Any] = before


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Context], Any]], None]:
    """Let the worker have this code."""
    return lambda code: monkeypatch.setattr(f"{__name__}.body", code)


def finished(durable: DurableKit, execution: Execution[Any]) -> Any:
    Execution.objects.locate(execution.pk).signal("go")
    durable.run_until_idle()
    return Execution.objects.locate(execution.pk).result()


def kinds(execution: Execution[Any]) -> list[str]:
    return [entry["kind"] for entry in execution.history()]


def test_a_run_past_it_goes_the_old_way_and_takes_no_position(durable: DurableKit, deploy: Any) -> None:
    deploy(before)
    execution = durable.run(changing)
    deploy(changed)
    assert finished(durable, execution) == ["first", "old"]
    assert kinds(execution) == ["step", "step", "signal"]
    assert ran == ["first", "old"]


def test_a_new_run_goes_the_new_way_and_leaves_a_marker(durable: DurableKit, deploy: Any) -> None:
    deploy(changed)
    execution = durable.run(changing)
    assert finished(durable, execution) == ["first", "new"]
    assert kinds(execution) == ["step", "patch", "step", "signal"]
    assert execution.history()[1]["name"] == "second"


def test_a_run_that_gets_there_first_with_the_new_code_goes_the_new_way(durable: DurableKit, deploy: Any) -> None:
    def waiting_before(ctx: Context) -> list[str]:
        ctx.wait_for_signal("early")
        return before(ctx)

    def waiting_changed(ctx: Context) -> list[str]:
        ctx.wait_for_signal("early")
        return changed(ctx)

    deploy(waiting_before)
    execution = durable.run(changing)
    deploy(waiting_changed)
    execution.signal("early")
    durable.run_until_idle()
    assert finished(durable, execution) == ["first", "new"]
    assert kinds(execution) == ["signal", "step", "patch", "step", "signal"]


@pytest.mark.parametrize("later", [without_old_branch, without_call])
def test_old_branch_and_call_may_go(durable: DurableKit, deploy: Any, later: Any) -> None:
    deploy(changed)
    execution = durable.run(changing)
    deploy(later)
    assert finished(durable, execution) == ["first", "new"]
    assert ran == ["first", "new"]


def test_a_removed_call_leaves_other_operations_compared(durable: DurableKit, deploy: Any) -> None:
    deploy(changed)
    execution = durable.run(changing)
    deploy(lambda ctx: [ctx.step(note, "first"), ctx.wait_for_signal("go")])
    Execution.objects.locate(execution.pk).signal("go")
    durable.run_until_idle()
    blocked = Execution.objects.locate(execution.pk)
    assert blocked.status == "blocked"
    assert "position 2: the history has step" in blocked.error["message"]


def looping(ctx: Context) -> list[bool]:
    answers = []
    for _ in range(3):
        ctx.step(note, "round")
        answers.append(ctx.patched("loop"))
        ctx.wait_for_signal("go")
    return answers


def looping_before(ctx: Context) -> None:
    for _ in range(3):
        ctx.step(note, "round")
        ctx.wait_for_signal("go")


@pytest.mark.parametrize(("started_with", "answer"), [(looping_before, False), (looping, True)])
def test_the_first_answer_holds_for_every_round_of_a_loop(
    durable: DurableKit, deploy: Any, started_with: Any, answer: bool
) -> None:
    deploy(started_with)
    execution = durable.run(changing)
    deploy(looping)
    durable.on_wait("go", lambda waiting: waiting.signal("go"))
    assert finished(durable, execution) == [answer] * 3
    assert kinds(execution).count("patch") == int(answer)
    assert ran == ["round"] * 3


def test_a_loop_without_the_call_passes_its_marker(durable: DurableKit, deploy: Any) -> None:
    deploy(looping)
    execution = durable.run(changing)
    deploy(looping_before)
    durable.on_wait("go", lambda waiting: waiting.signal("go"))
    assert finished(durable, execution) is None
    assert ran == ["round"] * 3


@pytest.mark.parametrize("position", [0, 2])
def test_the_marker_is_there_before_what_it_decides(durable: DurableKit, deploy: Any, position: int) -> None:
    deploy(changed)
    crash = durable.crash_turn(at_position=position)
    execution = durable.run(changing)
    assert crash.happened
    assert finished(durable, execution) == ["first", "new"]
    assert kinds(execution) == ["step", "patch", "step", "signal"]


def test_code_that_is_rolled_back_after_the_marker_is_blocked_and_goes_on_with_the_new(
    durable: DurableKit, deploy: Any
) -> None:
    def old_wait(ctx: Context) -> str:
        ctx.step(note, "first")
        ctx.sleep(5)
        return "old"

    def new_wait(ctx: Context) -> str:
        ctx.step(note, "first")
        if ctx.patched("wait"):
            return str(ctx.wait_for_signal("go"))
        ctx.sleep(5)
        return "old"

    deploy(new_wait)
    execution = durable.run(changing)
    deploy(old_wait)
    execution.signal("go", "new")
    durable.run_until_idle()
    assert Execution.objects.locate(execution.pk).status == "blocked"
    deploy(new_wait)
    Execution.objects.locate(execution.pk).resume(actor="ann")
    durable.run_until_idle()
    assert Execution.objects.locate(execution.pk).output == "new"


def test_two_changes_are_told_apart_in_any_order(durable: DurableKit, deploy: Any) -> None:
    def one_then_two(ctx: Context) -> list[bool]:
        answers = [ctx.patched("one"), ctx.patched("two")]
        ctx.wait_for_signal("go")
        return answers

    def two_then_one(ctx: Context) -> list[bool]:
        answers = [ctx.patched("two"), ctx.patched("one")]
        ctx.wait_for_signal("go")
        return [*answers, ctx.patched("three")]

    deploy(one_then_two)
    execution = durable.run(changing)
    deploy(two_then_one)
    assert finished(durable, execution) == [True, True, True]


def test_a_call_that_moves_forward_keeps_its_answer(durable: DurableKit, deploy: Any) -> None:
    def moved(ctx: Context) -> list[str]:
        new = ctx.patched("second")
        first = ctx.step(note, "first")
        second = ctx.step(note, "new" if new else "old")
        ctx.wait_for_signal("go")
        return [first, second]

    deploy(changed)
    execution = durable.run(changing)
    deploy(moved)
    assert finished(durable, execution) == ["first", "new"]


def test_a_derived_value_behind_it_counts_as_a_record(durable: DurableKit, deploy: Any) -> None:
    def derived(ctx: Context) -> str:
        reference = str(ctx.uuid())
        ctx.wait_for_signal("go")
        return reference

    def patched_first(ctx: Context) -> str:
        if ctx.patched("late"):
            return "new"
        return derived(ctx)

    deploy(derived)
    execution = durable.run(changing)
    deploy(patched_first)
    assert len(finished(durable, execution)) == 36


def test_derived_values_are_the_same_once_the_call_is_gone(durable: DurableKit, deploy: Any) -> None:
    seen: list[str] = []

    def with_call(ctx: Context) -> None:
        ctx.patched("gone")
        seen.append(str(ctx.uuid()))
        ctx.wait_for_signal("go")

    def without(ctx: Context) -> None:
        seen.append(str(ctx.uuid()))
        ctx.wait_for_signal("go")

    deploy(with_call)
    execution = durable.run(changing)
    deploy(without)
    finished(durable, execution)
    assert len(set(seen)) == 1


@pytest.mark.parametrize("code", [changed, without_old_branch, without_call])
def test_every_prefix_of_a_history_replays_with_every_code_that_may_follow(
    durable: DurableKit, deploy: Any, code: Any
) -> None:
    deploy(changed)
    execution = durable.run(changing)
    finished(durable, execution)
    start, *entries = export_history(Execution.objects.locate(execution.pk))
    deploy(code)
    for length in range(len(entries) + 1):
        assert_replays(changing, [start, *entries[:length]])


def test_a_marker_at_the_very_end_may_stay_unread(durable: DurableKit, deploy: Any) -> None:
    def ending(ctx: Context) -> None:
        try:
            ctx.wait_for_signal("go", timeout=0)
        except SignalTimeout:
            ctx.patched("last")

    deploy(ending)
    execution = durable.run(changing)
    history = export_history(execution)
    assert [entry["kind"] for entry in history] == ["start", "signal", "patch"]

    def quiet(ctx: Context) -> None:
        try:
            ctx.wait_for_signal("go", timeout=0)
        except SignalTimeout:
            pass

    deploy(quiet)
    assert_replays(changing, history)


@pytest.mark.parametrize("wrong", ["", "x" * 256, 5, None, "a\x00b"])
def test_a_change_id_is_a_name(durable: DurableKit, deploy: Any, wrong: Any) -> None:
    deploy(lambda ctx: ctx.patched(wrong))
    execution = durable.run(changing)
    assert execution.status == "failed"
    assert "change id" in execution.error["message"]
    assert execution.history() == []


sizes: list[int] = []


@workflow("tests.patched_sizes")
def measured(ctx: Context) -> None:
    ctx.step(note, "first")
    ctx.patched("one")
    ctx.patched("two")
    sizes.append(ctx.history_size)
    ctx.wait_for_signal("go")


def test_a_marker_counts_the_same_at_every_replay(durable: DurableKit) -> None:
    sizes.clear()
    execution = durable.run(measured)
    finished(durable, execution)
    assert len(sizes) > 1
    assert set(sizes) == {3}

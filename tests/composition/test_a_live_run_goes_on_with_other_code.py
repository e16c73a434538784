"""A run keeps its version and knows its source; to go on with others is an operator's decision, refused without replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, InvalidTransition, UnknownWorkflow, step, workflow
from django_durable.authoring import registry
from django_durable.dispatch.definitions import definition_hash
from django_durable.engine.footprint import footprint
from django_durable.engine.transitions.adopt import adopt
from django_durable.engine.transitions.verbs import Attribution
from django_durable.models import DispatchHint, OperatorNote
from django_durable.operators.doctor import examine
from django_durable.testing import DurableKit
from tests.calling import durable as command
from tests.driving import USING, claim

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step("moved.effect")
def effect(word: str) -> str:
    ran.append(word)
    return word


@workflow("moved.flow", version="1")
def flow_1(ctx: Context) -> str:
    ctx.step(effect, "first")
    ctx.wait_for_signal("go")
    return ctx.version + ctx.step(effect, "old end")


@workflow("moved.flow", version="2")
def flow_2(ctx: Context) -> str:
    ctx.step(effect, "first")
    ctx.wait_for_signal("go")
    return ctx.version + ctx.step(effect, "new end")


@workflow("moved.flow", version="3")
def flow_3(ctx: Context) -> str:
    ctx.wait_for_signal("go")
    return "3"


@workflow("moved.pinned", pin=True)
def pinned(ctx: Context) -> str:
    return body(ctx)


def as_started(ctx: Context) -> str:
    ctx.step(effect, "first")
    ctx.wait_for_signal("go")
    return "end"


body: Callable[[Context], str] = as_started


def located(execution: Execution[Any]) -> Execution[Any]:
    return Execution.objects.locate(execution.pk)


def codes() -> set[str]:
    return {finding.code for finding in examine()}


def notes(execution: Execution[Any]) -> list[tuple[str, str, str]]:
    return list(OperatorNote.objects.filter(execution_id=execution.pk).values_list("verb", "actor", "reason"))


# -- another version -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [False, True])
def test_a_run_whose_history_replays_there_moves(durable: DurableKit, pause: bool) -> None:
    execution = durable.run(flow_1)
    if pause:
        execution.pause(actor="ann")
    execution.move_to_version("2", actor="ann", reason="a better end")
    assert (execution.version, execution.source_digest) == ("2", flow_2.source_digest)
    assert execution.status == ("paused" if pause else "waiting")
    assert notes(execution)[-1] == ("move", "ann", "a better end")
    if pause:
        execution.resume(actor="ann")
    execution.signal("go")
    durable.run_until_idle()
    assert located(execution).result() == "2new end"
    assert ran == ["first", "new end"]


def test_one_whose_history_does_not_replay_there_is_refused_by_position(durable: DurableKit) -> None:
    execution = durable.run(flow_1)
    with pytest.raises(InvalidTransition, match=r"position 0: the history has step 'moved\.effect'"):
        execution.move_to_version("3", actor="ann")
    assert located(execution).version == "1"
    assert notes(execution) == []
    execution.signal("go")
    durable.run_until_idle()
    assert located(execution).result() == "1old end"


def test_a_pending_one_is_published_for_workers_that_know_the_version(durable: DurableKit) -> None:
    execution = flow_1.using(run_after=3600).start()
    execution.move_to_version("2", actor="ann")
    hint = DispatchHint.objects.get()
    assert hint.definition == definition_hash("moved.flow", "2")
    assert (hint.revision, hint.due_at) == (2, execution.run_after)
    assert execution.wake_at == execution.run_after
    durable.run_until_idle()
    assert located(execution).version == "2"


def test_a_blocked_one_goes_on_at_once(durable: DurableKit) -> None:
    from django_durable.runtime.unknown_work import block_unknown

    execution = flow_1.start()
    registry.forget(flow_1)
    try:
        assert block_unknown(USING) == 1
        located(execution).move_to_version("2", actor="ann")
        durable.on_wait("go", lambda waiting: waiting.signal("go"))
        durable.run_until_idle()
        assert located(execution).result() == "2new end"
    finally:
        registry.add_workflow(flow_1)


def test_a_running_one_and_an_ended_one_are_refused(durable: DurableKit) -> None:
    execution = flow_1.start()
    (claimed,) = claim()
    with pytest.raises(InvalidTransition, match="is running; it cannot go on with other code; pause it first"):
        execution.move_to_version("2", actor="ann")
    execution.cancel()
    with pytest.raises(InvalidTransition, match="is cancelled"):
        execution.move_to_version("2", actor="ann")
    assert claimed.row["version"] == "1"


def test_an_unknown_version_and_an_empty_actor_are_refused(durable: DurableKit) -> None:
    execution = durable.run(flow_1)
    with pytest.raises(UnknownWorkflow, match="known versions: 1, 2, 3"):
        execution.move_to_version("9", actor="ann")
    with pytest.raises(ValueError, match="actor"):
        execution.move_to_version("2", actor="")


def test_the_current_run_of_a_chain_moves(durable: DurableKit) -> None:
    @workflow("moved.chain", version="1")
    def chain_1(ctx: Context, number: int) -> str:
        if number == 1:
            ctx.continue_as_new(2)
        ctx.wait_for_signal("go")
        return "1"

    @workflow("moved.chain", version="2")
    def chain_2(ctx: Context, number: int) -> str:
        ctx.wait_for_signal("go")
        return "2"

    execution = durable.run(chain_1, 1)
    execution.move_to_version("2", actor="ann")
    execution.signal("go")
    durable.run_until_idle()
    assert execution.result() == "2"
    assert execution.version == "1"


# -- a pinned source -------------------------------------------------------------------------------------------


def test_a_pinned_run_is_blocked_until_the_changed_source_is_accepted(
    durable: DurableKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = durable.run(pinned)
    monkeypatch.setitem(vars(pinned), "source_digest", "0" * 64)
    execution.signal("go")
    durable.run_until_idle()
    blocked = located(execution)
    assert (blocked.status, blocked.error["type"]) == ("blocked", "django_durable.errors.DefinitionChanged")
    assert "accept this one" in blocked.error["message"]
    assert codes() == {"blocked"}
    blocked.resume(actor="ann")  # looks again, and finds the same
    durable.run_until_idle()
    assert located(execution).status == "blocked"
    blocked.accept_code(actor="ann", reason="only a comment")
    assert notes(execution)[-1] == ("accept_code", "ann", "only a comment")
    durable.run_until_idle()
    assert located(execution).result() == "end"
    assert located(execution).source_digest == "0" * 64


def test_a_pinned_run_may_be_stopped_instead(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = durable.run(pinned)
    monkeypatch.setitem(vars(pinned), "source_digest", "0" * 64)
    execution.signal("go")
    durable.run_until_idle()
    assert located(execution).cancel(actor="ann")
    assert located(execution).status == "cancelled"


def test_a_source_that_does_not_replay_is_not_accepted(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = durable.run(pinned)
    monkeypatch.setitem(vars(pinned), "source_digest", "0" * 64)
    monkeypatch.setattr(f"{__name__}.body", lambda ctx: ctx.sleep(5))
    with pytest.raises(InvalidTransition, match="position 0"):
        execution.accept_code(actor="ann")
    assert notes(execution) == []


def test_there_is_nothing_to_accept_of_the_same_source(durable: DurableKit) -> None:
    execution = durable.run(pinned)
    with pytest.raises(InvalidTransition, match="nothing to accept"):
        execution.accept_code(actor="ann")


def test_a_changed_source_informs_and_blocks_nobody(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = durable.run(flow_1)
    assert codes() == set()
    assert command("show", str(execution.pk), "--json").data["source"] == "as at its start"
    monkeypatch.setitem(vars(flow_1), "source_digest", "0" * 64)
    assert codes() == {"changed-source"}
    assert command("doctor").code == 0  # information, and nothing wrong
    (finding,) = examine()
    assert (finding.severity, finding.executions) == ("info", (execution.pk,))
    assert command("show", str(execution.pk), "--json").data["source"] == "changed since its start"
    execution.signal("go")
    durable.run_until_idle()
    assert located(execution).result() == "1old end"
    assert codes() == set()


def test_the_commands_do_the_same(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = durable.run(flow_1)
    execution.pause(actor="ann")
    refused = command("resume", str(execution.pk), "--workflow-version", "3", "--actor", "ann")
    assert refused.code == 1
    assert "position 0" in refused.error
    both = command("resume", str(execution.pk), "--workflow-version", "2", "--accept-code")
    assert both.code == 2
    assert command("resume", str(execution.pk), "--workflow-version", "9").code == 3
    moved = command("resume", str(execution.pk), "--workflow-version", "2", "--actor", "ann", "--reason", "why not")
    assert (moved.code, moved.out) == (0, "pending\n")
    assert [verb for verb, _actor, _reason in notes(execution)] == ["pause", "move", "resume"]
    other = durable.run(pinned)
    monkeypatch.setitem(vars(pinned), "source_digest", "0" * 64)
    other.signal("go")
    durable.run_until_idle()
    accepted = command("resume", str(other.pk), "--accept-code")
    assert (accepted.code, accepted.out) == (0, "pending\n")
    durable.run_until_idle()
    assert located(other).result() == "end"


def test_a_decision_about_other_code_than_it_has_by_now_is_refused(durable: DurableKit) -> None:
    execution = durable.run(flow_1)
    mine = located(execution)
    was = (mine.version, mine.source_digest)
    execution.move_to_version("2", actor="ann")
    late = {"version": "1", "source_digest": flow_1.source_digest, "was": was, "seen": footprint(USING, mine.pk)}
    with pytest.raises(InvalidTransition, match="version '2'"):
        adopt(USING, mine.pk, **late, verb="accept_code", by=Attribution("bob", ""))
    assert located(execution).version == "2"

"""A fork copies what is settled before the cut, shares nothing with its source, and goes on by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import models

from django_durable import Context, Execution, InvalidTransition, StepFailed, UnknownWorkflow, step, workflow
from django_durable.authoring import registry
from django_durable.clock import read_now
from django_durable.models import Checkpoint, Message, OperatorAction, OperatorNote
from django_durable.testing import DurableKit, assert_replays, export_history
from tests.calling import durable as command
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

ran: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step("forked.effect")
def effect(word: Any) -> Any:
    ran.append(word)
    return word


def original(ctx: Context) -> list[Any]:
    first = ctx.step(effect, "first")
    reference = ctx.uuid()
    chance = ctx.random()
    second = ctx.step(effect, str(reference))
    word = ctx.wait_for_signal("go")
    third = ctx.step(effect, "third")
    later = ctx.uuid()
    return [first, reference, chance, second, word, third, later]


body: Callable[[Context], Any] = original


@workflow("forked.flow", budget={"rounds": 2})
def flow(ctx: Context) -> Any:
    return body(ctx)


@workflow("forked.flow", version="2")
def flow_2(ctx: Context) -> Any:
    ctx.step(effect, "first")
    ctx.uuid()
    return "version 2"


@workflow("forked.flow", version="3")
def flow_3(ctx: Context) -> Any:
    ctx.sleep(5)


@pytest.fixture
def source(durable: DurableKit) -> Execution[Any]:
    durable.on_wait("go", lambda execution: execution.signal("go", "yes"))
    return durable.run(flow, key="k", tags={"order": 5}, correlation_id="c", priority=1, timeout=3600)


def fork(execution: Execution[Any], position: int, **more: Any) -> Execution[Any]:
    return execution.fork(from_position=position, actor="ann", **more)


def test_the_copy_replays_and_the_rest_runs_again(durable: DurableKit, source: Execution[Any]) -> None:
    before = source.result()
    ran.clear()
    forked = fork(source, 5)
    assert forked.status == "pending"
    assert [entry["kind"] for entry in forked.history()] == ["step", "derived", "derived", "step", "signal"]
    durable.run_until_idle()
    after = Execution.objects.locate(forked.pk).result()
    assert ran == ["third"]
    assert after[:6] == before[:6]
    assert after[6] != before[6]  # a seed of its own


def test_what_it_inherits_and_what_it_does_not(durable: DurableKit, source: Execution[Any]) -> None:
    forked = fork(source, 4)
    for name in ("tenant", "workflow", "version", "queue", "priority", "tags", "correlation_id", "budget"):
        assert getattr(forked, name) == getattr(source, name), name
    assert forked.input == source.input
    assert (forked.key, forked.run, forked.chain_id, forked.root_id) == (None, 1, forked.pk, forked.pk)
    assert (forked.forked_from, forked.fork_position, forked.parent_id) == (source.pk, 4, None)
    assert (forked.started_at, forked.finished_at, forked.output, forked.error) == (None, None, None, None)
    assert forked.deadline is not None and forked.deadline > read_now(USING)
    assert flow.get("k").pk == source.pk
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).status == "completed"
    # The message that the source took is not shared: the fork waited for its own.
    assert Message.objects.filter(execution_id=source.pk).count() == 1
    assert Message.objects.filter(execution_id=forked.pk).count() == 1


def test_nothing_of_the_source_changes(source: Execution[Any]) -> None:
    before = list(models.QuerySet(Execution).filter(pk=source.pk).values())
    history = source.history()
    fork(source, 2)
    assert list(models.QuerySet(Execution).filter(pk=source.pk).values()) == before
    assert source.history() == history


def test_both_say_who_forked_and_what_the_fork_may_do_again(source: Execution[Any]) -> None:
    forked = fork(source, 3, reason="wrong price")
    of_source, of_fork = (OperatorNote.objects.get(execution_id=pk) for pk in (source.pk, forked.pk))
    done = "completed at or after it: 3 forked.effect, 5 forked.effect"
    assert (of_source.verb, of_source.actor) == (of_fork.verb, of_fork.actor) == ("fork", "ann")
    assert of_source.reason == f"wrong price\nforked into {forked.pk} from position 3; {done}"
    assert of_fork.reason == f"wrong price\nforked from {source.pk} at position 3; there {done}"
    assert OperatorAction.objects.filter(verb="fork").count() == 2


def test_a_failed_run_goes_on_with_new_code(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(ctx: Context) -> Any:
        ctx.step(effect, "paid")
        return ctx.step(effect, object())

    def mended(ctx: Context) -> Any:
        ctx.step(effect, "paid")
        return ctx.step(effect, "mended")

    monkeypatch.setattr(f"{__name__}.body", broken)
    failed = durable.run(flow)
    assert failed.status == "failed"
    monkeypatch.setattr(f"{__name__}.body", mended)
    forked = fork(failed, 1)
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).result() == "mended"
    assert ran == ["paid", "mended"]
    assert Execution.objects.locate(failed.pk).status == "failed"


def test_a_recorded_failure_is_copied_like_a_result(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    def handled(ctx: Context) -> Any:
        try:
            ctx.step(effect, "first")
        except StepFailed as error:
            ctx.step(effect, error.message)
        return "handled"

    monkeypatch.setattr(f"{__name__}.body", handled)
    durable.fail_step(effect, error=ValueError("refused"))
    forked = fork(durable.run(flow), 1)
    ran.clear()
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).result() == "handled"
    assert ran == ["refused"]


def test_charges_before_the_cut_are_copied(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.body", lambda ctx: [ctx.spend("rounds", 1), ctx.spend("rounds", 1)])
    forked = fork(durable.run(flow), 1)
    assert forked.budget_left() == {"rounds": 1}
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).result() == [1, 0]


def test_an_unsettled_operation_before_the_cut_is_refused_by_its_position(durable: DurableKit) -> None:
    waiting = durable.run(flow)
    assert waiting.status == "waiting"
    with pytest.raises(InvalidTransition, match="at position 4 its signal 'go' is pending; fork from position 4"):
        fork(waiting, 5)
    waiting.cancel()
    with pytest.raises(InvalidTransition, match="at position 4 its signal 'go' is cancelled"):
        fork(waiting, 5)
    with pytest.raises(InvalidTransition, match="its history has 5 positions"):
        fork(waiting, 6)
    assert Execution.objects.count() == 1
    assert not OperatorNote.objects.filter(verb="fork").exists()
    assert fork(waiting, 4).fork_position == 4


def test_a_run_under_way_may_be_forked(durable: DurableKit) -> None:
    waiting = durable.run(flow)
    forked = fork(waiting, 0)
    durable.run_until_idle()
    assert [Execution.objects.locate(row.pk).status for row in (waiting, forked)] == ["waiting", "waiting"]
    waiting.signal("go", "for the source only")
    durable.run_until_idle()
    statuses = [Execution.objects.locate(row.pk).status for row in (waiting, forked)]
    assert statuses == ["completed", "waiting"]


def test_a_fork_of_a_fork_keeps_derived_values(durable: DurableKit, source: Execution[Any]) -> None:
    forked = fork(fork(source, 5), 4)
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).result()[:4] == source.result()[:4]


def test_the_seed_of_the_source_is_not_shown(source: Execution[Any]) -> None:
    forked = fork(source, 5)
    shown = str(forked.history())
    assert source.seed not in shown
    assert forked.seed != source.seed


def test_it_goes_to_another_version_only_where_the_copy_replays(durable: DurableKit, source: Execution[Any]) -> None:
    forked = fork(source, 2, version="2")
    assert forked.version == "2"
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).result() == "version 2"
    with pytest.raises(InvalidTransition, match="position 0: the history has step"):
        fork(source, 2, version="3")
    with pytest.raises(InvalidTransition, match="position 3: the history has step"):
        fork(source, 4, version="2")
    with pytest.raises(UnknownWorkflow):
        fork(source, 2, version="9")
    assert fork(source, 0, version="3").version == "3"


def test_it_stays_in_its_tenant(durable: DurableKit) -> None:
    execution = durable.run(flow, tenant="acme")
    assert fork(execution, 1).tenant == "acme"


def test_code_that_is_not_here_does_not_stand_in_the_way(durable: DurableKit, source: Execution[Any]) -> None:
    registry.forget(flow)
    try:
        forked = fork(source, 5)
        assert forked.source_digest == source.source_digest
    finally:
        registry.add_workflow(flow)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"from_position": -1, "actor": "ann"}, ValueError),
        ({"from_position": True, "actor": "ann"}, TypeError),
        ({"from_position": "1", "actor": "ann"}, TypeError),
        ({"from_position": 1, "actor": " "}, ValueError),
        ({"from_position": 1, "actor": None}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(source: Execution[Any], more: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        source.fork(**more)


def test_a_fork_of_a_continued_run_is_of_that_run(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    def continuing(ctx: Context) -> Any:
        if ctx.run == 1:
            ctx.step(effect, "one")
            ctx.continue_as_new()
        return ctx.step(effect, "two")

    monkeypatch.setattr(f"{__name__}.body", continuing)
    first = durable.run(flow)
    forked = fork(first, 1)
    durable.run_until_idle()
    assert forked.run == 1
    assert Execution.objects.locate(forked.pk).status == "continued"
    assert Execution.objects.locate(forked.pk).result() == "two"
    assert ran == ["one", "two", "two"]


def test_the_command_prints_the_id_and_lists_what_may_happen_again(source: Execution[Any]) -> None:
    called = command("fork", str(source.pk), "--from-position", "5", "--actor", "ann", "--reason", "why not")
    assert called.code == 0
    assert Execution.objects.locate(called.out.strip()).forked_from == source.pk
    assert f"completed in {source.pk} at or after the cut: 5 forked.effect" in called.err
    called = command("fork", str(source.pk), "--from-position", "5", "--json")
    found = called.data
    assert (found["forked_from"], found["from_position"]) == (str(source.pk), 5)
    assert found["effects_after"] == [{"position": 5, "name": "forked.effect"}]
    assert command("fork", str(source.pk), "--from-position", "99").code == 1
    assert command("fork", str(source.pk), "--from-position", "x").code == 2
    assert command("fork", str(UUID(int=5)), "--from-position", "1").code == 3


def test_the_history_of_a_fork_replays(durable: DurableKit, source: Execution[Any]) -> None:
    forked = fork(source, 5)
    durable.run_until_idle()
    start, *entries = export_history(Execution.objects.locate(forked.pk))
    for length in range(len(entries) + 1):
        assert_replays(flow, [start, *entries[:length]])
    assert Checkpoint.objects.filter(execution_id=forked.pk, kind="derived").count() == 2

"""A successor inherits what its predecessors would still undo, under their keys; a fork undoes what it did itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, current_step, step, workflow
from django_durable.authoring import registry
from django_durable.models import Checkpoint
from django_durable.testing import DurableKit, assert_replays, export_history

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

undone: list[tuple[str, str]] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    undone.clear()


@step("chained.book")
def book(what: str) -> str:
    return what


@step("chained.give_back")
def give_back(what: str) -> None:
    undone.append((what, current_step().idempotency_key))


@step("chained.fragile")
def fragile() -> None:
    raise ValueError("broken")


@workflow("chained.trip")
def trip(ctx: Context, leg: int = 1) -> Any:
    return body(ctx, leg)


def legs(ctx: Context, leg: int) -> Any:
    ctx.compensate(give_back, f"leg {leg}")
    ctx.step(book, f"leg {leg}")
    if leg < 3:
        ctx.continue_as_new(leg + 1)
    ctx.wait_for_signal("go")
    ctx.step(fragile)


body: Callable[[Context, int], Any] = legs


def chain(execution: Execution[Any]) -> list[Execution[Any]]:
    return list(Execution.objects.filter(chain_id=execution.chain_id).order_by("run"))


def test_a_failure_undoes_every_run_of_the_chain_last_first(durable: DurableKit) -> None:
    first = durable.run(trip)
    first.signal("go")
    durable.run_until_idle()
    one, two, three = chain(first)
    assert [row.status for row in (one, two, three)] == ["continued", "continued", "failed"]
    assert undone == [
        ("leg 3", f"{three.pk}:undo.0"),
        ("leg 2", f"{two.pk}:undo.0"),
        ("leg 1", f"{one.pk}:undo.0"),
    ]
    inherited = three.checkpoints.filter(position__lt=0, kind="compensate").order_by("position")
    assert list(inherited.values_list("position", flat=True)) == [-2, -1]


@pytest.mark.parametrize("compensate", [True, False])
def test_a_cancel_of_an_old_run_undoes_them_too(durable: DurableKit, compensate: bool) -> None:
    first = durable.run(trip)
    assert first.cancel(actor="ann", compensate=compensate)
    durable.run_until_idle()
    assert chain(first)[-1].status == "cancelled"
    assert [what for what, _key in undone] == (["leg 3", "leg 2", "leg 1"] if compensate else [])


def test_what_was_discarded_or_belongs_to_a_finished_block_stays_behind(
    durable: DurableKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def discarding(ctx: Context, leg: int) -> Any:
        if leg == 1:
            ctx.compensate(give_back, "dropped")
            ctx.discard_compensations()
            with ctx.saga():
                ctx.compensate(give_back, "of the block")
            ctx.compensate(give_back, "kept")
            ctx.continue_as_new(2)
        if leg == 2:
            ctx.step(book, "nothing to undo")
            ctx.continue_as_new(3)
        ctx.step(fragile)

    monkeypatch.setattr(f"{__name__}.body", discarding)
    durable.run(trip)
    assert [what for what, _key in undone] == ["kept"]


def test_a_successor_may_discard_what_it_inherited(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    def discarding(ctx: Context, leg: int) -> Any:
        if leg == 1:
            ctx.compensate(give_back, "dropped later")
            ctx.continue_as_new(2)
        with ctx.saga():
            ctx.discard_compensations()  # of the block alone
        ctx.discard_compensations()
        ctx.step(fragile)

    monkeypatch.setattr(f"{__name__}.body", discarding)
    first = durable.run(trip)
    assert chain(first)[-1].status == "failed"
    assert undone == []


def test_a_normal_end_undoes_nothing(durable: DurableKit) -> None:
    first = durable.run(trip)
    first.signal("go")
    with durable.stub_step(fragile, returns=None):
        durable.run_until_idle()
    assert undone == []


def test_an_undo_step_that_is_declared_nowhere_blocks_and_waits(durable: DurableKit) -> None:
    first = durable.run(trip)
    registry._steps.pop("chained.give_back")
    try:
        first.cancel(actor="ann")
        durable.run_until_idle()
        current = chain(first)[-1]
        assert current.status == "blocked"
        assert "undo step 'chained.give_back', which is not declared here" in current.error["message"]
    finally:
        registry.add_step(give_back)
    current.resume(actor="ann")
    durable.run_until_idle()
    assert chain(first)[-1].status == "cancelled"
    assert len(undone) == 3


def test_histories_with_inherited_undo_steps_replay(durable: DurableKit) -> None:
    last = chain(durable.run(trip))[-1]
    start, *entries = export_history(last)
    assert [entry["position"] for entry in entries] == [-2, -1, 0, 1, 2]
    for length in range(2, len(entries) + 1):
        assert_replays(trip, [start, *entries[:length]])


# -- forks -----------------------------------------------------------------------------------------------------


def two_bookings(ctx: Context, leg: int) -> Any:
    ctx.compensate(give_back, "flight")
    ctx.step(book, "flight")
    ctx.compensate(give_back, "hotel")
    ctx.step(book, "hotel")
    ctx.wait_for_signal("go")


@pytest.mark.parametrize(("cut", "expected"), [(0, ["hotel", "flight"]), (2, ["hotel"]), (4, [])])
def test_a_fork_undoes_only_what_was_registered_behind_its_cut(
    durable: DurableKit, monkeypatch: pytest.MonkeyPatch, cut: int, expected: list[str]
) -> None:
    monkeypatch.setattr(f"{__name__}.body", two_bookings)
    source = durable.run(trip)
    forked = source.fork(from_position=cut, actor="ann")
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).cancel(actor="ann")
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).status == "cancelled"
    assert undone == [(what, f"{forked.pk}:undo.{0 if what == 'flight' else 2}") for what in expected]
    assert Execution.objects.locate(source.pk).status == "waiting"


@pytest.mark.parametrize(("cut", "expected"), [(2, ["hotel"]), (4, [])])
def test_a_saga_block_of_a_fork_undoes_only_that_too(
    durable: DurableKit, monkeypatch: pytest.MonkeyPatch, cut: int, expected: list[str]
) -> None:
    def in_a_block(ctx: Context, leg: int) -> Any:
        with ctx.saga():
            two_bookings(ctx, leg)
            ctx.step(fragile)

    monkeypatch.setattr(f"{__name__}.body", in_a_block)
    source = durable.run(trip)
    forked = source.fork(from_position=cut, actor="ann")
    durable.run_until_idle()
    forked.signal("go")
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).status == "failed"
    assert [what for what, _key in undone] == expected
    assert not Checkpoint.objects.filter(execution_id=forked.pk, status="pending").exists()


def test_a_fork_of_a_successor_inherits_no_undo_step(durable: DurableKit) -> None:
    last = chain(durable.run(trip))[-1]
    forked = last.fork(from_position=1, actor="ann")
    durable.run_until_idle()
    Execution.objects.locate(forked.pk).cancel(actor="ann")
    durable.run_until_idle()
    assert Execution.objects.locate(forked.pk).status == "cancelled"
    assert undone == []

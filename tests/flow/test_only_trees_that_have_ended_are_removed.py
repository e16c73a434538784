"""Retention removes whole trees that ended long enough ago, and nothing that anybody may still need."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings

from django_durable import Context, Execution, step, workflow
from django_durable.clock import read_now, shift
from django_durable.engine.retention import Terms
from django_durable.models import (
    ApprovalRequest,
    Checkpoint,
    DeadLetter,
    EventWait,
    Join,
    Message,
    OperatorAction,
    OperatorNote,
    Outbox,
    PrunedExecution,
)
from django_durable.models.execution import TERMINAL
from django_durable.operators.prune import Pruned, prune, prune_place
from django_durable.runtime.retention import _positions, prune_ended
from django_durable.testing import DurableKit
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]
DAY = timedelta(days=1)
TABLES = (Checkpoint, Message, EventWait, ApprovalRequest, Join, DeadLetter, OperatorNote, PrunedExecution)


@step
def work(number: int) -> int:
    return number


@workflow("kept.simple")
def simple(ctx: Context, number: int = 0) -> int:
    return ctx.step(work, number)


@workflow("kept.other")
def other(ctx: Context) -> None: ...


@workflow("kept.parent")
def parent(ctx: Context) -> Any:
    ctx.child(simple, 1)
    return ctx.map(simple, [1, 2])


@workflow("kept.leaves")
def leaves(ctx: Context) -> None:
    ctx.submit(lasting.using(parent_close="abandon"))


@workflow("kept.lasting")
def lasting(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


@workflow("kept.fails")
def fails(ctx: Context) -> None:
    raise ValueError


@workflow("kept.chain")
def chain(ctx: Context, number: int = 1) -> int:
    ctx.step(work, number)
    if number < 4:
        ctx.continue_as_new(number + 1)
    return ctx.wait_for_signal("end", timeout=DAY * 3000) or number


@pytest.fixture(autouse=True)
def from_the_beginning() -> None:
    _positions.clear()


def terms(**options: Any) -> Terms:
    return Terms(periods={}, **{"older_than": timedelta(), **options})


def run(**options: Any) -> Pruned:
    return prune_place(USING, terms(**options))


def left() -> set[Any]:
    return set(Execution.objects.using(USING).values_list("pk", flat=True))


def rows() -> int:
    return sum(model._base_manager.using(USING).count() for model in TABLES)


def test_an_ended_tree_goes_with_everything_that_belongs_to_it(durable: DurableKit) -> None:
    parent.start()
    simple.start().signal("unread")
    durable.run_until_idle()
    pruned = run()
    assert (pruned.trees, pruned.rows["executions"]) == (2, 5)
    assert (left(), rows()) == (set(), 0)


def test_what_has_not_ended_keeps_its_whole_tree(durable: DurableKit) -> None:
    leaves.start()
    durable.run_until_idle()
    before = left()
    pruned = run()
    assert (pruned.trees, dict(pruned.kept)) == (0, {"unfinished_tree": 1})
    assert left() == before
    Execution.objects.using(USING).get(workflow="kept.lasting").signal("go")
    durable.run_until_idle()
    assert run().rows["executions"] == 2


def test_an_open_dead_letter_stays_unless_a_person_says_otherwise(durable: DurableKit) -> None:
    fails.start()
    durable.run_until_idle()
    assert dict(run().kept) == {"open_dead_letter": 1}
    assert run(open_letters=True).trees == 1
    assert (left(), rows()) == (set(), 0)


def test_an_intent_that_is_under_way_keeps_its_tree(durable: DurableKit) -> None:
    execution = simple.start()
    durable.run_until_idle()
    now = read_now(USING)
    intent = Outbox.objects.using(USING).create(
        execution_id=execution.pk,
        revision=9,
        epoch=0,
        queue="q",
        priority=0,
        definition="",
        due_at=now,
        created_at=now,
    )
    assert dict(run().kept) == {"undelivered_intent": 1}
    intent.delete(using=USING)
    assert run().trees == 1


def test_the_first_run_of_a_chain_stays_with_the_last_so_that_a_key_keeps_its_input(durable: DurableKit) -> None:
    first = chain.using(key="k").start()
    durable.run_until_idle()
    assert run().trees == 2  # the runs between
    assert chain.using(key="k").start().run == 4
    assert first.pk in left()
    chain.signal("k", "end", 7)
    durable.run_until_idle()
    assert first.result() == 7
    assert run().rows["executions"] == 2
    assert left() == set()
    assert chain.using(key="k").start().is_new


def test_the_last_run_waits_for_those_between(durable: DurableKit) -> None:
    chain.using(key="k").start()
    durable.run_until_idle()
    chain.signal("k", "end", 7)
    durable.run_until_idle()
    assert dict(run(statuses=("completed",)).kept) == {"chain": 1}
    assert run().trees + run().trees == 3
    assert left() == set()


def test_a_key_holds_until_its_run_is_removed(durable: DurableKit) -> None:
    execution = simple.using(key="k").start(1)
    durable.run_until_idle()
    assert simple.using(key="k").start(1) == execution
    run()
    again = simple.using(key="k").start(2)
    assert again.is_new
    assert again.run == 1


@pytest.mark.parametrize(
    ("periods", "removed"),
    [
        ({}, []),
        ({"*": DAY * 30}, ["kept.other", "kept.simple"]),
        ({"*": DAY * 50}, []),
        ({"completed": DAY * 30, "kept.simple": None}, ["kept.other"]),
        ({"kept.*": DAY * 30, "kept.other": DAY * 50}, ["kept.simple"]),
        ({"kept.*": DAY * 50, "kept.oth*": DAY * 30}, ["kept.other"]),
        ({"failed": DAY}, []),
    ],
)
def test_the_setting_gives_each_its_period(durable: DurableKit, periods: dict[str, Any], removed: list[str]) -> None:
    simple.start()
    other.start()
    durable.run_until_idle()
    durable.advance(DAY * 40)
    before = {execution.pk: execution.workflow for execution in Execution.objects.using(USING).all()}
    with override_settings(DURABLE={"SPINE": USING, "RETENTION": periods}):
        assert prune_ended(USING) == len(removed)
    assert sorted(before[pk] for pk in before.keys() - left()) == removed


def test_a_tree_is_as_old_as_its_last_end(durable: DurableKit) -> None:
    leaves.start()
    durable.run_until_idle()
    durable.advance(DAY * 40)
    Execution.objects.using(USING).get(workflow="kept.lasting").signal("go")
    durable.run_until_idle()
    assert dict(run(older_than=DAY * 30).kept) == {"younger_tree": 1}
    durable.advance(DAY * 31)
    assert run(older_than=DAY * 30).trees == 1


def test_a_long_history_goes_in_pieces_of_its_own(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    from django_durable.engine.transitions import prune as module

    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr(module, "MARKS", 2)
    executions = [simple.start() for _ in range(3)]
    durable.run_until_idle()
    for number in range(11):
        Checkpoint.objects.using(USING).create(
            execution_id=executions[0].pk, position=10, item=number, kind="step", name="", status="completed"
        )
    pruned = run()
    assert (pruned.trees, pruned.rows["checkpoints"]) == (3, 14)
    assert (left(), rows()) == (set(), 0)


def test_what_a_prune_that_died_has_left_goes_first(durable: DurableKit) -> None:
    gone = uuid4()
    Checkpoint.objects.using(USING).create(execution_id=gone, position=0, kind="step", name="", status="completed")
    PrunedExecution.objects.using(USING).create(execution_id=gone, pruned_at=read_now(USING))
    prune_ended(USING)
    assert rows() == 0


def test_a_person_is_noted_once_a_run_and_a_dry_run_changes_nothing(durable: DurableKit) -> None:
    for number in range(5):
        simple.start(number)
    durable.run_until_idle()
    before = (left(), rows())
    answers = prune(actor=None, terms=terms(), dry_run=True)
    assert (left(), rows()) == before
    assert not OperatorAction.objects.using(USING).exists()
    told = answers.found[0][1]
    assert (told.trees, told.rows["executions"], told.rows["checkpoints"]) == (5, 5, 5)
    assert told.bytes is not None
    assert told.bytes > 5 * len('{"number":0}')
    assert sum(pruned.trees for _place, pruned in prune(actor="ann", terms=terms(), limit=3).found) == 3
    assert len(left()) == 2
    assert [(a.verb, a.actor) for a in OperatorAction.objects.using(USING).all()] == [("prune", "ann")]
    with pytest.raises(ValueError, match="actor"):
        prune(actor="", terms=terms())


def test_filters_choose_among_roots(durable: DurableKit) -> None:
    simple.using(tenant="ann").start()
    simple.start()
    other.start()
    cancelled = lasting.start()
    durable.run_until_idle()
    cancelled.cancel()
    assert run(workflow="kept.simple", tenant="ann").trees == 1
    assert run(statuses=("cancelled",)).trees == 1
    assert run(workflow="kept.o*").trees == 1
    assert {e.workflow for e in Execution.objects.using(USING).all()} == {"kept.simple"}


def test_what_must_stay_hides_nothing_behind_it(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    from django_durable.engine import retention
    from django_durable.runtime import retention as sweep

    monkeypatch.setattr(retention, "PAGE", 2)
    monkeypatch.setattr(sweep, "SECONDS", 0)
    for _number in range(5):
        fails.start()
    durable.run_until_idle()
    shift(timedelta(seconds=1))
    simple.start()
    durable.run_until_idle()
    durable.advance(DAY)
    with override_settings(DURABLE={"SPINE": USING, "RETENTION": {"*": 60}}):
        assert [prune_ended(USING) for _pass in range(3)] == [0, 0, 1]


def test_every_status_of_an_end_can_be_removed() -> None:
    from django_durable.engine.transitions import SOURCES

    assert SOURCES["prune"] == TERMINAL

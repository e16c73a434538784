"""Publisher and waiter share no lock: whichever is later sees the other, also where a transaction commits late."""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any

import pytest

from django_durable import Context, Execution, complete_callback, workflow
from django_durable.engine import events as engine
from django_durable.engine.claimed import Claimed
from django_durable.engine.events import Topic
from django_durable.engine.journal import row_for
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.wait import Terms, Waited, wait_for_messages
from django_durable.events import publish
from django_durable.models import Checkpoint, DispatchHint, EventRow, EventTaken, EventWait, Message, OperatorNote
from django_durable.payloads import decode
from django_durable.runtime.event_sweeps import tell_of_events
from tests.crash.racer import Racer
from tests.db.racing import Transaction, claim_one, racers
from tests.driving import USING, drain
from tests.services.project import Project


@workflow("composition.racing_listener")
def listener(ctx: Context, number: int = 1) -> list[Any]:
    return [ctx.wait_for_event("sold", {"order": 5})["n"] for _ in range(number)]


@workflow("composition.racing_approval")
def approval(ctx: Context) -> str:
    return ctx.wait_for_approval("legal").actor


@workflow("composition.racing_callback")
def callback(ctx: Context) -> Any:
    return ctx.create_callback().wait()


def sold(n: int) -> int:
    return publish("sold", {"order": 5, "n": n})


def wait_for_it(claimed: Claimed, *, register: bool = True) -> Waited:
    """What ``ctx.wait_for_event`` does at the first position."""
    topic = Topic.of("sold", {"order": 5})
    if register:
        topic.register(claimed, 0)

    def pages(changes: Any) -> Pages:
        more = {name: item for name, item in changes.items() if name != "status"}
        return Pages(rows=(row_for(claimed, 0, "event", "sold", changes["status"], **more),))

    return wait_for_messages(
        claimed, pages, position=0, channels=[], until=None, timed_out_error="", terms=Terms(sources=[topic])
    )


def output(execution: Execution[Any]) -> Any:
    execution.refresh_from_db()
    return execution.output


def test_an_event_between_registration_and_look_is_seen_by_the_look(project: Project) -> None:
    execution = listener.start()
    with racers() as (publisher, turn):
        held = turn.run(claim_one)
        turn.run(lambda: Topic.of("sold", {"order": 5}).register(held, 0))
        publisher.run(sold, 1)
        waited = turn.run(wait_for_it, held, register=False)
        assert waited.letter is not None
        assert decode(waited.letter.payload) == {"order": 5, "n": 1}
    execution.refresh_from_db()
    assert execution.status == "running"
    assert EventRow.objects.get().told_up_to is None
    assert (EventTaken.objects.count(), EventWait.objects.count()) == (1, 0)


def test_a_publisher_that_dies_after_its_commit_is_finished_by_the_sweep(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = listener.start()
    assert drain() == 1
    with monkeypatch.context() as patch:
        patch.setattr("django_durable.events.tell_waiters", lambda *args: 0)
        sold(1)
    assert drain() == 0
    assert tell_of_events(USING) == 1
    assert drain() == 1
    assert output(execution) == [1]
    assert tell_of_events(USING) == 0


def test_publisher_and_sweep_at_once_wake_it_once(project: Project) -> None:
    execution = listener.start()
    assert drain() == 1
    event = sold(1)
    EventRow.objects.update(told_up_to=0)
    with racers(3) as sides:
        told = [side.begin(engine.tell_waiters, USING, event) for side in sides]
        assert sum(one.result(60) for one in told) == 0, "the publisher had woken it"
    assert DispatchHint.objects.count() == 1
    assert drain() == 1
    assert output(execution) == [1]


def test_of_two_who_decide_at_once_one_wins(project: Project) -> None:
    execution = approval.start()
    assert drain() == 1
    with racers(3) as sides:
        decided = [
            side.begin(Execution.objects.get(pk=execution.pk).decide, "legal", approved=True, actor=str(number))
            for number, side in enumerate(sides)
        ]
        won = [one.result(60) for one in decided]
    assert sorted(won) == [False, False, True]
    assert drain() == 1
    assert output(execution) == str(won.index(True))
    assert OperatorNote.objects.count() == Message.objects.count() == 1


def test_of_two_who_complete_a_callback_at_once_one_wins(project: Project) -> None:
    execution = callback.start()
    assert drain() == 1
    token = decode(Checkpoint.objects.get(kind="callback").encoded_output or "null")
    with racers(3) as sides:
        decided = [side.begin(complete_callback, token, number) for number, side in enumerate(sides)]
        won = [one.result(60) for one in decided]
    assert sorted(won) == [False, False, True]
    assert drain() == 1
    assert output(execution) == won.index(True)


if os.environ.get("TEST_DB") == "postgres":

    def test_an_event_that_commits_late_wakes_who_suspended_meanwhile(project: Project) -> None:
        execution = listener.start()
        with racers() as (publisher, turn):
            publishing = Transaction(publisher)
            publisher.run(sold, 1)
            assert turn.run(drain) == 1
            execution.refresh_from_db()
            assert execution.status == "waiting"
            publishing.commit()
            assert turn.run(drain) == 1
        assert output(execution) == [1]

    def test_an_event_that_is_rolled_back_wakes_nobody(project: Project) -> None:
        execution = listener.start()
        with racers() as (publisher, turn):
            publishing = Transaction(publisher)
            publisher.run(sold, 1)
            assert turn.run(drain) == 1
            publishing.roll_back()
            assert turn.run(drain) == 0
        execution.refresh_from_db()
        assert execution.status == "waiting"
        assert not EventRow.objects.exists()

    def test_an_older_event_that_commits_after_a_newer_one_was_taken_is_taken_next(project: Project) -> None:
        execution = listener.start(2)
        with racers() as (publisher, other):
            publishing = Transaction(publisher)
            first = publisher.run(sold, 1)
            second = other.run(sold, 2)
            assert first < second
            assert drain() == 1
            publishing.commit()
            assert drain() == 1
        assert output(execution) == [2, 1]

    def test_the_search_waits_for_a_suspension_that_is_under_way(project: Project) -> None:
        execution = listener.start()
        with racers() as (publisher, turn):
            held = turn.run(claim_one)
            turn.run(lambda: Topic.of("sold", {"order": 5}).register(held, 0))
            suspending = Transaction(turn)
            assert turn.run(wait_for_it, held, register=False).suspended
            publishing: Future[int] = publisher.begin(sold, 1)
            publisher.wait_for_lock(publishing)
            suspending.commit()
            publishing.result(60)
            execution.refresh_from_db()
            assert execution.status == "pending"
            assert drain() == 1
        assert output(execution) == [1]

    def test_an_open_publication_holds_up_neither_turns_nor_other_publishers(project: Project) -> None:
        listener.start()
        with racers(3) as (publisher, other, turn):
            publishing = Transaction(publisher)
            publisher.run(sold, 1)
            assert other.run(sold, 2) > 0
            assert turn.run(drain) == 1
            publishing.commit()

    @pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
    def test_a_late_event_is_seen_whatever_the_sessions_isolation(project: Project, level: str) -> None:
        execution = listener.start()
        with racers() as (publisher, turn):
            for side in (publisher, turn):
                side.run(_set_isolation, level)
            publishing = Transaction(publisher)
            publisher.run(sold, 1)
            assert turn.run(drain) == 1
            publishing.commit()
            assert turn.run(drain) == 1
        assert output(execution) == [1]

    def test_one_deduplication_key_from_two_publishers_is_one_event(project: Project) -> None:
        with racers() as (one, other):
            publishing = Transaction(one)
            first = one.run(publish, "sold", 1, dedup_key="k")
            meanwhile = other.begin(publish, "sold", 2, dedup_key="k")
            other.wait_for_lock(meanwhile)
            publishing.commit()
            assert meanwhile.result(60) == first
        assert EventRow.objects.count() == 1

    def _set_isolation(level: str) -> None:
        from django.db import connections

        with connections[USING].cursor() as cursor:
            cursor.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")


def test_many_publishers_and_listeners_lose_nothing(project: Project) -> None:
    executions = [listener.start(8) for _ in range(3)]
    sides = [Racer() for _ in range(4)]
    try:
        work = [sides[number % 2].begin(sold, number) for number in range(8)]
        turns = [side.begin(drain) for side in sides[2:]]
        for one in [*work, *turns]:
            one.result(60)
    finally:
        for side in sides:
            side.close()
    tell_of_events(USING)
    drain()
    assert [sorted(output(execution)) for execution in executions] == [list(range(8))] * 3
    assert EventTaken.objects.count() == 24

"""A queue's limits hold whatever is waiting: how many run at once, how many begin within a period, whose turn it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from django_durable import clock, step
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.leave import Pages, release
from django_durable.models import DispatchHint, QueueLimit
from django_durable.operators.doctor import examine
from django_durable.runtime.claim_run import run_claim
from django_durable.runtime.messages_due import rooms_left
from django_durable.runtime.one import run_hint
from django_durable.testing import DurableKit
from tests.driving import USING, claim, drain, lapse_leases, lease_of
from tests.flow import limited

pytestmark = pytest.mark.usefixtures("queues")


def start(workflow: Any, queue: str, count: int = 1, *args: Any, **using: Any) -> list[Any]:
    return [workflow.using(queue=queue, **using).start(*args) for _ in range(count)]


def finish(claims: list[Claimed]) -> None:
    for claimed in claims:
        run_claim(claimed, lease_of(claimed))


@contextmanager
def later() -> Iterator[Any]:
    with clock.shifted():
        yield lambda seconds: clock.shift(timedelta(seconds=seconds))


def held(queue: str) -> int:
    return DispatchHint.objects.using(USING).filter(queue=queue, token__isnull=False).count()


def test_no_more_run_at_once_than_the_concurrency_and_an_end_frees_its_slot() -> None:
    start(limited.one, "flow.three", 10)
    first = claim(10)
    assert len(first) == held("flow.three") == 3
    assert claim(10) == []
    finish(first[:1])
    assert len(claim(10)) == 1
    assert held("flow.three") == 3


def test_what_waits_holds_no_slot() -> None:
    start(limited.napping, "flow.three", 4)
    finish(claim(10))
    assert held("flow.three") == 0
    assert len(claim(10)) == 1


def test_a_waiting_parent_holds_no_slot_so_depth_ten_ends_with_a_concurrency_of_one() -> None:
    [deep] = start(limited.parent, "flow.single", 1, 10)
    drain()
    deep.refresh_from_db()
    assert deep.output == 10


def test_a_handed_back_turn_frees_its_slot() -> None:
    start(limited.one, "flow.single", 1)
    [claimed] = claim()
    release(claimed, Pages(), delay=60)
    start(limited.one, "flow.single", 1)
    assert len(claim()) == 1


def test_a_lapsed_lease_frees_its_slot_and_is_not_renewed() -> None:
    from django_durable.dispatch.hints import renew

    start(limited.one, "flow.single", 2)
    [lost] = claim()
    lapse_leases()
    assert renew(USING, [(lost.hint_id, lost.token)], 30) == ([], [])
    [again] = claim()
    assert again.token != lost.token
    assert held("flow.single") == 1
    drain()


def test_steps_elsewhere_count_with_the_turns_of_their_queue() -> None:
    start(limited.many_steps, "durable", 1, 6)
    finish(claim())
    start(limited.one, "flow.two", 3)
    assert len(claim(10)) == 2
    assert held("flow.two") == 2


def test_queues_without_limits_go_on_beside_a_full_one() -> None:
    start(limited.one, "flow.single", 3)
    start(limited.one, "durable", 3)
    assert len(claim(10)) == 4


def test_no_more_begin_within_any_period_than_the_rate() -> None:
    with later() as shift:
        start(limited.one, "flow.paced", 9)
        finish(claim(2))
        shift(30)
        finish(claim(10))
        assert claim(10) == []
        shift(31)
        first_two_are_past = claim(10)
        assert len(first_two_are_past) == 2
        finish(first_two_are_past)
        shift(30)
        assert len(claim(10)) == 1


def test_later_turns_are_no_starts() -> None:
    with later() as shift:
        start(limited.napping, "flow.paced", 3)
        finish(claim(10))
        start(limited.napping, "flow.paced", 3)
        shift(24 * 3600 - 1)
        finish(claim(10))
        shift(2)
        woken = claim(10)
        assert len(woken) == 3, "the rate is used up; those that wake have begun long ago"


def test_a_paused_queue_admits_nothing_until_it_is_resumed() -> None:
    start(limited.one, "flow.three", 2)
    [_one] = claim(1)
    QueueLimit.objects.using(USING).filter(name="flow.three").update(paused=True)
    assert claim(10) == []
    QueueLimit.objects.using(USING).filter(name="flow.three").update(paused=False)
    assert len(claim(10)) == 1


def test_tenants_take_turns_whatever_one_of_them_has_waiting() -> None:
    start(limited.one, "flow.three", 40, tenant="noisy")
    for tenant in ("a", "b"):
        start(limited.one, "flow.three", 1, tenant=tenant)
    admitted = claim(3)
    assert {claimed.row["tenant"] for claimed in admitted} == {"noisy", "a", "b"}


def test_the_newest_first_where_the_queue_says_so_and_priority_before_it() -> None:
    texts = ["first", "second", "third"]
    for text in texts:
        start(limited.one, "flow.newest", 1, text)
    start(limited.one, "flow.newest", 1, "urgent", priority=1)
    order = []
    while claims := claim(1):
        order.append(claims[0].row["encoded_input"])
        finish(claims)
    assert [next(t for t in [*texts, "urgent"] if t in text) for text in order] == [
        "urgent",
        "third",
        "second",
        "first",
    ]


def test_what_an_operator_changed_stays_until_the_declaration_changes() -> None:
    start(limited.one, "flow.three", 10)
    claim(1)
    QueueLimit.objects.using(USING).filter(name="flow.three").update(concurrency=5)
    assert len(claim(10)) == 4


def test_work_from_before_the_limits_takes_part_in_them() -> None:
    QueueLimit.objects.using(USING).all().delete()
    start(limited.one, "flow.three", 5)
    assert not DispatchHint.objects.using(USING).exclude(lane="").exists()
    from django_durable.dispatch.flow_queue import forget

    forget(USING)
    assert len(claim(10)) == 3


def test_a_steps_limit_is_the_queue_that_its_attempts_wait_in() -> None:
    named = step(limit=limited.two)(limited.elsewhere.func)
    assert (named.options.limit, named.options.queue) == ("flow.two", "flow.two")
    with pytest.raises(ValueError, match="waits in that queue"):
        step(limit="flow.two", queue="other")(limited.elsewhere.func)
    assert limited.one.using(queue=limited.two).start().queue == "flow.two"


def test_what_waits_for_a_limit_is_no_finding() -> None:
    start(limited.one, "flow.single", 2)
    claim()
    DispatchHint.objects.using(USING).filter(token=None).update(due_at="2000-01-01T00:00:00Z")
    assert [one.code for one in examine() if one.code == "overdue"] == []


def test_the_testing_kit_goes_on_to_when_a_rate_admits_the_next() -> None:
    with DurableKit() as durable:
        executions = start(limited.one, "flow.paced", 7)
        durable.run_until_idle()
    for execution in executions:
        execution.refresh_from_db()
        assert execution.status == "completed"


def test_a_message_takes_the_next_one_of_its_queue_and_nothing_where_there_is_no_room() -> None:
    start(limited.one, "flow.newest", 1, "older")
    start(limited.one, "flow.newest", 1, "newer")
    older, newer = DispatchHint.objects.using(USING).order_by("due_at").values_list("pk", flat=True)
    assert run_hint(older) is True
    assert list(DispatchHint.objects.using(USING).values_list("pk", flat=True)) == [older], "the newest goes first"
    [held] = claim()
    start(limited.one, "flow.newest", 1, "third")
    [waiting] = DispatchHint.objects.using(USING).filter(token=None).values_list("pk", flat=True)
    assert run_hint(waiting) is False
    assert rooms_left(USING)["flow.newest"] == 0
    finish([held])
    assert rooms_left(USING)["flow.newest"] == 1
    assert newer != waiting

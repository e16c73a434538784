"""A singleton's limit holds for each tenant and key; who waits is admitted by the end of who runs, in order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from django_durable import ExecutionFailed, QueueFull, Singleton, clock
from django_durable.models import DispatchHint, Execution, SingletonPlace
from django_durable.operators.doctor import liveness_violations
from django_durable.runtime.flow_sweeps import admit_to_singletons
from tests.driving import USING, claim, drain, lapse_leases
from tests.flow import limited

pytestmark = pytest.mark.django_db(transaction=True)


def status(*executions: Execution[Any]) -> list[str]:
    drain()
    drain()  # a pass that only ends something claims nothing
    assert liveness_violations(USING) == []
    return ["in line" if row.in_line else row.status for row in (_again(one) for one in executions)]


def _again(execution: Execution[Any]) -> Execution[Any]:
    return Execution.objects.using(USING).get(pk=execution.pk)


def test_the_next_one_begins_when_the_first_has_ended_in_order_of_start() -> None:
    first, second, third = (limited.per_order.start(7, text) for text in "abc")
    other = limited.per_order.start(8)
    assert status(first, second, third, other) == ["waiting", "in line", "in line", "waiting"]
    assert not DispatchHint.objects.using(USING).filter(execution_id=second.pk).exists(), "who waits costs nothing"
    first.signal("go")
    assert status(first, second, third) == ["completed", "waiting", "in line"]
    second.signal("go")
    assert status(second, third) == ["completed", "waiting"]
    third.signal("go")
    assert status(third) == ["completed"]
    other.signal("go")
    drain()
    assert not SingletonPlace.objects.using(USING).exists()


def test_two_tenants_and_two_workflows_never_wait_for_each_other() -> None:
    executions = [limited.pair.using(tenant=tenant).start() for tenant in ("a", "b", "a", "b", "a")]
    assert status(*executions) == ["waiting"] * 4 + ["in line"]


def test_a_signal_to_one_in_line_is_kept_for_it() -> None:
    first, second = limited.per_order.start(7), limited.per_order.start(7)
    second.signal("go")
    assert status(first, second) == ["waiting", "in line"]
    first.signal("go")
    assert status(first, second) == ["completed", "completed"]


def _three(flow: Any, *args: Any) -> list[Execution[Any]]:
    executions = [flow.start(*args) for _ in range(3)]
    assert status(*executions) == ["waiting", "in line", "in line"]
    return executions


def test_a_cancel_admits_the_next() -> None:
    first, second, third = _three(limited.going_on, 0)
    first.cancel(actor="a")
    assert status(first, second, third) == ["cancelled", "waiting", "in line"]


def test_a_cancel_in_line_takes_no_slot() -> None:
    first, second, third = _three(limited.going_on, 0)
    second.cancel(actor="a")
    assert status(first, second, third) == ["waiting", "cancelled", "in line"]
    first.signal("go")
    assert status(first, third) == ["completed", "waiting"]


def test_a_failure_admits_the_next() -> None:
    first, second, third = _three(limited.failing)
    first.signal("go")
    assert status(first, second, third) == ["failed", "waiting", "in line"]


def test_a_timeout_admits_the_next_whose_time_begins_then() -> None:
    first, second, third = _three(limited.late)
    assert _again(second).deadline is None
    with clock.shifted():
        clock.shift(timedelta(seconds=61))
        assert status(first, second, third) == ["timed_out", "waiting", "in line"]
    assert _again(second).deadline is not None


def test_a_death_admits_the_next(settings: Any) -> None:
    first, second, third = _three(limited.going_on, 0)
    settings.DURABLE = {**getattr(settings, "DURABLE", {}), "MAX_RECOVERIES": 0}
    first.signal("go")
    assert len(claim()) == 1
    lapse_leases()
    assert status(first, second, third) == ["dead", "waiting", "in line"]


def test_a_full_line_is_refused_and_leaves_the_callers_transaction_usable() -> None:
    first, second = limited.only_one.start(), limited.only_one.start()
    with transaction.atomic(using=USING):
        with pytest.raises(QueueFull, match="1 wait"):
            limited.only_one.start()
        assert Execution.objects.using(USING).count() == 2
    assert status(first, second) == ["waiting", "in line"]


def test_a_policy_of_reject_never_waits_and_a_known_key_is_no_start() -> None:
    first = limited.rejecting.using(key="k").start()
    with pytest.raises(QueueFull):
        limited.rejecting.start()
    assert limited.rejecting.using(key="k").start().pk == first.pk


def test_a_policy_of_cancel_running_leaves_the_newest() -> None:
    first = limited.newest_runs.start()
    drain()
    second = limited.newest_runs.start()
    assert second.status == "pending" and not second.in_line and second.is_new
    assert status(first, second) == ["cancelled", "waiting"]


def test_a_policy_of_cancel_waiting_lets_the_newest_wait() -> None:
    executions = [limited.newest_waits.start() for _ in range(3)]
    assert status(*executions) == ["waiting", "cancelled", "in line"]


def test_a_run_that_continues_keeps_its_slot() -> None:
    first, second = limited.going_on.start(1), limited.going_on.start(0)
    first.signal("go")
    assert status(first, second) == ["continued", "in line"]
    first.signal("go")
    assert status(second) == ["waiting"]


def test_a_retry_waits_for_a_slot_and_so_does_a_fork() -> None:
    first = limited.failing.start()
    first.signal("go")
    assert status(first) == ["failed"]
    second = limited.failing.start()
    assert status(second) == ["waiting"]
    first.retry(actor="a")
    fork = first.fork(from_position=0, actor="a")
    assert status(first, second, fork) == ["in line", "waiting", "in line"]
    second.cancel(actor="a")
    assert status(first, fork) == ["failed", "waiting"]


def test_one_in_line_can_be_paused_and_resumed_without_losing_its_place() -> None:
    first, second, third = (limited.per_order.start(7) for _ in range(3))
    second.pause(actor="a")
    first.signal("go")
    assert status(first, second, third) == ["completed", "in line", "waiting"]
    assert _again(second).status == "paused"
    second.resume(actor="a")
    assert status(second, third) == ["in line", "waiting"]
    third.signal("go")
    assert status(second, third) == ["waiting", "completed"]


def test_children_wait_too_and_their_parent_gets_all_results() -> None:
    parent = limited.parent_of_singletons.start()
    assert status(parent) == ["completed"]
    assert _again(parent).output == ["a", "b", "c"]


def test_what_a_crash_left_in_line_is_admitted_by_the_sweep() -> None:
    first, second = limited.per_order.start(7), limited.per_order.start(7)
    drain()
    SingletonPlace.objects.using(USING).filter(execution_id=first.pk).delete()
    assert status(second) == ["in line"]
    assert admit_to_singletons(USING) == 1
    assert status(second) == ["waiting"]


def test_mistakes_in_a_declaration_are_refused() -> None:
    for options in ({"limit": 0}, {"depth": -1}, {"policy": "never"}):
        with pytest.raises(ValueError):
            Singleton(**options)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Singleton(key="order")  # type: ignore[arg-type]


def test_a_start_that_is_rolled_back_leaves_no_place() -> None:
    class Undo(Exception): ...

    with pytest.raises(Undo), transaction.atomic(using=USING):
        limited.per_order.start(7)
        raise Undo
    assert not SingletonPlace.objects.using(USING).exists()
    assert status(limited.per_order.start(7)) == ["waiting"]


def test_results_are_those_of_any_execution() -> None:
    first = limited.failing.start()
    first.signal("go")
    drain()
    with pytest.raises(ExecutionFailed):
        first.result()

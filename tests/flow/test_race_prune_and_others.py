"""A prune meets those who still want the tree: one of both wins, and the other is told."""

from __future__ import annotations

import os
import threading
from datetime import timedelta

from django_durable import Context, Execution, ExecutionNotFound, InvalidTransition, workflow
from django_durable.engine.retention import Terms
from django_durable.models import DeadLetter, PrunedExecution
from django_durable.operators.prune import prune_place
from tests.db.racing import USING, Transaction, racers
from tests.driving import drain
from tests.services.project import Project


@workflow("flow.pruned")
def pruned(ctx: Context, number: int = 0) -> int:
    return number


@workflow("flow.broken")
def broken(ctx: Context) -> None:
    raise ValueError


TERMS = Terms(periods={}, older_than=timedelta())
WITH_LETTERS = Terms(periods={}, older_than=timedelta(), open_letters=True)


if os.environ["TEST_DB"] == "postgres":  # elsewhere there is one writer at a time: nobody holds a row

    def test_a_tree_that_somebody_holds_is_left_for_the_next_time(project: Project) -> None:
        broken.start()
        pruned.start()
        drain()
        held = Execution.objects.using(USING).get(workflow="flow.broken")
        with racers() as (one, other):
            retrying = Transaction(one)
            one.run(held.retry, actor="ann")
            found = other.run(prune_place, USING, WITH_LETTERS)
            assert (found.trees, dict(found.kept)) == (1, {"busy": 1})
            retrying.commit()
            assert dict(other.run(prune_place, USING, WITH_LETTERS).kept) == {}
        assert Execution.objects.using(USING).get().status == "pending"


def test_a_retry_and_a_prune_at_once_leave_no_half(project: Project) -> None:
    for _round in range(10):
        execution = broken.start()
        drain()
        with racers() as (one, other):
            barrier = threading.Barrier(2)

            def retry() -> str:
                barrier.wait(60)
                try:
                    execution.retry(actor="ann")
                except (InvalidTransition, ExecutionNotFound):
                    return "refused"
                return "retried"

            def remove() -> int:
                barrier.wait(60)
                return prune_place(USING, WITH_LETTERS).trees

            retried, removed = one.begin(retry), other.begin(remove)
            assert (retried.result(60), removed.result(60)) in (("retried", 0), ("refused", 1))
        drain()
        prune_place(USING, WITH_LETTERS)
    assert not DeadLetter.objects.using(USING).exists()


def test_two_prunes_at_once_remove_each_tree_once(project: Project) -> None:
    for number in range(60):
        pruned.start(number)
    drain()
    with racers(3) as sides:
        barrier = threading.Barrier(len(sides))

        def remove() -> int:
            barrier.wait(60)
            return prune_place(USING, TERMS).trees

        removed = sum(future.result(60) for future in [side.begin(remove) for side in sides])
    removed += prune_place(USING, TERMS).trees
    assert removed == 60
    assert not Execution.objects.using(USING).exists()
    assert not PrunedExecution.objects.using(USING).exists()

"""Field report B66: parents that wait for their children take up every worker, and nothing moves any more.

One worker with one slot: a family ten deep and fifty parents at once come to their ends.
"""

from __future__ import annotations

from django_durable import Execution
from tests.field.rig.workflows import nested, parent_of_many
from tests.field.rig.yard import Yard

DEPTH = 10
PARENTS = 50


def test_one_slot_is_enough_for_any_number_of_waiting_parents(yard: Yard) -> None:
    yard.durable["LEASE_SECONDS"] = 30
    deep = nested.start(DEPTH)
    many = parent_of_many.start_many(parent_of_many.bind() for _number in range(PARENTS))
    yard.worker("--concurrency", "1")
    yard.wait_for_status(deep, "completed", within=120)
    for execution in many:
        yard.wait_for_status(execution, "completed", within=120)
    length = len("bottom")
    assert yard.reload(deep).output == length + DEPTH
    assert all(yard.reload(execution).output == [length, length + 1, length] for execution in many)
    assert not Execution.objects.exclude(status="completed").exists()
    assert not Execution.objects.filter(recoveries__gt=0).exists()
    assert len(yard.begun()) == 1 + 3 * PARENTS

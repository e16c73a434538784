"""Field report B66: parents that wait for their children hold every slot, and the children never run.

Depth ten times fifty parents, on one worker with one slot.
"""

from __future__ import annotations

from django_durable.models import DispatchHint, Execution
from tests.field.rig.yard import Yard

DEPTH, PARENTS = 10, 50


def test_fifty_families_of_ten_generations_end_on_one_slot(yard: Yard) -> None:
    roots = [yard.start("nested", DEPTH) for _ in range(PARENTS)]
    yard.worker("--concurrency", "1")
    for root in roots:
        assert yard.wait_for_status(root, "completed", within=120).output == DEPTH
    everyone = Execution.objects.all()
    assert everyone.count() == DEPTH * PARENTS
    assert set(everyone.values_list("status", "recoveries")) == {("completed", 0)}
    assert set(everyone.values_list("root_id", flat=True)) == {root.pk for root in roots}
    assert not DispatchHint.objects.exists()

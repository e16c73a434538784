"""A step on another queue is one more message with a hint's id; without a broker it only comes later."""

from __future__ import annotations

from django_durable import Execution
from django_durable.models import Checkpoint
from tests.celery.fleet import WITHOUT_TICKS, Fleet

START = "from tests.celery.workflows import sent_away; sent_away.start('x')"
FIRST_TURN = f"""
from django_durable.models import DispatchHint
from django_durable.runtime.one import run_hint
{START}
print(run_hint(DispatchHint.objects.get().pk))
"""


def test_messages_alone_carry_steps_and_items(fleet: Fleet) -> None:
    fleet.durable = dict(WITHOUT_TICKS)
    fleet.worker("-c", "2")
    fleet.run(START)
    assert fleet.outputs(Execution.objects.all()) == [["x-a", "x-b", "x-c"]]
    assert sorted(fleet.effects()) == ["x-a", "x-b", "x-c"]


def test_a_broker_that_is_away_at_the_dispatch_of_a_step_fails_nothing(fleet: Fleet) -> None:
    fleet.valkey.stop()
    assert fleet.run(FIRST_TURN).stdout.strip() == "True"
    assert Execution.objects.get().status == "waiting"
    assert Checkpoint.objects.get().status == "pending"
    fleet.valkey.start()
    fleet.worker("-c", "2")
    fleet.beat()
    assert fleet.outputs(Execution.objects.all()) == [["x-a", "x-b", "x-c"]]
    assert sorted(fleet.effects()) == ["x-a", "x-b", "x-c"]

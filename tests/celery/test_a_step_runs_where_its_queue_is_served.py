"""Steps elsewhere, maps and children by messages: a step's body runs in a worker of its queue, and in no other."""

from __future__ import annotations

from tests.celery.fleet import WITHOUT_TICKS, Fleet

COUNT = 4
START = f"""
from tests.celery.workflows import spread
execution = spread.start({COUNT})
print(execution.pk)
"""


def expected() -> list[str]:
    texts = [str(number) for number in range(COUNT)]
    return ["first", "alone", *texts, *(f"child-{text}" for text in texts)]


def served(fleet: Fleet, kind: str) -> set[str]:
    """The processes that ran bodies of a kind."""
    return {line.split()[0] for line in fleet.lines() if line.split()[1] == kind}


def test_each_body_runs_in_a_worker_of_its_queue_once(fleet: Fleet) -> None:
    fleet.worker("-P", "solo", "-Q", "heavy")
    fleet.worker("-P", "solo", "-Q", "durable")
    fleet.beat()
    execution = fleet.start("spread", COUNT)
    assert fleet.outputs([execution]) == [expected()]
    fleet.wait_until_idle()
    assert len(fleet.effects()) == len(set(fleet.effects())) == 2 + 2 * COUNT
    heavy, light = served(fleet, "heavy"), served(fleet, "light")
    assert len(heavy) == len(light) == 1
    assert not heavy & light


def test_it_comes_to_its_end_by_messages_alone(fleet: Fleet) -> None:
    fleet.durable = dict(WITHOUT_TICKS)
    fleet.worker("-P", "solo")  # without -Q: it serves the queues that steps declare too
    fleet.run(START)
    fleet.project.wait_for(lambda: len(fleet.effects()) == 2 + 2 * COUNT)
    fleet.wait_until_idle()
    assert len(set(fleet.effects())) == 2 + 2 * COUNT

"""Limit three, four worker processes, SIGKILLs, five hundred executions: never more than three bodies, and all end."""

from __future__ import annotations

import time

from django_durable.models import DispatchHint, Execution
from tests.processes.shop import Shop
from tests.services.process import Process

EXECUTIONS = 500
KILLS = 4


def test_three_at_most_run_whoever_dies_and_everything_ends(shop: Shop) -> None:
    for number in range(EXECUTIONS):
        shop.start("limited", str(number))
    workers = [shop.worker("--concurrency", "4") for _ in range(4)]
    for number in range(KILLS):
        shop.project.wait_for(lambda: _ended(shop) >= (number + 1) * EXECUTIONS // (KILLS + 2), within=60)
        _replace(shop, workers, number % len(workers))
    shop.project.wait_for(lambda: _live() == 0, within=120)
    assert _most_at_once(shop) == 3
    assert Execution.objects.filter(status="completed").count() == EXECUTIONS
    assert not DispatchHint.objects.exists()


def _replace(shop: Shop, workers: list[Process], place: int) -> None:
    """Kill a worker in the middle of whatever it does, say so among the effects, and start another one."""
    workers[place].kill()
    workers[place].wait(within=30)
    with (shop.folder / "effects").open("ab", buffering=0) as file:
        file.write(f"{workers[place].pid} killed\n".encode())
    workers[place] = shop.worker("--concurrency", "4")


def _ended(shop: Shop) -> int:
    time.sleep(0.02)  # a pause between two looks
    return sum(line.startswith("end") for line in shop.effects())


def _live() -> int:
    return Execution.objects.active().count()


def _most_at_once(shop: Shop) -> int:
    """The largest number of bodies between their begin and their end, or the death of their process."""
    running: set[tuple[str, str]] = set()
    most = 0
    for line in shop.lines():
        pid, _, what = line.partition(" ")
        kind, _, text = what.partition(" ")
        if kind == "begin":
            running.add((pid, text))
        elif kind == "end":
            running.discard((pid, text))
        else:
            running = {one for one in running if one[0] != pid}
        most = max(most, len(running))
    return most

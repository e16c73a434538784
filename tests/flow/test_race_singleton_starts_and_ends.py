"""Starts and ends of one singleton in many threads: never two under way, nobody is left in line."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from django_durable import Context, workflow
from django_durable.models import Execution, SingletonPlace
from django_durable.runtime.flow_sweeps import admit_to_singletons
from tests.driving import USING, drain

pytestmark = pytest.mark.django_db(transaction=True)

running = 0
most = 0
lock = threading.Lock()


@workflow("flow.raced", singleton=True)
def raced(ctx: Context, number: int) -> int:
    global running, most
    with lock:
        running += 1
        most = max(most, running)
    with lock:
        running -= 1
    return number


STARTERS, WORKERS, EACH = 3, 2, 12


def test_every_start_ends_and_two_never_run_at_once() -> None:
    global most
    most = 0
    starting = threading.Semaphore(0)

    def start_some() -> None:
        try:
            for number in range(EACH):
                raced.start(number)
        finally:
            starting.release()
            connections.close_all()

    def work() -> None:
        try:
            over = 0
            while over < 3:
                over = 0 if drain() else over + (starting._value >= STARTERS)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(STARTERS + WORKERS) as pool:
        futures = [pool.submit(start_some) for _ in range(STARTERS)] + [pool.submit(work) for _ in range(WORKERS)]
        for future in futures:
            future.result(120)
    while admit_to_singletons(USING) or drain():
        pass
    assert Execution.objects.using(USING).filter(status="completed").count() == STARTERS * EACH
    assert not SingletonPlace.objects.using(USING).exists()
    assert most == 1

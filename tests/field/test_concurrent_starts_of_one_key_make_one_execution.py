"""Field report B30: a key protects while the first execution still runs, and all callers get the same one."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.db import connections, transaction

from django_durable import Context, Execution, FatalError, step, workflow
from django_durable.models import DispatchHint
from tests.driving import USING, claim, drain
from tests.field.rig.yard import Yard

PROCESSES, THREADS = 4, 5
STARTS = f"""
import json, threading
from tests.field.rig.workflows import folder, stand_at, three
found, lock = [], threading.Lock()

def start():
    stand_at("gate")
    execution = three.using(key="k").start("x")
    with lock:
        found.append([str(execution.pk), execution.is_new])

threads = [threading.Thread(target=start) for _ in range({THREADS})]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
print(json.dumps(found))
"""

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


def test_twenty_callers_in_four_processes_get_one_execution(yard: Yard) -> None:
    yard.configure()
    callers = [yard.project.python(STARTS) for _ in range(PROCESSES)]
    for caller in callers:
        caller.wait_for_output("ready")
    yard.open("gate")
    answers = [answer for caller in callers for answer in json.loads(caller.finish().stdout.splitlines()[-1])]
    assert len(answers) == PROCESSES * THREADS
    execution = Execution.objects.get()
    assert {pk for pk, _new in answers} == {str(execution.pk)}
    assert [new for _pk, new in answers].count(True) == 1
    assert DispatchHint.objects.count() == 1
    yard.workers(2, "--concurrency", "2")
    yard.wait_for_status(execution, "completed")
    assert yard.begun() == ["x-a", "x-b", "x-c"]


@step
def effect(how: str) -> None:
    ran.append(how)
    if how == "failed":
        raise FatalError("as asked")


@workflow
def kept(ctx: Context, how: str) -> str:
    if how == "paused":
        ctx.breakpoint("here")
    if how == "waiting":
        ctx.wait_for_signal("go")
    ctx.step(effect, how)
    return how


def bring_to(how: str) -> Execution[str]:
    """The key's first execution, in this status."""
    execution = kept.using(key="k").start(how)
    if how == "running":
        claim()
    elif how == "cancelled":
        execution.cancel(actor="ann")
    elif how != "pending":
        drain()
    return Execution.objects.locate(execution.pk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["pending", "running", "waiting", "paused", "completed", "failed", "cancelled"])
def test_the_key_holds_whatever_the_state_of_the_first(how: str) -> None:
    first = bring_to(how)
    assert first.status == how
    before = Execution.objects.filter(pk=first.pk).values().get()
    effects = list(ran)
    together = threading.Barrier(6)
    answers: list[tuple[Any, bool]] = []
    threads = [threading.Thread(target=_start_again, args=(together, how, answers)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [(first.pk, False)] * 6
    assert Execution.objects.filter(pk=first.pk).values().get() == before
    assert Execution.objects.count() == 1
    drain()
    assert ran == (effects or ([how] if how == "pending" else []))


def _start_again(together: threading.Barrier, how: str, answers: list[tuple[Any, bool]]) -> None:
    try:
        together.wait(30)
        with transaction.atomic():
            again = kept.using(key="k").start(how)
        answers.append((again.pk, again.is_new))
    finally:
        connections[USING].close()

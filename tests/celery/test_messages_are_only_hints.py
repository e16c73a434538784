"""A message more or less, early, late, wrong or without an address changes nothing, and holds nothing but an id."""

from __future__ import annotations

import base64
import json
import re
from uuid import UUID, uuid4

import redis

from django_durable.models import DispatchHint
from tests.celery.fleet import WITHOUT_TICKS, Fleet

MARKER = "words-of-a-customer"


def test_duplicate_early_late_and_wrong_messages_are_no_ops(fleet: Fleet) -> None:
    fleet.durable = dict(WITHOUT_TICKS)
    done, sleeping, held = fleet.start("quick", "d"), fleet.start("nap", "n", 600.0), fleet.start("held", "h")
    hints = {each.execution_id: each.id for each in DispatchHint.objects.all()}
    worker = fleet.worker("-P", "threads", "-c", "3")
    for execution in (done, sleeping, held):
        fleet.send(str(hints[execution.id]))
    fleet.outputs([done])
    fleet.wait_for_status(sleeping, "waiting")
    fleet.wait_for_effect("begin h-b")
    early = DispatchHint.objects.get(execution_id=sleeping.id).id
    wrong: list[object] = ["", "no-id", 17, None, {"a": 1}, str(uuid4()), str(UUID(int=0))]
    for hint_id in [*map(str, hints.values()), str(early), *wrong] * 3:
        fleet.send(hint_id)
    fleet.open("h-b")
    fleet.outputs([held])
    last = fleet.start("quick", "z")
    fleet.send(str(DispatchHint.objects.get(execution_id=last.id).id))
    fleet.outputs([last])
    fleet.project.wait_for(lambda: worker.stderr.count("succeeded") >= 3 + 33 + 1)
    assert fleet.reload(sleeping).status == "waiting"
    assert sorted(fleet.effects()) == sorted(
        ["d-a", "d-b", "n-a", "h-a", "begin h-b", "end h-b", "h-c", "z-a", "z-b"]
    )
    assert "Traceback" not in worker.stderr
    assert worker.stderr.count("a message without a hint's id was dropped") == 5 * 3
    assert "no-id" not in worker.stderr.replace("Task django_durable.run", "")


def test_an_emptied_broker_and_dead_workers_lose_nothing(fleet: Fleet) -> None:
    held = [fleet.start("held", f"h{number}") for number in range(2)]
    napping, asking = [fleet.start("nap", "n", 2.0)], [fleet.start("ask", f"s{number}") for number in range(2)]
    processes = [fleet.worker("-c", "4"), fleet.beat()]
    for number in range(2):
        fleet.wait_for_effect(f"begin h{number}-b")
    for execution in [*napping, *asking]:
        fleet.wait_for_status(execution, "waiting")
    for process in processes:
        process.kill_group()
    fleet.run("from tests.celery.workflows import quick; [quick.start(f'q{n}') for n in range(3)]")
    fleet.valkey.flush()
    for number in range(2):
        fleet.open(f"h{number}-b")
        asking[number].signal("answer", "yes")
    fleet.worker("-c", "4")
    fleet.beat()
    assert fleet.outputs([*held, *napping, *asking]) == ["h0-c", "h1-c", "n-b", "s0-yes", "s1-yes"]
    fleet.wait_until_idle()
    effects = fleet.effects()
    assert {effects.count(f"begin h{number}-b") for number in range(2)} == {2}
    assert {effects.count(f"q{number}-b") for number in range(3)} == {1}
    assert {effects.count(f"{text}-a") for text in ("h0", "h1", "n", "s0", "s1")} == {1}


def test_a_broker_emptied_while_work_is_queued_delays_it_only(fleet: Fleet) -> None:
    fleet.worker("-c", "1")
    fleet.beat()
    first = fleet.start("held", "h")
    fleet.wait_for_effect("begin h-b")
    queued = [fleet.start("quick", f"q{number}") for number in range(3)]
    with redis.from_url(fleet.valkey.url) as broker:
        fleet.project.wait_for(lambda: broker.exists("durable"))
    fleet.valkey.flush()
    fleet.open("h-b")
    assert fleet.outputs([first, *queued]) == ["h-c", "q0-b", "q1-b", "q2-b"]


def test_broker_and_result_backend_hold_ids_only(fleet: Fleet, traffic: list[str]) -> None:
    fleet.settings = {
        "CELERY_RESULT_BACKEND": fleet.valkey.url,
        "CELERY_RESULT_EXTENDED": True,
        "CELERY_TASK_IGNORE_RESULT": False,
        "CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED": True,
        "CELERY_TASK_TRACK_STARTED": True,
        "CELERY_TASK_SEND_SENT_EVENT": True,
    }
    worker, beat = fleet.worker("-E"), fleet.beat()
    fleet.run(f"from tests.celery.workflows import quick; print(quick.start({MARKER!r}).result(timeout=30))")
    failed = fleet.start("doomed", MARKER)
    assert MARKER in str(fleet.wait_for_status(failed, "failed").error)
    fleet.wait_until_idle()
    everything = "\n".join(traffic)
    bodies = [base64.b64decode(body).decode() for body in re.findall(r"body\W{2,8}([A-Za-z0-9+/=]+)", everything)]
    assert MARKER not in everything + "".join(bodies)
    assert "celery-task-meta" not in everything
    tasks = [body for body in map(json.loads, bodies) if isinstance(body, list) and "callbacks" in body[-1]]
    assert {len(args) for args, _kwargs, _more in tasks} == {0, 1}  # ticks, and hints
    for args, kwargs, _more in tasks:
        assert kwargs == {}
        assert [str(UUID(hint_id)) for hint_id in args] == args
    assert MARKER not in worker.stderr + worker.stdout + beat.stderr

"""SIGTERM to a worker: running turns end at their next position, and the message for the rest goes to the others."""

from __future__ import annotations

import json

import pytest
import redis

from django_durable.models import DispatchHint
from tests.celery.fleet import WITHOUT_TICKS, Fleet


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_running_turn_is_handed_on_at_once(fleet: Fleet, pool: str) -> None:
    fleet.durable = dict(WITHOUT_TICKS)
    worker = fleet.worker("-P", pool, "-c", "1")
    execution = fleet.start("held", "h")
    hint_id = DispatchHint.objects.get().id
    fleet.send(str(hint_id))
    fleet.wait_for_effect("begin h-b")
    worker.terminate()
    worker.wait_for_output("Warm shutdown")
    fleet.open("h-b")
    assert worker.wait(30) == 0
    assert fleet.effects() == ["h-a", "begin h-b", "end h-b"]
    handed_back = fleet.reload(execution)
    assert (handed_back.status, handed_back.recoveries) == ("pending", 0)
    assert DispatchHint.objects.get().token is None
    with redis.from_url(fleet.valkey.url) as broker:
        [message] = map(json.loads, broker.lrange("durable", 0, -1))
    assert message["headers"]["argsrepr"] == f"('{hint_id}',)"
    assert "Traceback" not in worker.stderr

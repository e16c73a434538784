"""A broker that refuses connections, or swallows them: the caller does not notice, and the work is done later."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from django_durable import Execution
from tests.celery.fleet import WITHOUT_TICKS, Fleet

MARKER = "words-of-a-customer"
STARTS = f"""
import json, time
from django_durable.celery import _broker
from tests.celery.workflows import quick

def timed_start(key):
    begin = time.monotonic()
    quick.using(key=key).start({MARKER!r})
    return time.monotonic() - begin

took = [timed_start("1"), timed_start("2")]
until = time.monotonic() + 30
while not _broker._line.failing and time.monotonic() < until:
    time.sleep(0.01)
took.append(timed_start("3"))
print(json.dumps({{"took": took, "ended_at": time.monotonic()}}))
"""


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port where nobody listens, or where somebody does and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "black hole":
            listener.listen(50)
        yield listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
@pytest.mark.parametrize("port", ["closed port", "black hole"], indirect=True)
def test_starts_return_at_once_and_the_process_ends_soon(fleet: Fleet, port: int, scheme: str) -> None:
    code = STARTS.replace("took = [", "begin = time.monotonic()\ntook = [")
    ended = fleet.run(code, BROKER_URL=f"{scheme}://127.0.0.1:{port}/")
    told = json.loads(ended.stdout)
    assert time.monotonic() - told["ended_at"] < 5
    assert max(told["took"]) < 1
    assert Execution.objects.filter(status="pending").count() == 3
    assert ended.stderr.count("the message broker cannot be reached") == 1
    assert MARKER not in ended.stderr


def test_what_was_started_while_the_broker_was_away_is_found_by_the_tick(fleet: Fleet) -> None:
    fleet.valkey.stop()
    fleet.worker(ready=False).wait_for_output("Cannot connect")
    fleet.beat()
    fleet.run("from tests.celery.workflows import quick; quick.start('x')")
    fleet.valkey.start()
    assert fleet.outputs(Execution.objects.all()) == ["x-b"]


def test_a_process_that_lives_on_sends_what_it_could_not(fleet: Fleet) -> None:
    fleet.durable = dict(WITHOUT_TICKS)
    fleet.configure()
    fleet.valkey.stop()
    fleet.project.python(
        """
        import sys, time
        from tests.celery.workflows import quick
        quick.start("x")
        time.sleep(600)
        """
    ).wait_for_output("cannot be reached")
    fleet.valkey.start()
    fleet.worker()
    assert fleet.outputs(Execution.objects.all()) == ["x-b"]

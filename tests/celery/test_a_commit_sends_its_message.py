"""The nudge: what is committed is announced at once, after the commit and not before, without any tick."""

from __future__ import annotations

import json

import redis

from django_durable import Execution
from django_durable.models import DispatchHint
from tests.celery.fleet import WITHOUT_TICKS, Fleet


def test_messages_alone_carry_an_execution_from_start_to_end(fleet: Fleet) -> None:
    fleet.durable = dict(WITHOUT_TICKS)
    fleet.worker()
    ended = fleet.run(
        """
        import time
        from tests.celery.workflows import ask
        execution = ask.start("x")
        while (now := ask.executions.get()).status != "waiting":
            time.sleep(0.01)
        execution.signal("answer", "yes")
        print(execution.result(timeout=30))
        """
    )
    assert ended.stdout == "x-yes\n"
    assert fleet.effects() == ["x-a", "x-yes"]


def test_nothing_is_sent_before_the_commit_and_nothing_after_a_rollback(fleet: Fleet) -> None:
    ended = fleet.run(
        """
        import redis, json, os, time
        from django.db import transaction
        from tests.celery.workflows import quick
        from django_durable.celery import _broker

        broker = redis.from_url(os.environ["BROKER_URL"])
        def waiting():
            assert _broker.flush(10)
            return broker.llen("durable")

        seen = []
        with transaction.atomic():
            quick.start("x")
            seen.append(waiting())
        seen.append(waiting())
        try:
            with transaction.atomic():
                quick.start("y")
                raise ZeroDivisionError
        except ZeroDivisionError:
            seen.append(waiting())
        print(json.dumps(seen))
        """
    )
    assert json.loads(ended.stdout) == [0, 1, 1]


def test_a_short_process_and_a_fork_of_it_send_before_they_end(fleet: Fleet) -> None:
    fleet.run(
        """
        import os, sys
        from django.db import connection
        from django_durable.dispatch import broker
        from tests.celery.workflows import quick

        broker.EXIT_SECONDS = broker.FORK_SECONDS = 30  # a busy machine is slow
        quick.start("parent")
        connection.close()
        child = os.fork()
        quick.start("child" if not child else "again")
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert Execution.objects.count() == 3
    assert redis.from_url(fleet.valkey.url).llen("durable") == 3


def test_a_message_goes_to_the_queue_of_its_workflow(fleet: Fleet) -> None:
    fleet.run("from tests.celery.workflows import elsewhere; elsewhere.start('x')")
    fleet.run("from tests.celery.workflows import elsewhere; elsewhere.using(queue='far').start('y')")
    with redis.from_url(fleet.valkey.url) as broker:
        bodies = {name: [json.loads(each) for each in broker.lrange(name, 0, -1)] for name in ("elsewhere", "far")}
    hints = dict(DispatchHint.objects.values_list("queue", "id"))
    assert {name: [each["headers"]["argsrepr"] for each in sent] for name, sent in bodies.items()} == {
        name: [f"('{hint_id}',)"] for name, hint_id in hints.items()
    }
    fleet.durable = dict(WITHOUT_TICKS)
    fleet.worker("-Q", "far")
    fleet.wait_for_effect("y")
    fleet.worker()  # a plain one serves every queue that a declaration names
    fleet.wait_for_effect("x")

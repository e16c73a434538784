"""A marker in input, output, error, published value and signal is on the tenant's plane and nowhere else.

Not on the spine, in no message, not in the result backend, in no log; the execution fails, is retried by an operator
and fails again.
"""

from __future__ import annotations

import base64
import re

import redis
from django.db import connection, connections

from django_durable.models import DeadLetter
from tests.celery.fleet import Fleet

MARKER = "words-of-a-customer"


def tables_with(alias: str, text: str) -> set[str]:
    """Every table of a database in which any column of any row has this text."""
    found = set()
    with connections[alias].cursor() as cursor:
        for table in connections[alias].introspection.table_names():
            cursor.execute(f"SELECT * FROM {connections[alias].ops.quote_name(table)}")
            if any(text in str(value) for row in cursor.fetchall() for value in row):
                found.add(table.removeprefix("django_durable_"))
    return found


def everything_in(broker: redis.Redis) -> str:
    """Every key with its value, whatever its kind."""
    reads = {b"string": broker.get, b"list": lambda k: broker.lrange(k, 0, -1), b"hash": broker.hgetall}
    reads |= {b"set": broker.smembers, b"zset": lambda k: broker.zrange(k, 0, -1, withscores=True)}
    return "\n".join(f"{key!r} {reads[broker.type(key)](key)!r}" for key in broker.scan_iter())


def decoded(text: str) -> str:
    """The text, and what its messages' bodies hold."""
    bodies = re.findall(r"body\W{2,8}([A-Za-z0-9+/=]+)", text)
    return "\n".join([text, *(base64.b64decode(body).decode() for body in bodies)])


def test_a_marker_is_found_on_its_plane_alone(fleet: Fleet, plane: str, traffic: list[str]) -> None:
    fleet.settings = {
        "CELERY_RESULT_BACKEND": fleet.valkey.url,
        "CELERY_RESULT_EXTENDED": True,
        "CELERY_TASK_IGNORE_RESULT": False,
        "CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED": True,
    }
    processes = [fleet.worker("-E"), fleet.beat(), fleet.project.manage("durable", "worker", "--concurrency", "1")]
    starting = fleet.run(
        f"""
        from tests.celery.workflows import confided
        for number in range(4):
            confided.using(tenant="acme", key=str(number)).start({MARKER!r})
        """
    )
    from tests.celery.workflows import confided

    executions = [confided.get(str(number), tenant="acme") for number in range(4)]
    for number, execution in enumerate(executions):
        fleet.wait_for_status(execution, "waiting")
        execution.signal("answer", f"{MARKER} {'well' if number % 2 else 'badly'}")
    for execution in executions[1::2]:
        assert fleet.wait_for_status(execution, "completed").output == f"{MARKER} well"
    for execution in executions[::2]:
        failed = fleet.wait_for_status(execution, "failed")
        failed.retry(actor="op", reason=f"because of {MARKER}")
        assert MARKER in str(fleet.wait_for_status(failed, "failed").error)
    letters = DeadLetter.objects.using(plane)
    fleet.project.wait_for(lambda: letters.filter(generation=2).count() == 2)
    fleet.wait_until_idle()

    on_its_plane = {"execution", "checkpoint", "message", "deadletter", "operatornote"}
    assert tables_with(plane, MARKER) == on_its_plane
    assert tables_with(connection.alias, MARKER) == set()
    assert tables_with(connection.alias, "acme") == {"tenantplacement"}
    with redis.from_url(fleet.valkey.url) as broker:
        assert MARKER not in decoded(everything_in(broker))
    seen = decoded("\n".join(traffic))
    assert "django_durable.run" in seen
    assert MARKER not in seen
    assert "celery-task-meta" not in seen
    assert MARKER not in starting.stdout + starting.stderr
    for process in processes:
        assert MARKER not in process.stdout + process.stderr

"""A thousand hints, two beats, four workers, real processes: each hint is leased once, each body begins once."""

from __future__ import annotations

import os
from collections import Counter

from django.db import connection, transaction

from django_durable import Execution
from django_durable.authoring.registry import find_workflow
from django_durable.models import DispatchHint
from tests.celery.fleet import Fleet

HINTS = 1000 if os.environ["TEST_DB"] == "postgres" else 150
TABLE = DispatchHint._meta.db_table
# The database itself notes every lease that is taken; a renewal keeps its token.
COUNTING = {
    "postgresql": [
        "CREATE TABLE leases (execution_id text, token text)",
        "CREATE FUNCTION note_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO leases VALUES (NEW.execution_id::text, NEW.token::text); RETURN NULL; END $$",
        f"CREATE TRIGGER leased AFTER UPDATE ON {TABLE} FOR EACH ROW"
        " WHEN (NEW.token IS NOT NULL AND NEW.token IS DISTINCT FROM OLD.token) EXECUTE FUNCTION note_lease()",
    ],
    "sqlite": [
        "CREATE TABLE leases (execution_id text, token text)",
        f"CREATE TRIGGER leased AFTER UPDATE ON {TABLE} WHEN NEW.token IS NOT NULL AND NEW.token IS NOT OLD.token"
        " BEGIN INSERT INTO leases VALUES (NEW.execution_id, NEW.token); END",
    ],
}


def leases() -> Counter[str]:
    """How often each execution's hint was leased."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT execution_id, count(*) FROM leases GROUP BY execution_id")
        return Counter(dict(cursor.fetchall()))


def test_of_many_hints_each_is_leased_once_and_each_body_begins_once(fleet: Fleet, plane: str) -> None:
    fleet.durable["LEASE_SECONDS"] = 30.0
    with connection.cursor() as cursor:
        for statement in COUNTING[connection.vendor]:
            cursor.execute(statement)
    flow = find_workflow("celery.quick").using(tenant="acme")
    with transaction.atomic(using=plane):
        executions = [flow.start(f"q{number}") for number in range(HINTS)]
    assert DispatchHint.objects.count() == HINTS
    for _ in range(2):
        fleet.beat()
    for _ in range(4):
        fleet.worker("-c", "1", ready=False)
    done = Execution.objects.using(plane).filter(status="completed")
    fleet.project.wait_for(lambda: done.count() == HINTS, within=120)
    fleet.wait_until_idle()
    taken = leases()
    assert len(taken) == HINTS
    assert set(taken.values()) == {1}
    assert done.filter(recoveries=0).count() == len(executions)
    assert sorted(fleet.effects()) == sorted(f"q{number}-{letter}" for number in range(HINTS) for letter in "ab")
    workers = {line.split()[0] for line in fleet.lines()}
    assert len(workers) == 4

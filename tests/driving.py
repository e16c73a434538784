"""Drive the engine in the test's own thread: claim what is due, run it, until nothing is due."""

from __future__ import annotations

import time

from django.db import connections
from django.utils.connection import ConnectionProxy

from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.engine.lease_state import Lease
from django_durable.models import DispatchHint
from django_durable.runtime.claim_run import run_claim
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.queues import waiting_queues
from tests.services.backend import database_alias

USING = database_alias()
"""Where the package's tables are in this run; ``default`` may have none."""
connection = ConnectionProxy(connections, USING)
"""What ``django.db.connection`` is, for that database."""


def claim(limit: int = 10, *, blocked: bool = False) -> list[Claimed]:
    """One pass of claiming, every queue there is."""
    queues = tuple({config().default_queue, *waiting_queues(USING)})
    return claim_pass(USING, terms_of(limit=limit, queues=queues, blocked=blocked))[0]


def lease_of(claimed: Claimed) -> Lease:
    """A lease that nobody renews."""
    return Lease(claimed.hint_id, claimed.token, time.monotonic() + claimed.lease_seconds)


def drain(*, most: int = 1000) -> int:
    """Run turns until nothing is due; how many."""
    turns = 0
    while claims := claim():
        for claimed in claims:
            run_claim(claimed, lease_of(claimed))
            turns += 1
            assert turns <= most, "the work does not end"
    return turns


def lapse_leases() -> None:
    """Let every lease end now, as if its holder had been gone for longer than it lasts."""
    DispatchHint.objects.filter(token__isnull=False).update(due_at="2000-01-01T00:00:00Z")


def make_due() -> None:
    """Bring every timer forward to now, on the hints and on the executions."""
    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
    with connections[USING].cursor() as cursor:
        cursor.execute(
            "UPDATE django_durable_execution SET wake_at = '2000-01-01 00:00:00+00' WHERE wake_at IS NOT NULL"
            if connections[USING].vendor == "postgresql"
            else "UPDATE django_durable_execution SET wake_at = '2000-01-01 00:00:00' WHERE wake_at IS NOT NULL"
        )
        cursor.execute(
            "UPDATE django_durable_checkpoint SET wake_at = '2000-01-01 00:00:00+00' WHERE status = 'pending'"
            " AND wake_at IS NOT NULL"
            if connections[USING].vendor == "postgresql"
            else "UPDATE django_durable_checkpoint SET wake_at = '2000-01-01 00:00:00' WHERE status = 'pending'"
            " AND wake_at IS NOT NULL"
        )

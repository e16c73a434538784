"""Field report B52: a shutdown waits for runs that only sleep, until the platform loses its patience.

That twenty sleepers leave both slots free, and do not delay the end, is in
``tests/processes/test_shutdown_hands_work_back.py``. Here: every way to wait, and what each of them holds.
"""

from __future__ import annotations

import time

from django.db import connection

from django_durable import Execution
from django_durable.models import DispatchHint
from tests.field.rig.yard import Yard

EACH = 8
WAYS = {
    "sleep": "waiting",
    "signal": "waiting",
    "for ever": "waiting",
    "retry": "waiting",
    "breakpoint": "paused",
}


def test_whatever_they_wait_for_they_hold_no_slot_no_lease_no_session_and_no_time_at_the_end(yard: Yard) -> None:
    yard.durable["LEASE_SECONDS"] = 30
    idle = yard.worker("--concurrency", "2")
    yard.wait_for_status(yard.start("three", "warm"), "completed")
    sessions = sessions_elsewhere()
    resting = [(yard.start("resting", how), status) for how, status in WAYS.items() for _ in range(EACH)]
    for execution, status in resting:
        yard.wait_for_status(execution, status)
    assert not DispatchHint.objects.filter(token__isnull=False).exists()
    assert not Execution.objects.filter(lease_token__isnull=False).exists()
    yard.project.wait_for(lambda: sessions_elsewhere() <= sessions + 1)  # its second slot's

    standing = [yard.start("standing", name) for name in ("one", "two")]
    for name in ("one", "two"):
        yard.wait_for_effect(f"begin {name}")
        yard.open(name)
    for execution in standing:
        yard.wait_for_status(execution, "completed")
    asked_at = time.monotonic()
    idle.terminate()
    assert idle.wait() == 0
    assert time.monotonic() - asked_at < 2
    for execution, status in resting:
        assert yard.reload(execution).status == status
        assert yard.reload(execution).recoveries == 0


def sessions_elsewhere() -> int:
    """Sessions that other processes have at the server; SQLite knows of none."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])

"""The ground that the process tests stand on: were it to give way, they would pass for the wrong reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.db import connection

from testproject.shop.models import Order
from testproject.shop.provider import PaymentProvider
from tests.services.databases import FreshDatabase
from tests.services.project import Project
from tests.services.waiting import wait_until


def test_what_one_side_commits_the_other_sees(project: Project) -> None:
    assert Order.objects.count() == 0
    Order.objects.create(total=Decimal("3.50"))
    seen = project.run_python(
        """
        from testproject.shop.models import Order
        print(Order.objects.get().total)
        Order.objects.create()
        """
    )
    assert seen.stdout == "3.50\n"
    assert Order.objects.count() == 2


def test_the_provider_is_shared_and_charges_once(project: Project) -> None:
    PaymentProvider().charge("key", 1, Decimal("2.50"))
    project.run_python(
        """
        from decimal import Decimal
        from testproject.shop.provider import PaymentProvider
        PaymentProvider().charge("key", 1, Decimal("2.50"))
        """
    )
    ledger = PaymentProvider().ledger()
    assert ledger.balance(1) == Decimal("2.50")
    assert [call["method"] for call in ledger.calls] == ["charge", "charge"]


def test_a_killed_process_leaves_nothing_behind(project: Project) -> None:
    sleeper = project.python(
        """
        import subprocess, sys, time
        print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, "started")
        time.sleep(600)
        """
    )
    sleeper.wait_for_output("started")
    child = int(sleeper.stdout.split()[0])
    project.end()
    assert sleeper.wait() == -9
    wait_until(lambda: not _runs(child), within=10)


def test_a_frozen_process_goes_on_where_it_stood(project: Project) -> None:
    counter = project.python(
        """
        import time
        from testproject.shop.models import Order
        while True:
            Order.objects.create()
            time.sleep(0.01)
        """
    )
    project.wait_for(lambda: Order.objects.count() > 3)
    counter.freeze()
    if connection.vendor == "postgresql":  # what the server had received is carried out even so
        wait_until(_nothing_runs_on_the_server, within=10)
    frozen_at = Order.objects.count()
    assert counter.is_running
    assert Order.objects.count() == frozen_at
    counter.thaw()
    project.wait_for(lambda: Order.objects.count() > frozen_at)


def test_an_exit_code_that_was_not_expected_fails_with_the_output(project: Project) -> None:
    with pytest.raises(AssertionError, match=r"ended with 3, not 0[^$]*whoops"):
        project.run_python("import sys; print('whoops', file=sys.stderr); sys.exit(3)")


def test_two_fresh_databases_are_two(
    project: Project, fresh_database: Callable[[], FreshDatabase], database_source: object
) -> None:
    other = Project(fresh_database(), project.folder)
    Order.objects.create()
    with other.as_default():
        assert Order.objects.count() == 0
    assert Order.objects.count() == 1


@pytest.mark.django_db
def test_the_sqlite_test_database_is_a_file_in_wal_mode_and_postgres_is_postgres() -> None:
    assert connection.vendor == {"sqlite": "sqlite", "postgres": "postgresql"}[os.environ["TEST_DB"]]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def _runs(pid: int) -> bool:
    """Whether the process is there and not a zombie that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _nothing_runs_on_the_server() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND state = 'active'"
        )
        (active,) = cursor.fetchone()
    return not active

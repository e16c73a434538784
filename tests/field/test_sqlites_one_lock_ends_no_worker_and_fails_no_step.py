"""Field report B15: SQLite with the options that a project has which never read about SQLite, several workers, and
somebody who holds the write lock.

Defined on SQLite only: it is about the one lock that SQLite has for the whole database.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from django.db import connection

from django_durable import Execution
from tests.field.rig.yard import Yard
from tests.services.process import Process
from tests.services.waiting import wait_until

EXECUTIONS = 30
HELD_SECONDS = 5.5
"""Longer than Django's default timeout of 5 s."""

WEB = """
import time
from django.db import OperationalError
from testproject.shop.models import Order
written = refused = 0
until = time.monotonic() + 120
while time.monotonic() < until:
    try:
        Order.objects.create()
        written += 1
    except OperationalError:
        refused += 1
    print(written, refused, flush=True)
    time.sleep(0.05)
"""

if connection.vendor == "sqlite":

    @contextmanager
    def options(*, journal: str) -> Iterator[None]:
        """This process's connection, and the file, as with Django's own defaults."""
        connection.close()
        kept = connection.settings_dict["OPTIONS"]
        connection.settings_dict["OPTIONS"] = {}
        try:
            assert set_journal(journal) == journal
            yield
            assert set_journal(None) == journal
        finally:
            connection.close()
            connection.settings_dict["OPTIONS"] = kept

    def set_journal(mode: str | None) -> str:
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=30)) as file:
            wanted = f"PRAGMA journal_mode={mode}" if mode else "PRAGMA journal_mode"
            return str(file.execute(wanted).fetchone()[0])

    def assert_untouched_by_locks(yard: Yard, executions: list[Execution[str]], workers: list[Process]) -> None:
        """Each step once, at its first attempt, and every worker alive."""
        for execution in executions:
            done = yard.wait_for_status(execution, "completed", within=60)
            assert done.recoveries == 0
            assert [entry["attempts"] for entry in done.history()] == [1, 1, 1]
        begun = yard.begun()
        assert len(begun) == len(set(begun)) == 3 * len(executions)
        assert all(worker.is_running for worker in workers)
        assert "Traceback" not in yard.complaints()

    @pytest.mark.parametrize("journal", ["delete", "wal"])
    def test_workers_and_a_web_process_share_a_file_with_default_options(yard: Yard, journal: str) -> None:
        yard.durable["LEASE_SECONDS"] = 30
        with options(journal=journal):
            workers = yard.workers(4, PLAIN_SQLITE="1")
            web = yard.project.python(WEB, PLAIN_SQLITE="1")
            web.wait_for_output("5 ")
            executions = [yard.start("three", str(number)) for number in range(EXECUTIONS)]
            assert_untouched_by_locks(yard, executions, workers)
            assert web.is_running

    def test_a_foreign_process_that_holds_the_lock_for_long_only_delays(yard: Yard) -> None:
        yard.durable["LEASE_SECONDS"] = 30
        with options(journal="delete"):
            workers = yard.workers(2, PLAIN_SQLITE="1")
            executions = [yard.start("three", str(number)) for number in range(EXECUTIONS // 3)]
            yard.project.wait_for(lambda: len(yard.effects()) > 5)
            with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=30)) as other:
                other.execute("BEGIN EXCLUSIVE")
                until = time.monotonic() + HELD_SECONDS
                meanwhile = threading.Thread(target=start_meanwhile, args=(yard, executions))
                meanwhile.start()
                wait_until(lambda: time.monotonic() > until)
                assert len(executions) == EXECUTIONS // 3
                other.execute("COMMIT")
            meanwhile.join(30)
            assert len(executions) == EXECUTIONS // 3 + 1
            assert_untouched_by_locks(yard, executions, workers)

    def start_meanwhile(yard: Yard, executions: list[Execution[str]]) -> None:
        """What a web request does; it waits longer than one timeout."""
        try:
            executions.append(yard.start("three", "meanwhile"))
        finally:
            connection.close()

"""Field report B100: a connection that was opened at import is shared by the processes that are forked later.

Importing, setting up and checking a project asks no database. Children open their own connections, and those that
the parent's threads hold stay the parent's. ``tests/unit/test_import_stays_light.py`` has the bare package.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from django_durable import Execution
from django_durable.models import DispatchHint
from tests.field.bench import workflows
from tests.field.bench.running import bench_of
from tests.services.project import Project

UNCONNECTED = """
import os, sys, threading
from django.db.backends.base.base import BaseDatabaseWrapper
opened = []
connect = BaseDatabaseWrapper.connect
def note(self):
    opened.append(os.getpid())
    return connect(self)
BaseDatabaseWrapper.connect = note

import django
django.setup()
from django.core import checks
from django.core.management import call_command
import django_durable.admin, django_durable.celery, django_durable.routers, django_durable.testing
from django_durable.authoring import registry
from django_durable.ids import process_identity
from django_durable.runtime.worker import Worker
checks.run_checks(databases=[])  # all but Django's own that are about a database
call_command("durable", "workflows", "--json")
registry.served_hashes(), registry.code_digest(), registry.problems()
worker = Worker(concurrency=2, until_idle=True)
assert opened == [], "a connection was opened before the fork"
assert threading.active_count() == 1, threading.enumerate()
identity = process_identity()
"""

FORK = """
def fork_worker():
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        assert process_identity() != identity
        Worker(concurrency=2, until_idle=True).run()
        code = 0
    finally:
        os._exit(code)

children = [fork_worker() for _ in range(3)]
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""

HELD_BY_A_THREAD = """
import os, sys, threading, time
import django
django.setup()
from django.db import connections
from django_durable.ids import process_identity
from django_durable.runtime.lease import process_keeper
from django_durable.runtime.one import run_hint
from django_durable.runtime.worker import Worker
from tests.field.bench.workflows import folder
identity = process_identity()
turn = threading.Thread(target=run_hint, args=(os.environ["HINT"],))
turn.start()
while not (folder() / "effects").exists():
    time.sleep(0.01)
"""

JOINED = """
turn.join()
process_keeper(1.0).close()
connections.close_all()
"""


def test_setting_up_and_checking_a_project_opens_no_connection_and_its_forks_work(
    project: Project, tmp_path: Path
) -> None:
    bench_of(project, tmp_path)
    executions = [workflows.plain.start(f"run {number}") for number in range(30)]
    process = project.spawn([sys.executable, "-W", "ignore::DeprecationWarning", "-c", UNCONNECTED + FORK])
    assert process.wait() == 0, process.stderr
    for execution in executions:
        assert Execution.objects.locate(execution.pk).status == "completed"
    assert process.stderr == ""


if os.environ.get("TEST_DB") == "postgres":

    def test_children_leave_the_connections_of_the_parents_threads_alone(project: Project, tmp_path: Path) -> None:
        """SQLite forbids to carry an open database over a fork at all: PostgreSQL only."""
        bench = bench_of(project, tmp_path)
        project.own_env["DURABLE"] = '{"LEASE_SECONDS": 1.0}'
        held = workflows.standing.start("held")
        hint = DispatchHint.objects.get()
        others = [workflows.plain.start(f"run {number}") for number in range(30)]
        code = HELD_BY_A_THREAD + FORK + JOINED
        process = project.spawn([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], HINT=str(hint.pk))
        for execution in others:
            bench.wait_for_status(execution, "completed")
        # The parent's keeper goes on renewing: the lease is moved on twice after the children are done.
        for _ in range(2):
            renewed = DispatchHint.objects.get(pk=hint.pk).due_at
            project.wait_for(lambda: DispatchHint.objects.get(pk=hint.pk).due_at > renewed, within=20)
        bench.open("held")
        assert process.wait() == 0, process.stderr
        done = Execution.objects.locate(held.pk)
        assert (done.status, done.recoveries) == ("completed", 0)
        assert process.stderr == ""

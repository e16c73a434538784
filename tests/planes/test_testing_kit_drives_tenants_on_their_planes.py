"""The testing kit where the project has planes: tenants run on their own, inside the test's transactions on each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction

from django_durable import Context, Execution, step, workflow
from django_durable.models import DispatchHint, Outbox
from django_durable.planes import move_tenant, use_plane
from django_durable.testing import DurableKit, live_worker
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.services.databases import ROOT
from tests.services.project import Project

ran: list[str] = []


@step
def note(text: str) -> str:
    ran.append(text)
    return text


@step(transactional=True)
def note_for_good(text: str) -> str:
    return text


@workflow
def errand(ctx: Context, name: str) -> str:
    ctx.step(note, name)
    ctx.sleep(timedelta(days=2))
    answer = ctx.wait_for_signal("answer", timeout=timedelta(days=7))
    return ctx.step(note_for_good, f"{name} {answer}")


class RolledBack(Exception):
    pass


@pytest.fixture
def durable(planes: None) -> Iterator[DurableKit]:
    """The kit in a transaction on each database, as Django's ``TestCase`` opens them."""
    ran.clear()
    with pytest.raises(RolledBack), ExitStack() as stack:
        for alias in (SPINE, NORTH, SOUTH):
            stack.enter_context(transaction.atomic(using=alias))
        with DurableKit(always_check=True) as kit:
            yield kit
        raise RolledBack
    for alias in (SPINE, NORTH, SOUTH):
        assert not Execution.objects.using(alias).exists()


def test_tenants_run_to_their_wait_days_later_and_on_by_a_signal(durable: DurableKit) -> None:
    ann, cid = durable.run(errand, "a", tenant="ann"), durable.run(errand, "c", tenant="cid")
    assert [(one.using, one.status) for one in (ann, cid)] == [(NORTH, "waiting"), (SOUTH, "waiting")]
    assert ann.history()[1]["finished_at"] - ann.started_at > timedelta(days=1, hours=23)
    ann.signal("answer", "yes")
    cid.signal("answer", "no")
    durable.run_until_idle()
    assert [Execution.objects.locate(one.pk).output for one in (ann, cid)] == ["a yes", "c no"]
    durable.assert_steps(ann, ["note", "note_for_good"])
    assert sorted(ran) == ["a", "c"]
    assert not DispatchHint.objects.exists()
    assert not Outbox.objects.using(NORTH).exists()


def test_a_wait_times_out_where_the_clock_may_move_that_far(durable: DurableKit) -> None:
    errand.using(tenant="cid").start("c")
    durable.run_until_idle(skip="all")
    with use_plane("cid"):
        (execution,) = errand.executions
    assert execution.status == "failed"
    assert execution.error is not None and execution.error["type"].endswith("SignalTimeout")


def test_advance_moves_the_clock_of_every_plane(durable: DurableKit) -> None:
    executions = [errand.using(tenant=tenant).start(tenant) for tenant in ("ann", "cid")]
    durable.run_until_idle(skip=None)
    durable.advance(timedelta(days=1))
    assert durable.run_until_idle(skip=None) == 0
    durable.advance(timedelta(days=1, seconds=1))
    assert durable.run_until_idle(skip=None) == 2
    assert {Execution.objects.locate(one.pk).awaiting for one in executions} == {'["signal:answer"]'}


def test_stubs_waits_and_failures_work_there(durable: DurableKit) -> None:
    durable.on_wait("answer", lambda execution: execution.signal("answer", execution.tenant))
    with durable.stub_step(note, returns="stubbed") as stub:
        done = durable.run(errand, "x", tenant="bob")
    assert (done.output, len(stub.calls), ran) == ("x bob", 1, [])


def test_a_crash_costs_one_turn_of_its_tenant(durable: DurableKit) -> None:
    crash = durable.crash_turn(at_position=0)
    execution = durable.run(errand, "a", tenant="ann")
    assert crash.happened
    assert (execution.recoveries, execution.status, ran) == (1, "waiting", ["a", "a"])


def test_what_has_moved_goes_on_where_it_is(durable: DurableKit) -> None:
    execution = durable.run(errand, "a", tenant="ann")
    move_tenant("ann", "south", actor="the test")
    Execution.objects.locate(execution.pk).signal("answer", 1)
    durable.run_until_idle()
    found = Execution.objects.locate(execution.pk)
    assert (found.using, found.output) == (SOUTH, "a 1")


def test_work_that_nothing_carries_on_is_told_at_the_end(planes: None) -> None:
    with pytest.raises(AssertionError, match=r"1 execution\(s\) can never go on") as told, DurableKit() as durable:
        kept, lost = (durable.run(errand, tenant, tenant=tenant) for tenant in ("cid", "ann"))
        DispatchHint.objects.filter(execution_id=lost.pk).delete()
    assert str(lost.pk) in str(told.value)
    assert str(kept.pk) not in str(told.value)


def test_what_waits_for_ever_for_nothing_is_told_too(planes: None) -> None:
    with pytest.raises(AssertionError, match="can never go on"), DurableKit() as durable:
        durable.run(errand, "a", tenant="ann")
        with connections[NORTH].cursor() as cursor:
            cursor.execute("UPDATE django_durable_execution SET awaiting = '', wake_at = NULL")


def test_a_live_worker_refuses_a_transaction_on_any_plane(planes: None) -> None:
    with transaction.atomic(using=SOUTH), pytest.raises(RuntimeError, match="cannot see"), live_worker():
        pass
    execution = errand.using(tenant="ann").start("a")
    with live_worker(concurrency=1):
        assert errand.using(tenant="cid").start("c").pk
        from tests.services.waiting import wait_until

        wait_until(lambda: Execution.objects.locate(execution.pk).status == "waiting")


SUITE = """
from datetime import timedelta

from django.db import connection
from django.test import TestCase

from django_durable import Context, Execution, PlaneUnavailable, step, workflow
from django_durable.planes import place_tenant
from django_durable.testing import DurableTestMixin


@step
def note(text: str) -> str:
    return text


@workflow("suite.errand")
def errand(ctx: Context, name: str) -> str:
    ctx.sleep(timedelta(days=1))
    return ctx.step(note, name)


class OnOnePlane(DurableTestMixin, TestCase):
    databases = {"default", "north"}

    @classmethod
    def setUpTestData(cls):
        place_tenant("ann", "north")
        place_tenant("cid", "south")

    def test_its_tenant_runs(self):
        self.assertEqual(self.run(errand, "x", tenant="ann").output, "x")
        self.assertEqual(Execution.objects.using("north").count(), 1)

    def test_another_test_s_rows_are_gone(self):
        self.assertEqual(Execution.objects.using("north").count(), 0)
        self.assertEqual(self.run_until_idle(), 0)

    def test_a_plane_that_it_may_not_use_is_refused_by_django(self):
        with self.assertRaisesMessage(AssertionError, "Add 'south' to suite.tests.OnOnePlane.databases"):
            self.run(errand, "x", tenant="cid")


class OnAll(DurableTestMixin, TestCase):
    databases = "__all__"

    def test_every_tenant_runs(self):
        place_tenant("cid", "south")
        self.assertEqual(self.run(errand, "y", tenant="cid").using, "south")
"""


def test_a_django_suite_uses_the_aliases_that_its_test_cases_name(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "tests.py").write_text(SUITE)
    variables: dict[str, Any] = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    variables |= {"DATABASE_URL": project.database.url, "SPINE_DATABASE": ""}
    if os.environ["TEST_DB"] == "sqlite":
        planes = {alias: f"sqlite://{tmp_path / alias}.sqlite3" for alias in ("north", "south")}
    else:
        planes = {alias: project.database.url.replace("?", f"_{alias}?") for alias in ("north", "south")}
    variables["PLANE_DATABASES"] = str(planes).replace("'", '"')
    finished = project.run_manage("test", "suite", "--shuffle", "1", within=120, **variables)
    assert re.search(r"Ran 4 tests in .*\n\nOK\n", finished.stderr), finished.stderr

"""A plane without this code's migrations is not claimed from and not swept; the others are; nothing is counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, ExecutionNotFound, PlaneUnavailable, step, workflow
from django_durable.ids import time_ordered_id
from django_durable.models import DispatchHint, Outbox
from django_durable.operators.doctor import examine
from django_durable.planes import behind
from django_durable.planes.registry import find_plane
from django_durable.runtime.tick import tick
from tests.calling import durable
from tests.driving import drain, make_due
from tests.planes.conftest import NORTH, SOUTH
from tests.planes.faults import lagging

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@workflow("lag.plain")
def plain(ctx: Context, name: str) -> str:
    return ctx.step(note, name)


def test_its_work_waits_uncounted_and_goes_on_once_it_is_migrated(caplog: pytest.LogCaptureFixture) -> None:
    late, here = plain.using(tenant="ann").start("late"), plain.using(tenant="cid").start("here")
    with lagging(NORTH), caplog.at_level(logging.WARNING, "django_durable"):
        for _ in range(12):
            drain()
            DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
        assert Execution.objects.locate(here.pk).output == "here"
        assert Execution.objects.locate(late.pk).status == "pending"
        hint = DispatchHint.objects.get()
        assert (hint.state, hint.failures, hint.token) == (DispatchHint.State.LIVE, 0, None)
        assert caplog.text.count("lacks 1 migration(s)") == 1
    make_due()
    drain()
    assert Execution.objects.locate(late.pk).output == "late"
    assert Execution.objects.locate(late.pk).recoveries == 0


def test_between_two_looks_a_lagging_plane_is_asked_nothing() -> None:
    plain.using(tenant="ann").start("late")
    with lagging(NORTH):
        drain()
        DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
        with CaptureQueriesContext(connections[NORTH]) as queries:
            for _ in range(5):
                drain()
        assert len(queries) == 0


def test_a_plane_that_is_up_to_date_is_looked_at_once_in_a_while() -> None:
    for number in range(4):
        plain.using(tenant="ann").start(str(number))
    with CaptureQueriesContext(connections[NORTH]) as queries:
        drain()
    assert sum("django_migrations" in query["sql"] for query in queries) == 1


def test_a_new_generation_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = find_plane("north")
    with lagging(NORTH):
        assert behind.lags(plane) is True
    monkeypatch.setitem(behind._looked, NORTH, (plane.generation, behind.time.monotonic(), True))
    assert behind.lags(plane) is True
    newer = type(plane)(plane.name, plane.database, plane.state, plane.generation + 1)
    assert behind.lags(newer) is False


def test_it_is_not_swept_and_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("django_durable.dispatch.spine_work.publish_intents", lambda *args: 0)
        plain.using(tenant="ann").start("late")
        plain.using(tenant="cid").start("here")
    with lagging(NORTH):
        assert tick()["outbox"] == 1
        assert Outbox.objects.using(NORTH).count() == 1
        assert not Outbox.objects.using(SOUTH).exists()


@contextmanager
def never_migrated(alias: str) -> Iterator[None]:
    """A plane that was registered before anybody migrated it."""
    with lagging(alias), connections[alias].cursor() as cursor:
        cursor.execute("ALTER TABLE django_durable_execution RENAME TO put_away")
        try:
            yield
        finally:
            cursor.execute("ALTER TABLE put_away RENAME TO django_durable_execution")


def test_a_plane_without_any_table_stops_no_sweep_of_the_others() -> None:
    here = plain.using(tenant="cid").start("here")
    with never_migrated(NORTH):
        for _ in range(5):  # the planes are swept in random order
            DispatchHint.objects.all().delete()
            tick(rebuild=True)
            assert DispatchHint.objects.get().execution_id == here.pk


def test_a_sweep_that_fails_on_one_plane_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    here = plain.using(tenant="cid").start("here")
    monkeypatch.setattr("django_durable.runtime.tick.lags", lambda plane: False)
    with never_migrated(NORTH):
        for _ in range(5):
            DispatchHint.objects.all().delete()
            tick(rebuild=True)
            assert DispatchHint.objects.get().execution_id == here.pk


def test_what_may_be_on_a_plane_without_tables_is_unavailable_and_not_missing() -> None:
    here = plain.using(tenant="cid").start("here")
    with never_migrated(NORTH):
        assert Execution.objects.locate(here.pk).using == SOUTH
        missing = time_ordered_id()
        with pytest.raises(PlaneUnavailable):
            Execution.objects.locate(missing)
        assert durable("show", missing).code == 4
        called = durable("list", "--json")
        assert (called.code, [row["id"] for row in called.data]) == (4, [str(here.pk)])
        assert "planes migrate" in called.error
        assert [one.code for one in examine()] == ["lagging-migrations"]
        (row,) = (one for one in durable("planes", "list", "--json").data if one["name"] == "north")
        assert (row["reachable"], row["migrations_behind"], row["unfinished"]) == (True, 1, None)
    with pytest.raises(ExecutionNotFound):
        Execution.objects.locate(missing)

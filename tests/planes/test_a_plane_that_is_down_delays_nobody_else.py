"""A plane that cannot be reached is unavailable, not unknown; the others go on; its own work waits, uncounted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from django_durable import Context, Execution, PlaneUnavailable, step, workflow
from django_durable.models import DispatchHint
from django_durable.planes import breaker, bump_epoch, move_tenant
from django_durable.runtime.tick import tick
from tests.driving import drain
from tests.planes.conftest import NORTH

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@workflow
def plain(ctx: Context, name: str) -> str:
    return ctx.step(note, name)


@contextmanager
def down(alias: str) -> Iterator[None]:
    """Make a database unreachable for new connections, and end the one that is open."""
    connection = connections[alias]
    connection.close()
    key = "HOST" if connection.vendor == "postgresql" else "NAME"
    before = connection.settings_dict[key]
    connection.settings_dict[key] = "/nowhere/at/all"
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict[key] = before


def make_due() -> None:
    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")


def test_verbs_say_unavailable_and_never_not_found() -> None:
    execution = plain.using(tenant="ann", key="k").start("x")
    acts: list[Any] = [
        lambda: plain.using(tenant="ann").start("y"),
        lambda: plain.get("k", tenant="ann"),
        lambda: Execution.objects.locate(execution.pk),
        lambda: execution.signal("s"),
        lambda: execution.cancel(actor="op"),
        lambda: execution.pause(actor="op"),
        lambda: execution.retry(actor="op"),
        lambda: bump_epoch("ann"),
        lambda: move_tenant("ann", "south", actor="op"),
    ]
    with down(NORTH):
        for act in acts:
            with pytest.raises(PlaneUnavailable):
                act()
    breaker._open.clear()
    assert move_tenant("ann", "south", actor="op") == 1
    drain()
    assert Execution.objects.locate(execution.pk).output == "x"


def test_the_others_go_on_and_its_own_work_waits_uncounted(caplog: pytest.LogCaptureFixture) -> None:
    away, here = plain.using(tenant="ann").start("away"), plain.using(tenant="cid").start("here")
    with down(NORTH), caplog.at_level(logging.WARNING, "django_durable"):
        for _ in range(15):
            drain()
            tick()
            make_due()
            breaker._open.update({alias: (0.0, pause) for alias, (_until, pause) in breaker._open.items()})
        assert Execution.objects.locate(here.pk).output == "here"
        assert caplog.text.count("cannot be reached") == 1
        hint = DispatchHint.objects.get()
        assert (hint.state, hint.failures, hint.token) == (DispatchHint.State.LIVE, 0, None)
    breaker._open.clear()
    make_due()
    drain()
    assert Execution.objects.locate(away.pk).output == "away"
    assert Execution.objects.locate(away.pk).recoveries == 0


def test_an_open_breaker_asks_the_plane_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain.using(tenant="ann").start("away")
    with down(NORTH):
        drain()
        assert breaker.unreachable() == [NORTH]
        tried: list[int] = []
        monkeypatch.setattr(connections[NORTH], "connect", lambda: tried.append(1))
        make_due()
        for _ in range(5):
            drain()
        assert tried == []

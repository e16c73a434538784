"""Field report B96: a history that does not match the code is replayed for ever.

It is a state of its own: entered once, listed, left by nobody but other code or an operator.
"""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.models import Checkpoint, DispatchHint, SweepClaim
from django_durable.runtime.tick import tick
from tests.calling import durable
from tests.driving import claim, drain, make_due

pytestmark = pytest.mark.django_db

replays: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    replays.clear()


@step
def first() -> None: ...


@step
def second() -> None: ...


changed: set[str] = set()


@workflow
def parked(ctx: Context, name: str) -> str:
    replays.append(name)
    ctx.step(second if name in changed else first)
    ctx.sleep(60)
    return "end"


def everything() -> list[Any]:
    models = (Execution, Checkpoint, DispatchHint)
    return [list(model._default_manager.order_by("pk").values()) for model in models]


def test_tick_after_tick_changes_nothing_and_others_go_on() -> None:
    mismatched, other = parked.start("mismatched"), parked.start("other")
    drain()
    changed.add("mismatched")
    try:
        make_due()
        drain()
        assert replays == ["mismatched", "other", "mismatched", "other"]
        assert Execution.objects.locate(other.pk).output == "end"
        stopped = Execution.objects.locate(mismatched.pk)
        assert (stopped.status, stopped.recoveries, stopped.checkpoints.count()) == ("blocked", 0, 2)
        before = everything()
        for _ in range(30):
            # Every sweep's turn comes every time, and every hint is due.
            SweepClaim.objects.update(due_at="2000-01-01T00:00:00Z")
            tick()
            assert drain() == 0
            assert claim(blocked=True) == []
        assert everything() == before
        assert replays.count("mismatched") == 2

        assert [row["id"] for row in durable("list", "--status", "blocked", "--json").data] == [str(mismatched.pk)]
        [finding] = durable("doctor", "--json").data["findings"]
        assert (finding["code"], finding["executions"]) == ("blocked", [str(mismatched.pk)])
        told = durable("show", mismatched.pk).out
        assert "first" in told
        assert "second" in told
    finally:
        changed.clear()
    assert durable("retry", mismatched.pk, "--actor", "ann", "--reason", "old code deployed").code == 0
    drain()
    assert Execution.objects.locate(mismatched.pk).output == "end"
    assert durable("doctor", "--json").data["findings"] == []


def test_a_retry_without_other_code_stops_again_at_once() -> None:
    execution = parked.start("mismatched")
    drain()
    changed.add("mismatched")
    try:
        make_due()
        for attempt in range(1, 4):
            drain()
            row = Execution.objects.locate(execution.pk)
            assert (row.status, row.recoveries, row.checkpoints.count()) == ("blocked", 0, 2)
            assert len(replays) == 1 + attempt
            row.retry(actor="ann")
    finally:
        changed.clear()

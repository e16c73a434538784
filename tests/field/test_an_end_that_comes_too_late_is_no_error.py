"""Field report B32: the run is cancelled, timed out or taken over just before its body ends, in whatever way.

The one step that a turn reaches before its next append may still run: the contract says so.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import Context, Execution, FatalError, step, workflow
from django_durable.models import DeadLetter, DispatchHint
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lapse_leases, lease_of
from tests.field.rig.yard import Yard

ENDINGS = ["returns", "raises", "sleeps", "waits", "steps", "publishes"]


def test_a_worker_takes_a_cancel_for_normal_and_goes_on(yard: Yard) -> None:
    yard.durable["LEASE_SECONDS"] = 30
    worker = yard.worker("--concurrency", str(len(ENDINGS)))
    executions = {ending: yard.start("last_statement", ending, ending) for ending in ENDINGS}
    for ending in ENDINGS:
        yard.wait_for_effect(f"begin {ending}")
    for execution in executions.values():
        assert execution.cancel(actor="ann") is True
    before = {ending: _row(execution) for ending, execution in executions.items()}
    for ending in ENDINGS:
        yard.open(ending)
    after = [yard.start("three", str(number)) for number in range(len(ENDINGS))]
    for execution in after:
        yard.wait_for_status(execution, "completed")
    worker.terminate()
    assert worker.wait() == 0

    for ending, execution in executions.items():
        assert _row(execution) == before[ending]
        assert yard.reload(execution).output is None
    assert "steps-further" not in yard.begun()
    assert "ERROR" not in worker.stderr
    assert "Traceback" not in worker.stderr
    assert not DispatchHint.objects.exists()


def _row(execution: Execution[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row and its history, which nobody may change any more."""
    row = Execution.objects.locate(execution.pk)
    assert row.status == "cancelled"
    return dict(Execution.objects.filter(pk=row.pk).values().get()), row.history()


ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def effect(text: str) -> None:
    ran.append(text)


@step
def fails() -> None:
    raise FatalError("as asked")


LAST: dict[str, Callable[[Context], Any]] = {
    "returns": lambda ctx: None,
    "raises": lambda ctx: 1 / 0,
    "sleeps": lambda ctx: ctx.sleep(600),
    "waits": lambda ctx: ctx.wait_for_signal("never"),
    "breaks": lambda ctx: ctx.breakpoint(),
    "steps": lambda ctx: (ctx.step(effect, "late"), ctx.step(effect, "later")),
    "fails a step": lambda ctx: ctx.step(fails),
    "tags": lambda ctx: ctx.set_tags(late=True),
    "returns what cannot be stored": lambda ctx: (n for n in range(3)),
}


@workflow
def overtaken(ctx: Context, by: str, ending: str) -> Any:
    ctx.step(effect, "first")
    # In a context of its own, as from another process: a workflow body may not call verbs itself.
    contextvars.Context().run(OVERTAKING[by], ctx.id)
    return LAST[ending](ctx)


def taken_over(execution_id: Any) -> None:
    """Another worker has it, and has not done anything yet."""
    if Execution.objects.locate(execution_id).recoveries == 0:
        lapse_leases()
        assert len(claim()) == 1


def timed_out(execution_id: Any) -> None:
    """Its deadline passed while the body ran."""
    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
    QuerySet(Execution).update(deadline="2000-01-01T00:00:00Z")
    assert claim() == []


OVERTAKING: dict[str, Callable[[Any], object]] = {
    "a cancel": lambda pk: Execution.objects.locate(pk).cancel(actor="ann"),
    "another worker": taken_over,
    "its deadline": timed_out,
    "an undocumented DELETE": lambda pk: QuerySet(Execution).filter(pk=pk).delete(),
}


@pytest.mark.django_db
@pytest.mark.parametrize("ending", LAST)
@pytest.mark.parametrize("by", OVERTAKING)
def test_a_turn_that_is_no_longer_the_owner_writes_nothing_and_says_nothing(
    by: str, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    execution: Execution[Any] = overtaken.start(by, ending)
    [claimed] = claim()
    before: dict[str, Any] = {}
    original = OVERTAKING[by]

    def noted(pk: Any) -> None:
        original(pk)
        before["row"] = _rows()

    OVERTAKING[by] = noted
    try:
        run_turn(claimed, lease_of(claimed))
    finally:
        OVERTAKING[by] = original
    assert _rows() == before["row"]
    assert ran in (["first"], ["first", "late"])
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    if by != "an undocumented DELETE":
        assert Execution.objects.locate(execution.pk).output is None
    other = overtaken_not.start()
    drain()
    assert Execution.objects.locate(other.pk).status == "completed"


def _rows() -> list[Any]:
    return [
        list(QuerySet(Execution).order_by("pk").values()),
        list(DeadLetter.objects.order_by("pk").values()),
        list(DispatchHint.objects.order_by("pk").values()),
        [execution.history() for execution in Execution.objects.order_by("pk")],
    ]


@workflow
def overtaken_not(ctx: Context) -> None:
    ctx.step(effect, "next")

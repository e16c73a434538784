"""Field report B62: what is queued, sleeping, backing off or waiting runs out its whole delay after a cancel.

``tests/db/test_operators_act_once_and_by_name.py`` has the queued, sleeping, waiting and paused ones; here are the
others, and what is left of each in the database.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, ExecutionClosed, Retry, step, workflow
from django_durable.authoring import registry
from django_durable.models import Checkpoint, DispatchHint, Outbox
from django_durable.runtime.sweeps import rebuild_everything
from django_durable.runtime.unknown_work import block_unknown
from tests.calling import durable
from tests.driving import drain, make_due

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step(retry=Retry(max_attempts=5, initial=60))
def fails() -> None:
    ran.append("fails")
    raise ValueError("not yet")


@workflow
def resting(ctx: Context, how: str) -> str:
    if how == "sleeping":
        ctx.sleep(60)
    elif how == "backing off":
        ctx.step(fails)
    elif how == "waiting":
        ctx.wait_for_signal("go", timeout=60)
    elif how in ("waiting for ever", "timed"):
        ctx.wait_for_signal("go")
    ran.append("end")
    return "end"


@workflow
def gone(ctx: Context, how: str) -> str:
    ran.append("end")
    return "end"


def rest(how: str) -> Execution[Any]:
    if how == "blocked":
        execution = gone.start(how)
        registry.forget(gone)
        try:
            assert block_unknown("default") == 1
        finally:
            registry.add_workflow(gone)
        return execution
    chosen: dict[str, Any] = {"put off": {"run_after": 60}, "timed": {"timeout": 60}}.get(how, {})
    execution = resting.using(**chosen).start(how)
    if how not in ("queued", "put off"):
        drain()
    return execution


STATES = {
    "queued": "pending",
    "put off": "pending",
    "sleeping": "waiting",
    "backing off": "waiting",
    "waiting": "waiting",
    "waiting for ever": "waiting",
    "timed": "waiting",
    "blocked": "blocked",
}


@pytest.mark.parametrize("entry", ["code", "command", "rolled back, then code"])
@pytest.mark.parametrize(("how", "status"), STATES.items())
def test_it_is_cancelled_in_the_transaction_of_the_request(how: str, status: str, entry: str) -> None:
    execution = rest(how)
    execution = Execution.objects.locate(execution.pk)
    assert execution.status == status
    before = list(ran)
    if entry == "command":
        assert durable("cancel", execution.pk, "--actor", "ann").out == "cancelled\n"
    else:
        if entry.startswith("rolled back"):
            with pytest.raises(RuntimeError), transaction.atomic():
                execution.cancel(actor="ann")
                raise RuntimeError
            assert Execution.objects.locate(execution.pk).status == status
        assert execution.cancel(actor="ann") is True

    cancelled = Execution.objects.locate(execution.pk)
    assert cancelled.status == "cancelled"
    assert (cancelled.wake_at, cancelled.awaiting, cancelled.lease_token) == (None, "", None)
    assert not DispatchHint.objects.exists()
    assert not Outbox.objects.exists()
    assert not Checkpoint.objects.filter(status="pending").exists()
    with pytest.raises(ExecutionClosed):
        execution.signal("go", 1)
    make_due()
    assert rebuild_everything("default") == 0
    assert drain() == 0
    assert ran == before

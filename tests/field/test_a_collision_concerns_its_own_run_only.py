"""Field report B72: requeueing collides with a unique key, and the error stops all recovery.

A key belongs to the newest run of its chain, so that an older one that is retried finds it taken: it stays as it is
and the operator is told by whom. What goes wrong with one row of a recovery pass does not touch the others.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import Context, Execution, InvalidTransition, workflow
from django_durable.engine.transitions import recover
from django_durable.models import DeadLetter, DispatchHint
from tests.calling import durable
from tests.driving import claim, drain, lapse_leases

pytestmark = pytest.mark.django_db

broken: set[str] = set()


@pytest.fixture(autouse=True)
def _break() -> None:
    broken.clear()


@workflow
def orders(ctx: Context) -> str:
    if broken:
        raise ValueError("broken")
    ctx.wait_for_signal("go")
    return "done"


def superseded() -> tuple[Execution[Any], Execution[Any]]:
    """A failed run, and a newer one that has its key."""
    broken.add("broken")
    first = orders.using(key="k").start()
    drain()
    broken.clear()
    second = orders.using(key="k", on_conflict="restart").start()
    drain()
    return first, second


def row(execution: Execution[Any]) -> dict[str, Any]:
    return dict(Execution.objects.filter(pk=execution.pk).values().get())


def test_a_run_whose_key_has_gone_to_a_newer_one_stays_as_it_is_and_says_by_whom() -> None:
    first, second = superseded()
    before = row(first), row(second)
    with pytest.raises(InvalidTransition, match=f"superseded by {second.pk}"):
        first.retry(actor="ann")
    called = durable("retry", first.pk, "--actor", "ann")
    assert called.code == 1
    assert str(second.pk) in called.error
    assert (row(first), row(second)) == before
    assert DeadLetter.objects.get().retried_at is None
    assert not DispatchHint.objects.filter(execution_id=first.pk).exists()


def test_it_stays_superseded_after_the_newer_one_has_ended() -> None:
    first, second = superseded()
    second.signal("go")
    drain()
    with pytest.raises(InvalidTransition, match=str(second.pk)):
        first.retry(actor="ann")
    assert orders.get("k").pk == second.pk


def test_a_lost_run_that_was_superseded_in_the_meantime_is_recovered_with_fifty_others() -> None:
    """It cannot happen through the API: a key is given on only once its run has ended. A restore can do it."""
    lost, _newer = superseded()
    others = [orders.using(key=f"other {number}").start() for number in range(50)]
    assert len(claim(limit=100)) == 50
    QuerySet(Execution).filter(pk=lost.pk).update(
        status="running", lease_token="00000000-0000-4000-8000-000000000000", worker="gone"
    )
    hint = DispatchHint.objects.filter(execution_id=others[0].pk).get()
    hint.pk, hint.execution_id, hint.revision = lost.pk, lost.pk, Execution.objects.locate(lost.pk).revision
    hint.save(force_insert=True)
    lapse_leases()
    assert {claimed.id for claimed in claim(limit=100)} == {lost.pk, *(other.pk for other in others)}


def test_a_row_that_cannot_be_recovered_is_reported_and_the_fifty_others_go_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = [orders.start() for _ in range(51)]
    assert len(claim(limit=100)) == 51
    odd = executions[20]
    original = recover.note_takeover

    def fails_for_one(row: Any, *args: Any) -> str:
        if row["id"] == odd.pk:
            raise ArithmeticError("of this row alone")
        return original(row, *args)

    monkeypatch.setattr(recover, "note_takeover", fails_for_one)
    lapse_leases()
    with caplog.at_level(logging.ERROR, "django_durable"):
        recovered = claim(limit=100)
    assert {claimed.id for claimed in recovered} == {execution.pk for execution in executions} - {odd.pk}
    assert {row(execution)["recoveries"] for execution in executions if execution is not odd} == {1}
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"execution {odd.pk} could not be claimed (ArithmeticError)"]
    # It is tried again once its own lease is over, alone.
    assert claim(limit=100) == []

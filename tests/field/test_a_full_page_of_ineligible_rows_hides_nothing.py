"""Field report B12: thousands of rows that may not be touched, and a few behind them that must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from django_durable import Context, Execution, workflow
from django_durable.authoring import registry
from django_durable.authoring.registry import code_digest
from django_durable.models import DeadLetter, DispatchHint
from django_durable.models.execution import ACTIVE
from django_durable.runtime import stretch as stretching
from django_durable.runtime import sweeps, unknown_work
from tests.driving import USING, claim
from tests.field.rig.bulk import FAR, LONG_AGO, executions_of, hints_of, ids

pytestmark = pytest.mark.django_db

MANY, FEW, BATCH = 800, 50, 100


@workflow
def plain(ctx: Context) -> None: ...


@workflow
def gone(ctx: Context) -> None: ...


@pytest.fixture(autouse=True)
def _from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps begin at the first page."""
    monkeypatch.setattr("django_durable.runtime.stretch._cursors", {})


@pytest.fixture
def without_code() -> Iterator[None]:
    """This process does not know ``gone``."""
    registry.forget(gone)
    try:
        yield
    finally:
        registry.add_workflow(gone)


def leased_far_ahead() -> None:
    """Running elsewhere, and alive."""
    rows = executions_of(plain, MANY, status="running", lease_token=uuid4())
    hints_of(rows, FAR, leased=True)


def sleeping() -> None:
    """Waiting for a time far ahead."""
    hints_of(executions_of(plain, MANY, status="waiting", wake_at=FAR), FAR)


def without_hint() -> None:
    """Exempt from everything: waiting for a message."""
    executions_of(plain, MANY, status="waiting", awaiting='["signal:go"]')


def blocked_by_this_code() -> None:
    """Due, but this code could not go on with them."""
    rows = executions_of(plain, MANY, status="blocked", blocked_by=code_digest())
    hints_of(rows, LONG_AGO, state=DispatchHint.State.BLOCKED, avoid=code_digest())


def of_other_code() -> None:
    """Due before all others, for workers that know them."""
    hints_of(executions_of(gone, MANY), LONG_AGO)


def dangling() -> None:
    """Hints of executions that do not exist, due before all others."""
    unsaved: list[Execution[Any]] = [
        Execution(pk=uuid4(), workflow=plain.name, version="1", queue="durable") for _ in range(MANY)
    ]
    hints_of(unsaved, LONG_AGO)


INELIGIBLE: list[Callable[[], None]] = [
    leased_far_ahead,
    sleeping,
    without_hint,
    blocked_by_this_code,
    of_other_code,
]


@pytest.mark.usefixtures("without_code")
@pytest.mark.parametrize("fill", INELIGIBLE, ids=lambda fill: fill.__name__)
def test_one_pass_recovers_what_has_lapsed_and_touches_nothing_else(fill: Callable[[], None]) -> None:
    fill()
    lapsed = executions_of(plain, FEW, status="running", lease_token=uuid4(), worker="lost:1")
    hints_of(lapsed, LONG_AGO.replace(year=2001), leased=True)
    before = set(DispatchHint.objects.values_list("id", "token", "due_at"))

    claims = claim(BATCH)

    assert {claimed.id for claimed in claims} == ids(lapsed)
    assert all(claimed.row["recoveries"] == 1 for claimed in claims)
    changed = set(DispatchHint.objects.values_list("id", "token", "due_at")) - before
    assert len(changed) == FEW
    assert claim(BATCH) == []


def test_hints_of_vanished_executions_are_cleared_batch_by_batch_on_the_way() -> None:
    dangling()
    due = executions_of(plain, FEW)
    hints_of(due, LONG_AGO.replace(year=2001))
    found: set[Any] = set()
    for passes in range(MANY // BATCH + 1):
        found |= {claimed.id for claimed in claim(BATCH)}
        if found == ids(due):
            break
    assert found == ids(due), passes


@pytest.mark.usefixtures("without_code")
def test_unknown_work_is_blocked_behind_a_page_of_what_cannot_be() -> None:
    hints_of(executions_of(gone, 2 * stretching.BATCH, status="paused", deadline=FAR), LONG_AGO)
    hints_of([Execution(pk=uuid4(), workflow=gone.name, version="1", queue="durable") for _ in range(FEW)], LONG_AGO)
    queued = executions_of(gone, FEW)
    hints_of(queued, LONG_AGO.replace(year=2001))
    late = executions_of(gone, FEW, status="paused", deadline=LONG_AGO)
    hints_of(late, LONG_AGO.replace(year=2002))
    assert unknown_work.block_unknown(USING) == 2 * FEW
    assert set(Execution.objects.filter(status="blocked").values_list("pk", flat=True)) == ids(queued)
    assert set(Execution.objects.filter(status="timed_out").values_list("pk", flat=True)) == ids(late)
    assert unknown_work.block_unknown(USING) == 0


@pytest.mark.parametrize("stretch", [stretching.STRETCH, 200])
def test_lost_hints_are_rebuilt_behind_thousands_that_are_not_lost(
    stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_durable.runtime.stretch.STRETCH", stretch)
    monkeypatch.setattr("django_durable.runtime.stretch.BATCH", BATCH)
    leased_far_ahead()
    sleeping()
    without_hint()
    lost = executions_of(plain, 2 * stretching.BATCH + FEW)
    waiting = executions_of(plain, FEW, status="waiting", wake_at=LONG_AGO)
    passes = 0
    while DispatchHint.objects.filter(execution_id__in=ids([*lost, *waiting])).count() < len(lost) + len(waiting):
        assert sweeps.rebuild_hints(USING) <= len(ACTIVE) * stretching.BATCH
        passes += 1
        assert passes <= max(3, -(-2 * (MANY + FEW) // stretch))
    assert sweeps.rebuild_everything(USING) == 0


@pytest.mark.parametrize("stretch", [stretching.STRETCH, 200])
def test_hints_of_the_ended_are_dropped_behind_thousands_of_the_living(
    stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_durable.runtime.stretch.STRETCH", stretch)
    sleeping()
    hints_of(executions_of(plain, FEW, status="completed"), FAR)
    dropped = 0
    for _ in range(-(-(MANY + FEW) // stretch)):
        dropped += sweeps.drop_dangling_hints(USING)
    assert dropped == FEW
    assert DispatchHint.objects.count() == MANY


def test_missing_letters_are_written_behind_thousands_that_are_not_missing() -> None:
    ended = executions_of(plain, MANY, status="failed")
    DeadLetter.objects.bulk_create(
        [
            DeadLetter(
                execution_id=e.pk, generation=1, workflow=e.workflow, version="1", status="failed", created_at=FAR
            )
            for e in ended
        ]
    )
    executions_of(plain, FEW, status="dead")
    assert sweeps.write_missing_letters(USING) == FEW
    assert sweeps.write_missing_letters(USING) == 0

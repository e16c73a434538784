"""Every fault gives its own finding and no other, and what the finding advises mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, workflow
from django_durable.authoring import registry
from django_durable.clock import read_now
from django_durable.ids import time_ordered_id
from django_durable.models import DispatchHint, Outbox, SweepClaim
from django_durable.operators.doctor import examine, liveness_violations
from django_durable.operators.doctor.finding import LISTED
from django_durable.runtime.tick import tick
from tests.calling import durable
from tests.driving import USING, claim, connection, drain, lapse_leases

pytestmark = pytest.mark.django_db

rows = Execution._base_manager


@workflow("doctor.listen")
def listen(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("doctor.listen_briefly")
def listen_briefly(ctx: Context) -> None:
    ctx.wait_for_signal("go", timeout=3600)


@workflow("doctor.nap")
def nap(ctx: Context) -> None:
    ctx.sleep(3600)


@workflow("doctor.end")
def end(ctx: Context) -> None: ...


@pytest.fixture(autouse=True)
def _ticked() -> None:
    """Somebody sweeps, so that only the fault of the test is one."""
    tick()


def found() -> dict[str, list[UUID]]:
    return {finding.code: list(finding.executions) for finding in examine()}


def ago(seconds: float) -> Any:
    return read_now(USING) - timedelta(seconds=seconds)


def asleep() -> Execution[Any]:
    execution = nap.start()
    drain()
    return execution


def unhinted(start: Callable[[], Execution[Any]], *, driven: bool) -> Execution[Any]:
    execution = start()
    if driven:
        drain()
    assert DispatchHint.objects.filter(execution_id=execution.pk).delete()[0] == 1
    return execution


# -- liveness ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "driven"),
    [
        (listen.start, False),
        (nap.start, True),
        (listen_briefly.start, True),
        (listen.using(timeout=3600).start, True),
        (listen.using(run_after=3600).start, False),
    ],
    ids=["pending", "sleeping", "waiting with a timeout", "waiting with a deadline", "delayed"],
)
def test_an_execution_without_its_hint_is_lost_until_a_rebuild(
    start: Callable[[], Execution[Any]], driven: bool
) -> None:
    lost = unhinted(start, driven=driven)

    assert found() == {"liveness": [lost.pk]}
    assert liveness_violations(USING) == [lost.pk]
    tick(rebuild=True)
    assert found() == {}


@pytest.mark.parametrize("awaiting", ["", "[]"])
def test_waiting_for_nothing_is_lost(awaiting: str) -> None:
    execution = listen.start()
    drain()
    assert found() == {}
    rows.filter(pk=execution.pk).update(awaiting=awaiting)

    assert found() == {"liveness": [execution.pk]}


@pytest.mark.parametrize("stale", ["revision", "epoch"])
def test_a_stale_hint_carries_nothing_on(stale: str) -> None:
    execution = asleep()
    DispatchHint.objects.update(**{stale: getattr(DispatchHint.objects.get(), stale) - 1})

    assert found() == {"liveness": [execution.pk]}


def test_an_intent_on_its_way_to_the_spine_carries_on() -> None:
    execution = unhinted(nap.start, driven=True)
    post(Execution.objects.locate(execution.pk))

    assert found() == {}


def test_a_paused_execution_awaits_its_operator() -> None:
    execution = listen.start()
    execution.pause(actor="anna")
    assert not DispatchHint.objects.exists()

    assert found() == {}


def test_liveness_is_one_query() -> None:
    asleep()
    unhinted(nap.start, driven=True)
    with CaptureQueriesContext(connection) as queries:
        assert len(liveness_violations(USING)) == 1
    assert len(queries) == 1


# -- claims --------------------------------------------------------------------------------------------------


def test_a_claim_without_its_hint_is_found_until_a_rebuild() -> None:
    execution = listen.start()
    claim()
    DispatchHint.objects.all().delete()

    assert found() == {"running-without-hint": [execution.pk]}
    assert liveness_violations(USING) == [execution.pk]
    tick(rebuild=True)
    assert found() == {}


def test_a_lapsed_lease_is_found_until_a_worker_takes_over() -> None:
    execution = listen.start()
    claim()
    lapse_leases()

    assert found() == {"lapsed-lease": [execution.pk]}
    drain()
    assert found() == {}


def test_a_lease_has_to_be_over_for_a_whole_lease() -> None:
    listen.start()
    claim()
    DispatchHint.objects.update(due_at=ago(29))
    assert found() == {}
    DispatchHint.objects.update(due_at=ago(31))
    assert list(found()) == ["lapsed-lease"]


# -- work that nobody takes ----------------------------------------------------------------------------------


def test_ready_work_that_nobody_takes_names_its_queues() -> None:
    old = listen.using(queue="slow").start()
    older = listen.using(queue="night").start()
    listen.start()
    DispatchHint.objects.filter(execution_id=old.pk).update(due_at=ago(61))
    DispatchHint.objects.filter(execution_id=older.pk).update(due_at=ago(100))

    assert found() == {"overdue": [older.pk, old.pk]}
    (finding,) = examine()
    assert finding.details["queues"] == ["night", "slow"]
    assert 100 <= finding.details["oldest_seconds"] < 160
    assert "night, slow" in finding.explanation
    drain()
    assert found() == {}


def test_an_overdue_timer_is_work_that_nobody_takes() -> None:
    execution = asleep()
    DispatchHint.objects.update(due_at=ago(61))

    assert found() == {"overdue": [execution.pk]}


def test_a_queue_where_somebody_works_is_not_stuck_until_it_starves() -> None:
    for _ in range(3):
        listen.start()
    assert len(claim(limit=1)) == 1
    waiting = DispatchHint.objects.filter(token=None)
    waiting.update(due_at=ago(120))
    assert found() == {}

    waiting.update(due_at=ago(901))
    assert list(found()) == ["overdue"]


def test_a_worker_between_two_turns_is_seen_by_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        listen.start()
    DispatchHint.objects.update(due_at=ago(120))

    untaken = [DispatchHint.objects.order_by("due_at")[0].pk]

    def take_one(_seconds: float) -> None:
        """A turn that is over before the next look."""
        if untaken:
            DispatchHint.objects.filter(pk=untaken.pop()).update(due_at=ago(-60))

    monkeypatch.setattr("django_durable.operators.doctor.queued.time.sleep", take_one)
    assert found() == {}


def test_the_work_of_one_queue_excuses_no_other() -> None:
    busy = listen.using(queue="busy").start()
    listen.using(queue="dead").start()
    claim(limit=10)
    DispatchHint.objects.exclude(execution_id=busy.pk).update(token=None, due_at=ago(120))
    rows.exclude(pk=busy.pk).update(status="pending", lease_token=None)

    (finding,) = examine()
    assert (finding.code, finding.details["queues"]) == ("overdue", ["dead"])


# -- the rest ------------------------------------------------------------------------------------------------


@pytest.fixture
def forgotten() -> Iterator[Callable[[Any], None]]:
    taken: list[Any] = []

    def forget(flow: Any) -> None:
        taken.append(flow)
        registry.forget(flow)

    yield forget
    for flow in taken:
        registry.add_workflow(flow)


def test_unknown_workflows_are_listed_as_blocked(forgotten: Callable[[Any], None]) -> None:
    lost = sorted(listen.start().pk for _ in range(LISTED + 5))
    forgotten(listen)
    SweepClaim.objects.filter(name="unknown").update(due_at=ago(1))
    tick()

    (finding,) = examine()
    assert (finding.code, finding.count) == ("blocked", LISTED + 5)
    assert list(finding.executions) == lost[:LISTED]


def test_a_parked_hint_is_found() -> None:
    execution = asleep()
    DispatchHint.objects.update(state=DispatchHint.State.PARKED, due_at=ago(3600), category="plane")

    assert found() == {"parked": [execution.pk]}


def test_the_hint_of_a_missing_execution_is_found_until_its_sweep() -> None:
    missing = time_ordered_id()
    hint = DispatchHint.objects.create(
        execution_id=missing, revision=1, queue="durable", definition="0" * 16, due_at=ago(3600)
    )

    assert found() == {"dangling-hint": [missing]}
    hint.token = time_ordered_id()
    hint.save()
    assert found() == {"dangling-hint": [missing]}
    hint.token, hint.state = None, DispatchHint.State.PARKED
    hint.save()
    assert found() == {"dangling-hint": [missing]}
    SweepClaim.objects.filter(name="dangling").update(due_at=ago(1))
    tick()
    assert found() == {}


def test_the_hint_of_an_ended_execution_is_found() -> None:
    execution = end.start()
    drain()
    DispatchHint.objects.create(
        execution_id=execution.pk, revision=9, queue="durable", definition="0" * 16, due_at=ago(0)
    )

    assert found() == {"dangling-hint": [execution.pk]}


def post(execution: Execution[Any], *, age: float = 0.0) -> None:
    Outbox.objects.create(
        execution_id=execution.pk,
        revision=execution.revision,
        epoch=0,
        queue="durable",
        priority=0,
        definition="0" * 16,
        due_at=ago(0),
        created_at=ago(age),
    )


def test_an_outbox_row_is_stranded_after_a_minute() -> None:
    on_its_way, stranded = asleep(), asleep()
    post(on_its_way, age=50)
    assert found() == {}
    post(stranded, age=61)

    assert found() == {"stranded-outbox": [stranded.pk]}


def test_silence_is_found_where_there_is_work() -> None:
    SweepClaim.objects.update(ran_at=ago(61), due_at=ago(60))
    assert found() == {}
    listen.start()
    drain()
    assert found() == {}, "what awaits a message needs no tick"
    asleep()

    assert found() == {"no-tick": []}
    tick()
    assert found() == {}


def test_silence_since_ever_counts_from_the_oldest_work() -> None:
    SweepClaim.objects.all().delete()
    execution = asleep()
    assert found() == {}
    rows.filter(pk=execution.pk).update(created_at=ago(61))

    assert found() == {"no-tick": []}


def test_slow_ticks_are_given_their_time(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "TICK_SECONDS": 30}
    asleep()
    SweepClaim.objects.update(ran_at=ago(290))
    assert found() == {}
    SweepClaim.objects.update(ran_at=ago(310))
    assert found() == {"no-tick": []}


@pytest.mark.django_db(transaction=True)  # within a transaction PostgreSQL shows the sessions of its first look
def test_an_old_snapshot_is_found_on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.operators.doctor.surroundings.SNAPSHOT_SECONDS", 0.0)
    assert found() == {}
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            if other.vendor == "postgresql":
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT 1")
            # SQLite keeps no dead rows for a reader: there is nothing to find.
            assert list(found()) == (["old-snapshot"] if other.vendor == "postgresql" else [])
        other.rollback()
        assert found() == {}
    finally:
        other.close()


# -- what a finding looks like -------------------------------------------------------------------------------


def test_a_finding_names_twenty_executions_and_counts_all() -> None:
    lost = sorted(unhinted(listen.start, driven=False).pk for _ in range(LISTED + 3))

    called = durable("doctor", "--json")
    assert called.code == 5
    assert set(called.data) == {"findings", "stats"}
    (finding,) = called.data["findings"]
    assert (finding["code"], finding["severity"], finding["count"]) == ("liveness", "error", LISTED + 3)
    assert finding["executions"] == [str(pk) for pk in lost[:LISTED]]
    assert called.data["stats"]["statuses"]["pending"] == LISTED + 3


def test_two_faults_are_two_findings_in_one_text() -> None:
    lost = unhinted(listen.start, driven=False)
    listen.start()
    claim()
    lapse_leases()

    called = durable("doctor")
    assert called.code == 5
    assert called.error == "2 finding(s): liveness, lapsed-lease"
    assert "ERROR liveness (1)\n  1 execution(s) have no due time" in called.out
    assert f"    {lost.pk}\n" in called.out
    assert "WARNING lapsed-lease (1)" in called.out

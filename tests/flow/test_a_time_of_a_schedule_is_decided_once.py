"""A fire is its schedule and its nominal time; each is decided once, in sight, whatever happens around it."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from django_durable import Execution, workflow
from django_durable.authoring.context import Context
from django_durable.authoring.registry import forget
from django_durable.clock import read_now
from django_durable.models import ScheduleFire
from django_durable.operators.schedules.declaring import forget_declared
from django_durable.operators.schedules.firing import fire_next
from tests.driving import USING, drain
from tests.flow.flows import later, long, move_to, outcomes, report, row, tick

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_declaration_becomes_a_row_and_fires_at_its_times() -> None:
    report.schedule("nightly", cron="30 2 * * *", timezone="Europe/Berlin", args=("long",))
    tick()
    first = row("nightly").next_at
    assert tick() == 0
    move_to(first)
    tick()
    tick()
    drain()
    [execution] = Execution.objects.using(USING).filter(workflow="flow.report")
    assert execution.output == ["long", first]
    assert execution.scheduled_for == first
    assert outcomes("nightly") == [("started", "")]
    [fire] = ScheduleFire.objects.using(USING).all()
    assert (fire.execution_id, fire.nominal_at) == (execution.pk, first)
    assert fire.late_seconds < 30
    assert row("nightly").next_at > first


def test_what_no_schedule_started_is_scheduled_for_nothing() -> None:
    execution = report.using(run_after=0).start()
    drain()
    assert Execution.objects.using(USING).get(pk=execution.pk).output == ["short", None]


def test_a_stale_look_at_a_row_fires_nothing_again() -> None:
    report.schedule("hourly", every=3600)
    tick()
    later(hours=1)
    stale, other = row("hourly"), row("hourly")
    assert fire_next(USING, stale) is True
    assert fire_next(USING, other) is False
    assert outcomes("hourly") == [("started", "")]


def test_an_interval_keeps_its_phase_over_restarts_and_new_declarations() -> None:
    report.schedule("often", every=timedelta(hours=7))
    tick()
    anchor = row("often").anchor_at
    for _ in range(5):
        later(hours=5)
        forget_declared()  # a deployment
        report.schedule("often", every=timedelta(hours=7))
        tick()
    fires = ScheduleFire.objects.using(USING).order_by("nominal_at")
    assert [(fire.nominal_at - anchor).total_seconds() / 3600 for fire in fires] == [7, 14, 21]


def test_a_schedule_that_is_made_anew_starts_no_time_again() -> None:
    report.schedule("nightly", cron="0 2 * * *", timezone="UTC")
    tick()
    move_to(row("nightly").next_at)
    tick()
    move_to(row("nightly").next_at - timedelta(hours=12))
    report.schedules.clear()
    row("nightly").remove(actor="ann")
    report.schedule("nightly", cron="0 2 * * *", timezone="UTC")
    tick()
    first = row("nightly").next_at - timedelta(days=1)
    row("nightly").backfill(first, first, actor="ann")
    tick()
    assert Execution.objects.using(USING).filter(workflow="flow.report").count() == 1


def test_jitter_delays_each_time_by_as_much_whoever_asks() -> None:
    report.schedule("spread", every=3600, jitter=600, overlap="allow")
    tick()
    due = []
    for _ in range(6):
        found = row("spread")
        assert timedelta() <= found.due_at - found.next_at <= timedelta(seconds=600)
        due.append(found.due_at - found.next_at)
        move_to(found.due_at - timedelta(seconds=1))
        assert tick() == 0
        move_to(found.due_at)
        assert tick() == 1
    assert len(set(due)) > 1
    assert set(outcomes("spread")) == {("started", "")}


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("none", [("skipped", "missed")] * 5),
        ("latest", [("skipped", "missed")] * 4 + [("started", "")]),
        ("all", [("started", "")] * 5),
        (("all", 2), [("skipped", "missed")] * 3 + [("started", "")] * 2),
    ],
)
def test_what_was_missed_is_made_good_as_declared(catch_up: str, expected: list[tuple[str, str]]) -> None:
    report.schedule("hourly", every=3600, catch_up=catch_up, overlap="allow")
    tick()
    later(hours=5, minutes=20)
    tick()
    assert outcomes("hourly") == expected
    later(minutes=40)
    tick()
    assert outcomes("hourly") == [*expected, ("started", "")]


def test_how_late_a_time_was_fired_is_recorded() -> None:
    report.schedule("hourly", every=3600)
    tick()
    later(hours=1, minutes=20)
    tick()
    [fire] = ScheduleFire.objects.using(USING).all()
    assert 1200 <= fire.late_seconds < 1230


def test_very_many_missed_times_share_a_row() -> None:
    report.schedule("often", every=1, overlap="allow")
    tick()
    first = row("often").next_at
    later(days=30)
    tick()
    fires = list(ScheduleFire.objects.using(USING).order_by("nominal_at"))
    assert len(fires) < 400
    assert fires[0].nominal_at == first
    assert fires[0].through_at is not None
    assert fires[0].through_at + timedelta(seconds=1) == fires[1].nominal_at
    assert fires[-1].outcome == "started"


def test_overlap_skip_leaves_a_time_out() -> None:
    long.schedule("hourly", every=3600)
    ends(["started", "skipped"], reason="overlap")


def test_overlap_allow_starts_beside() -> None:
    long.schedule("hourly", every=3600, overlap="allow")
    ends(["started", "started"])


def test_overlap_queue_starts_after_the_running_one() -> None:
    long.schedule("hourly", every=3600, overlap="queue")
    ends(["started", "queued"])
    later(hours=1)
    tick()
    assert [outcome for outcome, _reason in outcomes("hourly")] == ["started", "queued", "queued"]
    for number in (2, 3):
        current = Execution.objects.using(USING).active().get()
        current.signal("end")
        drain()
        tick()
        assert [outcome for outcome, _reason in outcomes("hourly")].count("started") == number
    drain()
    Execution.objects.using(USING).active().get().signal("end")
    drain()
    times = [e.scheduled_for for e in Execution.objects.using(USING).order_by("pk")]
    assert times == sorted(times)  # type: ignore[type-var]


def test_overlap_cancel_running_ends_the_earlier_one_with_a_reason() -> None:
    from django_durable.models import OperatorNote

    long.schedule("hourly", every=3600, overlap="cancel_running")
    ends(["started", "started"])
    first, second = Execution.objects.using(USING).order_by("pk")
    assert (first.status, second.status) == ("cancelled", "waiting")
    note = OperatorNote.objects.using(USING).get(execution_id=first.pk)
    assert note.actor == "schedule hourly"
    assert row("hourly").last_at is not None
    assert str(row("hourly").last_at.isoformat()) in note.reason  # type: ignore[union-attr]


def ends(expected: list[str], reason: str = "") -> None:
    tick()
    for _ in range(2):
        later(hours=1)
        tick()
        drain()
    assert [outcome for outcome, _reason in outcomes("hourly")] == expected
    assert outcomes("hourly")[-1][1] == reason


def test_a_run_that_was_continued_is_still_running() -> None:
    @workflow("flow.chain")
    def chain(ctx: Context, n: int = 0) -> object:
        if n == 0:
            ctx.continue_as_new(1)
        return ctx.wait_for_signal("end")

    try:
        chain.schedule("hourly", every=3600)
        ends(["started", "skipped"], reason="overlap")
    finally:
        forget(chain)


def test_a_start_that_is_refused_is_an_outcome_and_stops_no_other() -> None:
    from django_durable.operators.schedules.verbs import add

    @workflow("flow.gone")
    def gone(ctx: Context, n: int) -> None: ...

    @workflow("flow.other")
    def other(ctx: Context, n: int) -> None: ...

    add("unknown", "flow.gone", arguments={"n": 1}, every=3600, actor="ann")
    add("unfit", "flow.other", arguments={"n": 1}, every=3600, actor="ann")
    forget(gone)
    forget(other)

    @workflow("flow.other", version="2")
    def newer(ctx: Context) -> None: ...

    try:
        report.schedule("fine", every=3600)
        tick()
        later(hours=1, seconds=5)
        tick()
        assert outcomes("unknown") == []  # a half-done deployment may know it elsewhere
        assert outcomes("unfit") == [("failed", "")]
        assert outcomes("fine") == [("started", "")]
        later(minutes=2)
        tick()
        assert outcomes("unknown") == [("failed", "")]
        fire = ScheduleFire.objects.using(USING).get(schedule__name="unknown")
        assert fire.error.startswith("UnknownWorkflow: ")
    finally:
        forget(newer)


def test_the_newest_version_is_looked_up_when_it_fires() -> None:
    report.schedule("hourly", every=3600)
    tick()

    @workflow("flow.report", version="2")
    def newer(ctx: Context, kind: str = "") -> str:
        return "newer"

    try:
        later(hours=1)
        tick()
        drain()
        assert Execution.objects.using(USING).get().output == "newer"
    finally:
        forget(newer)


def test_the_nominal_time_is_in_utc_and_aware() -> None:
    report.schedule("hourly", every=3600)
    tick()
    later(hours=1)
    tick()
    drain()
    moment = Execution.objects.using(USING).get().output[1]
    assert moment.utcoffset() == timedelta()
    assert moment <= read_now(USING).astimezone(UTC)

"""Operators pause, edit, trigger and backfill; code and they do not fight, and nothing is started twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_durable import Execution, InvalidTransition
from django_durable.authoring.registry import forget
from django_durable.authoring.workflow import Workflow
from django_durable.clock import read_now
from django_durable.errors import ScheduleNotFound
from django_durable.models import OperatorAction, OperatorNote, Schedule, ScheduleFire
from django_durable.operators.schedules.declaring import forget_declared
from tests.calling import durable
from tests.driving import USING, drain
from tests.flow.flows import later, long, move_to, outcomes, report, row, tick

pytestmark = pytest.mark.django_db(transaction=True)


def declared(name: str = "hourly", **options: object) -> Schedule:
    report.schedules.clear()
    report.schedule(name, **{"every": 3600, "overlap": "allow", **options})  # type: ignore[arg-type]
    forget_declared()
    tick()
    return row(name)


# -- code and operators ----------------------------------------------------------------------------------------------


def test_an_operators_edit_stays_until_the_declaration_changes() -> None:
    declared().edit(cron="0 5 * * *", timezone="Asia/Kolkata", actor="ann")
    declared()  # deployed again, unchanged
    assert (row("hourly").cron, row("hourly").timezone) == ("0 5 * * *", "Asia/Kolkata")
    declared(every=7200)
    assert (row("hourly").cron, row("hourly").every_seconds) == ("", 7200)


def test_a_pause_is_the_operators_whatever_the_code_says() -> None:
    declared().pause(actor="ann")
    declared(every=7200)
    assert row("hourly").is_paused


def test_an_edit_neither_repeats_nor_loses_a_time() -> None:
    before = declared()
    first = before.next_at
    move_to(first)
    tick()
    row("hourly").edit(every=1800, actor="ann")
    tick()
    assert [fire.nominal_at for fire in ScheduleFire.objects.using(USING).all()] == [first]
    move_to(first + timedelta(seconds=1800))
    row("hourly").edit(every=5400, actor="ann")  # a time has come that nobody has fired yet
    tick()
    tick()
    times = list(ScheduleFire.objects.using(USING).order_by("nominal_at").values_list("nominal_at", flat=True))
    assert times == [first, first + timedelta(seconds=1800)]


def test_a_declaration_that_moves_to_another_workflow_stays_the_same_schedule() -> None:
    before = declared(cron="0 2 * * *", every=None, timezone="UTC")
    move_to(before.next_at)
    tick()
    report.schedules.clear()
    long.schedule("hourly", cron="0 2 * * *", timezone="UTC", overlap="allow")
    forget_declared()
    tick()
    tick()
    assert row("hourly").pk == before.pk
    assert row("hourly").workflow == "flow.long"
    assert outcomes("hourly") == [("started", "")]


def test_a_schedule_whose_declaration_is_gone_is_left_alone_and_told() -> None:
    declared()
    report.schedules.clear()
    later(hours=3)
    assert tick() == 0
    assert outcomes("hourly") == []
    [finding] = durable("doctor", json=True).data["findings"]
    assert (finding["code"], finding["details"]) == ("undeclared-schedule", {"schedules": ["hourly"]})
    row("hourly").remove(actor="ann")
    assert not Schedule.objects.using(USING).exists()


def test_what_the_code_declares_cannot_be_removed() -> None:
    with pytest.raises(InvalidTransition, match="declared in code"):
        declared().remove(actor="ann")


# -- pause -----------------------------------------------------------------------------------------------------------


def test_times_of_a_paused_schedule_are_skipped_in_sight() -> None:
    declared().pause(actor="ann", reason="audit")
    later(hours=2, minutes=5)
    tick()
    row("hourly").resume(actor="bob")
    later(hours=1)
    tick()
    assert outcomes("hourly") == [("skipped", "paused")] * 2 + [("started", "")]


def test_resume_catches_up_nothing_also_where_nothing_has_ticked() -> None:
    declared(catch_up="all").pause(actor="ann")
    later(hours=2, minutes=5)
    row("hourly").resume(actor="bob")
    tick()
    assert outcomes("hourly") == [("skipped", "paused")] * 2


def test_a_second_pause_is_told_who_was_first() -> None:
    schedule = declared()
    schedule.pause(actor="ann")
    with pytest.raises(InvalidTransition, match="by ann") as refused:
        schedule.pause(actor="bob")
    assert refused.value.actor == "ann"
    schedule.resume(actor="bob")
    with pytest.raises(InvalidTransition, match="not paused"):
        schedule.resume(actor="bob")


def test_each_act_needs_an_actor_and_is_noted_with_its_reason() -> None:
    schedule = declared()
    with pytest.raises(ValueError, match="actor"):
        schedule.pause(actor="")
    schedule.pause(actor="ann", reason="audit")
    schedule.trigger(actor="ann")
    notes = OperatorNote.objects.using(USING).filter(execution_id=schedule.pk).order_by("pk")
    assert [(note.verb, note.actor, note.reason) for note in notes] == [
        ("pause_schedule", "ann", "audit"),
        ("trigger_schedule", "ann", ""),
    ]
    assert OperatorAction.objects.filter(execution_id=schedule.pk).count() == 2


def test_rows_are_changed_by_verbs_only() -> None:
    schedule = declared()
    for forbidden in (schedule.save, schedule.delete, Schedule.objects.create):
        with pytest.raises(TypeError, match="schedule"):
            forbidden()


# -- trigger and backfill --------------------------------------------------------------------------------------------


def test_trigger_starts_now_whatever_runs_and_later_times_see_it() -> None:
    long.schedule("long", every=3600)
    tick()
    row("long").pause(actor="ann")
    execution = row("long").trigger(actor="ann")
    assert abs(execution.scheduled_for - read_now(USING)) < timedelta(seconds=10)  # type: ignore[operator]
    row("long").resume(actor="ann")
    drain()
    later(hours=1)
    tick()
    assert outcomes("long") == [("started", ""), ("skipped", "overlap")]


def test_backfill_is_inclusive_and_starts_what_was_not_started() -> None:
    schedule = declared(cron="0 2 * * *", every=None, timezone="UTC", catch_up="none")
    move_to(schedule.next_at)
    tick()
    first = row("hourly").last_at
    assert first is not None
    move_to(first + timedelta(days=3, hours=1))
    tick()
    assert [outcome for outcome, _reason in outcomes("hourly")] == ["started", "skipped", "skipped", "skipped"]
    fires = row("hourly").backfill(first - timedelta(days=1), first + timedelta(days=2), actor="ann")
    assert [fire.nominal_at for fire in fires] == [first + timedelta(days=n) for n in (-1, 0, 1, 2)]
    assert [fire.outcome for fire in fires] == ["started"] * 4
    assert [fire.actor for fire in fires] == ["ann", "", "ann", "ann"]
    again = row("hourly").backfill(first - timedelta(days=1), first + timedelta(days=2), actor="ann")
    assert [fire.execution_id for fire in again] == [fire.execution_id for fire in fires]
    assert Execution.objects.using(USING).count() == 4


def test_backfill_of_what_does_not_overlap_runs_one_after_the_other() -> None:
    schedule = declared(overlap="skip")
    now = read_now(USING)
    fires = schedule.backfill(now - timedelta(hours=3), now, actor="ann")
    assert {fire.outcome for fire in fires} == {"queued"}
    for _ in fires:
        tick()
        assert Execution.objects.using(USING).active().count() == 1
        drain()
    times = list(Execution.objects.using(USING).order_by("pk").values_list("scheduled_for", flat=True))
    assert times == [fire.nominal_at for fire in fires]


def test_backfill_takes_times_out_of_a_row_that_many_share() -> None:
    schedule = declared(every=1)
    later(days=1)
    tick()
    shared = ScheduleFire.objects.using(USING).exclude(through_at=None).get()
    first = shared.nominal_at
    fires = schedule.backfill(first, first + timedelta(seconds=2), actor="ann")
    assert [fire.outcome for fire in fires] == ["started"] * 3
    shared.refresh_from_db(using=USING)
    assert shared.nominal_at == first + timedelta(seconds=3)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (timedelta(hours=1), timedelta(hours=2), "ahead"),
        (timedelta(hours=-1), timedelta(hours=-2), "before start"),
        (timedelta(days=-60), timedelta(), "more than 1,000"),
    ],
)
def test_backfill_is_bounded(start: timedelta, end: timedelta, said: str) -> None:
    schedule, now = declared(), read_now(USING)
    with pytest.raises(ValueError, match=said):
        schedule.backfill(now + start, now + end, actor="ann")
    assert not ScheduleFire.objects.using(USING).exists()


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "one of cron"),
        ({"cron": "* * * * *", "every": 5}, "one of cron"),
        ({"cron": "* * * *"}, "cannot be read"),
        ({"cron": "0 0 30 2 *"}, "cannot be read|never comes"),
        ({"cron": "0 0 * * *", "timezone": "Mars/Olympus"}, "not known here"),
        ({"every": 0.5}, "at least 1 second"),
        ({"every": -1}, "negative"),
        ({"every": 60, "timezone": "UTC"}, "timezone belongs to cron"),
        ({"every": 60, "jitter": 61}, "at most"),
        ({"every": 60, "overlap": "maybe"}, "overlap must be"),
        ({"every": 60, "catch_up": ("latest", 3)}, "catch_up must be"),
        ({"every": 60, "catch_up": ("all", 0)}, "from 1 to"),
        ({"every": 60, "args": (1, 2, 3)}, "too many positional"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(options: dict[str, object], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        report.schedule("wrong", **options)  # type: ignore[arg-type]
    assert not report.schedules


def test_two_workflows_with_one_schedule_are_a_system_check_error() -> None:
    from django.core.checks import run_checks

    report.schedule("hourly", every=3600)
    long.schedule("hourly", every=3600)
    assert [message.id for message in run_checks(tags=["durable"]) if "hourly" in message.msg] == ["durable.E030"]


# -- the shell -------------------------------------------------------------------------------------------------------


def test_the_shell_does_what_code_does() -> None:
    declared()
    made = durable("schedules", "add", "mine", "--workflow", "flow.report", "--input", '{"kind": "x"}',
                   "--cron", "0 2 * * *", "--timezone", "UTC", "--catch-up", "all:3", "--json", actor="ann").data  # fmt: skip
    assert (made["when"], made["catch_up"], made["declared"]) == ("0 2 * * * UTC", "all:3", False)
    assert {one["name"] for one in durable("schedules", "list", "--json").data} == {"hourly", "mine"}
    assert durable("schedules", "pause", "mine", "--json", actor="ann").data["state"] == "paused"
    assert durable("schedules", "resume", "mine", "--json", actor="ann").data["state"] == "active"
    edited = durable("schedules", "edit", "mine", "--every", "60", "--json", actor="ann").data
    assert edited["when"] == "every 60 s"
    started = durable("schedules", "trigger", "mine", "--json", actor="ann").data["execution"]
    assert durable("schedules", "fires", "mine", "--json").data[0]["execution"] == started
    assert "started" in durable("schedules", "fires", "mine").out
    now = datetime.now(UTC)
    filled = durable("schedules", "backfill", "mine", "--from", str(now - timedelta(seconds=90)), "--to", str(now),
                     "--json", actor="ann").data  # fmt: skip
    assert [one["outcome"] for one in filled]
    assert durable("schedules", "remove", "mine", actor="ann").code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("pause", "nothing"), 3),
        (("pause",), 2),
        (("list", "hourly"), 2),
        (("remove", "hourly"), 1),
        (("add", "x", "--workflow", "no.such", "--every", "60"), 3),
        (("add", "x", "--workflow", "flow.report", "--cron", "x"), 2),
        (("add", "x", "--workflow", "flow.report", "--input", '{"unknown": 1}', "--every", "60"), 2),
        (("add", "hourly", "--workflow", "flow.report", "--every", "60"), 1),
        (("edit", "hourly"), 2),
        (("backfill", "hourly", "--from", "2026-01-01T00:00"), 2),
    ],
)
def test_what_the_shell_refuses(arguments: tuple[str, ...], code: int) -> None:
    declared()
    called = durable("schedules", *arguments)
    assert called.code == code
    assert called.error


def test_doctor_finds_what_nobody_fires_and_what_cannot_start() -> None:
    from django_durable import Context, workflow

    @workflow("flow.gone")
    def gone(ctx: Context) -> None: ...

    declared()
    durable("schedules", "add", "lost", "--workflow", "flow.gone", "--every", "3600", actor="ann")
    forget(gone)

    def codes() -> list[str]:
        return [one["code"] for one in durable("doctor", json=True).data["findings"]]

    assert codes() == []
    later(hours=1, minutes=5)
    assert codes() == ["overdue-schedule"]
    tick()
    assert codes() == ["failing-schedule"]
    assert durable("stats", json=True).data["schedules"] == 2


def test_an_unknown_schedule_is_not_found() -> None:
    with pytest.raises(ScheduleNotFound, match="no schedule 'x'"):
        Schedule.objects.named("x")
    assert declared().pk == Schedule.objects.named("hourly").pk
    assert isinstance(report, Workflow)

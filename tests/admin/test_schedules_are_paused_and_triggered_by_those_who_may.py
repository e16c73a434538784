"""The pages of schedules show what became of their times, and act by POST, for whom it is permitted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_durable import Execution, clock
from django_durable.models import OperatorNote, Schedule, ScheduleFire
from django_durable.operators.schedules.firing import fire_next
from django_durable.operators.schedules.verbs import add
from tests.admin import flows
from tests.admin.html import parse
from tests.admin.visitors import SCHEDULES, sign_in

pytestmark = pytest.mark.django_db

VIEW, MANAGE = "view_schedule", "manage_schedules"


@pytest.fixture
def schedule() -> Schedule:
    made = add("<i>nightly</i>", flows.job.name, cron="0 2 * * *", timezone="Europe/Berlin", actor="ann")
    with clock.shifted():
        clock.shift(timedelta(days=1))
        fire_next("default", made)
    return Schedule.objects.get(pk=made.pk)


def page(schedule: Schedule, what: str = "change") -> str:
    return f"{SCHEDULES}{schedule.pk}/{what}/"


def test_the_list_and_the_page_show_when_and_what_became_of_it(schedule: Schedule) -> None:
    client = sign_in("clerk", VIEW)
    listed = parse(client.get(SCHEDULES))
    assert "0 2 * * * Europe/Berlin" in listed.text
    shown = parse(client.get(page(schedule)))
    assert "started" in shown.cells
    assert str(ScheduleFire.objects.get().execution_id) in shown.text
    assert not [link for link in shown.links() if link.endswith("/pause/")]
    assert "<i>nightly" not in shown.source


def test_verbs_ask_and_act_by_post_only(schedule: Schedule) -> None:
    client = sign_in("clerk", VIEW, MANAGE)
    assert client.get(page(schedule, "pause")).status_code == 200
    assert not Schedule.objects.get().is_paused
    assert client.post(page(schedule, "pause"), {"reason": "audit"}).status_code == 302
    assert Schedule.objects.get().paused_by == "clerk"
    told = client.post(page(schedule, "pause"), {"reason": ""}, follow=True).content.decode()
    assert "is paused already, by clerk" in told
    client.post(page(schedule, "trigger"), {"reason": ""})
    client.post(page(schedule, "resume"), {"reason": ""})
    assert not Schedule.objects.get().is_paused
    assert Execution.objects.count() == 2
    notes = OperatorNote.objects.filter(execution_id=schedule.pk).order_by("pk")
    assert [(note.verb, note.actor, note.reason) for note in notes][1:] == [
        ("pause_schedule", "clerk", "audit"),
        ("trigger_schedule", "clerk", ""),
        ("resume_schedule", "clerk", ""),
    ]


@pytest.mark.parametrize("verb", ["pause", "resume", "trigger"])
def test_only_those_who_may_act(schedule: Schedule, verb: str) -> None:
    assert sign_in("viewer").post(page(schedule, verb)).status_code == 403
    assert sign_in("clerk", MANAGE).post(page(schedule, verb)).status_code == 403
    assert sign_in("anonymous").post(page(schedule, verb)).status_code == 302
    assert Execution.objects.count() == 1


def test_a_stranger_to_the_tenant_finds_nothing(schedule: Schedule, settings: object) -> None:
    settings.DURABLE = {
        "TENANT_RESOLVER": "tests.admin.test_schedules_are_paused_and_triggered_by_those_who_may.acme"
    }  # type: ignore[attr-defined]
    client = sign_in("clerk", VIEW, MANAGE)
    assert client.get(page(schedule)).status_code == 404
    assert client.post(page(schedule, "pause"), {"reason": ""}).status_code == 404
    assert client.get(f"{SCHEDULES}nonsense/change/").status_code == 404


def acme(_request: object) -> str:
    return "acme"


def test_the_pages_cost_the_same_for_any_number_of_rows(schedule: Schedule) -> None:
    client = sign_in("superuser")

    def cost() -> list[int]:
        counts = []
        for url in (SCHEDULES, page(schedule)):
            with CaptureQueriesContext(connection) as queries:
                assert client.get(url).status_code == 200
            counts.append(len(queries))
        return counts

    before = cost()
    for number in range(30):
        add(f"more {number}", flows.job.name, every=3600, actor="ann")
    now = schedule.next_at
    ScheduleFire.objects.bulk_create(
        ScheduleFire(schedule_id=schedule.pk, nominal_at=at, due_at=at, decided_at=at, outcome="skipped")
        for at in (now + timedelta(hours=n) for n in range(300))
    )
    assert cost() == before

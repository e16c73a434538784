"""What the page of one schedule shows. Its arguments are values, and not among it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from django_durable.admin.columns import execution_link, moment
from django_durable.admin.dossier import MOST, Table
from django_durable.models import Schedule, ScheduleFire
from django_durable.operators.schedules.declaring import is_mine

__all__ = ["fires_of", "schedule_facts", "state_of", "when"]


def when(schedule: Schedule) -> str:
    """Its expression and zone, or its interval."""
    if schedule.cron:
        return f"{schedule.cron} {schedule.timezone}"
    return _("every %(seconds)g s") % {"seconds": schedule.every_seconds}


def state_of(schedule: Schedule) -> str:
    """Active, paused, or no longer declared by the code here."""
    if schedule.is_paused:
        return _("paused")
    return _("active") if is_mine(schedule) else _("not declared any more")


def schedule_facts(schedule: Schedule) -> list[tuple[str, Any]]:
    """The summary."""
    return [(label, cell) for label, cell in _facts(schedule) if cell not in (None, "")]


def _facts(schedule: Schedule) -> Iterator[tuple[str, Any]]:
    yield _("Id"), schedule.pk
    yield _("Tenant"), schedule.tenant
    yield _("Workflow"), schedule.workflow
    yield _("When"), when(schedule)
    yield _("State"), state_of(schedule)
    yield _("Overlap"), schedule.get_overlap_display()
    yield _("Catch up"), schedule.get_catch_up_display()
    yield _("Jitter, in seconds"), schedule.jitter_seconds or None
    yield _("Declared in code"), _("yes") if schedule.declared else _("no")
    yield _("Next time"), moment(schedule.next_at)
    yield _("Last time"), moment(schedule.last_at)
    yield _("Paused"), moment(schedule.paused_at)
    yield _("Paused by"), schedule.paused_by


def fires_of(schedule: Schedule, site: str) -> Table:
    """What became of its last times."""
    rows = ScheduleFire.objects.using(schedule.using).filter(schedule_id=schedule.pk)
    found = list(rows.order_by("-nominal_at")[: MOST + 1])
    return Table(
        title=_("Times"),
        heads=[_("time"), _("outcome"), _("why"), _("late, in seconds"), _("execution"), _("actor"), _("error")],
        rows=[_row(fire, site) for fire in found[:MOST]],
        is_cut=len(found) > MOST,
    )


def _row(fire: ScheduleFire, site: str) -> list[Any]:
    return [
        moment(fire.nominal_at),
        fire.get_outcome_display(),
        fire.get_reason_display() if fire.reason else "",
        f"{fire.late_seconds:.0f}",
        None if fire.execution_id is None else execution_link(fire.execution_id, site),
        fire.actor,
        fire.error,
    ]

"""add, edit, pause, resume, remove: what operators change of a schedule. Each is one transaction, with its note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.schedule import declared_schedules, policy_of
from django_durable.authoring.timing import timing_of
from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.engine.reach import reaching
from django_durable.engine.transitions.verbs import Attribution, note
from django_durable.errors import ExecutionConflict, InvalidTransition, TenantRequired
from django_durable.models import CatchUp, Schedule, ScheduleFire
from django_durable.models.columns import check_name
from django_durable.models.schedule import SCHEDULE_NAME_LENGTH
from django_durable.operators.actors import attribution
from django_durable.operators.schedules.firing import fire_next
from django_durable.operators.schedules.insert import Held, change, held, insert_schedule
from django_durable.operators.schedules.rows import policy_columns, timing_columns
from django_durable.payloads import encode
from django_durable.planes.selection import plane_alias

__all__ = ["EDITABLE", "add", "edit", "pause", "remove", "resume"]

EDITABLE = ("cron", "every", "timezone", "overlap", "catch_up", "jitter")


def add(
    name: str,
    workflow: str,
    *,
    actor: Any,
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
    tenant: str | None = None,
    cron: str | None = None,
    every: Any = None,
    timezone: str | None = None,
    overlap: str = "skip",
    catch_up: Any = "latest",
    jitter: Any = None,
) -> Schedule:
    """Make a schedule without a declaration in code; its workflow is named, its arguments are by parameter name.

    Raises ``ExecutionConflict`` for a name that is taken, ``UnknownWorkflow``, ``TenantRequired``, ``TypeError`` and
    ``ValueError`` as a declaration does.
    """
    by = attribution(actor, reason, required=True)
    check_name(name, "schedule name", maximum=SCHEDULE_NAME_LENGTH)
    if not tenant and config().untenanted == "refuse":
        raise TenantRequired(f"schedule {name!r} is without a tenant; name one")
    found = find_workflow(workflow)
    bound = found.signature.bind(**(arguments or {}))
    encoded = encode(dict(bound.arguments), where=f"input of workflow {workflow!r}")
    alias = plane_alias(tenant or "")
    check_transaction(alias)
    with reaching(alias):
        now = read_now(alias)
        timing = timing_of(cron=cron, every=every, timezone=timezone, anchor=now)
        policy = policy_of(overlap, catch_up, jitter, every=timing.every)
        with transaction.atomic(using=alias):
            if not insert_schedule(alias, now, (tenant or "", name), workflow, encoded, timing, policy):
                raise ExecutionConflict(f"there is a schedule {name!r} already; edit it, or take another name")
            made = Schedule.objects.using(alias).get(tenant=tenant or "", name=name)
            note(alias, {"id": made.pk, "revision": 1}, now, "add_schedule", by)
    return made


def edit(schedule: Schedule, changes: Mapping[str, Any], *, actor: Any, reason: str = "") -> None:
    """Change when it fires and what it does then. A time that is due already is still decided, once."""
    unknown = sorted(set(changes) - set(EDITABLE))
    if unknown:
        raise TypeError(f"edit() got {', '.join(unknown)}; it takes {', '.join(EDITABLE)}")
    by = attribution(actor, reason, required=True)
    with held(schedule) as found:
        _write(found, columns_of(found.row, changes), "edit_schedule", by)
    schedule.refresh_from_db(using=schedule.using)


def pause(schedule: Schedule, *, actor: Any, reason: str = "") -> None:
    """Let its times pass until it is resumed; each is skipped. What runs goes on, what is queued waits."""
    by = attribution(actor, reason, required=True)
    with held(schedule) as found:
        first = found.row.paused_by
        if found.row.is_paused:
            raise InvalidTransition(f"schedule {schedule.name!r} is paused already, by {first}", actor=first)
        _write(found, {"paused_at": found.now, "paused_by": by.actor}, "pause_schedule", by)
    schedule.refresh_from_db(using=schedule.using)


def resume(schedule: Schedule, *, actor: Any, reason: str = "") -> None:
    """Fire its times again, from now on: those that passed in between are skipped."""
    by = attribution(actor, reason, required=True)
    with held(schedule) as found:
        if not found.row.is_paused:
            raise InvalidTransition(f"schedule {schedule.name!r} is not paused")
        # What passed meanwhile was paused, also where nothing has ticked since to say so.
        while fire_next(schedule.using, found.row):
            found.row.refresh_from_db(using=schedule.using)
        _write(found, {"paused_at": None, "paused_by": ""}, "resume_schedule", by)
    schedule.refresh_from_db(using=schedule.using)


def remove(schedule: Schedule, *, actor: Any, reason: str = "") -> None:
    """Remove it with its record; executions that it started go on."""
    if (schedule.tenant, schedule.name) in declared_schedules():
        raise InvalidTransition(
            f"schedule {schedule.name!r} is declared in code and would be made again; take it out there, or pause it"
        )
    by = attribution(actor, reason, required=True)
    with held(schedule) as found:
        note(schedule.using, {"id": schedule.pk, "revision": found.row.revision}, found.now, "remove_schedule", by)
        ScheduleFire.objects.using(schedule.using).filter(schedule_id=schedule.pk).delete()
        Schedule.objects.using(schedule.using).filter(pk=schedule.pk).delete()


def columns_of(row: Schedule, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns for the arguments of an edit; the others stay. Raises ``ValueError``, ``TypeError``."""
    if changes.get("cron") is not None:
        given: dict[str, Any] = {"cron": changes["cron"], "every": None, "timezone": row.timezone or None}
    elif changes.get("every") is not None:
        given = {"cron": None, "every": changes["every"], "timezone": None}
    else:
        given = {"cron": row.cron or None, "every": row.every_seconds, "timezone": row.timezone or None}
    if changes.get("cron") is not None and changes.get("every") is not None:
        raise ValueError("a schedule takes one of cron=… and every=…")
    if "timezone" in changes:
        given["timezone"] = changes["timezone"]
    timing = timing_of(**given, anchor=row.anchor_at)
    catch_up = ("all", row.catch_up_most) if row.catch_up == CatchUp.ALL else row.catch_up
    policy = policy_of(
        changes.get("overlap", row.overlap),
        changes.get("catch_up", catch_up),
        changes.get("jitter", row.jitter_seconds),
        every=timing.every,
    )
    return {**timing_columns(timing), **policy_columns(policy)}


def _write(found: Held, columns: Mapping[str, Any], verb: str, by: Attribution) -> None:
    using, row = found.row.using, found.row
    change(using, row, found.now, columns)
    note(using, {"id": row.pk, "revision": row.revision + 1}, found.now, verb, by)

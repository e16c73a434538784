"""Fire: one nominal time of one schedule is decided, in one transaction on its plane. No user code runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Q, QuerySet

from django_durable.authoring.arguments import bound_arguments
from django_durable.authoring.registry import find_workflow
from django_durable.clock import read_now
from django_durable.engine.contention import repeated
from django_durable.engine.transitions.start import start
from django_durable.engine.transitions.verbs import Attribution, cancel
from django_durable.errors import PlaneUnavailable, UnknownWorkflow
from django_durable.models import Execution, Overlap, Schedule, ScheduleFire
from django_durable.models.schedule import fire_key
from django_durable.operators.schedules.plan import Passed, grace, plan_for
from django_durable.operators.schedules.rows import due_of, next_columns
from django_durable.operators.schedules.running import running
from django_durable.payloads import decode
from django_durable.planes.selection import selected

__all__ = ["Decision", "fire_next", "hold", "record", "settle", "start_for", "start_queued"]

MOST_QUEUED = 100
"""Fires of one schedule that wait for an earlier one to end, at most; further ones are skipped."""
ERROR_LENGTH = 1_000

Outcome, Reason = ScheduleFire.Outcome, ScheduleFire.Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of one nominal time."""

    outcome: str
    reason: str = ""
    error: str = ""
    execution_id: UUID | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of its row."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "error": self.error,
            "execution_id": self.execution_id,
            "is_open": self.outcome == Outcome.STARTED,
        }


def fire_next(using: str, schedule: Schedule) -> bool:
    """Decide the first due time of a schedule, as it was read; whether this process did.

    ``False``: it is not due, or another process decided it, or an operator changed the row: read it again. Leaves it
    due, without a trace, where its workflow is not known here and another process may know it.
    """

    def attempt() -> bool:
        now = read_now(using)
        if schedule.due_at > now or _is_for_others(schedule, now):
            return False
        plan = plan_for(schedule, now)
        with transaction.atomic(using=using):
            # Its write comes first: whoever is second waits here, and then finds the pointer moved.
            if not _move_on(using, schedule, plan.next_at):
                return False
            _record_passed(using, schedule, plan.passed, now)
            if plan.passed:
                _note_last(using, schedule, plan.passed[-1].nominal_at, Outcome.SKIPPED)
            if plan.fire_at is not None:
                decision = _decide(using, schedule, plan.fire_at)
                record(using, schedule, plan.fire_at, now, decision)
                _note_last(using, schedule, plan.fire_at, decision.outcome)
        return True

    return repeated(using, attempt)


def _is_for_others(schedule: Schedule, now: datetime) -> bool:
    """A deployment that is half done does not know the new workflow everywhere: wait a moment for who does."""
    return not schedule.is_paused and _is_unknown(schedule) and now - schedule.due_at <= grace()


def _is_unknown(schedule: Schedule) -> bool:
    try:
        find_workflow(schedule.workflow)
    except UnknownWorkflow:
        return True
    return False


def _rows(using: str, schedule: Schedule) -> QuerySet[Schedule]:
    return Schedule.objects.using(using).filter(pk=schedule.pk)


def _move_on(using: str, schedule: Schedule, next_at: datetime) -> bool:
    """Compare and set: nobody has decided this time, changed the row, or frozen it."""
    same = _rows(using, schedule).filter(next_at=schedule.next_at, revision=schedule.revision, moving=False)
    return bool(same.update(**next_columns(schedule, next_at)))


def _note_last(using: str, schedule: Schedule, nominal_at: datetime, outcome: str) -> None:
    _rows(using, schedule).update(last_at=nominal_at, last_outcome=outcome)


def _record_passed(using: str, schedule: Schedule, passed: Sequence[Passed], now: datetime) -> None:
    fires = [
        ScheduleFire(
            schedule_id=schedule.pk,
            nominal_at=one.nominal_at,
            through_at=one.through_at,
            due_at=due_of(schedule, one.nominal_at),
            decided_at=now,
            outcome=Outcome.SKIPPED,
            reason=one.reason,
        )
        for one in passed
    ]
    ScheduleFire.objects.using(using).bulk_create(fires, ignore_conflicts=True)


def _decide(using: str, schedule: Schedule, nominal_at: datetime) -> Decision:
    """What the overlap policy says of this time; a start where it lets it."""
    known = ScheduleFire.objects.using(using).filter(schedule_id=schedule.pk, nominal_at=nominal_at).first()
    if known is not None:  # decided before an edit brought the time back: a time is fired once
        return Decision(outcome=known.outcome)
    current = running(using, schedule)
    if schedule.overlap == Overlap.QUEUE:
        waiting = _queued(using, schedule).count()
        if waiting >= MOST_QUEUED:
            return Decision(outcome=Outcome.SKIPPED, reason=Reason.FULL)
        if current or waiting:
            return Decision(outcome=Outcome.QUEUED)
    elif current and schedule.overlap == Overlap.SKIP:
        return Decision(outcome=Outcome.SKIPPED, reason=Reason.OVERLAP)
    elif schedule.overlap == Overlap.CANCEL_RUNNING:
        by = Attribution(f"schedule {schedule.name}", f"its time {nominal_at.isoformat()} has come")
        for execution_id in current:
            cancel(using, execution_id, by)
    return start_for(using, schedule, nominal_at)


def _queued(using: str, schedule: Schedule) -> QuerySet[ScheduleFire]:
    return ScheduleFire.objects.using(using).filter(schedule_id=schedule.pk, outcome=Outcome.QUEUED)


def start_for(using: str, schedule: Schedule, nominal_at: datetime) -> Decision:
    """Start the execution of a time, in the open transaction; a start that is refused is a decision too.

    Raises what passes: the database's errors, ``OSError``, ``PlaneUnavailable`` while the tenant is being moved. Then
    nothing is decided.
    """
    try:
        with transaction.atomic(using=using):
            return Decision(outcome=Outcome.STARTED, execution_id=_start(using, schedule, nominal_at).pk)
    except (DatabaseError, InterfaceError, PlaneUnavailable, OSError):
        raise  # OSError: the key service of a payload codec is away
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:ERROR_LENGTH]
        return Decision(outcome=Outcome.FAILED, error=text.replace("\x00", "").encode("utf-8", "replace").decode())


def _start(using: str, schedule: Schedule, nominal_at: datetime) -> Execution[Any]:
    with selected(using):
        workflow = find_workflow(schedule.workflow)
        arguments = dict(bound_arguments(workflow, decode(schedule.encoded_input)).arguments)
        key = fire_key(schedule.name, nominal_at)
        order = workflow.order_of_fire(using, arguments, tenant=schedule.tenant, key=key, scheduled_for=nominal_at)
        return start(using, order)


def record(
    using: str, schedule: Schedule, nominal_at: datetime, now: datetime, decision: Decision, *, actor: str = ""
) -> None:
    """Write the row of a time; where it has one already, that stays."""
    fire = ScheduleFire(
        schedule_id=schedule.pk,
        nominal_at=nominal_at,
        due_at=due_of(schedule, nominal_at),
        decided_at=now,
        actor=actor,
        **decision.columns,
    )
    ScheduleFire.objects.using(using).bulk_create([fire], ignore_conflicts=True)


def settle(using: str, schedule: Schedule, fire_id: int, now: datetime, decision: Decision, **more: Any) -> None:
    """Write anew what became of a time whose execution had not been started."""
    ScheduleFire.objects.using(using).filter(pk=fire_id).update(decided_at=now, **decision.columns, **more)
    _rows(using, schedule).update(last_outcome=decision.outcome)


def start_queued(using: str, schedule: Schedule) -> bool:
    """Start the first queued time of a schedule where nothing of it runs any more; whether that was so."""

    def attempt() -> bool:
        with transaction.atomic(using=using):
            # The schedule's row is the lock: two processes would both see that nothing runs.
            if not hold(using, schedule) or running(using, schedule):
                return False
            waiting = _queued(using, schedule)
            if schedule.is_paused:
                waiting = waiting.filter(~Q(actor=""))
            fire = waiting.order_by("nominal_at").first()
            now = read_now(using)
            if fire is None or (_is_unknown(schedule) and now - fire.decided_at <= grace()):
                return False
            settle(using, schedule, fire.pk, now, start_for(using, schedule, fire.nominal_at))
        return True

    return repeated(using, attempt)


def hold(using: str, schedule: Schedule) -> bool:
    """Lock the row, by a write that changes nothing: a lock on every database. Whether it is as it was read."""
    same = _rows(using, schedule).filter(revision=schedule.revision, moving=False)
    return bool(same.update(revision=schedule.revision))

"""Schedule and ScheduleFire: which workflow is started when, and what became of each nominal time. On the plane."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.ids import time_ordered_id
from django_durable.models.columns import NameField
from django_durable.models.partial_index import PartialIndex

if TYPE_CHECKING:
    from django_durable.models.execution import Execution

SCHEDULE_NAME_LENGTH = 200
"""Leaves room in an execution's key for the nominal time."""


class Overlap(models.TextChoices):
    """What a fire does while an earlier one's execution has not ended."""

    SKIP = "skip", _("skip")
    QUEUE = "queue", _("queue")
    CANCEL_RUNNING = "cancel_running", _("cancel the running one")
    ALLOW = "allow", _("allow")


class CatchUp(models.TextChoices):
    """What becomes of the times that nobody was there to fire."""

    NONE = "none", _("none")
    LATEST = "latest", _("the latest")
    ALL = "all", _("all")


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    """Schedules on one plane."""

    def create(self, **kwargs: Any) -> NoReturn:
        raise TypeError("a schedule is made by Workflow.schedule(), or by `manage.py durable schedules add`")

    def named(self, name: str, *, tenant: str | None = None) -> Schedule:
        """The tenant's schedule of this name, on its plane. Raises ``ScheduleNotFound``, ``UnknownTenant``."""
        from django_durable.operators.schedules.find import find_schedule

        return find_schedule(name, tenant=tenant)


class Schedule(models.Model):
    """When a workflow is started, and up to which time that is decided. Change it through its verbs."""

    id = models.UUIDField(primary_key=True, default=time_ordered_id, editable=False)
    tenant = NameField(_("tenant"), default="", blank=True)
    name = NameField(_("name"), max_length=SCHEDULE_NAME_LENGTH)
    workflow = NameField(_("workflow"))
    encoded_input = models.TextField()

    # Either a cron expression in a zone, or a number of seconds from the anchor on.
    cron = models.CharField(_("cron"), max_length=255, default="", blank=True)
    timezone = models.CharField(_("time zone"), max_length=64, default="", blank=True)
    every_seconds = models.FloatField(_("every, in seconds"), null=True)
    anchor_at = models.DateTimeField(_("counted from"))
    overlap = models.CharField(_("overlap"), max_length=16, choices=Overlap.choices, default=Overlap.SKIP)
    catch_up = models.CharField(_("catch up"), max_length=16, choices=CatchUp.choices, default=CatchUp.LATEST)
    catch_up_most = models.IntegerField(_("catch up, at most"), default=100)
    jitter_seconds = models.FloatField(_("jitter, in seconds"), default=0.0)

    # The first nominal time that is not decided, and when it falls due: later by its jitter.
    next_at = models.DateTimeField(_("next time"))
    due_at = models.DateTimeField(_("due at"))
    last_at = models.DateTimeField(_("last time"), null=True)
    last_outcome = models.CharField(_("last outcome"), max_length=16, default="", blank=True)

    # Digest of the declaration in code that this row was last made to agree with; empty: it has none.
    declared = models.CharField(max_length=64, default="", editable=False)
    # Counts changes by code and operators; what was planned on an older one is planned again.
    revision = models.IntegerField(default=1)
    paused_at = models.DateTimeField(_("paused at"), null=True)
    paused_by = NameField(_("paused by"), default="", blank=True)
    # While its tenant's rows are copied to another plane nothing fires it.
    moving = models.BooleanField(default=False, editable=False)
    created_at = models.DateTimeField(_("created at"))

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="durable_schedule_once")]
        indexes = [models.Index(fields=["due_at", "id"], name="durable_schedule_due")]

    def __str__(self) -> str:
        return str(self.name)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a schedule is changed by its verbs (pause, resume, edit, …), not by save()")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a schedule is removed by its verb remove(), not by delete()")

    @property
    def using(self) -> str:
        """Alias of the database that this row was read from."""
        return self._state.db or "default"

    @property
    def is_paused(self) -> bool:
        """Whether an operator has paused it: its times pass and are recorded as skipped."""
        return self.paused_at is not None

    def pause(self, *, actor: Any, reason: str = "") -> None:
        """Let its times pass until ``resume``; what runs goes on. Raises ``InvalidTransition`` if it is paused."""
        from django_durable.operators.schedules import verbs

        verbs.pause(self, actor=actor, reason=reason)

    def resume(self, *, actor: Any, reason: str = "") -> None:
        """Fire its times again from now on. Raises ``InvalidTransition`` if it is not paused."""
        from django_durable.operators.schedules import verbs

        verbs.resume(self, actor=actor, reason=reason)

    def edit(self, *, actor: Any, reason: str = "", **changes: Any) -> None:
        """Change ``cron``, ``every``, ``timezone``, ``overlap``, ``catch_up``, ``jitter``: as ``Workflow.schedule``.

        Kept until the declaration in code changes. Raises ``ValueError``, ``TypeError`` as a declaration does.
        """
        from django_durable.operators.schedules import verbs

        verbs.edit(self, changes, actor=actor, reason=reason)

    def remove(self, *, actor: Any, reason: str = "") -> None:
        """Remove it with its record of fires. Raises ``InvalidTransition`` while this code declares it."""
        from django_durable.operators.schedules import verbs

        verbs.remove(self, actor=actor, reason=reason)

    def trigger(self, *, actor: Any, reason: str = "") -> Execution[Any]:
        """Start its workflow now, whatever is running and also while it is paused; the execution."""
        from django_durable.operators.schedules.trigger import trigger

        return trigger(self, actor=actor, reason=reason)

    def backfill(self, start: datetime, end: datetime, *, actor: Any, reason: str = "") -> list[ScheduleFire]:
        """Start its workflow for each time from ``start`` to ``end``, both included, that was not started.

        With ``overlap="allow"`` all at once, else one after the other. Raises ``ValueError`` for a range that lies
        ahead, or that has more than 1,000 times.
        """
        from django_durable.operators.schedules.trigger import backfill

        return backfill(self, start, end, actor=actor, reason=reason)


class ScheduleFire(models.Model):
    """One nominal time of a schedule, and what became of it. At most one row a time, for ever."""

    class Outcome(models.TextChoices):
        STARTED = "started", _("started")
        QUEUED = "queued", _("queued")
        SKIPPED = "skipped", _("skipped")
        FAILED = "failed", _("failed to start")

    class Reason(models.TextChoices):
        NONE = "", ""
        MISSED = "missed", _("nobody was there in time")
        PAUSED = "paused", _("the schedule was paused")
        OVERLAP = "overlap", _("an earlier one was running")
        FULL = "full", _("too many were queued")

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(
        Schedule, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="fires"
    )
    nominal_at = models.DateTimeField(_("time"))
    # The last time that this row stands for, where so many were missed that they share one.
    through_at = models.DateTimeField(_("through"), null=True)
    due_at = models.DateTimeField(_("due at"))
    decided_at = models.DateTimeField(_("decided at"))
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome.choices)
    reason = models.CharField(_("reason"), max_length=16, choices=Reason.choices, default="", blank=True)
    error = models.TextField(_("error"), default="", blank=True)
    execution_id = models.UUIDField(_("execution"), null=True)
    # Who asked for it; empty: the schedule itself.
    actor = NameField(_("actor"), default="", blank=True)
    # Whether its execution may still be running: looked up, and closed, when the next one falls due.
    is_open = models.BooleanField(default=False, editable=False)

    class Meta:
        verbose_name = _("fire of a schedule")
        verbose_name_plural = _("fires of schedules")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["schedule", "nominal_at"], name="durable_fire_once")]
        indexes = [
            models.Index(fields=["decided_at"], name="durable_fire_age"),
            PartialIndex(fields=["schedule", "id"], rows=models.Q(is_open=True), name="durable_fire_open"),
            PartialIndex(
                fields=["schedule", "nominal_at"], rows=models.Q(outcome="queued"), name="durable_fire_queued"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.nominal_at.isoformat()} {self.outcome}"

    @property
    def late_seconds(self) -> float:
        """How long after its time, jitter included, it was decided."""
        return max(0.0, (self.decided_at - self.due_at).total_seconds())


def fire_key(name: str, nominal_at: datetime) -> str:
    """The key of the execution that a fire starts: a schedule that is made anew starts no time again."""
    return f"schedule {name}:{nominal_at.isoformat()}"


__all__ = ["CatchUp", "Overlap", "Schedule", "ScheduleFire", "ScheduleQuerySet", "fire_key"]

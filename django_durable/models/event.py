"""EventRow, EventWait and EventTaken: published events, who waits for which, and who took which."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField
from django_durable.models.execution import Execution


class EventRow(models.Model):
    """One published event, kept for EVENT_RETENTION."""

    id = models.BigAutoField(primary_key=True)
    tenant = NameField(_("tenant"), default="", blank=True)
    name = NameField(_("name"))
    payload = models.TextField()
    # A digest of (tenant, name, deduplication key): the three do not fit into one PostgreSQL index row.
    dedup_mark = models.CharField(max_length=64, null=True, unique=True, editable=False)
    published_at = models.DateTimeField(_("published at"))
    # A mark for each item of a dict payload, so that most of what does not match is never decoded.
    marks = models.TextField(default="", blank=True)
    # Up to which EventWait those who wait were told of it; NULL once all were.
    told_up_to = models.BigIntegerField(null=True)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["tenant", "name", "id"], name="durable_event_topic"),
            models.Index(fields=["published_at"], name="durable_event_age"),
            models.Index(fields=["told_up_to"], name="durable_event_untold"),
        ]

    def __str__(self) -> str:
        return str(self.name)


class EventWait(models.Model):
    """Written before the wait looks for events, in a commit of its own; deleted with the wait's checkpoint."""

    id = models.BigAutoField(primary_key=True)
    execution = models.ForeignKey(
        Execution, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    position = models.IntegerField()
    # Which of the sources of its wait.
    number = models.IntegerField(default=0)
    tenant = NameField(_("tenant"), default="", blank=True)
    name = NameField(_("name"))
    # The mark of one of its items, for the index, and those of all; without a match both are empty.
    mark = models.CharField(max_length=16, default="", blank=True)
    marks = models.TextField(default="", blank=True)

    class Meta:
        verbose_name = _("wait for an event")
        verbose_name_plural = _("waits for events")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["execution", "position", "number"], name="durable_event_wait_once"),
        ]
        indexes = [models.Index(fields=["tenant", "name", "mark", "id"], name="durable_event_waiting")]

    def __str__(self) -> str:
        return f"{self.execution_id} waits for {self.name}"


class EventTaken(models.Model):
    """One execution took one event, or an event started one run: at most once each.

    ``execution_id`` is the first run's of its chain: the runs of a chain take an event once. ``run_id`` is the one's
    that took it.
    """

    id = models.BigAutoField(primary_key=True)
    event = models.ForeignKey(EventRow, on_delete=models.DO_NOTHING, db_constraint=False, related_name="taken")
    execution_id = models.UUIDField()
    run_id = models.UUIDField()
    position = models.IntegerField()

    class Meta:
        verbose_name = _("taken event")
        verbose_name_plural = _("taken events")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["execution_id", "event"], name="durable_event_once"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} → {self.execution_id}"

"""EventRow and EventTaken: published events, and who took which."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class EventRow(models.Model):
    """One published event, kept for EVENT_RETENTION."""

    id = models.BigAutoField(primary_key=True)
    tenant = NameField(_("tenant"), default="", blank=True)
    name = NameField(_("name"))
    payload = models.TextField()
    dedup_key = NameField(null=True)
    published_at = models.DateTimeField(_("published at"))

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name", "dedup_key"], name="durable_event_dedup"),
        ]
        indexes = [
            models.Index(fields=["tenant", "name", "id"], name="durable_event_topic"),
            models.Index(fields=["published_at"], name="durable_event_age"),
        ]

    def __str__(self) -> str:
        return str(self.name)


class EventTaken(models.Model):
    """One execution took one event, or an event started one run: at most once each."""

    id = models.BigAutoField(primary_key=True)
    event = models.ForeignKey(EventRow, on_delete=models.DO_NOTHING, db_constraint=False, related_name="taken")
    execution_id = models.UUIDField()
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

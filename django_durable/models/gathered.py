"""GatheredEvent: an event that waits, with others of its kind, for the run that it starts."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class GatheredEvent(models.Model):
    """One event of a subscription with ``debounce`` or ``batch``; written with the event, deleted with the start.

    What the subscription says is stored with each row, so that a sweep runs no code of the project. Rows only come
    and go: two publishers never wait for each other.
    """

    id = models.BigAutoField(primary_key=True)
    # A digest of (tenant, workflow, event, key): the events that one run is started for.
    mark = models.CharField(max_length=64)
    event_id = models.BigIntegerField()
    tenant = NameField(_("tenant"), default="", blank=True)
    workflow = NameField(_("workflow"))
    key = NameField(_("key"), null=True)
    # Debounced: the arguments of the start. Batched: this event's item of the list.
    encoded = models.TextField()
    # How many a run takes at most; 0: the last one alone.
    size = models.IntegerField(default=0)
    # Where a stream that never pauses is cut; NULL: nowhere.
    cut_at = models.DateTimeField(null=True)
    # When its group is looked at, on account of this event.
    due_at = models.DateTimeField(_("due at"))
    # How often its group could not be started: what ``doctor`` tells.
    failures = models.IntegerField(default=0)
    published_at = models.DateTimeField(_("published at"))

    class Meta:
        verbose_name = _("gathered event")
        verbose_name_plural = _("gathered events")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["mark", "id"], name="durable_gathered_group"),
            models.Index(fields=["due_at", "id"], name="durable_gathered_due"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} for {self.workflow}"

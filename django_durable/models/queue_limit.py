"""QueueLimit and QueueStart: a queue with limits, and what has lately begun in it. On the spine."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class QueueLimit(models.Model):
    """One queue with limits, whichever planes its work is on.

    Made from the ``FlowQueue`` that the code declares; what an operator changes stays until the declaration does.
    Who admits work to the queue locks this row first.
    """

    class Order(models.TextChoices):
        FIFO = "fifo", _("oldest first")
        LIFO = "lifo", _("newest first")

    class Fair(models.TextChoices):
        TENANT = "tenant", _("by tenant")
        WORKFLOW = "workflow", _("by workflow")
        NONE = "", _("not at all")

    id = models.BigAutoField(primary_key=True)
    name = NameField(_("queue"), unique=True)
    concurrency = models.PositiveIntegerField(
        _("concurrency"), null=True, blank=True, help_text=_("How many may run at once; empty: any number.")
    )
    rate = models.PositiveIntegerField(
        _("rate"), null=True, blank=True, help_text=_("How many may begin within the period; empty: any number.")
    )
    period_seconds = models.FloatField(_("period in seconds"), null=True, blank=True)
    fair = models.CharField(_("fair"), max_length=16, choices=Fair, default=Fair.TENANT, blank=True)
    sequence = models.CharField(_("order"), max_length=8, choices=Order, default=Order.FIFO)
    paused = models.BooleanField(_("paused"), default=False)
    changed_by = NameField(_("changed by"), default="", blank=True, editable=False)
    changed_at = models.DateTimeField(_("changed at"), null=True, editable=False)
    # The declaration that it was last made from, as one text.
    declaration = models.CharField(max_length=200, default="", blank=True, editable=False)
    # Whose turn was last, and how often the row was locked.
    last_lane = models.CharField(max_length=16, default="", blank=True, editable=False)
    passes = models.BigIntegerField(default=0, editable=False)

    class Meta:
        verbose_name = _("queue with limits")
        verbose_name_plural = _("queues with limits")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.name)


class QueueStart(models.Model):
    """One start that counts against a queue's rate, kept for the length of its period."""

    id = models.BigAutoField(primary_key=True)
    queue = NameField(_("queue"))
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("start in a queue")
        verbose_name_plural = _("starts in queues")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["queue", "at"], name="durable_queue_start")]

    def __str__(self) -> str:
        return f"{self.queue} {self.at}"

"""Outbox: intents that a plane has committed and the spine has not heard of yet."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class Outbox(models.Model):
    """One intent, written in the plane's transaction, published after commit, deleted once its hint is there."""

    id = models.BigAutoField(primary_key=True)
    execution_id = models.UUIDField()
    kind = models.SmallIntegerField(default=0)
    position = models.IntegerField(default=-1)
    item = models.IntegerField(default=-1)
    revision = models.IntegerField()
    epoch = models.IntegerField()
    queue = NameField()
    priority = models.SmallIntegerField()
    definition = models.CharField(max_length=16)
    lane = models.CharField(max_length=16, default="", blank=True)
    opening = models.BooleanField(default=False)
    state = models.SmallIntegerField(default=0)
    avoid = models.CharField(max_length=16, default="", blank=True)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("outbox row")
        verbose_name_plural = _("outbox")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["execution_id", "revision", "position", "item"], name="durable_outbox_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.execution_id} r{self.revision}"

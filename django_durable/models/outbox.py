"""Outbox: intents that a plane has committed and the spine has not heard of yet."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class Outbox(models.Model):
    """One intent, written in the plane's transaction, published after commit, closed with its hint."""

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
    due_at = models.DateTimeField()
    created_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("outbox row")
        verbose_name_plural = _("outbox")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["execution_id", "revision", "position", "item"], name="durable_outbox_once"
            ),
        ]
        indexes = [models.Index(fields=["published_at", "id"], name="durable_outbox_stranded")]

    def __str__(self) -> str:
        return f"{self.execution_id} r{self.revision}"

"""Message: what was sent to an execution."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NAME_LENGTH, NameField
from django_durable.models.execution import Execution

CHANNEL_LENGTH = NAME_LENGTH + 16
"""A channel is a prefix (``signal:``, ``update:``, …) and a name."""


class Message(models.Model):
    """Kept from acceptance until one wait takes it, in the transaction of that wait's checkpoint."""

    id = models.BigAutoField(primary_key=True)
    execution = models.ForeignKey(
        Execution, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="messages"
    )
    channel = NameField(_("channel"), max_length=CHANNEL_LENGTH)
    payload = models.TextField()
    dedup_key = NameField(null=True)
    accepted_at = models.DateTimeField(_("accepted at"))
    # Of an update: what the workflow answered.
    encoded_reply = models.TextField(null=True)
    consumed_by = models.IntegerField(_("taken by position"), null=True)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        default_permissions = ("view",)
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["execution", "channel", "dedup_key"], name="durable_msg_dedup"),
        ]
        indexes = [models.Index(fields=["execution", "channel", "id"], name="durable_msg_mailbox")]

    def __str__(self) -> str:
        return f"{self.channel} → {self.execution_id}"

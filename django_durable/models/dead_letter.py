"""DeadLetter: an execution that needs a person."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField
from django_durable.models.execution import Execution


class DeadLetter(models.Model):
    """Written in the transaction that ended the run; open until one operator retries it, once."""

    id = models.BigAutoField(primary_key=True)
    execution = models.ForeignKey(
        Execution,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="dead_letters",
    )
    generation = models.IntegerField(_("generation"))
    tenant = NameField(_("tenant"), default="", blank=True)
    workflow = NameField(_("workflow"))
    version = NameField(_("version"), max_length=64)
    correlation_id = NameField(default="", blank=True)
    status = models.CharField(_("ended as"), max_length=16)
    encoded_error = models.TextField(null=True)
    # The checkpoints that ended the run, as they were: a retry removes them from the history.
    failures = models.TextField(default="[]")
    recoveries = models.IntegerField(default=0)
    created_at = models.DateTimeField(_("created at"))
    retried_at = models.DateTimeField(_("retried at"), null=True)
    retried_by = NameField(_("retried by"), default="", blank=True)

    class Meta:
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["execution", "generation"], name="durable_dead_letter_once"),
        ]
        indexes = [models.Index(fields=["retried_at", "id"], name="durable_dead_letter_open")]

    def __str__(self) -> str:
        return f"{self.workflow} {self.execution_id} #{self.generation}"

"""ApprovalRequest: what an execution asks a person for."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField
from django_durable.models.execution import ACTIVE, Execution


class Outcome(models.TextChoices):
    """What became of a request; nothing yet while it is open."""

    APPROVED = "approved", _("approved")
    REJECTED = "rejected", _("rejected")
    TIMED_OUT = "timed_out", _("timed out")


class ApprovalQuerySet(models.QuerySet["ApprovalRequest"]):
    """Reads only: the engine alone writes requests."""

    def open(self) -> Self:
        """Requests that can be decided: those of runs that have ended are closed."""
        return self.filter(outcome="", execution__status__in=ACTIVE).exclude(execution__status="compensating")


class ApprovalRequest(models.Model):
    """Written with the suspension of its wait; decided once, or closed by its deadline or by the end of the run."""

    id = models.BigAutoField(primary_key=True)
    execution = models.ForeignKey(
        Execution, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="approvals"
    )
    position = models.IntegerField(_("position"))
    name = NameField(_("name"))
    prompt = models.TextField(_("prompt"), default="", blank=True)
    encoded_data = models.TextField(null=True)
    # What the one who decides must be allowed to do: ``app_label.codename``.
    permission = NameField(_("permission"), default="", blank=True)
    requested_at = models.DateTimeField(_("requested at"))
    expires_at = models.DateTimeField(_("expires at"), null=True)
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome.choices, default="", blank=True)
    actor = NameField(_("actor"), default="", blank=True)
    reason = models.TextField(_("reason"), default="", blank=True)
    decided_at = models.DateTimeField(_("decided at"), null=True)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        verbose_name = _("approval request")
        verbose_name_plural = _("approval requests")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["execution", "position"], name="durable_approval_once"),
        ]
        indexes = [models.Index(fields=["outcome", "id"], name="durable_approval_open")]

    def __str__(self) -> str:
        return f"{self.name} of {self.execution_id}"

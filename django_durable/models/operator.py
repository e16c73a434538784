"""OperatorNote and OperatorAction: who did what to which execution, when and why."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.ids import time_ordered_id
from django_durable.models.columns import NameField


class OperatorNote(models.Model):
    """On the plane, in the verb's transaction: the reason may hold a tenant's data and stays with it."""

    id = models.UUIDField(primary_key=True, default=time_ordered_id, editable=False)
    execution_id = models.UUIDField(db_index=True)
    verb = models.CharField(_("verb"), max_length=32)
    actor = NameField(_("actor"))
    reason = models.TextField(_("reason"), default="", blank=True)
    revision = models.IntegerField()
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("operator note")
        verbose_name_plural = _("operator notes")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.verb} by {self.actor}"


class OperatorAction(models.Model):
    """On the spine: ids only."""

    id = models.UUIDField(primary_key=True, default=time_ordered_id, editable=False)
    execution_id = models.UUIDField(db_index=True)
    verb = models.CharField(_("verb"), max_length=32)
    actor = NameField(_("actor"))
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("operator action")
        verbose_name_plural = _("operator actions")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.verb} by {self.actor}"

"""PrunedExecution: an execution that retention has removed, and whose history is still to be."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class PrunedExecution(models.Model):
    """Written in the transaction that deletes the execution's row; deleted with the last of what belonged to it.

    So a history of any length goes in pieces, and a process that dies between them leaves what the next one finds.
    """

    execution_id = models.UUIDField(primary_key=True)
    pruned_at = models.DateTimeField(_("pruned at"))

    class Meta:
        verbose_name = _("pruned execution")
        verbose_name_plural = _("pruned executions")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.execution_id)

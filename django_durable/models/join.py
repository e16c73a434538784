"""Join: how far a fan-out has come."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Join(models.Model):
    """Counts of one fan-out; the parent is woken only when the join can hold."""

    pk = models.CompositePrimaryKey("execution_id", "position")
    execution_id = models.UUIDField()
    position = models.IntegerField()
    needs = models.IntegerField()
    settled = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    tolerated = models.IntegerField(null=True)
    in_flight = models.IntegerField(default=0)

    class Meta:
        verbose_name = _("join")
        verbose_name_plural = _("joins")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.execution_id} @ {self.position}"

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
    min_successful = models.IntegerField(null=True)
    in_flight = models.IntegerField(default=0)
    concurrency = models.IntegerField(default=1)

    class Meta:
        verbose_name = _("join")
        verbose_name_plural = _("joins")
        default_permissions = ("view",)

    @property
    def is_decided(self) -> bool:
        """Whether the rule to stop early holds: no further item is started."""
        return (self.tolerated is not None and self.failed > self.tolerated) or (
            self.min_successful is not None and self.settled - self.failed >= self.min_successful
        )

    def __str__(self) -> str:
        return f"{self.execution_id} @ {self.position}"

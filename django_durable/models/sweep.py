"""SweepClaim: when each sweep last ran, and by whom. On the spine."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class SweepClaim(models.Model):
    """One row a sweep and plane; a process that moves ``due_at`` on has claimed that pass."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("sweep"), max_length=32)
    plane = NameField(_("plane"), default="", blank=True)
    due_at = models.DateTimeField(_("due at"))
    ran_at = models.DateTimeField(_("ran at"))
    worker = models.CharField(max_length=128, default="", blank=True)

    class Meta:
        verbose_name = _("sweep")
        verbose_name_plural = _("sweeps")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["name", "plane"], name="durable_sweep_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.plane}".strip()

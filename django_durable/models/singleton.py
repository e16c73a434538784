"""SingletonPlace: who holds a singleton's slot, and who waits for one. On the plane."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class SingletonPlace(models.Model):
    """One execution's place at one singleton key.

    A number from 1 up to the limit is a slot; its unique key is the limit. Those who wait have a number below
    zero where the line has a greatest length, and none where it has not; they are admitted in the order of ``id``.
    """

    id = models.BigAutoField(primary_key=True)
    # A digest of (tenant, workflow, key).
    mark = models.CharField(max_length=64)
    number = models.IntegerField(null=True)
    execution_id = models.UUIDField(unique=True)

    class Meta:
        verbose_name = _("singleton place")
        verbose_name_plural = _("singleton places")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["mark", "number"], name="durable_singleton_slot")]

    def __str__(self) -> str:
        return f"{self.execution_id} {self.number}"

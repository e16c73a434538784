"""TenantEpoch: the fence of a tenant."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class TenantEpoch(models.Model):
    """The tenant's current epoch on this plane; no row means epoch 0."""

    tenant = NameField(_("tenant"), primary_key=True)
    epoch = models.IntegerField(default=0)
    # Set once the tenant's executions are leaving for another plane: nothing is accepted here any more.
    moved_to = NameField(default="", blank=True)

    class Meta:
        verbose_name = _("tenant epoch")
        verbose_name_plural = _("tenant epochs")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.tenant}: {self.epoch}"

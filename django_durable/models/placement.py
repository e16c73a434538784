"""DataPlane, TenantPlacement, ExecutionRoute: where things live. On the spine."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField


class DataPlane(models.Model):
    """A database that holds tenants' executions. References to secrets, never credentials."""

    class State(models.TextChoices):
        ACTIVE = "active", _("active")
        DRAINING = "draining", _("draining")
        CLOSED = "closed", _("closed")

    name = NameField(_("name"), primary_key=True)
    database = models.CharField(_("database alias"), max_length=255)
    secret = models.CharField(_("secret reference"), max_length=255, default="", blank=True)
    state = models.CharField(_("state"), max_length=16, choices=State.choices, default=State.ACTIVE)
    generation = models.IntegerField(default=1)

    class Meta:
        verbose_name = _("data plane")
        verbose_name_plural = _("data planes")
        default_permissions = ("view",)
        permissions = [
            ("manage_planes", _("Can manage data planes and placements")),
            ("manage_schedules", _("Can manage schedules")),
        ]

    def __str__(self) -> str:
        return str(self.name)


class TenantPlacement(models.Model):
    """The plane of one tenant."""

    tenant = NameField(_("tenant"), primary_key=True)
    plane = NameField(_("plane"), db_index=True)
    # The state of a move that is under way: see operators.move.
    moving_to = NameField(_("moving to"), default="", blank=True)
    moved_from = NameField(_("moved from"), default="", blank=True)

    class Meta:
        verbose_name = _("tenant placement")
        verbose_name_plural = _("tenant placements")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.tenant} → {self.plane}"


class ExecutionRoute(models.Model):
    """On which plane an execution lives; written before the plane's commit."""

    execution_id = models.UUIDField(primary_key=True)
    plane = NameField(_("plane"))
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("execution route")
        verbose_name_plural = _("execution routes")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.execution_id} → {self.plane}"

"""Checkpoint: what happened at one position of a run."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.models.columns import NameField
from django_durable.models.execution import Execution
from django_durable.models.partial_index import PartialIndex

WHOLE = -1
"""The item number of a checkpoint that is not an item of a map."""

UNDO = 2_147_483_647
"""The item number of an undo step's checkpoint: at the position where it was registered, after everything else."""


class Checkpoint(models.Model):
    """One position of a run's history. Written by the turn that holds the execution's token."""

    pk = models.CompositePrimaryKey("execution_id", "position", "item")
    # No constraint in the database: every insert selects from the execution's row, which is the stronger check.
    execution = models.ForeignKey(
        Execution,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="checkpoints",
    )
    position = models.IntegerField(_("position"))
    item = models.IntegerField(default=WHOLE)
    kind = models.CharField(_("kind"), max_length=16)
    name = NameField(_("name"), blank=True)
    status = models.CharField(_("status"), max_length=16)
    # Attempts that have ended (failed), and the last one whose start was recorded (at-most-once bodies).
    attempt = models.IntegerField(_("attempts"), default=0)
    begun = models.IntegerField(default=0)
    lease_token = models.UUIDField(null=True)
    # Of a step elsewhere: where it waits, since when, how often its worker was lost, its last sign of life.
    queue = NameField(default="", blank=True)
    queued_at = models.DateTimeField(null=True)
    recoveries = models.IntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    encoded_heartbeat = models.TextField(null=True)
    # Arguments that another process needs: of a step elsewhere, of an item, of an undo step.
    encoded_input = models.TextField(null=True)
    encoded_output = models.TextField(null=True)
    encoded_error = models.TextField(null=True)
    # When a sleep ends, a wait times out, the next attempt is due; stored once, when first reached.
    wake_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Failed attempts (the first and the last few) and log lines, both capped JSON.
    attempts_log = models.TextField(default="", blank=True)
    log = models.TextField(default="", blank=True)

    class Meta:
        verbose_name = _("checkpoint")
        verbose_name_plural = _("checkpoints")
        default_permissions = ("view",)
        ordering = ["position", "item"]
        indexes = [
            # What runs elsewhere, or did: few of all rows, and found without statistics too.
            PartialIndex(fields=["execution"], rows=models.Q(queued_at__isnull=False), name="durable_step_elsewhere"),
        ]

    def __str__(self) -> str:
        return f"{self.position} {self.kind} {self.name}"

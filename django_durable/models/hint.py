"""DispatchHint: work in flight, on the spine."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.ids import random_id
from django_durable.models.columns import NameField
from django_durable.models.partial_index import PartialIndex


class DispatchHint(models.Model):
    """Something to do, due at a time, or leased until a time. Ids and numbers only.

    ``due_at`` doubles as the end of the lease while leased, so that one range scan finds ready, timed and
    lapsed work. The plane's execution row is the truth; a hint may be late, stale or lost.
    """

    class Kind(models.IntegerChoices):
        TURN = 0, _("turn")
        STEP = 1, _("step")

    class State(models.IntegerChoices):
        LIVE = 0, _("live")
        BLOCKED = 1, _("blocked")
        PARKED = 2, _("parked")

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    kind = models.SmallIntegerField(choices=Kind.choices, default=Kind.TURN)
    state = models.SmallIntegerField(choices=State.choices, default=State.LIVE)
    execution_id = models.UUIDField()
    position = models.IntegerField(default=-1)
    item = models.IntegerField(default=-1)
    plane = NameField(_("plane"), default="", blank=True)
    revision = models.IntegerField()
    epoch = models.IntegerField(default=0)
    queue = NameField(_("queue"))
    priority = models.SmallIntegerField(_("priority"), default=0)
    # A keyed short hash of (workflow, version): a worker leases only what it knows.
    definition = models.CharField(max_length=16)
    # Of a queue with limits only: who takes turns with whom there, as an opaque mark. Empty in every other queue.
    lane = models.CharField(max_length=16, default="", blank=True)
    # Whether it begins an execution, or an attempt elsewhere: what a queue's rate counts.
    opening = models.BooleanField(default=False)
    # Digest of the code that could not go on with it; that code does not look again.
    avoid = models.CharField(max_length=16, default="", blank=True)
    due_at = models.DateTimeField(_("due at"))
    owner = models.CharField(_("owner"), max_length=128, default="", blank=True)
    token = models.UUIDField(null=True)
    revoked = models.BooleanField(default=False)
    failures = models.IntegerField(default=0)
    category = models.CharField(max_length=32, default="", blank=True)

    class Meta:
        verbose_name = _("dispatch hint")
        verbose_name_plural = _("dispatch hints")
        default_permissions = ("view",)
        permissions = [("requeue_hint", _("Can requeue parked hints"))]
        constraints = [
            models.UniqueConstraint(
                fields=["execution_id", "revision", "position", "item"], name="durable_hint_once"
            ),
        ]
        indexes = [
            models.Index(fields=["state", "queue", "priority", "due_at"], name="durable_hint_due"),
            PartialIndex(
                fields=["state", "queue", "lane", "priority", "due_at"],
                name="durable_hint_lane",
                rows=~models.Q(lane=""),
            ),
            PartialIndex(
                fields=["queue", "due_at"],
                name="durable_hint_held",
                rows=models.Q(token__isnull=False) & ~models.Q(lane=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.execution_id} r{self.revision}"

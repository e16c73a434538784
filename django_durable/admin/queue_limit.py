"""QueueLimitAdmin: queues with limits, to be changed, paused and resumed by those who may."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_durable.admin.read_only import _ModelAdmin
from django_durable.admin.scope import scope_of
from django_durable.models import QueueLimit
from django_durable.operators.permissions import may
from django_durable.operators.queue import change_queue, pause_queue, resume_queue
from django_durable.planes.selection import spine_alias

__all__ = ["QueueLimitAdmin"]


class QueueLimitAdmin(_ModelAdmin[QueueLimit]):
    """A queue is declared in code; here its limits are changed until the declaration does, and it is paused."""

    list_display = ("name", "concurrency", "rate", "period_seconds", "fair", "sequence", "paused", "changed_by")
    fields = (
        "name",
        "concurrency",
        "rate",
        "period_seconds",
        "paused",
        "fair",
        "sequence",
        "changed_by",
        "changed_at",
    )
    readonly_fields = ("name", "fair", "sequence", "changed_by", "changed_at")
    ordering = ("name",)
    actions = ("pause", "resume")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: QueueLimit | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: QueueLimit | None = None) -> bool:
        """Not for a request that belongs to one tenant: a queue is everybody's."""
        try:
            return super().has_view_permission(request, obj) and scope_of(request).tenant is None
        except PermissionDenied:
            return False

    def has_change_permission(self, request: HttpRequest, obj: QueueLimit | None = None) -> bool:
        return self.has_view_permission(request, obj) and may(request.user, "queues")

    def get_queryset(self, request: HttpRequest) -> QuerySet[QueueLimit]:
        return QueueLimit.objects.using(spine_alias()).order_by("name")

    def save_model(self, request: HttpRequest, obj: QueueLimit, form: Any, change: bool) -> None:
        """By the verbs, with the user as the actor."""
        rate = None if obj.rate is None else (obj.rate, obj.period_seconds or 1.0)
        change_queue(obj.name, actor=request.user, concurrency=obj.concurrency, rate=rate)
        (pause_queue if obj.paused else resume_queue)(obj.name, actor=request.user)

    @admin.action(description=_("Pause"), permissions=["change"])
    def pause(self, request: HttpRequest, queues: QuerySet[QueueLimit]) -> None:
        """Admit nothing more to these."""
        for queue in queues:
            pause_queue(queue.name, actor=request.user)

    @admin.action(description=_("Resume"), permissions=["change"])
    def resume(self, request: HttpRequest, queues: QuerySet[QueueLimit]) -> None:
        """Admit again."""
        for queue in queues:
            resume_queue(queue.name, actor=request.user)

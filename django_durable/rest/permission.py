"""VerbPermission: who may do what, by the one table of verbs. What a view does not name is denied."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from django_durable.operators.permissions import may

__all__ = ["VerbPermission"]


class VerbPermission(BasePermission):
    """The default of ``REST_PERMISSION_CLASSES``: the model permission of the view's verb."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the user holds it. A method that the address does not have is left to the answer 405."""
        if view.action in (None, "metadata"):
            return True
        verb = view.verbs.get(view.action)
        return verb is not None and bool(request.user) and may(request.user, verb)

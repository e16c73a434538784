"""Which permission each verb needs: the one table, for the admin and for REST."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

__all__ = ["PERMISSIONS", "PermissionHolder", "may", "permission_for"]

PERMISSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "view": "django_durable.view_execution",
        # Inputs, results, messages, error texts. Without it they show as type and size.
        "view_payload": "django_durable.view_payload",
        "view_approvals": "django_durable.view_approvalrequest",
        "view_dead_letters": "django_durable.view_deadletter",
        "view_hints": "django_durable.view_dispatchhint",
        "view_planes": "django_durable.view_dataplane",
        "view_schedules": "django_durable.view_schedule",
        "start": "django_durable.start_execution",
        "signal": "django_durable.signal_execution",
        "update": "django_durable.signal_execution",
        "publish": "django_durable.signal_execution",
        "cancel": "django_durable.cancel_execution",
        "retry": "django_durable.retry_execution",
        "pause": "django_durable.pause_execution",
        "resume": "django_durable.pause_execution",
        "move": "django_durable.pause_execution",
        "accept_code": "django_durable.pause_execution",
        "decide": "django_durable.decide_approval",
        "fork": "django_durable.fork_execution",
        "requeue": "django_durable.requeue_hint",
        "schedule": "django_durable.manage_schedules",
        "planes": "django_durable.manage_planes",
        "queues": "django_durable.manage_planes",
    }
)
"""Verb → permission, each declared on one of the models."""


class PermissionHolder(Protocol):
    """A user: anything that Django's authentication backends decide for."""

    def has_perm(self, perm: str) -> bool:
        """Whether they grant it."""


def permission_for(verb: str) -> str:
    """The permission's full name. Raises ``LookupError`` for a verb that is not in the table."""
    try:
        return PERMISSIONS[verb]
    except KeyError:
        known = ", ".join(PERMISSIONS)
        raise LookupError(f"no permission is declared for {verb!r}; there are {known}") from None


def may(user: PermissionHolder, verb: str) -> bool:
    """Whether the user may do this. Raises ``LookupError`` for a verb that is not in the table."""
    return user.has_perm(permission_for(verb))

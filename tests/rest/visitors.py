"""Who asks, and where."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from rest_framework.test import APIClient

from django_durable import Execution

__all__ = ["BASE", "CODENAMES", "EXECUTIONS", "client_of", "of", "superuser", "user_with"]

BASE = "/durable/"
EXECUTIONS = f"{BASE}executions/"
CODENAMES = (
    "view_execution",
    "view_payload",
    "view_approvalrequest",
    "view_deadletter",
    "view_dispatchhint",
    "view_dataplane",
    "view_schedule",
    "start_execution",
    "signal_execution",
    "cancel_execution",
    "pause_execution",
    "retry_execution",
    "fork_execution",
    "decide_approval",
    "requeue_hint",
    "manage_schedules",
    "manage_planes",
)


def user_with(*codenames: str, name: str = "ann") -> Any:
    """A user who holds these permissions and no others."""
    user = get_user_model().objects.create_user(name)
    held = Permission.objects.filter(content_type__app_label="django_durable", codename__in=codenames)
    assert {permission.codename for permission in held} == set(codenames)
    user.user_permissions.set(held)
    return user


def client_of(user: Any) -> APIClient:
    """A client for this user; for nobody with ``None``."""
    client = APIClient(raise_request_exception=True)
    client.default_format = "json"
    if user is not None:
        client.force_login(user)
    return client


def superuser(name: str = "root") -> APIClient:
    """Somebody who may do everything."""
    return client_of(get_user_model().objects.create_superuser(name))


def of(execution: Execution[Any], *parts: str) -> str:
    """The address of an execution, or of something below it."""
    return "/".join((f"{EXECUTIONS}{execution.pk}", *parts, ""))

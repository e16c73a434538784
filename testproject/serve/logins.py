"""Logins: somebody who may do everything, and somebody who may only look."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

__all__ = ["Login", "create_logins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One account of the demo."""

    name: str
    password: str
    what: str


def create_logins() -> list[Login]:
    """Create both, each with a password of its own: other users of this machine can reach the port too."""
    operator = Login(name="operator", password=_password(), what="may do everything")
    viewer = Login(name="viewer", password=_password(), what="may look, and sees values as type and size")
    users = get_user_model().objects
    users.create_superuser(operator.name, password=operator.password)
    user = users.create_user(viewer.name, password=viewer.password, is_staff=True)
    looking = Permission.objects.filter(content_type__app_label="django_durable", codename__startswith="view_")
    user.user_permissions.set(looking.exclude(codename="view_payload"))
    return [operator, viewer]


def _password() -> str:
    return secrets.token_urlsafe(9)

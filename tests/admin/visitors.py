"""Who comes to the admin, and where it can be entered."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from django_durable import Execution

__all__ = ["DEAD_LETTERS", "EXECUTIONS", "GRANTS", "LISTS", "page_of", "sign_in", "verb_of"]

BASE = "/admin/django_durable/"
EXECUTIONS = f"{BASE}execution/"
DEAD_LETTERS = f"{BASE}deadletter/"
HINTS = f"{BASE}dispatchhint/"
ACTIONS = f"{BASE}operatoraction/"
SCHEDULES = f"{BASE}schedule/"
LISTS = (EXECUTIONS, DEAD_LETTERS, HINTS, ACTIONS, SCHEDULES)
VERBS = ("retry", "cancel", "pause", "resume")

VIEWS = ("view_execution", "view_deadletter", "view_dispatchhint", "view_operatoraction", "view_schedule")
GRANTS: dict[str, tuple[str, ...]] = {
    "outsider": VIEWS,  # not staff, whatever they hold
    "clerk": (),
    "blind": ("retry_execution", "cancel_execution", "pause_execution"),  # may act, may not look
    "viewer": VIEWS,
    "operator": (*VIEWS, "retry_execution"),
    "reader": (*VIEWS, "view_payload"),
}


def sign_in(who: str, *more: str, name: str = "", **client: Any) -> Client:
    """A client for ``anonymous``, ``superuser`` or one of ``GRANTS``, with these permissions added."""
    visitor = Client(**client)
    if who == "anonymous":
        return visitor
    users = get_user_model().objects
    if who == "superuser":
        user = users.create_superuser(name or who)
    else:
        user = users.create_user(name or who, is_staff=who != "outsider")
        wanted = {*GRANTS[who], *more}
        held = Permission.objects.filter(content_type__app_label="django_durable", codename__in=wanted)
        assert {permission.codename for permission in held} == wanted
        user.user_permissions.set(held)
    visitor.force_login(user)
    return visitor


def page_of(execution: Execution[Any]) -> str:
    return f"{EXECUTIONS}{execution.pk}/change/"


def verb_of(execution: Execution[Any], verb: str) -> str:
    return f"{EXECUTIONS}{execution.pk}/{verb}/"

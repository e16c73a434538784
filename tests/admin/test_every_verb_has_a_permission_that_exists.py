"""One table of verbs and permissions, for the admin and for REST."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission

from django_durable.admin.offered import ACTS
from django_durable.models import PLANE_MODELS, SPINE_MODELS
from django_durable.operators.permissions import PERMISSIONS, may, permission_for


class Holder:
    def __init__(self, *permissions: str) -> None:
        self.permissions = permissions

    def has_perm(self, perm: str) -> bool:
        return perm in self.permissions


@pytest.mark.django_db
def test_every_permission_of_the_table_is_declared_on_a_model() -> None:
    declared = {
        f"{permission.content_type.app_label}.{permission.codename}"
        for permission in Permission.objects.select_related("content_type")
    }
    assert set(PERMISSIONS.values()) <= declared


@pytest.mark.django_db
def test_every_permission_that_the_models_declare_guards_a_verb() -> None:
    extra = {
        f"django_durable.{name}" for model in (*PLANE_MODELS, *SPINE_MODELS) for name, _ in model._meta.permissions
    }
    assert extra <= set(PERMISSIONS.values())


def test_what_the_admin_offers_is_in_the_table() -> None:
    assert {act.permission for act in ACTS.values()} <= set(PERMISSIONS)


def test_a_verb_needs_exactly_its_own() -> None:
    for verb, permission in PERMISSIONS.items():
        assert may(Holder(permission), verb)
        assert not may(Holder(*(set(PERMISSIONS.values()) - {permission})), verb)


def test_a_verb_that_is_not_in_the_table_is_a_mistake() -> None:
    with pytest.raises(LookupError, match=r"no permission is declared for 'erase'; there are view, "):
        permission_for("erase")
    with pytest.raises(LookupError):
        may(Holder(), "erase")


def test_models_are_registered_unless_their_key_is_composite() -> None:
    registered = {model.__name__ for model in admin.site._registry if model._meta.app_label == "django_durable"}
    assert registered == {"Execution", "DeadLetter", "DispatchHint", "OperatorAction", "QueueLimit", "Schedule"}

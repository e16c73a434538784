"""The permission matrix: every address, for everybody who might come. What is refused changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import get_resolver
from rest_framework.test import APIClient

from django_durable import Execution
from django_durable.models import (
    Checkpoint,
    DeadLetter,
    DispatchHint,
    EventRow,
    Message,
    OperatorAction,
    OperatorNote,
    Schedule,
)
from tests.rest.requests import ENDPOINTS
from tests.rest.visitors import BASE, CODENAMES, client_of, superuser, user_with

pytestmark = pytest.mark.django_db

TABLES = (Execution, Checkpoint, Message, EventRow, DeadLetter, OperatorNote, OperatorAction, DispatchHint, Schedule)


def everything() -> list[Any]:
    return [list(table._base_manager.order_by("pk").values()) for table in TABLES]


@pytest.mark.parametrize("name", ENDPOINTS)
def test_its_permission_is_enough(name: str) -> None:
    endpoint = ENDPOINTS[name]
    request = endpoint.prepare()
    response = request.send(client_of(user_with(endpoint.permission)))
    assert response.status_code == endpoint.status, response.content


@pytest.mark.parametrize("codename", CODENAMES)
@pytest.mark.parametrize("name", ENDPOINTS)
def test_no_other_permission_is(name: str, codename: str) -> None:
    endpoint = ENDPOINTS[name]
    if codename == endpoint.permission:
        return
    request = endpoint.prepare()
    before = everything()
    response = request.send(client_of(user_with(codename)))
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert everything() == before


@pytest.mark.parametrize("name", ENDPOINTS)
def test_all_others_together_are_not_and_nobody_is_told_to_sign_in(name: str) -> None:
    endpoint = ENDPOINTS[name]
    request = endpoint.prepare()
    before = everything()
    others = user_with(*(set(CODENAMES) - {endpoint.permission}))
    assert request.send(client_of(others)).status_code == 403
    response = request.send(client_of(None))
    assert (response.status_code, response.json()["code"]) == (401, "not_authenticated")
    assert response["WWW-Authenticate"]
    assert response["Content-Type"] == "application/problem+json"
    assert everything() == before


def test_every_address_is_in_the_matrix() -> None:
    """A new one that nobody has thought about would be found here."""
    names = {
        pattern.name for pattern in get_resolver("django_durable.rest.urls").url_patterns if pattern.name is not None
    }
    assert names == {
        "approval-list",
        "callback-detail",
        "dead-letter-list",
        "dead-letter-retry",
        "event-list",
        "execution-cancel",
        "execution-children",
        "execution-decide",
        "execution-detail",
        "execution-fork",
        "execution-history",
        "execution-list",
        "execution-pause",
        "execution-result",
        "execution-resume",
        "execution-retry",
        "execution-signal",
        "execution-update",
        "execution-value",
        "hint-list",
        "hint-requeue",
        "plane-list",
        "schedule-list",
        "schedule-pause",
        "schedule-resume",
        "schedule-trigger",
        "schema-list",
        "stats-list",
        "workflow-list",
    }


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_method_that_an_address_does_not_have_is_405(name: str) -> None:
    request = ENDPOINTS[name].prepare()
    root = superuser()
    before = everything()
    wrong = {"put", "patch", "delete", "options", "post", "get"} - {"post", "get"}
    if name not in ("list", "start"):
        wrong.add("post" if request.method == "get" else "get")
    for method in sorted(wrong):
        response = getattr(root, method)(request.url, {})
        assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed"), method
        assert response["Allow"]
    assert everything() == before


def test_a_request_from_another_site_is_refused() -> None:
    request = ENDPOINTS["cancel"].prepare()
    user = user_with(*CODENAMES)
    forged = APIClient(enforce_csrf_checks=True)
    forged.force_login(user)
    before = everything()
    response = forged.post(request.url, request.body, format="json")
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert everything() == before


def test_an_action_without_a_verb_is_denied_to_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    from django_durable.rest.executions import ExecutionViewSet

    monkeypatch.setattr(ExecutionViewSet, "verbs", {})
    assert superuser().get(f"{BASE}executions/").status_code == 403


def deny(request: Any) -> None:
    raise PermissionDenied


def test_classes_of_the_project_take_the_place_of_the_table(settings: Any) -> None:
    request = ENDPOINTS["cancel"].prepare()
    settings.DURABLE = {"REST_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"]}
    assert request.send(client_of(None)).status_code == 401
    assert request.send(client_of(user_with())).status_code == 200


def test_an_open_interface_still_attributes_what_operators_do(settings: Any) -> None:
    settings.DURABLE = {"REST_PERMISSION_CLASSES": []}
    nobody = client_of(None)
    assert ENDPOINTS["list"].prepare().send(nobody).status_code == 200
    assert ENDPOINTS["signal"].prepare().send(nobody).status_code == 200
    request = ENDPOINTS["cancel"].prepare()
    assert request.send(nobody).status_code == 401
    assert request.execution is not None
    assert Execution.objects.locate(request.execution.pk).status == "waiting"


def test_a_resolver_may_deny_a_request(settings: Any) -> None:
    settings.DURABLE = {"TENANT_RESOLVER": f"{__name__}.deny"}
    response = superuser().get(f"{BASE}executions/")
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")

"""What is refused, too much, or away: problem details with a stable code, and never a name that is nobody's business."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from django_durable import errors
from django_durable.operators.scope import Scope
from django_durable.rest.problem import problem_of
from tests.rest.flows import run
from tests.rest.visitors import BASE, EXECUTIONS, client_of, of, superuser, user_with

pytestmark = pytest.mark.django_db

OUTAGES = [
    errors.PlaneUnavailable("database 'eu' cannot be reached"),
    OperationalError('connection to server at "db.internal" failed'),
    InterfaceError("connection already closed"),
]


@pytest.mark.parametrize("error", OUTAGES, ids=lambda error: type(error).__name__)
def test_a_database_that_is_away_is_unavailable_and_not_missing(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execution, root = run("wait"), superuser()

    def away(*args: Any) -> Any:
        raise error

    monkeypatch.setattr(Scope, "find", away)
    monkeypatch.setattr(Scope, "places", away)
    with caplog.at_level(logging.WARNING, logger="django_durable.rest"):
        for answer in (root.get(EXECUTIONS), root.get(of(execution)), root.post(of(execution, "cancel"), {})):
            assert (answer.status_code, answer.json()["code"]) == (503, "plane_unavailable")
            assert answer["Retry-After"]
            assert "internal" not in answer.content.decode()
            assert "'eu'" not in answer.content.decode()
    assert "db.internal" not in caplog.text


def test_a_bug_is_raised_and_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    root = superuser()

    def broken(*args: Any) -> Any:
        raise KeyError("bug")

    monkeypatch.setattr(Scope, "find", broken)
    with pytest.raises(KeyError, match="bug"):
        root.get(f"{EXECUTIONS}x/")


def subclasses(cls: type[errors.DurableError]) -> list[type[errors.DurableError]]:
    return [one for child in cls.__subclasses__() for one in (child, *subclasses(child))]


@pytest.mark.parametrize("cls", subclasses(errors.DurableError), ids=lambda cls: cls.__name__)
def test_every_error_of_the_tree_has_an_answer(cls: type[errors.DurableError]) -> None:
    if not cls.__module__.startswith("django_durable"):
        return
    error = cls.__new__(cls)
    error.args = ("what was wrong",)
    if isinstance(error, errors.StepFailed):
        error.step, error.error_type, error.attempts = "a", "b", 1
    if isinstance(error, errors.ChildFailed):
        error.workflow, error.status, error.error_type = "a", "b", "c"
    answer = problem_of(error, "/")
    assert answer is not None
    assert answer.status_code in (400, 404, 409, 413, 422, 429, 503)
    assert answer.data["code"] == cls.code


def test_a_client_that_asks_too_often_is_told_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from django_durable.rest import throttle

    monkeypatch.setattr(
        throttle, "RATES", {"durable_read": "2/min", "durable_write": "1/min", "durable_callback": "1/min"}
    )
    execution = run("wait")
    ann, bob = client_of(user_with("view_execution", "signal_execution")), superuser()
    assert [ann.get(EXECUTIONS).status_code for _ in range(3)] == [200, 200, 429]
    refused = ann.get(EXECUTIONS)
    assert refused.json()["code"] == "throttled"
    assert 0 < int(refused["Retry-After"]) <= 61
    # Reading and writing are counted apart, and so are users and callbacks.
    body = {"name": "go"}
    assert [ann.post(of(execution, "signal"), body).status_code for _ in range(2)] == [200, 429]
    assert bob.get(EXECUTIONS).status_code == 200
    guess = f"{BASE}callbacks/guess/"
    assert [client_of(None).post(guess, {}).status_code for _ in range(2)] == [404, 429]


def test_the_projects_rates_and_classes_go_first(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from django_durable.rest.throttle import ScopedThrottle

    monkeypatch.setattr(ScopedThrottle, "THROTTLE_RATES", {"durable_read": "1/min", "durable_write": None})
    root, execution = superuser(), run("wait")
    assert [root.get(EXECUTIONS).status_code for _ in range(2)] == [200, 429]
    assert [root.post(of(execution, "signal"), {"name": "go"}).status_code for _ in range(3)] == [200] * 3
    settings.DURABLE = {"REST_THROTTLE_CLASSES": []}
    assert root.get(EXECUTIONS).status_code == 200


def test_the_projects_authentication_counts_unless_ours_is_chosen(settings: Any) -> None:
    root = superuser()
    settings.DURABLE = {"REST_AUTHENTICATION_CLASSES": ["rest_framework.authentication.BasicAuthentication"]}
    refused = root.get(EXECUTIONS)  # the session counts no more
    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, 'Basic realm="api"')
    settings.DURABLE = {"REST_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"]}
    assert root.get(EXECUTIONS).status_code == 200
    assert client_of(None).get(EXECUTIONS)["WWW-Authenticate"] == 'Session realm="durable"'
    wrong = client_of(None).get(EXECUTIONS, headers={"Authorization": "Basic !"})
    assert wrong.status_code == 401

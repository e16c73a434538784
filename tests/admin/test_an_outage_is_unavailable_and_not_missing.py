"""A database that does not answer: 503 and "try again", never "not found", and nothing is half done."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import InterfaceError, OperationalError
from django.test import Client

from django_durable.admin import scope
from django_durable.admin.acts import Retry
from django_durable.errors import PlaneUnavailable
from django_durable.models import Execution
from tests.admin.flows import failed
from tests.admin.visitors import EXECUTIONS, VERBS, page_of, verb_of

pytestmark = pytest.mark.django_db

OUTAGES = [
    PlaneUnavailable("plane 'eu' cannot be reached"),
    OperationalError('connection to server at "db.internal" failed'),
    InterfaceError("connection already closed"),
]


@pytest.mark.parametrize("error", OUTAGES, ids=lambda error: type(error).__name__)
def test_an_execution_on_a_plane_that_is_away_is_unavailable(
    error: Exception,
    superuser: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    execution = failed()

    def away(*args: Any) -> Any:
        raise error

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(scope.Scope, "find", away)
        patch.setattr(scope.Scope, "narrow", away)
        requests = [superuser.get(EXECUTIONS), superuser.get(page_of(execution))]
        for verb in VERBS:
            requests += [superuser.get(verb_of(execution, verb)), superuser.post(verb_of(execution, verb))]
    for response in requests:
        assert response.status_code == 503
        text = response.content.decode()
        assert "Nothing is lost" in text
        assert "db.internal" not in text
    assert "db.internal" not in caplog.text
    assert f"{page_of(execution)}: the database cannot be reached ({type(error).__name__})" in caplog.text
    assert Execution.objects.locate(execution.pk).status == "failed"


def test_an_error_of_the_code_is_not_taken_for_an_outage(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = failed()

    def broken(*args: Any) -> Any:
        raise KeyError("bug")

    monkeypatch.setattr(scope.Scope, "find", broken)
    with pytest.raises(KeyError):
        superuser.get(page_of(execution))


def test_an_outage_in_the_middle_tells_what_was_done_before_it(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = [failed() for _ in range(3)]
    retried: list[Any] = []

    def perform(self: Any, execution: Execution[Any], actor: Any, told: Any) -> str:
        if retried:
            raise OperationalError("server closed the connection unexpectedly")
        retried.append(execution.pk)
        return f"Execution {execution.pk} is retried."

    monkeypatch.setattr(Retry, "perform", perform)
    data = {"action": "retry_selected", "confirmed": "yes", ACTION_CHECKBOX_NAME: [one.pk for one in executions]}
    refused = superuser.post(EXECUTIONS, data)
    assert refused.status_code == 503
    assert "may have been done" in refused.content.decode()
    assert "nothing was changed" not in refused.content.decode()
    assert f"Execution {retried[0]} is retried." in superuser.get(EXECUTIONS).content.decode()


def test_a_lock_is_no_outage(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = failed()

    def locked(*args: Any) -> Any:
        raise OperationalError("database is locked")

    monkeypatch.setattr(scope.Scope, "find", locked)
    with pytest.raises(OperationalError, match="locked"):
        superuser.get(page_of(execution))

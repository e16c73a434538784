"""What goes wrong under a message is logged by class and id; nothing is raised into Celery."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from django_durable import Execution, tasks
from django_durable.models import DispatchHint
from django_durable.runtime import claim_run
from django_durable.runtime.messages_due import MessagesDue
from django_durable.runtime.stop_flag import StopFlag
from tests.celery.workflows import quick

MARKER = "words-of-a-customer"


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    return fail


@pytest.fixture(autouse=True)
def a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_outage", False)


@pytest.mark.django_db
def test_an_error_of_the_engine_is_logged_by_class_and_execution(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(claim_run, "run_claim", failing(ValueError(MARKER)))
    execution: Execution[str] = quick.start(MARKER)
    caplog.set_level(logging.INFO)
    assert tasks.run(str(DispatchHint.objects.get().id), StopFlag()) is None
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == f"the turn of execution {execution.id} failed in the engine (ValueError)"
    assert MARKER not in caplog.text


def test_an_outage_of_the_database_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "run_hint", failing(OperationalError(MARKER)))
    caplog.set_level(logging.INFO)
    for _ in range(3):
        assert tasks.run(str(uuid4()), StopFlag()) is None
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "OperationalError" in record.getMessage()
    monkeypatch.setattr(tasks, "run_hint", lambda hint_id, stop: True)
    tasks.run(str(uuid4()), StopFlag())
    monkeypatch.setattr(tasks, "run_hint", failing(OperationalError(MARKER)))
    tasks.run(str(uuid4()), StopFlag())
    assert len(caplog.records) == 2
    assert MARKER not in caplog.text


def test_a_tick_whose_sweeps_fail_sends_its_messages_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    due, sent = MessagesDue(), []
    monkeypatch.setattr("django_durable.runtime.tick.tick", failing(RuntimeError(MARKER)))
    monkeypatch.setattr(due, "send", lambda using, put: sent.append(using))
    tasks.tick(due, lambda hint_id, queue: True)
    assert sent == ["default"]
    assert "RuntimeError" in caplog.text
    assert MARKER not in caplog.text


def test_a_message_in_a_worker_that_stops_runs_nothing_and_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "run_hint", failing(AssertionError("it was run")))
    stop, hint_id = StopFlag(), uuid4()
    stop.set()
    assert tasks.run(str(hint_id), stop) == hint_id
    assert tasks.run("no id", stop) is None

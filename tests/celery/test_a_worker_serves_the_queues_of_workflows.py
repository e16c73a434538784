"""Without ``-Q`` a worker serves every queue that a workflow or step declares; ``-Q`` and ``-X`` are obeyed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from celery import Celery

from django_durable import celery as face
from tests.celery import workflows

assert workflows  # it declares the queue "elsewhere"


def served(app: Celery, **options: str) -> set[str]:
    """What a worker of this application consumes, in the order in which Celery goes about it."""
    face._note_exclusions(options={"exclude_queues": options.get("exclude", "").split(",")})
    app.amqp.queues.select(options.get("queues", "").split(",") if "queues" in options else None)
    face._begin_worker(sender=SimpleNamespace(app=app))
    return set(app.amqp.queues.consume_from)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Celery:
    monkeypatch.setattr(face, "_app", None)
    monkeypatch.setattr(face, "_excluded", set())
    app = Celery("own", set_as_current=False)
    face.setup(app)
    return app


def test_a_plain_worker_serves_all_of_them(app: Celery) -> None:
    assert {"celery", "durable", "elsewhere", "of a step"} <= served(app)


def test_an_excluded_queue_is_not_served(app: Celery) -> None:
    assert {"celery", "durable"} <= served(app, exclude="elsewhere")
    assert "elsewhere" not in app.amqp.queues.consume_from


def test_a_worker_with_a_list_serves_what_is_in_it(app: Celery) -> None:
    assert served(app, queues="elsewhere,own") == {"elsewhere", "own"}


def test_a_queue_that_the_project_defines_is_taken_as_it_is(app: Celery) -> None:
    app.conf.task_queues = {"durable": {"exchange": "special", "routing_key": "special"}}
    assert {"durable", "elsewhere"} <= served(app)
    assert app.amqp.queues["durable"].routing_key == "special"


def test_where_unknown_queues_are_forbidden_the_worker_starts_without_them(app: Celery) -> None:
    app.conf.task_create_missing_queues = False
    assert served(app) == {"celery"}


def test_the_worker_of_another_application_is_left_alone(app: Celery) -> None:
    other = Celery("other", set_as_current=False)
    assert served(other) == {"celery"}

"""Queues with limits in the admin: seen by operators, changed by POST with the permission, with the actor's name."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from django_durable import FlowQueue, InvalidTransition
from django_durable.dispatch.flow_queue import refresh
from django_durable.models import QueueLimit
from django_durable.operators.queue import change_queue, pause_queue, resume_queue
from tests.services.backend import database_alias

USING = database_alias()
pytestmark = pytest.mark.django_db(databases="__all__")

mail = FlowQueue("admin.mail", concurrency=3, rate=(10, 60))


@pytest.fixture
def queue(db: None) -> QueueLimit:
    refresh(USING)
    return QueueLimit.objects.using(USING).get(name="admin.mail")


def page(queue: QueueLimit) -> str:
    return reverse("admin:django_durable_queuelimit_change", args=[queue.pk])


def test_a_change_is_a_post_and_names_who_did_it(superuser: Client, queue: QueueLimit) -> None:
    assert b"admin.mail" in superuser.get(reverse("admin:django_durable_queuelimit_changelist")).content
    sent = superuser.post(page(queue), {"concurrency": "5", "rate": "", "period_seconds": "", "paused": "on"})
    assert sent.status_code == 302
    queue.refresh_from_db()
    assert (queue.concurrency, queue.rate, queue.paused) == (5, None, True)
    assert queue.changed_by
    superuser.post(
        reverse("admin:django_durable_queuelimit_changelist"), {"action": "resume", "_selected_action": [queue.pk]}
    )
    queue.refresh_from_db()
    assert queue.paused is False


def test_who_may_only_look_changes_nothing(viewer: Client, queue: QueueLimit) -> None:
    assert viewer.post(page(queue), {"concurrency": "5"}).status_code == 403
    queue.refresh_from_db()
    assert queue.concurrency == 3


def test_the_verbs_need_an_actor_a_queue_and_sensible_numbers(queue: QueueLimit) -> None:
    pause_queue(mail, actor="ann")
    queue.refresh_from_db()
    assert (queue.paused, queue.changed_by) == (True, "ann")
    resume_queue("admin.mail", actor="ann")
    change_queue(mail, actor="ann", concurrency=1, rate=None)
    queue.refresh_from_db()
    assert (queue.paused, queue.concurrency, queue.rate) == (False, 1, None)
    with pytest.raises(ValueError):
        pause_queue(mail, actor="")
    with pytest.raises(ValueError):
        change_queue(mail, actor="ann", concurrency=0, rate=None)
    with pytest.raises(InvalidTransition):
        pause_queue("nobody's", actor="ann")

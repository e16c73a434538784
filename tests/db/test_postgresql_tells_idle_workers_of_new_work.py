"""``NOTIFY``: what another process commits is heard at once, where the database is PostgreSQL and the project asks."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections, transaction

from django_durable import Context, workflow
from django_durable.dispatch.notify import can_notify
from django_durable.runtime.listener import Listener
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@workflow("notify.quick")
def quick(ctx: Context) -> None: ...


@pytest.fixture
def opted_in(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "NOTIFY": True}


@pytest.fixture
def heard(opted_in: None) -> Iterator[queue.Queue[str]]:
    notices: queue.Queue[str] = queue.Queue()
    listener = Listener("default", notices.put)
    listener.start()
    try:
        assert listener.listening.wait(30)
        assert notices.get(timeout=30) == ""  # what it may have missed
        yield notices
    finally:
        listener.close()


def test_other_databases_are_left_alone(opted_in: None) -> None:
    assert can_notify("default") is (connection.vendor == "postgresql")
    assert quick.start().status == "pending"


def test_nothing_is_told_where_nobody_asked() -> None:
    assert not can_notify("default")


if connection.vendor == "postgresql":

    def test_a_start_is_heard_after_its_commit_with_its_queue(heard: queue.Queue[str]) -> None:
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            quick.using(queue="rolled-back").start()
            raise ZeroDivisionError
        with transaction.atomic():
            quick.using(queue="first").start()
        quick.using(queue="second").start()
        assert [heard.get(timeout=30), heard.get(timeout=30)] == ["first", "second"]

    def test_a_listener_whose_session_was_ended_listens_again(heard: queue.Queue[str]) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query LIKE 'LISTEN%%' AND datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert heard.get(timeout=60) == ""  # it listens again, and has its worker look once
        quick.start()
        assert heard.get(timeout=30) == "durable"
        wait_until(heard.empty, within=5)

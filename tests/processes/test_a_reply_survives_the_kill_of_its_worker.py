"""SIGKILL between an update and its reply, and between an event and its step: the sender and the run get theirs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from django_durable import complete_callback
from django_durable.events import publish
from django_durable.models import EventTaken, EventWait, Message
from tests.processes.shop import Shop


def test_sender_and_run_get_what_is_theirs_whoever_dies(shop: Shop) -> None:
    first = shop.worker()
    execution = shop.start("conversing", "x")

    def send() -> object:
        try:
            return execution.send_update("add", 5, timeout=60)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as sender:
        reply = sender.submit(send)
        shop.wait_for_effect("begin x-a")
        first.kill()
        second = shop.worker()
        shop.wait_for_effect("begin x-a", times=2)
        shop.open("x-a")
        assert reply.result(60) == {"added": 5}

    shop.wait_for_status(execution, "waiting")
    publish("sold", {"name": "x", "n": 1})
    shop.wait_for_effect("begin x-b")
    second.kill()
    publish("sold", {"name": "x", "n": 2})
    assert complete_callback(execution.value("token"), "paid") is True
    shop.worker()
    shop.wait_for_effect("begin x-b", times=2)
    shop.open("x-b")
    done = shop.wait_for_status(execution, "completed")
    assert done.output == [5, 1, "paid"]
    assert EventTaken.objects.count() == 1
    assert not EventWait.objects.exists()
    assert not Message.objects.filter(consumed_by=None).exists()

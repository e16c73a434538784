"""The thread that sends: bounded, patient with a broker that is away, and brief about it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from django_durable.dispatch import broker as module
from django_durable.dispatch.broker import CAPACITY, Broker, BrokerUnavailable, Send
from tests.services.waiting import wait_until

MARKER = "words-of-a-customer"


class Wire:
    """A broker that does what the test says."""

    def __init__(self) -> None:
        self.connections = 0
        self.sent: list[UUID | None] = []
        self.failures: list[Exception] = []
        self.open = threading.Event()
        self.open.set()

    def connect(self) -> Send:
        self.connections += 1
        return self.send

    def send(self, hint_id: UUID | None, queue: str) -> None:
        assert self.open.wait(30)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(hint_id)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    wire = Wire()
    yield wire
    wire.open.set()


def test_messages_are_sent_in_order_over_one_connection(wire: Wire) -> None:
    broker, ids = Broker(wire.connect), [uuid4() for _ in range(50)]
    assert all(broker.put(each, "durable") for each in ids)
    assert broker.flush(30)
    assert wire.sent == ids
    assert wire.connections == 1


def test_nothing_is_started_before_the_first_message(wire: Wire) -> None:
    before = threading.active_count()
    broker = Broker(wire.connect)
    assert broker.flush(30)
    assert threading.active_count() == before
    assert wire.connections == 0


def test_a_silent_broker_blocks_nobody_and_what_is_too_much_is_dropped(wire: Wire) -> None:
    wire.open.clear()
    broker = Broker(wire.connect)
    begin = time.monotonic()
    taken = [broker.put(uuid4(), "durable") for _ in range(CAPACITY + 10)]
    assert not broker.flush(0.05)
    assert time.monotonic() - begin < 1
    assert CAPACITY <= sum(taken) <= CAPACITY + 1
    wire.open.set()
    assert broker.flush(30)
    assert len(wire.sent) == sum(taken)


def test_an_outage_is_reported_once_and_the_message_in_hand_is_kept(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wire.failures = [BrokerUnavailable(MARKER) for _ in range(5)]
    broker, ids = Broker(wire.connect), [uuid4(), uuid4()]
    for each in ids:
        broker.put(each, "durable")
    wait_until(lambda: wire.sent == ids)
    wait_until(lambda: len(caplog.records) == 2)
    down, up = caplog.records
    assert (down.levelname, up.levelname) == ("WARNING", "INFO")
    assert "cannot be reached (BrokerUnavailable)" in down.getMessage()
    assert MARKER not in caplog.text
    assert wire.connections == 6


def test_the_end_of_a_process_does_not_wait_for_a_broker_that_is_away(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 5.0)
    wire.failures = [BrokerUnavailable()]
    broker = Broker(wire.connect)
    broker.put(uuid4(), "durable")
    begin = time.monotonic()
    assert not broker.flush(30)
    assert time.monotonic() - begin < 5


def test_an_idle_connection_that_was_closed_is_no_outage(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    broker, ids = Broker(wire.connect), [uuid4(), uuid4()]
    broker.put(ids[0], "durable")
    assert broker.flush(30)
    wire.failures = [BrokerUnavailable()]
    broker.put(ids[1], "durable")
    assert broker.flush(30)
    assert wire.sent == ids
    assert wire.connections == 2
    assert not caplog.records


def test_a_message_that_can_never_be_sent_does_not_stop_the_others(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.failures = [KeyError(MARKER), KeyError(MARKER)]
    broker, last = Broker(wire.connect), uuid4()
    for each in (uuid4(), uuid4(), last):
        broker.put(each, "nowhere")
    assert broker.flush(30)
    assert wire.sent == [last]
    [record] = caplog.records
    assert record.getMessage() == "no message can be sent to queue 'nowhere': KeyError"

"""Each part of a worker needs a connection; a pool that holds fewer starves the renewal of leases."""

from __future__ import annotations

import logging

import pytest

from django_durable.runtime.worker import Worker
from tests.driving import connection


@pytest.mark.parametrize(
    ("pool", "warned"),
    [(True, True), ({"max_size": 6}, True), ({"max_size": 7}, False), ({"max_size": None}, False), (None, False)],
)
def test_it_is_said_at_the_start(
    pool: object, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"pool": pool})
    with caplog.at_level(logging.WARNING, "django_durable"):
        Worker(concurrency=4)._warn_of_small_pool()
    assert ("raise max_size" in caplog.text) is warned

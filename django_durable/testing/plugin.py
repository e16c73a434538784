"""The pytest plugin, registered by entry point: the fixtures ``durable`` and ``durable_worker``.

It is imported in every pytest session of an environment that has the package, with Django or without: nothing of
Django is imported before a fixture is used.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django_durable.runtime.worker import Worker
    from django_durable.testing.kit import DurableKit

running: pytest.Item | None = None
"""The test that is being run: what the functions of ``django_durable.testing`` begin ends with it."""


@pytest.fixture
def durable(db: None) -> Iterator[DurableKit]:
    """The testing kit: workflows to their end inside this test's transaction. Brings ``db`` along."""
    from django_durable.testing.kit import DurableKit

    with DurableKit(always_check=True) as kit:
        yield kit


@pytest.fixture
def durable_worker(transactional_db: None) -> Iterator[Worker]:
    """A live embedded worker for the length of this test; needs and brings a transactional database."""
    from django_durable.testing.kit import check_liveness
    from django_durable.testing.live import live_worker

    with live_worker() as worker:
        yield worker
    check_liveness()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which test runs."""
    global running
    running = item


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """End what functions began for this test, while its database is still there."""
    global running
    running = None
    error: Exception | None = None
    ambient = sys.modules.get("django_durable.testing.ambient")
    if ambient is not None:
        try:
            ambient.close_kits_of(item)
        except Exception as found:
            error = found
    yield  # whatever was found, the test's fixtures must be torn down
    if error is not None:
        raise error

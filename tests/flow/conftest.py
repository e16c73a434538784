"""What the tests of limits have in common: the queues' rows are there, as after a worker's first look."""

from __future__ import annotations

import pytest

from tests.processes.conftest import shop as shop


@pytest.fixture
def queues(transactional_db: None) -> None:
    """The rows of the declared queues."""
    from django_durable.dispatch.flow_queue import refresh
    from tests.driving import USING

    refresh(USING)

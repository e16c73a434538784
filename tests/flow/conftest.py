"""What the tests of this tier have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.conftest import shop as shop

pytest_plugins = ["django_durable.testing.plugin"]


@pytest.fixture
def queues(transactional_db: None) -> None:
    """The rows of the declared queues, as after a worker's first look."""
    from django_durable.dispatch.flow_queue import refresh
    from tests.driving import USING

    refresh(USING)


@pytest.fixture(autouse=True)
def schedules_of_the_test_alone() -> Iterator[None]:
    """No schedule is declared but what the test declares; the clock is what it was afterwards."""
    from django_durable import clock
    from django_durable.authoring.registry import all_workflows
    from django_durable.operators.schedules.declaring import forget_declared

    before = {workflow: dict(workflow.schedules) for workflow in all_workflows()}
    for workflow in before:
        workflow.schedules.clear()
    forget_declared()
    with clock.shifted():
        yield
    for workflow in all_workflows():
        workflow.schedules.clear()
        workflow.schedules.update(before.get(workflow, {}))
    forget_declared()

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest_plugins = ["django_durable.testing.plugin"]


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

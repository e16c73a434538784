"""What a test says about an execution's past."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from django_durable.authoring.recorded import read_history
from django_durable.authoring.replay import find_departure
from django_durable.authoring.step import Step
from django_durable.authoring.workflow import Workflow
from django_durable.models import Checkpoint, Execution


def assert_steps(execution: Execution[Any], names: Sequence[str | Step[..., Any]]) -> None:
    """Assert that exactly these steps have completed, in this order.

    Each by its full name, by the last part of it, or as the ``Step``. ``AssertionError`` shows the difference.
    """
    rows = Checkpoint.objects.using(execution.using).filter(
        execution_id=execution.pk, kind="step", status="completed"
    )
    done = list(rows.order_by("position", "item").values_list("name", flat=True))
    wanted = [name.name if isinstance(name, Step) else name for name in names]
    found = [_as_wanted(full, wanted) for full in done]
    if found != wanted:
        difference = "\n".join(difflib.ndiff(wanted, found))
        raise AssertionError(
            f"execution {execution.pk} ({execution.workflow}) has not completed these steps in this order"
            f" (- expected, + completed):\n{difference}"
        )


def assert_replays(workflow: Workflow[..., Any], history: Sequence[Mapping[str, Any]]) -> None:
    """Call the workflow's body with a stored history, without database and without running any step.

    ``history`` is what ``export_history`` gave, also after a trip through JSON, or a start entry followed by what
    ``execution.history()`` gave. Every operation has to meet the record of its position; behind the last record
    the code may do what it likes, as a run that was under way would. Raises ``AssertionError`` that names the
    position where they part, ``ValueError`` for what is no history.
    """
    problem = find_departure(workflow, read_history(history), error_texts=True)
    if problem is not None:
        raise AssertionError(
            f"workflow {workflow.name!r} version {workflow.version!r} does not replay the history: {problem}"
        )


def _as_wanted(full: str, wanted: Sequence[str]) -> str:
    """The completed step's name in the form that the test uses for it."""
    last = full.rpartition(".")[2]
    if full in wanted:
        return full
    return last if last in wanted or not any("." in name for name in wanted) else full

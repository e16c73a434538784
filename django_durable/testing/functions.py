"""The kit's verbs as functions: each speaks to the kit of the test that is running."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django_durable.authoring.workflow import Workflow
from django_durable.models import Execution
from django_durable.testing import overrides
from django_durable.testing.ambient import current_kit
from django_durable.testing.crash import CrashedTurn
from django_durable.testing.overrides import ChildOverride, StepOverride
from django_durable.testing.timeline import Skip


def run(workflow: Workflow[..., Any], *args: Any, **using: Any) -> Execution[Any]:
    """``DurableKit.run``."""
    return current_kit().run(workflow, *args, **using)


def run_until_idle(*, skip: Skip = "sleeps", max_turns: int = 10_000) -> int:
    """``DurableKit.run_until_idle``."""
    return current_kit().run_until_idle(skip=skip, max_turns=max_turns)


def advance(duration: float | timedelta) -> None:
    """``DurableKit.advance``."""
    current_kit().advance(duration)


def stub_step(step: Any, returns: Any = overrides.UNSET, side_effect: Any = overrides.UNSET) -> StepOverride:
    """``DurableKit.stub_step``."""
    return current_kit().stub_step(step, returns, side_effect)


def stub_child(
    workflow: Workflow[..., Any], returns: Any = overrides.UNSET, side_effect: Any = overrides.UNSET
) -> ChildOverride:
    """``DurableKit.stub_child``."""
    return current_kit().stub_child(workflow, returns, side_effect)


def fail_step(step: Any, times: int = 1, error: BaseException | type[BaseException] | None = None) -> StepOverride:
    """``DurableKit.fail_step``."""
    return current_kit().fail_step(step, times, error)


def crash_turn(at_position: int, *, undo: bool = False) -> CrashedTurn:
    """``DurableKit.crash_turn``."""
    return current_kit().crash_turn(at_position, undo=undo)


def on_wait(name: str, function: Callable[[Execution[Any]], object]) -> None:
    """``DurableKit.on_wait``."""
    current_kit().on_wait(name, function)

"""DurableTestMixin: the kit's verbs as methods of a test class."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_durable.authoring.current import CurrentStep
from django_durable.authoring.step import Step
from django_durable.authoring.workflow import Workflow
from django_durable.models import Execution
from django_durable.testing import overrides
from django_durable.testing.crash import CrashedTurn
from django_durable.testing.kit import DurableKit
from django_durable.testing.overrides import ChildOverride, StepOverride
from django_durable.testing.timeline import Skip

if TYPE_CHECKING:
    Base = unittest.TestCase
else:
    Base = object


class DurableTestMixin(Base):
    """``class RefundTests(DurableTestMixin, TestCase)``; it comes first among the bases.

    ``self.durable`` is the test's ``DurableKit``, made when it is first used and closed as the test's clean-up.
    """

    _durable: DurableKit | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if issubclass(cls, unittest.TestCase) and cls.run is unittest.TestCase.run:
            raise TypeError(f"{cls.__name__}: DurableTestMixin must come before the TestCase among the bases")

    @property
    def durable(self) -> DurableKit:
        """The kit of this test."""
        if self._durable is None:
            kit = self._durable = DurableKit()
            kit.open()
            self.addCleanup(self._close_durable)
        return self._durable

    def _close_durable(self) -> None:
        kit, self._durable = self._durable, None
        if kit is not None:
            kit.close()

    def run(self, result: Any = None, *args: Any, **using: Any) -> Any:
        """``DurableKit.run`` for a workflow; for anything else what it is to ``unittest``: the test is run."""
        if isinstance(result, Workflow):
            return self.durable.run(result, *args, **using)
        return super().run(result, *args, **using)

    def run_until_idle(self, *, skip: Skip = "sleeps", max_turns: int = 10_000) -> int:
        """``DurableKit.run_until_idle``."""
        return self.durable.run_until_idle(skip=skip, max_turns=max_turns)

    def advance(self, duration: float | timedelta) -> None:
        """``DurableKit.advance``."""
        self.durable.advance(duration)

    def on_wait(self, name: str, function: Callable[[Execution[Any]], object]) -> None:
        """``DurableKit.on_wait``."""
        self.durable.on_wait(name, function)

    def stub_step(
        self, step: Any, returns: Any = overrides.UNSET, side_effect: Any = overrides.UNSET
    ) -> StepOverride:
        """``DurableKit.stub_step``."""
        return self.durable.stub_step(step, returns, side_effect)

    def stub_child(
        self, workflow: Workflow[..., Any], returns: Any = overrides.UNSET, side_effect: Any = overrides.UNSET
    ) -> ChildOverride:
        """``DurableKit.stub_child``."""
        return self.durable.stub_child(workflow, returns, side_effect)

    def fail_step(
        self, step: Any, times: int = 1, error: BaseException | type[BaseException] | None = None
    ) -> StepOverride:
        """``DurableKit.fail_step``."""
        return self.durable.fail_step(step, times, error)

    def crash_turn(self, at_position: int, *, undo: bool = False) -> CrashedTurn:
        """``DurableKit.crash_turn``."""
        return self.durable.crash_turn(at_position, undo=undo)

    def assert_steps(self, execution: Execution[Any], names: Sequence[str | Step[..., Any]]) -> None:
        """``DurableKit.assert_steps``."""
        self.durable.assert_steps(execution, names)

    def assert_replays(self, workflow: Workflow[..., Any], history: Sequence[Mapping[str, Any]]) -> None:
        """``DurableKit.assert_replays``."""
        self.durable.assert_replays(workflow, history)

    def export_history(self, execution: Execution[Any]) -> list[dict[str, Any]]:
        """``DurableKit.export_history``."""
        return self.durable.export_history(execution)

    def step_context(self, **options: Any) -> AbstractContextManager[CurrentStep]:
        """``DurableKit.step_context``."""
        return self.durable.step_context(**options)

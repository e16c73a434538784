"""DurableKit: the testing kit's verbs, for one test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from typing import Any, Self, TypeVar
from uuid import UUID

from django.db import connections

from django_durable.authoring.current import CurrentStep
from django_durable.authoring.options import StartOptions
from django_durable.authoring.recorded import export_history
from django_durable.authoring.step import Step
from django_durable.authoring.workflow import Workflow
from django_durable.clock import shifted
from django_durable.models import Execution
from django_durable.operators.doctor import liveness_violations
from django_durable.operators.reload import reload
from django_durable.operators.schedules.declaring import forget_declared
from django_durable.planes.registry import forget_planes
from django_durable.planes.selection import spine_alias
from django_durable.testing import ambient, overrides
from django_durable.testing.clockwork import Clockwork
from django_durable.testing.crash import CrashedTurn
from django_durable.testing.driver import Driver
from django_durable.testing.expectations import assert_replays, assert_steps
from django_durable.testing.fake_step import step_context
from django_durable.testing.overrides import ChildOverride, Override, StepOverride
from django_durable.testing.places import usable_databases
from django_durable.testing.timeline import Skip

AnyOverride = TypeVar("AnyOverride", bound=Override)
_OPTIONS = frozenset(StartOptions.__dataclass_fields__)


class DurableKit:
    """``with DurableKit() as durable:`` for one test; the fixture, the mixin and the functions make one of their own.

    At the end the clock is what it was, stubs and crashes are gone, and the liveness guarantee is checked: every
    execution that has not ended must have a lease, a due time, or something that it waits for. Without
    ``always_check`` that is left out where the kit never touched the database.
    """

    def __init__(self, *, always_check: bool = False) -> None:
        self._clockwork = Clockwork()
        self._driver = Driver(self._clockwork)
        self._ends = ExitStack()
        self._check = always_check

    # -- its life ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        # A test that has failed says more than what it left behind.
        self.close(check=kind is None)

    def open(self) -> None:
        """Begin: the functions of ``django_durable.testing`` speak to this kit until ``close``."""
        # Planes that a test registers are gone with its transaction.
        forget_planes()
        forget_declared()
        self._driver.open()
        self._ends.callback(forget_planes)
        self._ends.enter_context(shifted())
        self._ends.enter_context(ambient.opened(self))

    def close(self, *, check: bool = True) -> None:
        """End. Raises ``AssertionError`` where an execution could never go on, unless ``check`` is false."""
        due, self._check = self._check and check, False
        with self._ends:
            if due:
                check_liveness()

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, workflow: Workflow[..., Any], *args: Any, **using: Any) -> Execution[Any]:
        """Start a workflow, run everything until idle, and return the execution as it is then.

        With ``tenant="acme"`` it lives on that tenant's plane, whose alias the test must be allowed to use
        (``databases``). Keyword arguments that name an option of ``Workflow.using`` (``key``, ``tenant``, ``tags``,
        …) are that option; the others go to the workflow. Raises what ``start`` raises, never what the workflow
        raises: look at ``status``, ``error`` or ``result()``.
        """
        if not isinstance(workflow, Workflow):
            raise TypeError(f"run() takes a workflow, not {type(workflow).__name__}")
        options = {name: using.pop(name) for name in _OPTIONS & set(using)}
        both = sorted(set(options) & set(workflow.signature.parameters))
        if both:
            raise TypeError(
                f"{both[0]!r} is a parameter of workflow {workflow.name!r} and an option of using(); write"
                " workflow.using(…).start(…), then run_until_idle()"
            )
        chosen = workflow.using(**options) if options else workflow
        with connections[chosen.alias(options.get("tenant"))].cursor():
            pass  # where the test may not use this database, Django says so better than anything later
        execution = chosen.start(*args, **using)
        self.run_until_idle()
        return reload(execution)

    def run_until_idle(self, *, skip: Skip = "sleeps", max_turns: int = 10_000) -> int:
        """Run what is due, and what becomes due, until nothing is; returns the number of turns.

        ``skip="sleeps"`` moves the clock over sleeps, retry delays and starts for later, ``"all"`` also over the
        timeouts of waits and over deadlines; ``None`` leaves it alone. What waits for a message, is paused or is
        blocked is idle. A call that finds no execution alive moves it on to the next time of each schedule
        that takes part, once: the test's own ones do, and those of the project from ``advance`` on. Times that are
        passed over are caught up as declared. Raises ``AssertionError`` where ``max_turns`` turns were not enough.
        """
        self._check = True
        return self._driver.run_until_idle(skip, max_turns)

    def advance(self, duration: float | timedelta) -> None:
        """Move the clock forward by seconds or a timedelta; nothing runs.

        Called from within a step's body (a stub's ``side_effect``), that body has taken so long.
        """
        if not self._clockwork.in_turn:
            self._driver.declare()
        self._clockwork.advance(duration)

    def on_wait(self, name: str, function: Callable[[Execution[Any]], object]) -> None:
        """Until the end of the test, call ``function(execution)`` each time one suspends waiting for this name.

        The name of a signal, an update, an event, an approval, …, or the label of a breakpoint.
        """
        self._driver.waits.append((name, function))

    # -- what a step or a child does ------------------------------------------------------------------------------

    def stub_step(
        self, step: Any, returns: Any = overrides.UNSET, side_effect: Any = overrides.UNSET
    ) -> StepOverride:
        """Replace a step's body until the end of the ``with`` block, or without one until the end of the test.

        ``returns`` is its result, stored and read back like a real one; ``side_effect`` is a function, an
        exception, or an iterable of values and exceptions, one an attempt. ``calls`` of what this returns lists
        the attempts' arguments as ``unittest.mock.call`` objects.
        """
        return self._until_end(overrides.stub(step, returns, side_effect))

    def stub_child(
        self, workflow: Workflow[..., Any], returns: Any = overrides.UNSET, side_effect: Any = overrides.UNSET
    ) -> ChildOverride:
        """Replace a workflow's body where it runs as a child: its execution is started and ends as it would.

        ``returns`` is its result, and with an exception as ``side_effect`` it fails; like ``stub_step`` otherwise.
        Runs of it that have no parent have their own body. ``calls`` are in the order of the parameters.
        """
        return self._until_end(overrides.stub_child(workflow, returns, side_effect))

    def fail_step(
        self, step: Any, times: int = 1, error: BaseException | type[BaseException] | None = None
    ) -> StepOverride:
        """Let the next ``times`` attempts of a step raise; after them its body, or its stub, runs as before."""
        return self._until_end(overrides.fail(step, times, error))

    def crash_turn(self, at_position: int, *, undo: bool = False) -> CrashedTurn:
        """Let one process be gone after the body and before the checkpoint of this position, once.

        ``undo=True``: of the undo step that was registered at this position.
        ``run_until_idle`` goes on as another worker, whose take-over counts as a recovery; the clock does not
        move. ``happened`` of what this returns says whether a turn came that far.
        """
        crash = CrashedTurn(at_position, undo=undo)
        self._driver.crashes.append(crash)
        self._ends.callback(crash.end)
        return crash

    def _until_end(self, override: AnyOverride) -> AnyOverride:
        self._ends.callback(override.end)
        return override

    # -- what happened -------------------------------------------------------------------------------------------

    def assert_steps(self, execution: Execution[Any], names: Sequence[str | Step[..., Any]]) -> None:
        """Assert that exactly these steps have completed, in this order; see ``testing.assert_steps``."""
        assert_steps(execution, names)

    def assert_replays(self, workflow: Workflow[..., Any], history: Sequence[Mapping[str, Any]]) -> None:
        """Assert that the code of today takes the way of a stored history; see ``testing.assert_replays``."""
        assert_replays(workflow, history)

    def export_history(self, execution: Execution[Any]) -> list[dict[str, Any]]:
        """The execution's history as JSON-able data; see ``testing.export_history``."""
        return export_history(execution)

    def step_context(
        self, *, execution_id: UUID | None = None, position: int = 0, attempt: int = 1, **more: Any
    ) -> AbstractContextManager[CurrentStep]:
        """Let ``current_step()`` work around a body that is called directly; see ``testing.step_context``."""
        return step_context(execution_id=execution_id, position=position, attempt=attempt, **more)


def check_liveness() -> None:
    """Raise ``AssertionError`` naming the executions that have not ended and can never go on."""
    if connections[spine_alias()].needs_rollback:
        return  # the test has broken its own transaction; nothing can be read any more
    readable = [using for using in usable_databases() if not connections[using].needs_rollback]
    lost = [execution_id for using in readable for execution_id in liveness_violations(using)]
    if lost:
        raise AssertionError(
            f"{len(lost)} execution(s) can never go on, with no lease, no due time and nothing that they wait for:"
            f" {', '.join(str(execution_id) for execution_id in lost[:10])}"
        )

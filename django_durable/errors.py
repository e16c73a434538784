"""Every error of the package, one tree, each with a stable ``code`` slug.

    DurableError
    ├── FatalError             raised by a step: never retried
    ├── RetryAfter             raised by a step: try again at a time of its choosing
    ├── DirectCall             a step, workflow or query called straight from a workflow body
    ├── NotInStep              current_step() outside a step body
    ├── StepFailed             a step failed for good (raised in the body, on replay too)
    ├── StepTimeout            one of a step's four clocks ran out
    ├── StepInterrupted        an at-most-once body was started and its process is gone
    ├── ChildFailed, CallbackFailed
    ├── WaitTimeout            ← SignalTimeout UpdateTimeout EventTimeout ApprovalTimeout CallbackTimeout
    ├── BudgetExhausted
    ├── ExecutionFailed, ExecutionCancelled, ExecutionNotFound, ExecutionConflict, ExecutionTimedOut, WorkerLost
    ├── InvalidTransition      ← ExecutionClosed
    ├── ScheduleNotFound
    ├── UpdateRejected, UnknownWorkflow, DefinitionChanged, NonDeterminismError, SuspensionSwallowed
    ├── PayloadTooLarge, UnserializableValue, UndecodableValue
    ├── CodecUnavailable       a payload codec's key service is away: nothing is wrong with the value
    ├── TenantRequired, UnknownTenant, PlaneUnavailable, PlaneNotSelected, WrongDatabase
    └── QueueFull, LeaseLost

An error's docstring is its default message. A message says what was wrong, the value, and what to do;
it never carries a payload.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django_durable.durations import seconds


class DurableError(Exception):
    """Something in django-durable was refused or went wrong."""

    code: ClassVar[str] = "durable_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().split("\n")[0])

    @property
    def message(self) -> str:
        """The text, without the decoration that ``str()`` may add."""
        return str(self.args[0]) if self.args else ""


class FatalError(DurableError):
    """A step failed in a way that no retry can mend."""

    code = "fatal_error"


class RetryAfter(DurableError):
    """The step asks to be tried again after a delay.

    Raises ``ValueError`` or ``TypeError`` for a delay that is no duration.
    """

    code = "retry_after"

    def __init__(self, delay: float | timedelta, message: str = "") -> None:
        seconds(delay, name="delay")
        self.delay = delay
        super().__init__(message)


class DirectCall(DurableError):
    """A step, a workflow or a database query was called from a workflow body without ``ctx``."""

    code = "direct_call"


class NotInStep(DurableError):
    """current_step() was called where no step body is running; call it inside a step."""

    code = "not_in_step"


class StepFailed(DurableError):
    """A step failed for good; raised by ``ctx.step`` on the first run and on every replay.

    ``message`` is the original error's text, ``error_type`` its qualified class name.
    """

    code = "step_failed"
    cut: int | None = None
    """Where what came of this failure begins, if not right behind its position."""

    def __init__(
        self,
        *,
        step: str,
        error_type: str,
        message: str,
        attempts: int,
        lineage: tuple[str, ...] = (),
        traceback: str = "",
        position: int | None = None,
    ) -> None:
        self.step = step
        self.error_type = error_type
        self.attempts = attempts
        self.lineage = lineage or (error_type,)
        self.traceback_text = traceback
        self.position = position
        super().__init__(message)
        self.args = (message,)

    def __str__(self) -> str:
        return f"step {self.step!r} failed after {self.attempts} attempt(s): {self.error_type}: {self.message}"

    def is_a(self, exception_class: type[BaseException]) -> bool:
        """Whether the original error was an instance of this class, by the class's recorded ancestry."""
        return qualified_name(exception_class) in self.lineage


class StepTimeout(DurableError):
    """One of a step's clocks ran out; ``clock`` names it."""

    code = "step_timeout"

    def __init__(self, message: str = "", *, clock: str = "timeout") -> None:
        self.clock = clock
        super().__init__(message)


class StepInterrupted(DurableError):
    """The process that ran this at-most-once body is gone; whether the body finished is unknown."""

    code = "step_interrupted"


class ChildFailed(DurableError):
    """A child execution ended without a result; raised on the first run and on every replay.

    ``status`` is how it ended, ``error_type`` and ``message`` are those of the error that ended it, ``child_id`` is
    its id.
    """

    code = "child_failed"
    cut: int | None = None
    """Where what came of this failure begins, if not right behind its position."""

    def __init__(
        self,
        message: str = "",
        *,
        workflow: str = "",
        status: str = "",
        child_id: str = "",
        error_type: str = "",
        lineage: tuple[str, ...] = (),
        position: int | None = None,
    ) -> None:
        self.workflow = workflow
        self.status = status
        self.child_id = child_id
        self.error_type = error_type
        self.lineage = lineage
        self.position = position
        super().__init__(message)

    def __str__(self) -> str:
        return f"child {self.workflow!r} {self.status}: {self.error_type}: {self.message}".removesuffix(": ")

    def is_a(self, exception_class: type[BaseException]) -> bool:
        """Whether the error that ended it was an instance of this class, by the class's recorded ancestry."""
        return qualified_name(exception_class) in self.lineage


class CallbackFailed(DurableError):
    """A callback was failed from outside."""

    code = "callback_failed"


class WaitTimeout(DurableError):
    """What the workflow waited for did not arrive in time."""

    code = "wait_timeout"

    def __init__(self, message: str = "", *, position: int | None = None) -> None:
        self.position = position
        super().__init__(message)


class SignalTimeout(WaitTimeout):
    """The signal did not arrive in time."""

    code = "signal_timeout"


class UpdateTimeout(WaitTimeout):
    """The update did not arrive in time."""

    code = "update_timeout"


class EventTimeout(WaitTimeout):
    """The event did not arrive in time."""

    code = "event_timeout"


class ApprovalTimeout(WaitTimeout):
    """The approval was not decided in time."""

    code = "approval_timeout"


class CallbackTimeout(WaitTimeout):
    """The callback was not completed in time."""

    code = "callback_timeout"


class BudgetExhausted(DurableError):
    """The execution's budget does not cover this charge."""

    code = "budget_exhausted"

    def __init__(self, message: str = "", *, position: int | None = None) -> None:
        self.position = position
        super().__init__(message)


class ExecutionFailed(DurableError):
    """The execution ended without a result; ``status`` says how, ``error`` is what is stored."""

    code = "execution_failed"

    def __init__(self, message: str = "", *, status: str = "failed", error: dict[str, Any] | None = None) -> None:
        self.status = status
        self.error = error
        super().__init__(message)


class ExecutionCancelled(DurableError):
    """The execution was cancelled."""

    code = "execution_cancelled"


class ExecutionTimedOut(DurableError):
    """The execution did not finish within its timeout."""

    code = "execution_timed_out"


class WorkerLost(DurableError):
    """The execution lost its worker more often than MAX_RECOVERIES allows without any progress."""

    code = "worker_lost"


class ExecutionNotFound(DurableError):
    """No such execution."""

    code = "execution_not_found"


class ScheduleNotFound(DurableError):
    """There is no such schedule; `manage.py durable schedules list` shows those that there are."""

    code = "schedule_not_found"


class ExecutionConflict(DurableError):
    """The key belongs to an execution with another input, or to one that this snapshot cannot see."""

    code = "execution_conflict"


class InvalidTransition(DurableError):
    """The execution's status does not allow this; ``actor`` names who came first, where somebody did."""

    code = "invalid_transition"

    def __init__(self, message: str = "", *, actor: str | None = None) -> None:
        self.actor = actor
        super().__init__(message)


class ExecutionClosed(InvalidTransition):
    """The execution has ended, or is undoing its work, and takes no more messages."""

    code = "execution_closed"


class UpdateRejected(DurableError):
    """The update's validator refused it."""

    code = "update_rejected"


class UnknownWorkflow(DurableError):
    """No workflow of this name and version is registered in this process."""

    code = "unknown_workflow"


class DefinitionChanged(DurableError):
    """The workflow's source differs from the one that this pinned run started with."""

    code = "definition_changed"


class NonDeterminismError(DurableError):
    """The code does not match the history of this execution."""

    code = "non_determinism"


class SuspensionSwallowed(DurableError):
    """The workflow body caught the suspension that should have ended its turn; let BaseException pass."""

    code = "suspension_swallowed"


class PayloadTooLarge(DurableError):
    """The encoded value is larger than MAX_PAYLOAD_BYTES."""

    code = "payload_too_large"


class UnserializableValue(DurableError, TypeError):
    """The value cannot be stored; ``path`` names the place inside it."""

    code = "unserializable_value"

    def __init__(self, message: str = "", *, path: str = "") -> None:
        self.path = path
        super().__init__(message)


class UndecodableValue(DurableError, ValueError):
    """A stored value cannot be read back here."""

    code = "undecodable_value"


class CodecUnavailable(DurableError, OSError):
    """A payload codec cannot reach what it needs, such as a key service; try again later."""

    code = "codec_unavailable"


class TenantRequired(DurableError):
    """A start without tenant is refused here; pass tenant=."""

    code = "tenant_required"


class UnknownTenant(DurableError):
    """The tenant is placed on no data plane."""

    code = "unknown_tenant"


class PlaneUnavailable(DurableError):
    """The data plane's database cannot be reached right now."""

    code = "plane_unavailable"


class PlaneNotSelected(DurableError):
    """A plane's table was used with no plane selected; use use_plane(), or pass using=."""

    code = "plane_not_selected"


class WrongDatabase(DurableError):
    """The work would not be atomic with the transaction that is open, which is on another database."""

    code = "wrong_database"


class QueueFull(DurableError):
    """The queue takes no more work right now."""

    code = "queue_full"


class LeaseLost(DurableError):
    """This worker no longer holds the execution; another one does."""

    code = "lease_lost"


def qualified_name(cls: type) -> str:
    """``package.module.Class``: the one spelling under which exception classes are stored."""
    return f"{cls.__module__}.{cls.__qualname__}"

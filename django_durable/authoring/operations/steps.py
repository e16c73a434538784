"""Steps: what runs in the execution's own turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from django_durable.authoring.attempt import Attempts
from django_durable.authoring.call import Call
from django_durable.authoring.dispatched import pack
from django_durable.authoring.operations.base import operation
from django_durable.authoring.operations.elsewhere import Elsewhere
from django_durable.authoring.recorded_outcome import raise_recorded
from django_durable.authoring.step import Step, as_step
from django_durable.payloads import decode, encode_plain

P = ParamSpec("P")
R = TypeVar("R")


class Steps(Elsewhere):
    """``ctx.step``."""

    @overload
    def step(self, step: Step[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def step(self, step: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @operation
    def step(self, step: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a step once and return its recorded result, now and at every replay.

        A step with a queue runs there, while the execution waits without a worker. Raises ``StepFailed`` once its
        attempts are used up; ``UnserializableValue`` for arguments that cannot
        be stored.
        """
        declared = as_step(step)
        queued = bool(declared.options.queue)
        arguments = pack(declared, args, kwargs) if queued else _arguments(declared, args, kwargs)
        position, record = self._session.enter("step", declared.name)
        if queued if record is None else record.queued_at is not None:
            call: Call[Any] = Call(declared, args, kwargs)
            if record is None:
                self._begin(position, call, arguments)
            return self._outcome(position, call)
        if record is not None and record.status == "completed":
            return decode(record.encoded_output or "null")
        if record is not None and record.status == "failed":
            raise_recorded(declared.name, record.encoded_error, record.attempt, position)
        if queued:  # it was begun before the step had a queue
            arguments = _arguments(declared, args, kwargs)
        return Attempts(self._session, declared, position, record, arguments).run()


def _arguments(declared: Step[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """As each attempt decodes them; they are not stored."""
    return encode_plain((args, kwargs), where=f"arguments of step {declared.name!r}")

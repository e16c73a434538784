"""Override: what a step, or a child workflow, does instead of its body while a test says so."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Self
from unittest import mock

from django_durable.authoring.context import Context
from django_durable.authoring.step import Step, as_step
from django_durable.authoring.workflow import Workflow

Body = Callable[..., Any]
Answer = Callable[[Body, tuple[Any, ...], dict[str, Any]], Any]
"""Called with the next body in line, the arguments by position and those by name."""

UNSET: Any = object()
_lock = threading.Lock()


class Override:
    """In force from its making until ``end()``, which the end of a ``with`` block or of the test calls.

    ``calls`` has one ``unittest.mock.call`` an attempt: ``stub.calls == [call(7, amount=3)]``. Arguments are
    checked against the body's own signature, and what is returned is stored and read back like a real result.
    Overrides of one name stack: the latest is asked first.
    """

    in_force: ClassVar[dict[str, list[Override]]]
    patch: ClassVar[Any]
    """Of the one place where a turn asks for bodies of this kind, while any override is in force: in every thread,
    so that a live worker's turns meet the overrides too, and for every copy that ``using()`` makes."""

    def __init__(self, name: str, signature: inspect.Signature, answer: Answer) -> None:
        self.name = name
        self.calls: list[Any] = []
        self._signature = signature
        self._answer = answer
        with _lock:
            if not self.in_force:
                self.patch.start()
            self.in_force.setdefault(name, []).append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}, {len(self.calls)} calls>"

    def end(self) -> None:
        """Give the body back; a second end does nothing."""
        with _lock:
            stack = self.in_force.get(self.name, [])
            if self not in stack:
                return
            stack.remove(self)
            if not stack:
                del self.in_force[self.name]
            if not self.in_force:
                self.patch.stop()

    @classmethod
    def bodies(cls, name: str, body: Body) -> Body:
        """A body with all overrides of its name in front of it."""
        for override in tuple(cls.in_force.get(name, ())):
            body = override.body(body)
        return body

    def body(self, following: Body) -> Body:
        """The body that this override is, with what comes after it."""

        def answer(*args: Any, **kwargs: Any) -> Any:
            self._signature.bind(*args, **kwargs)
            self.calls.append(mock.call(*args, **kwargs))
            return self._answer(following, args, kwargs)

        return answer


def _run_step(step: Step[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return StepOverride.bodies(step.name, step.func)(*args, **kwargs)


def _run_workflow(workflow: Workflow[..., Any], ctx: Context, /, *args: Any, **kwargs: Any) -> Any:
    body = partial(workflow.func, ctx)
    if ctx._session.claim.row["parent_id"] is None:
        return body(*args, **kwargs)
    return ChildOverride.bodies(workflow.name, body)(*args, **kwargs)


class StepOverride(Override):
    """Of a step."""

    in_force: ClassVar[dict[str, list[Override]]] = {}
    patch = mock.patch.object(Step, "run", _run_step)


class ChildOverride(Override):
    """Of a workflow where it runs as a child."""

    in_force: ClassVar[dict[str, list[Override]]] = {}
    patch = mock.patch.object(Workflow, "run", _run_workflow)


def stub(step: Any, returns: Any = UNSET, side_effect: Any = UNSET) -> StepOverride:
    """Replace a step's body by a value, or by a ``side_effect`` as ``unittest.mock`` has it.

    That is a function to call with the arguments, an exception class or instance to raise, or an iterable of
    values and exceptions, one an attempt. With neither the step returns ``None``.
    """
    return _override_step(step, _answer_with(_as_step(step).name, returns, side_effect))


def stub_child(workflow: Any, returns: Any = UNSET, side_effect: Any = UNSET) -> ChildOverride:
    """Replace a workflow's body, in all its versions, where it runs as a child; as ``stub`` does for a step."""
    if not isinstance(workflow, Workflow):
        raise TypeError(f"stub_child takes a workflow, not {type(workflow).__name__}; write stub_step(…) for a step")
    return ChildOverride(workflow.name, workflow.signature, _answer_with(workflow.name, returns, side_effect))


def fail(step: Any, times: int = 1, error: Any = None) -> StepOverride:
    """Let the next ``times`` attempts of a step raise ``error``, a class or an instance; then go on as before."""
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise ValueError(f"times must be an int of at least 1, not {times!r}")
    if error is None:
        error = RuntimeError("failed by fail_step()")
    if not _is_error(error):
        raise TypeError(f"error must be an exception or a class of them, not {type(error).__name__}")
    left = [error] * times

    def answer(following: Body, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _settle(left.pop()) if left else following(*args, **kwargs)

    return _override_step(step, answer)


def _override_step(step: Any, answer: Answer) -> StepOverride:
    declared = _as_step(step)
    return StepOverride(declared.name, inspect.signature(declared.func), answer)


def _answer_with(name: str, returns: Any, side_effect: Any) -> Answer:
    if returns is not UNSET and side_effect is not UNSET:
        raise TypeError("a stub takes returns= or side_effect=, not both")
    if side_effect is UNSET:
        value = None if returns is UNSET else returns
        return lambda _following, _args, _kwargs: value
    if _is_error(side_effect) or callable(side_effect):
        return lambda _following, args, kwargs: _play(side_effect, args, kwargs)
    outcomes = _outcomes(name, side_effect)
    return lambda _following, _args, _kwargs: _settle(next(outcomes))


def _as_step(step: Any) -> Step[..., Any]:
    if isinstance(step, str):
        raise TypeError(f"a step is given as the Step or as its function, not by the name {step!r}")
    return as_step(step)


def _outcomes(name: str, listed: Iterable[Any]) -> Iterator[Any]:
    number = 0
    for outcome in listed:
        number += 1
        yield outcome
    while True:
        yield AssertionError(f"{name!r} is called more often than side_effect has outcomes ({number})")


def _play(side_effect: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _settle(side_effect) if _is_error(side_effect) else side_effect(*args, **kwargs)


def _settle(outcome: Any) -> Any:
    if not _is_error(outcome):
        return outcome
    raise outcome if isinstance(outcome, type) else outcome.with_traceback(None)


def _is_error(outcome: Any) -> bool:
    return isinstance(outcome, BaseException) or (isinstance(outcome, type) and issubclass(outcome, BaseException))

"""StepOverride: what a step does instead of its body while a test says so."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self
from unittest import mock

from django_durable.authoring.step import Step, as_step

Body = Callable[..., Any]
Answer = Callable[[Body, tuple[Any, ...], dict[str, Any]], Any]
"""Called with the next body in line, the arguments by position and those by name."""

UNSET: Any = object()
_in_force: dict[str, list[StepOverride]] = {}
_lock = threading.Lock()


class StepOverride:
    """In force from its making until ``end()``, which the end of a ``with`` block or of the test calls.

    ``calls`` has one ``unittest.mock.call`` an attempt: ``stub.calls == [call(7, amount=3)]``. Arguments are
    checked against the step's own signature, and what is returned is stored and read back like a real result.
    Overrides of one step stack: the latest is asked first.
    """

    def __init__(self, step: Any, answer: Answer) -> None:
        self.step = _as_step(step)
        self.calls: list[Any] = []
        self._answer = answer
        with _lock:
            if not _in_force:
                _patch.start()
            _in_force.setdefault(self.step.name, []).append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<StepOverride of {self.step.name}, {len(self.calls)} calls>"

    def end(self) -> None:
        """Give the step its body back; a second end does nothing."""
        with _lock:
            stack = _in_force.get(self.step.name, [])
            if self not in stack:
                return
            stack.remove(self)
            if not stack:
                del _in_force[self.step.name]
            if not _in_force:
                _patch.stop()

    def body(self, following: Body) -> Body:
        """The body that this override is, with what comes after it."""

        def answer(*args: Any, **kwargs: Any) -> Any:
            inspect.signature(self.step.func).bind(*args, **kwargs)
            self.calls.append(mock.call(*args, **kwargs))
            return self._answer(following, args, kwargs)

        return answer


def stub(step: Any, returns: Any = UNSET, side_effect: Any = UNSET) -> StepOverride:
    """Replace a step's body by a value, or by a ``side_effect`` as ``unittest.mock`` has it.

    That is a function to call with the arguments, an exception class or instance to raise, or an iterable of
    values and exceptions, one an attempt. With neither the step returns ``None``.
    """
    if returns is not UNSET and side_effect is not UNSET:
        raise TypeError("stub_step takes returns= or side_effect=, not both")
    if side_effect is UNSET:
        value = None if returns is UNSET else returns
        return StepOverride(step, lambda _following, _args, _kwargs: value)
    if _is_error(side_effect) or callable(side_effect):
        return StepOverride(step, lambda _following, args, kwargs: _play(side_effect, args, kwargs))
    outcomes = _outcomes(step, side_effect)
    return StepOverride(step, lambda _following, _args, _kwargs: _settle(next(outcomes)))


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

    return StepOverride(step, answer)


def _as_step(step: Any) -> Step[..., Any]:
    if isinstance(step, str):
        raise TypeError(f"a step is given as the Step or as its function, not by the name {step!r}")
    return as_step(step)


def _outcomes(step: Any, listed: Iterable[Any]) -> Iterator[Any]:
    number = 0
    for outcome in listed:
        number += 1
        yield outcome
    while True:
        yield AssertionError(f"{_as_step(step).name!r} is called more often than side_effect has outcomes ({number})")


def _play(side_effect: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _settle(side_effect) if _is_error(side_effect) else side_effect(*args, **kwargs)


def _settle(outcome: Any) -> Any:
    if not _is_error(outcome):
        return outcome
    raise outcome if isinstance(outcome, type) else outcome.with_traceback(None)


def _is_error(outcome: Any) -> bool:
    return isinstance(outcome, BaseException) or (isinstance(outcome, type) and issubclass(outcome, BaseException))


def _run_overridden(step: Step[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    body: Body = step.func
    for override in tuple(_in_force.get(step.name, ())):
        body = override.body(body)
    return body(*args, **kwargs)


# The one place where a turn asks a step for its body, replaced while any override is in force: in every thread,
# so that a live worker's turns meet the overrides too, and for every copy that ``using()`` makes of a step.
_patch = mock.patch.object(Step, "run", _run_overridden)

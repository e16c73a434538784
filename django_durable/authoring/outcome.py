"""How a body ended: with a value, with an error to record, or the way a process ends."""

from __future__ import annotations

from typing import Any

from django_durable.errors import UnserializableValue


class BodyQuit(BaseException):
    """The body ended the way a process ends; the attempt is abandoned, not recorded."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


class BodyFailed(Exception):
    """The body, or the encoding of its result, raised: an outcome to record, unlike an error of the engine."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


def quits(error: BaseException) -> bool:
    """Whether an exception stands for the end of the process or task rather than for an outcome."""
    if not isinstance(error, Exception) or isinstance(error, MemoryError):
        return True
    return any(c.__name__ == "SoftTimeLimitExceeded" for c in type(error).__mro__)


def checked_result(step: str, value: Any) -> Any:
    """A step's value; a coroutine or generator is work that was not done: ``UnserializableValue``."""
    if hasattr(value, "__await__") or hasattr(value, "send"):
        if hasattr(value, "close"):
            value.close()
        raise UnserializableValue(
            f"step {step!r} returned a {type(value).__name__}: its work was not done; make it a plain function"
        )
    return value

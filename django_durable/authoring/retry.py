"""Retry: when a failed step is tried again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django_durable.conf import config
from django_durable.durations import seconds
from django_durable.errors import (
    FatalError,
    PayloadTooLarge,
    RetryAfter,
    StepTimeout,
    UndecodableValue,
    UnserializableValue,
    WrongDatabase,
)

# Serialisation errors and writes to the wrong database are the code's: they come back at every attempt.
NEVER_RETRIED = (FatalError, UnserializableValue, UndecodableValue, PayloadTooLarge, WrongDatabase)


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy. ``max_attempts`` counts the first try; delays are seconds or ``timedelta``.

    The delay before attempt n + 1 is ``initial * factor ** (n - 1)``, at most ``maximum``, times a factor in
    ``[1 - jitter, 1]``. ``give_up_on`` wins over ``retry_on``. ``FatalError`` is never retried.
    """

    max_attempts: int = 3
    initial: float | timedelta = 1.0
    factor: float = 2.0
    maximum: float | timedelta = 300.0
    jitter: float = 0.0
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int):
            raise TypeError(f"max_attempts must be an int, not {type(self.max_attempts).__name__}")
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, not {self.max_attempts}")
        object.__setattr__(self, "initial", seconds(self.initial, name="initial"))
        object.__setattr__(self, "maximum", seconds(self.maximum, name="maximum"))
        seconds(self.factor, name="factor")
        if not 0 <= seconds(self.jitter, name="jitter") <= 1:
            raise ValueError(f"jitter must be between 0 and 1, not {self.jitter}")
        for name in ("retry_on", "give_up_on"):
            listed = getattr(self, name)
            listed = (listed,) if isinstance(listed, type) else tuple(listed)
            if not all(isinstance(c, type) and issubclass(c, BaseException) for c in listed):
                raise TypeError(f"{name} must list exception classes, not {listed!r}")
            object.__setattr__(self, name, listed)

    def allows(self, error: BaseException, attempt: int) -> bool:
        """Whether another attempt follows attempt number ``attempt``, which ended with this error."""
        if attempt >= self.max_attempts or isinstance(error, NEVER_RETRIED):
            return False
        if isinstance(error, (RetryAfter, StepTimeout)) and not isinstance(error, self.give_up_on):
            return True
        return isinstance(error, self.retry_on) and not isinstance(error, self.give_up_on)

    def delay_after(self, error: BaseException, attempt: int) -> float:
        """Seconds to wait after attempt number ``attempt``; saturates instead of overflowing."""
        if isinstance(error, RetryAfter):
            return seconds(error.delay, name="delay")
        maximum = seconds(self.maximum, name="maximum")
        try:
            delay = min(seconds(self.initial, name="initial") * self.factor ** (attempt - 1), maximum)
        except OverflowError:
            delay = maximum
        return delay * random.uniform(1 - self.jitter, 1)


def default_retry() -> Retry:
    """The policy of steps that name none: ``DEFAULT_RETRY``, or one attempt."""
    declared = config().default_retry
    if declared is None:
        return Retry(max_attempts=1)
    if isinstance(declared, Retry):
        return declared
    if not isinstance(declared, Mapping):
        raise TypeError(f"DEFAULT_RETRY must be a Retry or its options, not {type(declared).__name__}")
    return Retry(**declared)

"""Dispatched: what another process needs to know of a step: its arguments, and the options of this one call.

The step itself is found by its name, in the registry of that process. Options of ``using()`` travel as numbers;
which exceptions are retried is part of the declaration and does not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django_durable.authoring.registry import declared_step
from django_durable.authoring.retry import Retry
from django_durable.authoring.step import Step, StepOptions
from django_durable.payloads import decode, encode_plain

CLOCKS = ("timeout", "total_timeout", "queue_timeout", "heartbeat_timeout")
NUMBERS = ("max_attempts", "initial", "factor", "maximum", "jitter")


def pack(step: Step[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """One call as text, before any codec.

    Raises ``UnserializableValue``; ``TypeError`` for what another process could not know.
    """
    declared = declared_step(step.name)
    options: dict[str, Any] = {name: getattr(step.options, name) for name in CLOCKS}
    options["at_most_once"] = step.options.at_most_once
    if step.options.retry is not None:
        theirs = declared.options.retry
        ours = step.options.retry
        classes = (ours.retry_on, ours.give_up_on)
        if classes != ((theirs.retry_on, theirs.give_up_on) if theirs is not None else ((Exception,), ())):
            raise TypeError(
                f"step {step.name!r} runs elsewhere: which errors it retries (retry_on, give_up_on) belongs into its"
                " declaration, not into using()"
            )
        options["retry"] = {name: getattr(ours, name) for name in NUMBERS}
    return encode_plain((list(args), kwargs, options), where=f"arguments of step {step.name!r}")


def unpack(name: str, text: str) -> tuple[Step[..., Any], str]:
    """The step with the options of the call, and its arguments as a turn would encode them.

    Raises ``UnknownWorkflow`` where this process does not declare it, ``UndecodableValue``.
    """
    declared = declared_step(name)
    args, kwargs, options = decode(text)
    numbers = options.pop("retry", None)
    base: StepOptions = replace(declared.options, **options)
    if numbers is not None:
        theirs = declared.options.retry or Retry()
        base = replace(base, retry=Retry(**numbers, retry_on=theirs.retry_on, give_up_on=theirs.give_up_on))
    arguments = encode_plain((tuple(args), kwargs), where=f"arguments of {name!r}")
    return Step(declared.func, declared.name, base), arguments

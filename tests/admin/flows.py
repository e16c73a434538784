"""Workflows that end in the states which operators meet."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from django_durable import Context, Execution, step, workflow
from tests.driving import drain

__all__ = ["failed", "job", "overwrite", "paused", "waiting"]

state = {"broken": True}


class CardRefused(Exception):
    """What the step raises."""


@step
def prepare(value: Any) -> Any:
    return value


@step
def charge(value: Any) -> Any:
    if state["broken"]:
        raise CardRefused(f"refused {value}")
    return value


@workflow("admin.job")
def job(ctx: Context, value: Any = 0, what: str = "") -> Any:
    ctx.step(prepare, value)
    if what == "fail":
        ctx.step(charge, value)
    if what == "wait":
        return ctx.wait_for_signal("go")
    if what == "break":
        ctx.breakpoint("look")
    return value


def failed(key: str | None = None, value: Any = 0, **using: Any) -> Execution[Any]:
    """One that a retry mends once ``state["broken"]`` is false."""
    return run(key, value, "fail", **using)


def waiting(key: str | None = None, value: Any = 0, **using: Any) -> Execution[Any]:
    return run(key, value, "wait", **using)


def paused(key: str | None = None, value: Any = 0, **using: Any) -> Execution[Any]:
    return run(key, value, "break", **using)


def completed(key: str | None = None, value: Any = 0, **using: Any) -> Execution[Any]:
    return run(key, value, "", **using)


def run(key: str | None, value: Any, what: str, **using: Any) -> Execution[Any]:
    execution = job.using(key=key, **using).start(value, what)
    drain()
    return Execution.objects.locate(execution.pk)


def overwrite(execution: Execution[Any], **columns: Any) -> None:
    """Write past the engine, as a restored backup or another version might have."""
    QuerySet(Execution).filter(pk=execution.pk).update(**columns)

"""Workflows of the scenarios of gathered events."""

from __future__ import annotations

from typing import Any

from django_durable import Context, workflow
from tests.crash.flows import effect

__all__ = ["of_a_batch", "of_the_last"]


@workflow("crash.of_the_last")
def of_the_last(ctx: Context, mark: str, number: int) -> list[Any]:
    return [number, ctx.step(effect, f"{mark}-1")]


@workflow("crash.of_a_batch")
def of_a_batch(ctx: Context, saved: list[dict[str, Any]]) -> list[Any]:
    return [[one["n"] for one in saved], ctx.step(effect, f"{saved[0]['mark']}-1")]


of_the_last.on_event(
    "crash.saved", key=lambda saved: saved["mark"], args=lambda saved: (saved["mark"], saved["n"]), debounce=60
)
of_a_batch.on_event("crash.line", key=lambda saved: saved["mark"], batch=(2, 60))

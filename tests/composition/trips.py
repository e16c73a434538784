"""A trip: three bookings, each with an undo step; what ran, in order, is in ``log``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_durable import Context, Retry, current_step, step, workflow

log: list[str] = []
keys: dict[str, set[str]] = {}
during: dict[str, Callable[[], Any]] = {}
"""What happens elsewhere while the body of this name runs, once."""


def note(what: str) -> None:
    log.append(what)
    keys.setdefault(what, set()).add(current_step().idempotency_key)
    if what in during:
        during.pop(what)()


@step("trips.book")
def book(what: str) -> str:
    note(f"book {what}")
    return f"{what} booked"


@step("trips.refuse")
def refuse(what: str) -> None:
    note(f"refuse {what}")
    raise ValueError(f"no {what}")


@step("trips.cancel", retry=Retry(max_attempts=2, initial=0.0))
def unbook(what: str) -> None:
    note(f"unbook {what}")


@workflow("trips.trip")
def trip(ctx: Context, then: str = "") -> str:
    """Books a, b and c for the whole execution, and then does as told."""
    for what in "abc":
        ctx.compensate(unbook, what)
        ctx.step(book, what)
    return after(ctx, then)


@workflow("trips.block")
def block(ctx: Context, then: str = "") -> str:
    """The same within a saga block."""
    with ctx.saga():
        for what in "abc":
            ctx.compensate(unbook, what)
            ctx.step(book, what)
        return after(ctx, then)


def after(ctx: Context, then: str) -> str:
    if then == "fail":
        ctx.step(refuse, "d")
    elif then == "raise":
        raise RuntimeError("not today")
    elif then == "sleep":
        ctx.sleep(3600)
    elif then == "wait":
        ctx.wait_for_signal("go")
    return "done"


def undone(execution: Any) -> list[tuple[str, str]]:
    """Position order: what each undo step came to."""
    return [(entry["name"], entry["status"]) for entry in execution.history() if entry["kind"] == "undo"]

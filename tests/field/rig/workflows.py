"""Workflows for worker processes. What bodies do goes into a file; what they wait for is a file too."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from django_durable import Context, Retry, SignalTimeout, step, workflow
from tests.field.rig.values import VALUES, seen


def folder() -> Path:
    """Where effects and barriers are."""
    return Path(os.environ["EFFECTS"])


def write(line: str) -> None:
    """Append one line, atomically, with the process that wrote it."""
    with (folder() / "effects").open("ab", buffering=0) as file:
        file.write(f"{os.getpid()} {line}\n".encode())


def stand_at(name: str) -> None:
    """Stand at a barrier until the test opens it."""
    until = time.monotonic() + 60
    while not (folder() / f"open-{name}").exists() and time.monotonic() < until:
        time.sleep(0.01)


@step
def note(text: str) -> str:
    write(f"begin {text}")
    return text


@step
def stand(text: str) -> str:
    write(f"begin {text}")
    stand_at(text)
    write(f"end {text}")
    return text


@step(at_most_once=True, retry=Retry(max_attempts=2, initial=0))
def die_at_most_twice(text: str) -> None:
    write(f"begin {text}")
    signal.raise_signal(signal.SIGKILL)


@step(retry=Retry(max_attempts=2, initial=600))
def fails_at_first(text: str) -> None:
    write(f"begin {text}")
    raise ValueError("not yet")


@workflow("field.three")
def three(ctx: Context, name: str) -> str:
    for letter in "abc":
        ctx.step(note, f"{name}-{letter}")
    return name


@workflow("field.nested")
def nested(ctx: Context, depth: int) -> int:
    """One child below the other; the result is how many there are."""
    return 1 if depth == 1 else 1 + ctx.child(nested, depth - 1)


@workflow("field.standing")
def standing(ctx: Context, name: str) -> str:
    ctx.step(note, f"{name}-before")
    ctx.step(stand, name)
    return ctx.step(note, f"{name}-after")


@workflow("field.deadly_twice")
def deadly_twice(ctx: Context, name: str, deadly: bool = True) -> str:
    if deadly:
        ctx.step(die_at_most_twice, name)
    return ctx.step(note, f"{name}-after")


@workflow("field.patient")
def patient(ctx: Context, name: str, seconds: float) -> str:
    """Wait for a signal that never comes."""
    ctx.step(note, f"{name}-before")
    try:
        ctx.wait_for_signal("never", timeout=seconds)
    except SignalTimeout:
        return ctx.step(note, f"{name}-timeout")
    return "signalled"


@workflow("field.resting")
def resting(ctx: Context, how: str) -> None:
    """Wait in one of the ways that there are."""
    if how == "sleep":
        ctx.sleep(600)
    elif how == "signal":
        ctx.wait_for_signal("never", timeout=600)
    elif how == "for ever":
        ctx.wait_for_signal("never")
    elif how == "retry":
        ctx.step(fails_at_first, "retry")
    else:
        ctx.breakpoint("here")


@workflow("field.nap")
def nap(ctx: Context, name: str, seconds: float) -> str:
    ctx.sleep(seconds)
    return ctx.step(note, name)


@workflow("field.last_statement")
def last_statement(ctx: Context, name: str, ending: str) -> str:
    """Stand at a barrier in the body itself, after its last step, and end in one of the ways that there are."""
    ctx.step(note, f"{name}-before")
    write(f"begin {name}")
    stand_at(name)
    if ending == "raises":
        raise ValueError("too late to fail")
    if ending == "sleeps":
        ctx.sleep(600)
    if ending == "waits":
        ctx.wait_for_signal("never")
    if ending == "steps":
        ctx.step(note, f"{name}-after")
        ctx.step(note, f"{name}-further")
    if ending == "publishes":
        ctx.set_tags(late=True)
    return "too late"


@step
def give(name: str) -> Any:
    """A value that only the process which ran the body could hand on as it is."""
    return VALUES[name]


@workflow("field.all_values")
def all_values(ctx: Context) -> None:
    """Tell how each value looks right after its step, and do so again at every replay."""
    for name in VALUES:
        write(f"see {name}: {seen(ctx.step(give, name))}")
    ctx.step(stand, "values")


@workflow("field.deployed")
def deployed(ctx: Context, seconds: float) -> None:
    """Code that differs from one deployment to the next."""
    changed = os.environ.get("VARIANT") == "renamed"
    ctx.step(note, "a")
    ctx.step(renamed if changed else original, "b")
    ctx.sleep(seconds)
    ctx.step(note, "c")


@step("original-b")
def original(text: str) -> None:
    write(f"begin {text}")


@step("changed-b")
def renamed(text: str) -> None:
    write(f"begin {text}")


@step
def stand_or_note(text: str) -> None:
    """Stand at the barrier only if the test has put up a sign for that."""
    write(f"begin {text}")
    if (folder() / f"hold-{text}").exists():
        stand_at(text)


@workflow("field.undoable")
def undoable(ctx: Context, name: str, ends: str) -> str:
    """Steps a, b, c, each with its undo step, which is registered before it."""
    for letter in "abc":
        ctx.compensate(stand_or_note, f"{name}-undo-{letter}")
        ctx.step(stand_or_note, f"{name}-{letter}")
    if ends == "sleeps":
        ctx.sleep(600)
    elif ends == "returns":
        write(f"return {name}")
        stand_at(f"{name}-return")
    elif ends == "raises":
        write(f"return {name}")
        stand_at(f"{name}-return")
        raise ValueError("too late")
    return "done"

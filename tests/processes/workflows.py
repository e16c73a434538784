"""Workflows whose bodies write what they do into a file and wait at barriers, which are files too."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from django_durable import Context, current_step, step, workflow

FOLDER = Path(os.environ.get("EFFECTS", "."))


def write(line: str) -> None:
    """Append one line, atomically, with the process that wrote it."""
    with (FOLDER / "effects").open("ab", buffering=0) as file:
        file.write(f"{os.getpid()} {line}\n".encode())


def wait_for_file(name: str) -> None:
    """Stand at a barrier until the test opens it."""
    until = time.monotonic() + 60
    while not (FOLDER / name).exists() and time.monotonic() < until:
        time.sleep(0.01)


@step
def note(text: str) -> str:
    write(f"begin {text}")
    write(f"end {text}")
    return text


@step
def stand(text: str) -> str:
    write(f"begin {text}")
    wait_for_file(f"open-{text}")
    write(f"end {text}")
    return text


@step
def last(text: str, seconds: float) -> str:
    """A body that only takes time."""
    write(f"begin {text}")
    time.sleep(seconds)
    write(f"end {text}")
    return text


@step
def die(text: str) -> None:
    write(f"begin {text}")
    os.kill(os.getpid(), signal.SIGKILL)


@step
def cancelled_seen(text: str) -> bool:
    write(f"begin {text}")
    until = time.monotonic() + 30
    while not current_step().cancelled and time.monotonic() < until:
        time.sleep(0.01)
    write(f"seen {current_step().cancelled}")
    return True


@workflow("processes.three")
def three(ctx: Context, name: str) -> str:
    ctx.step(note, f"{name}-a")
    ctx.step(stand, f"{name}-b")
    return ctx.step(note, f"{name}-c")


@workflow("processes.quick")
def quick(ctx: Context, name: str) -> str:
    for letter in "abc":
        ctx.step(note, f"{name}-{letter}")
    return name


@workflow("processes.slow")
def slow(ctx: Context, name: str, seconds: float) -> str:
    return ctx.step(last, name, seconds)


@workflow("processes.sleeping")
def sleeping(ctx: Context, name: str) -> str:
    ctx.sleep(timedelta(minutes=10))
    return name


@workflow("processes.nap")
def nap(ctx: Context, name: str, seconds: float) -> str:
    ctx.sleep(seconds)
    return ctx.step(note, name)


@workflow("processes.deadly")
def deadly(ctx: Context, name: str) -> None:
    ctx.step(note, f"{name}-a")
    ctx.step(die, f"{name}-b")


@workflow("processes.cancellable")
def cancellable(ctx: Context, name: str) -> None:
    ctx.step(cancelled_seen, name)
    ctx.step(note, f"{name}-after")


@workflow("processes.hurried", timeout=1.5)
def hurried(ctx: Context, name: str) -> None:
    ctx.step(stand, name)
    ctx.step(note, f"{name}-after")


@workflow("processes.conversing")
def conversing(ctx: Context, name: str) -> list[object]:
    """Takes an update, an event and a callback's decision, with a barrier before it answers."""
    change = ctx.wait_for_update("add")
    ctx.step(stand, f"{name}-a")
    change.reply({"added": change.payload})
    callback = ctx.create_callback("paid")
    ctx.set_value("token", callback.token)
    sold = ctx.wait_for_event("sold", {"name": name})
    ctx.step(stand, f"{name}-b")
    return [change.payload, sold["n"], callback.wait()]

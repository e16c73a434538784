"""Workflows whose bodies write what they do into a file and wait at barriers, which are files too."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from django_durable import Context, FlowQueue, Retry, StepFailed, current_step, step, workflow

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


REMOTE = "processes.elsewhere"
"""A queue that only some workers serve."""


@step
def beating(text: str) -> str:
    """Gives signs of life for a moment, then falls silent, but for its last attempt."""
    write(f"begin {text} {current_step().attempt} {current_step().last_heartbeat}")
    if current_step().attempt > 1:
        return text
    current_step().heartbeat({"at": 7})
    wait_for_file(f"open-{text}")
    return "late"


@step
def standing_once(text: str) -> str:
    """Overruns its time in its first attempt."""
    attempt = current_step().attempt
    write(f"begin {text} {attempt}")
    if attempt == 1:
        wait_for_file(f"open-{text}")
    return f"{text} {attempt}"


@workflow("processes.elsewhere")
def elsewhere(ctx: Context, name: str) -> str:
    ctx.step(note, f"{name}-a")
    ctx.step(stand.using(queue=REMOTE), f"{name}-b")
    return ctx.step(note, f"{name}-c")


@workflow("processes.deadly_elsewhere")
def deadly_elsewhere(ctx: Context, name: str) -> None:
    ctx.step(die.using(queue=REMOTE), name)


@workflow("processes.cancellable_elsewhere")
def cancellable_elsewhere(ctx: Context, name: str) -> None:
    ctx.step(cancelled_seen.using(queue=REMOTE), name)


@workflow("processes.silent_elsewhere")
def silent_elsewhere(ctx: Context, name: str) -> str:
    twice = Retry(max_attempts=2, initial=0.0)
    return ctx.step(beating.using(queue=REMOTE, heartbeat_timeout=1.0, retry=twice), name)


@workflow("processes.overrunning_elsewhere")
def overrunning_elsewhere(ctx: Context, name: str) -> str:
    twice = Retry(max_attempts=2, initial=0.0)
    return ctx.step(standing_once.using(queue=REMOTE, timeout=0.5, retry=twice), name)


@workflow("processes.unserved_elsewhere")
def unserved_elsewhere(ctx: Context, name: str) -> str:
    try:
        return ctx.step(note.using(queue="processes.nobody", queue_timeout=0.5), name)
    except StepFailed as error:
        return error.error_type


three_at_once = FlowQueue("processes.three", concurrency=3)


@workflow("processes.limited", queue="processes.three")
def limited(ctx: Context, text: str) -> None:
    ctx.step(last, text, 0.01)

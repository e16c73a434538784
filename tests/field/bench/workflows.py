"""Workflows for worker processes. What bodies do goes into a file; what they wait for is a file too."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from django_durable import Context, SignalTimeout, step, workflow


def folder() -> Path:
    """Where effects and barriers are."""
    return Path(os.environ["EFFECTS"])


def write(line: str) -> None:
    """Append one line, atomically, with the process that wrote it."""
    with (folder() / "effects").open("ab", buffering=0) as file:
        file.write(f"{os.getpid()} {line}\n".encode())


@step
def effect(text: str) -> str:
    write(text)
    return text


@step
def stand(text: str) -> str:
    """Stay until the test opens the barrier."""
    write(f"begin {text}")
    until = time.monotonic() + 60
    while not (folder() / f"open-{text}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    write(f"end {text}")
    return text


@step
def die_once(text: str) -> None:
    """Kill the process the first time."""
    write(f"die {text}")
    mark = folder() / f"died-{text}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@step
def die_until_fixed(text: str) -> str:
    """Kill the process as long as nobody has mended what is wrong."""
    write(f"begin {text}")
    if not (folder() / f"fixed-{text}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return text


@workflow("bench.four_waits")
def four_waits(ctx: Context) -> list[Any]:
    got = [ctx.wait_for_signal("go")]
    ctx.step(die_once, "after the first")
    got += [ctx.wait_for_signal("go"), ctx.wait_for_signal("go")]
    ctx.step(die_once, "after the third")
    try:
        got.append(ctx.wait_for_signal("go", timeout=1.0))
    except SignalTimeout:
        got.append("timeout")
    return got


@workflow("bench.deadly", max_recoveries=1)
def deadly(ctx: Context) -> str:
    ctx.step(effect, "deadly: before")
    return ctx.step(die_until_fixed, "deadly")


@workflow("bench.plain")
def plain(ctx: Context, name: str) -> str:
    return ctx.step(effect, name)


@workflow("bench.standing")
def standing(ctx: Context, name: str) -> str:
    ctx.step(stand, name)
    return ctx.step(effect, f"{name}: after")

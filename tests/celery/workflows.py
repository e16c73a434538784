"""Workflows whose bodies write what they do into a file and wait at barriers, which are files too."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from django.db import connection

from django_durable import Context, Retry, step, workflow

FOLDER = Path(os.environ.get("EFFECTS", "."))


def write(line: str) -> None:
    """Append one line, atomically, with the process that wrote it."""
    with (FOLDER / "effects").open("ab", buffering=0) as file:
        file.write(f"{os.getpid()} {line}\n".encode())


@step
def note(text: str) -> str:
    write(text)
    return text


@step
def stand(text: str) -> str:
    """Stand at a barrier until the test opens it."""
    write(f"begin {text}")
    until = time.monotonic() + 60
    while not (FOLDER / f"open-{text}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    write(f"end {text}")
    return text


@step(queue="heavy")
def heavy(text: str) -> str:
    write(f"heavy {text}")
    return text


@step
def light(text: str) -> str:
    write(f"light {text}")
    return text


@step
def refuse(text: str) -> str:
    raise ValueError(f"cannot do {text}")


@step
def use_database(text: str) -> str:
    """Which of the server's processes serves this one; nothing to compare on SQLite."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()" if connection.vendor == "postgresql" else "SELECT 0")
        write(f"backend {cursor.fetchone()[0]}")
    return text


@workflow("celery.quick")
def quick(ctx: Context, text: str) -> str:
    ctx.step(note, f"{text}-a")
    return ctx.step(note, f"{text}-b")


@workflow("celery.spread")
def spread(ctx: Context, count: int) -> list[str]:
    texts = [str(number) for number in range(count)]
    alone = ctx.submit(light, "alone")
    mapped = ctx.map(heavy, texts, concurrency=3)
    children = ctx.map(spread_child, texts, concurrency=3)
    return [ctx.step(heavy, "first"), alone.result(), *mapped, *children]


@workflow("celery.spread_child")
def spread_child(ctx: Context, text: str) -> str:
    return ctx.step(light, f"child-{text}")


@workflow("celery.nap")
def nap(ctx: Context, text: str, seconds: float) -> str:
    ctx.step(note, f"{text}-a")
    ctx.sleep(timedelta(seconds=seconds))
    return ctx.step(note, f"{text}-b")


@workflow("celery.ask")
def ask(ctx: Context, text: str) -> str:
    ctx.step(note, f"{text}-a")
    answer: str = ctx.wait_for_signal("answer")
    return ctx.step(note, f"{text}-{answer}")


@workflow("celery.held")
def held(ctx: Context, text: str) -> str:
    ctx.step(note, f"{text}-a")
    ctx.step(stand, f"{text}-b")
    return ctx.step(note, f"{text}-c")


@workflow("celery.doomed")
def doomed(ctx: Context, text: str) -> str:
    return ctx.step(refuse, text)


@step(retry=Retry(max_attempts=2, initial=0.01))
def fail_with(text: str) -> str:
    raise ValueError(f"cannot do {text}")


@workflow("celery.confided")
def confided(ctx: Context, text: str) -> str:
    ctx.set_value("told", text)
    ctx.step(note, text)
    answer: str = ctx.wait_for_signal("answer")
    if answer.endswith("well"):
        return ctx.step(note, answer)
    return ctx.step(fail_with, answer)


@workflow("celery.queries")
def queries(ctx: Context, text: str) -> str:
    ctx.step(use_database, text)
    ctx.sleep(timedelta(seconds=0))
    return ctx.step(use_database, text)


@workflow("celery.elsewhere", queue="elsewhere")
def elsewhere(ctx: Context, text: str) -> str:
    return ctx.step(note, text)


@step(queue="of a step")
def carry(text: str) -> str:
    write(text)
    return text


@workflow("celery.sent_away")
def sent_away(ctx: Context, text: str) -> list[str]:
    """A step on a queue that only steps name, and a map on the execution's own."""
    return [ctx.step(carry, f"{text}-a"), *ctx.map(note, [f"{text}-b", f"{text}-c"])]

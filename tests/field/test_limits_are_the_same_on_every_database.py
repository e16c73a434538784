"""Field report B76: a name or an error that is too long fails on PostgreSQL only, and the history grows for ever.

Names have 255 characters, of four bytes if need be; a longer one is refused where it is given. Error texts are cut,
histories of attempts keep their first and last entries: the rows that change often stay small.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Model
from django.db.models.functions import Length

from django_durable import Context, Execution, Retry, current_step, step, workflow
from django_durable.authoring.registry import forget
from django_durable.models import Checkpoint, DeadLetter, Message
from tests.calling import durable
from tests.driving import claim, drain, lapse_leases

pytestmark = pytest.mark.django_db

NAMES = 255


def name_of(length: int) -> str:
    """Characters of four bytes that no index can compress."""
    dice = random.Random(length)
    return "".join(chr(dice.randrange(0x20000, 0x2A6D0)) for _ in range(length))


@workflow
def listens(ctx: Context, name: str) -> Any:
    ctx.set_value(name, 1)
    return ctx.wait_for_signal(name)


@workflow
def sets_value(ctx: Context, name: str) -> None:
    ctx.set_value(name, 1)


@workflow
def breaks(ctx: Context, name: str) -> None:
    ctx.breakpoint(name)


@workflow
def sets_tag(ctx: Context, name: str) -> None:
    ctx.set_tags(colour=name)


def nothing() -> None: ...


@workflow
def runs_a_step(ctx: Context, name: str) -> None:
    ctx.step(step(nothing, name=name))


def named(name: str) -> None:
    """Declare a workflow of this name, and start it."""
    flow = workflow(name)(_body)
    try:
        flow.start()
        drain()
    finally:
        forget(flow)


def _body(ctx: Context) -> None: ...


def signal(name: str, dedup_key: str = "d") -> None:
    listens.start("go").signal(name, dedup_key=dedup_key)


def command(*arguments: str) -> None:
    called = durable("start", listens.name, "--input", '{"name": "go"}', *arguments)
    if called.code:
        raise ValueError(called.error)


CALLS: dict[str, Callable[[str], Any]] = {
    "key": lambda name: listens.using(key=name).start("go"),
    "key of get": lambda name: listens.using(key=name).start("go") and listens.get(name),
    "tenant": lambda name: listens.using(tenant=name).start("go"),
    "tenant and key": lambda name: listens.using(tenant=name, key=name[::-1]).start("go"),
    "queue": lambda name: listens.using(queue=name).start("go"),
    "correlation id": lambda name: listens.using(correlation_id=name).start("go"),
    "tag": lambda name: listens.using(tags={"colour": name}).start("go"),
    "signal": signal,
    "dedup key": lambda name: signal("go", name),
    "signal and dedup key": lambda name: signal(name, name[::-1]),
    "workflow": named,
    "queue of a workflow": lambda name: workflow("limits.queue", queue=name)(_body),
    "step": lambda name: step(nothing, name=name),
    "queue of a step": lambda name: step(nothing, name="limits.queue", queue=name),
    "command: key": lambda name: command("--key", name),
    "command: tenant": lambda name: command("--tenant", name),
    "command: queue": lambda name: command("--queue", name),
}
IN_THE_BODY = [listens, sets_value, breaks, sets_tag, runs_a_step]


@pytest.mark.parametrize("what", CALLS)
def test_255_characters_of_four_bytes_fit(what: str) -> None:
    CALLS[what](name_of(NAMES))
    drain()


@pytest.mark.parametrize("length", [NAMES + 1, 5000])
@pytest.mark.parametrize("what", CALLS)
def test_a_longer_one_is_refused_at_the_call_and_nothing_is_stored(what: str, length: int) -> None:
    with pytest.raises(ValueError, match=f"{length}.* characters"):
        CALLS[what](name_of(length))
    assert not Message.objects.exists()
    assert not Execution.objects.exclude(workflow=listens.name, tenant="", key=None).exists()


@pytest.mark.parametrize("flow", IN_THE_BODY, ids=lambda flow: flow.func.__name__)
def test_in_a_body_too(flow: Any) -> None:
    fits, too_long = flow.start(name_of(NAMES)), flow.start(name_of(NAMES + 1))
    drain()
    assert Execution.objects.locate(fits.pk).status in ("completed", "waiting", "paused")
    refused = Execution.objects.locate(too_long.pk)
    assert refused.status == "failed"
    assert refused.error is not None
    assert refused.error["type"] == "builtins.ValueError"
    assert f"{NAMES + 1} characters" in refused.error["message"]
    assert not Checkpoint.objects.filter(execution_id=too_long.pk).exists()


def test_a_name_that_python_makes_is_measured_too() -> None:
    def made(ctx: Context) -> None: ...

    made.__name__ = made.__qualname__ = "n" * 300
    with pytest.raises(ValueError, match="characters"):
        step(made)
    with pytest.raises(ValueError, match="characters"):
        workflow(made)


def test_an_actor_is_cut_and_a_reason_kept_whatever_their_length() -> None:
    execution = listens.start("go")
    execution.cancel(actor=name_of(5000), reason=name_of(5000))
    [note] = durable("show", execution.pk, "--json").data["notes"]
    assert (note["actor"], note["reason"]) == (name_of(5000)[:NAMES], name_of(5000))


# -- histories -----------------------------------------------------------------------------------------------


@step(retry=Retry(max_attempts=300, initial=0))
def always_fails() -> None:
    attempt = current_step().attempt
    for number in range(110 if attempt == 300 else 2):
        current_step().log(f"line {number}: {'x' * 3_000}", data="y" * 3_000)
    raise ValueError(f"attempt {attempt} of many: {'😀' * 1_000}{'x' * 50_000}")


@workflow
def stubborn(ctx: Context) -> None:
    ctx.step(always_fails)


def size_of(model: type[Model], **which: Any) -> int:
    """Characters of all columns of the largest of these rows, texts as they are stored."""
    rows = model._default_manager.filter(**which).values()
    return max(sum(len(str(column)) for column in row.values()) for row in rows)


def test_three_hundred_attempts_with_large_errors_leave_small_rows() -> None:
    execution = stubborn.start()
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert failed.error is not None
    assert failed.error["attempts"] == 300
    assert failed.error["message"].startswith("attempt 300 of many")
    [checkpoint] = Checkpoint.objects.filter(execution_id=execution.pk)
    assert '"attempt": 1,' in checkpoint.attempts_log
    assert '"attempt": 300,' in checkpoint.attempts_log
    assert size_of(Execution, pk=execution.pk) < 10_000
    assert size_of(DeadLetter, execution_id=execution.pk) < 10_000
    assert size_of(Checkpoint, execution_id=execution.pk) < 250_000
    assert len(checkpoint.encoded_error or "") + len(checkpoint.attempts_log) < 10_000


def test_a_crash_loop_leaves_a_small_row(settings: Any) -> None:
    settings.DURABLE = {"MAX_RECOVERIES": 1000}
    execution = listens.start("go")
    for _ in range(60):
        [_lost] = claim()
        lapse_leases()
    row = Execution.objects.annotate(size=Length("takeovers")).get(pk=execution.pk)
    assert row.recoveries == 59
    assert size_of(Execution, pk=execution.pk) < 10_000


def test_deaths_and_retries_leave_one_small_letter_each() -> None:
    execution = breaks_down.start()
    for generation in range(1, 6):
        drain()
        assert DeadLetter.objects.count() == generation
        Execution.objects.locate(execution.pk).retry(actor="ann")
    drain()
    assert size_of(DeadLetter) < 30_000
    assert size_of(Execution) < 10_000


@step
def fails_at_length() -> None:
    raise ValueError(name_of(50_000))


@workflow
def breaks_down(ctx: Context) -> None:
    ctx.step(fails_at_length)


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


circle: list[Any] = []
circle.append(circle)
deep: Any = None
for _ in range(100_000):
    deep = [deep]

FIELDS: dict[str, Any] = {
    "keys that are no text": {("a", "b"): 1},
    "a circle": circle,
    "too deep": deep,
    "an object that has no text": Unprintable(),
    "a lone surrogate": "\ud83d",
    "a NUL": "a\x00b",
    "a large text": "x" * 1_000_000,
}


@step
def logs(name: str) -> str:
    current_step().log(f"here it is: {name}", data=FIELDS[name])
    return "done"


@workflow
def logging(ctx: Context, name: str) -> str:
    return ctx.step(logs, name)


@pytest.mark.parametrize("name", FIELDS)
def test_a_line_of_log_never_costs_the_result_of_its_step(name: str) -> None:
    execution = logging.start(name)
    drain()
    assert Execution.objects.locate(execution.pk).output == "done"
    [checkpoint] = Checkpoint.objects.all()
    assert f"here it is: {name}" in checkpoint.log
    assert len(checkpoint.log) < 10_000

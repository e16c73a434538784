"""Field report B26: user code catches what suspends the run, in one of many ways.

The six recipes are in ``tests/db/test_a_suspension_cannot_be_caught_by_accident.py``. Here: every other way to
suspend, every other thing that swallows, each followed by a clean-up that must not run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from django_durable import Context, Execution, Retry, step, workflow
from django_durable.models import DeadLetter, DispatchHint
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lease_of, make_due

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def cleanup() -> None:
    ran.append("cleanup")


@step
def work() -> None:
    ran.append("work")


@step(retry=Retry(max_attempts=2, initial=600))
def fails_once() -> None:
    ran.append("attempt")
    if ran.count("attempt") == 1:
        raise ValueError("not yet")


SUSPENSIONS: dict[str, Callable[[Context], Any]] = {
    "sleep": lambda ctx: ctx.sleep(600),
    "signal": lambda ctx: ctx.wait_for_signal("go"),
    "signal with a timeout": lambda ctx: ctx.wait_for_signal("go", timeout=600),
    "retry delay": lambda ctx: ctx.step(fails_once),
    "breakpoint": lambda ctx: ctx.breakpoint("here"),
}


@contextmanager
def swallows() -> Iterator[None]:
    """A context manager that forgets to raise again."""
    try:
        yield
    except BaseException:
        ran.append("swallowed")


def with_suppress(suspend: Callable[[], Any], ctx: Context) -> None:
    with suppress(BaseException):
        suspend()
    ctx.step(cleanup)


def with_an_exit_stack(suspend: Callable[[], Any], ctx: Context) -> None:
    with ExitStack() as stack:
        stack.push(lambda *exception: True)
        suspend()
    ctx.step(cleanup)


def with_a_generator(suspend: Callable[[], Any], ctx: Context) -> None:
    with swallows():
        suspend()
    ctx.step(cleanup)


def with_a_retry_of_everything(suspend: Callable[[], Any], ctx: Context) -> None:
    for _ in range(3):
        try:
            suspend()
            break
        except BaseException:
            ran.append("again")
    ctx.step(cleanup)


def with_a_group(suspend: Callable[[], Any], ctx: Context) -> None:
    try:
        suspend()
    except* BaseException:
        ran.append("swallowed")
    ctx.step(cleanup)


def with_cleanup_that_swallows(suspend: Callable[[], Any], ctx: Context) -> None:
    """The clean-up's own suspension is swallowed too, as often as it is tried."""
    with suppress(BaseException):
        suspend()
    for _ in range(3):
        with suppress(BaseException):
            ctx.step(cleanup)


SWALLOWERS = [
    with_suppress,
    with_an_exit_stack,
    with_a_generator,
    with_a_retry_of_everything,
    with_a_group,
    with_cleanup_that_swallows,
]


@workflow
def swallowing(ctx: Context, suspension: str, swallower: str) -> str:
    ctx.step(work)
    globals()[swallower](lambda: SUSPENSIONS[suspension](ctx), ctx)
    return "end"


def reload(execution: Execution[str]) -> Execution[str]:
    return Execution.objects.locate(execution.pk)


@pytest.mark.parametrize("swallower", SWALLOWERS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("suspension", SUSPENSIONS)
def test_no_clean_up_before_its_time_and_the_history_stays_replayable(suspension: str, swallower: Any) -> None:
    execution = swallowing.start(suspension, swallower.__name__)
    drain()
    assert "cleanup" not in ran
    assert ran.count("attempt") <= 1
    parked = reload(execution)
    if parked.status == "failed":
        assert parked.error is not None
        assert parked.error["type"] == "django_durable.errors.SuspensionSwallowed"
        assert DeadLetter.objects.count() == 1
        assert not DispatchHint.objects.exists()
        return
    # Its call of ctx after the suspension suspended again: from there it goes on as if nothing had been caught.
    assert parked.status in ("waiting", "paused")
    if parked.status == "paused":
        parked.resume(actor="ann")
    elif "signal" in suspension:
        parked.signal("go")
    make_due()
    drain()
    assert reload(execution).status == "completed"
    assert ran.count("cleanup") == ran.count("work") == 1


def test_a_shutdown_that_is_swallowed_runs_no_clean_up() -> None:
    execution = swallowing.start("sleep", "with_cleanup_that_swallows")
    [claimed] = claim()
    stop = threading.Event()
    stop.set()
    run_turn(claimed, lease_of(claimed), stop)
    assert ran == []
    assert reload(execution).status == "pending"
    drain()
    assert "cleanup" not in ran

"""What the race tests share: one execution under way, and a turn's single writes done by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction

from django_durable import Context, Execution, SignalTimeout, step, workflow
from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.engine.journal import Record, fenced_insert, load, row_for
from django_durable.engine.ownership import Refusal, explain_refusal
from django_durable.engine.transitions import recover
from django_durable.engine.transitions.claim import claim_due
from django_durable.engine.transitions.hint_lease import Odd
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.wait import Waited, wait_for_messages
from django_durable.runtime.claiming import terms_of
from django_durable.sql import fetch
from tests.crash.racer import Racer
from tests.driving import claim, lapse_leases
from tests.services.backend import database_alias
from tests.services.waiting import wait_until

USING = database_alias()
STEP = "racing.noted"


@step(STEP)
def noted(number: int) -> int:
    return number


@workflow("racing.waiter")
def waiter(ctx: Context, number: int) -> list[Any]:
    return [ctx.step(noted, number), ctx.wait_for_signal("go")]


@workflow("racing.patient")
def patient(ctx: Context) -> Any:
    try:
        return ctx.wait_for_signal("go", timeout=60.0)
    except SignalTimeout:
        return "late"


@workflow("racing.breaking")
def breaking(ctx: Context) -> None:
    raise ValueError("broken")


@contextmanager
def racers(number: int = 2) -> Iterator[list[Racer]]:
    """That many sides, each with a connection of its own."""
    sides = [Racer(USING) for _ in range(number)]
    try:
        yield sides
    finally:
        for side in sides:
            side.close()


class Transaction:
    """A transaction that one side opens in one call and ends in another."""

    def __init__(self, side: Racer) -> None:
        self._side, self._atomic = side, transaction.atomic(using=USING)
        side.run(self._atomic.__enter__)

    def commit(self) -> None:
        """Commit."""
        self._side.run(self._atomic.__exit__, None, None, None)

    def roll_back(self) -> None:
        """Roll back."""
        self._side.run(self._atomic.__exit__, RuntimeError, RuntimeError(), None)


def claim_one() -> Claimed:
    """Claim the only execution that is due."""
    (claimed,) = claim()
    return claimed


def append(claimed: Claimed, position: int = 0) -> int:
    """Append one finished step under the fence, as a turn does; how many rows went in."""
    row = row_for(claimed, position, "step", STEP, "completed", attempt=1, begun=1, encoded_output="1")
    return len(fetch(USING, fenced_insert(claimed, [row])))


def lapsed() -> Odd:
    """Another worker's look at the hint of a claim whose lease is over."""
    lapse_leases()
    _claims, (odd,) = claim_due(USING, terms_of(limit=1, queues=(config().default_queue,)))
    return odd


def resolved(odd: Odd) -> Claimed | None:
    """Deal with another worker's lapsed hint: the claim, if it can be had now."""
    return recover.resolve(USING, terms_of(limit=1, queues=(config().default_queue,)), odd)


def take_over(odd: Odd) -> Claimed:
    """Go on where another worker's lease has lapsed."""
    taken = resolved(odd)
    assert taken is not None
    return taken


def take_over_when_free() -> Claimed:
    """Take the only execution over, as soon as nobody's open transaction is in the way."""

    def attempt() -> list[Claimed]:
        lapse_leases()
        return claim()

    (taken,) = wait_until(attempt, because="the execution can be taken over")
    return taken


def owner() -> UUID | None:
    """The token of the only execution."""
    token: UUID | None = Execution.objects.using(USING).values_list("lease_token", flat=True).get()
    return token


def journal(execution: Execution[Any]) -> dict[int, Record]:
    """What a turn that begins now would read."""
    return {record.position: record for record in load(USING, execution.pk) if record.item == -1}


def refusal(claimed: Claimed, position: int = 0) -> Refusal:
    """Why its write was refused."""
    return explain_refusal(claimed, position)


def wait_for_go(claimed: Claimed, position: int = 1) -> Waited:
    """What ``ctx.wait_for_signal("go")`` does at a position."""

    def pages(changes: Any) -> Pages:
        more = {name: item for name, item in changes.items() if name != "status"}
        return Pages(rows=(row_for(claimed, position, "signal", "go", changes["status"], **more),))

    return wait_for_messages(
        claimed, pages, position=position, channels=["signal:go"], until=None, timed_out_error=""
    )

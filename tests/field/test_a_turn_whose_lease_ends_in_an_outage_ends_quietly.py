"""The last word of a turn is cut off: its lease has ended and the database is away. Nobody hears of an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError

from django_durable import Context, Execution, step, workflow
from django_durable.engine.lease_state import Lease
from django_durable.runtime.claim_run import run_claim
from tests.driving import USING, claim, connection, drain, lapse_leases, lease_of

pytestmark = pytest.mark.django_db(transaction=True)

ran: list[int] = []
held: list[Lease] = []


@pytest.fixture(autouse=True)
def an_outage() -> Iterator[None]:
    ran.clear()
    held.clear()
    yield
    there_again()


def away(*_args: Any) -> Any:
    raise OperationalError("the server is away")


def there_again() -> None:
    if away in connection.execute_wrappers:
        connection.execute_wrappers.remove(away)


def quits_once() -> str:
    ran.append(1)
    if len(ran) == 1:
        held[0].ends = 0.0
        connection.execute_wrappers.append(away)
        raise SystemExit
    return "came back"


@step("quiet.here")
def here() -> str:
    return quits_once()


@step("quiet.elsewhere", queue="elsewhere")
def elsewhere() -> str:
    return quits_once()


@workflow
def in_its_turn(ctx: Context) -> str:
    return ctx.step(here)


@workflow
def on_a_queue(ctx: Context) -> str:
    return ctx.step(elsewhere)


@pytest.mark.parametrize("target", [in_its_turn, on_a_queue])
def test_it_ends_without_an_error_and_is_taken_over(target: Any) -> None:
    execution = target.start()
    while not ran:
        for claimed in claim():
            held[:] = [lease_of(claimed)]
            run_claim(claimed, held[0])
    there_again()
    assert not connection.in_atomic_block
    assert Execution.objects.using(USING).get().pk == execution.pk
    lapse_leases()
    drain()
    assert Execution.objects.locate(execution.pk).output == "came back"

"""What one call of a user writes in several transactions' worth of work is one, repeated whole after contention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, transaction

from django_durable import Context, Execution, workflow
from django_durable.events import publish
from django_durable.models import Message
from tests.driving import USING, connection, drain

pytestmark = pytest.mark.django_db(transaction=True)


@workflow("several.listener")
def listener(ctx: Context, number: int) -> Any:
    return ctx.wait_for_signal("go")


CALLS: dict[str, Callable[[], Any]] = {
    "signal_or_start": lambda: listener.using(key="k").signal_or_start("go", 1, 1),
    "start_many": lambda: listener.start_many(listener.using(key=f"k{n}").bind(n) for n in range(3)),
    "publish": lambda: publish("several.news", 1),
}


@contextmanager
def contention(at: int) -> Iterator[list[int]]:
    """The ``at``-th statement of this thread finds its rows locked, once."""
    count = [0]

    def refuse(execute: Callable[..., Any], *arguments: Any) -> Any:
        count[0] += 1
        if count[0] == at:
            raise OperationalError("database is locked")
        return execute(*arguments)

    with connection.execute_wrapper(refuse):
        yield count


@pytest.mark.parametrize("name", CALLS)
def test_at_whatever_statement_the_caller_sees_one_call(name: str) -> None:
    with contention(at=0) as count, transaction.atomic(using=USING):
        CALLS[name]()
        transaction.set_rollback(True, using=USING)
    total = count[0]
    assert total > 1
    for at in range(1, total + 1):
        Execution.objects.all()._raw_delete(USING)
        Message.objects.all()._raw_delete(USING)
        with contention(at):
            CALLS[name]()
        assert Execution.objects.count() == {"signal_or_start": 1, "start_many": 3, "publish": 0}[name]
        assert Message.objects.count() == (name == "signal_or_start")
    drain()


def test_within_a_callers_transaction_the_error_is_the_callers() -> None:
    with pytest.raises(OperationalError), transaction.atomic(using=USING), contention(at=2):
        CALLS["start_many"]()
    assert not Execution.objects.exists()

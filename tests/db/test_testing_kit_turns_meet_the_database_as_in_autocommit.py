"""A turn inside a test's transaction meets the database as a worker does in autocommit: what only works in a
transaction fails here too, and what an error leaves behind is what it would leave behind in production."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, InterfaceError, OperationalError, connections, transaction
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, Retry, step, workflow
from django_durable.signals import execution_finished
from django_durable.testing import DurableKit
from testproject.shop.models import Order, OrderLine
from tests.driving import USING, connection

pytest_plugins = ["django_durable.testing.plugin"]

seen: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    seen.clear()


def names() -> set[str]:
    return set(get_user_model().objects.values_list("username", flat=True))


@pytest.fixture(
    params=[
        pytest.param(True, id="in a transaction", marks=pytest.mark.django_db),
        pytest.param(False, id="in autocommit", marks=pytest.mark.django_db(transaction=True)),
    ]
)
def durable_twice(request: pytest.FixtureRequest, durable: DurableKit) -> Iterator[DurableKit]:
    """The kit inside a test's transaction, and in a transactional test, where autocommit is real: the control."""
    assert connection.in_atomic_block is request.param
    yield durable
    assert connection.in_atomic_block is request.param
    assert not connection.needs_rollback
    assert Execution.objects.count() == 1  # the test's transaction is usable


bodies: dict[str, Callable[[], Any]] = {}


@step(retry=Retry(max_attempts=2, initial=0))
def act(what: str) -> Any:
    return bodies[what]()


@step(transactional=True, retry=Retry(max_attempts=2, initial=0))
def act_in_a_transaction(what: str) -> Any:
    return bodies[what]()


@workflow
def acts(ctx: Context, what: str) -> Any:
    return ctx.step(act, what)


@workflow
def acts_in_a_transaction(ctx: Context, what: str) -> Any:
    return ctx.step(act_in_a_transaction, what)


def body(function: Callable[[], Any]) -> Callable[[], Any]:
    bodies[function.__name__] = function
    return function


def create(name: str) -> None:
    get_user_model().objects.create_user(name)


@body
def breaks_a_constraint() -> None:
    create("ann")
    create("ann")


@body
def recovers_from_an_error() -> int:
    create("ann")
    with pytest.raises(IntegrityError):
        create("ann")
    create("bob")
    return get_user_model().objects.count()


@body
def breaks_a_constraint_in_a_block() -> None:
    create("ann")
    with transaction.atomic(using=USING, savepoint=False):
        create("bob")
        create("ann")


@body
def locks_without_a_transaction() -> None:
    list(get_user_model().objects.select_for_update())


@body
def registers_on_commit() -> str:
    with transaction.atomic(using=USING):
        transaction.on_commit(lambda: seen.append("committed"), using=USING)
        create("ann")
        assert seen == []
    assert seen == ["committed"]
    transaction.on_commit(lambda: seen.append("at once"), using=USING)
    return ",".join(seen)


@body
def wants_a_durable_block() -> None:
    with transaction.atomic(using=USING, durable=True):
        create("ann")


@body
def nests_blocks() -> None:
    with transaction.atomic(using=USING):
        create("ann")
        with pytest.raises(ZeroDivisionError), transaction.atomic(using=USING):
            create("bob")
            raise ZeroDivisionError
        create("cid")


@body
def leaves_a_transaction_open() -> str:
    create("ann")
    transaction.set_autocommit(False, using=USING)
    create("bob")
    return "done"


@body
def never_leaves_its_block() -> str:
    create("ann")
    transaction.atomic(using=USING).__enter__()
    create("bob")
    return "done"


@body
def closes_its_connection() -> None:
    create("ann")
    connection.close()
    create("bob")


@body
def closes_its_connection_in_a_block() -> None:
    create("ann")
    with transaction.atomic(using=USING):
        create("bob")
        connection.close()


@body
def reads_in_chunks() -> int:
    Order.objects.bulk_create([Order() for _ in range(250)])
    count = 0
    for order in Order.objects.iterator(chunk_size=100):
        count += 1
        if count % 100 == 0:
            OrderLine.objects.create(order=order, sku="x", unit_price=1)
    return count


@pytest.mark.parametrize(
    "what, status, error, left",
    [
        ("breaks_a_constraint", "failed", "IntegrityError", {"ann"}),
        ("recovers_from_an_error", "completed", None, {"ann", "bob"}),
        ("breaks_a_constraint_in_a_block", "failed", "IntegrityError", {"ann"}),
        ("locks_without_a_transaction", "failed", "TransactionManagementError", set()),
        ("registers_on_commit", "completed", None, {"ann"}),
        ("wants_a_durable_block", "completed", None, {"ann"}),
        ("nests_blocks", "completed", None, {"ann", "cid"}),
        ("leaves_a_transaction_open", "completed", None, {"ann"}),
        ("never_leaves_its_block", "completed", None, {"ann"}),
        ("closes_its_connection", "completed", None, {"ann", "bob"}),
        ("closes_its_connection_in_a_block", "completed", None, {"ann"}),
        ("reads_in_chunks", "completed", None, set()),
    ],
)
def test_a_step_leaves_what_it_would_leave_in_production(
    durable_twice: DurableKit, what: str, status: str, error: str | None, left: set[str]
) -> None:
    if what == "locks_without_a_transaction" and connection.vendor == "sqlite":
        status, error = "completed", None  # SQLite has no row locks, and Django asks for none
    execution = durable_twice.run(acts, what)
    assert (execution.status, names()) == (status, left), execution.error
    assert (execution.error or {}).get("type", "").rpartition(".")[2] == (error or "")


@pytest.mark.parametrize(
    "what, status, left",
    [
        ("breaks_a_constraint", "failed", set()),
        ("nests_blocks", "completed", {"ann", "cid"}),
        ("breaks_a_constraint_in_a_block", "failed", set()),
    ],
)
def test_a_transactional_step_writes_all_or_nothing(
    durable_twice: DurableKit, what: str, status: str, left: set[str]
) -> None:
    execution = durable_twice.run(acts_in_a_transaction, what)
    assert (execution.status, names()) == (status, left), execution.error
    assert execution.history()[0]["attempts"] == (2 if status == "failed" else 1)


@workflow
def queries_in_its_body(ctx: Context, write: bool) -> int:
    if write:
        create("ann")
    return Order.objects.count()


@pytest.mark.parametrize("write", [True, False])
def test_a_refused_query_blocks_and_leaves_the_transaction_usable(durable_twice: DurableKit, write: bool) -> None:
    execution = durable_twice.run(queries_in_its_body, write)
    assert execution.status == "blocked"
    assert "put it into a step" in execution.error["message"]
    assert names() == set()


def test_signals_to_the_project_are_sent_by_turns_though_the_test_never_commits(durable: DurableKit) -> None:
    def receive(execution: Execution[Any], **_more: Any) -> None:
        seen.append((execution.pk, execution.status))

    execution_finished.connect(receive)
    try:
        execution = durable.run(acts, "wants_a_durable_block")
    finally:
        execution_finished.disconnect(receive)
    assert seen == [(execution.pk, "completed")]


def test_hooks_that_the_test_has_registered_stay_with_the_test(
    durable: DurableKit, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(using=USING) as hooks:
        transaction.on_commit(lambda: seen.append("the test's"), using=USING)
        durable.run(acts, "registers_on_commit")
    assert len(hooks) == 1
    assert seen == ["committed", "at once"]


def test_the_savepoints_are_not_counted_as_queries(durable: DurableKit) -> None:
    acts.start("wants_a_durable_block")
    with CaptureQueriesContext(connection) as queries:
        durable.run_until_idle()
    assert not [q["sql"] for q in queries.captured_queries if "durable_kit" in q["sql"]]
    assert [q["sql"] for q in queries.captured_queries if "auth_user" in q["sql"]]


def test_a_broken_transaction_of_the_test_is_named_before_anything_runs(durable: DurableKit) -> None:
    with transaction.atomic(using=USING):
        acts.start("wants_a_durable_block")
        transaction.set_rollback(True, using=USING)
        with pytest.raises(transaction.TransactionManagementError):
            durable.run_until_idle()


def test_a_lost_connection_ends_the_test_instead_of_hanging(durable: DurableKit) -> None:
    lost = ExitStack()

    @body
    def loses_the_connection() -> None:
        real = connections[USING]
        lost.enter_context(mock.patch.object(real, "execute_wrappers", [does_not_answer]))
        lost.enter_context(mock.patch.object(real, "is_usable", lambda: False))

    acts.start("loses_the_connection")
    with lost, pytest.raises(InterfaceError, match=f"the connection {USING!r} is gone, and the test's transaction"):
        durable.run_until_idle()
    durable.run_until_idle()


def does_not_answer(*_args: Any) -> Any:
    raise OperationalError("server closed the connection unexpectedly")

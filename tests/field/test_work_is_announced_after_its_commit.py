"""Field report B60: the work is sent out before the state that expects its answer is committed.

A broker that is faster than any real one delivers each message in the moment in which it is sent, and the worker
has run the execution before the sender goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from django_durable import Context, Execution, step, workflow
from django_durable.dispatch.nudge import listen
from django_durable.models import DispatchHint
from django_durable.runtime.lease import process_keeper
from django_durable.runtime.one import run_hint
from testproject.shop.models import Order
from tests.driving import drain
from tests.field.bench.running import Aside

pytestmark = pytest.mark.django_db(transaction=True)


@workflow
def conversation(ctx: Context, name: str) -> Any:
    return name if name != "waits" else ctx.wait_for_signal("go")


@step
def starts_another(key: str) -> None:
    conversation.using(key=key).start("from a step")


@step(transactional=True)
def starts_another_with_its_commit(key: str) -> None:
    conversation.using(key=key).start("from a transactional step")


@workflow
def starter(ctx: Context, key: str) -> None:
    ctx.step(starts_another, key)
    ctx.step(starts_another_with_its_commit, f"{key} again")


class Broker:
    """Delivers while it is being given the message; tells what the workers did."""

    def __init__(self) -> None:
        self.ran: list[tuple[UUID, bool]] = []
        self.in_transaction: list[bool] = []

    def __call__(self, hint_id: UUID, queue: str) -> None:
        self.in_transaction.append(connection.in_atomic_block)
        worker = Aside(lambda: run_hint(hint_id))
        worker.start()
        self.ran.append((hint_id, worker.finish()))


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    forget = listen(broker)
    yield broker
    forget()
    process_keeper(30).close()


def completed(key: str) -> Any:
    execution = conversation.get(key)
    assert execution.status == "completed"
    return execution.output


def start_order(request: HttpRequest) -> HttpResponse:
    assert connection.in_atomic_block
    conversation.using(key="view").start("from a view")
    return HttpResponse(conversation.get("view").status)


class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    fields = ("customer_email",)

    def save_model(self, request: HttpRequest, obj: Order, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        assert connection.in_atomic_block
        conversation.using(key=f"order {obj.pk}").start("from the admin")


site = admin.AdminSite(name="field")
site.register(Order, OrderAdmin)
urlpatterns = [path("order/", start_order), path("admin/", site.urls)]


def test_a_start_in_a_transaction_is_delivered_by_its_commit(broker: Broker) -> None:
    with transaction.atomic():
        with transaction.atomic():
            conversation.using(key="k").start("x")
        assert broker.ran == []
    assert completed("k") == "x"
    assert [ran for _, ran in broker.ran] == [True]
    assert broker.in_transaction == [False]


def test_a_start_outside_a_transaction_is_delivered_at_once(broker: Broker) -> None:
    conversation.using(key="k").start("x")
    assert completed("k") == "x"


def test_a_rolled_back_start_delivers_nothing(broker: Broker) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        conversation.start("x")
        raise RuntimeError
    assert broker.ran == []


def test_a_view_in_a_transaction_of_its_own(broker: Broker, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    assert Client().get("/order/").content == b"pending"
    assert completed("view") == "from a view"


def test_the_admin_saves_in_a_transaction(broker: Broker, settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root", password="x"))
    answer = client.post("/admin/shop/order/add/", {"customer_email": "a@example.com"})
    assert answer.status_code == 302
    assert completed(f"order {Order.objects.get().pk}") == "from the admin"


def test_a_start_in_a_step_is_delivered_while_the_step_runs_or_with_its_commit(broker: Broker) -> None:
    starter.start("k")
    assert completed("k") == "from a step"
    assert completed("k again") == "from a transactional step"
    assert Execution.objects.filter(status="completed").count() == 3
    assert not any(broker.in_transaction)


def test_a_signal_in_a_transaction_is_delivered_by_its_commit(broker: Broker) -> None:
    conversation.using(key="k").start("waits")
    assert conversation.get("k").status == "waiting"
    with transaction.atomic():
        conversation.signal("k", "go", 7)
        before = len(broker.ran)
    assert len(broker.ran) == before + 1
    assert completed("k") == 7


def test_an_operators_verbs_are_delivered_too(broker: Broker) -> None:
    execution = conversation.using(key="k").start("waits")
    execution.pause(actor="ann")
    with transaction.atomic():
        execution.signal("go", 1)
        execution.resume(actor="ann")
    assert completed("k") == 1


def test_a_message_that_is_too_early_too_late_or_unknown_harms_nobody_and_is_not_the_only_chance() -> None:
    try:
        with transaction.atomic():
            execution = conversation.using(key="k").start("x")
            hint_id = DispatchHint.objects.get(execution_id=execution.pk).pk
            early = Aside(lambda: run_hint(hint_id))
            early.start()
            assert early.finish() is False
        assert conversation.get("k").status == "pending"
        assert drain() == 1
        assert completed("k") == "x"
        for late in (hint_id, execution.pk):
            assert run_hint(late) is False
        waiting = conversation.using(key="w").start("waits")
        hint_id = DispatchHint.objects.get(execution_id=waiting.pk).pk
        assert run_hint(hint_id) is True
        assert run_hint(hint_id) is False
        assert conversation.get("w").status == "waiting"
    finally:
        process_keeper(30).close()

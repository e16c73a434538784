"""Field report B88: a second start with the key of another run touches the first one, which then cannot recover.

The first run is never touched. The same input, whatever the order of its keys and however its arguments were passed,
finds it; any other input is a conflict; another workflow has keys of its own.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, ExecutionConflict, workflow
from django_durable.models import Checkpoint, DispatchHint, Message
from tests.calling import durable
from tests.driving import claim, drain, lapse_leases

pytestmark = pytest.mark.django_db


@workflow
def one(ctx: Context, data: Any, more: int = 0) -> Any:
    got = ctx.wait_for_signal("go", timeout=3600)
    return [data, more, got]


@workflow
def other(ctx: Context) -> str:
    return "other"


def everything() -> list[Any]:
    return [list(m._default_manager.order_by("pk").values()) for m in (Execution, Checkpoint, DispatchHint, Message)]


SAME: list[tuple[Any, Any]] = [
    ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
    ({"x": {"b": [1, 2], "a": None}}, {"x": {"a": None, "b": [1, 2]}}),
    ({1, 2, 3}, {3, 2, 1}),
    ("text", "text"),
]
OTHER: list[tuple[Any, Any]] = [
    ({"x": 1}, {"x": 2}),
    ({"x": 1}, {"x": 1.0}),
    ({"x": 1}, {"x": True}),
    ({"x": 1}, {"x": "1"}),
    ({"x": 1}, {"x": Decimal(1)}),
    ({"x": Decimal("1.0")}, {"x": Decimal("1.00")}),
    ({"x": 0}, {"x": None}),
    ({"x": 0.0}, {"x": -0.0}),
    ({"x": 1}, {"x": 1, "y": None}),
    ([1, 2], [2, 1]),
    ([1, 2], (1, 2)),
    ({1: "a"}, {"1": "a"}),
    ("é", "e\u0301"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_the_same_input_finds_the_run(first: Any, second: Any) -> None:
    started = one.using(key="k").start(first)
    before = everything()
    for again in (
        one.using(key="k").start(second),
        one.using(key="k").start(data=second),
        one.using(key="k", queue="elsewhere", priority=2).start(second),
    ):
        assert (again.pk, again.is_new) == (started.pk, False)
    assert everything() == before


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_another_input_is_a_conflict_and_the_run_ends_with_its_own(first: Any, second: Any) -> None:
    started = one.using(key="k").start(first)
    drain()
    before = everything()
    for _ in range(2):
        with transaction.atomic(), pytest.raises(ExecutionConflict, match=str(started.pk)):
            one.using(key="k").start(second)
        with pytest.raises(ExecutionConflict):
            one.using(key="k").signal_or_start("go", None, second)
    assert everything() == before
    started.signal("go")
    [_lost] = claim()
    lapse_leases()
    drain()
    assert repr(Execution.objects.locate(started.pk).output) == repr([first, 0, None])


def test_another_workflow_has_keys_of_its_own() -> None:
    first = one.using(key="k").start({"x": 1})
    before = Execution.objects.filter(pk=first.pk).values().get()
    second = other.using(key="k").start()
    assert second.pk != first.pk
    assert Execution.objects.filter(pk=first.pk).values().get() == before
    [_one, _other] = claim()
    lapse_leases()
    drain()
    first.signal("go", "signalled")
    drain()
    assert one.get("k").output == [{"x": 1}, 0, "signalled"]
    assert other.get("k").output == "other"


def test_the_command_tells_a_conflict_from_a_repetition() -> None:
    first = durable("start", one.name, "--input", '{"data": {"a": 1, "b": 2}}', "--key", "k")
    again = durable("start", one.name, "--input", '{"data": {"b": 2, "a": 1}}', "--key", "k")
    assert (again.code, again.out) == (0, first.out)
    before = everything()
    for data in ('{"a": 1.0, "b": 2}', '{"a": 1}', "[]"):
        conflict = durable("start", one.name, "--input", f'{{"data": {data}}}', "--key", "k")
        assert (conflict.code, conflict.out) == (1, "")
    assert everything() == before


def test_it_holds_after_the_run_has_ended() -> None:
    started = one.using(key="k").start({"x": 1})
    started.cancel(actor="ann")
    assert one.using(key="k").start({"x": 1}).pk == started.pk
    with pytest.raises(ExecutionConflict):
        one.using(key="k").start({"x": 2})
    fresh = one.using(key="k", on_conflict="restart").start({"x": 2})
    assert fresh.pk != started.pk
    assert one.using(key="k").start({"x": 2}).pk == fresh.pk
    with pytest.raises(ExecutionConflict):
        one.using(key="k").start({"x": 1})

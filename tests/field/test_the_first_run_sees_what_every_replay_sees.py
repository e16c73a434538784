"""Field report B24: a step's result is what was stored, also for the process that ran the step.

That each type survives its encoding is held by ``tests/unit/test_value_*`` and ``tests/properties``.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model

from django_durable import Context, Execution, step, workflow
from tests.driving import drain, make_due
from tests.field.rig.values import VALUES, seen
from tests.field.rig.yard import Yard

shown: list[str] = []
ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    shown.clear()
    ran.clear()


@step
def hand_over(name: str) -> Any:
    return VALUES[name]


@step
def take_and_return(value: Any) -> Any:
    ran.append(seen(value))
    return value


@workflow
def looks(ctx: Context, name: str) -> Any:
    """Look at the value before and after a suspension, and take it through arguments too."""
    value = ctx.step(hand_over, name)
    shown.append(seen(value))
    shown.append(seen(ctx.step(take_and_return, value)))
    ctx.sleep(60)
    return value


@pytest.mark.django_db
@pytest.mark.parametrize("name", VALUES)
def test_a_value_looks_the_same_before_and_after_a_suspension(name: str) -> None:
    execution = looks.start(name)
    drain()
    make_due()
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.status == "completed"
    assert shown == [seen(VALUES[name])] * 4
    assert ran == [seen(VALUES[name])]
    assert seen(done.output) == seen(VALUES[name])


def test_a_value_looks_the_same_in_the_process_that_ran_the_step_and_in_the_next_one(yard: Yard) -> None:
    first = yard.worker()
    execution = yard.start("all_values")
    yard.wait_for_effect("begin values")
    first.kill()
    yard.worker()
    yard.wait_for_effect("begin values", times=2)
    yard.open("values")
    yard.wait_for_status(execution, "completed")
    told = [line for line in yard.effects() if line.startswith("see ")]
    assert told == [f"see {name}: {seen(value)}" for name, value in VALUES.items()] * 2


@step
def give_list() -> list[int]:
    return kept


kept: list[int] = [1]


@workflow
def changes_what_it_got(ctx: Context) -> list[int]:
    got = ctx.step(give_list)
    shown.append(seen(got))
    got.append(2)
    ctx.sleep(60)
    return got


@pytest.mark.django_db
def test_a_result_that_the_body_changes_is_fresh_at_every_replay() -> None:
    execution = changes_what_it_got.start()
    drain()
    make_due()
    drain()
    assert shown == ['"list [1]"', '"list [1]"']
    assert Execution.objects.locate(execution.pk).output == [1, 2]
    assert kept == [1]


class Unknown:
    pass


class MyList(list[int]):
    pass


def not_storable(name: str) -> Any:
    user = get_user_model()(username="u")
    values: dict[str, Any] = {
        "model instance": user,
        "queryset": get_user_model().objects.all(),
        "class of one's own": Unknown(),
        "subclass of a list": MyList([1]),
        "generator": (n for n in range(3)),
        "function": not_storable,
        "range": range(3),
        "memoryview": memoryview(b"x"),
        "complex": 1j,
    }
    return values[name]


@step
def returns_it(name: str, deep: bool) -> Any:
    ran.append(name)
    return {"rows": [1, {"bad": not_storable(name)}]} if deep else not_storable(name)


@workflow
def fails_at_the_step(ctx: Context, name: str, deep: bool) -> None:
    ctx.step(returns_it, name, deep)


@pytest.mark.django_db
@pytest.mark.parametrize("deep", [False, True], ids=["itself", "within"])
@pytest.mark.parametrize(
    "name",
    [
        "model instance",
        "queryset",
        "class of one's own",
        "subclass of a list",
        "generator",
        "function",
        "range",
        "memoryview",
        "complex",
    ],
)
def test_what_cannot_be_stored_fails_the_first_run_at_its_step(name: str, deep: bool) -> None:
    execution = fails_at_the_step.start(name, deep)
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert failed.status == "failed"
    assert ran == [name]
    assert failed.error is not None
    assert failed.error["type"] == "django_durable.errors.UnserializableValue"
    assert "returns_it" in failed.error["message"]
    assert not deep or "['rows'][1]['bad']" in failed.error["message"]
    assert [(entry["status"], entry["attempts"]) for entry in failed.history()] == [("failed", 1)]

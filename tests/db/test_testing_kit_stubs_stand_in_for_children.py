"""A stubbed child is started, ends and wakes its parent like any other; only its body is another."""

from __future__ import annotations

from typing import Any
from unittest import TestCase
from unittest.mock import call

import pytest

from django_durable import ChildFailed, Context, Execution, step, workflow
from django_durable.testing import DurableKit, DurableTestMixin, run, stub_child

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def note(text: str) -> str:
    ran.append(text)
    return f"real {text}"


@workflow("stubbed.child")
def child(ctx: Context, text: str, times: int = 1) -> str:
    return ctx.step(note, text * times)


@workflow("stubbed.child", version="2")
def child_2(ctx: Context, text: str, times: int = 1) -> str:
    return ctx.step(note, text)


@workflow("stubbed.parent")
def parent(ctx: Context, text: str) -> Any:
    try:
        return ctx.child(child, text, times=2)
    except ChildFailed as failed:
        return failed.status, failed.message, failed.is_a(KeyError)


@workflow("stubbed.family")
def family(ctx: Context) -> Any:
    first = ctx.submit(child_2, "a")
    return [*ctx.map(child, ["b", "c"]), first.result()]


@workflow("stubbed.countdown")
def countdown(ctx: Context, number: int) -> int:
    return 1 + ctx.child(countdown, number - 1)


def test_a_stub_lasts_as_long_as_its_block() -> None:
    with stub_child(child, returns={"x": (1, 2)}) as stub:
        execution = run(parent, "a")
        assert execution.output == {"x": (1, 2)}
        assert stub.calls == [call("a", 2)]
        [stubbed] = Execution.objects.filter(parent_id=execution.pk)
        assert (stubbed.status, stubbed.output, stubbed.history()) == ("completed", {"x": (1, 2)}, [])
    assert run(parent, "a").output == "real aa"
    assert (stub.calls, ran) == ([call("a", 2)], ["aa"])


def test_a_stub_without_a_block_lasts_as_long_as_the_test(durable: DurableKit) -> None:
    durable.stub_child(child)
    assert durable.run(parent, "a").output is None
    assert durable.run(parent, "b").output is None
    assert ran == []


def test_the_next_test_has_the_real_body(durable: DurableKit) -> None:
    assert durable.run(parent, "a").output == "real aa"


def test_every_way_to_a_child_and_every_version_meets_it(durable: DurableKit) -> None:
    durable.stub_child(child.using(queue="any"), side_effect=str.upper)
    assert durable.run(family).output == ["B", "C", "A"]


def test_an_error_ends_the_child_and_is_told_to_the_parent(durable: DurableKit) -> None:
    durable.stub_child(child, side_effect=KeyError("gone"))
    assert durable.run(parent, "a").output == ("failed", "'gone'", True)


def test_a_run_without_parent_has_its_own_body(durable: DurableKit) -> None:
    stub = durable.stub_child(countdown, returns=10)
    assert durable.run(countdown, 3).output == 11
    assert stub.calls == [call(2)]


def test_a_crashed_stub_runs_again(durable: DurableKit) -> None:
    stub = durable.stub_child(child, side_effect=["first", "second"])
    crash = durable.crash_turn(at_position=0)  # the end of the child, which has no history
    assert durable.run(parent, "a").output == "second"
    assert (crash.happened, len(stub.calls)) == (True, 2)


def test_what_is_no_workflow_is_refused(durable: DurableKit) -> None:
    with pytest.raises(TypeError, match="stub_step"):
        durable.stub_child(note, returns=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not both"):
        durable.stub_child(child, returns=1, side_effect=KeyError)


class InATestCase(DurableTestMixin, TestCase):
    @pytest.mark.django_db
    def test_the_mixin_has_it_too(self) -> None:
        self.stub_child(child, returns="stub")
        self.assertEqual(self.run(parent, "a").output, "stub")
